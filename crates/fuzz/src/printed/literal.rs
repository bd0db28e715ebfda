//! Values as printed by `show`.

use super::Dump;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "170141183460469231731687303715884105727",
    "0x00",
    "0xff",
    "0x1234",
    "0xdeadbeef",
    "0x0123456789abcdef",
    "0x0123456789abcdef0123456789abcdef",
    "0.0",
    "-0.0",
    "1.5",
    "-2.5e-8",
    "1.0e100",
    "5.0e-324",
    "Inf",
    "-Inf",
    "NaN",
    "1.5f0",
    "-1.0f-10",
    "Inf32",
    "-Inf32",
    "NaN32",
    "Float16(0.1)",
    "Inf16",
    "NaN16",
    "true",
    "false",
    "nothing",
    "missing",
];

const CHARACTERS: &[&str] = &[
    "'a'",
    "'\\n'",
    "'\\''",
    "'\\\\'",
    "'\\0'",
    "'\\xff'",
    "'\\u200b'",
    "'\\U10ffff'",
    "'ä'",
    "'😀'",
    "'\"'",
    "'$'",
    "'%'",
    "'│'",
];

const STRINGS: &[&str] = &[
    "\"\"",
    "\"abc\"",
    "\"a\\nb\\tc\"",
    "\"quote \\\" and \\\\\"",
    "\"\\$x \\$(y)\"",
    "\"ä😀\"",
    "\"\\xff\\x80\"",
    "\"\\0\\e[0m\"",
    "\"# types: none\"",
    "\") => Any\"",
    "\"%1 = goto #2\"",
    "\"│ └──\"",
    "\"\\u200b\\U10ffff\"",
    "\"'\"",
];

const SYMBOLS: &[&str] = &[
    ":x",
    ":+",
    ":(==)",
    ":(=)",
    ":(:)",
    ":(::)",
    ":!",
    ":f!",
    ":var\"odd name\"",
    "Symbol(\"odd name\")",
    "Symbol(\"##a#1\")",
    ":end",
    ":if",
    ":ä",
    ":_1",
    ":<:",
    ":&&",
    ":.",
    ":...",
    ":->",
    ":true",
];

const FUNCTIONS: &[&str] = &[
    "sin",
    "Base.sin",
    "+",
    "Base.:+",
    "Base.:(==)",
    "Base.add_sum",
    "Main.f",
    "identity",
    "!",
    "==",
    "<",
    "isless",
    "Base.Broadcast.broadcasted",
    "Core.tuple",
    "Core.Intrinsics.add_int",
    "isa",
    "===",
    "Base.var\"#sort!#5\"",
    "!isletter",
    "abs ∘ sin",
    "float ∘ abs",
    "(:)",
    "Colon()",
];

/// Objects that print as a call of their constructor, or in their own notation.
const OBJECTS: &[&str] = &[
    "Val{1}()",
    "Base.RefValue{Int64}(3)",
    "Some{Int64}(1)",
    "Base.OneTo(3)",
    "CartesianIndex(1, 2)",
    "CartesianIndices((2, 0:3))",
    "1//2",
    "1.0 + 2.0im",
    "1 - 2im",
    "im",
    "1:3",
    "1:2:5",
    "0.0:0.1:1.0",
    "'a':1:'c'",
    ":a => 1",
    "\"a\" => [1]",
    "r\"a+\"i",
    "s\"\\1\"",
    "v\"1.2.3\"",
    "big\"1\"",
    "Dict(\"a\" => 1)",
    "Dict{String, Int64}()",
    "Set([1, 2])",
    "Date(\"2024-01-01\")",
    "ErrorException(\"x\")",
    "ArgumentError(\"x\")",
    "BoundsError(#undef, #undef)",
    "Core.Box(#undef)",
    "Core.Box(1)",
    "Main.Foo(1)",
    "Foo([1])",
    "Main.Cell{Int64}(1)",
    "Main.var\"#f#1\"()",
    "Base.Order.ForwardOrdering()",
    "Base.Order.ReverseOrdering{Base.Order.ForwardOrdering}(Base.Order.ForwardOrdering())",
    "IndexLinear()",
    "Base.Sort.InsertionSortAlg()",
    "Base.Sort.Small{80}(Base.Sort.InsertionSortAlg(), Base.Sort.InsertionSortAlg())",
    "Base.Fix2{typeof(<), Int64}(<, 1)",
    "Base.Pairs(:by => abs)",
    "Base.Pairs{Symbol, Any, Nothing, @NamedTuple{a::Int64}}(:a => 1)",
    "Base._InitialValue()",
    "Unknown.Thing(1, \"x\")",
    "MersenneTwister(42)",
    "Base.CodeUnits(\"x\")",
    "b\"x\"",
    "Ptr{Nothing} @0x0000000000000000",
    "Ptr{Nothing}(0x0000000000000000)",
    "svec(1, Int64)",
    "svec()",
    "MethodInstance for f(::Int64)",
    "f(x) @ Main REPL[1]:1",
    "Main.Programs",
    "Base",
    "Core.Compiler",
    "TypeVar(:T)",
    "UUID(\"00000000-0000-0000-0000-000000000001\")",
    "GlobalRef(Main, :x)",
    "Base.Semaphore(1)",
    "ReentrantLock()",
    "Task (runnable) @0x00007f0000000000",
    "`ls -l`",
    "π",
    "ℯ",
    "Base.TTY(RawFD(1) open, 0 bytes waiting)",
];

/// Pieces of Julia's syntax, quoted.
const SYNTAX: &[&str] = &[
    ":(a + b)",
    ":(f(x))",
    ":(x = 1)",
    ":(#= none:1 =#)",
    ":(x[1])",
    ":(a.b)",
    ":(\"$(x)\")",
    ":($(Expr(:meta, :inline)))",
    ":(x -> x)",
    ":([1, 2])",
    ":(x && y)",
    ":(if a b end)",
    ":(T{Int})",
    ":(x::Int)",
    ":(@m x)",
    ":(a ? b : c)",
    ":(;)",
    ":(:x)",
    ":(Main.x)",
];

impl Dump<'_> {
    /// A value as printed by `show`.
    pub(super) fn value(&mut self) -> String {
        self.nested("1", |dump| match dump.rng.below(12) {
            0..=2 => dump.one_of(NUMBERS).to_owned(),
            3 => dump.one_of(CHARACTERS).to_owned(),
            4 => dump.one_of(STRINGS).to_owned(),
            5 => dump.one_of(SYMBOLS).to_owned(),
            6 => dump.one_of(FUNCTIONS).to_owned(),
            7 | 8 => dump.one_of(OBJECTS).to_owned(),
            9 => dump.ty(),
            10 => dump.collection(),
            _ => dump.tuple_value(),
        })
    }

    fn tuple_value(&mut self) -> String {
        let count = self.rng.below(4);
        if self.rng.chance(30) {
            return match count {
                0 => "NamedTuple()".to_owned(),
                1 => format!("(a = {},)", self.value()),
                _ => format!("(a = {}, var\"b c\" = {})", self.value(), self.value()),
            };
        }
        let items = self.list(count, Self::value);
        format!("({items}{})", if count == 1 { "," } else { "" })
    }

    fn collection(&mut self) -> String {
        match self.rng.below(7) {
            0 => "Any[]".to_owned(),
            1 => "[1 2; 3 4]".to_owned(),
            2 => "Bool[1, 0, 1]".to_owned(),
            3 => "UInt8[0x01, 0xff]".to_owned(),
            4 => format!("Any[{}, {}]", self.value(), self.value()),
            5 => "Union{Nothing, Int64}[nothing, 1]".to_owned(),
            _ => match self.ty() {
                open if open.contains(" where ") => format!("({open})[]"),
                elem => format!("{elem}[]"),
            },
        }
    }

    /// A value in `$(QuoteNode(…))`.
    pub(super) fn quoted_value(&mut self) -> String {
        let value = if self.rng.chance(25) { self.one_of(SYNTAX).to_owned() } else { self.value() };
        format!("$(QuoteNode({value}))")
    }
}
