//! Words after objects that nothing may write.
//!
//! ```text
//!   tag │ object …            │ canary │ tag │ next object …
//!       └─ bytes of the type ─┘ 32 bytes of a fixed pattern
//! ```
//!
//! With [`HeapOptions::canaries`](super::HeapOptions::canaries) every object is allocated with
//! [`Canaries::BYTES`] more than its type needs. Collections compare the canaries with the pattern before
//! they free anything. As every cell is preceded by the canary of another object or by the start of its
//! block, a write before an object is also found, unless it hits the tag. A read outside an object returns
//! the pattern, which is neither an address nor a small number.
//!
//! Cost: a lock and 32 bytes for each object, and a comparison for each in a collection.

use super::object::Object;
use super::verify::Broken;

/// Objects with canaries, and the offset of each one's canary.
#[derive(Debug, Default)]
pub(crate) struct Canaries {
    objects: Vec<(Object, usize)>,
}

/// As a word, neither a user-space address nor a plausible length.
const PATTERN: [u8; 8] = [0xc5, 0xca, 0x7a, 0x21, 0xe5, 0xca, 0x7a, 0xc5];

impl Canaries {
    /// The bytes after an object.
    pub(crate) const BYTES: usize = 32;

    /// Writes the canary of a new object of `bytes` bytes, which was allocated with [`Canaries::BYTES`] more.
    pub(crate) fn add(&mut self, object: Object, bytes: usize) {
        object.write_bits(bytes, &pattern());
        self.objects.push((object, bytes));
    }

    /// Compares all canaries.
    pub(crate) fn check(&self) -> Result<(), Broken> {
        let mut found = [0; Self::BYTES];
        for &(object, bytes) in &self.objects {
            object.read_bits(bytes, &mut found);
            if found != pattern() {
                let name = object.desc().name().into();
                return Err(Broken::Overrun { address: object.address(), bytes, name });
            }
        }
        Ok(())
    }

    /// Drops the objects that a sweep is about to free.
    pub(crate) fn keep(&mut self, is_alive: impl Fn(Object) -> bool) {
        self.objects.retain(|&(object, _)| is_alive(object));
    }
}

fn pattern() -> [u8; Canaries::BYTES] {
    std::array::from_fn(|n| PATTERN[n % PATTERN.len()])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brolga_ir::Context;
    use brolga_ir::types::{Type, decl};

    use super::Canaries;
    use crate::heap::HeapOptions;
    use crate::instance::{Runtime, RuntimeOptions};

    fn runtime() -> Arc<Runtime> {
        let heap = HeapOptions { canaries: true, verify: true, ..HeapOptions::default() };
        Runtime::new(RuntimeOptions { heap, ..RuntimeOptions::default() })
    }

    /// Makes a memory of `length` bytes, writes one byte at `at` from its start, and collects.
    fn write_at(length: usize, at: usize) {
        let runtime = runtime();
        let cx = Context::new();
        let memory = cx.types.nominal(decl::MEMORY, &[Type::UINT8]).unwrap();
        let ty = runtime.heap().describe(&cx, memory).unwrap();
        runtime
            .enter(|scope| {
                let root = scope.memory(&ty, length).unwrap();
                root.get(scope).object.write_bits(at, &[1]);
                scope.collect();
                assert_eq!(scope.heap().stats().live_objects, 1);
            })
            .unwrap();
        runtime.enter(|scope| scope.collect()).unwrap();
        assert_eq!(runtime.heap().stats().live_objects, 0);
    }

    #[test]
    fn objects_may_be_written_to_their_last_byte() {
        for length in [1, 8, 13, 300, 40_000, 5 << 20] {
            write_at(length, 16 + length - 1);
        }
    }

    #[test]
    fn a_write_after_an_object_is_found() {
        for length in [0, 1, 8, 13, 300, 40_000, 5 << 20] {
            for after in [0, Canaries::BYTES - 1] {
                let written = std::panic::catch_unwind(|| write_at(length, 16 + length + after));
                let said = written.unwrap_err();
                let said = said.downcast_ref::<String>().unwrap();
                assert!(said.contains("memory after the") && said.contains("was written"), "{said}");
            }
        }
    }
}
