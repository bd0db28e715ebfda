//! One pass in each file; see [`Pass`](crate::Pass) and [the table](crate::pipeline).

pub(crate) mod dce;
pub(crate) mod simplify_cfg;
