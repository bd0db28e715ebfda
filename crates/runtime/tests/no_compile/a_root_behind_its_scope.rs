//! Outside a scope collections do not wait for the thread.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _escaped = runtime.enter(|scope| scope.string(b"a").unwrap());
}
