//! The words of a new object that its function writes before they can be read.
//!
//! An object on the stack, or on a heap whose memory is not zeroed, is zeroed at its allocation, except for
//! the words that the following code writes anyway:
//!
//! ```text
//!   %1 = alloc(T)         24 bytes
//!   store(%1 + 0, %2)     word 0
//!   store(%1 + 8, %3)     half of word 1
//!   invoke f(%1)          ends the search: words 1 and 2 are zeroed before the first store
//! ```
//!
//! The search goes down the block from the allocation. It ends at a safepoint, at an instruction that reads
//! the object or leaks its address, and at anything other than loads, stores and computations. The collector
//! does not read the frame before the next safepoint.
//!
//! Cost: linear in the visited instructions, at most [`MOST_INSTS`] per allocation.

use brolga_ir::effects::{Effects, effects};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::op::Region;
use brolga_ir::{Const, Context, Func, Inst, Op, Value};
use smallvec::SmallVec;

/// The length of the search: constructors fill their objects immediately.
const MOST_INSTS: usize = 64;
const WORD: u32 = 8;

/// Offsets of words in an object.
pub(crate) type Zeros = SmallVec<[u32; 8]>;

/// The offsets of the words to be zeroed in an object of `bytes` bytes; `None` if there are more than `most`.
pub(crate) fn unwritten(func: &Func, cx: &Context, alloc: Inst, bytes: u32, most: usize) -> Option<Zeros> {
    let words = bytes.div_ceil(WORD) as usize;
    // One bit for each written byte.
    let mut written: SmallVec<[u8; 16]> = SmallVec::from_elem(0, words);
    // The pointers into the object, with their offsets.
    let mut inside: SmallVec<[(Value, i64); 8]> = SmallVec::new();
    inside.extend(func.result(alloc).map(|object| (object, 0)));
    let offset_of = |inside: &[(Value, i64)], v: Value| inside.iter().find(|i| i.0 == v).map(|i| i.1);
    let mut next = func.next_inst(alloc);
    for _ in 0..MOST_INSTS {
        let Some(inst) = next else { break };
        next = func.next_inst(inst);
        let args = func.args(inst);
        let uses = args.iter().any(|&v| offset_of(&inside, v).is_some());
        match (func.op(inst), args) {
            (Op::Store(access), &[to, value]) => {
                if access.region != Region::Frame && offset_of(&inside, value).is_some() {
                    break;
                }
                let Some(at) = offset_of(&inside, to) else { continue };
                let Some(low) = func.ty(value).as_low() else { break };
                let from = at.wrapping_add(i64::from(access.offset));
                for byte in (0..i64::from(low.bytes())).map(|byte| from.wrapping_add(byte)) {
                    // Words before the object do not belong to it.
                    let Ok(byte) = usize::try_from(byte) else { continue };
                    if let Some(word) = written.get_mut(byte / WORD as usize) {
                        *word |= 1 << (byte % WORD as usize);
                    }
                }
            }
            (Op::Intrinsic(Intrinsic::AddPtr), &[base, offset]) if uses => {
                let (Some(at), Some(&Const::Bits { bits, .. }), Some(result)) =
                    (offset_of(&inside, base), func.as_const(offset), func.result(inst))
                else {
                    break;
                };
                inside.push((result, at.wrapping_add(bits as i64)));
            }
            (Op::Load(_), _) if !uses => {}
            (Op::Intrinsic(_), _) if !uses => {}
            _ if !uses && effects(func, &cx.types, inst) == Effects::PURE => {}
            _ => break,
        }
    }
    let left = (0..words).filter(|&word| written[word] != u8::MAX);
    let left: Zeros = left.take(most.saturating_add(1)).map(|word| word as u32 * WORD).collect();
    (left.len() <= most).then_some(left)
}
