# Six programs of the kinds that were slowest in `eighth.jl` and `ninth.jl`, written before they were measured: comprehensions with a condition, tables of symbols, counts of bits,
# text written into a buffer, vectors that grow and shrink.
module Programs
y_pyth(n::Int) = length([(a, b) for a in 1:n for b in a:n if (a * a + b * b) % 25 == 0])
y_squares(n::Int) = sum([x * x for x in 1:n if isodd(x) && x % 7 != 3])
y_states(n::Int) = (t = Dict(:idle => :run, :run => :wait, :wait => :idle); c = Dict{Symbol,Int}(); s = :idle; for i in 1:n; c[s] = get(c, s, 0) + i % 3; s = t[s]; end; c[:run] - c[:wait])
y_bitlen(n::Int, m::Int) = (v = UInt32[(i * 2654435761) % 4294967296 for i in 1:n]; s = 0; for k in 1:m; for i in 1:n; s += 64 - leading_zeros(i * k) + count_ones(v[i]); end; end; s)
y_table(n::Int) = (io = IOBuffer(); for i in 1:n; print(io, "row ", i, ':', '\t', i % 7 == 0, ';'); end; sizeof(String(take!(io))))
y_rpn(n::Int) = (st = Int[]; for i in 1:n; push!(st, i); if i % 2 == 0; b = pop!(st); a = pop!(st); push!(st, (a * 3 + b) % 1009); end; end; sum(st) + length(st))
end
# The sizes that `benches/julia.rs` times.
const TIMED = [
    ("y_pyth", (300,)), ("y_squares", (100000,)), ("y_states", (10000,)), ("y_bitlen", (10000, 10)), ("y_table", (1000,)), ("y_rpn", (10000,)),
]
const CASES = [(name, [map(n -> min(n, most), size) for most in (9, 70)]) for (name, size) in TIMED]
