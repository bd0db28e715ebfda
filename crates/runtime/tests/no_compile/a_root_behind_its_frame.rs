//! The slot of a root is freed at the end of its frame.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        let escaped = scope.frame(|scope| scope.string(b"a").unwrap());
        escaped.get(scope).text().map(str::len)
    });
}
