//! Entry points of Julia's run time for identity: `objectid`, tables by `===`, methods by signature.
//!
//! | function | here |
//! |---|---|
//! | `jl_object_id` | by contents as in `brolga_ir::hashing`; by address for objects with an identity |
//! | `jl_eqtable_get`, `_put`, `_pop`, `_nextind`, `jl_idtable_rehash` | the table of an `IdDict`, as in `brolga_ir::eq_table` |
//! | `jl_gf_invoke_lookup` | the signature if a method has it, else `nothing` |
//! | `jl_types_equal`, `jl_get_world_counter` | |
//!
//! In a moving heap, the hash of an object with an identity is its type's, so tables are slow there.

use brolga_ir::eq_table::{self, Pair, Pairs, Room};
use brolga_ir::hashing::{self, ObjectHash};
use brolga_ir::types::Type;

use crate::heap::{Object, ObjectKind, Root};
use crate::pending::ExceptionKind;
use crate::records::SymbolRef;

use super::call::{Done, Ops};
use super::place::{At, Held, Row, clear};
use super::relations::{as_type, egal};
use super::throw::Raised;

/// The pairs of a table, with the key being searched for. A safepoint from time to time: the program
/// determines how many keys have the same hash, and how long it takes to compare two of them.
struct Table<'o, 'a, 'f, 'h> {
    ops: &'o mut Ops<'a, 'f, 'h>,
    /// The `Memory`, and the position and number of its elements that form the table.
    memory: Root<'f, 'h>,
    row: Row,
    key: Root<'f, 'h>,
    looks: usize,
}

/// The number of elements after which the thread polls.
const LOOKS: usize = 64;

impl Pairs for Table<'_, '_, '_, '_> {
    type Error = Raised;

    fn look(&mut self, pair: usize) -> Result<Pair, Raised> {
        self.looks += 1;
        if self.looks.is_multiple_of(LOOKS) {
            self.ops.poll()?;
        }
        let row = Row { memory: self.ops.object(self.memory), ..self.row };
        Ok(match (object_at(row, 2 * pair), object_at(row, 2 * pair + 1)) {
            (None, _) => Pair::Free,
            (Some(_), None) => Pair::Deleted,
            (Some(key), Some(_)) if egal(key, self.ops.object(self.key)) => Pair::Same,
            _ => Pair::Other,
        })
    }
}

/// An element that is a reference.
fn object_at(row: Row, at: usize) -> Option<Object> {
    match row.place(at)?.held() {
        Held::Object(object) => Some(object),
        _ => None,
    }
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    /// A function of this file.
    pub(crate) fn identity_call(&mut self, name: &str, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        match (name, args) {
            ("jl_object_id", &[value]) => {
                let id = self.object_id(self.object(value));
                let base = self.base();
                self.scope.box_bits(&base, Type::UINT64, id.into())
            }
            ("jl_eqtable_get", &[table, key, default]) => {
                let at = self.find_pair(name, table, key)?;
                let row = self.table_operand(name, table)?;
                match at.and_then(|at| row.place(at + 1)) {
                    Some(place) => self.read(place),
                    None => Ok(default),
                }
            }
            ("jl_eqtable_put", &[table, key, value, inserted]) => {
                let (table, is_new) = self.put_pair(name, table, key, value)?;
                self.store_flag(name, inserted, is_new)?;
                Ok(table)
            }
            ("jl_eqtable_pop", &[table, key, default, found]) => {
                let at = self.find_pair(name, table, key)?;
                self.store_flag(name, found, at.is_some())?;
                let Some(at) = at else { return Ok(default) };
                let row = self.table_operand(name, table)?;
                let memory = self.scope.add_root(row.memory);
                let place = |ops: &Self, n: usize| Row { memory: ops.object(memory), ..row }.place(at + n);
                let value = match place(self, 1) {
                    Some(place) => self.read(place)?,
                    None => default,
                };
                let nothing = self.scope.nothing()?;
                if let Some(place) = place(self, 0) {
                    self.write(name, place, nothing)?;
                }
                if let Some(place) = place(self, 1) {
                    clear(place);
                }
                Ok(value)
            }
            ("jl_eqtable_nextind", &[table, from]) => {
                let row = self.table_operand(name, table)?;
                let from = usize::try_from(self.word(name, from)?).unwrap_or(usize::MAX / 2);
                let used = |&at: &usize| row.place(at + 1).is_some_and(|place| place.is_assigned());
                let next = (from.next_multiple_of(2)..row.length).step_by(2).find(used);
                let base = self.base();
                let next = next.map_or(u64::MAX, |at| at as u64);
                self.scope.box_bits(&base, Type::UINT64, next.into())
            }
            ("jl_idtable_rehash", &[table, length]) => match usize::try_from(self.word(name, length)?) {
                Ok(length) => self.rehashed(name, table, length),
                Err(_) => Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError)),
            },
            ("jl_gf_invoke_lookup", &[signature, _]) => {
                if self.has_method(name, signature)? {
                    Ok(signature)
                } else {
                    self.scope.nothing()
                }
            }
            ("jl_types_equal", &[a, b]) => {
                let same = self.type_operand(name, a)?.tag() == self.type_operand(name, b)?.tag();
                self.c_int(same)
            }
            ("jl_get_world_counter", &[]) => {
                let (world, base) = (self.thread.dispatch().world(), self.base());
                self.scope.box_bits(&base, Type::UINT64, world.into())
            }
            _ => {
                Err(self
                    .unsupported(&format!("`{name}` is not a function of the run time for these operands")))
            }
        }
    }

    /// Whether a method has a signature: a tuple of the type of a function and its argument types.
    fn has_method(&mut self, op: &str, signature: Root<'f, 'h>) -> Result<bool, Raised> {
        let desc = self.type_operand(op, signature)?;
        let (cx, ty) = (desc.context().clone(), desc.ty().unwrap_or(Type::ANY));
        let Some([callee, args @ ..]) = cx.types.tuple_elements(ty) else { return Ok(false) };
        let callee = self.scope.desc_of(&cx, *callee)?;
        let Some(callee) = self.scope.instance(&callee) else { return Ok(false) };
        let args = args.iter().map(|&ty| self.scope.desc_of(&cx, ty)).collect::<Result<Vec<_>, _>>()?;
        let dispatch = self.thread.dispatch();
        let found =
            dispatch.table().find_declared(self.runtime.heap(), dispatch.world(), self.object(callee), &args);
        Ok(found.is_some())
    }

    fn object_id(&self, object: Object) -> u64 {
        object_id(object, self.runtime.heap().abi().moving)
    }

    // ----- tables -----

    /// The elements of a table: a vector or memory of arbitrary objects.
    fn table_operand(&mut self, op: &str, table: Root<'f, 'h>) -> Result<Row, Raised> {
        let row = Row::of(self.object(table));
        let is_table =
            |row: &Row| matches!(row.memory.desc().kind(), ObjectKind::Memory(of) if of.ty == Type::ANY);
        match row.filter(is_table) {
            Some(row) => Ok(row),
            None => Err(self.bad_operand(op, "a vector of any objects", table)),
        }
    }

    /// The position of the key of the table's pair for a key.
    fn find_pair(
        &mut self,
        op: &str,
        table: Root<'f, 'h>,
        key: Root<'f, 'h>,
    ) -> Result<Option<usize>, Raised> {
        let mut pairs = self.pairs(op, table, key)?;
        let hash = pairs.ops.object_id(pairs.ops.object(key));
        let count = pairs.row.length / 2;
        Ok(eq_table::find(&mut pairs, count, hash)?.map(|pair| 2 * pair))
    }

    /// Puts a pair into a table, or into a larger copy; returns that table, and whether the key is new.
    fn put_pair(
        &mut self,
        op: &str,
        mut table: Root<'f, 'h>,
        key: Root<'f, 'h>,
        value: Root<'f, 'h>,
    ) -> Result<(Root<'f, 'h>, bool), Raised> {
        loop {
            let mut pairs = self.pairs(op, table, key)?;
            let hash = pairs.ops.object_id(pairs.ops.object(key));
            let length = pairs.row.length;
            let (pair, is_new) = match eq_table::room(&mut pairs, length / 2, hash)? {
                Room::At(pair) => (pair, false),
                Room::New(pair) => (pair, true),
                Room::Full => {
                    let Some(larger) = eq_table::larger(length) else {
                        return Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError));
                    };
                    table = self.rehashed(op, table, larger)?;
                    continue;
                }
            };
            for (at, part) in [(2 * pair, key), (2 * pair + 1, value)] {
                // A moving `Memory` may be elsewhere after the first one.
                let row = self.table_operand(op, table)?;
                if let Some(place) = row.place(at) {
                    self.write(op, place, part)?;
                }
            }
            return Ok((table, is_new));
        }
    }

    /// A table with at least `length` elements and the pairs of another.
    fn rehashed(&mut self, op: &str, table: Root<'f, 'h>, length: usize) -> Done<'f, 'h> {
        let count = self.table_operand(op, table)?.length / 2;
        let desc = self.object(table).desc();
        let desc = self.scope.desc_of(desc.context(), desc.ty().unwrap_or(Type::ANY))?;
        let new = match desc.kind() {
            ObjectKind::Array { .. } => self.scope.array(&desc, &[length]),
            _ => self.scope.memory(&desc, length),
        };
        let mut new = self.alright(new)?;
        for pair in 0..count {
            let row = self.table_operand(op, table)?;
            let held = (object_at(row, 2 * pair), object_at(row, 2 * pair + 1));
            let (Some(key), Some(value)) = held else { continue };
            let into = self.object(new);
            // The roots of a pair are dropped with it; the table is rooted again before the next safepoint.
            let grown = self.in_frame(|ops| {
                let [key, value, into] = [key, value, into].map(|object| ops.scope.add_root(object));
                let (grown, _) = ops.put_pair(op, into, key, value)?;
                Ok(ops.object(grown))
            })?;
            if grown != self.object(new) {
                new = self.scope.add_root(grown);
            }
        }
        Ok(new)
    }
}

impl<'a, 'f, 'h> Ops<'a, 'f, 'h> {
    /// A table, set up for a search for a key.
    fn pairs<'o>(
        &'o mut self,
        op: &str,
        table: Root<'f, 'h>,
        key: Root<'f, 'h>,
    ) -> Result<Table<'o, 'a, 'f, 'h>, Raised> {
        let row = self.table_operand(op, table)?;
        let memory = self.scope.add_root(row.memory);
        Ok(Table { ops: self, memory, row, key, looks: 0 })
    }
}

/// `objectid`, in a moving heap or another. Not a safepoint.
pub(crate) fn object_id(object: Object, is_moving: bool) -> u64 {
    match object.desc().kind() {
        ObjectKind::Symbol => return SymbolRef::of(object).map_or(0, SymbolRef::id),
        ObjectKind::String => return hashing::string_id(object.string().unwrap_or_default()),
        _ => {}
    }
    let mut hash = ObjectHash::default();
    if let Some(of) = as_type(object) {
        hash.shape(&format!("Type{{{}}}", of.name()));
        return hash.value();
    }
    if let ObjectKind::Module = object.desc().kind() {
        hash.shape(&String::from_utf8_lossy(object.string().unwrap_or_default()));
        return hash.value();
    }
    if object.desc().is_mutable() || !matches!(object.desc().kind(), ObjectKind::Struct(_)) {
        match is_moving {
            true => hash.shape(object.desc().name()),
            false => hash.word(object.address() as u64),
        }
        return hash.value();
    }
    // An immutable value inside another one is hashed in place.
    let mut work: Vec<Held<'_>> = At::boxed(object).map(Held::Inline).into_iter().collect();
    while let Some(part) = work.pop().filter(|_| hash.takes_more()) {
        match part {
            Held::Undefined => hash.shape(""),
            Held::Inline(at) => {
                let name = at.cx.types.display(at.ty).to_string();
                match at.bits() {
                    Some(bits) => hash.number(&name, bits),
                    None => {
                        hash.shape(&name);
                        let first = work.len();
                        work.extend(at.fields().map(|place| place.held()));
                        work[first..].reverse();
                    }
                }
            }
            Held::Object(object) => {
                if let Some(of) = as_type(object) {
                    hash.shape(&format!("Type{{{}}}", of.name()));
                    continue;
                }
                let is_value =
                    matches!(object.desc().kind(), ObjectKind::Struct(_)) && !object.desc().is_mutable();
                match At::boxed(object).filter(|_| is_value) {
                    Some(at) => work.push(Held::Inline(at)),
                    None => hash.word(object_id(object, is_moving)),
                }
            }
        }
    }
    hash.value()
}
