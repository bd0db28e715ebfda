//! Functions of one extreme shape and any size, which reveal quadratic algorithms.
//!
//! | shape | picture | stress on |
//! |---|---|---|
//! | straight line | one block of `size` operations | backward searches in a block |
//! | wide | `size` values, all needed at the end | liveness, register allocation |
//! | diamonds | `size` consecutive ifs | walks over blocks from each block |
//! | ladder | `size` exits to one block | predecessors of one block, its φ |
//! | φ web | a loop with `size` φs | φs, copies at the back edge |
//! | deep loops | loops in loops, `size` deep | recursion, loop analyses |
//! | deep ifs | ifs in ifs, `size` deep | recursion, dominators |
//! | constants | `size` different constants | interning |
//! | calls | repeated calls of a C function | live ranges across calls, callee by callee |
//! | memory | loads and stores of 64 words in turn | memory analyses, chains of accesses |
//!
//! Every shape is a module with one function, `f(x::Int64)::Int64`, which calls at most C. It terminates
//! after a number of steps linear in its size; of the deep loops, only the innermost has a body, and each
//! runs once.

use brolga_ir::func::ForeignData;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Context, Func, Level, Module, Op, Param, Signature, Type, Value};

/// The extreme shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// One long block.
    StraightLine,
    /// Many values live at once.
    Wide,
    /// Consecutive ifs.
    Diamonds,
    /// Many edges into one block.
    Ladder,
    /// Many φs in one loop.
    PhiWeb,
    /// Loops nested in loops.
    DeepLoops,
    /// Ifs nested in ifs.
    DeepIfs,
    /// Many constants.
    Constants,
    /// Many calls.
    Calls,
    /// Many loads and stores.
    Memory,
}

impl Shape {
    pub const ALL: [Shape; 10] = [
        Shape::StraightLine,
        Shape::Wide,
        Shape::Diamonds,
        Shape::Ladder,
        Shape::PhiWeb,
        Shape::DeepLoops,
        Shape::DeepIfs,
        Shape::Constants,
        Shape::Calls,
        Shape::Memory,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Shape::StraightLine => "straight-line",
            Shape::Wide => "wide",
            Shape::Diamonds => "diamonds",
            Shape::Ladder => "ladder",
            Shape::PhiWeb => "phi-web",
            Shape::DeepLoops => "deep-loops",
            Shape::DeepIfs => "deep-ifs",
            Shape::Constants => "constants",
            Shape::Calls => "calls",
            Shape::Memory => "memory",
        }
    }
}

/// The module with the function of this shape. The number of instructions is proportional to `size`.
///
/// # Panics
///
/// Never: a module takes its first function.
pub fn module(shape: Shape, size: usize) -> Module {
    let cx = Context::new();
    let mut build = Build::new(&cx);
    let x = build.func.params()[1];
    let result = match shape {
        Shape::StraightLine => build.straight_line(x, size),
        Shape::Wide => build.wide(x, size),
        Shape::Diamonds => build.diamonds(x, size),
        Shape::Ladder => build.ladder(x, size),
        Shape::PhiWeb => build.phi_web(x, size),
        Shape::DeepLoops => build.deep_loops(x, size),
        Shape::DeepIfs => build.deep_ifs(x, size),
        Shape::Constants => build.constants(x, size),
        Shape::Calls => build.calls(x, size),
        Shape::Memory => build.memory(x, size),
    };
    build.push(Op::Return, &[result], &[], &[]);
    let func = build.func;
    let mut module = Module::new(cx);
    module.add_func(func).expect("the first function of a module clashes with nothing");
    module
}

/// The function and the block to whose end code is added.
struct Build<'a> {
    cx: &'a Context,
    func: Func,
    block: Block,
}

impl<'a> Build<'a> {
    fn new(cx: &'a Context) -> Self {
        let name = cx.names.intern("f");
        let params = vec![
            Param { name: None, ty: cx.types.function(name) },
            Param { name: Some(cx.names.intern("x")), ty: Type::INT64 },
        ];
        let sig = Signature { params, results: vec![Type::INT64], vararg: false, ..Signature::default() };
        let mut func = Func::new(name, Level::High, sig);
        let block = func.make_block();
        func.append_block(block);
        Build { cx, func, block }
    }

    fn push(&mut self, op: Op, args: &[Value], blocks: &[Block], results: &[Type]) -> Value {
        let inst = self.func.make_inst(op, args, blocks, results);
        self.func.append_inst(inst, self.block);
        // Terminators have no result; the argument is returned instead and is not used.
        self.func.result(inst).unwrap_or(self.func.params()[0])
    }

    fn int(&mut self, op: Intrinsic, a: Value, b: Value) -> Value {
        self.push(Op::Intrinsic(op), &[a, b], &[], &[Type::INT64])
    }

    fn less(&mut self, a: Value, b: Value) -> Value {
        self.push(Op::Intrinsic(Intrinsic::SltInt), &[a, b], &[], &[Type::BOOL])
    }

    fn constant(&mut self, value: usize) -> Value {
        self.func.bits(&self.cx.types, Type::INT64, value as u128)
    }

    fn start(&mut self, block: Block) {
        self.func.append_block(block);
        self.block = block;
    }

    fn goto(&mut self, target: Block) {
        self.push(Op::Goto, &[], &[target], &[]);
    }

    fn branch(&mut self, condition: Value, then: Block, otherwise: Block) {
        self.push(Op::Branch, &[condition], &[then, otherwise], &[]);
    }

    fn phi(&mut self, edges: &[(Block, Value)]) -> Value {
        let (blocks, values): (Vec<Block>, Vec<Value>) = edges.iter().copied().unzip();
        self.push(Op::Phi, &values, &blocks, &[Type::INT64])
    }

    /// The n-th operation of a sequence that no rule simplifies.
    fn step(&mut self, n: usize, a: Value, b: Value) -> Value {
        const STEPS: [Intrinsic; 4] =
            [Intrinsic::AddInt, Intrinsic::XorInt, Intrinsic::MulInt, Intrinsic::SubInt];
        self.int(STEPS[n % STEPS.len()], a, b)
    }

    fn straight_line(&mut self, x: Value, size: usize) -> Value {
        let (mut before, mut last) = (x, self.constant(1));
        for n in 0..size {
            let next = self.step(n, last, before);
            before = last;
            last = next;
        }
        last
    }

    fn wide(&mut self, x: Value, size: usize) -> Value {
        let mut values = Vec::with_capacity(size / 2);
        for n in 0..size / 2 {
            let number = self.constant(n + 2);
            values.push(self.int(Intrinsic::MulInt, x, number));
        }
        values.into_iter().rev().fold(x, |sum, value| self.int(Intrinsic::XorInt, sum, value))
    }

    fn diamonds(&mut self, x: Value, size: usize) -> Value {
        let mut last = x;
        for n in 0..size / 5 {
            let [then, otherwise, join] = std::array::from_fn(|_| self.func.make_block());
            let limit = self.constant(n);
            let condition = self.less(last, limit);
            self.branch(condition, then, otherwise);
            self.start(then);
            let a = self.step(n, last, x);
            self.goto(join);
            self.start(otherwise);
            let b = self.step(n + 1, last, x);
            self.goto(join);
            self.start(join);
            last = self.phi(&[(then, a), (otherwise, b)]);
        }
        last
    }

    fn ladder(&mut self, x: Value, size: usize) -> Value {
        let exit = self.func.make_block();
        let mut edges = Vec::new();
        let mut last = x;
        for n in 0..size / 3 {
            let next = self.func.make_block();
            last = self.step(n, last, x);
            let limit = self.constant(n);
            let goes_on = self.less(limit, last);
            edges.push((self.block, last));
            self.branch(goes_on, next, exit);
            self.start(next);
        }
        edges.push((self.block, last));
        self.goto(exit);
        self.start(exit);
        self.phi(&edges)
    }

    fn phi_web(&mut self, x: Value, size: usize) -> Value {
        let count = (size / 2).max(1);
        let before = self.block;
        let [header, body, exit] = std::array::from_fn(|_| self.func.make_block());
        let first: Vec<Value> = (0..count).map(|n| self.constant(n)).collect();
        let zero = self.constant(0);
        self.goto(header);
        self.start(header);
        let counter = self.phi(&[(before, zero)]);
        let phis: Vec<Value> = first.iter().map(|&value| self.phi(&[(before, value)])).collect();
        let trips = self.constant(4);
        let goes_on = self.less(counter, trips);
        self.branch(goes_on, body, exit);
        self.start(body);
        let one = self.constant(1);
        let stepped = self.int(Intrinsic::AddInt, counter, one);
        // Each φ becomes the previous value of its neighbour, plus the argument.
        let next: Vec<Value> = (0..count).map(|n| self.step(n, phis[(n + 1) % count], x)).collect();
        self.goto(header);
        for (phi, value) in phis.iter().zip(&next).chain([(&counter, &stepped)]) {
            if let Some(inst) = self.func.def_inst(*phi) {
                self.func.add_phi_edge(inst, body, *value);
            }
        }
        self.start(exit);
        phis[count / 2]
    }

    fn deep_loops(&mut self, x: Value, size: usize) -> Value {
        let (zero, one) = (self.constant(0), self.constant(1));
        let mut open = Vec::new();
        for _ in 0..size / 5 {
            let before = self.block;
            let [header, body, exit] = std::array::from_fn(|_| self.func.make_block());
            self.goto(header);
            self.start(header);
            let counter = self.phi(&[(before, zero)]);
            let goes_on = self.less(counter, one);
            self.branch(goes_on, body, exit);
            self.start(body);
            open.push((header, exit, counter));
        }
        let mut innermost = x;
        for n in 0..8 {
            innermost = self.step(n, innermost, x);
        }
        while let Some((header, exit, counter)) = open.pop() {
            let stepped = self.int(Intrinsic::AddInt, counter, one);
            if let Some(inst) = self.func.def_inst(counter) {
                self.func.add_phi_edge(inst, self.block, stepped);
            }
            self.goto(header);
            self.start(exit);
            innermost = counter;
        }
        innermost
    }

    fn deep_ifs(&mut self, x: Value, size: usize) -> Value {
        let mut open = Vec::new();
        let mut last = x;
        for n in 0..size / 4 {
            let [then, join] = std::array::from_fn(|_| self.func.make_block());
            let limit = self.constant(n);
            let condition = self.less(limit, last);
            open.push((self.block, last, join));
            self.branch(condition, then, join);
            self.start(then);
            last = self.step(n, last, x);
        }
        while let Some((head, value, join)) = open.pop() {
            let inner = self.block;
            self.goto(join);
            self.start(join);
            last = self.phi(&[(inner, last), (head, value)]);
        }
        last
    }

    fn constants(&mut self, x: Value, size: usize) -> Value {
        let mut last = x;
        for n in 0..size {
            let number = self.constant(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            last = self.step(n, last, number);
        }
        last
    }

    fn foreign(&mut self, name: &str, argument: Value, param: Type, result: Type) -> Value {
        let name = Some(self.cx.names.intern(name));
        let data = ForeignData { name, result, params: [param].into(), variadic_after: None };
        let foreign = self.func.add_foreign(data);
        self.push(Op::ForeignCall(foreign), &[argument], &[], &[result])
    }

    fn pointer_to(&self, ty: Type) -> Type {
        self.cx.types.ptr(ty).expect("there are pointers to numbers and to nothing")
    }

    fn calls(&mut self, x: Value, size: usize) -> Value {
        let mut last = x;
        for n in 0..size / 2 {
            let called = self.foreign("labs", last, Type::INT64, Type::INT64);
            last = self.step(n, called, x);
        }
        last
    }

    fn memory(&mut self, x: Value, size: usize) -> Value {
        const WORDS: usize = 64;
        let raw_type = self.pointer_to(Type::NOTHING);
        let typed = self.pointer_to(Type::INT64);
        let bytes = self.func.bits(&self.cx.types, Type::UINT64, 8 * WORDS as u128);
        let raw = self.foreign("malloc", bytes, Type::UINT64, raw_type);
        let pointer = self.push(Op::Intrinsic(Intrinsic::Bitcast), &[raw], &[], &[typed]);
        let align = self.constant(8);
        let store = |this: &mut Self, n: usize, value: Value| {
            let index = this.constant(n % WORDS + 1);
            this.push(Op::Intrinsic(Intrinsic::Pointerset), &[pointer, value, index, align], &[], &[typed]);
        };
        for n in 0..WORDS.min(size / 3 + 1) {
            store(self, n, x);
        }
        let mut last = x;
        for n in 0..size / 3 {
            // A word that was stored some steps ago, sometimes in the previous step.
            let index = self.constant(n * 7 % WORDS.min(size / 3 + 1) + 1);
            let loaded = self.push(
                Op::Intrinsic(Intrinsic::Pointerref),
                &[pointer, index, align],
                &[],
                &[Type::INT64],
            );
            last = self.step(n, loaded, last);
            store(self, n, last);
        }
        self.foreign("free", raw, raw_type, Type::NOTHING);
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_about_the_size_that_was_asked_for() {
        for shape in Shape::ALL {
            let module = module(shape, 1000);
            let (_, func) = module.funcs().next().unwrap();
            let count: usize = func.blocks().map(|block| func.block_insts(block).count()).sum();
            assert!((700..2000).contains(&count), "{}: {count}", shape.name());
            for block in func.blocks() {
                assert!(func.terminator(block).is_some(), "{}: {block}", shape.name());
            }
        }
    }
}
