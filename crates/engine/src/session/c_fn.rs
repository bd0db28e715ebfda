//! Host functions of C: functions at an address that programs call with arguments in registers.
//!
//! ```text
//!   define_c_fn   program ── invoke price(id) ──► price(Int64), our own IR ── C call, data first ──► double price(void *data, int64_t id)
//!                                                       └── of one that may fail: struct { double value; void *error; }, and an error is thrown
//! ```
//!
//! For programs it is an ordinary, declared function (`host.rs`): it is redefined and removed by the same rules. The owner of the data is dropped
//! with the body, when no thread runs it.
//!
//! Cost of a call: a C call, and a call that is not inlined.

use std::any::Any;
use std::sync::Arc;

use brolga_ir::Type;
use brolga_runtime::objects::MethodEntry;
use brolga_runtime::{Doors, HostFunction};

use super::deferred::Redefined;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::host;
use super::promise::Signature;

/// Makes the message of the exception from the error that a C function has returned.
type Message = Arc<dyn Fn(*mut ()) -> String + Send + Sync>;

/// A function of C, and the data that it gets as its first argument.
pub struct CFn {
    address: usize,
    data: usize,
    message: Option<Message>,
    by_words: bool,
    owner: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for CFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CFn({:#x})", self.address)
    }
}

impl CFn {
    /// The C function at an address. It gets `data` and the arguments, and returns the result. `owner` keeps function and data.
    #[must_use]
    pub fn new(address: *const (), data: *mut (), owner: impl Any + Send + Sync) -> CFn {
        let (address, data) = (address.expose_provenance(), data.expose_provenance());
        CFn { address, data, message: None, by_words: false, owner: Arc::new(owner) }
    }

    /// The function may fail and has one type for all signatures with the same number of arguments: it gets its data and, if there are arguments, one struct by value with a 64-bit word
    /// for each: the number in the low bytes, zeros above. It returns a C struct of the result's word and the pointer of [`CFn::failing`].
    #[must_use]
    pub fn by_words(self, message: impl Fn(*mut ()) -> String + Send + Sync + 'static) -> CFn {
        CFn { by_words: true, ..self.failing(message) }
    }

    /// The function may fail: it returns a C struct of the result and a pointer, which is null if there is a result, or, if the result is `Nothing`, the pointer alone.
    /// `message` takes another pointer and returns the text of the `ErrorException` that the program sees.
    #[must_use]
    pub fn failing(mut self, message: impl Fn(*mut ()) -> String + Send + Sync + 'static) -> CFn {
        self.message = Some(Arc::new(message));
        self
    }
}

impl Dylib {
    /// Defines a function of C for programs, by its address. Its arguments and result are numbers and addresses, which are passed in registers; programs that call it need
    /// no door. The caller answers for the function: the doors are its promise that it has this signature, may be called on any thread, and does not unwind.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// # use {brolga_ir as ir, brolga_runtime::Doors};
    /// use brolga::session::{CFn, Signature};
    /// use brolga::{Options, Session, Workers};
    /// use ir::Type;
    /// extern "C" fn add(base: *const i64, n: i64) -> i64 {
    ///     // SAFETY: the data of `add` is the address of `BASE`.
    ///     n + unsafe { *base }
    /// }
    /// static BASE: i64 = 40;
    ///
    /// // SAFETY: `add` has the signature below, after its data.
    /// let doors = unsafe { Doors::open() };
    /// let session = Session::new(Options::new(), Workers::Caller)?;
    /// let main = session.create_dylib("main")?;
    /// let add = CFn::new(add as *const (), (&raw const BASE).cast_mut().cast(), ());
    /// main.define_c_fn(doors, &Signature::new("add", &[Type::INT64], Type::INT64), add)?;
    /// let text = "function f(x::Int64)::Int64\n1 ─ %1 = invoke Main.add(x::Int64)::Int64\n└── return %1\nend";
    /// main.define(main.read("f.jlir", text.as_bytes())?)?;
    /// assert_eq!(main.func::<(i64,), i64>("f")?.call((2,))?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A type of the signature is not one of C; as [`Dylib::define`].
    pub fn define_c_fn(
        &self,
        doors: Doors,
        signature: &Signature,
        function: CFn,
    ) -> Result<(), SessionError> {
        self.define(self.c_fn(doors, signature, function)?)
    }

    /// Defines a function of C and replaces the function with its name and types, as [`Dylib::redefine`].
    ///
    /// # Errors
    /// As [`Dylib::define_c_fn`] and [`Dylib::redefine`].
    pub fn redefine_c_fn(
        &self,
        doors: Doors,
        signature: &Signature,
        function: CFn,
    ) -> Result<Redefined, SessionError> {
        self.redefine(self.c_fn(doors, signature, function)?)
    }

    fn c_fn(
        &self,
        _promise: Doors,
        signature: &Signature,
        function: CFn,
    ) -> Result<Definitions, SessionError> {
        let cx = self.context();
        let bits = |ty: Type| cx.types.primitive(ty).map(|(bits, _)| bits);
        let is_of_c = |ty: &Type| bits(*ty).is_some_and(|bits| bits <= 64) || cx.types.pointee(*ty).is_some();
        let results = (signature.result != Type::NOTHING).then_some(&signature.result);
        if let Some(&ty) = signature.params.iter().chain(results).find(|ty| !is_of_c(ty)) {
            let reason = format!("a function of C does not take or return a `{}`", cx.types.display(ty));
            return Err(SessionError::Host { reason });
        }
        let CFn { address, data, message, by_words, owner } = function;
        let Some(message) = message else {
            let built = host::code_module(&cx, signature, address, Some(data));
            let built = built.map_err(|error| SessionError::Promise(Arc::new(error)))?;
            let mut definitions = self.build_trusted(built)?.of_session();
            definitions.kept = Some(owner);
            return Ok(definitions);
        };
        let method = MethodEntry::host(move |scope, args| {
            let error = args.get(1).and_then(|error| error.get(scope).unboxed::<u64>().ok()).unwrap_or(0);
            Err(scope.throw_error(&message(std::ptr::with_exposed_provenance_mut(error as usize))))
        });
        let (params, result) = (signature.params.clone(), signature.result);
        let host = HostFunction { params, result, is_direct: true, address, state: data, method, owner };
        self.host_function(
            &signature.name,
            host,
            if by_words { host::words_module } else { host::typed_module },
        )
    }
}
