//! Entry points of Julia's run time for identity: addresses, `objectid`, tables by `===`, methods by signature.
//!
//! | function | here |
//! |---|---|
//! | `jl_value_ptr` | strings and pointer-free mutable structs are stored at their address from then on; for other objects it is only reserved |
//! | `jl_object_id` | by contents as in [`hashing`](brolga_ir::hashing); by number for objects with an identity |
//! | `jl_eqtable_get`, `_put`, `_pop`, `_nextind`, `jl_idtable_rehash` | the table of an `IdDict`, as in [`eq_table`](brolga_ir::eq_table) |
//! | `jl_gf_invoke_lookup` | the signature if a method has it, else `nothing` |
//! | `jl_types_equal`, `jl_get_world_counter` | |

use super::calls::FIRST_WORLD;
use super::error::{Eval, Stop};
use super::foreign::LENGTH_BYTES;
use super::heap::Object;
use super::value::{ObjId, Val};
use super::{Interp, bytes};
use brolga_ir::eq_table::{self, Pair, Pairs, Room};
use brolga_ir::hashing::{self, ObjectHash};
use brolga_ir::types::Type;

/// The bytes reserved at the address of an object whose content is stored elsewhere.
const UNUSED_BYTES: u64 = 64;

/// The pairs of a table, with the key being searched for.
struct Table<'i, 'm, 'k> {
    interp: &'i mut Interp<'m>,
    memory: ObjId,
    start: i64,
    key: &'k Val,
}

impl Pairs for Table<'_, '_, '_> {
    type Error = Stop;

    fn look(&mut self, pair: usize) -> Eval<Pair> {
        let at = self.start.wrapping_add(2 * pair as i64);
        let key = self.interp.element(self.memory, at)?;
        let val = self.interp.element(self.memory, at.wrapping_add(1))?;
        Ok(match (key, val) {
            (None, _) => Pair::Free,
            (Some(_), None) => Pair::Deleted,
            (Some(key), Some(_)) if self.interp.egal(&key, self.key)? => Pair::Same,
            _ => Pair::Other,
        })
    }
}

impl Interp<'_> {
    /// Calls a function of this file; returns `None` for others.
    pub(super) fn identity_call(&mut self, name: &str, result: Type, args: &[Val]) -> Eval<Option<Val>> {
        let val = match (name, args) {
            ("jl_value_ptr", [val]) => {
                let address = self.value_address(val)?;
                self.address_of_type(result, address)?
            }
            ("jl_object_id", [val]) => {
                let id = self.object_id(val)?;
                Val::Bits { ty: Type::UINT64, bits: id.into() }
            }
            ("jl_eqtable_get", [table, key, default]) => match self.find_pair(name, table, key)? {
                Some((memory, at)) => {
                    self.element(memory, at.wrapping_add(1))?.unwrap_or_else(|| default.clone())
                }
                None => default.clone(),
            },
            ("jl_eqtable_put", [table, key, val, inserted]) => {
                let (table, is_new) = self.put_pair(name, table, key, val)?;
                self.store_flag(name, inserted, is_new)?;
                table
            }
            ("jl_eqtable_pop", [table, key, default, found]) => {
                let pair = self.find_pair(name, table, key)?;
                self.store_flag(name, found, pair.is_some())?;
                match pair {
                    Some((memory, at)) => {
                        let val = self.element(memory, at.wrapping_add(1))?;
                        self.set_element(memory, at, Val::NOTHING)?;
                        self.unset_element(memory, at.wrapping_add(1))?;
                        val.unwrap_or_else(|| default.clone())
                    }
                    None => default.clone(),
                }
            }
            ("jl_eqtable_nextind", [table, from]) => {
                let (memory, start, length) = self.table_operand(name, table)?;
                let mut at = (self.word(name, from)? as u64).next_multiple_of(2);
                while at < length && self.element(memory, start.wrapping_add(at as i64 + 1))?.is_none() {
                    at += 2;
                }
                let at = if at < length { at } else { u64::MAX };
                Val::Bits { ty: Type::UINT64, bits: at.into() }
            }
            ("jl_idtable_rehash", [table, length]) => {
                let length = u64::try_from(self.word(name, length)?).unwrap_or(u64::MAX);
                self.rehashed(name, table, length)?
            }
            ("jl_gf_invoke_lookup", [signature, _]) => {
                let ty = self.type_operand(name, signature)?;
                let found = match self.types().tuple_elements(ty) {
                    Some([callee, args @ ..]) => self.module.find_method(*callee, args).is_some(),
                    _ => false,
                };
                if found { signature.clone() } else { Val::NOTHING }
            }
            ("jl_types_equal", [a, b]) => {
                let same = self.type_operand(name, a)? == self.type_operand(name, b)?;
                Val::Bits { ty: Type::INT32, bits: same.into() }
            }
            ("jl_rethrow", []) => return Err(self.rethrown(None)),
            ("jl_rethrow_other", [exception]) => return Err(self.rethrown(Some(exception))),
            ("jl_get_world_counter", []) => Val::Bits { ty: Type::UINT64, bits: FIRST_WORLD.into() },
            _ => return Ok(None),
        };
        Ok(Some(val))
    }

    // ----- addresses -----

    fn value_address(&mut self, val: &Val) -> Eval<u64> {
        let types = self.types();
        let &Val::Object { ty, id } = val else {
            let ty = val.ty(types);
            if !bytes::has_bytes(types, ty) {
                return Err(self.bad_operand("jl_value_ptr", "an object with an address", val));
            }
            let bytes = bytes::encode(types, ty, val)?;
            let address = self.raw_room(bytes.len() as u64)?;
            self.memory.store(address, 1, &bytes)?;
            return Ok(address);
        };
        if let Some(&(_, address)) = self.exposed.get(&id) {
            return Ok(address);
        }
        if let Some(Object::String(_)) = self.heap.get(id) {
            return Ok(self.string_address(id)? - LENGTH_BYTES);
        }
        let layout = types.layout(ty).ok().filter(|layout| layout.is_bits());
        let is_struct = matches!(self.heap.get(id), Some(Object::Struct(_)));
        let kept = layout.filter(|_| is_struct).map(|layout| u64::from(layout.size));
        let address = self.raw_room(kept.unwrap_or(UNUSED_BYTES).max(1))?;
        // For an object that is not stored at its address only the address is recorded.
        let ty = if kept.is_some() { ty } else { Type::ANY };
        self.exposed.insert(id, (ty, address));
        self.write_through(id)?;
        Ok(address)
    }

    /// Reloads the fields of a struct from its address, if it is stored there.
    pub(super) fn read_back(&mut self, id: ObjId) -> Eval<()> {
        let Some((ty, address)) = self.kept_at(id) else { return Ok(()) };
        let mut buffer = vec![0; bytes::size_of(self.types(), ty)? as usize];
        self.memory.load(address, 1, &mut buffer)?;
        if let (Val::Struct(data), Some(Object::Struct(fields))) =
            (bytes::decode(self.types(), ty, &buffer)?, self.heap.get_mut(id))
        {
            fields.clone_from_slice(data.fields());
        }
        Ok(())
    }

    /// Writes the fields of a struct to its address, if it is stored there.
    pub(super) fn write_through(&mut self, id: ObjId) -> Eval<()> {
        let Some((ty, address)) = self.kept_at(id) else { return Ok(()) };
        if let Some(Object::Struct(fields)) = self.heap.get(id) {
            let bytes = bytes::encode(self.types(), ty, &Val::aggregate(ty, fields.clone()))?;
            self.memory.store(address, 1, &bytes)?;
        }
        Ok(())
    }

    fn kept_at(&self, id: ObjId) -> Option<(Type, u64)> {
        self.exposed.get(&id).copied().filter(|&(ty, _)| ty != Type::ANY)
    }

    /// Stores a C flag, unless the address is null.
    fn store_flag(&mut self, op: &str, address: &Val, flag: bool) -> Eval<()> {
        match self.word(op, address)? {
            0 => Ok(()),
            address => Ok(self.memory.store(address as u64, 4, &i32::from(flag).to_le_bytes())?),
        }
    }

    // ----- identity -----

    /// `objectid`
    fn object_id(&mut self, val: &Val) -> Eval<u64> {
        match *val {
            Val::Symbol(name) => return Ok(hashing::symbol_id(self.module.cx.names.text(name).as_bytes())),
            Val::Object { id, .. } => {
                return Ok(match self.text(id)? {
                    Some(bytes) => hashing::string_id(&bytes),
                    None => identity_hash(id),
                });
            }
            _ => {}
        }
        let mut hash = ObjectHash::default();
        let mut work = vec![Some(val.clone())];
        while let Some(part) = work.pop().filter(|_| hash.takes_more()) {
            match part {
                Some(Val::Bits { ty, bits }) => hash.number(&self.type_text(ty), bits),
                Some(Val::Singleton(ty)) => hash.shape(&self.type_text(ty)),
                Some(Val::Type(of)) => hash.shape(&format!("Type{{{}}}", self.type_text(of))),
                Some(Val::Module(name)) => hash.shape(self.module.cx.names.text(name)),
                Some(Val::Struct(data)) => {
                    hash.shape(&self.type_text(data.ty()));
                    work.extend(data.fields().iter().rev().cloned());
                }
                Some(Val::MemoryRef { memory, offset, .. }) => {
                    hash.word(identity_hash(memory));
                    hash.word(offset as u64);
                }
                Some(part @ (Val::Symbol(_) | Val::Object { .. })) => {
                    let id = self.object_id(&part)?;
                    hash.word(id);
                }
                Some(Val::Token(_)) => {}
                None => hash.shape(""),
            }
        }
        Ok(hash.value())
    }

    // ----- tables -----

    /// The elements of a table: a vector or memory of arbitrary objects.
    fn table_operand(&mut self, op: &str, table: &Val) -> Eval<(ObjId, i64, u64)> {
        let memory = self.elements_operand(op, table)?;
        let (start, length) = match *table {
            Val::Object { id, .. } => match (self.heap.array(id), self.heap.memory(id)) {
                (Some(array), _) => (array.offset, array.length()),
                (None, Some(memory)) => (0, memory.length),
                _ => (0, 0),
            },
            _ => (0, 0),
        };
        if self.heap.memory(memory).is_none_or(|memory| memory.elem != Type::ANY) {
            return Err(self.wrong_operand(op, "a vector of any objects", table));
        }
        Ok((memory, start, length))
    }

    /// The memory and the position of the key of the table's pair for a key.
    fn find_pair(&mut self, op: &str, table: &Val, key: &Val) -> Eval<Option<(ObjId, i64)>> {
        let (memory, start, length) = self.table_operand(op, table)?;
        let hash = self.object_id(key)?;
        let mut pairs = Table { interp: self, memory, start, key };
        let found = eq_table::find(&mut pairs, length as usize / 2, hash)?;
        Ok(found.map(|pair| (memory, start.wrapping_add(2 * pair as i64))))
    }

    /// Puts a pair into a table, or into a larger copy; returns that table, and whether the key is new.
    fn put_pair(&mut self, op: &str, table: &Val, key: &Val, val: &Val) -> Eval<(Val, bool)> {
        let hash = self.object_id(key)?;
        let mut table = table.clone();
        loop {
            let (memory, start, length) = self.table_operand(op, &table)?;
            let mut pairs = Table { interp: self, memory, start, key };
            let (pair, is_new) = match eq_table::room(&mut pairs, length as usize / 2, hash)? {
                Room::At(pair) => (pair, false),
                Room::New(pair) => (pair, true),
                Room::Full => {
                    let Some(larger) = eq_table::larger(length as usize) else {
                        return Err(self.out_of_memory());
                    };
                    table = self.rehashed(op, &table, larger as u64)?;
                    continue;
                }
            };
            let at = start.wrapping_add(2 * pair as i64);
            self.set_element(memory, at, key.clone())?;
            self.set_element(memory, at.wrapping_add(1), val.clone())?;
            return Ok((table, is_new));
        }
    }

    /// A table with at least `length` elements and the pairs of another.
    fn rehashed(&mut self, op: &str, table: &Val, length: u64) -> Eval<Val> {
        let (memory, start, old) = self.table_operand(op, table)?;
        let fresh = self.new_memory(Type::ANY, length)?;
        let mut new = match *table {
            Val::Object { ty, id } if self.heap.array(id).is_some() => self.make(
                ty,
                Object::Array(super::heap::Array { memory: fresh, offset: 0, dims: vec![length as i64] }),
            )?,
            ref memory => Val::Object { ty: memory.ty(self.types()), id: fresh },
        };
        for at in (0..old as i64 / 2).map(|pair| start.wrapping_add(2 * pair)) {
            if let (Some(key), Some(val)) =
                (self.element(memory, at)?, self.element(memory, at.wrapping_add(1))?)
            {
                new = self.put_pair(op, &new, &key, &val)?.0;
            }
        }
        Ok(new)
    }
}

/// The hash of an object with an identity.
fn identity_hash(id: ObjId) -> u64 {
    let mut hash = ObjectHash::default();
    hash.word(u64::from(id.0));
    hash.value()
}
