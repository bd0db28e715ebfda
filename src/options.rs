//! The parameter types of the methods of [`Options`](crate::Options).

pub use brolga_engine::CpuTarget;
pub use brolga_gcroots::Lowering as Roots;
pub use brolga_ir::Arch;
pub use brolga_ir::doors::Door;
pub use brolga_jit::{LinkerKind, Mapping};
pub use brolga_opt::{CheckBounds, CpuFeatures, ExtraPass};
pub use brolga_runtime::Traces;
