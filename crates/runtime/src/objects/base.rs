//! The functions of Base without a body ([`BaseFn`]) and the entry points of Julia's run time that work on objects.

use brolga_ir::base_fn::{BaseAction, BaseFn};
use brolga_ir::show::MAX_TEXT;
use brolga_ir::types::Type;

use crate::heap::{ObjectKind, Root, STRING_BYTES, address_of};
use crate::pending::ExceptionKind;

use super::call::{Done, Ops};
use super::place::{At, Row};
use super::show::{print_object, show_object};
use super::throw::Raised;

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// A function of the table; `all` starts with the function object.
    pub(crate) fn base_fn(&mut self, function: BaseFn, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let args = &all[1..];
        if !function.arity().allows(args.len()) {
            return Err(self.scope.raise_method_error(all[0], args));
        }
        match function.action() {
            BaseAction::Rethrow => match args.first() {
                Some(&exception) => Err(self.scope.throw(exception.get(self.scope))),
                None => {
                    self.thread.rethrow();
                    Err(Raised::pending(self.scope))
                }
            },
            BaseAction::Print { .. } if args.first().is_some_and(|&io| self.is_io(io)) => {
                Err(self.scope.raise_method_error(all[0], args))
            }
            BaseAction::Print { newline } => {
                let runtime = self.runtime;
                let mut bytes = self.text(args)?;
                bytes.extend(newline.then_some(b'\n'));
                // The embedder's writer may wait for a thread that allocates.
                self.scope.blocking(|| runtime.sink().write(&bytes));
                self.scope.nothing()
            }
            BaseAction::Text | BaseAction::Shown if args.iter().any(|&arg| self.has_own_text(arg)) => {
                Err(self.scope.raise_method_error(all[0], args))
            }
            BaseAction::Text => {
                let bytes = self.text(args)?;
                self.scope.string(&bytes).map_err(|error| self.scope.raise(&error))
            }
            BaseAction::Shown => {
                let bytes = show_object(self.runtime.heap(), Some(&self.is_ending()), self.object(args[0]));
                self.scope.string(bytes.as_bytes()).map_err(|error| self.scope.raise(&error))
            }
            BaseAction::Throw(_) => {
                Err(self.base_exception(function, ExceptionKind::of_base(function), args))
            }
        }
    }

    /// Whether a limited call of the thread has ended.
    fn is_ending(&self) -> impl Fn() -> bool + '_ {
        || self.thread.is_ending()
    }

    /// Whether an object is a stream to print to.
    fn is_io(&self, root: Root<'f, 'h>) -> bool {
        let object = self.object(root);
        let cx = object.desc().context();
        let io = cx.types.find_decl(cx.names.intern("IO")).and_then(|io| cx.types.nominal(io, &[]).ok());
        io.is_some_and(|io| self.runtime.heap().is_of(object, cx, io))
    }

    /// Whether the program may define the text of an object.
    fn has_own_text(&self, root: Root<'f, 'h>) -> bool {
        let desc = self.object(root).desc();
        desc.ty().is_some_and(|ty| desc.context().types.has_own_text(ty))
    }

    /// The concatenated output of `print` for the objects. The text counts towards the heap's limit while it
    /// grows.
    fn text(&mut self, args: &[Root<'f, 'h>]) -> Result<Vec<u8>, Raised> {
        let mut text = Vec::new();
        for &root in args {
            let length = self.object(root).string().unwrap_or_default().len();
            self.scope.make_room(&mut text, length)?;
            let piece = print_object(self.runtime.heap(), &self.is_ending(), self.object(root));
            self.scope.make_room(&mut text, piece.len())?;
            text.extend_from_slice(&piece);
        }
        Ok(text)
    }

    fn printed(&self, root: Root<'f, 'h>) -> String {
        let text = print_object(self.runtime.heap(), &self.is_ending(), self.object(root));
        String::from_utf8_lossy(&text[..text.len().min(MAX_TEXT)]).into_owned()
    }

    /// The exception that a throwing function of the table makes from its arguments.
    fn base_exception(&mut self, function: BaseFn, kind: ExceptionKind, args: &[Root<'f, 'h>]) -> Raised {
        match (function, args) {
            (BaseFn::ThrowBoundserror, &[array, index]) => self.scope.raise_bounds(array, index),
            (BaseFn::ThrowBoundserror, &[array]) => self.scope.raise_fields(kind, &[Some(array)]),
            (BaseFn::ThrowInexacterror, &[func, _, _]) if self.symbol_text(func).is_none() => {
                self.fixed_type_error("InexactError", Type::SYMBOL, func)
            }
            (BaseFn::ThrowInexacterror, &[func, ty, value]) => match self.scope.tuple(&[ty, value]) {
                Ok(rest) => self.scope.raise_fields(kind, &[Some(func), Some(rest)]),
                Err(raised) => raised,
            },
            (function, args) if function.throws_numbers() => {
                let (symbol, numbers) = args.split_at(usize::from(function.takes_symbol()).min(args.len()));
                let symbol = symbol.first().map(|&symbol| self.printed(symbol)).unwrap_or_default();
                let texts: Vec<String> = numbers.iter().map(|&x| self.printed(x)).collect();
                let ty = numbers.first().map(|&x| self.type_text(x)).unwrap_or_default();
                let text = function.thrown_text(&symbol, &texts, &ty).unwrap_or_default();
                match (kind, numbers) {
                    (ExceptionKind::DomainError, &[x, ..]) => self.domain_error(x, &text),
                    _ => self.message(kind, &text),
                }
            }
            _ => {
                let text = self.text(args).and_then(|text| {
                    let text = self.scope.string(&text);
                    text.map_err(|error| self.scope.raise(&error))
                });
                match text {
                    Ok(text) => self.scope.raise_fields(kind, &[Some(text)]),
                    Err(raised) => raised,
                }
            }
        }
    }

    fn domain_error(&mut self, value: Root<'f, 'h>, text: &str) -> Raised {
        match self.scope.string(text.as_bytes()) {
            Ok(text) => self.scope.raise_fields(ExceptionKind::DomainError, &[Some(value), Some(text)]),
            Err(error) => self.scope.raise(&error),
        }
    }

    // ----- Julia's run time -----

    /// A function of Julia's run time, by name. Addresses are `Ptr{Nothing}`s.
    pub(crate) fn julia_call(&mut self, name: &str, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        match (name, args) {
            ("jl_alloc_array_1d" | "jl_alloc_array_2d" | "jl_alloc_array_3d", &[ty, ref dims @ ..]) => {
                let dims = dims.iter().map(|&dim| self.int64(dim)).collect();
                self.new_array(name, ty, dims)
            }
            ("jl_new_array", &[ty, dims]) => {
                let dims = self.dims(dims)?;
                self.new_array(name, ty, dims)
            }
            ("jl_alloc_genericmemory", &[ty, length]) => {
                let length = self.word(name, length)?;
                let length = self.scope.box_int(length)?;
                self.new_memory(name, ty, length)
            }
            ("jl_array_grow_end", &[array, by]) => self.resize_by(name, array, i64::MAX, by, true),
            ("jl_array_grow_beg", &[array, by]) => self.resize_by(name, array, 0, by, true),
            ("jl_array_grow_at", &[array, at, by]) => {
                let at = self.word(name, at)?;
                self.resize_by(name, array, at, by, true)
            }
            ("jl_array_del_end", &[array, by]) => self.resize_by(name, array, i64::MAX, by, false),
            ("jl_array_del_beg", &[array, by]) => self.resize_by(name, array, 0, by, false),
            ("jl_array_del_at", &[array, at, by]) => {
                let at = self.word(name, at)?;
                self.resize_by(name, array, at, by, false)
            }
            ("jl_array_sizehint", &[_, _]) => self.scope.nothing(),
            ("jl_array_ptr", &[array]) => match Row::of(self.object(array)) {
                Some(row) => self.address(address_of(row.memory, row.start).unwrap_or(0)),
                None => Err(self.bad_operand(name, "an Array", array)),
            },
            ("jl_string_ptr" | "jl_symbol_name", &[text]) => {
                let object = self.object(text);
                match object.desc().kind() {
                    ObjectKind::String | ObjectKind::Symbol => {
                        self.address((object.expose() + STRING_BYTES) as u64)
                    }
                    _ => Err(self.bad_operand(name, "a String or Symbol", text)),
                }
            }
            ("jl_value_ptr", &[value]) => {
                let address = self.object(value).expose();
                self.address(address as u64)
            }
            ("jl_alloc_string", &[length]) => {
                let length = self.word(name, length)?;
                let made = usize::try_from(length).ok().map(|length| self.scope.zeroed_string(length));
                match made {
                    Some(made) => made.map_err(|error| self.scope.raise(&error)),
                    None => Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError)),
                }
            }
            ("jl_pchar_to_string", &[from, length]) => {
                let length = self.word(name, length)?;
                let Ok(length) = usize::try_from(length) else {
                    return Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError));
                };
                let from = if length == 0 { 0 } else { self.text_address(name, from)? };
                let bytes = bytes_at(from, length);
                self.scope.string(&bytes).map_err(|error| self.scope.raise(&error))
            }
            ("jl_cstr_to_string", &[from]) => {
                let from = self.text_address(name, from)?;
                let bytes = c_text_at(from);
                self.scope.string(&bytes).map_err(|error| self.scope.raise(&error))
            }
            _ => match self.copying_call(name, args)? {
                Some(made) => Ok(made),
                None => self.identity_call(name, args),
            },
        }
    }

    fn resize_by(
        &mut self,
        name: &str,
        array: Root<'f, 'h>,
        at: i64,
        by: Root<'f, 'h>,
        grow: bool,
    ) -> Done<'f, 'h> {
        let by = self.word(name, by)?;
        self.resize(name, array, at, by, grow)
    }

    /// A `Ptr{Nothing}`.
    pub(crate) fn address(&mut self, address: u64) -> Done<'f, 'h> {
        let types = self.scope.common_types()?;
        self.scope.box_word(&types.address, address)
    }

    /// The address of a text, which must not be null.
    fn text_address(&mut self, op: &str, value: Root<'f, 'h>) -> Result<i64, Raised> {
        match self.word(op, value)? {
            0 => Err(self.message(ExceptionKind::ArgumentError, "cannot convert NULL to string")),
            address => Ok(address),
        }
    }

    /// A 64-bit integer or address.
    pub(crate) fn word(&mut self, op: &str, value: Root<'f, 'h>) -> Result<i64, Raised> {
        let at = At::boxed(self.object(value));
        let is_word = |at: &At<'_>| at.cx.types.primitive(at.ty).is_some_and(|(bits, _)| bits == 64);
        match at.filter(is_word).and_then(At::bits) {
            Some(bits) => Ok(bits as u64 as i64),
            None => Err(self.bad_operand(op, "a 64-bit integer", value)),
        }
    }
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// Bytes at an address given by the program, which must not be null if there are any.
    pub(crate) fn bytes_of_c(
        &mut self,
        op: &str,
        start: Root<'f, 'h>,
        length: Root<'f, 'h>,
    ) -> Result<Vec<u8>, Raised> {
        let Ok(length) = usize::try_from(self.word(op, length)?) else {
            return Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError));
        };
        let start = if length == 0 { 0 } else { self.text_address(op, start)? };
        Ok(bytes_at(start, length))
    }

    /// Stores a C flag at an address given by the program, unless it is null.
    pub(crate) fn store_flag(&mut self, op: &str, address: Root<'f, 'h>, flag: bool) -> Result<(), Raised> {
        let address = self.word(op, address)?;
        let place = std::ptr::with_exposed_provenance_mut::<i32>(address as usize);
        if !place.is_null() {
            // SAFETY: the program is responsible for what it passes to these functions, as for
            // `unsafe_store!`: room for a C `int`.
            unsafe { place.write_unaligned(flag.into()) };
        }
        Ok(())
    }
}

/// The bytes at an address given by the program. Such a call is one of the doors out of checked code.
fn bytes_at(address: i64, length: usize) -> Vec<u8> {
    if length == 0 {
        return Vec::new();
    }
    let start = std::ptr::with_exposed_provenance::<u8>(address as usize);
    // SAFETY: the program is responsible for what it passes to these functions, as for `unsafe_load`:
    // `length` readable bytes.
    unsafe { std::slice::from_raw_parts(start, length) }.to_vec()
}

/// The zero-terminated text at an address given by the program; as for [`bytes_at`].
fn c_text_at(address: i64) -> Vec<u8> {
    let start = std::ptr::with_exposed_provenance::<std::ffi::c_char>(address as usize);
    // SAFETY: the program is responsible for what it passes to these functions: readable bytes up to a zero
    // byte. Null was refused.
    unsafe { std::ffi::CStr::from_ptr(start) }.to_bytes().to_vec()
}
