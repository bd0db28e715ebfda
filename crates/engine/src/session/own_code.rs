//! Functions whose machine code the embedder supplies.
//!
//! ```text
//!   define_code   OwnCode ──► placed and linked to C symbols at once ──► program ── invoke mix(a, b) ──► mix, our own IR ── C call ──► the embedder's bytes
//! ```
//!
//! For programs it is an ordinary function, with a declaration and one body that calls the code by its address, like a typed host function (`host.rs`): it is redefined and removed by the same
//! rules. The bytes, the C symbols that they refer to and the owner that the embedder passes with them are freed with the body, when no thread runs it.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brolga_ir::Type;
use brolga_ir::doors::Door;
use brolga_jit::{Foreign, ObjectFile, OwnCode};

use super::deferred::Redefined;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::host;
use super::promise::Signature;
use crate::Error;

/// The name of the code for debuggers and messages.
const CODE: &str = "#code";

impl Dylib {
    /// Defines a function with machine code supplied by the embedder, for this machine and C's calling convention. Its arguments and result are numbers and addresses. `owner` is dropped when the code is
    /// freed: after the function was removed or replaced, when no thread runs it.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// # use {brolga_ir as ir, brolga_runtime::Doors};
    /// use brolga::session::{OwnCode, Signature};
    /// use brolga::{Options, Session, Workers};
    /// use ir::Type;
    ///
    /// // SAFETY: the bytes add two integers, as their signature says.
    /// let doors = unsafe { Doors::open() };
    /// let session = Session::new(Options::new().doors(doors), Workers::Caller)?;
    /// let main = session.create_dylib("main")?;
    /// # #[cfg(target_arch = "x86_64")]
    /// let code = [0x48, 0x8d, 0x04, 0x37, 0xc3]; // lea rax, [rdi + rsi]; ret
    /// # #[cfg(target_arch = "aarch64")]
    /// # let code = [0x00, 0x00, 0x01, 0x8b, 0xc0, 0x03, 0x5f, 0xd6]; // add x0, x0, x1; ret
    /// let mix = Signature::new("mix", &[Type::INT64, Type::INT64], Type::INT64);
    /// main.define_code(&mix, &OwnCode::new(code), ())?;
    /// let text = "function f(x::Int64)::Int64\n1 ─ %1 = invoke Main.mix(x::Int64, 2::Int64)::Int64\n└── return %1\nend";
    /// main.define(main.read("f.jlir", text.as_bytes())?)?;
    /// assert_eq!(main.func::<(i64,), i64>("f")?.call((40,))?, 42);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The doors are closed; C does not have a type of the signature; the code is invalid, or refers to a C symbol that the dylib does not see; as [`Dylib::define`].
    pub fn define_code(
        &self,
        signature: &Signature,
        code: &OwnCode,
        owner: impl Any + Send + Sync,
    ) -> Result<(), SessionError> {
        self.define(self.own_code(signature, code, owner)?)
    }

    /// Defines a function with the embedder's machine code and replaces the function with its name and types, as [`Dylib::redefine`].
    ///
    /// # Errors
    /// As [`Dylib::define_code`] and [`Dylib::redefine`].
    pub fn redefine_code(
        &self,
        signature: &Signature,
        code: &OwnCode,
        owner: impl Any + Send + Sync,
    ) -> Result<Redefined, SessionError> {
        self.redefine(self.own_code(signature, code, owner)?)
    }

    fn own_code(
        &self,
        signature: &Signature,
        code: &OwnCode,
        owner: impl Any + Send + Sync,
    ) -> Result<Definitions, SessionError> {
        const WHAT: &str = "`Dylib::define_code`";
        let promise = self.session.inner.doors.ok_or(Error::Closed { what: WHAT, door: Door::NativeCode })?;
        let cx = self.context();
        let is_of_c = |ty: &Type| cx.types.primitive_low(*ty).is_some() || cx.types.pointee(*ty).is_some();
        let results = (signature.result != Type::NOTHING).then_some(&signature.result);
        if let Some(&ty) = signature.params.iter().chain(results).find(|ty| !is_of_c(ty)) {
            let reason = format!("C code does not take or return a `{}`", cx.types.display(ty));
            return Err(SessionError::Host { reason });
        }
        let name = format!("{}{CODE}", signature.name);
        let object = ObjectFile::of_code(&name, code)?;
        let found = object.undefined().map(|name| Ok((name.to_owned(), self.foreign(name)?)));
        let imports = found.collect::<Result<BTreeMap<String, Foreign>, SessionError>>()?;
        let loaded = self.session.inner.shared.jit.load_object(&object, &imports, &BTreeSet::new());
        let loaded = loaded.map_err(|error| SessionError::Code(Arc::new(error)))?;
        loaded.start(promise);
        let address = loaded.symbols().find(|(symbol, _)| **symbol == *name).map(|(_, address)| address);
        let address = address.ok_or_else(|| SessionError::NotC { name: name.clone() })?;
        let built = host::code_module(&cx, signature, address, None);
        let built = built.map_err(|error| SessionError::Promise(Arc::new(error)))?;
        let mut definitions = self.build_trusted(built)?.of_session();
        definitions.kept = Some(Arc::new((loaded, owner)));
        Ok(definitions)
    }
}
