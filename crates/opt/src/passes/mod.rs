//! One pass in each file; see [`Pass`](crate::Pass) and [the table](crate::pipeline).

pub(crate) mod alloc_opt;
pub(crate) mod bounds_fold;
pub(crate) mod call_effects;
pub(crate) mod correlated;
pub(crate) mod cse;
pub(crate) mod dce;
pub(crate) mod dse;
pub(crate) mod gvn;
pub(crate) mod indvars;
pub(crate) mod inline;
pub(crate) mod inst_simplify;
pub(crate) mod irce;
pub(crate) mod jump_threading;
pub(crate) mod licm;
pub(crate) mod loop_simplify;
pub(crate) mod rotate;
pub(crate) mod sccp;
pub(crate) mod simd_loop;
pub(crate) mod simplify_cfg;
pub(crate) mod sroa;
pub(crate) mod tail_recursion;
pub(crate) mod unfold_recursion;
pub(crate) mod union_split;
pub(crate) mod unroll;
pub(crate) mod unroll_full;
pub(crate) mod vectorize;
