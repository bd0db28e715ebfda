//! Loops over vectors of 128 bits, run in registers of 256 or 512 bits.
//!
//! ```text
//! m: %i = φ(…)                                                  m: store the loop's inputs to a stack slot
//!    %a = load(p + 8·%i); %b = load(p + 8·%i + 16)      ==>        call u2:0
//!    %c = lanes(mul_float, f64x2, %a, k); … %b …                   load the loop's results
//!    store(q + 8·%i, %c); store(q + 8·%i + 16, …)                  goto rest
//!    goto m if %i + 4 < n else rest                             u2:0, after the function's code: the loop, %a and %b in one register
//! ```
//!
//! Vectors in low IR and in Cranelift have 128 bits. `vectorize` unrolls loops to several vectors that are adjacent in memory, so two of them are the
//! halves of a vector of 256 bits, and four are the quarters of one of 512, where the processor has such registers. A loop whose vectors all pair up this way is
//! emitted here as bytes that follow the function's own code, and the function calls them. Cranelift compiles everything else in the function.
//!
//! | file | content |
//! |---|---|
//! | `find` | the pairs, the inputs and the results of a loop |
//! | `ops` | operations on lanes as instructions on registers |
//! | `emit` | register allocation and encoding |
//! | `../translate/wide.rs` | the call |
//!
//! **Which loops.** A block whose successors are itself and one other. Its vectors are loaded, stored, computed or carried between iterations in pairs.
//! Its other values are counters with constant steps, operands of addresses and of the exit test, and values that the caller can recompute from the counters after the loop.
//! It has no calls and no safepoint: `polls` has wrapped it in a loop that polls.
//!
//! **Invariants.** The low IR does not change, so the interpreter and the other tiers run the same program. Each lane computes the same operations in the same
//! order as in 128 bits. Two accesses become one only if no store is between two loads, and no access between two stores. The code calls
//! nothing, uses no stack except its return address, and follows the host's C convention. It clears the upper halves before it returns, because instructions without VEX
//! would wait for them.
//!
//! Cost: one visit to each block that is its own successor; a call and some moves each time the loop is entered. Not done:
//! conversions between widths, minima of floats, shifts by variable counts, operations without an AVX2 instruction.

pub(crate) mod emit;
pub(crate) mod find;
mod ops;

use brolga_ir::func::LineColumn;
use brolga_ir::{Block, Value};
use smallvec::SmallVec;

use crate::single_pass::asm::Cond;
use crate::single_pass::asm::vex::Vex;

/// The namespace of the external names of wide loops: `u2:N` is the `N`th one of the function.
pub(crate) const LOOP: u32 = 2;

/// The alignment of a wide loop, and of a function that has one.
pub(crate) const ALIGN: u32 = 64;

/// The features of the processor that matter here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Features {
    /// Fused multiply-add.
    pub(crate) fma: bool,
    /// Registers of 512 bits, with the instructions that all processors have that do not slow down for them.
    pub(crate) avx512: bool,
}

/// The number of a wide value.
pub(crate) type Wide = usize;

/// Two or four things, one for each 128 bits of a wide value, the lowest first.
pub(crate) type Parts<T> = SmallVec<[T; 4]>;

/// The definition of a wide value.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Made {
    /// Values from outside: the number of the input.
    Input(usize),
    /// Constants.
    Constant(Parts<u128>),
    /// The carried value with this number, from the previous iteration.
    Carried(usize),
    /// A counter and a distance in each lane of 64 bits.
    Splat(usize, i32),
    /// Loaded.
    Load(Address),
    /// An instruction with two operands, and perhaps an immediate.
    Binary(Vex, Option<u8>, Wide, Wide),
    /// An instruction with one operand.
    Unary(Vex, Wide),
    /// A shift by a constant: the digit of its opcode.
    Shift(Vex, u8, Wide, u8),
    /// Bytes of the third where the mask, which is the first, has ones, else of the second.
    Blend(Wide, Wide, Wide),
    /// The product of two plus the third, rounded once.
    Fma(Vex, Wide, Wide, Wide),
}

impl Made {
    /// The values that it is made of.
    pub(crate) fn operands(&self) -> SmallVec<[Wide; 3]> {
        match *self {
            Made::Binary(_, _, a, b) => [a, b].into_iter().collect(),
            Made::Unary(_, a) | Made::Shift(_, _, a, _) => std::iter::once(a).collect(),
            Made::Blend(a, b, c) | Made::Fma(_, a, b, c) => [a, b, c].into_iter().collect(),
            _ => SmallVec::new(),
        }
    }
}

/// The start of an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Base {
    /// A word from outside.
    Word(usize),
    /// A counter that is a pointer.
    Counter(usize),
}

/// An address: a base, a counter with the binary logarithm of its factor, and a distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) base: Base,
    pub(crate) index: Option<(usize, u8)>,
    pub(crate) disp: i32,
}

/// A step of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// Makes a value.
    Make(Wide),
    /// Stores one.
    Store(Address, Wide),
}

/// A value that changes by a constant in each iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counter {
    pub(crate) phi: Value,
    pub(crate) next: Value,
    pub(crate) step: i32,
}

/// A wide value that is carried from one iteration to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Carried {
    pub(crate) phis: Parts<Value>,
    /// The low IR's values for the next iteration.
    pub(crate) results: Parts<Value>,
    pub(crate) next: Wide,
}

/// The other operand of the comparison at the end of an iteration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    Word(usize),
    Const(i32),
}

/// The test at the end: the loop continues while the condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) counter: usize,
    /// Whether it is the counter's next value that is compared.
    pub(crate) is_next: bool,
    pub(crate) cond: Cond,
    pub(crate) bound: Bound,
}

/// The code of a wide loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WideCode {
    pub bytes: Vec<u8>,
    /// Offsets where the place in the source changes.
    pub lines: Vec<(u32, LineColumn)>,
}

/// A loop that is executed in 256 or 512 bits.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct WideLoop {
    /// How many vectors of 128 bits are one: two or four.
    pub(crate) parts: usize,
    pub(crate) counters: Vec<Counter>,
    /// Integers and pointers from outside.
    pub(crate) words: Vec<Value>,
    /// Vectors from outside.
    pub(crate) inputs: Vec<Parts<Value>>,
    pub(crate) carried: Vec<Carried>,
    pub(crate) values: Vec<Made>,
    /// Each with its place in the source.
    pub(crate) steps: Vec<(LineColumn, Step)>,
    pub(crate) end: End,
    /// The place of the test in the source.
    pub(crate) end_line: LineColumn,
    /// The block after the loop.
    pub(crate) exit: Block,
}

impl WideLoop {
    /// Whether it stores where it loads.
    pub(crate) fn changes_in_place(&self) -> bool {
        let loads = |at: Address| self.values.contains(&Made::Load(at));
        self.steps.iter().any(|(_, step)| matches!(*step, Step::Store(at, _) if loads(at)))
    }
}

/// Offsets in the stack slot that holds the loop's inputs and results.
impl WideLoop {
    /// Of a counter: its first value, and the next one after the last iteration.
    pub(crate) fn counter_at(&self, n: usize) -> i32 {
        8 * n as i32
    }

    /// Of a word.
    pub(crate) fn word_at(&self, n: usize) -> i32 {
        8 * (self.counters.len() + n) as i32
    }

    /// Of the lowest of vectors that are carried; the others follow.
    pub(crate) fn carried_at(&self, n: usize) -> i32 {
        let words = (self.counters.len() + self.words.len()).next_multiple_of(2);
        8 * words as i32 + (16 * self.parts * n) as i32
    }

    /// Of the lowest of an input; the others follow.
    pub(crate) fn input_at(&self, n: usize) -> i32 {
        self.carried_at(self.carried.len() + n)
    }

    /// Its bytes.
    pub(crate) fn bytes(&self) -> u32 {
        self.input_at(self.inputs.len()).unsigned_abs()
    }
}

/// The exponent of the power of two that a number is one above (`true`) or below. Below 8 only those above one count, which one instruction computes.
pub(crate) fn neighbour_of_power(number: u128) -> Option<(u32, bool)> {
    let exponent = |power: u128| power.is_power_of_two().then(|| power.trailing_zeros());
    let fits = |shift: &u32| (1..31).contains(shift);
    match (number.checked_sub(1).and_then(exponent), exponent(number.checked_add(1)?)) {
        (Some(below), _) if fits(&below) => Some((below, true)),
        (_, Some(above)) if fits(&above) && above > 2 => Some((above, false)),
        _ => None,
    }
}
