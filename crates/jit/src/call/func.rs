//! Typed calls: calling compiled functions from Rust.
//!
//! ```text
//!   let fib = unit.func::<(i64,), i64>("fib")?;      checked once, against the recorded Julia types
//!   let value = fib.call((30,))?;                    any number of times, from any thread
//! ```
//!
//! A handle holds its unit, so the code stays while it can be called; a handle to a function with a cell finds the code at
//! each call (`cell/`), which may compile it. A call attaches the running thread (once), puts the arguments into words on
//! the stack, and goes through the entry trampoline of the signature (`codegen/src/entry.rs`), which returns also when an
//! exception leaves the function. Calls nest: a C function that compiled code calls may call through a handle again.
//!
//! A call is as safe as the program: checked IR has no undefined behaviour (types that its rows assert are tested where nothing
//! proves them), and a program that uses `Ptr`, `@inbounds` or `foreigncall` has opened one of the named doors itself. Bits never become addresses at
//! typed calls: a value that is passed in memory is given as memory, of the right size, and a `Ptr` as a pointer ([`Word`]).
//!
//! **Objects.** Code that handles objects runs inside an entry of the heap, which the call makes; so does all code on a thread that
//! is registered with collections. Calls with objects as arguments or result are made inside a [`Scope`], by [`Unit::func_in`] or
//! [`UntypedFunc::call_in`]: a bare address does not keep its object alive.
//! Any other call is refused while a scope of the runtime is in use on the thread, because a collection during the call
//! would free objects that the scope's user has unrooted references to.
//!
//! A panic in a C function implemented in Rust aborts the process at its `extern "C"` boundary; it never crosses
//! compiled code.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

use brolga_codegen::entry::RETURNED;
use brolga_codegen::same_type::TypeIn;
use brolga_codegen::sig::{Abi, FunctionType, InMemory, Signature, word_offsets};
use brolga_ir::abi::{Form, FormKind, form};
use brolga_ir::diag::counted;
use brolga_runtime::heap::{ObjectError, Root, Scope, TypeRef};
use brolga_runtime::objects::MethodTable;
use brolga_runtime::{
    AttachError, Ended, EnterError, Exception, LimitError, Outermost, Runtime, Thread, with_attached,
    with_entrant,
};
use smallvec::SmallVec;

use crate::call::value::{Handle, ValueError};
use crate::cell::IndirectCell;
use crate::engine::Jit;
use crate::entry::trampoline::{Entry, EntryError};
use crate::unit::Unit;

/// Why a function cannot be had under a Rust signature.
#[derive(thiserror::Error, Debug)]
pub enum LookupError {
    /// The unit has no such function, or it is not one that can be looked up.
    #[error("no function `{name}`; there is {}", list(.available))]
    NoFunction {
        /// The requested name.
        name: String,
        /// The available names.
        available: Vec<String>,
    },
    /// Several functions have this bare name; each is found by its symbol.
    #[error("`{name}` may be any of {}", list(.methods))]
    Ambiguous {
        /// The requested name.
        name: String,
        /// The symbols of the functions.
        methods: Vec<String>,
    },
    /// The image that the unit was opened from contradicts itself, or the function cannot be read.
    #[error("`{name}` cannot be taken from the image: {reason}")]
    Image {
        /// The requested name.
        name: String,
        /// The reason.
        reason: String,
    },
    /// The number of parameters differs.
    #[error("`{name}` takes {}, not {given}", counted(*.expected, "argument"))]
    Count {
        /// The function.
        name: String,
        /// How many it takes.
        expected: usize,
        /// How many the Rust signature has.
        given: usize,
    },
    /// A parameter's type differs.
    #[error("argument {index} of `{name}` is `{julia}`, which `{rust}` does not represent")]
    Argument {
        /// The function.
        name: String,
        /// Which parameter, from 1.
        index: usize,
        /// Its type.
        julia: String,
        /// The Rust type that was given.
        rust: &'static str,
    },
    /// The result's type differs.
    #[error("the result of `{name}` is `{julia}`, which `{rust}` does not represent")]
    Result {
        /// The function.
        name: String,
        /// Its type.
        julia: String,
        /// The Rust type that was given.
        rust: &'static str,
    },
    /// A parameter or the result is passed in memory, for which there is no Rust type. The untyped call remains.
    #[error("a value of `{name}` travels in memory; no Rust type stands for that")]
    InMemory {
        /// The function.
        name: String,
    },
    /// There is no trampoline for the signature.
    #[error("cannot make an entry for `{name}`")]
    Entry {
        /// The function.
        name: String,
        /// The reason.
        source: EntryError,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { format!("`{}`", names.join("`, `")) }
}

impl From<EnterError> for CallError {
    fn from(error: EnterError) -> CallError {
        match error {
            EnterError::Attach(error) => error.into(),
            EnterError::InScope => CallError::InScope,
            EnterError::OtherRuntime => CallError::OtherRuntime,
        }
    }
}

/// Why a call returned no value. It takes two words, so that results are returned in registers.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum CallError {
    /// The function threw.
    #[error(transparent)]
    Exception(Box<Exception>),
    /// The running thread cannot run compiled code.
    #[error(transparent)]
    Attach(Box<AttachError>),
    /// The result has no counterpart in Rust.
    #[error(transparent)]
    Value(Box<ValueError>),
    /// An untyped call with another number of arguments than the function takes.
    #[error("the function takes {expected} low arguments, not {given}")]
    Count {
        /// How many it takes.
        expected: u32,
        /// How many were given.
        given: u32,
    },
    /// A limit of the call was reached.
    #[error(transparent)]
    Ended(Ended),
    /// The system provides no thread to watch deadlines.
    #[error("there is no thread for deadlines")]
    NoWatch,
    /// The limit is fuel, and no program of the run time has prices.
    #[error("nothing takes fuel: programs get prices by `Options::fuel`")]
    NoPrices,
    /// The system provides no thread for a guest.
    #[error("there is no thread for a guest")]
    NoThread,
    /// A scope of the runtime is in use on this thread. Call inside it, or lend it ([`Scope::call_out`]).
    #[error("this thread is inside a scope of the same runtime; call inside the scope")]
    InScope,
    /// The scope's objects belong to another runtime than the function.
    #[error("the scope belongs to another runtime than the function")]
    OtherRuntime,
    /// An object is not of the type that the function takes.
    #[error(transparent)]
    Argument(Box<WrongArgument>),
    /// Bits that are not a value of the type that the function takes: a `Bool` is 0 or 1, and a selector names a member of
    /// its union.
    #[error(transparent)]
    NoValue(Box<NoValue>),
    /// An argument could not be made in the heap.
    #[error(transparent)]
    Object(Box<ObjectError>),
    /// Bits, or memory for another value, where an address is passed.
    #[error("low argument {index} is an address, which is given as {}", given_as(.bytes))]
    Address {
        /// Which of the low arguments, from 0.
        index: u32,
        /// The required number of bytes, if it is the address of a value in memory.
        bytes: Option<u32>,
    },
    /// The function takes an address that only compiled code can make.
    #[error("low argument {index} is an address of objects, which only compiled code has")]
    Closed {
        /// Which of the low arguments, from 0.
        index: u32,
    },
    /// An object is given where bits are passed, or bits where an object is; or the call was not made in a scope.
    #[error("low value {index} is {}", if *.object { "an object, which is passed inside a scope" } else { "no object" })]
    Word {
        /// Which of the low arguments, or which of the results after them, from 0.
        index: u32,
        /// Whether the function has an object there.
        object: bool,
    },
}

const _: () = assert!(size_of::<CallError>() == 16 && size_of::<Result<i64, CallError>>() == 16);

/// An object that is not of the type that the function takes.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("low argument {index} is a `{got}`, and the function takes a `{expected}`")]
pub struct WrongArgument {
    /// Which of the low arguments, from 0.
    pub index: usize,
    /// The type that the function takes.
    pub expected: String,
    /// The type of the object.
    pub got: String,
}

/// Bits that are not a value of the type that the function takes.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("the bits passed as argument {index} are not a value of type `{ty}`")]
pub struct NoValue {
    /// Which of the arguments as the program has them, from 1.
    pub index: usize,
    /// Its type.
    pub ty: String,
}

impl From<LimitError> for CallError {
    #[cold]
    fn from(error: LimitError) -> CallError {
        match error {
            LimitError::Ended(ended) => CallError::Ended(ended),
            LimitError::Attach(error) => error.into(),
            LimitError::NoWatch => CallError::NoWatch,
            LimitError::NoPrices => CallError::NoPrices,
        }
    }
}

impl CallError {
    #[cold]
    pub(crate) fn count(expected: usize, given: usize) -> CallError {
        CallError::Count { expected: small(expected), given: small(given) }
    }

    #[cold]
    pub(crate) fn word(index: usize, object: bool) -> CallError {
        CallError::Word { index: small(index), object }
    }
}

/// A number of arguments, which fits for every function.
fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

macro_rules! boxed {
    ($($from:ty => $variant:ident),*) => {$(
        impl From<$from> for CallError {
            #[cold]
            fn from(error: $from) -> CallError {
                CallError::$variant(Box::new(error))
            }
        }
    )*};
}

boxed!(
    Exception => Exception, AttachError => Attach, ValueError => Value, WrongArgument => Argument, NoValue => NoValue, ObjectError => Object
);

fn given_as(bytes: &Option<u32>) -> String {
    bytes.map_or_else(
        || "a pointer".to_owned(),
        |bytes| format!("memory of {bytes} bytes that holds no objects"),
    )
}

/// The name of an undefined reference in messages.
const UNDEFINED: &str = "#undef";

/// A low value at typed calls.
#[derive(Clone, Copy, Debug)]
pub enum Word<'f, 'h> {
    /// The bits of a value that is not an object, and as an argument not an address, in the low end.
    Bits(u128),
    /// A `Ptr`, as an argument. The program is responsible for its accesses through it.
    Pointer(*mut ()),
    /// The bytes of a value that is passed in memory, or memory for the result's bytes, as an argument.
    Memory(&'f [Cell<u128>]),
    /// An object; `None` is an undefined reference.
    Object(Option<Root<'f, 'h>>),
}

/// The kind of an address that a function takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Address {
    /// A `Ptr`.
    Pointer,
    /// The address of this many bytes without objects.
    Memory(u32),
    /// An address that only compiled code can make.
    Closed,
}

/// A compiled function and its entry.
#[derive(Clone)]
pub(crate) struct Callable {
    entry: Arc<Entry>,
    to: Callee,
    /// The callee's runtime, cached for calls.
    runtime: Arc<Runtime>,
    /// The table that its dynamic calls search; `None` for code without such calls.
    methods: Option<MethodTable>,
    /// Objects that stay as long as the function.
    kept: Option<Kept>,
}

impl std::fmt::Debug for Callable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Callable").field(&self.to).finish()
    }
}

/// An opaque value that is kept.
type Kept = Arc<dyn Any + Send + Sync>;

/// The callee.
#[derive(Clone, Debug)]
enum Callee {
    /// Code at an address in a unit.
    Code(Unit, usize),
    /// The current code of a cell.
    Cell(IndirectCell),
}

impl Callee {
    fn jit(&self) -> &Jit {
        match self {
            Callee::Code(unit, _) => unit.jit(),
            Callee::Cell(cell) => cell.jit(),
        }
    }

    /// Whether the code may handle objects.
    fn needs_heap(&self) -> bool {
        match self {
            Callee::Code(unit, _) => unit.needs_heap(),
            Callee::Cell(_) => true,
        }
    }

    /// The table that dynamic calls in the code search. The function of a cell may change, and so sees the methods that all
    /// programs see.
    fn methods(&self) -> &MethodTable {
        match self {
            Callee::Code(unit, _) => unit.methods(),
            Callee::Cell(cell) => cell.jit().runtime().methods(),
        }
    }

    #[inline(always)]
    fn code(&self) -> usize {
        match self {
            Callee::Code(_, address) => *address,
            Callee::Cell(cell) => cell.code(),
        }
    }
}

/// The trampoline's type.
pub(crate) type EntryFn = unsafe extern "C" fn(*const Thread, usize, *const u64, *mut u64) -> i32;

impl Callable {
    pub(crate) fn new(unit: &Unit, name: &str) -> Result<(Callable, Arc<FunctionType>), LookupError> {
        let unread = |reason| LookupError::Image { name: name.into(), reason };
        let found = match unit.ty(name).map_err(unread)? {
            Some(ty) => unit.loaded().find(&ty.symbol).map_err(unread)?.map(|code| (code, ty)),
            None => None,
        };
        let Some((code, ty)) = found else {
            let available: Vec<String> = unit.names().map(str::to_owned).collect();
            let is_method =
                |symbol: &&String| symbol.strip_prefix(name).is_some_and(|rest| rest.starts_with('('));
            let methods: Vec<String> = available.iter().filter(is_method).cloned().collect();
            return Err(match methods.len() {
                0 => LookupError::NoFunction { name: name.into(), available },
                _ => LookupError::Ambiguous { name: name.into(), methods },
            });
        };
        Ok((Callable::to(Callee::Code(unit.clone(), code), &ty)?, ty))
    }

    fn to(to: Callee, ty: &FunctionType) -> Result<Callable, LookupError> {
        let own = match &to {
            Callee::Code(unit, _) => unit.entry(&ty.signature),
            Callee::Cell(_) => None,
        };
        let entry = own.map_or_else(|| to.jit().entry(&ty.signature), Ok);
        let entry = entry.map_err(|source| LookupError::Entry { name: ty.name.clone(), source })?;
        let (runtime, methods) = (to.jit().runtime().clone(), to.needs_heap().then(|| to.methods().clone()));
        Ok(Callable { entry, to, runtime, methods, kept: None })
    }

    /// The function of a cell.
    pub(super) fn of_cell(cell: &IndirectCell) -> Result<Callable, LookupError> {
        Callable::to(Callee::Cell(cell.clone()), cell.ty())
    }

    /// Holds a value as long as the code, replacing the one held before.
    pub(super) fn keep(&mut self, kept: Arc<dyn Any + Send + Sync>) {
        self.kept = Some(kept);
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    pub(crate) fn jit(&self) -> &Jit {
        self.to.jit()
    }

    /// The table that its dynamic calls search; `None` for code without such calls.
    pub(crate) fn methods(&self) -> Option<&MethodTable> {
        self.methods.as_ref()
    }

    /// The current address of the code.
    #[inline]
    pub(crate) fn code(&self) -> usize {
        self.to.code()
    }

    /// The address of its word, if there is one.
    pub(crate) fn word(&self) -> Option<usize> {
        match &self.to {
            Callee::Code(..) => None,
            Callee::Cell(cell) => Some(cell.word()),
        }
    }

    /// The trampoline, as long as this is held.
    #[inline]
    pub(crate) fn trampoline(&self) -> EntryFn {
        // SAFETY: the address is a trampoline's (`Entry`), which has this type by `codegen::entry`.
        unsafe { std::mem::transmute(std::ptr::with_exposed_provenance::<()>(self.entry.address)) }
    }

    /// Calls the function. The result is one register, and callers are inlined: returning a value through memory would cost
    /// as much as the call.
    ///
    /// # Safety
    ///
    /// F1: `args` has as many readable words as the parameters take, and `results` as many writable ones as the results
    /// take, by the signature that the trampoline was made for.
    #[inline(never)]
    pub(crate) unsafe fn call(&self, args: *const u64, results: *mut u64) -> Result<(), Box<CallError>> {
        let Some(methods) = &self.methods else {
            // SAFETY: by the contract.
            return unsafe { self.call_without_methods(args, results) };
        };
        let called = with_entrant(&self.runtime, |entrant| {
            // SAFETY: F1 by the contract; the entry is one of the running thread.
            entrant
                .enter_with_methods(methods)
                .map(|entry| unsafe { self.call_entered(entry, args, results) })
        });
        // SAFETY: by the contract.
        called.flatten().unwrap_or_else(|| unsafe { self.call_nested(args, results) })
    }

    /// As [`Callable::call`], for code without objects: a separate function, so that neither needs the test.
    ///
    /// # Safety
    ///
    /// F1.
    #[inline(never)]
    unsafe fn call_without_methods(&self, args: *const u64, results: *mut u64) -> Result<(), Box<CallError>> {
        let called = with_entrant(&self.runtime, |entrant| {
            // SAFETY: F1 by the contract; the entry is one of the running thread.
            entrant.enter_without_methods().map(|entry| unsafe { self.call_entered(entry, args, results) })
        });
        // SAFETY: by the contract.
        called.flatten().unwrap_or_else(|| unsafe { self.call_nested(args, results) })
    }

    /// Calls the function on a thread that has entered.
    ///
    /// # Safety
    ///
    /// F1, and the entry is one of the running thread, of the function's runtime.
    #[inline(always)]
    unsafe fn call_entered(
        &self,
        entry: Outermost<'_>,
        args: *const u64,
        results: *mut u64,
    ) -> Result<(), Box<CallError>> {
        // SAFETY: `self.entry` holds the trampoline. The callee is code that `self.to` holds, and has the trampoline's signature by L2
        // (`Jit::load`), or by W1 (`cell/place.rs`). The thread is the running one, and stays while the entry lives. The
        // buffers satisfy F1. The trampoline returns on both exits.
        let status = unsafe { self.trampoline()(entry.thread(), self.to.code(), args, results) };
        // An exception from a C callback that is still pending leaves here as well.
        if status != RETURNED || entry.carries() {
            return Err(Box::new(entry.leave_with_exception().into()));
        }
        entry.leave();
        Ok(())
    }

    /// Calls the function on any thread, such as one that is not at rest.
    ///
    /// # Safety
    ///
    /// F1.
    #[cold]
    #[inline(never)]
    unsafe fn call_nested(&self, args: *const u64, results: *mut u64) -> Result<(), Box<CallError>> {
        // SAFETY: F1 by the contract; the thread is the running one.
        let call = |thread: &Thread| unsafe { self.call_by_guards(thread, args, results) };
        let called = with_attached(&self.runtime, call).unwrap_or_else(|error| Err(error.into()));
        called.map_err(Box::new)
    }

    /// Calls the function on a thread that was attached, and restores all that it has entered.
    ///
    /// # Safety
    ///
    /// F1, and the thread is the running one, of the function's runtime.
    unsafe fn call_by_guards(
        &self,
        thread: &Thread,
        args: *const u64,
        results: *mut u64,
    ) -> Result<(), CallError> {
        if thread.in_scope() {
            return Err(CallError::InScope);
        }
        // Collections read the words of threads that have been in the heap, and compiled code writes them.
        let enters = self.methods.is_some() || thread.is_known_to_heap();
        let _entry = enters.then(|| thread.enter_heap(&self.runtime)).transpose()?;
        let entered = thread.enter();
        if let Some(ended) = entered.refused() {
            return Err(ended.into());
        }
        let _world = self.methods.as_ref().map(|methods| thread.enter_world(methods));
        // SAFETY: as in `call_entered`.
        let status = unsafe { self.trampoline()(thread, self.to.code(), args, results) };
        if status != RETURNED || entered.carries() {
            return Err(entered.take_exception().into());
        }
        Ok(())
    }
}

/// A compiled function called with the bits of low values. The layer above checks the types.
#[derive(Clone, Debug)]
pub struct UntypedFunc {
    pub(crate) callable: Callable,
    /// The function's name, for messages and for code that calls it.
    name: Arc<str>,
    signature: Signature,
    /// The referents of the low arguments that are objects, as far as they are known.
    objects: Arc<[Option<Known>]>,
    /// The low arguments that are addresses.
    addresses: Arc<[Address]>,
    /// The arguments of which not all bits are values.
    picky: Arc<[Picky]>,
}

/// The referent of a low argument.
#[derive(Clone, Debug)]
struct Known {
    ty: TypeRef,
    /// Whether it may refer to nothing.
    is_optional: bool,
}

impl UntypedFunc {
    fn new(callable: Callable, jit: &Jit, name: &str, ty: &FunctionType) -> Result<UntypedFunc, LookupError> {
        let objects = objects(jit, name, ty)?.into();
        let (addresses, picky) = (addresses(ty).into(), picky(ty).into());
        let name = ty.symbol.as_str().into();
        Ok(UntypedFunc { callable, name, signature: ty.signature.clone(), objects, addresses, picky })
    }

    /// The same function; it and its clones also hold a value as long as the code.
    #[must_use]
    pub fn keeping(mut self, kept: Arc<dyn Any + Send + Sync>) -> UntypedFunc {
        self.callable.kept = Some(kept);
        self
    }

    /// The type of a low argument that is an object, if it is known.
    pub(crate) fn object_type(&self, index: usize) -> Option<&TypeRef> {
        self.objects.get(index)?.as_ref().map(|known| &known.ty)
    }

    /// The function's symbol.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The native signature: the parameters and results of `call`, one low value for each entry.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The table that the function's dynamic calls search.
    pub fn methods(&self) -> &MethodTable {
        self.callable.to.methods()
    }

    /// Calls the function, which neither takes nor returns objects, nor takes addresses. Each argument is the bits of one
    /// low value, in its low end; each result likewise, with zeros above.
    pub fn call(&self, args: &[u128]) -> Result<Vec<u128>, CallError> {
        self.check(args.len())?;
        if let Some(index) = self.signature.params.iter().position(|abi| *abi == Abi::Ptr) {
            return Err(self.no_address(index));
        }
        self.call_bits(args)
    }

    /// Calls the function, which neither takes nor returns objects. The results are bits, as for [`UntypedFunc::call`].
    pub fn call_with(&self, args: &[Word<'_, '_>]) -> Result<Vec<u128>, CallError> {
        self.check(args.len())?;
        let mut bits = Vec::with_capacity(args.len());
        for (index, (word, abi)) in args.iter().zip(&self.signature.params).enumerate() {
            bits.push(match *word {
                _ if *abi == Abi::Ptr => self.address(index, word)?,
                Word::Bits(bits) => bits,
                _ => return Err(CallError::word(index, false)),
            });
        }
        self.call_bits(&bits)
    }

    /// The address that an argument is.
    fn address(&self, index: usize, word: &Word<'_, '_>) -> Result<u128, CallError> {
        match (word, self.addresses.get(index)) {
            (Word::Pointer(pointer), Some(Address::Pointer)) => Ok(pointer.expose_provenance() as u128),
            (Word::Memory(memory), Some(Address::Memory(bytes)))
                if size_of_val(*memory) >= *bytes as usize =>
            {
                if let Some(picky) = self.picky.iter().find(|picky| picky.leaves.start == index) {
                    picky.check_bytes(
                        &memory.iter().flat_map(|word| word.get().to_ne_bytes()).collect::<Vec<_>>(),
                    )?;
                }
                Ok(memory.as_ptr().expose_provenance() as u128)
            }
            _ => Err(self.no_address(index)),
        }
    }

    /// Refuses functions with objects, and a wrong number of arguments.
    fn check(&self, given: usize) -> Result<(), CallError> {
        let Signature { params, results } = &self.signature;
        if let Some(index) = params.iter().chain(results).position(|abi| *abi == Abi::Object) {
            return Err(CallError::word(index, true));
        }
        match params.len() == given {
            true => Ok(()),
            false => Err(CallError::count(params.len(), given)),
        }
    }

    fn no_address(&self, index: usize) -> CallError {
        match self.addresses.get(index) {
            Some(Address::Memory(bytes)) => CallError::Address { index: small(index), bytes: Some(*bytes) },
            Some(Address::Pointer) => CallError::Address { index: small(index), bytes: None },
            Some(Address::Closed) | None => CallError::Closed { index: small(index) },
        }
    }

    /// Calls the function inside a scope. The objects that it returns are kept by the scope's frame.
    pub fn call_in<'f, 'h>(
        &self,
        scope: &mut Scope<'f, 'h>,
        args: &[Word<'_, 'h>],
    ) -> Result<Vec<Word<'f, 'h>>, CallError> {
        if !std::ptr::eq(scope.heap(), self.callable.runtime.heap()) {
            return Err(CallError::OtherRuntime);
        }
        let Signature { params, results } = &self.signature;
        if args.len() != params.len() {
            return Err(CallError::count(params.len(), args.len()));
        }
        let mut bits = Vec::with_capacity(args.len());
        for (index, (word, abi)) in args.iter().zip(params).enumerate() {
            bits.push(match *word {
                _ if *abi == Abi::Ptr => self.address(index, word)?,
                Word::Bits(bits) if *abi != Abi::Object => bits,
                Word::Object(None) if *abi == Abi::Object => match self.objects.get(index) {
                    Some(Some(known)) if !known.is_optional => {
                        let (expected, got) = (known.ty.name().to_owned(), UNDEFINED.to_owned());
                        return Err(WrongArgument { index, expected, got }.into());
                    }
                    _ => 0,
                },
                // The roots keep the objects, which do not move.
                Word::Object(Some(root)) if *abi == Abi::Object => {
                    let object = root.get(scope);
                    if let Some(Some(Known { ty, .. })) = self.objects.get(index)
                        && !scope.is_a(object, ty)
                    {
                        let (expected, got) = (ty.name().to_owned(), object.desc().name().to_owned());
                        return Err(WrongArgument { index, expected, got }.into());
                    }
                    object.address() as u128
                }
                _ => return Err(CallError::word(index, *abi == Abi::Object)),
            });
        }
        let given = scope.call_out(|| self.call_bits(&bits))?;
        let word = |(bits, abi): (u128, &Abi)| match abi {
            Abi::Object => {
                let address = std::ptr::with_exposed_provenance_mut(bits as usize);
                // SAFETY: compiled code has just returned the address of an object of the scope's heap, which is the
                // function's by the comparison above, or null; no safepoint of this thread is between.
                Word::Object(NonNull::new(address).map(|address| unsafe { scope.adopt(address) }))
            }
            _ => Word::Bits(bits),
        };
        Ok(given.into_iter().zip(results).map(word).collect())
    }

    fn call_bits(&self, args: &[u128]) -> Result<Vec<u128>, CallError> {
        let Signature { params, results } = &self.signature;
        if args.len() != params.len() {
            return Err(CallError::count(params.len(), args.len()));
        }
        self.picky.iter().try_for_each(|picky| picky.check(args))?;
        let mut words = Words::new();
        for (abi, bits) in params.iter().zip(args) {
            words.extend([*bits as u64, (bits >> 64) as u64].into_iter().take(abi.words()));
        }
        let mut given = Words::from_elem(0, self.signature.result_words());
        // SAFETY: F1: both have the length for the trampoline's signature.
        unsafe { self.callable.call(words.as_ptr(), given.as_mut_ptr()) }.map_err(|error| *error)?;
        let read = |(abi, offset): (Abi, i32)| {
            let at = offset as usize / 8;
            let high = if abi.words() == 2 { u128::from(given[at + 1]) << 64 } else { 0 };
            (high | u128::from(given[at])) & (u128::MAX >> (128 - abi.bits()))
        };
        let mut bits = Vec::with_capacity(results.len());
        bits.extend(word_offsets(results).map(read));
        Ok(bits)
    }
}

/// The words of arguments or results: on the stack if they are few.
type Words = SmallVec<[u64; 8]>;

impl Unit {
    /// The function of that name, to be called with bits.
    pub fn untyped(&self, name: &str) -> Result<UntypedFunc, LookupError> {
        let (callable, ty) = Callable::new(self, name)?;
        UntypedFunc::new(callable, self.jit(), name, &ty)
    }
}

impl IndirectCell {
    /// The function, to be called with bits.
    pub fn untyped(&self) -> Result<UntypedFunc, LookupError> {
        UntypedFunc::new(Callable::of_cell(self)?, self.jit(), self.name(), self.ty())
    }
}

/// An argument of a type that has fewer values than its bits.
#[derive(Debug)]
struct Picky {
    /// Its number among the program's arguments, from 1.
    index: usize,
    ty: TypeIn,
    form: Form,
    /// Its low arguments.
    leaves: Range<usize>,
}

impl Picky {
    /// Whether the low arguments are a value. A value in memory is checked where its memory is given.
    fn check(&self, args: &[u128]) -> Result<(), CallError> {
        if self.form.kind == FormKind::Memory {
            return Ok(());
        }
        let mut bytes = vec![0; self.form.size as usize];
        for (leaf, bits) in self.form.leaves.iter().zip(args.get(self.leaves.clone()).unwrap_or_default()) {
            let (start, count) = (leaf.offset as usize, (leaf.bytes as usize).min(16));
            if let Some(place) = bytes.get_mut(start..start + count) {
                place.copy_from_slice(&bits.to_le_bytes()[..count]);
            }
        }
        self.check_bytes(&bytes)
    }

    fn check_bytes(&self, bytes: &[u8]) -> Result<(), CallError> {
        let types = &self.ty.cx.types;
        let size = (self.form.size as usize).min(bytes.len());
        match types.holds(self.ty.ty, &bytes[..size]) {
            true => Ok(()),
            false => {
                let ty = types.display(self.ty.ty).to_string();
                Err(NoValue { index: self.index, ty }.into())
            }
        }
    }
}

/// The arguments of a function of which not all bits are values.
fn picky(ty: &FunctionType) -> Vec<Picky> {
    let leaves: usize = ty.params.iter().map(|param| param.leaves.len()).sum();
    let Some(mut first) = ty.signature.params.len().checked_sub(leaves) else { return Vec::new() };
    let mut found = Vec::new();
    for (at, param) in ty.params.iter().enumerate() {
        let leaves = first..first + param.leaves.len();
        first = leaves.end;
        let Some(of) = &param.ty else { continue };
        let Ok(form) = form(&of.cx.types, of.ty) else { continue };
        // All ones are a value of every other type.
        if !leaves.is_empty() && !of.cx.types.holds(of.ty, &vec![0xff; form.size as usize]) {
            found.push(Picky { index: at + 1, ty: of.clone(), form, leaves });
        }
    }
    found
}

/// The low arguments of a function that are addresses.
fn addresses(ty: &FunctionType) -> Vec<Address> {
    let in_memory = |memory: InMemory| match memory.has_objects {
        true => Address::Closed,
        false => Address::Memory(memory.bytes),
    };
    let leaves: usize = ty.params.iter().map(|param| param.leaves.len()).sum();
    let result = ty.result.memory.filter(|_| ty.signature.params.len() == leaves + 1);
    if ty.signature.params.len() != leaves + usize::from(result.is_some()) {
        return vec![Address::Closed; ty.signature.params.len()];
    }
    let of_params = ty.params.iter().flat_map(|param| {
        let address = param.memory.map_or(Address::Pointer, in_memory);
        param.leaves.iter().map(move |_| address)
    });
    result.map(in_memory).into_iter().chain(of_params).collect()
}

/// The referents of the low arguments of a function that are objects.
fn objects(jit: &Jit, name: &str, ty: &FunctionType) -> Result<Vec<Option<Known>>, LookupError> {
    let leaves: usize = ty.params.iter().map(|param| param.leaves.len()).sum();
    // The address for a result in memory may come first.
    let Some(hidden) = ty.signature.params.len().checked_sub(leaves) else { return Ok(Vec::new()) };
    let mut objects = vec![None; hidden];
    for (at, param) in ty.params.iter().enumerate() {
        for object in &param.objects {
            let known = object.as_ref().map(|object| {
                let made = jit.runtime().heap().type_object(&object.cx, object.ty);
                let known = made.map(|ty| Known { ty, is_optional: object.is_optional });
                known.map_err(|_| LookupError::Argument {
                    name: name.into(),
                    index: at + 1,
                    julia: param.name.clone(),
                    rust: std::any::type_name::<Handle>(),
                })
            });
            objects.push(known.transpose()?);
        }
    }
    Ok(objects)
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<Unit>();
    shared_between_threads::<UntypedFunc>();
};
