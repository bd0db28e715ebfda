//! The low values of typed calls: how the values of Rust types are passed, where that is not in words of a fixed number.
//!
//! ```text
//!   Rust value ──► its leaves ──┬── passed as such
//!                               └── each at its place in a buffer ──► address     a struct or tuple of more than eight scalars
//!   address of a buffer, before all arguments ──► leaves ──► Rust value           the result likewise
//! ```
//!
//! [`Packing`] is the part without code: functions that run in another process are called by it as well.
//!
//! Cost: an allocation for each value in memory, and a copy of each leaf.

use std::cell::Cell;

use brolga_codegen::sig::{Abi, FunctionType, ValueType};

use super::func::{CallError, LookupError, UntypedFunc, Word};
use super::value::{Params, Value, ValueError};

/// How the values of a function are passed.
#[derive(Clone, Debug)]
pub struct Packing {
    params: Box<[Way]>,
    result: Way,
}

/// How a value is passed.
#[derive(Clone, Debug)]
enum Way {
    /// As these leaves.
    Leaves(Box<[Abi]>),
    /// As the address of this many bytes.
    Memory(usize, Box<[Place]>),
}

/// A leaf in memory: its distance from the start, and its bytes.
type Place = (usize, usize);

/// A low argument.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LowArg {
    /// The bits of a leaf.
    Bits(u128),
    /// An address.
    Pointer(*mut ()),
    /// The bytes of a value that is passed in memory.
    Memory(Vec<u8>),
    /// Memory for this many bytes of the result.
    Room(usize),
}

impl Packing {
    /// How the values of a function of this type are passed, if the Rust types stand for its own.
    ///
    /// # Errors
    /// A type or the number of parameters differs.
    pub fn of<A: Params, R: Value>(ty: &FunctionType) -> Result<Packing, LookupError> {
        let result = (std::any::type_name::<R>(), R::stands_for(&ty.result));
        check_types(&ty.name, ty, A::COUNT, &A::stands_for, result)?;
        Ok(Packing::new(ty))
    }

    fn new(ty: &FunctionType) -> Packing {
        Packing { params: ty.params.iter().map(way).collect(), result: way(&ty.result) }
    }

    /// The low arguments for values.
    pub fn pack<A: Params>(&self, args: A) -> Vec<LowArg> {
        let mut leaves = Vec::new();
        args.append_leaves(&mut leaves);
        let mut leaves = leaves.into_iter();
        let mut given = Vec::with_capacity(self.params.len() + 1);
        if let Way::Memory(bytes, _) = self.result {
            given.push(LowArg::Room(bytes));
        }
        for way in &self.params {
            match way {
                Way::Leaves(abis) => given.extend(leaves.by_ref().zip(abis).map(|(bits, abi)| match abi {
                    Abi::Ptr => LowArg::Pointer(std::ptr::with_exposed_provenance_mut(bits as usize)),
                    _ => LowArg::Bits(bits),
                })),
                Way::Memory(bytes, places) => {
                    let mut memory = vec![0; *bytes];
                    for &(at, size) in places {
                        let bits = leaves.next().unwrap_or(0).to_ne_bytes();
                        if let Some(place) = memory.get_mut(at..at + size) {
                            place.copy_from_slice(&bits[..size]);
                        }
                    }
                    given.push(LowArg::Memory(memory));
                }
            }
        }
        given
    }

    /// The value of low results, and of the bytes in the room for the result. Missing ones are zero.
    ///
    /// # Errors
    /// The value has no counterpart in Rust.
    pub fn unpack<R: Value>(&self, results: &[u128], room: &[u8]) -> Result<R, ValueError> {
        match &self.result {
            Way::Leaves(_) => R::from_leaves(&mut results.iter().copied()),
            Way::Memory(_, places) => R::from_leaves(&mut places.iter().map(|&(at, size)| {
                let mut bits = [0; 16];
                if let Some(place) = room.get(at..at + size) {
                    bits[..size].copy_from_slice(place);
                }
                u128::from_ne_bytes(bits)
            })),
        }
    }
}

/// Checks that Rust types stand for a function's types. Each Rust type is given by its name and whether it stands for the
/// Julia type.
pub(super) fn check_types(
    name: &str,
    ty: &FunctionType,
    given: usize,
    param: &dyn Fn(usize, &ValueType) -> (&'static str, bool),
    (rust, fits): (&'static str, bool),
) -> Result<(), LookupError> {
    if given != ty.params.len() {
        return Err(LookupError::Count { name: name.into(), expected: ty.params.len(), given });
    }
    for (at, wanted) in ty.params.iter().enumerate() {
        let (rust, fits) = param(at, wanted);
        if !fits {
            let (index, julia) = (at + 1, wanted.name.clone());
            return Err(LookupError::Argument { name: name.into(), index, julia, rust });
        }
    }
    match fits {
        true => Ok(()),
        false => Err(LookupError::Result { name: name.into(), julia: ty.result.name.clone(), rust }),
    }
}

/// A function, and how each of its values is passed.
#[derive(Debug)]
pub(crate) struct ByMemory {
    func: UntypedFunc,
    packing: Packing,
}

impl ByMemory {
    /// The function, whose values have these types.
    pub(crate) fn new(func: UntypedFunc, ty: &FunctionType) -> ByMemory {
        ByMemory { func, packing: Packing::new(ty) }
    }

    /// Calls the function.
    pub(crate) fn call<A: Params, R: Value>(&self, args: A) -> Result<R, CallError> {
        let args = LowArgs::new(self.packing.pack(args));
        let results = self.func.call_with(&args.words())?;
        Ok(self.packing.unpack(&results, &args.room())?)
    }
}

/// Low arguments with the memory of those that are passed in memory, for any number of calls.
#[derive(Debug)]
pub struct LowArgs {
    args: Vec<LowArg>,
    /// In the order of the arguments that have some.
    memory: Vec<Vec<Cell<u128>>>,
}

impl LowArgs {
    /// Allocates the memory.
    pub fn new(args: Vec<LowArg>) -> LowArgs {
        let memory = args.iter().filter_map(|arg| match arg {
            LowArg::Memory(bytes) => Some(cells(bytes)),
            LowArg::Room(bytes) => Some(cells(&vec![0; *bytes])),
            LowArg::Bits(_) | LowArg::Pointer(_) => None,
        });
        let memory = memory.collect();
        LowArgs { args, memory }
    }

    /// The arguments of [`UntypedFunc::call_with`].
    pub fn words(&self) -> Vec<Word<'_, '_>> {
        let mut memory = self.memory.iter();
        let word = |arg: &LowArg| match arg {
            LowArg::Bits(bits) => Word::Bits(*bits),
            LowArg::Pointer(pointer) => Word::Pointer(*pointer),
            LowArg::Memory(_) | LowArg::Room(_) => Word::Memory(memory.next().map_or(&[], Vec::as_slice)),
        };
        self.args.iter().map(word).collect()
    }

    /// The bytes in the room for the result, after a call; empty if there is none.
    pub fn room(&self) -> Vec<u8> {
        let mut held = self.args.iter().filter(|arg| matches!(arg, LowArg::Room(_) | LowArg::Memory(_)));
        let room = held.position(|arg| matches!(arg, LowArg::Room(_))).and_then(|at| self.memory.get(at));
        room.into_iter().flatten().flat_map(|cell| cell.get().to_ne_bytes()).collect()
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
