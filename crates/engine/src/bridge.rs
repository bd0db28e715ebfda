//! Conversion of the interpreter's values to the registers of compiled code and back.
//!
//! ```text
//! Val ── store ──► bytes of the value in memory ── leaves ──► registers ── call ──► registers ── load ──► Val
//! ```
//!
//! A value's memory form (`brolga_ir::abi`) has every leaf at a fixed offset, so bytes connect the two
//! sides: registers are loaded from them and stored to them. A value passed in memory is passed as the address of its bytes.
//!
//! A call that takes or returns objects goes through the run time's own dispatch: values become objects of the heap,
//! with everything reachable from them, and the result is converted back likewise.
//!
//! Cost: linear in the size of the values. Recursion follows the nesting of types, which the type table bounds.

use std::sync::Arc;
use std::time::Duration;

use brolga_codegen::sig::Abi;
use brolga_codegen::translate::abi_of;
use brolga_interp::{Interp, Val};
use brolga_ir::abi::{Form, NativeSignature};
use brolga_ir::types::Repr;
use brolga_ir::{FuncId, Type, TypeKind, Types};
use brolga_jit::{CallError, Globals, LowArg, LowArgs, UntypedFunc};
use brolga_runtime::objects::CopyError;
use brolga_runtime::{EnterError, Runtime};

/// Why a value cannot be passed between the interpreter and compiled code.
#[derive(thiserror::Error, Debug)]
pub enum BridgeError {
    /// The value is not of the type that the function takes.
    #[error("a value of type `{given}` is given where `{wanted}` is taken")]
    Type {
        /// The signature of the function.
        wanted: String,
        /// The value's type.
        given: String,
    },
    /// The number of arguments differs.
    #[error("{given} arguments are given to a function that takes {wanted}")]
    Count {
        /// The number of parameters.
        wanted: usize,
        /// The number of arguments.
        given: usize,
    },
    /// Compiled code returned bits that are not a value of the result's type.
    #[error("the result is not a value of type `{ty}`")]
    Result { ty: String },
    /// The call returned no value.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A global variable cannot have its value.
    #[error(transparent)]
    Global(#[from] brolga_jit::GlobalError),
    /// The call of an object returned no value.
    #[error(transparent)]
    Object(#[from] brolga_runtime::ObjectCallError),
    /// A value cannot be created in the heap, or an object in the interpreter.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The thread cannot touch the heap.
    #[error(transparent)]
    Enter(#[from] EnterError),
}

/// Calls a compiled function with values of the interpreter, the function object first.
///
/// # Errors
/// The arguments do not fit the signature, the call threw, or the heap has no room for a value.
pub fn call(
    func: &UntypedFunc,
    signature: &NativeSignature,
    args: &[Val],
    interp: &mut Interp<'_>,
    runtime: &Arc<Runtime>,
) -> Result<Val, BridgeError> {
    if let (Some((callee, args)), false) = (args.split_first(), is_bits(signature)) {
        return call_object(func, callee, args, interp, runtime);
    }
    let args = LowArgs::new(low_args(signature, args, interp)?);
    let results = func.call_with(&args.words())?;
    low_result(signature, &results, args.room(), interp)
}

/// The maximum number of results kept while calls are measured.
const KEPT: u32 = 64;

/// Calls a compiled function repeatedly with the same arguments, converted once, and returns the time of the calls by a clock. A call that changes its arguments changes them
/// for the next call.
///
/// # Errors
/// As [`call`].
pub fn measure(
    func: &UntypedFunc,
    signature: &NativeSignature,
    args: &[Val],
    interp: &mut Interp<'_>,
    runtime: &Arc<Runtime>,
    calls: u32,
    clock: &dyn Fn() -> Duration,
) -> Result<Duration, BridgeError> {
    if let (Some((callee, args)), false) = (args.split_first(), is_bits(signature)) {
        return runtime.enter(|scope| {
            let callee = scope.copy_in(interp, callee)?;
            let args = args.iter().map(|arg| scope.copy_in(interp, arg)).collect::<Result<Vec<_>, _>>()?;
            let start = clock();
            let mut left = calls;
            while left > 0 {
                let some = left.min(KEPT);
                scope.frame(|scope| {
                    let callee = scope.root(callee.get(scope));
                    let args: Vec<_> = args.iter().map(|arg| scope.root(arg.get(scope))).collect();
                    (0..some)
                        .try_for_each(|_| runtime.call_in(func.methods(), scope, callee, &args).map(drop))
                })?;
                left -= some;
            }
            Ok(clock().saturating_sub(start))
        })?;
    }
    let args = LowArgs::new(low_args(signature, args, interp)?);
    let words = args.words();
    let start = clock();
    for _ in 0..calls {
        func.call_with(&words)?;
    }
    Ok(clock().saturating_sub(start))
}

/// The low arguments of a call with values, the function object first, after room for a result that is returned in memory.
pub(crate) fn low_args(
    signature: &NativeSignature,
    args: &[Val],
    interp: &Interp<'_>,
) -> Result<Vec<LowArg>, BridgeError> {
    let forms = &signature.params;
    if forms.len() != args.len() {
        return Err(BridgeError::Count { wanted: forms.len(), given: args.len() });
    }
    let bridge = Bridge { types: &interp.module().cx.types };
    let mut low = Vec::with_capacity(forms.len() + 1);
    if signature.result.is_memory() {
        low.push(LowArg::Room(signature.result.size as usize));
    }
    for (form, val) in forms.iter().zip(args) {
        let mut bytes = vec![0; form.size as usize];
        bridge.store(form.ty, val, &mut bytes)?;
        if form.is_memory() {
            low.push(LowArg::Memory(bytes));
            continue;
        }
        low.extend(form.leaves.iter().map(|leaf| {
            let bits = bits(&bytes, leaf.offset, leaf.bytes);
            match abi_of(leaf.low) {
                Abi::Ptr => LowArg::Pointer(std::ptr::with_exposed_provenance_mut(bits as usize)),
                _ => LowArg::Bits(bits),
            }
        }));
    }
    Ok(low)
}

/// The value of low results, and of the bytes in the room for a result that is returned in memory.
pub(crate) fn low_result(
    signature: &NativeSignature,
    results: &[u128],
    mut room: Vec<u8>,
    interp: &Interp<'_>,
) -> Result<Val, BridgeError> {
    let form = &signature.result;
    let bytes = match form.is_memory() {
        true => {
            room.resize(form.size as usize, 0);
            room
        }
        false => bytes_of_leaves(form, results),
    };
    Bridge { types: &interp.module().cx.types }.load(form.ty, &bytes)
}

/// Calls a function of the interpreter with the leaves of its arguments, each in a word, and replaces them by the leaves of the result. `None` if
/// the call returned no value; then the words are unchanged. The function takes and returns only bits.
pub(crate) fn interpret(
    interp: &mut Interp<'_>,
    func: FuncId,
    signature: &NativeSignature,
    words: &mut [u128],
) -> Option<()> {
    let bridge = Bridge { types: &interp.module().cx.types };
    let (mut args, mut at) = (Vec::new(), 0);
    for form in &signature.params {
        let leaves = words.get(at..at + form.leaves.len())?;
        at += leaves.len();
        args.push(bridge.load(form.ty, &bytes_of_leaves(form, leaves)).ok()?);
    }
    let (_object, args) = args.split_first()?;
    let result = interp.call(func, args).ok()?;
    let form = &signature.result;
    let mut bytes = vec![0; form.size as usize];
    bridge.store(form.ty, &result, &mut bytes).ok()?;
    let results = words.get_mut(..form.leaves.len())?;
    for (word, leaf) in results.iter_mut().zip(form.leaves.iter()) {
        *word = bits(&bytes, leaf.offset, leaf.bytes);
    }
    Some(())
}

/// Whether a function takes and returns only bits.
pub(crate) fn is_bits(signature: &NativeSignature) -> bool {
    let mut forms = signature.params.iter().chain([&signature.result]);
    forms.all(|form| form.leaves.iter().all(|leaf| abi_of(leaf.low) != Abi::Object))
}

/// Calls an object with others, using the methods of the program that a function belongs to.
fn call_object(
    func: &UntypedFunc,
    callee: &Val,
    args: &[Val],
    interp: &mut Interp<'_>,
    runtime: &Arc<Runtime>,
) -> Result<Val, BridgeError> {
    runtime.enter(|scope| {
        let callee = scope.copy_in(interp, callee)?;
        let args = args.iter().map(|arg| scope.copy_in(interp, arg)).collect::<Result<Vec<_>, _>>()?;
        let result = runtime.call_in(func.methods(), scope, callee, &args)?;
        Ok(scope.copy_out(interp, result.get(scope))?)
    })?
}

/// Sets global variables, in all threads, to the values that they have in an interpreter.
pub(crate) fn set_globals(
    globals: &Globals,
    interp: &mut Interp<'_>,
    runtime: &Arc<Runtime>,
) -> Result<(), BridgeError> {
    let names = globals.names();
    if names.is_empty() {
        return Ok(());
    }
    runtime.enter(|scope| {
        for name in names {
            let value = interp.global(interp.module().cx.names.intern(&name));
            let object = value.map(|value| scope.copy_in(interp, &value)).transpose()?;
            globals.begin(scope, &name, object.map(|root| root.get(scope)))?;
        }
        Ok(())
    })?
}

fn bits(bytes: &[u8], offset: u32, size: u32) -> u128 {
    let mut word = [0; 16];
    let (from, size) = (offset as usize, size as usize);
    word[..size].copy_from_slice(&bytes[from..from + size]);
    u128::from_le_bytes(word)
}

fn bytes_of_leaves(form: &Form, leaves: &[u128]) -> Vec<u8> {
    let mut bytes = vec![0; form.size as usize];
    for (leaf, bits) in form.leaves.iter().zip(leaves) {
        let (from, size) = (leaf.offset as usize, leaf.bytes as usize);
        bytes[from..from + size].copy_from_slice(&bits.to_le_bytes()[..size]);
    }
    bytes
}

struct Bridge<'a> {
    types: &'a Types,
}

impl Bridge<'_> {
    fn mismatch(&self, wanted: Type, val: &Val) -> BridgeError {
        let text = |ty| self.types.display(ty).to_string();
        BridgeError::Type { wanted: text(wanted), given: text(val.ty(self.types)) }
    }

    fn unknown(&self, ty: Type) -> BridgeError {
        BridgeError::Result { ty: self.types.display(ty).to_string() }
    }

    /// Writes the memory form of a value of type `ty`.
    fn store(&self, ty: Type, val: &Val, out: &mut [u8]) -> Result<(), BridgeError> {
        match self.types.repr(ty) {
            Repr::BitsUnion => {
                let given = val.ty(self.types);
                let members = self.types.members(&ty);
                let number = members.iter().position(|&member| member == given);
                let (Some(number), Some((selector, payload))) = (number, out.split_last_mut()) else {
                    return Err(self.mismatch(ty, val));
                };
                *selector = number as u8;
                self.store(given, val, payload)
            }
            _ if val.ty(self.types) != ty => Err(self.mismatch(ty, val)),
            _ => match val {
                Val::Bits { bits, .. } => {
                    let size = out.len().min(16);
                    out[..size].copy_from_slice(&bits.to_le_bytes()[..size]);
                    Ok(())
                }
                Val::Struct(data) => self.store_fields(ty, val, data.fields(), out),
                _ => Ok(()),
            },
        }
    }

    fn store_fields(
        &self,
        ty: Type,
        val: &Val,
        fields: &[Option<Val>],
        out: &mut [u8],
    ) -> Result<(), BridgeError> {
        let Ok(layout) = self.types.layout(ty) else { return Err(self.mismatch(ty, val)) };
        for (field, part) in layout.fields.iter().zip(fields) {
            let Some(part) = part else { return Err(self.mismatch(field.ty, val)) };
            let from = field.offset as usize;
            self.store(field.ty, part, &mut out[from..from + field.size as usize])?;
        }
        Ok(())
    }

    /// Reads the memory form of a value of type `ty`.
    fn load(&self, ty: Type, bytes: &[u8]) -> Result<Val, BridgeError> {
        match self.types.repr(ty) {
            Repr::BitsUnion => {
                let number = bytes.last().copied().unwrap_or(0);
                let member = self.types.members(&ty).get(usize::from(number)).copied();
                self.load(member.ok_or_else(|| self.unknown(ty))?, bytes)
            }
            Repr::Aggregate => {
                let layout = self.types.layout(ty).map_err(|_| self.unknown(ty))?;
                let mut fields = Vec::with_capacity(layout.fields.len());
                for field in &layout.fields {
                    let from = field.offset as usize;
                    fields.push(Some(self.load(field.ty, &bytes[from..from + field.size as usize])?));
                }
                Ok(Val::aggregate(ty, fields))
            }
            Repr::Ghost => Ok(self.ghost(ty)),
            _ => {
                let size = self.types.layout(ty).map_or(0, |layout| layout.size).min(16);
                Ok(Val::bits(self.types, ty, bits(bytes, 0, size)))
            }
        }
    }

    /// The single value of a type without bits.
    fn ghost(&self, ty: Type) -> Val {
        if let TypeKind::TypeOf(of) = *self.types.kind(ty) {
            return Val::Type(of);
        }
        let fields = self.types.layout(ty).map_or(&[][..], |layout| &layout.fields);
        Val::aggregate(ty, fields.iter().map(|field| Some(self.ghost(field.ty))).collect())
    }
}
