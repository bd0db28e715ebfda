# Programs that were written together with those of `eighth.jl` and measured when the changes that docs/performance.md lists under "Beside Julia" were finished.
module Programs
z_bitset(n::Int, m::Int) = (v = UInt32[i * 2654435761 % 4294967296 for i in 1:n]; s = 0; for k in 1:m; for x in v; s += count_ones(x & UInt32(0xf0f0f0f)); end; end; s)
z_gray(n::Int) = (s = 0; for i in 0:n; g = i ⊻ (i >> 1); s += g & 0xff; end; s)
z_ilog(n::Int) = (s = 0; for i in 1:n; s += 63 - leading_zeros(i); end; s)
z_fnv64(n::Int) = (s = repeat("lorem ipsum", n); h = 0xcbf29ce484222325; for b in codeunits(s); h = (h ⊻ b) * 0x00000100000001b3; end; Int(h >> 1))
z_adler(n::Int) = (v = UInt8[i % 251 for i in 1:n]; a = UInt32(1); b = UInt32(0); for x in v; a = (a + x) % UInt32(65521); b = (b + a) % UInt32(65521); end; Int(b << 16 | a))
z_csv(n::Int) = (io = IOBuffer(); for i in 1:n; print(io, i, ',', i * i, '\n'); end; length(String(take!(io))))
z_tostrings(n::Int) = (v = map(string, 1:n); sum(length, v))
z_lpad(n::Int) = (c = 0; for i in 1:n; c += length(lpad(string(i), 8, '0')); end; c)
z_hex(n::Int) = (c = 0; for i in 1:n; c += length(string(i, base = 16)); end; c)
z_reverse(n::Int) = (s = repeat("abcd", n); c = 0; for ch in reverse(s); c = c * 3 + Int(ch) & 0xfff; end; c)
z_brackets(n::Int) = (s = repeat("([{}])", n); st = Char[]; c = 0; for ch in s; if ch in "([{"; push!(st, ch); else; pop!(st); c += 1; end; end; c)
z_wordlens(n::Int) = (s = repeat("some words of text ", n); c = 0; m = 0; for ch in s; if ch == ' '; m = max(m, c); c = 0; else; c += 1; end; end; m)
z_anagram(n::Int) = (c = 0; for i in 1:n; a = sort(collect(string(i))); b = sort(collect(string(2i))); a == b && (c += 1); end; c)
z_invert(n::Int) = (d = Dict(i => i * i % 101 for i in 1:n); e = Dict{Int,Int}(); for (k, v) in d; e[v] = max(get(e, v, 0), k); end; sum(values(e)))
z_symcount(n::Int) = (d = Dict{Symbol,Int}(); ks = [:a, :b, :c, :d]; for i in 1:n; k = ks[i%4+1]; d[k] = get(d, k, 0) + 1; end; d[:a])
z_tupdict(n::Int) = (d = Dict{Tuple{Int,Int},Int}(); for i in 1:n; k = (i % 10, i % 7); d[k] = get(d, k, 0) + i; end; d[(1, 1)])
z_setops(n::Int) = (a = Set(1:2:n); b = Set(1:3:n); length(intersect(a, b)) + length(union(a, b)))
z_partition(n::Int) = (v = [(i * 7919) % 1009 for i in 1:n]; lo = Int[]; hi = Int[]; for x in v; x < 500 ? push!(lo, x) : push!(hi, x); end; length(lo) - length(hi))
z_pairs3(n::Int) = (c = 0; for i in 1:n, j in i:n; if (i * i + j * j) % 7 == 0; c += 1; end; end; c)
z_flatten(n::Int) = (s = 0; for x in Iterators.flatten((1:n, n:-1:1)); s += x; end; s)
z_take(n::Int) = (s = 0; for x in Iterators.take(Iterators.filter(x -> x % 7 == 3, 1:10n), n); s += x; end; s)
z_accum(n::Int) = (v = accumulate(+, 1:n); v[n] - v[1])
z_diffs(n::Int) = (v = [i * i % 97 for i in 1:n]; s = 0; for i in 2:n; s += abs(v[i] - v[i-1]); end; s)
struct V3; x::Float64; y::Float64; z::Float64; end
Base.:+(a::V3, b::V3) = V3(a.x + b.x, a.y + b.y, a.z + b.z)
Base.:*(k::Float64, a::V3) = V3(k * a.x, k * a.y, k * a.z)
z_vec3(n::Int) = (s = V3(0.0, 0.0, 0.0); for i in 1:n; s = s + (1.0 / i) * V3(i, 2.0, 0.5); end; s.x + s.y + s.z)
mutable struct Stack; items::Vector{Int}; top::Int; end
put!(s::Stack, x::Int) = (s.top += 1; s.items[s.top] = x; s)
take1!(s::Stack) = (x = s.items[s.top]; s.top -= 1; x)
z_stack(n::Int) = (s = Stack(zeros(Int, n), 0); t = 0; for i in 1:n; put!(s, i); i % 3 == 0 && (t += take1!(s)); end; t)
mutable struct Bst; key::Int; l::Union{Bst,Nothing}; r::Union{Bst,Nothing}; end
ins(t::Union{Bst,Nothing}, k::Int) = t === nothing ? Bst(k, nothing, nothing) : (k < t.key ? (t.l = ins(t.l, k)) : (t.r = ins(t.r, k)); t)
depth(t::Union{Bst,Nothing}) = t === nothing ? 0 : 1 + max(depth(t.l), depth(t.r))
z_bst(n::Int) = (t = nothing; for i in 1:n; t = ins(t, (i * 7919) % 10007); end; depth(t))
z_heap(n::Int) = begin
    h = Int[]
    for i in 1:n
        push!(h, (i * 7919) % 10007); j = length(h)
        while j > 1 && h[j>>1] > h[j]
            h[j>>1], h[j] = h[j], h[j>>1]; j >>= 1
        end
    end
    h[1] + h[end]
end
z_merge(n::Int) = (a = collect(1:2:2n); b = collect(2:2:2n); c = Int[]; i = j = 1; while i <= n && j <= n; if a[i] < b[j]; push!(c, a[i]); i += 1; else; push!(c, b[j]); j += 1; end; end; length(c))
z_shell(n::Int) = begin
    v = [(i * 7919) % 10007 for i in 1:n]; g = n >> 1
    while g > 0
        for i in g+1:n
            x = v[i]; j = i
            while j > g && v[j-g] > x
                v[j] = v[j-g]; j -= g
            end
            v[j] = x
        end
        g >>= 1
    end
    v[1] + v[n]
end
z_trace(n::Int) = (a = [i * j % 10 for i in 1:n, j in 1:n]; b = [i + j for i in 1:n, j in 1:n]; s = 0; for i in 1:n, k in 1:n; s += a[i, k] * b[k, i]; end; s)
z_conv2(n::Int) = (a = [(i * j) % 9 + 0.0 for i in 1:n, j in 1:n]; b = zeros(n, n); for j in 2:n-1, i in 2:n-1; s = 0.0; for q in -1:1, p in -1:1; s += a[i+p, j+q]; end; b[i, j] = s / 9; end; sum(b))
z_coins(n::Int) = (w = zeros(Int, n + 1); w[1] = 1; for c in (1, 5, 10, 25, 50); for i in c:n; w[i+1] += w[i-c+1]; end; end; w[n+1])
z_maxsub(n::Int) = (v = [(i * 37) % 19 - 9 for i in 1:n]; b = c = 0; for x in v; c = max(0, c + x); b = max(b, c); end; b)
z_simpson(n::Int) = (f(x) = x * x * exp(-x); h = 10.0 / n; s = f(0.0) + f(10.0); for i in 1:n-1; s += (iseven(i) ? 2 : 4) * f(i * h); end; s * h / 3)
z_montepi(n::Int) = (x = UInt32(12345); c = 0; for i in 1:n; x = x * 0x0019660d + 0x3c6ef35f; a = (x >> 8) / 16777216; x = x * 0x0019660d + 0x3c6ef35f; b = (x >> 8) / 16777216; c += a * a + b * b <= 1.0; end; c)
z_modpow(n::Int) = (s = 0; for i in 1:n; s += powermod(3, i, 1009); end; s)
z_divsum(n::Int) = (s = 0; for i in 1:n; for d in 1:isqrt(i); if i % d == 0; s += d; d * d != i && (s += i ÷ d); end; end; end; s)
z_memo(n::Int) = (m = Dict{Int,Int}(); f(k) = k < 2 ? k : get!(() -> (f(k - 1) + f(k - 2)) % 1000007, m, k); s = 0; for i in 1:n; s += f(i); end; s)
z_foldl(n::Int) = foldl((a, x) -> (a * 31 + x) & 0xffff, 1:n)
z_countf(n::Int) = (v = [sin(1.0i) for i in 1:n]; count(x -> x > 0.5, v))
z_extrema(n::Int) = (v = [sin(1.0i) for i in 1:n]; (a, b) = extrema(v); b - a)
z_findall(n::Int) = length(findall(x -> x % 3 == 0, [i * i % 1000 for i in 1:n]))
end
# The sizes that `benches/julia.rs` times.
const TIMED = [
    ("z_bitset", (10000, 10)), ("z_gray", (100000,)), ("z_ilog", (100000,)), ("z_fnv64", (1000,)), ("z_adler", (100000,)), ("z_csv", (1000,)), ("z_tostrings", (1000,)), ("z_lpad", (1000,)),
    ("z_hex", (1000,)), ("z_reverse", (1000,)), ("z_brackets", (1000,)), ("z_wordlens", (1000,)), ("z_anagram", (1000,)), ("z_invert", (1000,)), ("z_symcount", (10000,)), ("z_tupdict", (10000,)),
    ("z_setops", (1000,)), ("z_partition", (10000,)), ("z_pairs3", (300,)), ("z_flatten", (10000,)), ("z_take", (10000,)), ("z_accum", (10000,)), ("z_diffs", (10000,)), ("z_vec3", (10000,)),
    ("z_stack", (10000,)), ("z_bst", (1000,)), ("z_heap", (10000,)), ("z_merge", (10000,)), ("z_shell", (1000,)), ("z_trace", (100,)), ("z_conv2", (64,)),
    ("z_coins", (10000,)), ("z_maxsub", (10000,)), ("z_simpson", (10000,)), ("z_montepi", (100000,)), ("z_modpow", (1000,)), ("z_divsum", (1000,)), ("z_memo", (300,)), ("z_foldl", (100000,)),
    ("z_countf", (10000,)), ("z_extrema", (10000,)), ("z_findall", (10000,)),
]
const CASES = [(name, [map(n -> min(n, most), size) for most in (9, 70)]) for (name, size) in TIMED]
