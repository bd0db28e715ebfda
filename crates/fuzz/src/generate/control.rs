//! Regions: statements, ifs, loops, forests of forward edges, splits of unions, throws and returns.
//!
//! Shapes, with the φs that carry values out of them at `join` and `exit`:
//!
//! ```text
//! if        head ─┬─ then ─┬─ join      loop   pre ── header ─┬─ body … latch ── header
//!                 └─ else ─┘                                  └─ exit   (further exits from inside the body)
//!
//! forest    b0 ── b1 ── b2 ── b3        each block continues at the next one or jumps forward
//!            └─────┴─────┴───►┘
//! ```
//!
//! The first target of every branch is the block that is placed next, as in the text form. A join without
//! incoming edges is never placed.

use super::func::{FuncGen, Loop};
use brolga_ir::builtin::Builtin;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Block, Inst, Op, Type, TypeKind, Value};

/// A φ at the head of a loop, its value, and its type.
type Carried = Vec<(Inst, Value, Type)>;

impl FuncGen<'_> {
    /// Adds statements until the region is full or control leaves it.
    pub(super) fn region(&mut self, depth: usize) {
        let scope = self.scope();
        for _ in 0..self.rng.between(1, 8) {
            if self.block.is_none() || self.left == 0 {
                break;
            }
            self.statement(depth);
        }
        // The outermost region is the function's body, whose end still needs the region's values.
        if self.block.is_none() || !self.at_function_level(depth) {
            self.leave_scope(scope);
        }
    }

    fn at_function_level(&self, depth: usize) -> bool {
        depth == super::func::MAX_DEPTH
    }

    fn statement(&mut self, depth: usize) {
        let features = &self.options.features;
        if depth == 0 || self.rng.chance(65) || !self.affords(4 * self.left as u64 + 50) {
            if !self.memories.is_empty() && self.rng.chance(25) {
                return if self.rng.chance(80) { self.access() } else { self.atomic() };
            }
            if !self.objects.is_empty() && self.rng.chance(20) {
                return self.object_statement();
            }
            if features.dynamic && self.rng.chance(12) {
                return self.dynamic_statement();
            }
            return self.straight();
        }
        match self.rng.below(24) {
            0..6 => self.if_else(depth - 1),
            6 => self.partial_if(depth - 1),
            7..11 => self.counted_loop(depth - 1),
            11 | 12 => self.forest(depth - 1),
            13 if features.unions => self.split_union(depth - 1),
            14 if features.memory && self.rng.chance(50) => self.memory_region(depth - 1),
            14 if features.memory || features.arrays => self.walks(),
            15 if features.throws => self.throw_sometimes(),
            16 => self.leave_loop(),
            17 => self.return_sometimes(),
            18 if features.handlers => self.try_catch(depth - 1),
            19 if features.objects => self.object_region(depth - 1),
            20 if features.dynamic => self.split_any(depth - 1),
            21 if features.dynamic => self.dynamic_loop(),
            22 | 23 if features.ranges => self.iterated_loop(depth - 1),
            _ => self.straight(),
        }
    }

    // ----- joins -----

    pub(super) fn random_types(&mut self, most: usize) -> Vec<Type> {
        (0..self.rng.between(0, most)).map(|_| self.palette.any(self.rng)).collect()
    }

    pub(super) fn values_for(&mut self, types: &[Type]) -> Vec<Value> {
        types.iter().map(|&ty| self.value_for(ty)).collect()
    }

    /// If a block is open, computes the operands of the join's φs and ends the block with a jump to it.
    pub(super) fn go_to_join(&mut self, join: Block, types: &[Type], edges: &mut Vec<(Block, Vec<Value>)>) {
        if self.block.is_none() {
            return;
        }
        let values = self.values_for(types);
        if let Some(block) = self.block {
            edges.push((block, values));
            self.goto(join);
        }
    }

    /// Opens the join with a φ for each type; without edges it is unreachable and no block is open.
    pub(super) fn open_join(&mut self, join: Block, types: &[Type], edges: &[(Block, Vec<Value>)]) {
        if edges.is_empty() {
            self.block = None;
            return;
        }
        self.start(join);
        for (index, &ty) in types.iter().enumerate() {
            let incoming: Vec<_> = edges.iter().map(|(block, values)| (*block, values[index])).collect();
            let (_, value) = self.phi(ty, &incoming);
            self.offer(value);
        }
    }

    /// Fills `block` with a region that continues at `join`.
    pub(super) fn arm(
        &mut self,
        block: Block,
        depth: usize,
        join: Block,
        types: &[Type],
        edges: &mut Vec<(Block, Vec<Value>)>,
    ) {
        let scope = self.scope();
        self.start(block);
        self.region(depth);
        self.go_to_join(join, types, edges);
        self.leave_scope(scope);
    }

    // ----- ifs -----

    fn if_else(&mut self, depth: usize) {
        let condition = self.value(Type::BOOL);
        let types = self.random_types(3);
        let (then, join) = (self.func.make_block(), self.func.make_block());
        let mut edges = Vec::new();
        if self.rng.chance(60) {
            let otherwise = self.func.make_block();
            self.branch(condition, then, otherwise);
            self.arm(then, depth, join, &types, &mut edges);
            self.arm(otherwise, depth, join, &types, &mut edges);
        } else {
            let values = self.values_for(&types);
            if let Some(head) = self.block {
                edges.push((head, values));
            }
            self.branch(condition, then, join);
            self.arm(then, depth, join, &types, &mut edges);
        }
        self.open_join(join, &types, &edges);
    }

    /// A φ that lacks an operand for one incoming edge, and is used only where control came from another
    /// edge.
    fn partial_if(&mut self, depth: usize) {
        let condition = self.value(Type::BOOL);
        let blocks: [Block; 5] = std::array::from_fn(|_| self.func.make_block());
        let [then, otherwise, join, defined, after] = blocks;
        let ty = self.palette.any(self.rng);
        let (mut with, mut without) = (Vec::new(), Vec::new());
        self.branch(condition, then, otherwise);
        self.arm(then, depth.saturating_sub(1), join, &[ty], &mut with);
        self.arm(otherwise, depth.saturating_sub(1), join, &[], &mut without);
        let (Some((there, values)), Some((elsewhere, _))) = (with.first().cloned(), without.first().cloned())
        else {
            // One arm ends differently: the join is an ordinary one.
            return self.open_join(join, &[], if with.is_empty() { &without } else { &with });
        };
        self.start(join);
        let (yes, no) = (self.bits(Type::BOOL, 1), self.bits(Type::BOOL, 0));
        let (_, is_defined) = self.phi(Type::BOOL, &[(there, yes), (elsewhere, no)]);
        let (_, value) = self.phi(ty, &[(there, values[0])]);
        self.branch(is_defined, defined, after);
        let scope = self.scope();
        self.start(defined);
        self.offer(value);
        self.region(depth.saturating_sub(1));
        if self.block.is_some() {
            self.goto(after);
        }
        self.leave_scope(scope);
        self.start(after);
    }

    // ----- loops -----

    fn counted_loop(&mut self, depth: usize) {
        let trips = self.rng.between(1, 6) as u64;
        if !self.affords(trips * (self.left as u64 / 2 + 20)) {
            return self.straight();
        }
        let carried = self.random_types(3);
        let first = self.values_for(&carried);
        let (header, body) = (self.func.make_block(), self.func.make_block());
        let (latch, exit) = (self.func.make_block(), self.func.make_block());
        let exit_types = self.random_types(2);
        let tests_first = self.rng.chance(60);
        let Some(before) = self.block else { return };
        self.goto(header);
        let outer = self.scope();
        self.repeat *= trips + 1;
        self.start(header);
        let zero = self.bits(Type::INT64, 0);
        let (counter_phi, counter) = self.open_phi(Type::INT64, before, zero);
        let phis: Carried = carried
            .iter()
            .zip(&first)
            .map(|(&ty, &value)| {
                let (phi, value) = self.open_phi(ty, before, value);
                (phi, value, ty)
            })
            .collect();
        self.offer(counter);
        phis.iter().for_each(|&(_, value, _)| self.offer(value));
        self.loops.push(Loop {
            exit,
            exit_types,
            exit_edges: Vec::new(),
            latch,
            latch_edges: Vec::new(),
            carried,
            handlers: self.handlers,
        });
        let limit = self.bits(Type::INT64, u128::from(trips));
        if tests_first {
            let goes_on = self.intrinsic(Intrinsic::SltInt, &[counter, limit], Type::BOOL);
            self.exit_unless(goes_on, body);
        } else {
            self.goto(body);
            self.start(body);
        }
        self.region(depth);
        self.continue_loop();
        self.leave_scope(outer);
        self.close_loop(header, &phis, (counter_phi, counter), (!tests_first).then_some(limit));
        self.repeat /= trips + 1;
        self.leave_scope(outer);
        if let Some(Loop { exit, exit_types, exit_edges, .. }) = self.loops.pop() {
            self.open_join(exit, &exit_types, &exit_edges);
        }
    }

    /// The latch, if it is reachable: steps the counter, closes the φs, and jumps back.
    fn close_loop(&mut self, header: Block, phis: &Carried, counter: (Inst, Value), limit: Option<Value>) {
        let Some(Loop { latch, latch_edges, carried, .. }) = self.loops.last_mut() else { return };
        let (latch, carried) = (*latch, carried.clone());
        let edges = std::mem::take(latch_edges);
        if edges.is_empty() {
            return;
        }
        self.start(latch);
        let mut next = Vec::new();
        for (index, &ty) in carried.iter().enumerate() {
            let incoming: Vec<_> = edges.iter().map(|(block, values)| (*block, values[index])).collect();
            next.push(match incoming.as_slice() {
                [(_, only)] => *only,
                _ => self.phi(ty, &incoming).1,
            });
        }
        let one = self.bits(Type::INT64, 1);
        let stepped = self.intrinsic(Intrinsic::AddInt, &[counter.1, one], Type::INT64);
        if let Some(limit) = limit {
            let goes_on = self.intrinsic(Intrinsic::SltInt, &[stepped, limit], Type::BOOL);
            let back = self.func.make_block();
            self.exit_unless(goes_on, back);
        }
        let Some(from) = self.block else { return };
        self.close_phi(counter.0, from, stepped);
        for (&(phi, _, _), &value) in phis.iter().zip(&next) {
            self.close_phi(phi, from, value);
        }
        self.goto(header);
    }

    /// Leaves the innermost loop unless the condition holds, and continues in `stay`.
    pub(super) fn exit_unless(&mut self, condition: Value, stay: Block) {
        let Some(types) = self.loops.last().map(|l| l.exit_types.clone()) else { return };
        let values = self.values_for(&types);
        let Some(here) = self.block else { return };
        let Some(innermost) = self.loops.last_mut() else { return };
        innermost.exit_edges.push((here, values));
        let exit = innermost.exit;
        self.branch(condition, stay, exit);
        self.start(stay);
    }

    pub(super) fn continue_loop(&mut self) {
        if self.block.is_none() {
            return;
        }
        let Some(types) = self.loops.last().map(|l| l.carried.clone()) else { return };
        let values = self.values_for(&types);
        let Some(here) = self.block else { return };
        let Some(innermost) = self.loops.last_mut() else { return };
        innermost.latch_edges.push((here, values));
        let latch = innermost.latch;
        self.goto(latch);
    }

    /// `if c; break; end` out of any enclosing loop, or `if c; continue; end`.
    fn leave_loop(&mut self) {
        let reachable: Vec<usize> =
            (0..self.loops.len()).filter(|&n| self.loops[n].handlers == self.handlers).collect();
        let Some(&chosen) = self.rng.pick(&reachable) else { return self.straight() };
        let condition = self.value(Type::BOOL);
        let (leave, stay) = (self.func.make_block(), self.func.make_block());
        self.branch(condition, leave, stay);
        let scope = self.scope();
        self.start(leave);
        if chosen + 1 == self.loops.len() && self.rng.chance(40) {
            self.continue_loop();
        } else {
            let types = self.loops[chosen].exit_types.clone();
            let values = self.values_for(&types);
            if let Some(here) = self.block {
                self.loops[chosen].exit_edges.push((here, values));
                let exit = self.loops[chosen].exit;
                self.goto(exit);
            }
        }
        self.leave_scope(scope);
        self.start(stay);
    }

    // ----- forward edges without structure -----

    /// A sequence of blocks, each of which continues to the next or jumps to any later one.
    fn forest(&mut self, depth: usize) {
        let count = self.rng.between(3, 6);
        let blocks: Vec<Block> = (0..count).map(|_| self.func.make_block()).collect();
        // The types of the values passed to each block by its predecessors.
        let types: Vec<Vec<Type>> = (0..count).map(|_| self.random_types(2)).collect();
        let mut edges: Vec<Vec<(Block, Vec<Value>)>> = vec![Vec::new(); count];
        self.go_to_join(blocks[0], &types[0], &mut edges[0]);
        let scope = self.scope();
        for index in 0..count {
            let last = index + 1 == count;
            let incoming = std::mem::take(&mut edges[index]);
            self.open_join(blocks[index], &types[index], &incoming);
            if last || self.block.is_none() {
                if !last {
                    self.leave_scope(scope);
                }
                continue;
            }
            if self.rng.chance(50) {
                self.region(depth.min(1));
            } else {
                self.straight();
            }
            let far = self.rng.between(index + 1, count - 1);
            if self.block.is_some() && far > index + 1 {
                let condition = self.value(Type::BOOL);
                let (near_values, far_values) =
                    (self.values_for(&types[index + 1]), self.values_for(&types[far]));
                if let Some(here) = self.block {
                    edges[index + 1].push((here, near_values));
                    edges[far].push((here, far_values));
                    self.branch(condition, blocks[index + 1], blocks[far]);
                }
            } else {
                self.go_to_join(blocks[index + 1], &types[index + 1], &mut edges[index + 1]);
            }
            self.leave_scope(scope);
        }
    }

    // ----- unions -----

    /// Tests the type of a union's value, and continues with the value narrowed to that type.
    fn split_union(&mut self, depth: usize) {
        let Some(&union) = self.rng.pick(&self.palette.unions) else { return };
        let TypeKind::Union(members) = self.cx.types.kind(union) else { return };
        let value = self.value(union);
        let Some(&member) = self.rng.pick(members) else { return };
        let Ok(rest) = self.cx.types.difference(union, member) else { return };
        let asked = self.func.constant(self.cx.types.type_constant(member));
        let is_member = self.builtin(Builtin::Isa, &[value, asked], Type::BOOL);
        let (then, otherwise) = (self.func.make_block(), self.func.make_block());
        let join = self.func.make_block();
        let types = self.random_types(2);
        let mut edges = Vec::new();
        self.branch(is_member, then, otherwise);
        for (block, narrowed) in [(then, member), (otherwise, rest)] {
            let scope = self.scope();
            self.start(block);
            let exact = self.is_exact(value);
            let narrow = self.emit(Op::Pi, &[value], narrowed);
            if exact {
                self.set_exact(narrow);
            }
            self.region(depth);
            self.go_to_join(join, &types, &mut edges);
            self.leave_scope(scope);
        }
        self.open_join(join, &types, &edges);
    }

    // ----- ends -----

    /// Runs `bad`, which does not return, if the condition holds.
    pub(super) fn throw_if(&mut self, condition: Value, bad: impl FnOnce(&mut Self)) {
        let (throws, goes_on) = (self.func.make_block(), self.func.make_block());
        self.branch(condition, throws, goes_on);
        let scope = self.scope();
        self.start(throws);
        bad(self);
        if self.block.is_some() {
            self.end(Op::Unreachable, &[], &[]);
        }
        self.leave_scope(scope);
        self.start(goes_on);
    }

    /// A condition that is rarely true, so that most calls continue.
    fn rare_condition(&mut self) -> Value {
        let ty = self.palette.int(self.rng);
        let value = self.value(ty);
        let other = self.literal(ty);
        self.intrinsic(Intrinsic::EqInt, &[value, other], Type::BOOL)
    }

    fn throw_sometimes(&mut self) {
        let condition = self.rare_condition();
        let name = |this: &Self, text: &str| this.cx.names.intern(text);
        let text = |this: &mut Self| this.literal(Type::STRING);
        if self.rng.chance(15) {
            let flag = self.intrinsic(Intrinsic::NotInt, &[condition], Type::BOOL);
            let variable = name(self, "maybe");
            self.emit_void(Op::ThrowUndefIfNot(variable), &[flag], &[], &[Type::NOTHING]);
            return;
        }
        let kind = self.rng.below(4);
        self.throw_if(condition, |this| match kind {
            0..=2 => {
                let function = name(this, if kind == 2 { "_throw_argerror" } else { "error" });
                let message = text(this);
                this.invoke(function, &[Type::STRING], &[message], Type::BOTTOM);
            }
            _ => {
                let function = name(this, "throw_inexacterror");
                let ty = this.palette.int(this.rng);
                let (symbol, value) = (this.symbol("trunc"), this.value(ty));
                let target = this.func.constant(this.cx.types.type_constant(Type::INT8));
                let Ok(of_target) = this.cx.types.type_of(Type::INT8) else { return };
                let params = [Type::SYMBOL, of_target, ty];
                this.invoke(function, &params, &[symbol, target, value], Type::BOTTOM);
            }
        });
    }

    fn return_sometimes(&mut self) {
        if self.handlers > 0 {
            return self.straight();
        }
        let condition = self.rare_condition();
        let (leave, stay) = (self.func.make_block(), self.func.make_block());
        self.branch(condition, leave, stay);
        let scope = self.scope();
        self.start(leave);
        self.return_early();
        self.leave_scope(scope);
        self.start(stay);
    }

    /// Returns a value of the function's result type in the middle of the function.
    pub(super) fn return_early(&mut self) {
        let value = self.value_for(self.result);
        if self.block.is_some() {
            self.end(Op::Return, &[value], &[]);
        }
    }

    /// Returns at the end of the function: a digest of the unused values, if it fits the result type.
    pub(super) fn return_late(&mut self) {
        let value = match self.cx.types.kind(self.result) {
            _ if self.result == Type::UINT64 => self.digest(),
            TypeKind::Tuple { elems, vararg: None } if elems.len() == 2 && elems[1] == Type::UINT64 => {
                let parts = [self.value(elems[0]), self.digest()];
                self.builtin(Builtin::Tuple, &parts, self.result)
            }
            _ => self.value_for(self.result),
        };
        if self.block.is_some() {
            self.end(Op::Return, &[value], &[]);
        }
    }
}
