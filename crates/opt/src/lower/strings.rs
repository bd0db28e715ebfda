//! Bytes between strings, vectors and memories, where the types are known.
//!
//! ```text
//! jl_string_to_array(s)          n = length(s); m = gc_memory(Memory{UInt8}, n); memcopy(m.data, s + 8, n); Vector over m
//! jl_array_to_string(a)          n = length(a); s = gc_string(n); memcopy(s + 8, a.data, n); array_del_end(a, n)
//! ```
//!
//! Julia makes every string from parts by these calls: digits are written into a vector, which becomes a string. A call by name takes boxes and looks the
//! name up, which costs more than the copy.
//!
//! Invariant: addresses are taken after the allocation, and nothing between them and the copy is a safepoint.

use super::addr::Addr;
use super::array::LENGTH;
use super::call::STRING_BYTES;
use super::value::Val;
use super::{Lowering, Step};
use brolga_ir::op::Region;
use brolga_ir::{LowType, Op, RuntimeFn, Type, Value};

impl Lowering<'_> {
    /// A function of Julia's run time that copies bytes, in place; `None` for other functions or types.
    pub(super) fn copied_bytes(&mut self, name: &str, args: &[Val]) -> Step<Option<Val>> {
        let (Ok(vector), Ok(memory)) = (self.types.vector(Type::UINT8), self.types.memory(Type::UINT8))
        else {
            return Ok(None);
        };
        Ok(match (name, args) {
            ("jl_string_to_genericmemory", [text]) if text.ty == Type::STRING => {
                let &[text] = &text.leaves[..] else { return Ok(None) };
                Some(Val::scalar(memory, self.memory_of_string(memory, text).0))
            }
            ("jl_string_to_array", [text]) if text.ty == Type::STRING => {
                let &[text] = &text.leaves[..] else { return Ok(None) };
                let (bytes, length) = self.memory_of_string(memory, text);
                Some(Val::scalar(vector, self.vector_over(vector, Type::UINT8, bytes, length)?))
            }
            ("jl_array_to_string", [of]) if of.ty == vector => {
                let (&[array], &[length]) = (&of.leaves[..], &self.array_dims(of, Type::UINT8, 1)?[..])
                else {
                    return Ok(None);
                };
                let text = self.value(Op::CallRuntime(RuntimeFn::GcString), &[length], Type::TRACKED);
                let (to, from) = (self.moved(text, STRING_BYTES), self.array_address(array));
                self.emit(Op::MemCopy, &[to, from, length], &[]);
                // The array is empty afterwards.
                self.value(Op::CallRuntime(RuntimeFn::ArrayDelEnd), &[array, length], Type::TRACKED);
                Some(Val::scalar(Type::STRING, text))
            }
            _ => None,
        })
    }

    /// A `Memory{UInt8}` with the bytes of a string, and its length.
    fn memory_of_string(&mut self, ty: Type, text: Value) -> (Value, Value) {
        let length = self.load_low(Addr::inside(text, 8, Region::Length), LENGTH, LowType::I64);
        let memory = self.new_memory(ty, length);
        let (to, from) = (self.memory_data(memory), self.moved(text, STRING_BYTES));
        self.emit(Op::MemCopy, &[to, from, length], &[]);
        (memory, length)
    }
}
