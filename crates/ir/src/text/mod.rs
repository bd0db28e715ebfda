//! The text form: Julia's printed IR plus declarations, read and printed.
//!
//! ```text
//!            lex         parse*              resolve
//! text ───────────► tokens ───► syntax tree ────────► Module
//!   ▲                                                    │
//!   └────────────────────── print ───────────────────────┘
//! ```
//!
//! Two containers hold it, `.jlir` files and dumps of what Julia printed; one reader accepts both.
//! `docs/ir.md` has the grammar. Reading reports as many faults as make sense, each at its place, and never
//! panics; nesting is limited by [`MAX_DEPTH`], and every step is linear in the text.

mod lex;
mod literal;
mod operators;

pub mod ast;
mod elsewhere;
mod error;
mod parse;
mod parse_decl;
mod parse_expr;
mod parse_list;
mod parse_row;
mod print;
mod resolve;
mod wanted;

pub use error::SyntaxError;
pub use parse::{NotText, from_bytes, parse};
pub use parse_expr::MAX_DEPTH;
pub use print::{FuncText, ModuleText, show_func, show_module, show_unit};
pub use resolve::{
    Alone, Call, Check, Expression, Outcome, ResolveError, Surroundings, Term, Unit, read, read_among,
    read_call, read_expression, read_library,
};
