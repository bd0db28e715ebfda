//! Types as printed by `show`.

use super::Dump;

/// Types that print as their names.
const PLAIN: &[&str] = &[
    "Any",
    "Int64",
    "Float64",
    "Bool",
    "String",
    "Symbol",
    "Char",
    "Nothing",
    "Missing",
    "UInt8",
    "Int128",
    "Float16",
    "DataType",
    "UnionAll",
    "Union",
    "Core.TypeofBottom",
    "Function",
    "Core.Builtin",
    "Core.IntrinsicFunction",
    "Core.SimpleVector",
    "Core.Box",
    "Module",
    "Method",
    "Expr",
    "QuoteNode",
    "GlobalRef",
    "LineNumberNode",
    "Task",
    "BoundsError",
    "ArgumentError",
    "Exception",
    "IOBuffer",
    "BitVector",
    "BitMatrix",
    "BigInt",
    "BigFloat",
    "Regex",
    "VersionNumber",
    "Cmd",
    "TypeVar",
    "Core.MethodInstance",
    "Core.CodeInstance",
    "Core.CodeInfo",
    "Core.TypeName",
    "Core.MethodTable",
    "Core.Binding",
    "Core.SSAValue",
    "Foo",
    "Main.Foo",
    "ReentrantLock",
    "Base.Threads.SpinLock",
    "Random.TaskLocalRNG",
    "Random.MersenneTwister",
    "Dates.Date",
    "Base.UUID",
    "Base.PkgId",
    "Base.TTY",
    "Tuple{}",
    "NamedTuple",
    "Tuple",
    "Array",
    "Vector",
    "Matrix",
    "AbstractVecOrMat",
    "AbstractVector",
    "StridedVector{Float64}",
    "ComplexF64",
    "Base.IEEEFloat",
    "Real",
    "AbstractString",
    "Integer",
    "Number",
    "var\"#f#1\"",
    "Main.var\"#f#1\"",
    "Base.var\"#sort#12\"",
    "Base.var\"#f#2\"{Int64, Any}",
    "typeof(sin)",
    "typeof(+)",
    "typeof(Base.:+)",
    "typeof(==)",
    "typeof(Main.f)",
    "typeof(Base.add_sum)",
    "typeof(Core.kwcall)",
    "typeof(f!)",
    "typeof(Core.Intrinsics.add_int)",
];

/// Generic types of the library, with their numbers of parameters.
const GENERIC: &[(&str, usize)] = &[
    ("Vector", 1),
    ("Matrix", 1),
    ("Memory", 1),
    ("MemoryRef", 1),
    ("AtomicMemory", 1),
    ("Ptr", 1),
    ("Ref", 1),
    ("Base.RefValue", 1),
    ("Set", 1),
    ("Dict", 2),
    ("IdDict", 2),
    ("Pair", 2),
    ("Some", 1),
    ("AbstractVector", 1),
    ("AbstractDict", 2),
    ("Type", 1),
    ("Base.Generator", 2),
    ("UnitRange", 1),
    ("StepRange", 2),
    ("Base.OneTo", 1),
    ("Complex", 1),
    ("Rational", 1),
    ("SubString", 1),
    ("Base.CodeUnits", 2),
    ("Channel", 1),
    ("Base.Iterators.Zip", 1),
    ("Base.Iterators.Enumerate", 1),
    ("Base.Iterators.TakeWhile", 2),
    ("Base.Iterators.Filter", 2),
    ("Base.Iterators.ProductIterator", 1),
    ("Base.Iterators.Reverse", 1),
    ("Base.SkipMissing", 1),
    ("Base.ImmutableDict", 2),
    ("ComposedFunction", 2),
    ("Base.Broadcast.Broadcasted", 4),
    ("Base.Fix1", 2),
    ("Base.MappingRF", 2),
    ("Base.Order.By", 2),
    ("Base.Threads.Atomic", 1),
    ("Cell", 1),
    ("Main.Cell", 1),
    ("Base.KeySet", 2),
    ("Base.ValueIterator", 1),
    ("Base.ScopedValues.ScopedValue", 1),
    ("Unknown.Thing", 2),
    ("Channel", 1),
    ("LinearAlgebra.Adjoint", 2),
    ("Core.OpaqueClosure", 2),
];

impl Dump<'_> {
    pub(super) fn ty(&mut self) -> String {
        self.nested("Any", |dump| match dump.rng.below(12) {
            0..=4 => dump.one_of(PLAIN).to_owned(),
            5 | 6 => dump.generic(),
            7 => dump.tuple(),
            8 => dump.named_tuple(),
            9 => dump.union(),
            10 => dump.with_variables(),
            _ => dump.special(),
        })
    }

    fn generic(&mut self) -> String {
        let &(name, count) = self.rng.pick(GENERIC).unwrap_or(&("Vector", 1));
        let params = self.list(count, Self::param);
        format!("{name}{{{params}}}")
    }

    /// A parameter: mostly a type, or an open one, or a value.
    fn param(&mut self) -> String {
        match self.rng.below(16) {
            0 => format!("<:{}", self.ty()),
            1 => format!(">:{}", self.one_of(&["Int64", "Nothing", "Float64"])),
            _ => self.ty(),
        }
    }

    fn tuple(&mut self) -> String {
        let fixed = self.rng.below(4);
        let mut elems = self.list(fixed, Self::ty);
        let rest = match self.rng.below(6) {
            0 => format!("Vararg{{{}}}", self.ty()),
            1 => format!("Vararg{{{}, {}}}", self.ty(), self.rng.below(5)),
            2 => "Vararg{Any}".to_owned(),
            _ => String::new(),
        };
        if !rest.is_empty() && !elems.is_empty() {
            elems.push_str(", ");
        }
        match self.rng.below(8) {
            0 => format!("NTuple{{{}, {}}}", self.rng.below(9), self.ty()),
            1 => format!("Tuple{{Vararg{{{}, N}}}} where N", self.one_of(&["Int64", "Any"])),
            _ => format!("Tuple{{{elems}{rest}}}"),
        }
    }

    fn named_tuple(&mut self) -> String {
        match self.rng.below(7) {
            0 => "NamedTuple{(:a, :b)}".to_owned(),
            1 => format!("NamedTuple{{(:by,), <:Tuple{{{}}}}}", self.ty()),
            2 => "NamedTuple{names} where names".to_owned(),
            3 => format!("@Kwargs{{by::{}, rev::Bool}}", self.ty()),
            4 => format!("@NamedTuple{{a, var\"b c\"::{}}}", self.ty()),
            5 => "@NamedTuple{}".to_owned(),
            _ => format!("@NamedTuple{{a::{}, b::{}}}", self.ty(), self.ty()),
        }
    }

    fn union(&mut self) -> String {
        let count = self.rng.between(2, 4);
        // An empty `Union{}` would be the bottom type, which has no values.
        format!("Union{{{}}}", self.list(count, Self::ty))
    }

    fn with_variables(&mut self) -> String {
        let bound = self.one_of(&["Real", "Integer", "AbstractString", "Union{Float32, Float64}", "Tuple"]);
        match self.rng.below(9) {
            0 => "Type{_A} where _A".to_owned(),
            1 => format!("Vector{{T}} where T<:{bound}"),
            2 => format!("Tuple{{T, Vector{{T}}}} where T<:{bound}"),
            3 => "Dict{K, V} where {K, V}".to_owned(),
            4 => format!("Pair{{T, S}} where {{T<:{bound}, S}}"),
            5 => "Array{T, 3} where T".to_owned(),
            6 => format!("Union{{Nothing, T}} where T<:{bound}"),
            7 => format!("Pair{{var\"#s1\", Int64}} where var\"#s1\"<:{bound}"),
            _ => "Ref{T} where Int64<:T<:Integer".to_owned(),
        }
    }

    /// The type after `::` in a row: a type, or an element of the inference lattice.
    pub(super) fn annotation(&mut self) -> String {
        match self.rng.below(20) {
            0 => format!("Core.Const({})", self.value()),
            1 => format!("Core.PartialStruct(Tuple{{Int64, Any}}, Any[Core.Const({}), Any])", self.value()),
            2 => self
                .one_of(&["Core.Conditional(2, Int64, Any)", "Core.PartialTypeVar(T, true, true)"])
                .to_owned(),
            _ => self.ty(),
        }
    }

    /// Types with values among their parameters.
    fn special(&mut self) -> String {
        match self.rng.below(9) {
            0..=3 => {
                let value = self.one_of(&[
                    "1",
                    "-1",
                    ":x",
                    "Symbol(\"odd name\")",
                    "(1, 2)",
                    "(:a, (:b,))",
                    "'c'",
                    "true",
                    "0x01",
                    "1.5",
                    "()",
                    "nothing",
                    "sin",
                    "Val{1}()",
                    "Tuple{Int64}",
                    "+",
                    "Main.f",
                ]);
                format!("Val{{{value}}}")
            }
            4 => format!("Array{{{}, {}}}", self.ty(), self.rng.between(0, 4)),
            5 => "SubArray{Float64, 1, Matrix{Float64}, Tuple{Base.Slice{Base.OneTo{Int64}}, Int64}, true}"
                .to_owned(),
            6 => "GenericMemory{:not_atomic, Int64, Core.AddrSpace{Core}(0x00)}".to_owned(),
            7 => "GenericMemoryRef{:atomic, T, Core.AddrSpace{Core}(0x00)} where T".to_owned(),
            _ => "PermutedDimsArray{Float64, 2, (2, 1), (2, 1), Matrix{Float64}}".to_owned(),
        }
    }
}
