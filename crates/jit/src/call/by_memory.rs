//! Typed calls of functions with values that are passed in memory: structs and tuples of more than eight scalars.
//!
//! ```text
//!   Rust value ──► its leaves ──► each at its place in a buffer ──► address     an argument
//!   address of a buffer, before all arguments ──► leaves ──► Rust value         the result
//! ```
//!
//! Cost: an allocation for each such value, and a copy of each leaf.

use std::cell::Cell;

use brolga_codegen::sig::{Abi, FunctionType, ValueType};

use super::func::{CallError, UntypedFunc, Word};
use super::value::{Params, Value};

/// A function, and how each of its values is passed.
#[derive(Debug)]
pub(crate) struct ByMemory {
    func: UntypedFunc,
    params: Box<[Way]>,
    result: Way,
}

/// How a value is passed.
#[derive(Debug)]
enum Way {
    /// As these leaves.
    Leaves(Box<[Abi]>),
    /// As the address of this many bytes.
    Memory(usize, Box<[Place]>),
}

/// A leaf in memory: its distance from the start, and its bytes.
type Place = (usize, usize);

/// An argument, or several leaves of one.
enum Given {
    Bits(u128),
    Pointer(*mut ()),
    Memory(Vec<Cell<u128>>),
}

impl ByMemory {
    /// The function, whose values have these types.
    pub(crate) fn new(func: UntypedFunc, ty: &FunctionType) -> ByMemory {
        ByMemory { func, params: ty.params.iter().map(way).collect(), result: way(&ty.result) }
    }

    /// Calls the function.
    pub(crate) fn call<A: Params, R: Value>(&self, args: A) -> Result<R, CallError> {
        let mut leaves = Vec::new();
        args.append_leaves(&mut leaves);
        let mut leaves = leaves.into_iter();
        let mut given = Vec::with_capacity(self.params.len() + 1);
        let room = match &self.result {
            Way::Leaves(_) => None,
            Way::Memory(bytes, _) => Some(cells(&vec![0; *bytes])),
        };
        for way in &self.params {
            match way {
                Way::Leaves(abis) => given.extend(leaves.by_ref().zip(abis).map(|(bits, abi)| match abi {
                    Abi::Ptr => Given::Pointer(std::ptr::with_exposed_provenance_mut(bits as usize)),
                    _ => Given::Bits(bits),
                })),
                Way::Memory(bytes, places) => {
                    let mut memory = vec![0; *bytes];
                    for &(at, size) in places {
                        let bits = leaves.next().unwrap_or(0).to_ne_bytes();
                        if let Some(place) = memory.get_mut(at..at + size) {
                            place.copy_from_slice(&bits[..size]);
                        }
                    }
                    given.push(Given::Memory(cells(&memory)));
                }
            }
        }
        let room_word = room.iter().map(|room| Word::Memory(room));
        let words = room_word.chain(given.iter().map(|given| match given {
            Given::Bits(bits) => Word::Bits(*bits),
            Given::Pointer(pointer) => Word::Pointer(*pointer),
            Given::Memory(memory) => Word::Memory(memory),
        }));
        let words: Vec<Word<'_, '_>> = words.collect();
        let got = self.func.call_with(&words)?;
        match (&self.result, &room) {
            (Way::Memory(_, places), Some(room)) => {
                let bytes: Vec<u8> = room.iter().flat_map(|cell| cell.get().to_ne_bytes()).collect();
                let mut leaves = places.iter().map(|&(at, size)| {
                    let mut bits = [0; 16];
                    if let Some(place) = bytes.get(at..at + size) {
                        bits[..size].copy_from_slice(place);
                    }
                    u128::from_ne_bytes(bits)
                });
                Ok(R::from_leaves(&mut leaves)?)
            }
            _ => Ok(R::from_leaves(&mut got.into_iter())?),
        }
    }
}

// The low bytes of a number come first: a leaf is the first bytes of its bits.
const _: () = assert!(cfg!(target_endian = "little"));

/// Memory for compiled code, with these bytes.
fn cells(bytes: &[u8]) -> Vec<Cell<u128>> {
    let cell = |chunk: &[u8]| {
        let mut bits = [0; 16];
        bits[..chunk.len()].copy_from_slice(chunk);
        Cell::new(u128::from_ne_bytes(bits))
    };
    bytes.chunks(16).map(cell).collect()
}

fn way(value: &ValueType) -> Way {
    match value.memory {
        None => Way::Leaves(value.leaves.clone().into()),
        Some(memory) => {
            let mut places = Vec::new();
            add_places(value, 0, &mut places);
            Way::Memory(memory.bytes as usize, places.into())
        }
    }
}

/// The leaves of a value in memory. Recursion follows the nesting of types, which the type table bounds.
fn add_places(value: &ValueType, at: usize, places: &mut Vec<Place>) {
    if value.fields.is_empty() {
        places.extend(value.leaves.iter().map(|abi| (at, (abi.bits() as usize).div_ceil(8))));
    }
    for field in &value.fields {
        add_places(&field.ty, at + field.offset as usize, places);
    }
}
