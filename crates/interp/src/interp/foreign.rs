//! `foreigncall`: the entry points of Julia's run time, which work on objects, and C functions, which work on bits.
//!
//! | function | here |
//! |---|---|
//! | `jl_alloc_array_1d` to `3d`, `jl_new_array` | a fresh array |
//! | `jl_alloc_genericmemory` | a fresh memory |
//! | `jl_array_grow_end`, `_beg`, `_at`; `jl_array_del_end`, `_beg`, `_at`; `jl_array_sizehint` | in place |
//! | `jl_array_ptr`, `jl_string_ptr`, `jl_symbol_name` | an address of the contents |
//! | `jl_alloc_string`, `jl_pchar_to_string`, `jl_cstr_to_string` | a fresh string |
//! | copies of arrays, memories and strings, symbols, numbers in text | `copies.rs` |
//! | `jl_value_ptr`, `jl_object_id`, tables of `IdDict` | `identity.rs` |
//! | a function of the program by its address; C functions that take one | `callback.rs` |
//! | `exit`, `abort` | `process_end.rs` |
//! | anything else | [`RawMemory::call`](super::RawMemory::call), and text: `c_text.rs` |
//!
//! Growing moves the elements to a fresh memory; pointers into the old one keep pointing there, as in Julia.

use super::error::{Eval, Fault};
use super::exec::Flow;
use super::heap::Object;
use super::memory::{ForeignCall, MemoryError};
use super::value::{ObjId, Val};
use super::{Interp, bytes};
use brolga_ir::Name;
use brolga_ir::constant::Address;
use brolga_ir::func::ForeignData;
use brolga_ir::types::{LowType, Type};

/// The size of the length field before the bytes of a string.
pub(super) const LENGTH_BYTES: u64 = 8;

impl Interp<'_> {
    pub(super) fn foreign_call(&mut self, data: &ForeignData, mut args: Vec<Val>) -> Eval<Flow> {
        let mut entry = None;
        let name = match data.name {
            Some(name) => self.module.cx.names.text(name),
            None if args.is_empty() => {
                return Err(Fault::OperandCount { op: "foreigncall".to_owned(), given: 0 }.into());
            }
            None => {
                let address = args.remove(0);
                entry = address.as_bits().and_then(|bits| self.addresses.entry_at(bits as u64));
                match entry {
                    Some(id) => self.module.cx.names.text(self.module[id].name),
                    None => self.module.cx.names.text(self.function_at(&address)?),
                }
            }
        };
        if args.len() < data.params.len() {
            return Err(
                Fault::OperandCount { op: format!("foreigncall of `{name}`"), given: args.len() }.into()
            );
        }
        // The remaining operands are values to be kept alive.
        args.truncate(data.params.len());
        if entry.is_none()
            && let Some(val) = self.runtime_call(name, data.result, &args)?
        {
            return Ok(Flow::Value(val));
        }
        let mut plain = Vec::with_capacity(args.len());
        for (arg, &ty) in args.iter().zip(&data.params) {
            let form = self.c_form(ty).or_else(|| self.c_form(arg.ty(self.types())));
            match (form, arg) {
                (Some(form), Val::Bits { bits, .. }) => plain.push((form, *bits)),
                _ => return Err(self.bad_operand(name, "a number or pointer", arg)),
            }
        }
        let result = match data.result {
            Type::NOTHING | Type::BOTTOM => None,
            ty => match self.c_form(ty) {
                Some(form) => Some(form),
                None => {
                    return Err(Fault::Unsupported(format!(
                        "the C function `{name}` returning `{}`",
                        self.type_text(ty)
                    ))
                    .into());
                }
            },
        };
        let call = ForeignCall { name, args: &plain, variadic_after: data.variadic_after, result };
        if let Some(entry) = entry {
            return self.call_entry(entry, &call, data.result);
        }
        if let Some(flow) = self.c_callback(&call, data.result)? {
            return Ok(flow);
        }
        self.end_of_process(&call)?;
        let bits = match self.memory.call(&call) {
            Ok(bits) => bits,
            Err(error @ MemoryError::UnknownFunction { .. }) => match self.c_text_call(&call)? {
                Some(bits) => bits,
                None => return Err(self.message("CompileError", &error.to_string())),
            },
            Err(error) => return Err(error.into()),
        };
        Ok(Flow::Value(match result {
            Some(_) => Val::bits(self.types(), data.result, bits),
            None => Val::NOTHING,
        }))
    }

    /// `cglobal`: the address of a C function. There are no C variables here.
    pub(super) fn c_symbol(&mut self, name: Name) -> Eval<u64> {
        let text = self.module.cx.names.text(name);
        if !self.memory.has(text) {
            let error = MemoryError::UnknownFunction { name: text.to_owned() };
            return Err(self.message("CompileError", &error.to_string()));
        }
        let address = self.address_of(Address::Foreign(name))?;
        Ok(address.as_bits().unwrap_or_default() as u64)
    }

    /// The form in which a value of a type is passed to C.
    pub(super) fn c_form(&self, ty: Type) -> Option<LowType> {
        ty.as_low().or_else(|| self.types().primitive_low(ty))
    }

    /// Calls a function of Julia's run time; returns `None` for others.
    fn runtime_call(&mut self, name: &str, result: Type, args: &[Val]) -> Eval<Option<Val>> {
        let val = match (name, args) {
            ("jl_alloc_array_1d" | "jl_alloc_array_2d" | "jl_alloc_array_3d", [ty, dims @ ..]) => {
                let ty = self.type_operand(name, ty)?;
                let dims: Option<Vec<i64>> = dims.iter().map(Val::as_int64).collect();
                self.alloc_array(name, ty, dims)?
            }
            ("jl_new_array", [ty, dims]) => {
                let ty = self.type_operand(name, ty)?;
                let dims = self.dims(dims);
                self.alloc_array(name, ty, dims)?
            }
            ("jl_alloc_genericmemory", [ty, length]) => {
                let ty = self.type_operand(name, ty)?;
                match self.types().memory_element(ty) {
                    Some(elem) => {
                        let length = self.word(name, length)?;
                        self.memory_of_length(ty, elem, &Val::int64(length))?
                    }
                    None => return Err(self.bad_operand(name, "a Memory type", &Val::Type(ty))),
                }
            }
            ("jl_array_grow_end", [array, by]) => self.resize(name, array, i64::MAX, by, true)?,
            ("jl_array_grow_beg", [array, by]) => self.resize(name, array, 0, by, true)?,
            ("jl_array_grow_at", [array, at, by]) => {
                let at = self.word(name, at)?;
                self.resize(name, array, at, by, true)?
            }
            ("jl_array_del_end", [array, by]) => self.resize(name, array, i64::MAX, by, false)?,
            ("jl_array_del_beg", [array, by]) => self.resize(name, array, 0, by, false)?,
            ("jl_array_del_at", [array, at, by]) => {
                let at = self.word(name, at)?;
                self.resize(name, array, at, by, false)?
            }
            ("jl_array_sizehint", [_, _]) => Val::NOTHING,
            ("jl_array_ptr", [array]) => {
                let (_, data) = self.array_operand(name, array)?;
                let address = self.element_address(data.memory, data.offset)?;
                self.address_of_type(result, address)?
            }
            ("jl_string_ptr", [Val::Object { id, .. }]) => {
                let address = self.string_address(*id)?;
                self.address_of_type(result, address)?
            }
            ("jl_symbol_name", [Val::Symbol(symbol)]) => {
                let string = self.string_constant(*symbol)?;
                let Val::Object { id, .. } = string else { return Ok(None) };
                let address = self.string_address(id)?;
                self.address_of_type(result, address)?
            }
            ("jl_alloc_string", [length]) => {
                let length = self.word(name, length)?;
                let Ok(length) = u64::try_from(length) else { return Err(self.out_of_memory()) };
                self.reserve(length / 32 + 1)?;
                self.new_string(vec![0; length as usize])?
            }
            ("jl_pchar_to_string", [address, length]) => {
                let length = u64::try_from(self.word(name, length)?).unwrap_or(u64::MAX);
                self.reserve(length / 32 + 1)?;
                let mut bytes = vec![0; length as usize];
                let address = if length == 0 { 0 } else { self.text_address(name, address)? };
                self.memory.load(address, 1, &mut bytes)?;
                self.new_string(bytes)?
            }
            ("jl_cstr_to_string", [address]) => {
                let address = self.text_address(name, address)?;
                let mut bytes = Vec::new();
                loop {
                    let mut byte = [0];
                    self.memory.load(address.wrapping_add(bytes.len() as u64), 1, &mut byte)?;
                    if byte == [0] {
                        break;
                    }
                    bytes.push(byte[0]);
                }
                self.new_string(bytes)?
            }
            _ => {
                return match self.copying_call(name, args)? {
                    Some(val) => Ok(Some(val)),
                    None => self.identity_call(name, result, args),
                };
            }
        };
        Ok(Some(val))
    }

    /// The address of a text, which must not be null.
    pub(super) fn text_address(&mut self, op: &str, val: &Val) -> Eval<u64> {
        match self.word(op, val)? {
            0 => Err(self.message("ArgumentError", "cannot convert NULL to string")),
            address => Ok(address as u64),
        }
    }

    /// A 64-bit integer or address.
    pub(super) fn word(&self, op: &str, val: &Val) -> Eval<i64> {
        match val.as_bits() {
            Some(bits) if self.c_form(val.ty(self.types())).is_some_and(|f| f.bytes() == 8) => {
                Ok(bits as u64 as i64)
            }
            _ => Err(self.bad_operand(op, "a 64-bit integer", val)),
        }
    }

    pub(super) fn address_of_type(&self, ty: Type, address: u64) -> Eval<Val> {
        match self.c_form(ty) {
            Some(LowType::Ptr(_) | LowType::I64) => Ok(Val::Bits { ty, bits: u128::from(address) }),
            _ => Err(Fault::Unsupported(format!("an address as a `{}`", self.type_text(ty))).into()),
        }
    }

    pub(super) fn alloc_array(&mut self, name: &str, ty: Type, dims: Option<Vec<i64>>) -> Eval<Val> {
        match (self.types().array_parts(ty), dims) {
            (Some((elem, rank)), Some(dims)) if dims.len() == rank as usize => self.new_array(elem, dims),
            _ => Err(self.bad_operand(name, "an array type and its dimensions", &Val::Type(ty))),
        }
    }

    /// Inserts or removes `by` elements at a position from 0; positions beyond the end mean the end.
    fn resize(&mut self, name: &str, array: &Val, at: i64, by: &Val, grow: bool) -> Eval<Val> {
        let by = self.word(name, by)?;
        let (id, data) = self.array_operand(name, array)?;
        let (&[old], true) = (data.dims.as_slice(), by >= 0) else {
            return Err(self.bad_operand(name, "a Vector and a count", array));
        };
        let elem = self.heap.memory(data.memory).map_or(Type::ANY, |m| m.elem);
        let at = if grow { at.min(old) } else { at.min(old.saturating_sub(by)) };
        if at < 0 || (!grow && by > old) {
            return Err(self.bounds_error(array.clone(), Val::int64(at.saturating_add(1))));
        }
        let new = if grow { old.checked_add(by) } else { Some(old - by) };
        let Some(new) = new else { return Err(self.out_of_memory()) };
        let fresh = self.new_memory(elem, new as u64)?;
        let moved = if self.has_empty_elements(fresh) { 0 } else { old.min(new) };
        for n in 0..moved {
            // Elements before the position stay, those after it move.
            let (from, to) = match (n < at, grow) {
                (true, _) => (n, n),
                (false, true) => (n, n + by),
                (false, false) => (n + by, n),
            };
            if let Some(val) = self.element(data.memory, data.offset.wrapping_add(from))? {
                self.set_element(fresh, to, val)?;
            }
        }
        if let Some(Object::Array(array)) = self.heap.get_mut(id) {
            (array.memory, array.offset, array.dims) = (fresh, 0, vec![new]);
        }
        Ok(Val::NOTHING)
    }

    /// The address of a string's zero-terminated bytes, with their number before them. From now on the string
    /// is read from there.
    pub(super) fn string_address(&mut self, id: ObjId) -> Eval<u64> {
        let bytes = match self.heap.get(id) {
            Some(Object::String(text)) => match text.address {
                Some(address) => return Ok(address),
                None => text.bytes.clone(),
            },
            _ => {
                return Err(
                    Fault::Unsupported("the address of something that is not a string".to_owned()).into()
                );
            }
        };
        let length = bytes.len() as u64;
        let object = self.raw_room(LENGTH_BYTES + length + 1)?;
        self.memory.store(object, 1, &length.to_le_bytes())?;
        let address = object + LENGTH_BYTES;
        self.memory.store(address, 1, &bytes)?;
        self.memory.store(address + bytes.len() as u64, 1, &[0])?;
        if let Some(Object::String(text)) = self.heap.get_mut(id) {
            text.address = Some(address);
        }
        Ok(address)
    }

    /// Fresh raw memory.
    pub(super) fn raw_room(&mut self, size: u64) -> Eval<u64> {
        match self.memory.allocate(size, 16) {
            Ok(address) => Ok(address),
            Err(MemoryError::OutOfMemory { .. }) => Err(self.out_of_memory()),
            Err(error) => Err(error.into()),
        }
    }

    /// The function at an address assigned by this interpreter.
    fn function_at(&self, address: &Val) -> Eval<Name> {
        let found = address.as_bits().and_then(|bits| self.addresses.function_at(bits as u64));
        found.ok_or_else(|| {
            Fault::Unsupported(
                "a call of an address that is not the address of a supported C function".to_owned(),
            )
            .into()
        })
    }

    /// The size of a type's values in raw memory.
    pub(super) fn raw_size(&self, ty: Type) -> Eval<u64> {
        if !bytes::has_bytes(self.types(), ty) {
            let text = format!("values of type `{}` have no bytes in raw memory", self.type_text(ty));
            return Err(Fault::Unsupported(text).into());
        }
        bytes::size_of(self.types(), ty)
    }
}
