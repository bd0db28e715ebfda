//! A collection frees unrooted objects.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        let text = scope.string(b"a").unwrap();
        let bare = text.get(scope);
        scope.collect();
        bare.text().map(str::len)
    });
}
