//! Plain entries: addresses by which C calls one function of a program, with arguments and result in registers.
//!
//! ```text
//!   C ──► NAME#plain ── call_plain(target, words) ──► as a typed call of Rust ──► trampoline ──► NAME
//!                            └── an error ──► `failed` of the one who made the entry: a code
//! ```
//!
//! A call attaches the thread, enters the heap and the newest world, keeps to limits that are set around it, and leaves all of this, as
//! [`TypedFunc::call`](crate::TypedFunc::call) does: the caller holds nothing but the entry. It never jumps over frames of C.
//!
//! A C entry (`c_entry.rs`) belongs to a function, and is for code that compiled code calls; a plain entry belongs to its maker.
//!
//! Cost: a typed call, and 1 to 2 ns; about 150 bytes of code for each entry.

use std::sync::Arc;

use brolga_codegen::compiled::Symbol;
use brolga_codegen::plain_entry::{PlainForm, compile_plain_entry, plain_name};
use brolga_codegen::sig::{Abi, Signature};

use crate::call::func::{CallError, Callable, UntypedFunc};
use crate::entry::c_entry::CEntryError;
use crate::entry::trampoline::EntryError;
use crate::link::linker::{Import, LinkError, LinkUnit, LoadedUnit, Resolver};

/// Stores an error, and returns its code, which is not 0.
type Failed = Box<dyn Fn(CallError) -> u32 + Send + Sync>;

/// The address by which C calls a function with arguments in registers, valid as long as this is held.
pub struct PlainEntry {
    address: usize,
    // In the order in which they are dropped: the code refers to the target.
    _unit: Arc<LoadedUnit>,
    _target: Box<Target>,
}

impl std::fmt::Debug for PlainEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PlainEntry({:#x})", self.address)
    }
}

/// The target of an entry's code.
struct Target {
    callable: Callable,
    failed: Failed,
}

impl PlainEntry {
    /// The address of the C function: of the function's types, or, for [`PlainForm::Code`], with the address for the result as one more argument and a
    /// `uint32_t` as its value.
    ///
    /// To call it is as safe as its prototype is right: arguments are values of the function's types, a `Bool` 0 or 1, and a place for the result is null or has room for it.
    #[must_use]
    pub fn address(&self) -> *const () {
        std::ptr::with_exposed_provenance(self.address)
    }
}

impl UntypedFunc {
    /// Makes a plain entry of the function. `failed` gets the error of each call that returns no value; the call returns its code, or zero as the value.
    ///
    /// # Errors
    /// C has no type for an argument or the result, or there is no memory.
    pub fn plain_entry(
        &self,
        form: PlainForm,
        failed: impl Fn(CallError) -> u32 + Send + Sync + 'static,
    ) -> Result<PlainEntry, CEntryError> {
        let (signature, name) = (self.signature(), self.name());
        if !is_of_c(signature) {
            let ty = format!("{signature:?}");
            return Err(CEntryError::Type { name: name.to_owned(), ty });
        }
        let jit = self.callable.jit();
        let compiled = compile_plain_entry(name, signature, form, jit.isa()).map_err(EntryError::from)?;
        let target = Box::new(Target { callable: self.callable.clone(), failed: Box::new(failed) });
        let resolver = References { target: std::ptr::from_ref(&*target).expose_provenance() };
        let unit = LinkUnit { functions: vec![compiled], data: Vec::new() };
        let unit = jit.link_unit(&unit, &resolver, None).map_err(EntryError::from)?;
        let lost = || EntryError::from(LinkError::Backend { reason: "lost a function".into() });
        let address = unit.function(&plain_name(name)).ok_or_else(lost)?;
        Ok(PlainEntry { address, _unit: unit, _target: target })
    }
}

/// Whether C has all types of a signature, as single values.
pub(super) fn is_of_c(signature: &Signature) -> bool {
    let is_value = |abi: &Abi| !matches!(abi, Abi::Object | Abi::F16 | Abi::I128 | Abi::V128);
    signature.params.iter().chain(&signature.results).all(is_value)
        && signature.results.len() <= 1
        && !signature.returns_through_memory()
}

/// Calls the function of an entry. 0: there is a result. A panic, which is a defect, ends the process here: a fence would cost as much as
/// entering does.
///
/// # Safety
///
/// Called by the code of a [`PlainEntry`], which holds the target: the words fit the function's signature.
unsafe extern "C" fn call_plain(target: &Target, args: *const u64, results: *mut u64) -> u64 {
    // SAFETY: F1 of `func.rs`: the code has been made for the signature of the function.
    match unsafe { target.callable.call(args, results) } {
        Ok(()) => 0,
        Err(error) => failed(target, *error),
    }
}

#[cold]
fn failed(target: &Target, error: CallError) -> u64 {
    u64::from((target.failed)(error).max(1))
}

/// The references of an entry's code.
struct References {
    target: usize,
}

impl Resolver for References {
    fn resolve(&self, symbol: &Symbol) -> Result<Import, String> {
        let call: unsafe extern "C" fn(&Target, *const u64, *mut u64) -> u64 = call_plain;
        let address = match symbol {
            Symbol::Function(_) => self.target,
            _ => (call as *const ()).expose_provenance(),
        };
        Ok(Import { address, owner: None })
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<PlainEntry>();
};
