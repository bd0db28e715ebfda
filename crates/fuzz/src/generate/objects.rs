//! Mutable objects: created, modified, compared by identity, linked to each other.
//!
//! ```text
//! %1 = new(M0, a, b, nothing)        a region's own objects; the last field refers to another object, or is nothing
//! …    getfield, setfield!, ===      on any available object, in any block of the region
//! …    %2 = getfield(%1, :link)      an object read from another one's field: tested, then used
//! ```
//!
//! Every field is initialised. Objects are not passed as arguments or results, so they only escape into each
//! other.

use super::func::FuncGen;
use brolga_ir::builtin::Builtin;
use brolga_ir::{Const, Op, Type, Value};

impl FuncGen<'_> {
    /// A region with its own objects of one type.
    pub(super) fn object_region(&mut self, depth: usize) {
        let Some(&ty) = self.rng.pick(&self.palette.objects) else { return self.straight() };
        let outside = self.objects.len();
        for _ in 0..self.rng.between(1, 3) {
            let object = self.new_object(ty);
            self.objects.push(object);
        }
        self.region(depth);
        if self.block.is_some() {
            for own in outside..self.objects.len() {
                self.read_field(self.objects[own]);
            }
        }
        self.objects.truncate(outside);
    }

    fn new_object(&mut self, ty: Type) -> Value {
        let types = &self.cx.types;
        let values = types.field_count(ty).unwrap_or(1) - 1;
        let fields: Vec<Type> = (0..values).filter_map(|n| types.field_type(ty, n)).collect();
        let mut operands: Vec<Value> = fields.into_iter().map(|field| self.value_for(field)).collect();
        operands.push(self.link());
        self.emit_hidden(Op::New(ty), &operands, ty)
    }

    /// Another object, or `nothing`.
    fn link(&mut self) -> Value {
        let other = self.rng.pick(&self.objects).copied().filter(|_| self.rng.chance(70));
        other.unwrap_or_else(|| self.func.constant(Const::Singleton(Type::NOTHING)))
    }

    /// A statement on an available object.
    pub(super) fn object_statement(&mut self) {
        let Some(&object) = self.rng.pick(&self.objects) else { return self.straight() };
        let other = self.rng.pick(&self.objects).copied().unwrap_or(object);
        match self.rng.below(10) {
            0..3 => self.read_field(object),
            3..6 => self.write_field(object),
            6 => {
                let (name, link) = (self.symbol("link"), self.link());
                let ty = self.func.ty(link);
                self.emit_hidden(Op::Builtin(Builtin::Setfield), &[object, name, link], ty);
            }
            7 => {
                self.builtin(Builtin::Egal, &[object, other], Type::BOOL);
            }
            8 if self.func.ty(object) == self.func.ty(other) => {
                let (ty, condition) = (self.func.ty(object), self.value(Type::BOOL));
                let operands = [condition, object, other];
                let one = self.emit_hidden(Op::Builtin(Builtin::Ifelse), &operands, ty);
                if self.rng.chance(50) { self.write_field(one) } else { self.read_field(one) }
            }
            _ => self.follow(object),
        }
    }

    /// A field other than the link: its name and type.
    fn value_field(&mut self, object: Value) -> Option<(Value, Type)> {
        let ty = self.func.ty(object);
        let values = self.cx.types.field_count(ty)? - 1;
        let number = self.rng.below(values);
        let field = self.cx.types.field_type(ty, number)?;
        Some((self.symbol(&format!("m{number}")), field))
    }

    fn read_field(&mut self, object: Value) {
        let Some((name, field)) = self.value_field(object) else { return };
        self.builtin(Builtin::Getfield, &[object, name], field);
    }

    fn write_field(&mut self, object: Value) {
        let Some((name, field)) = self.value_field(object) else { return };
        let value = self.value_for(field);
        let ty = self.func.ty(value);
        self.emit_hidden(Op::Builtin(Builtin::Setfield), &[object, name, value], ty);
    }

    /// Reads or writes a field of the linked object, if there is one.
    fn follow(&mut self, object: Value) {
        let ty = self.func.ty(object);
        let name = self.symbol("link");
        let linked = self.emit_hidden(Op::Builtin(Builtin::Getfield), &[object, name], Type::ANY);
        let wanted = self.func.constant(self.cx.types.type_constant(ty));
        let is_object = self.emit_hidden(Op::Builtin(Builtin::Isa), &[linked, wanted], Type::BOOL);
        let (then, join) = (self.func.make_block(), self.func.make_block());
        self.branch(is_object, then, join);
        let scope = self.scope();
        self.start(then);
        let there = self.emit_hidden(Op::Pi, &[linked], ty);
        if self.rng.chance(50) {
            self.write_field(there);
        } else {
            self.read_field(there);
            // The value is unavailable after the block; it counts as used by writing it to the first object.
            self.write_field(object);
        }
        self.leave_scope(scope);
        self.goto(join);
        self.start(join);
    }
}
