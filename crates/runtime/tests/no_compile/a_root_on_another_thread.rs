//! The slot of a root belongs to its thread.

use brolga_runtime::heap::Root;
use brolga_runtime::{Runtime, RuntimeOptions};

fn needs_send<T: Send>(_: T) {}

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        let text: Root<'_, '_> = scope.string(b"a").unwrap();
        needs_send(text);
    });
}
