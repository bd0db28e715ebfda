//! Functions full of mutable objects from a seed, before and after `alloc-opt`: the same value or exception for every argument.
//!
//! Three variables hold objects with an integer, a field that may be undefined, and two hold integers. Objects are made, written,
//! read, given to each other's fields and to other variables, in branches and loops; some escape at the end.

use brolga_interp::{Interp, Options as Limits, SimMemory, Val};
use brolga_ir::build::{BuildError, Builder, Variable};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::types::{DeclKind, FieldDecl};
use brolga_ir::{Context, Func, FuncId, Module, Op, Type, Value};
use brolga_opt::summary::summarise_module;
use brolga_opt::{Cx, Options, parse_passes, run_passes};

const SEEDS: u64 = 600;
const OBJECTS: u64 = 3;

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

struct Gen<'c> {
    dice: Dice,
    b: Builder<'c>,
    cell: Type,
    ints: [Variable; 2],
    objects: Vec<Variable>,
}

type Made<T> = Result<T, BuildError>;

impl Gen<'_> {
    fn int(&mut self) -> Made<Value> {
        match self.dice.below(3) {
            0 => {
                let n = self.dice.below(9) as i128;
                self.b.int(Type::INT64, n)
            }
            n => self.b.use_var(self.ints[n as usize - 1]),
        }
    }

    fn object(&mut self) -> Made<Value> {
        let n = self.dice.below(OBJECTS) as usize;
        self.b.use_var(self.objects[n])
    }

    fn set_int(&mut self, value: Value) -> Made<()> {
        let var = self.ints[self.dice.below(2) as usize];
        self.b.def_var(var, value)
    }

    fn set_object(&mut self, value: Value) -> Made<()> {
        let var = self.objects[self.dice.below(OBJECTS) as usize];
        self.b.def_var(var, value)
    }

    fn fresh(&mut self) -> Made<Value> {
        let n = self.int()?;
        let fields = match self.dice.below(3) {
            0 => vec![],
            1 => vec![n],
            _ => vec![n, n],
        };
        self.b.new_object(self.cell, &fields)
    }

    fn field(&mut self, object: Value, op: Builtin, rest: &[Value], ty: Type) -> Made<Value> {
        let name = if self.dice.below(2) == 0 { "a" } else { "b" };
        self.field_named(object, name, op, rest, ty)
    }

    fn field_named(
        &mut self,
        object: Value,
        name: &str,
        op: Builtin,
        rest: &[Value],
        ty: Type,
    ) -> Made<Value> {
        let field = self.b.symbol(name);
        let args: Vec<Value> = [object, field].iter().chain(rest).copied().collect();
        self.b.builtin(op, &args, ty)
    }

    fn statement(&mut self) -> Made<()> {
        match self.dice.below(20) {
            0..4 => {
                let object = self.fresh()?;
                self.set_object(object)
            }
            4 => {
                let object = self.object()?;
                self.set_object(object)
            }
            5..8 => {
                let (object, n) = (self.object()?, self.int()?);
                self.field(object, Builtin::Setfield, &[n], Type::INT64).map(|_| ())
            }
            8..11 => {
                let object = self.object()?;
                let n = self.field_named(object, "a", Builtin::Getfield, &[], Type::INT64)?;
                self.set_int(n)
            }
            11 => {
                let object = self.object()?;
                let (any, int) = (
                    self.field_named(object, "b", Builtin::Getfield, &[], Type::ANY)?,
                    self.b.type_value(Type::INT64),
                );
                let n = self.b.builtin(Builtin::Typeassert, &[any, int], Type::INT64)?;
                self.set_int(n)
            }
            12 => {
                let object = self.object()?;
                let yes = self.field(object, Builtin::Isdefined, &[], Type::BOOL)?;
                let (one, two) = (self.int()?, self.int()?);
                let n = self.b.ifelse(yes, one, two)?;
                self.set_int(n)
            }
            13 if self.dice.below(3) == 0 => {
                let (object, held) = (self.object()?, self.object()?);
                self.field_named(object, "b", Builtin::Setfield, &[held], self.cell).map(|_| ())
            }
            14 => {
                let object = self.object()?;
                let other = self.b.value(Op::Pi, &[object], self.cell)?;
                self.set_object(other)
            }
            16 | 17 => {
                let (object, n) = (self.object()?, self.int()?);
                self.b.invoke("bump", &[object, n], Type::INT64).map(|_| ())
            }
            18 => {
                let (object, other) = (self.object()?, self.object()?);
                let name = ["give", "hold", "hold"][self.dice.below(3) as usize];
                self.b.invoke(name, &[object, other], Type::INT64).map(|_| ())
            }
            19 if self.dice.below(2) == 0 => {
                let (object, n) = (self.object()?, self.int()?);
                let sum = self.b.invoke("bump", &[object, n], Type::INT64)?;
                self.set_int(sum)
            }
            _ => {
                let (x, y) = (self.int()?, self.int()?);
                let sum = self.b.intrinsic(Intrinsic::AddInt, &[x, y])?;
                self.set_int(sum)
            }
        }
    }

    fn region(&mut self, depth: u32) -> Made<()> {
        for _ in 0..1 + self.dice.below(4) {
            match self.dice.below(6) {
                0 if depth > 0 => self.diamond(depth - 1)?,
                1 if depth > 0 => self.repeat(depth - 1)?,
                _ => self.statement()?,
            }
        }
        Ok(())
    }

    fn diamond(&mut self, depth: u32) -> Made<()> {
        let (x, y) = (self.int()?, self.int()?);
        let less = self.b.intrinsic(Intrinsic::SltInt, &[x, y])?;
        let [yes, no, join] = [(); 3].map(|()| self.b.create_block());
        self.b.branch(less, yes, no)?;
        for block in [yes, no] {
            self.b.seal_block(block)?;
            self.b.switch_to_block(block)?;
            self.region(depth)?;
            self.b.goto(join)?;
        }
        self.b.seal_block(join)?;
        self.b.switch_to_block(join)
    }

    fn repeat(&mut self, depth: u32) -> Made<()> {
        let count = self.b.declare_var(Type::INT64);
        let (zero, one, limit) =
            (self.b.int(Type::INT64, 0)?, self.b.int(Type::INT64, 1)?, self.b.int(Type::INT64, 3)?);
        self.b.def_var(count, zero)?;
        let [head, body, done] = [(); 3].map(|()| self.b.create_block());
        self.b.goto(head)?;
        self.b.switch_to_block(head)?;
        let at = self.b.use_var(count)?;
        let more = self.b.intrinsic(Intrinsic::SltInt, &[at, limit])?;
        self.b.branch(more, body, done)?;
        self.b.seal_block(body)?;
        self.b.switch_to_block(body)?;
        self.region(depth)?;
        let next = self.b.intrinsic(Intrinsic::AddInt, &[at, one])?;
        self.b.def_var(count, next)?;
        self.b.goto(head)?;
        self.b.seal_block(head)?;
        self.b.seal_block(done)?;
        self.b.switch_to_block(done)
    }
}

/// Functions that change their arguments: `x.a = n + 1`, `x.a = y.a`, and `x.b = y`, which captures one.
fn helpers(cx: &Context, cell: Type) -> Made<[Func; 3]> {
    let a = |b: &mut Builder<'_>| b.symbol("a");
    let mut bump = Builder::high(cx, "bump", &[("x", cell), ("n", Type::INT64)], Type::INT64);
    let (x, n, one) = (bump.param(0)?, bump.param(1)?, bump.int(Type::INT64, 1)?);
    let (sum, field) = (bump.intrinsic(Intrinsic::AddInt, &[n, one])?, a(&mut bump));
    bump.builtin(Builtin::Setfield, &[x, field, sum], Type::INT64)?;
    bump.ret(&[sum])?;
    let mut give = Builder::high(cx, "give", &[("x", cell), ("y", cell)], Type::INT64);
    let (x, y, field) = (give.param(0)?, give.param(1)?, a(&mut give));
    let value = give.builtin(Builtin::Getfield, &[y, field], Type::INT64)?;
    give.builtin(Builtin::Setfield, &[x, field, value], Type::INT64)?;
    give.ret(&[value])?;
    let mut hold = Builder::high(cx, "hold", &[("x", cell), ("y", cell)], Type::INT64);
    let (x, y, field, one) = (hold.param(0)?, hold.param(1)?, hold.symbol("b"), hold.int(Type::INT64, 1)?);
    hold.builtin(Builtin::Setfield, &[x, field, y], cell)?;
    hold.ret(&[one])?;
    Ok([bump.finish()?, give.finish()?, hold.finish()?])
}

fn function(seed: u64, cx: &Context, cell: Type) -> Made<Func> {
    let mut b = Builder::high(cx, "f", &[("x", Type::INT64), ("y", Type::INT64)], Type::INT64);
    let ints = [(); 2].map(|()| b.declare_var(Type::INT64));
    let mut g = Gen { dice: Dice(seed), b, cell, ints, objects: Vec::new() };
    for n in 0..2 {
        let param = g.b.param(n)?;
        g.b.def_var(g.ints[n], param)?;
    }
    for _ in 0..OBJECTS {
        let var = g.b.declare_var(cell);
        g.objects.push(var);
        let object = g.fresh()?;
        g.b.def_var(var, object)?;
    }
    g.region(3)?;
    let object = g.object()?;
    let last = g.field_named(object, "a", Builtin::Getfield, &[], Type::INT64)?;
    let (x, y) = (g.int()?, g.int()?);
    let sum = g.b.intrinsic(Intrinsic::AddInt, &[x, y])?;
    let product = g.b.intrinsic(Intrinsic::MulInt, &[sum, last])?;
    if g.dice.below(4) == 0 {
        let object = g.object()?;
        let print = g.b.function_object("donotdelete");
        let nothing = g.b.call(print, &[object], Type::ANY)?;
        let _ = nothing;
    }
    g.b.ret(&[product])?;
    g.b.finish()
}

fn values(module: &Module) -> Vec<String> {
    let mut found = Vec::new();
    for (x, y) in [(0, 0), (1, 5), (7, 2), (3, -4)] {
        let limits = Limits { max_steps: 100_000, ..Limits::default() };
        let mut interp = Interp::new(module, limits, Box::new(SimMemory::default()));
        let int = |v: i64| Val::bits(&module.cx.types, Type::INT64, u128::from(v as u64));
        let outcome = interp.call(FuncId::from_u32(0), &[int(x), int(y)]);
        // Objects are numbered as they are made, exceptions too.
        let thrown = outcome.as_ref().err().map(|_| "throws".to_owned());
        found.push(thrown.unwrap_or_else(|| format!("{outcome:?}")));
    }
    found
}

#[test]
fn objects_that_stay_inside_are_taken_apart() {
    let (mut before, mut after, mut returned) = (0, 0, 0);
    for seed in 0..SEEDS {
        let cx = Context::new();
        let (names, types) = (&cx.names, &cx.types);
        let decl = types.declare(names.intern("Cell"), &[]).unwrap();
        let fields = [("a", Type::INT64), ("b", Type::ANY)];
        let fields = fields.map(|(name, ty)| FieldDecl::new(names.intern(name), ty));
        types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields: fields.into() }).unwrap();
        let cell = types.nominal(decl, &[]).unwrap();
        let func = function(seed, &cx, cell).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let mut module = Module::new(cx.clone());
        let id = module.add_func(func).unwrap();
        for helper in helpers(&cx, cell).unwrap() {
            module.add_func(helper).unwrap();
        }
        summarise_module(&mut module);
        let expected = values(&module);
        returned += expected.iter().filter(|v| *v != "throws").count();
        let count = |module: &Module| {
            let func = &module[id];
            func.blocks().flat_map(|b| func.block_insts(b)).filter(|&i| func.op(i) == Op::New(cell)).count()
        };
        before += count(&module);
        for (list, limit) in [
            ("alloc-opt", Some(1)),
            ("alloc-opt", None),
            ("call-effects,dce,alloc-opt,dce", None),
            ("inst-simplify,simplify-cfg,sroa,alloc-opt,inst-simplify,alloc-opt,dce", None),
        ] {
            let mut changed = module.clone();
            let options = Options { verify_each: true, ..Options::default() };
            let passes = parse_passes(list).unwrap();
            let done = run_passes(&changed, module[id].clone(), &passes, &options, &mut Cx::new(limit));
            changed[id] = done.unwrap_or_else(|error| panic!("seed {seed}, {list}: {error}")).0;
            assert_eq!(values(&changed), expected, "seed {seed}, {list}, fuel {limit:?}");
            if list == "alloc-opt" && limit.is_none() {
                after += count(&changed);
            }
        }
    }
    assert!(after * 4 < before * 3, "{after} of {before} objects are left");
    assert!(returned > SEEDS as usize, "{returned} calls returned");
}
