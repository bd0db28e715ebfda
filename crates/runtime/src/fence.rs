//! Fences around foreign code called where a panic must not propagate: under compiled code, in the middle of
//! a collection, in destructors.
//!
//! A payload is foreign as well: its destructor may panic again, outside the fence that caught the first
//! panic. So it is dropped inside a second fence; the payload of a panic there is leaked, because its
//! destructor could panic in turn.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls foreign code. A panic is returned as its message.
pub fn fenced<R>(body: impl FnOnce() -> R) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(dispose)
}

/// Drops a payload and returns its message, if it is text.
fn dispose(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<String>(), payload.downcast_ref::<&'static str>()) {
        (Some(text), _) => text.clone(),
        (_, Some(text)) => (*text).to_owned(),
        _ => "panic without a message".to_owned(),
    };
    let _leaked = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(std::mem::ManuallyDrop::new);
    text
}

#[cfg(test)]
mod tests {
    use std::panic::{panic_any, resume_unwind};

    use super::*;

    /// Panics when it is dropped, with another bomb as payload.
    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if self.0 > 0 && !std::thread::panicking() {
                resume_unwind(Box::new(Bomb(self.0 - 1)));
            }
        }
    }

    #[test]
    fn panic_messages_are_kept_and_payloads_do_no_harm() {
        assert_eq!(fenced(|| 3), Ok(3));
        assert_eq!(fenced(|| resume_unwind(Box::new("a"))), Err::<(), _>("a".into()));
        assert_eq!(fenced(|| resume_unwind(Box::new("b".to_owned()))), Err::<(), _>("b".into()));
        assert_eq!(fenced(|| panic_any(Bomb(3))), Err::<(), _>("panic without a message".into()));
    }
}
