//! The functions that Base exports, as far as programs pass them around.
//!
//! Julia prints a function without its module where the module that prints sees the name: `invoke Base.map(sqrt::typeof(sqrt), …)`. So a bare name in a
//! dump that the source does not define means Base's function if the name is one of these.
//!
//! Not here: types and constants, and functions for packages, processes and files.

/// The names, in order.
const EXPORTED: &[&str] = &[
    "abs", "abs2", "abspath", "accumulate", "accumulate!", "acos", "acosd", "acosh", "all", "all!",
    "allequal", "allunique", "angle", "any", "any!", "append!", "argmax", "argmin", "ascii", "asin", "asind",
    "asinh", "atan", "atand", "atanh", "axes", "basename", "big", "bind", "binomial", "bitreverse",
    "bitrotate", "bitstring", "broadcast", "broadcast!", "bswap", "bytes2hex", "bytesavailable", "cat",
    "cbrt", "ceil", "checkbounds", "checkindex", "chomp", "chop", "chopprefix", "chopsuffix", "circcopy!",
    "circshift", "circshift!", "cis", "cispi", "clamp", "clamp!", "cld", "close", "cmp", "coalesce",
    "codepoint", "codeunit", "codeunits", "collect", "complex", "conj", "conj!", "contains", "convert",
    "copy", "copy!", "copysign", "copyto!", "cos", "cosc", "cosd", "cosh", "cospi", "cot", "cotd", "coth",
    "count", "count!", "count_ones", "count_zeros", "countlines", "csc", "cscd", "csch", "cumprod",
    "cumprod!", "cumsum", "cumsum!", "deepcopy", "deg2rad", "delete!", "deleteat!", "denominator", "detach",
    "diff", "digits", "digits!", "dirname", "displaysize", "div", "divrem", "eachcol", "eachindex",
    "eachline", "eachmatch", "eachrow", "eachslice", "eachsplit", "eltype", "empty", "empty!", "endswith",
    "enumerate", "eof", "error", "escape_string", "evalpoly", "exp", "exp10", "exp2", "expm1", "exponent",
    "extrema", "factorial", "falses", "fieldcount", "fieldname", "fieldnames", "fieldoffset", "fieldtypes",
    "fill", "fill!", "filter", "filter!", "finalize", "findall", "findfirst", "findlast", "findmax",
    "findmax!", "findmin", "findmin!", "findnext", "findprev", "first", "firstindex", "fld", "fld1", "fldmod",
    "fldmod1", "flipsign", "float", "floor", "flush", "fma", "foldl", "foldr", "foreach", "frexp", "fullname",
    "functionloc", "gcd", "gcdx", "get", "get!", "getfield", "getindex", "getkey", "getproperty", "hasfield",
    "hash", "haskey", "hasmethod", "hasproperty", "hcat", "hton", "hvcat", "hvncat", "hypot", "identity",
    "ifelse", "imag", "in", "indexin", "insert!", "instances", "intersect", "intersect!", "inv", "invmod",
    "invokelatest", "invperm", "invpermute!", "isabspath", "isapprox", "isascii", "isassigned", "isbits",
    "isbitstype", "iscntrl", "isconcretetype", "isconst", "isdefined", "isdigit", "isdisjoint",
    "isdispatchtuple", "isempty", "isequal", "iseven", "isfinite", "ishexdigit", "isinf", "isinteger",
    "isinteractive", "isless", "isletter", "islowercase", "ismissing", "ismutable", "ismutabletype", "isnan",
    "isnothing", "isnumeric", "isodd", "isone", "isopen", "isperm", "ispow2", "isprimitivetype", "isprint",
    "ispunct", "isqrt", "isreadable", "isreal", "issetequal", "issorted", "isspace", "isstructtype",
    "issubnormal", "issubset", "isunordered", "isuppercase", "isvalid", "iswritable", "isxdigit", "iszero",
    "iterate", "join", "keepat!", "keys", "keytype", "kron", "kron!", "last", "lastindex", "lcfirst", "lcm",
    "ldexp", "leading_ones", "leading_zeros", "length", "log", "log10", "log1p", "log2", "lowercase",
    "lowercasefirst", "lpad", "lstrip", "ltoh", "map", "map!", "mapfoldl", "mapfoldr", "mapreduce",
    "mapslices", "mark", "match", "max", "maximum", "maximum!", "maxintfloat", "merge", "merge!", "mergewith",
    "mergewith!", "methods", "min", "minimum", "minimum!", "minmax", "mod", "mod1", "mod2pi", "modf",
    "muladd", "nameof", "names", "nand", "ncodeunits", "ndigits", "ndims", "nextfloat", "nextind", "nextpow",
    "nfields", "nonmissingtype", "nor", "normpath", "ntoh", "ntuple", "numerator", "objectid", "occursin",
    "oftype", "one", "ones", "oneunit", "only", "open", "pairs", "parent", "parentindices", "parentmodule",
    "parse", "partialsort", "partialsort!", "partialsortperm", "partialsortperm!", "peek", "permute!",
    "permutedims", "permutedims!", "pointer", "pointer_from_objref", "pop!", "popat!", "popfirst!",
    "position", "powermod", "precision", "prepend!", "prevfloat", "prevind", "prevpow", "print", "println",
    "printstyled", "prod", "prod!", "promote", "promote_rule", "promote_shape", "promote_type", "push!",
    "pushfirst!", "put!", "rad2deg", "rand", "randn", "range", "rationalize", "read", "read!", "readchomp",
    "readdir", "readline", "readlines", "readuntil", "real", "realpath", "redirect_stdout", "reduce",
    "reenable_sigint", "reim", "reinterpret", "rem", "rem2pi", "repeat", "replace", "replace!", "repr",
    "reset", "reshape", "resize!", "rethrow", "retry", "reverse", "reverse!", "reverseind", "rot180",
    "rotl90", "rotr90", "round", "rounding", "rpad", "rsplit", "rstrip", "searchsorted", "searchsortedfirst",
    "searchsortedlast", "sec", "secd", "sech", "seek", "seekend", "seekstart", "selectdim", "setdiff",
    "setdiff!", "setindex", "setindex!", "setprecision", "setproperty!", "show", "showerror", "sign",
    "signbit", "signed", "significand", "similar", "sin", "sinc", "sincos", "sincosd", "sincospi", "sind",
    "sinh", "sinpi", "size", "sizehint!", "sizeof", "skip", "skipchars", "skipmissing", "sleep", "something",
    "sort", "sort!", "sortperm", "sortperm!", "sortslices", "splat", "splice!", "split", "splitdir",
    "splitext", "splitpath", "sprint", "sqrt", "stack", "startswith", "step", "stride", "strides", "string",
    "strip", "strwidth", "sum", "sum!", "summary", "supertype", "symdiff", "symdiff!", "take!", "tan", "tand",
    "tanh", "tanpi", "task_local_storage", "textwidth", "thisind", "time", "time_ns", "titlecase",
    "to_indices", "trailing_ones", "trailing_zeros", "transcode", "transpose", "trues", "trunc", "truncate",
    "trylock", "tryparse", "tuple", "typeintersect", "typejoin", "typemax", "typemin", "typeof",
    "unescape_string", "union", "union!", "unique", "unique!", "unsafe_copyto!", "unsafe_load", "unsafe_read",
    "unsafe_store!", "unsafe_string", "unsafe_trunc", "unsafe_wrap", "unsafe_write", "unsigned", "uppercase",
    "uppercasefirst", "valtype", "values", "vcat", "vec", "view", "wait", "walkdir", "widemul", "widen",
    "write", "xor", "yield", "zero", "zeros", "zip",
];

/// Whether Base exports a function of this name.
pub(super) fn is_exported(name: &str) -> bool {
    EXPORTED.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_in_order() {
        assert!(EXPORTED.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(is_exported("join") && is_exported("unsafe_wrap") && !is_exported("throw_boundserror"));
    }
}
