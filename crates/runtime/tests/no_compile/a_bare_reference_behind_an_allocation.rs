//! An allocation may collect, so an unrooted reference ends before it.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        let text = scope.string(b"a").unwrap();
        let bare = text.get(scope);
        let _other = scope.string(b"b").unwrap();
        bare.text().map(str::len)
    });
}
