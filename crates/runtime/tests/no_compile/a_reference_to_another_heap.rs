//! A heap accepts only its own objects.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let (one, two) = (Runtime::new(RuntimeOptions::default()), Runtime::new(RuntimeOptions::default()));
    let _ = one.enter(|one| {
        let text = one.string(b"a").unwrap();
        let _ = two.enter(|two| text.get(two).text().map(str::len));
    });
}
