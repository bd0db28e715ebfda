//! While a scope is lent to blocking work, its objects may be freed.

use brolga_runtime::{Runtime, RuntimeOptions};

fn main() {
    let runtime = Runtime::new(RuntimeOptions::default());
    let _ = runtime.enter(|scope| {
        let text = scope.string(b"a").unwrap();
        scope.blocking(|| text.get(scope).text().map(str::len))
    });
}
