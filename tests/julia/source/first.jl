# Small programs in the shape that people write: text, numbers, collections, exceptions, closures. `print.jl` prints them as Julia does.
module Programs
collatz_max(n::Int) = (best = 0; for i in 1:n; c = 0; x = i; while x != 1; x = iseven(x) ? x >> 1 : 3x + 1; c += 1; end; best = max(best, c); end; best)
fibd(n::Int) = (d = Dict{Int,Int}(); function f(k) ; k < 2 && return k; haskey(d, k) && return d[k]; r = f(k-1) + f(k-2); d[k] = r; r; end; f(n))
wordfreq(s::String) = (d = Dict{String,Int}(); for w in split(s); k = String(w); d[k] = get(d, k, 0) + 1; end; sort!(collect(keys(d))))
caesar(s::String, k::Int) = map(c -> isletter(c) ? Char((Int(lowercase(c)) - 97 + k) % 26 + 97) : c, s)
revwords(s::String) = join(reverse(split(s, ' ')), ' ')
vowels(s::String) = count(c -> c in "aeiou", s)
matpow(n::Int) = (m = [1 1; 1 0]; r = [1 0; 0 1]; while n > 0; isodd(n) && (r = r * m); m = m * m; n >>= 1; end; r[1, 2])
transpose_sum(n::Int) = (a = reshape(collect(1:n*n), n, n); sum(a') + a[1, n])
sumsq(v::Vector{Float64}) = sqrt(sum(x -> x^2, v))
runs(v::Vector{Int}) = (out = Tuple{Int,Int}[]; i = 1; while i <= length(v); j = i; while j < length(v) && v[j+1] == v[i]; j += 1; end; push!(out, (v[i], j - i + 1)); i = j + 1; end; out)
primes(n::Int) = (s = trues(n); s[1] = false; for i in 2:isqrt(n); if s[i]; for j in i*i:i:n; s[j] = false; end; end; end; findall(s))
bits(n::Int) = string(n, base = 2)
hexs(n::Int) = string(n, base = 16, pad = 8)
pad(s::String) = lpad(s, 8) * "|" * rpad(s, 8, '.')
upcase(s::String) = uppercase(s) * titlecase(s)
toint(s::String) = parse(Int, s)
tofloat(s::String) = parse(Float64, s)
maybeint(s::String) = something(tryparse(Int, s), -1)
mergesorted(a::Vector{Int}, b::Vector{Int}) = sort!(vcat(a, b))
uniq(v::Vector{Int}) = unique(v)
setops(a::Vector{Int}, b::Vector{Int}) = sort!(collect(intersect(Set(a), Set(b))))
histogram(v::Vector{Int}) = (h = zeros(Int, maximum(v)); for x in v; h[x] += 1; end; h)
zipdot(a::Vector{Float64}, b::Vector{Float64}) = sum(x * y for (x, y) in zip(a, b))
cumul(v::Vector{Int}) = cumsum(v)
rev(v::Vector{Int}) = reverse(v)
clampit(v::Vector{Float64}) = clamp.(v, 0.0, 1.0)
broadcast2(a::Vector{Float64}, b::Float64) = a .* b .+ 1.0
argmx(v::Vector{Int}) = argmax(v)
fmax(v::Vector{Float64}) = findmax(v)
anyneg(v::Vector{Int}) = any(x -> x < 0, v)
allpos(v::Vector{Int}) = all(x -> x > 0, v)
mapfilter(v::Vector{Int}) = filter(isodd, map(x -> x * x, v))
compr(n::Int) = [i * j for i in 1:n for j in i:n if (i + j) % 2 == 0]
tupsum(t::Tuple{Int,Float64,Int8}) = sum(t)
ntsum(a::Int, b::Float64) = (nt = (x = a, y = b, z = a + b); nt.x + nt.y + nt.z)
rat(a::Int, b::Int) = (r = a // b; (r + 1 // 3) * 2)
cplx(a::Float64, b::Float64) = abs2((a + b * im)^2)
gcdlcm(a::Int, b::Int) = (gcd(a, b), lcm(a, b))
divs(a::Int, b::Int) = (div(a, b), rem(a, b), mod(a, b), fld(a, b), cld(a, b))
trig(x::Float64) = sin(x)^2 + cos(x)^2 + tan(x) - atan(x)
expo(x::Float64) = exp(x) * log(x) + log2(x) + log10(x) + expm1(x) + log1p(x)
rounding(x::Float64) = (round(Int, x), floor(Int, x), ceil(Int, x), trunc(Int, x))
f32(x::Float32) = sqrt(x) + exp(x) * 2f0
chk(a::Int, b::Int) = Base.checked_mul(a, b)
safe(a::Int, b::Int) = try; div(a, b); catch e; e isa DivideError ? -1 : rethrow(); end
nestedtry(n::Int) = (s = 0; for i in 1:n; try; i % 3 == 0 && error("three"); s += i; catch e; s -= length(e.msg); finally; s += 100; end; end; s)
oob(v::Vector{Int}, i::Int) = try; v[i]; catch e; e isa BoundsError ? 0 : 1; end
keyerr(i::Int) = (d = Dict(1 => "a"); try; d[i]; catch e; e isa KeyError ? "none" : "other"; end)
struct P2; x::Float64; y::Float64; end
Base.:+(a::P2, b::P2) = P2(a.x + b.x, a.y + b.y)
points(n::Int) = (p = P2(0.0, 0.0); for i in 1:n; p = p + P2(i, 2i); end; p.x * p.y)
mutable struct Stack{T}; items::Vector{T}; end
Base.push!(s::Stack, x) = (push!(s.items, x); s)
Base.pop!(s::Stack) = pop!(s.items)
stack(n::Int) = (s = Stack(Int[]); for i in 1:n; push!(s, i); i % 3 == 0 && pop!(s); end; length(s.items))
abstract type Animal end
struct Dog <: Animal; n::Int; end
struct Cat <: Animal; n::Int; end
sound(d::Dog) = d.n; sound(c::Cat) = -c.n
zoo(n::Int) = (v = Animal[]; for i in 1:n; push!(v, i % 2 == 0 ? Dog(i) : Cat(i)); end; sum(sound(a) for a in v))
compose(n::Int) = ((x -> x + 1) ∘ (x -> 2x))(n)
adder(n::Int) = (f = x -> x + n; g = y -> f(y) * n; g(3))
counter(n::Int) = (c = 0; inc = () -> (c += 1); for _ in 1:n; inc(); end; c)
curry(n::Int) = (add(a) = b -> a + b; map(add(n), [1, 2, 3]))
foldit(v::Vector{Int}) = foldl(-, v) + foldr(-, v)
str(x::Float64) = string(x)
stri(x::Int, s::String) = "$s=$x;"
showv(v::Vector{Int}) = string(v)
rept(s::String, n::Int) = s^n
idx(s::String) = (findfirst('l', s), findlast('l', s), s[2:3])
repl(s::String) = replace(s, "a" => "bb")
starts(s::String) = (startswith(s, "ab"), endswith(s, "yz"), occursin("cd", s))
stripit(s::String) = strip(s)
charsum(s::String) = sum(Int(c) for c in s)
utf(s::String) = (length(s), ncodeunits(s), collect(s)[end])
chunk(s::String) = [s[i:min(i+1, end)] for i in 1:2:length(s)]
cmp3(a::String, b::String) = (a < b, a == b, cmp(a, b))
sortby(v::Vector{String}) = sort(v, by = length, rev = true)
sortp(v::Vector{Float64}) = sortperm(v)
psort(v::Vector{Tuple{Int,String}}) = sort(v)
ssorted(v::Vector{Int}, x::Int) = (searchsortedfirst(v, x), searchsortedlast(v, x))
ins(v::Vector{Int}) = (insert!(v, 2, 99); deleteat!(v, 1); v)
app(v::Vector{Int}) = append!(v, [7, 8], )
pops(v::Vector{Int}) = (a = pop!(v); b = popfirst!(v); pushfirst!(v, a + b); v)
fil(n::Int) = fill(1.5, n)
mat(n::Int) = (a = zeros(n, n); for i in 1:n, j in 1:n; a[i, j] = i * 10 + j; end; a[2, :])
matvec(n::Int) = (a = [Float64(i + j) for i in 1:n, j in 1:n]; a * ones(n))
dictit(n::Int) = (d = Dict(i => i^2 for i in 1:n); sum(k * v for (k, v) in d))
dictdel(n::Int) = (d = Dict("k$i" => i for i in 1:n); delete!(d, "k2"); length(d) + get(d, "k3", 0))
setit(n::Int) = (s = Set{Int}(); for i in 1:n; push!(s, i % 5); end; length(s))
bigf(n::Int) = factorial(n) % 1000007
pw(a::Int, b::Int) = a^b + powermod(a, b, 97)
isp(n::Int) = (n < 2 ? false : all(n % i != 0 for i in 2:isqrt(n)))
digs(n::Int) = (digits(n), ndigits(n), sum(digits(n, base = 2)))
popc(x::UInt32) = (count_ones(x), leading_zeros(x), trailing_zeros(x), bswap(x))
rot(x::UInt8) = (bitrotate(x, 3), x << 2, x >>> 1, ~x, xor(x, 0x0f))
i128(a::Int) = Int128(a)^4 % 1000003
u64(a::UInt64) = a * 0x9e3779b97f4a7c15 ⊻ (a >> 7)
conv(x::Int) = (Int8(x), UInt16(x), Float32(x), Bool(x % 2))
f16(x::Float64) = Float16(x) + Float16(1)
missing_sum(n::Int) = (v = Union{Missing,Int}[i % 3 == 0 ? missing : i for i in 1:n]; sum(skipmissing(v)))
nothing_count(n::Int) = (v = Union{Nothing,Int}[i % 3 == 0 ? nothing : i for i in 1:n]; count(isnothing, v))
anyv(n::Int) = (v = Any[1, 2.5, "x", :s, nothing]; length(v) + n)
typeswitch(x::Int) = (v = Any[x, Float64(x), string(x)]; s = 0; for e in v; e isa Int ? (s += 1) : e isa Float64 ? (s += 10) : (s += 100); end; s)
enumr(v::Vector{Int}) = sum(i * x for (i, x) in enumerate(v))
steps(a::Int, b::Int) = sum(a:2:b) + length(a:3:b) + last(a:2:b)
frange(n::Int) = sum(range(0.0, 1.0, length = n))
vw(v::Vector{Int}) = (w = view(v, 2:3); w[1] = 100; sum(v))
rsh(n::Int) = size(reshape(1:12, 3, 4))[n]
cat2(n::Int) = [[1, 2]; [n, 4]]
hv(n::Int) = hcat([1, 2], [n, 4])[2, 2]
swap(a::Int, b::Int) = ((a, b) = (b, a); (a, b))
kw(; a::Int = 1, b::Int = 2) = a * 10 + b
kwc(n::Int) = kw(b = n) + kw(a = n)
va(xs...) = length(xs) + sum(xs)
vac(n::Int) = va(1, 2, n) + va(n)
splat(v::Vector{Int}) = max(v...)
opt(a::Int, b::Int = a + 1) = a * b
optc(n::Int) = opt(n) + opt(n, 2)
sym(n::Int) = Symbol("v", n)
hsh(s::String) = hash(s) == hash(s * "")
multi(n::Int) = (x = 0; for i in 1:n, j in 1:n; j > i && break; x += 1; end; x)
lbl(n::Int) = (while true; n -= 1; n % 7 == 0 && return n; n < -50 && break; end; -1)
whilec(v::Vector{Int}) = (i = 0; s = 0; while i < length(v); i += 1; v[i] < 0 && continue; s += v[i]; end; s)
stats(v::Vector{Float64}) = (m = sum(v) / length(v); s = sqrt(sum((x - m)^2 for x in v) / (length(v) - 1)); (m, s))
ema(v::Vector{Float64}) = (a = 0.5; r = similar(v); r[1] = v[1]; for i in 2:length(v); r[i] = a * v[i] + (1 - a) * r[i-1]; end; r)
lev(a::String, b::String) = (m = length(a); n = length(b); d = [i + j == 0 ? 0 : (j == 0 ? i : (i == 0 ? j : 0)) for i in 0:m, j in 0:n]; for i in 1:m, j in 1:n; c = a[i] == b[j] ? 0 : 1; d[i+1, j+1] = min(d[i, j+1] + 1, d[i+1, j] + 1, d[i, j] + c); end; d[m+1, n+1])
bsearch(v::Vector{Int}, x::Int) = (lo = 1; hi = length(v); while lo <= hi; m = (lo + hi) >>> 1; v[m] == x && return m; v[m] < x ? (lo = m + 1) : (hi = m - 1); end; 0)
gray(n::Int) = [xor(i, i >> 1) for i in 0:n-1]
perms(v::Vector{Int}) = (out = Vector{Int}[]; function go(k); if k > length(v); push!(out, copy(v)); return; end; for i in k:length(v); v[k], v[i] = v[i], v[k]; go(k + 1); v[k], v[i] = v[i], v[k]; end; end; go(1); length(out))
queens(n::Int) = (function place(r, c, d1, d2); r == n && return 1; s = 0; for i in 0:n-1; b = 1 << i; e = 1 << (r + i); f = 1 << (r - i + n); (c & b | d1 & e | d2 & f) == 0 && (s += place(r + 1, c | b, d1 | e, d2 | f)); end; s; end; place(0, 0, 0, 0))
end
const CASES = [
("collatz_max", [(30,), (1,)]), ("fibd", [(40,)]), ("wordfreq", [("the cat the dog a cat",)]), ("caesar", [("hello world", 3)]), ("revwords", [("one two three",)]), ("vowels", [("education",)]),
("matpow", [(10,)]), ("transpose_sum", [(4,)]), ("sumsq", [([3.0, 4.0],)]), ("runs", [([1, 1, 2, 3, 3, 3],)]), ("primes", [(50,)]), ("bits", [(37,), (-5,)]), ("hexs", [(48879,)]), ("pad", [("abc",)]), ("upcase", [("hello wOrld",)]),
("toint", [("123",), ("-77",), ("x",)]), ("tofloat", [("1.5",), ("-2e3",), ("q",)]), ("maybeint", [("12",), ("z",)]), ("mergesorted", [([3, 1], [2, 5])]), ("uniq", [([1, 2, 1, 3],)]), ("setops", [([1, 2, 3], [2, 3, 4])]),
("histogram", [([1, 2, 2, 4],)]), ("zipdot", [([1.0, 2.0], [3.0, 4.0])]), ("cumul", [([1, 2, 3],)]), ("rev", [([1, 2, 3],)]), ("clampit", [([-1.0, 0.5, 2.0],)]), ("broadcast2", [([1.0, 2.0], 2.5)]), ("argmx", [([3, 9, 2],)]), ("fmax", [([1.0, 7.5],)]),
("anyneg", [([1, -2],), ([1],)]), ("allpos", [([1, 2],)]), ("mapfilter", [([1, 2, 3],)]), ("compr", [(4,)]), ("tupsum", [((1, 2.5, Int8(3)),)]), ("ntsum", [(1, 2.5)]), ("rat", [(1, 2)]), ("cplx", [(1.0, 2.0)]), ("gcdlcm", [(12, 18)]), ("divs", [(7, 2), (-7, 2), (1, 0)]),
("trig", [(0.7,)]), ("expo", [(1.5,)]), ("rounding", [(2.5,), (-1.2,)]), ("f32", [(2f0,)]), ("chk", [(3, 4), (typemax(Int), 2)]), ("safe", [(7, 2), (1, 0)]), ("nestedtry", [(7,)]), ("oob", [([1, 2], 2), ([1, 2], 5)]), ("keyerr", [(1,), (2,)]),
("points", [(4,)]), ("stack", [(10,)]), ("zoo", [(6,)]), ("compose", [(5,)]), ("adder", [(4,)]), ("counter", [(5,)]), ("curry", [(2,)]), ("foldit", [([1, 2, 3, 4],)]), ("str", [(1.5,), (1e300,), (0.1,)]), ("stri", [(4, "n")]), ("showv", [([1, 2],)]), ("rept", [("ab", 3)]),
("idx", [("hello",)]), ("repl", [("banana",)]), ("starts", [("abcdxyz",)]), ("stripit", [("  hi ",)]), ("charsum", [("abc",)]), ("utf", [("héllo",)]), ("chunk", [("abcde",)]), ("cmp3", [("abc", "abd")]), ("sortby", [(["a", "ccc", "bb"],)]), ("sortp", [([3.0, 1.0, 2.0],)]), ("psort", [([(2, "b"), (1, "z"), (2, "a")],)]),
("ssorted", [([1, 3, 3, 7], 3)]), ("ins", [([1, 2, 3],)]), ("app", [([1],)]), ("pops", [([1, 2, 3],)]), ("fil", [(3,)]), ("mat", [(3,)]), ("matvec", [(3,)]), ("dictit", [(5,)]), ("dictdel", [(5,)]), ("setit", [(12,)]), ("bigf", [(10,), (25,)]), ("pw", [(3, 7)]), ("isp", [(97,), (91,)]), ("digs", [(1234,)]),
("popc", [(0x000f0f00,)]), ("rot", [(0x96,)]), ("i128", [(12345,)]), ("u64", [(0x0123456789abcdef,)]), ("conv", [(100,), (300,)]), ("f16", [(2.3,)]), ("missing_sum", [(10,)]), ("nothing_count", [(10,)]), ("anyv", [(2,)]), ("typeswitch", [(3,)]), ("enumr", [([4, 5, 6],)]), ("steps", [(1, 10)]), ("frange", [(11,)]),
("vw", [([1, 2, 3, 4],)]), ("rsh", [(1,)]), ("cat2", [(3,)]), ("hv", [(3,)]), ("swap", [(1, 2)]), ("kwc", [(5,)]), ("vac", [(3,)]), ("splat", [([3, 8, 1],)]), ("optc", [(4,)]), ("sym", [(3,)]), ("hsh", [("abc",)]), ("multi", [(5,)]), ("lbl", [(30,)]), ("whilec", [([1, -2, 3],)]), ("stats", [([1.0, 2.0, 4.0],)]), ("ema", [([1.0, 2.0, 4.0],)]),
("lev", [("kitten", "sitting")]), ("bsearch", [([1, 3, 5, 7], 5), ([1, 3], 4)]), ("gray", [(8,)]), ("perms", [([1, 2, 3, 4],)]), ("queens", [(5,)]),
]
