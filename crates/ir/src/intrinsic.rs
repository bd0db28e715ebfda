//! The intrinsics: Julia's primitive operations on bits, as one table.
//!
//! A row has the intrinsic's name in Julia's text, the *shape* of its operands and its differences
//! from others of that shape. Everything that follows from the shape (number of operands, type rule, purity)
//! is defined once, at [`Shape`], so two intrinsics of one shape cannot disagree.
//!
//! ```text
//! row      AddInt  "add_int"  IntBinary  COMMUTES
//!          variant  Julia     shape      flags
//! ```
//!
//! **Operands.** Julia writes the target type of a conversion as first argument, `Base.sext_int(Int64,
//! %1)::Int64`. In this IR the type of the result is the target, and the operand list holds the value only:
//! [`Intrinsic::takes_type`] is true, [`Intrinsic::arity`] counts the value, [`Intrinsic::text_arity`] counts
//! the type as well. The reader drops the type (it must equal the result type), the printer writes it back.
//! `have_fma(T)` is not a conversion: its type is an ordinary operand.
//!
//! **Effects.** *Pure* means: the result depends on the operands alone and no memory is touched; a pure
//! intrinsic may still throw (division), which [`Intrinsic::can_throw`] says. `have_fma` is pure, because the
//! target processor does not change while a function lives.
//!
//! **Values.** `crate::scalar` defines the results of the pure ones, bit for bit. A `_fast` intrinsic has the value
//! of its strict twin ([`Intrinsic::strict`]) there; the mark permits passes to reassociate and to ignore
//! NaN, infinities and the sign of zero.
//!
//! Not done: `llvmcall` and `cglobal`, which have rows so that a reader can name them; [`Intrinsic::refusal`]
//! returns the reason. Hidden intrinsics that Julia's front end never prints have no rows.

use std::fmt;

/// The number of operands: at least `min`, at most `max`, unbounded if `max` is `None`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Arity {
    pub min: u8,
    /// `None`: unbounded.
    pub max: Option<u8>,
}

impl Arity {
    /// Exactly `n` operands.
    pub const fn exactly(n: u8) -> Self {
        Arity { min: n, max: Some(n) }
    }

    /// From `min` to `max` operands.
    pub const fn between(min: u8, max: u8) -> Self {
        Arity { min, max: Some(max) }
    }

    /// `min` operands or more.
    pub const fn at_least(min: u8) -> Self {
        Arity { min, max: None }
    }

    /// Whether `count` operands are allowed.
    pub fn allows(self, count: usize) -> bool {
        count >= usize::from(self.min) && self.max.is_none_or(|max| count <= usize::from(max))
    }
}

impl fmt::Display for Arity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{max}"),
            Some(max) => write!(f, "{} to {max}", self.min),
            None => write!(f, "at least {}", self.min),
        }
    }
}

/// The kind of a conversion; the target is the type of the result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Convert {
    /// The same bits as another type of the same size: integers, floats and pointers alike.
    Bits,
    /// A narrower integer widened by its sign.
    SignExtend,
    /// A narrower integer widened by zeros.
    ZeroExtend,
    /// The low bits of a wider integer.
    Truncate,
    /// A float to a signed integer, towards zero.
    FloatToSigned,
    /// A float to an unsigned integer, towards zero.
    FloatToUnsigned,
    /// A signed integer to the nearest float.
    SignedToFloat,
    /// An unsigned integer to the nearest float.
    UnsignedToFloat,
    /// A float to the nearest one of a narrower format.
    FloatTruncate,
    /// A float to a wider format, exactly.
    FloatExtend,
}

/// Operands, result and type rule of an intrinsic. `T` is an integer type, `F` a float type, `P` a `Ptr{X}`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// `(T) -> T`
    IntUnary,
    /// `(T, T) -> T`
    IntBinary,
    /// `(T, T) -> T`; throws `DivideError` if the divisor is zero or a signed quotient overflows.
    IntDivide,
    /// `(T, S) -> T`: the count is unsigned and its type `S` is any integer type.
    Shift,
    /// `(T, T) -> Bool`
    IntCompare,
    /// `(T, T) -> Tuple{T, Bool}`: the wrapped value, and whether it wrapped.
    CheckedPair,
    /// `(F) -> F`
    FloatUnary,
    /// `(F, F) -> F`
    FloatBinary,
    /// `(F, F, F) -> F`
    FloatTernary,
    /// `(F, F) -> Bool`
    FloatCompare,
    /// `(A) -> B` where `B` is the result type.
    Convert(Convert),
    /// `(P, UInt) -> P`: the address moved by a number of bytes.
    PtrOffset,
    /// `pointerref(P, index, align) -> X`: the element at a one-based index.
    PtrLoad,
    /// `pointerset(P, X, index, align) -> P`
    PtrStore,
    /// `atomic_fence(order [, scope]) -> Nothing`
    AtomicFence,
    /// `atomic_pointerref(P, order) -> X`
    AtomicLoad,
    /// `atomic_pointerset(P, X, order) -> P`
    AtomicStore,
    /// `atomic_pointerswap(P, X, order) -> X`: the old value.
    AtomicSwap,
    /// `atomic_pointermodify(P, f, y, order) -> Pair{X, X}`: the old value and `f(old, y)`. Calls `f`.
    AtomicModify,
    /// `atomic_pointerreplace(P, expected, X, success order, failure order) -> @NamedTuple{old::X,
    /// success::Bool}`
    AtomicReplace,
    /// `(Type{F}) -> Bool`: a question about the target processor.
    Query,
    /// Refers to something outside the IR; always refused.
    Foreign,
}

impl Shape {
    /// The number of operands in the IR.
    pub fn arity(self) -> Arity {
        match self {
            Shape::IntUnary | Shape::FloatUnary | Shape::Convert(_) | Shape::Query => Arity::exactly(1),
            Shape::IntBinary
            | Shape::IntDivide
            | Shape::Shift
            | Shape::IntCompare
            | Shape::CheckedPair
            | Shape::FloatBinary
            | Shape::FloatCompare
            | Shape::PtrOffset
            | Shape::AtomicLoad => Arity::exactly(2),
            Shape::FloatTernary | Shape::PtrLoad | Shape::AtomicStore | Shape::AtomicSwap => {
                Arity::exactly(3)
            }
            Shape::PtrStore | Shape::AtomicModify => Arity::exactly(4),
            Shape::AtomicReplace => Arity::exactly(5),
            Shape::AtomicFence => Arity::between(1, 2),
            Shape::Foreign => Arity::at_least(1),
        }
    }

    /// Whether the result depends only on the operands and no memory is touched.
    pub fn is_pure(self) -> bool {
        !self.reads_memory() && !self.writes_memory() && self != Shape::Foreign
    }

    /// Whether the operation may observe memory. A fence orders what other threads wrote, so it counts.
    pub fn reads_memory(self) -> bool {
        matches!(
            self,
            Shape::PtrLoad
                | Shape::AtomicLoad
                | Shape::AtomicStore
                | Shape::AtomicSwap
                | Shape::AtomicModify
                | Shape::AtomicReplace
                | Shape::AtomicFence
        )
    }

    /// Whether the operation may change memory. An atomic load counts: it may make writes of other threads
    /// visible.
    pub fn writes_memory(self) -> bool {
        matches!(
            self,
            Shape::PtrStore
                | Shape::AtomicLoad
                | Shape::AtomicStore
                | Shape::AtomicSwap
                | Shape::AtomicModify
                | Shape::AtomicReplace
                | Shape::AtomicFence
        )
    }
}

/// Commutative. For floats, swapping may change which NaN is the result.
const COMMUTES: u8 = 1;
/// A `_fast` form: see the header.
const FAST: u8 = 2;

/// One row of the table.
struct Row {
    name: &'static str,
    shape: Shape,
    flags: u8,
}

macro_rules! intrinsics {
    ($($variant:ident $name:literal $shape:expr, $flags:expr;)*) => {
        /// A primitive operation; `Display` prints Julia's name.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Intrinsic {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        const ROWS: &[Row] = &[$(Row { name: $name, shape: $shape, flags: $flags }),*];

        impl Intrinsic {
            /// Every intrinsic, in the order of the table.
            pub const ALL: &[Intrinsic] = &[$(Intrinsic::$variant),*];

            /// The intrinsic with this Julia name.
            pub fn from_name(name: &str) -> Option<Intrinsic> {
                match name {
                    $($name => Some(Intrinsic::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

intrinsics! {
    Bitcast "bitcast" Shape::Convert(Convert::Bits), 0;

    AndInt "and_int" Shape::IntBinary, COMMUTES;
    OrInt "or_int" Shape::IntBinary, COMMUTES;
    XorInt "xor_int" Shape::IntBinary, COMMUTES;
    NotInt "not_int" Shape::IntUnary, 0;
    ShlInt "shl_int" Shape::Shift, 0;
    LshrInt "lshr_int" Shape::Shift, 0;
    AshrInt "ashr_int" Shape::Shift, 0;
    BswapInt "bswap_int" Shape::IntUnary, 0;
    BitreverseInt "bitreverse_int" Shape::IntUnary, 0;
    CtpopInt "ctpop_int" Shape::IntUnary, 0;
    CtlzInt "ctlz_int" Shape::IntUnary, 0;
    CttzInt "cttz_int" Shape::IntUnary, 0;

    NegInt "neg_int" Shape::IntUnary, 0;
    AddInt "add_int" Shape::IntBinary, COMMUTES;
    SubInt "sub_int" Shape::IntBinary, 0;
    MulInt "mul_int" Shape::IntBinary, COMMUTES;
    SdivInt "sdiv_int" Shape::IntDivide, 0;
    UdivInt "udiv_int" Shape::IntDivide, 0;
    SremInt "srem_int" Shape::IntDivide, 0;
    UremInt "urem_int" Shape::IntDivide, 0;
    FlipsignInt "flipsign_int" Shape::IntBinary, 0;

    EqInt "eq_int" Shape::IntCompare, COMMUTES;
    NeInt "ne_int" Shape::IntCompare, COMMUTES;
    SltInt "slt_int" Shape::IntCompare, 0;
    UltInt "ult_int" Shape::IntCompare, 0;
    SleInt "sle_int" Shape::IntCompare, 0;
    UleInt "ule_int" Shape::IntCompare, 0;

    CheckedSaddInt "checked_sadd_int" Shape::CheckedPair, COMMUTES;
    CheckedUaddInt "checked_uadd_int" Shape::CheckedPair, COMMUTES;
    CheckedSsubInt "checked_ssub_int" Shape::CheckedPair, 0;
    CheckedUsubInt "checked_usub_int" Shape::CheckedPair, 0;
    CheckedSmulInt "checked_smul_int" Shape::CheckedPair, COMMUTES;
    CheckedUmulInt "checked_umul_int" Shape::CheckedPair, COMMUTES;
    CheckedSdivInt "checked_sdiv_int" Shape::IntDivide, 0;
    CheckedUdivInt "checked_udiv_int" Shape::IntDivide, 0;
    CheckedSremInt "checked_srem_int" Shape::IntDivide, 0;
    CheckedUremInt "checked_urem_int" Shape::IntDivide, 0;

    NegFloat "neg_float" Shape::FloatUnary, 0;
    AddFloat "add_float" Shape::FloatBinary, COMMUTES;
    SubFloat "sub_float" Shape::FloatBinary, 0;
    MulFloat "mul_float" Shape::FloatBinary, COMMUTES;
    DivFloat "div_float" Shape::FloatBinary, 0;
    RemFloat "rem_float" Shape::FloatBinary, 0;
    MinFloat "min_float" Shape::FloatBinary, COMMUTES;
    MaxFloat "max_float" Shape::FloatBinary, COMMUTES;
    FmaFloat "fma_float" Shape::FloatTernary, 0;
    MuladdFloat "muladd_float" Shape::FloatTernary, 0;
    AbsFloat "abs_float" Shape::FloatUnary, 0;
    CopysignFloat "copysign_float" Shape::FloatBinary, 0;
    SqrtLlvm "sqrt_llvm" Shape::FloatUnary, 0;
    CeilLlvm "ceil_llvm" Shape::FloatUnary, 0;
    FloorLlvm "floor_llvm" Shape::FloatUnary, 0;
    TruncLlvm "trunc_llvm" Shape::FloatUnary, 0;
    RintLlvm "rint_llvm" Shape::FloatUnary, 0;

    NegFloatFast "neg_float_fast" Shape::FloatUnary, FAST;
    AddFloatFast "add_float_fast" Shape::FloatBinary, FAST | COMMUTES;
    SubFloatFast "sub_float_fast" Shape::FloatBinary, FAST;
    MulFloatFast "mul_float_fast" Shape::FloatBinary, FAST | COMMUTES;
    DivFloatFast "div_float_fast" Shape::FloatBinary, FAST;
    RemFloatFast "rem_float_fast" Shape::FloatBinary, FAST;
    MinFloatFast "min_float_fast" Shape::FloatBinary, FAST | COMMUTES;
    MaxFloatFast "max_float_fast" Shape::FloatBinary, FAST | COMMUTES;
    SqrtLlvmFast "sqrt_llvm_fast" Shape::FloatUnary, FAST;

    EqFloat "eq_float" Shape::FloatCompare, COMMUTES;
    NeFloat "ne_float" Shape::FloatCompare, COMMUTES;
    LtFloat "lt_float" Shape::FloatCompare, 0;
    LeFloat "le_float" Shape::FloatCompare, 0;
    Fpiseq "fpiseq" Shape::FloatCompare, COMMUTES;
    EqFloatFast "eq_float_fast" Shape::FloatCompare, FAST | COMMUTES;
    NeFloatFast "ne_float_fast" Shape::FloatCompare, FAST | COMMUTES;
    LtFloatFast "lt_float_fast" Shape::FloatCompare, FAST;
    LeFloatFast "le_float_fast" Shape::FloatCompare, FAST;

    SextInt "sext_int" Shape::Convert(Convert::SignExtend), 0;
    ZextInt "zext_int" Shape::Convert(Convert::ZeroExtend), 0;
    TruncInt "trunc_int" Shape::Convert(Convert::Truncate), 0;
    Fptosi "fptosi" Shape::Convert(Convert::FloatToSigned), 0;
    Fptoui "fptoui" Shape::Convert(Convert::FloatToUnsigned), 0;
    Sitofp "sitofp" Shape::Convert(Convert::SignedToFloat), 0;
    Uitofp "uitofp" Shape::Convert(Convert::UnsignedToFloat), 0;
    Fptrunc "fptrunc" Shape::Convert(Convert::FloatTruncate), 0;
    Fpext "fpext" Shape::Convert(Convert::FloatExtend), 0;

    AddPtr "add_ptr" Shape::PtrOffset, 0;
    SubPtr "sub_ptr" Shape::PtrOffset, 0;
    Pointerref "pointerref" Shape::PtrLoad, 0;
    Pointerset "pointerset" Shape::PtrStore, 0;
    AtomicFence "atomic_fence" Shape::AtomicFence, 0;
    AtomicPointerref "atomic_pointerref" Shape::AtomicLoad, 0;
    AtomicPointerset "atomic_pointerset" Shape::AtomicStore, 0;
    AtomicPointerswap "atomic_pointerswap" Shape::AtomicSwap, 0;
    AtomicPointermodify "atomic_pointermodify" Shape::AtomicModify, 0;
    AtomicPointerreplace "atomic_pointerreplace" Shape::AtomicReplace, 0;

    HaveFma "have_fma" Shape::Query, 0;
    Cglobal "cglobal" Shape::Foreign, 0;
    Llvmcall "llvmcall" Shape::Foreign, 0;
}

impl Intrinsic {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Julia's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Operands, result and type rule.
    pub fn shape(self) -> Shape {
        self.row().shape
    }

    /// The number of operands in the IR: without the target type of a conversion.
    pub fn arity(self) -> Arity {
        self.shape().arity()
    }

    /// The number of arguments in Julia's text: with the target type of a conversion.
    pub fn text_arity(self) -> Arity {
        let Arity { min, max } = self.arity();
        let types = u8::from(self.takes_type());
        Arity { min: min + types, max: max.map(|max| max + types) }
    }

    /// Whether Julia's text has the result type as first argument.
    pub fn takes_type(self) -> bool {
        matches!(self.shape(), Shape::Convert(_))
    }

    /// Whether it may end in an exception: a division, or `atomic_pointermodify`, which calls a function.
    pub fn can_throw(self) -> bool {
        matches!(self.shape(), Shape::IntDivide | Shape::AtomicModify)
    }

    /// Whether the result depends only on the operands and no memory is touched. It may still throw.
    pub fn is_pure(self) -> bool {
        self.shape().is_pure()
    }

    /// Whether the first two operands commute. For floats, up to which NaN is the result.
    pub fn is_commutative(self) -> bool {
        self.row().flags & COMMUTES != 0
    }

    /// Whether passes may treat it as arithmetic on reals.
    pub fn is_fast(self) -> bool {
        self.row().flags & FAST != 0
    }

    /// The strict form of a `_fast` intrinsic, which has the same value in the reference semantics; any other intrinsic is its own.
    pub fn strict(self) -> Intrinsic {
        let strict = self.name().strip_suffix("_fast").filter(|_| self.is_fast());
        strict.and_then(Intrinsic::from_name).unwrap_or(self)
    }

    /// Why this intrinsic is refused wherever it occurs; `None` if it is supported.
    pub fn refusal(self) -> Option<&'static str> {
        match self {
            Intrinsic::Llvmcall => {
                Some("`llvmcall` holds LLVM IR, which is not translated; use `foreigncall`")
            }
            Intrinsic::Cglobal => Some(
                "`cglobal` is called with a name that is known before the program runs, and is not a value",
            ),
            _ => None,
        }
    }
}

impl fmt::Display for Intrinsic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_intrinsic() {
        for &op in Intrinsic::ALL {
            assert_eq!(Intrinsic::from_name(op.name()), Some(op));
            assert_eq!(op.to_string(), op.name());
        }
        assert_eq!(Intrinsic::from_name("add_int_"), None);
        assert_eq!(Intrinsic::from_name(""), None);
    }

    #[test]
    fn a_fast_name_is_its_strict_name_with_a_suffix_and_nothing_else_is_fast() {
        for &op in Intrinsic::ALL {
            assert_eq!(op.is_fast(), op.name().ends_with("_fast"), "{op}");
            let strict = op.name().strip_suffix("_fast").unwrap_or(op.name());
            assert_eq!(op.strict().name(), strict);
            assert_eq!(op.shape(), op.strict().shape());
            assert_eq!(op.is_commutative(), op.strict().is_commutative());
        }
    }

    #[test]
    fn conversions_count_their_type_in_text_only() {
        assert_eq!(Intrinsic::SextInt.arity(), Arity::exactly(1));
        assert_eq!(Intrinsic::SextInt.text_arity(), Arity::exactly(2));
        assert_eq!(Intrinsic::Bitcast.text_arity(), Arity::exactly(2));
        assert_eq!(Intrinsic::HaveFma.text_arity(), Arity::exactly(1));
        assert!(Intrinsic::AtomicFence.arity().allows(2) && !Intrinsic::AtomicFence.arity().allows(3));
        assert!(Intrinsic::Llvmcall.arity().allows(1000));
    }

    #[test]
    fn only_binary_pure_operations_commute() {
        for &op in Intrinsic::ALL {
            if op.is_commutative() {
                assert!(op.arity() == Arity::exactly(2) && op.is_pure() && !op.can_throw(), "{op}");
            }
        }
    }

    #[test]
    fn refused_intrinsics_say_their_name() {
        for &op in Intrinsic::ALL {
            assert_eq!(op.refusal().is_some(), op.shape() == Shape::Foreign);
            assert!(op.refusal().is_none_or(|text| text.contains(op.name())));
        }
    }

    #[test]
    fn effects_follow_the_shape() {
        assert!(Intrinsic::SdivInt.can_throw() && Intrinsic::SdivInt.is_pure());
        assert!(!Intrinsic::AddInt.can_throw() && Intrinsic::AddInt.is_pure());
        assert!(!Intrinsic::Pointerref.is_pure() && !Intrinsic::Pointerref.shape().writes_memory());
        assert!(Intrinsic::AtomicFence.shape().writes_memory() && !Intrinsic::Llvmcall.is_pure());
    }
}
