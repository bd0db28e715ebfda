//! Reads at the entry of a function with loops, after its calls and its φs, which prove to the loop passes that parameters, results and φs are arrays.
//!
//! ```text
//! f(a::Vector{Int64}, m::Sparse)          _1 = a, _2 and _3 = the vectors in m
//!
//!    load(_1; size)                       _1 is an array: its header may be loaded anywhere
//!    %n = eq_int(_2, null)
//!    %d = ifelse(%n, _1, _2)              the loads from the header of _2 use %d, which is an array, too,
//!    load(%d; size)                       whether the field has a value or not
//!
//! %5 = invoke collect(…)::Vector{Int64}    a result is an array wherever it is known:
//!      load(%5; size)                      after a check in a loop its header may be loaded before the loop
//!
//! %7 = φ (#1 => %5, #4 => %8)              arrays that change places in each iteration of a loop (`u, w = w, u`):
//! %8 = φ (#1 => %6, #4 => %7)              the operand of every edge is an array,
//!      load(%7; size)                      so both headers may be hoisted out of an inner loop
//! ```
//!
//! A vector in an immutable struct may be undefined, and each read of the field tests for that. So nothing before a loop proves that the vector
//! is defined, and each iteration would load its header again after the test. After the test, the field has a value and `%d`
//! is that value; before the loop `%d` is an array in any case, perhaps the other one.
//!
//! **E1.** Only addresses of loads from headers are replaced: these loads run where the reference is not null, because they would fail otherwise.
//! **E2.** The values that are read here have no uses.
//!
//! **E3.** A φ counts if it has an operand for every edge and each is an array: a parameter, the result of an instruction,
//! or such a φ. An operand that may be undefined comes from a missing edge, of the φ or of one that it is derived from.
//!
//! Not done: fields of mutable objects, references to `Memory`, functions without an array parameter beside the struct.

use super::{Known, Lowering};
use brolga_ir::abi::LeafRole;
use brolga_ir::analysis::{Cfg, Rpo};
use brolga_ir::func::{Place, ValueDef};
use brolga_ir::op::Region;
use brolga_ir::{Block, Inst, Op, Type, Value};
use rustc_hash::FxHashSet;

/// An array with its element type and dimensions.
#[derive(Clone, Copy)]
pub(super) struct ArrayLeaf {
    value: Value,
    elem: Type,
    dims: u32,
}

impl Lowering<'_> {
    /// Reads the last dimension of each array parameter at the entry and of each array that a call returns, and the first of each array in a struct that is
    /// a parameter. The last dimension ends the header, so after such a read the whole header is readable.
    pub(super) fn read_array_params(&mut self, cfg: &Cfg, rpo: &Rpo) {
        let src = self.src;
        let mut sure = Vec::new();
        let mut maybe_undefined = Vec::new();
        for (param, &value) in src.sig.params.iter().zip(src.params()) {
            let Known::Leaves { start, .. } = self.known[value] else { continue };
            let Ok(form) = self.find_form(param.ty) else { continue };
            let start = start as usize;
            for (at, leaf) in form.leaves.iter().enumerate() {
                let (LeafRole::Value(ty), Some(&value)) = (leaf.role, self.pool.get(start + at)) else {
                    continue;
                };
                if let Some((elem, dims)) = self.types.array_parts(ty).filter(|&(_, dims)| dims > 0) {
                    let list = if ty == param.ty { &mut sure } else { &mut maybe_undefined };
                    list.push(ArrayLeaf { value, elem, dims });
                }
            }
        }
        let first = self.out.entry().and_then(|b| self.out.first_inst(b));
        self.before = first;
        self.place = first.map_or_else(Place::default, |i| self.out.place(i));
        for array in &sure {
            self.read_dim(array.value, array.elem, array.dims, array.dims);
        }
        if let Some(other) = sure.first() {
            maybe_undefined.into_iter().for_each(|array| self.read_if_defined(array, other.value));
        }
        for (call, array) in std::mem::take(&mut self.array_results) {
            self.before = self.out.next_inst(call);
            self.place = self.out.place(call);
            self.read_dim(array.value, array.elem, array.dims, array.dims);
        }
        for (block, value, elem, dims) in self.array_phis(cfg, rpo) {
            self.before = self.out.block_insts(block).find(|&inst| self.out.op(inst) != Op::Phi);
            self.place = self.before.map_or_else(Place::default, |inst| self.out.place(inst));
            self.read_dim(value, elem, dims, dims);
        }
        self.before = None;
    }

    /// The φs that are arrays whichever edge led to them, with their element types and dimensions.
    fn array_phis(&self, cfg: &Cfg, rpo: &Rpo) -> Vec<(Block, Value, Type, u32)> {
        let (src, types) = (self.src, self.types);
        let dims_of = |phi: Value| types.array_parts(src.ty(phi)).filter(|&(_, dims)| dims > 0);
        let mut found: Vec<(Block, Inst, Value)> = Vec::new();
        for &block in rpo.blocks() {
            for inst in src.block_insts(block).take_while(|&inst| src.op(inst) == Op::Phi) {
                let whole = src.phi_edges(inst).count() == cfg.preds(block).len();
                let array = src.result(inst).filter(|&phi| whole && dims_of(phi).is_some());
                found.extend(array.map(|phi| (block, inst, phi)));
            }
        }
        loop {
            let before = found.len();
            let sure: FxHashSet<Value> = found.iter().map(|&(.., phi)| phi).collect();
            found.retain(|&(_, inst, phi)| {
                src.phi_edges(inst).all(|(_, value)| self.is_made_or(value, src.ty(phi), &sure))
            });
            if found.len() == before {
                break;
            }
        }
        let low = |(block, _, phi): (Block, Inst, Value)| {
            let Known::Leaves { start, count: 1, .. } = self.known[phi] else { return None };
            let (elem, dims) = dims_of(phi)?;
            Some((self.heads[block].expand()?, *self.pool.get(start as usize)?, elem, dims))
        };
        found.into_iter().filter_map(low).collect()
    }

    /// Whether a value has this type, and is a parameter, made by an instruction or one of these φs.
    fn is_made_or(&self, mut value: Value, ty: Type, phis: &FxHashSet<Value>) -> bool {
        let src = self.src;
        loop {
            if src.ty(value) != ty || matches!(src.value_def(value), ValueDef::Const(_)) {
                return false;
            }
            match src.def_inst(value).map(|inst| (src.op(inst), src.args(inst))) {
                Some((Op::Copy | Op::Pi, &[of])) => value = of,
                Some((Op::Phi | Op::PhiC | Op::Copy | Op::Pi | Op::Upsilon, _)) => {
                    return phis.contains(&value);
                }
                _ => return true,
            }
        }
    }

    /// Notes a call that returns an array.
    pub(super) fn note_array_result(&mut self, call: Inst, ty: Type) {
        let parts = self.types.array_parts(ty).filter(|&(_, dims)| dims > 0);
        if let (Some((elem, dims)), Some(value)) = (parts, self.out.result(call)) {
            self.array_results.push((call, ArrayLeaf { value, elem, dims }));
        }
    }

    fn read_if_defined(&mut self, array: ArrayLeaf, other: Value) {
        let reads = self.header_loads(array.value);
        if reads.is_empty() {
            return;
        }
        let null = self.is_null(array.value);
        let defined = self.choose(null, other, array.value);
        // The other array may have one dimension only.
        self.read_dim(defined, array.elem, array.dims, 1);
        for read in reads {
            self.out.args_mut(read)[0] = defined;
        }
    }

    /// The loads from the header of an array.
    fn header_loads(&self, array: Value) -> Vec<Inst> {
        let is_header = |op| {
            let of_header = |region| matches!(region, Region::Header | Region::Size);
            matches!(op, Op::Load(access) if of_header(access.region))
        };
        let insts = self.out.blocks().flat_map(|block| self.out.block_insts(block));
        insts.filter(|&inst| self.out.args(inst) == [array] && is_header(self.out.op(inst))).collect()
    }
}
