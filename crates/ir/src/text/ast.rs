//! The surface syntax tree: the text's content before names are looked up.
//!
//! Both containers (`.jlir` files and dumps of Julia's printed IR) yield the same tree. One kind of node,
//! [`Expr`], stands for values and for types, because Julia's types are expressions. Names are slices of the source
//! unless they had to be unescaped. Every node has its place.
//!
//! ```text
//! File ─┬─ TypeDecl ── Field
//!       ├─ GlobalDecl
//!       ├─ Function ─┬─ Signature ── Param
//!       │            └─ Block ── Row ── Stmt ── Expr
//!       └─ Check
//! ```
//!
//! Invariants: no tree is deeper than [`MAX_DEPTH`](super::MAX_DEPTH), so that recursion over it (dropping it
//! included) is safe; labels of rows and blocks are as written, unique or not.

use std::borrow::Cow;
use std::fmt;

use crate::diag::Span;
use crate::hints::{BranchWeights, Inlining};
use crate::module::GlobalKind;
use crate::op::Level;

/// A name as written, without the quotes of `var"…"`.
pub type Name<'a> = Cow<'a, str>;

/// A whole source.
#[derive(Clone, Debug, Default)]
pub struct File<'a> {
    /// Declared types, in order.
    pub types: Vec<TypeDecl<'a>>,
    /// Declared globals, in order.
    pub globals: Vec<GlobalDecl<'a>>,
    /// Functions, in order. The first one is the main function of a dump.
    pub functions: Vec<Function<'a>>,
    /// Tests, in order.
    pub checks: Vec<Check<'a>>,
}

/// `struct`, `mutable struct`, `abstract type` or `primitive type`.
#[derive(Clone, Debug)]
pub struct TypeDecl<'a> {
    /// From the first keyword to `end`.
    pub span: Span,
    /// Which keyword.
    pub kind: TypeDeclKind<'a>,
    /// The declared name and its place.
    pub name: (Name<'a>, Span),
    /// Parameters: names, or `T <: Bound`.
    pub params: Vec<Expr<'a>>,
    /// The supertype after `<:`.
    pub supertype: Option<Expr<'a>>,
}

#[derive(Clone, Debug)]
pub enum TypeDeclKind<'a> {
    /// `struct` and `mutable struct`.
    Struct {
        /// True for `mutable struct`.
        mutable: bool,
        /// The fields, in order.
        fields: Vec<Field<'a>>,
    },
    /// `abstract type`.
    Abstract,
    /// `primitive type` with its number of bits.
    Primitive {
        /// The number of bits and its place.
        bits: (u128, Span),
    },
}

#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// The whole field.
    pub span: Span,
    pub name: Name<'a>,
    /// Its type; absent means `Any`.
    pub ty: Option<Expr<'a>>,
    /// Declared `const`.
    pub is_const: bool,
    /// Declared `@atomic`.
    pub is_atomic: bool,
}

/// `global x::T = value`, `global threadlocal x::T = value` or `const x = value`.
#[derive(Clone, Debug)]
pub struct GlobalDecl<'a> {
    /// The whole declaration.
    pub span: Span,
    pub kind: GlobalKind,
    /// The name and its place.
    pub name: (Name<'a>, Span),
    /// The declared type.
    pub ty: Option<Expr<'a>>,
    /// The initial value.
    pub value: Option<Expr<'a>>,
}

/// `# check: call == value` or `# throws: call T`.
#[derive(Clone, Debug)]
pub struct Check<'a> {
    /// The line after its header.
    pub span: Span,
    pub call: Expr<'a>,
    /// The expected outcome.
    pub expected: Expected<'a>,
}

/// The expected outcome of a check.
#[derive(Clone, Debug)]
pub enum Expected<'a> {
    /// The call returns this.
    Value(Expr<'a>),
    /// The call ends with an uncaught exception of this type.
    Throws(Expr<'a>),
}

/// A function: its signature and its rows.
#[derive(Clone, Debug)]
pub struct Function<'a> {
    /// The body with its container.
    pub span: Span,
    /// Whether it is a dump, with its signature in a header.
    pub is_dump: bool,
    pub level: Level,
    /// The signature; a dump without a `# signature:` line has none.
    pub signature: Option<Signature<'a>>,
    /// The blocks in textual order, which is the order of falling through.
    pub blocks: Vec<Block<'a>>,
    /// The type after `=>`, if the container shows it.
    pub shown_result: Option<Expr<'a>>,
}

/// `name(params)::R where {vars…}`.
#[derive(Clone, Debug)]
pub struct Signature<'a> {
    /// The whole signature.
    pub span: Span,
    pub callee: Callee<'a>,
    /// The parameters, without the callee.
    pub params: Vec<Param<'a>>,
    /// The result type; absent means `Any`.
    pub result: Option<Expr<'a>>,
    /// The variables of `where`, the outermost first.
    pub vars: Vec<Expr<'a>>,
    /// `inline` or `noinline` after it, and its place.
    pub inlining: Option<(Inlining, Span)>,
}

/// The owner of a signature's method.
#[derive(Clone, Debug)]
pub enum Callee<'a> {
    /// A named function, optionally qualified by modules.
    Named(Vec<Name<'a>>, Span),
    /// `(self::T)(…)`: objects of a type.
    Object(Param<'a>),
}

/// A parameter of a signature.
#[derive(Clone, Debug)]
pub struct Param<'a> {
    /// The whole parameter.
    pub span: Span,
    /// Its name, unless it is just `::T`.
    pub name: Option<Name<'a>>,
    /// Its type; absent means `Any`.
    pub ty: Option<Expr<'a>>,
    /// Written with `...`.
    pub is_vararg: bool,
}

/// A basic block.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    /// The number in its header.
    pub number: u32,
    /// The header's place.
    pub span: Span,
    /// Its rows; empty only if none of them could be read.
    pub rows: Vec<Row<'a>>,
}

/// One numbered row.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The row without its guards, rails and gutters.
    pub span: Span,
    /// The number in `%n = ` and its place.
    pub result: Option<(u32, Span)>,
    /// The label before a call.
    pub label: Option<CallLabel>,
    pub stmt: Stmt<'a>,
    /// The type after `::`; a list in low IR.
    pub ty: Option<Expr<'a>>,
    /// `inline` or `noinline` after it, and its place.
    pub inlining: Option<(Inlining, Span)>,
    /// The source line in the left gutter.
    pub line: Option<u32>,
}

/// The label that Julia's printer puts before a call. The callee alone determines the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallLabel {
    /// `intrinsic`
    Intrinsic,
    /// `builtin`
    Builtin,
    /// `dynamic`
    Dynamic,
    /// `unknown`
    Unknown,
    /// `dynamic builtin`
    DynamicBuiltin,
}

#[derive(Clone, Debug)]
pub enum Stmt<'a> {
    /// A call, a literal, a load or store of a global, an `Expr`: anything without its own form.
    Expr(Expr<'a>),
    /// `invoke callee(args…)`; each argument is annotated with the type that the method expects.
    Invoke {
        /// Written `dynamic invoke`: the target is known, its code instance is not.
        dynamic: bool,
        /// The function or the object called.
        callee: Expr<'a>,
        args: Vec<Expr<'a>>,
    },
    /// `φ (#1 => v, …)`.
    Phi(Vec<PhiEdge<'a>>),
    /// `π (value, T)`.
    Pi {
        value: Expr<'a>,
        /// The type that it is known to have here.
        ty: Expr<'a>,
    },
    /// `φᶜ (%1, …)`.
    PhiC(Vec<Expr<'a>>),
    /// `ϒ (value)`; `None` for `ϒ (#undef)`.
    Upsilon(Option<Expr<'a>>),
    /// `%new(T, …)`.
    New(Vec<Expr<'a>>),
    /// `%splatnew(T, tuple)`.
    SplatNew(Vec<Expr<'a>>),
    /// `goto #n`.
    Goto(Target),
    /// `goto #n if not cond`, and `else #m` if the other edge does not fall through.
    GotoIfNot {
        /// Tested for `true`.
        cond: Expr<'a>,
        /// Taken when the condition is false.
        target: Target,
        /// Taken when it is true; absent means the next block.
        otherwise: Option<Target>,
        /// `weights 1:99`: the frequencies of true and false.
        weights: Option<BranchWeights>,
    },
    /// `return value`.
    Return(Option<Expr<'a>>),
    /// `unreachable`.
    Unreachable,
    /// `enter #n`, `enter #n with scope v`; no target (or `#0`) only installs the scope.
    Enter {
        /// The catch block.
        target: Option<Target>,
        /// Where control continues, written `else #m`; absent means the next block.
        otherwise: Option<Target>,
        /// The dynamic scope.
        scope: Option<Expr<'a>>,
    },
}

impl<'a> Stmt<'a> {
    /// Calls `look` with each direct subexpression, in text order.
    pub fn each_expr(&self, look: &mut dyn FnMut(&Expr<'a>)) {
        match self {
            Stmt::Expr(expr) | Stmt::GotoIfNot { cond: expr, .. } => look(expr),
            Stmt::Invoke { callee, args, .. } => {
                look(callee);
                args.iter().for_each(look);
            }
            Stmt::Phi(edges) => edges.iter().filter_map(|edge| edge.value.as_ref()).for_each(look),
            Stmt::Pi { value, ty } => [value, ty].into_iter().for_each(look),
            Stmt::PhiC(list) | Stmt::New(list) | Stmt::SplatNew(list) => list.iter().for_each(look),
            Stmt::Upsilon(value) | Stmt::Return(value) | Stmt::Enter { scope: value, .. } => {
                value.iter().for_each(look);
            }
            Stmt::Goto(_) | Stmt::Unreachable => {}
        }
    }
}

/// A block named by a statement.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The number after `#`.
    pub block: u32,
    /// Its place.
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct PhiEdge<'a> {
    /// The predecessor.
    pub from: Target,
    /// The value; `None` for `#undef`.
    pub value: Option<Expr<'a>>,
}

/// A value or a type, with its place.
#[derive(Clone, Debug)]
pub struct Expr<'a> {
    /// Its place.
    pub span: Span,
    pub kind: ExprKind<'a>,
    height: u16,
}

impl<'a> Expr<'a> {
    /// A node with its height. The height saturates far above [`MAX_DEPTH`](super::MAX_DEPTH), beyond which
    /// the parser refuses a tree.
    pub(super) fn new(span: Span, kind: ExprKind<'a>) -> Expr<'a> {
        let mut below = 0;
        kind.each_child(&mut |child| below = below.max(child.height));
        Expr { span, kind, height: below.saturating_add(1) }
    }

    /// The length of the longest path to a leaf, the node itself included.
    pub(super) fn height(&self) -> u16 {
        self.height
    }
}

#[derive(Clone, Debug)]
pub enum ExprKind<'a> {
    /// `x`, `_2`, `#self#`, `nothing`, `var"f#1"`, a bare operator.
    Name(Name<'a>),
    /// `x@_2`: a name and its slot.
    Slot(Name<'a>, u32),
    /// `Base.add_int`: two or more parts.
    Path(Vec<Name<'a>>),
    /// `%3`, or `%3.1` for the second result of row 3.
    Ssa(u32, u32),
    /// `#3` as an operand, as in `$(Expr(:enter, #3))`.
    BlockRef(u32),
    /// `#undef`.
    Undef,
    Literal(Literal<'a>),
    /// `:name`.
    Symbol(Name<'a>),
    /// `:( … )`.
    Quote(Box<Expr<'a>>),
    /// `$(QuoteNode( … ))`.
    QuoteNode(Box<Expr<'a>>),
    /// `$(Expr(:head, args…))`.
    Head(Name<'a>, Vec<Expr<'a>>),
    /// Any other `$( … )`.
    Interpolation(Box<Expr<'a>>),
    /// `(e).name` where `e` is not a path.
    Property(Box<Expr<'a>>, Name<'a>),
    /// `f(args…)`; arguments after `;` follow those before it.
    Call(Box<Expr<'a>>, Vec<Expr<'a>>),
    /// `T{params…}`.
    Curly(Box<Expr<'a>>, Vec<Expr<'a>>),
    /// `T[items…]`.
    TypedArray(Box<Expr<'a>>, ArrayItems<'a>),
    /// `[items…]`.
    Array(ArrayItems<'a>),
    /// `(a, b)`, `(a,)`, `()`.
    Tuple(Vec<Expr<'a>>),
    /// `(a = 1, b = 2)`.
    NamedTuple(Vec<(Name<'a>, Expr<'a>)>),
    /// `a op b`, and `a + b + c` for one operator with more operands.
    Infix(Name<'a>, Vec<Expr<'a>>),
    /// `-a`.
    Prefix(Name<'a>, Box<Expr<'a>>),
    /// `v::T`, or `::T`.
    Annotated(Option<Box<Expr<'a>>>, Box<Expr<'a>>),
    /// `e...`.
    Splat(Box<Expr<'a>>),
    /// `T where {vars…}`.
    Where(Box<Expr<'a>>, Vec<Expr<'a>>),
    /// `@NamedTuple{fields…}`.
    Macro(Name<'a>, Vec<Expr<'a>>),
    /// `Ptr{T} @0x…`.
    Pointer(Box<Expr<'a>>, Wide),
    /// Julia syntax inside `$( … )` or `:( … )` that this reader does not parse; the span has the text.
    Opaque,
}

impl<'a> ExprKind<'a> {
    /// Calls `look` with each direct subexpression, in text order.
    pub fn each_child(&self, look: &mut dyn FnMut(&Expr<'a>)) {
        match self {
            ExprKind::Quote(e)
            | ExprKind::QuoteNode(e)
            | ExprKind::Interpolation(e)
            | ExprKind::Property(e, _)
            | ExprKind::Prefix(_, e)
            | ExprKind::Splat(e)
            | ExprKind::Pointer(e, _) => look(e),
            ExprKind::Call(e, list)
            | ExprKind::Curly(e, list)
            | ExprKind::Where(e, list)
            | ExprKind::TypedArray(e, ArrayItems { items: list, .. }) => {
                look(e);
                list.iter().for_each(look);
            }
            ExprKind::Array(ArrayItems { items: list, .. })
            | ExprKind::Head(_, list)
            | ExprKind::Tuple(list)
            | ExprKind::Infix(_, list)
            | ExprKind::Macro(_, list) => list.iter().for_each(look),
            ExprKind::NamedTuple(list) => list.iter().for_each(|(_, e)| look(e)),
            ExprKind::Annotated(value, ty) => value.iter().chain([ty]).for_each(|e| look(e)),
            ExprKind::Name(_)
            | ExprKind::Slot(..)
            | ExprKind::Path(_)
            | ExprKind::Ssa(..)
            | ExprKind::BlockRef(_)
            | ExprKind::Undef
            | ExprKind::Literal(_)
            | ExprKind::Symbol(_)
            | ExprKind::Opaque => {}
        }
    }
}

/// The elements of an array literal.
#[derive(Clone, Debug)]
pub struct ArrayItems<'a> {
    /// Stored row by row.
    pub items: Vec<Expr<'a>>,
    /// The length of a row; absent for a vector.
    pub columns: Option<usize>,
}

/// A 128-bit number in two words: as a `u128` it would raise the alignment of all nodes and make them a
/// quarter larger.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Wide([u64; 2]);

impl Wide {
    /// The number.
    pub fn get(self) -> u128 {
        u128::from(self.0[0]) << 64 | u128::from(self.0[1])
    }
}

impl From<u128> for Wide {
    fn from(number: u128) -> Wide {
        Wide([(number >> 64) as u64, number as u64])
    }
}

impl fmt::Debug for Wide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// A literal as written. Integer types are inferred later, from the context.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal<'a> {
    /// A decimal integer.
    Int {
        /// Written with `-`.
        negative: bool,
        /// The absolute value.
        magnitude: Wide,
    },
    /// A hexadecimal, octal or binary integer, whose width follows from its digits.
    Unsigned {
        value: Wide,
        /// 8, 16, 32, 64 or 128.
        bits: u8,
    },
    /// `1.5`.
    Float64(f64),
    /// `1.5f0`.
    Float32(f32),
    /// The bytes of a string; not always UTF-8.
    String(Cow<'a, [u8]>),
    /// A character in Julia's form: its UTF-8 bytes from the top of the word.
    Char(u32),
}
