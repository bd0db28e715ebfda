//! A scope stands for the thread that is in the heap.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        std::thread::scope(|threads| {
            threads.spawn(|| scope.collect());
        });
    });
}
