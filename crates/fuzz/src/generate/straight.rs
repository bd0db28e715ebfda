//! Generates statements without control flow of their own. Some may throw.
//!
//! | kind | generates |
//! |---|---|
//! | pure | any scalar intrinsic at any width |
//! | divide | a division; with the feature `throws`, 30 % have an arbitrary divisor, the others one that cannot throw |
//! | checked | a checked operation and both halves of its result |
//! | aggregate | a tuple, struct or named tuple |
//! | field | one field, by name or number, or by a number known only at run time |
//! | choose | `ifelse`, also between types |
//! | compare | `===`, `isa` |
//! | call | another function, or the function itself |
//! | pass on | a value copied, passed through a barrier, asserted, rebuilt from its fields, or read from a global |
//! | mark | an operation that does not affect the result |

use super::Known;
use super::func::FuncGen;
use super::palette::holds;
use brolga_ir::builtin::Builtin;
use brolga_ir::func::{MetaData, MetaItem};
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};
use brolga_ir::types::PrimitiveRepr;
use brolga_ir::{Const, Op, Type, TypeKind, Value};

impl FuncGen<'_> {
    /// One statement without control flow.
    pub(super) fn straight(&mut self) {
        match self.rng.below(20) {
            0..9 => self.pure_intrinsic(),
            9 => self.divide(),
            10 => self.checked(),
            11 | 12 => self.aggregate(),
            13 | 14 => self.field(),
            15 => self.choose(),
            16 => self.compare(),
            17 | 18 => self.call(),
            _ if self.options.features.marks => self.mark(),
            _ => self.pass_on(),
        }
    }

    // ----- intrinsics -----

    fn pure_intrinsic(&mut self) {
        let usable = |op: &Intrinsic, inexact: bool| {
            let plain = op.is_pure() && op.refusal().is_none() && !op.can_throw();
            let exact = !op.is_fast() && *op != Intrinsic::MuladdFloat;
            plain && (exact || inexact)
        };
        let all: Vec<Intrinsic> =
            Intrinsic::ALL.iter().copied().filter(|op| usable(op, self.options.features.inexact)).collect();
        let Some(&op) = self.rng.pick(&all) else { return };
        match op.shape() {
            Shape::IntUnary => {
                let ty = self.int_like(op);
                let a = self.value(ty);
                self.intrinsic(op, &[a], ty);
            }
            Shape::IntBinary => {
                let ty = self.int_like(op);
                let (a, b) = (self.value(ty), self.value(ty));
                self.intrinsic(op, &[a, b], ty);
            }
            Shape::Shift => {
                let (ty, count) = (self.int(), self.int());
                let (a, b) = (self.value(ty), self.shift_count(count));
                self.intrinsic(op, &[a, b], ty);
            }
            Shape::IntCompare => {
                let ty = if self.rng.chance(15) { Type::CHAR } else { self.int_like(op) };
                let (a, b) = (self.value(ty), self.value(ty));
                self.intrinsic(op, &[a, b], Type::BOOL);
            }
            Shape::CheckedPair => self.checked(),
            Shape::FloatUnary | Shape::FloatBinary | Shape::FloatTernary => self.float_operation(op),
            Shape::FloatCompare => {
                let Some(ty) = self.float() else { return };
                let (a, b) = (self.value(ty), self.value(ty));
                self.intrinsic(op, &[a, b], Type::BOOL);
            }
            Shape::Convert(kind) => self.convert(op, kind),
            _ => {}
        }
    }

    /// An integer type, or `Bool` for the operations that are defined on it.
    fn int_like(&mut self, op: Intrinsic) -> Type {
        let on_bool = matches!(
            op,
            Intrinsic::AndInt
                | Intrinsic::OrInt
                | Intrinsic::XorInt
                | Intrinsic::NotInt
                | Intrinsic::EqInt
                | Intrinsic::NeInt
                | Intrinsic::UltInt
                | Intrinsic::UleInt
        );
        if on_bool && self.rng.chance(25) { Type::BOOL } else { self.int() }
    }

    /// A shift count: mostly near the widths, sometimes any value.
    fn shift_count(&mut self, ty: Type) -> Value {
        if self.rng.chance(40) {
            return self.value(ty);
        }
        let count = self.rng.pick(&[0, 1, 7, 8, 15, 16, 31, 32, 63, 64, 65, 127]).copied().unwrap_or(1);
        self.bits(ty, count)
    }

    fn float_operation(&mut self, op: Intrinsic) {
        let Some(ty) = self.float() else { return };
        let mut operands = vec![self.value(ty)];
        if op == Intrinsic::CopysignFloat {
            operands.push(self.exact_value(ty));
        }
        while operands.len() < usize::from(op.arity().min) {
            operands.push(self.value(ty));
        }
        let moves_bits = matches!(op, Intrinsic::NegFloat | Intrinsic::AbsFloat | Intrinsic::CopysignFloat);
        let exact = moves_bits && operands.iter().all(|&v| self.is_exact(v));
        let value = self.intrinsic(op, &operands, ty);
        if exact {
            self.set_exact(value);
        }
    }

    fn convert(&mut self, op: Intrinsic, kind: Convert) {
        let int = self.int();
        let other = if self.rng.chance(10) { Type::BOOL } else { self.int() };
        let float = self.float();
        let width = |ty: Type| match self.cx.types.primitive(ty) {
            Some((_, PrimitiveRepr::Bool)) => 1,
            Some((bits, _)) => bits,
            None => 0,
        };
        let (narrow, wide) = if width(int) < width(other) { (int, other) } else { (other, int) };
        let (from, to) = match kind {
            Convert::Bits => return self.bitcast(),
            Convert::SignExtend | Convert::ZeroExtend if width(narrow) < width(wide) => (narrow, wide),
            Convert::Truncate if width(narrow) < width(wide) => (wide, narrow),
            Convert::FloatToSigned | Convert::FloatToUnsigned => match float {
                Some(float) => (float, int),
                None => return,
            },
            Convert::SignedToFloat | Convert::UnsignedToFloat => match float {
                Some(float) => (int, float),
                None => return,
            },
            Convert::FloatExtend | Convert::FloatTruncate => {
                let second = self.rng.pick(&self.palette.floats).copied();
                let (Some(a), Some(b)) = (float, second) else { return };
                let (narrow, wide) = if width(a) < width(b) { (a, b) } else { (b, a) };
                if narrow == wide {
                    return;
                }
                if kind == Convert::FloatExtend { (narrow, wide) } else { (wide, narrow) }
            }
            _ => return,
        };
        let operand = self.value(from);
        let value = self.intrinsic(op, &[operand], to);
        if matches!(kind, Convert::SignedToFloat | Convert::UnsignedToFloat) {
            self.set_exact(value);
        }
    }

    /// The same bits under another type of the same width.
    fn bitcast(&mut self) {
        let width = |ty: Type| self.cx.types.primitive(ty).map_or(0, |(bits, _)| bits);
        let mut all = self.palette.ints.clone();
        all.extend(&self.palette.floats);
        all.push(Type::CHAR);
        all.push(Type::BOOL);
        let Some(&from) = self.rng.pick(&all) else { return };
        let same: Vec<Type> = all.into_iter().filter(|&to| width(to) == width(from) && to != from).collect();
        let Some(&to) = self.rng.pick(&same) else { return };
        let operand = self.exact_value(from);
        let value = self.intrinsic(Intrinsic::Bitcast, &[operand], to);
        self.set_exact(value);
    }

    fn divide(&mut self) {
        const DIVISIONS: [Intrinsic; 8] = [
            Intrinsic::SdivInt,
            Intrinsic::UdivInt,
            Intrinsic::SremInt,
            Intrinsic::UremInt,
            Intrinsic::CheckedSdivInt,
            Intrinsic::CheckedUdivInt,
            Intrinsic::CheckedSremInt,
            Intrinsic::CheckedUremInt,
        ];
        let Some(&op) = self.rng.pick(&DIVISIONS) else { return };
        let ty = self.int();
        let dividend = self.value(ty);
        let divisor = if self.options.features.throws && self.rng.chance(30) {
            self.value(ty)
        } else if self.rng.chance(50) {
            // 1 to 7: neither zero nor -1.
            let (raw, mask, one) = (self.value(ty), self.bits(ty, 6), self.bits(ty, 1));
            let even = self.intrinsic(Intrinsic::AndInt, &[raw, mask], ty);
            self.intrinsic(Intrinsic::AddInt, &[even, one], ty)
        } else {
            let divisors = [1, 2, 3, 5, 7, 8, 10, 16, 100, 127];
            let divisor = self.rng.pick(&divisors).copied().unwrap_or(3);
            self.bits(ty, divisor)
        };
        self.intrinsic(op, &[dividend, divisor], ty);
    }

    /// A checked operation. With the feature `throws`, the code may throw on overflow as Base does; otherwise overflow
    /// is an ordinary value.
    fn checked(&mut self) {
        const CHECKED: [(Intrinsic, &str); 6] = [
            (Intrinsic::CheckedSaddInt, "+"),
            (Intrinsic::CheckedUaddInt, "+"),
            (Intrinsic::CheckedSsubInt, "-"),
            (Intrinsic::CheckedUsubInt, "-"),
            (Intrinsic::CheckedSmulInt, "*"),
            (Intrinsic::CheckedUmulInt, "*"),
        ];
        let Some(&(op, sign)) = self.rng.pick(&CHECKED) else { return };
        let ty = self.int();
        let (a, b) = (self.value(ty), self.value(ty));
        let Ok(pair) = self.cx.types.tuple(&[ty, Type::BOOL]) else { return };
        let both = self.intrinsic(op, &[a, b], pair);
        let (first, second) = (self.bits(Type::INT64, 1), self.bits(Type::INT64, 2));
        self.builtin(Builtin::Getfield, &[both, first], ty);
        let overflow = self.builtin(Builtin::Getfield, &[both, second], Type::BOOL);
        if self.options.features.throws && self.rng.chance(30) {
            let sign = self.symbol(sign);
            let name = self.cx.names.intern("throw_overflowerr_binaryop");
            self.throw_if(overflow, |this| {
                this.invoke(name, &[Type::SYMBOL, ty, ty], &[sign, a, b], Type::BOTTOM);
            });
        }
    }

    // ----- aggregates -----

    fn aggregate(&mut self) {
        if let Some(&ty) = self.rng.pick(&self.palette.aggregates) {
            self.make_aggregate(ty, 1);
        }
    }

    fn field(&mut self) {
        let Some(ty) = self.likely(&self.palette.aggregates) else { return };
        let types = &self.cx.types;
        let count = types.field_count(ty).unwrap_or(0);
        let object = self.value(ty);
        let element = types.field_type(ty, 0);
        let is_homogeneous = (1..count).all(|n| types.field_type(ty, n) == element);
        if is_homogeneous && count > 1 && self.options.features.throws && self.rng.chance(50) {
            return self.field_at_run_time(object, count, element.unwrap_or(Type::NOTHING));
        }
        let index = self.rng.below(count);
        let Some(field) = types.field_type(ty, index) else { return };
        let name = match types.kind(ty) {
            TypeKind::NamedTuple { names, .. } => names.get(index).copied(),
            _ => types.fields(ty).and_then(|fields| fields.get(index)).map(|f| f.name),
        };
        let key = match name {
            Some(name) if self.rng.chance(80) => self.func.constant(Const::Symbol(name)),
            _ => self.bits(Type::INT64, index as u128 + 1),
        };
        let mut operands = vec![object, key];
        if name.is_none() && self.rng.chance(40) {
            operands.push(self.bounds_check());
        }
        let value = self.builtin(Builtin::Getfield, &operands, field);
        if self.is_exact(object) {
            self.set_exact(value);
        }
    }

    /// An element whose number is computed: one past either end throws.
    fn field_at_run_time(&mut self, object: Value, count: usize, element: Type) {
        let raw = self.value(Type::INT64);
        let limit = self.bits(Type::INT64, count as u128);
        // A constant index must be in range for the program to be valid.
        let in_range = self.func.as_const(raw).is_some() || self.rng.chance(70);
        let index = if in_range {
            let rest = self.intrinsic(Intrinsic::UremInt, &[raw, limit], Type::INT64);
            let one = self.bits(Type::INT64, 1);
            self.intrinsic(Intrinsic::AddInt, &[rest, one], Type::INT64)
        } else {
            raw
        };
        let mut operands = vec![object, index];
        if self.rng.chance(50) {
            let check = if in_range { self.rng.chance(50) } else { true };
            operands.push(self.func.bits(&self.cx.types, Type::BOOL, check.into()));
        }
        let value = self.builtin(Builtin::Getfield, &operands, element);
        if self.is_exact(object) {
            self.set_exact(value);
        }
    }

    fn bounds_check(&mut self) -> Value {
        if self.rng.chance(50) {
            return self.bits(Type::BOOL, 1);
        }
        // Programs without doors are compiled with all checks, which a program can observe through the value
        // of `boundscheck`.
        let asked = !self.options.features.memory || self.rng.chance(70);
        self.emit(Op::BoundsCheck(asked), &[], Type::BOOL)
    }

    // ----- choices and comparisons -----

    fn choose(&mut self) {
        let ty = self.palette.any(self.rng);
        let condition = self.value(Type::BOOL);
        let (a, b) = (self.value_for(ty), self.value_for(ty));
        let value = self.builtin(Builtin::Ifelse, &[condition, a, b], ty);
        if self.is_exact(a) && self.is_exact(b) {
            self.set_exact(value);
        }
    }

    fn compare(&mut self) {
        let ty = self.palette.any(self.rng);
        if self.rng.chance(40) {
            let value = self.value(ty);
            let asked = match self.cx.types.kind(ty) {
                TypeKind::Union(members) => self.rng.pick(members).copied().unwrap_or(ty),
                _ if self.rng.chance(50) => ty,
                _ => self.palette.concrete(self.rng),
            };
            let asked = self.func.constant(self.cx.types.type_constant(asked));
            self.builtin(Builtin::Isa, &[value, asked], Type::BOOL);
            return;
        }
        let a = self.exact_value(ty);
        let same = if self.rng.chance(85) { ty } else { self.palette.any(self.rng) };
        let b = self.exact_value(same);
        let is_const = |v: Value| matches!(self.func.as_const(v), Some(Const::String(_)));
        let has_text = |v: Value| holds(self.cx, self.func.ty(v), &[Type::STRING]);
        let native = (is_const(a) && is_const(b)) || !(has_text(a) || has_text(b));
        let refused = !self.options.features.text_identity && !native;
        if self.is_exact(a) && self.is_exact(b) && !refused {
            self.builtin(Builtin::Egal, &[a, b], Type::BOOL);
        }
    }

    // ----- calls -----

    fn call(&mut self) {
        if !self.options.features.calls {
            return self.pure_intrinsic();
        }
        if let Some((fact, number, more)) = self.recursion.clone() {
            // The bound on the steps assumes that recursive calls are outside of loops.
            if more > 0 && self.repeat == 1 {
                self.recursion = Some((fact.clone(), number, more - 1));
                return self.call_known(&fact, Some(number));
            }
        }
        let Some(fact) = self.rng.pick(self.known).cloned() else { return self.pure_intrinsic() };
        if self.affords(fact.steps) {
            self.steps += self.repeat * fact.steps;
            self.call_known(&fact, None);
        }
    }

    fn call_known(&mut self, fact: &Known, first: Option<Value>) {
        let mut args: Vec<Value> = first.into_iter().collect();
        for &ty in &fact.params[args.len()..] {
            args.push(self.value_for(ty));
        }
        self.invoke(fact.name, &fact.params, &args, fact.result);
    }

    // ----- copies and marks -----

    /// A value passed on: copied, passed through a barrier, rebuilt from its fields, asserted to have its
    /// type, or read from a global.
    fn pass_on(&mut self) {
        let ty = match self.rng.below(3) {
            0 => self.likely(&self.palette.unions).unwrap_or(Type::BOOL),
            1 => self.likely(&self.palette.aggregates).unwrap_or(Type::BOOL),
            _ => self.palette.any(self.rng),
        };
        if self.rng.chance(20)
            && let Some(&(name, ty)) = self.rng.pick(&self.palette.globals)
        {
            let value = self.emit(Op::GetGlobal(name), &[], ty);
            return self.set_exact(value);
        }
        let Some(value) = self.find(ty) else { return };
        let passed = match self.rng.below(5) {
            0 => self.emit(Op::Copy, &[value], ty),
            1 => {
                let what = self.symbol("type");
                self.builtin(Builtin::Compilerbarrier, &[what, value], ty)
            }
            2 => self.builtin(Builtin::Blackbox, &[value], ty),
            3 => match self.splat(value, ty) {
                Some(made) => made,
                None => return,
            },
            _ => self.assert_type(value, ty),
        };
        if self.is_exact(value) {
            self.set_exact(passed);
        }
    }

    /// A struct rebuilt from the tuple of its fields; `None` for other types, and for structs that have a union as a
    /// field.
    fn splat(&mut self, value: Value, ty: Type) -> Option<Value> {
        let fields: Vec<Type> = self.cx.types.fields(ty)?.iter().map(|f| f.ty).collect();
        let is_union = |ty: Type| matches!(self.cx.types.kind(ty), TypeKind::Union(_));
        if fields.is_empty() || fields.iter().any(|&field| is_union(field)) {
            return None;
        }
        let tuple = self.cx.types.tuple(&fields).ok()?;
        let mut parts = Vec::with_capacity(fields.len());
        for (index, &field) in fields.iter().enumerate() {
            let number = self.bits(Type::INT64, index as u128 + 1);
            parts.push(self.emit_hidden(Op::Builtin(Builtin::Getfield), &[value, number], field));
        }
        let tuple = self.emit_hidden(Op::Builtin(Builtin::Tuple), &parts, tuple);
        Some(self.emit(Op::SplatNew(ty), &[tuple], ty))
    }

    /// `typeassert`: a union to one member, which throws if the value is of another; any other value to its
    /// own type.
    fn assert_type(&mut self, value: Value, ty: Type) -> Value {
        let wanted = match self.cx.types.kind(ty) {
            TypeKind::Union(members) if self.options.features.throws => {
                self.rng.pick(members).copied().unwrap_or(ty)
            }
            _ => ty,
        };
        let asked = self.func.constant(self.cx.types.type_constant(wanted));
        self.builtin(Builtin::Typeassert, &[value, asked], wanted)
    }

    fn mark(&mut self) {
        match self.rng.below(6) {
            0 => {
                self.emit_void(Op::CodeCoverage, &[], &[], &[]);
            }
            1 => {
                let object = self.palette.any(self.rng);
                let kept = self.value(object);
                self.emit_void(Op::Builtin(Builtin::Donotdelete), &[kept], &[], &[Type::NOTHING]);
            }
            2 if !self.loops.is_empty() => {
                let simd = self.cx.names.intern("julia.simdloop");
                let meta =
                    self.func.add_meta(MetaData { items: vec![MetaItem::Name(simd), MetaItem::Nothing] });
                self.emit_void(Op::LoopInfo(meta), &[], &[], &[]);
            }
            3 => {
                let object = self.palette.any(self.rng);
                let kept = self.value(object);
                let token = self.emit_hidden(Op::GcPreserveBegin, &[kept], Type::TOKEN);
                self.straight();
                self.emit_void(Op::GcPreserveEnd, &[token], &[], &[]);
            }
            _ => self.pass_on(),
        }
    }
}
