//! Types: sets of values, their layouts, and relations between types.
//!
//! Both levels of the IR use one id space. High IR values carry Julia types, low IR values carry [`LowType`]s:
//!
//! ```text
//!                Any ───────────────────────────── every Julia value
//!                 │
//!     abstract types: Number, Real, Integer, …    declared with `abstract type`
//!                 │
//!     concrete types: Int64, Tuple{Int64}, Node   a value has exactly one of them
//!                 │
//!              Union{}                            no value at all
//!
//!     i8 i16 i32 i64 i128 f16 f32 f64 ptr v128 …  low types: unrelated to all of the above
//! ```
//!
//! A type is interned: equal types have equal ids. The ids in [`Type`]'s constants are fixed; all others
//! depend on the order of first use, so printed output is never sorted by them.
//!
//! | file | content |
//! |---|---|
//! | `kind` | ids of types and declarations, the structure of a type |
//! | `declaration` | declarations of nominal types; errors |
//! | `storage` | how values are stored and passed: the results of `layout` |
//! | `builtin` | the builtin declarations |
//! | `table` | interning, declarations, instantiation of parametric types |
//! | `install` | a table that holds the builtin declarations |
//! | `layout` | sizes, alignments, field offsets, pointer maps |
//! | `above` | subtype tests between declarations |
//! | `statics` | the variables of a method's `where` |
//! | `union_all` | types with their own variables |
//! | `subtype` | `<:`, intersection tests, union normal form |
//! | `print` | the text of a type |
//! | `reflect` | the fields of a `DataType` |

mod above;
mod builtin;
mod declaration;
mod install;
mod kind;
mod layout;
mod print;
mod reflect;
mod statics;
mod storage;
mod subtype;
mod table;
mod union_all;

pub use builtin::decl;
pub use declaration::{
    DeclBody, DeclData, DeclKind, FieldDecl, MAX_DEPTH, MAX_WEIGHT, MAX_WIDTH, PrimitiveRepr, TypeError,
    Worlds,
};
pub use kind::{Decl, LowType, PtrClass, Type, TypeKind};
pub use print::TypeDisplay;
pub use reflect::{TextForm, TypeField};
pub use statics::{Pattern, StaticBound, StaticParam, Statics};
pub use storage::{Field, FieldRepr, Layout, LayoutError, Repr};
pub(crate) use table::FixedTypes;
pub use table::Types;
