# Small programs in the shape that people write: text, numbers, collections, exceptions, closures. `print.jl` prints them as Julia does.
module Programs
toks(s::String) = (out = String[]; cur = ""; for c in s; if c == ' '; isempty(cur) || push!(out, cur); cur = ""; else; cur *= c; end; end; isempty(cur) || push!(out, cur); out)
balanced(s::String) = (d = 0; for c in s; c == '(' && (d += 1); c == ')' && (d -= 1); d < 0 && return false; end; d == 0)
rle(s::String) = (io = IOBuffer(); i = 1; v = collect(s); while i <= length(v); j = i; while j < length(v) && v[j+1] == v[i]; j += 1; end; print(io, v[i], j - i + 1); i = j + 1; end; String(take!(io)))
anagram(a::String, b::String) = sort(collect(a)) == sort(collect(b))
romans(n::Int) = (r = [("M", 1000), ("CM", 900), ("D", 500), ("CD", 400), ("C", 100), ("XC", 90), ("L", 50), ("XL", 40), ("X", 10), ("IX", 9), ("V", 5), ("IV", 4), ("I", 1)]; s = ""; for (t, v) in r; while n >= v; s *= t; n -= v; end; end; s)
bubble(v::Vector{Float64}) = (v = copy(v); n = length(v); for i in 1:n-1, j in 1:n-i; v[j] > v[j+1] && ((v[j], v[j+1]) = (v[j+1], v[j])); end; v)
heap(v::Vector{Int}) = (h = Int[]; for x in v; push!(h, x); i = length(h); while i > 1 && h[i >> 1] > h[i]; h[i], h[i >> 1] = h[i >> 1], h[i]; i >>= 1; end; end; h[1])
dijkstra(n::Int) = (d = fill(typemax(Int), n); d[1] = 0; done = falses(n); for _ in 1:n; u = 0; for i in 1:n; if !done[i] && (u == 0 || d[i] < d[u]); u = i; end; end; done[u] = true; for v in (u + 1, 2u); if v <= n && d[u] + v < d[v]; d[v] = d[u] + v; end; end; end; d)
knap(w::Vector{Int}, v::Vector{Int}, c::Int) = (t = zeros(Int, c + 1); for i in eachindex(w), k in c:-1:w[i]; t[k+1] = max(t[k+1], t[k+1-w[i]] + v[i]); end; t[end])
lcs(a::String, b::String) = (x = collect(a); y = collect(b); t = zeros(Int, length(x) + 1, length(y) + 1); for i in 1:length(x), j in 1:length(y); t[i+1, j+1] = x[i] == y[j] ? t[i, j] + 1 : max(t[i, j+1], t[i+1, j]); end; t[end, end])
simpson(n::Int) = (f(x) = x^3 - 2x; h = 1.0 / n; s = f(0.0) + f(1.0); for i in 1:n-1; s += (i % 2 == 0 ? 2 : 4) * f(i * h); end; s * h / 3)
newt(x::Float64) = (y = x; while abs(y * y - x) > 1e-12; y = (y + x / y) / 2; end; y)
lu2(n::Int) = (a = [1.0 / (i + j) + (i == j) for i in 1:n, j in 1:n]; for k in 1:n-1, i in k+1:n; a[i, k] /= a[k, k]; for j in k+1:n; a[i, j] -= a[i, k] * a[k, j]; end; end; prod(a[i, i] for i in 1:n))
dft(v::Vector{Float64}) = (n = length(v); r = zeros(ComplexF64, n); for k in 1:n, j in 1:n; r[k] += v[j] * cis(-2pi * (k - 1) * (j - 1) / n); end; round.(Int, abs.(r)))
mandel(x::Float64, y::Float64) = (z = 0.0im; c = complex(x, y); for i in 1:100; abs2(z) > 4 && return i; z = z * z + c; end; 100)
gcdx2(a::Int, b::Int) = gcdx(a, b)
ratsum(n::Int) = sum(1 // i for i in 1:n)
bitcnt(n::Int) = sum(count_ones(i) for i in 0:n)
crc(s::String) = (c = 0xffffffff; for b in codeunits(s); c = xor(c, UInt32(b)); for _ in 1:8; c = (c & 1) == 1 ? xor(c >> 1, 0xedb88320) : c >> 1; end; end; ~c)
fnv(s::String) = (h = 0xcbf29ce484222325; for b in codeunits(s); h = xor(h, UInt64(b)) * 0x100000001b3; end; h)
struct Node2; v::Int; kids::Vector{Node2}; end
tsum(n::Node2) = n.v + sum(Int[tsum(k) for k in n.kids])
tree(n::Int) = tsum(Node2(n, [Node2(i, Node2[]) for i in 1:n]))
mutable struct LL; v::Int; next::Union{LL,Nothing}; end
revlist(n::Int) = (h = nothing; for i in 1:n; h = LL(i, h); end; p = nothing; while h !== nothing; t = h.next; h.next = p; p = h; h = t; end; s = 0; k = 1; while p !== nothing; s += k * p.v; k += 1; p = p.next; end; s)
abstract type Expr2 end
struct Num <: Expr2; v::Float64; end
struct Bin <: Expr2; op::Symbol; l::Expr2; r::Expr2; end
ev(e::Num) = e.v
ev(e::Bin) = e.op === :+ ? ev(e.l) + ev(e.r) : e.op === :* ? ev(e.l) * ev(e.r) : error("bad op")
evalx(a::Float64) = ev(Bin(:+, Num(a), Bin(:*, Num(2.0), Num(a))))
evalbad(a::Float64) = ev(Bin(:-, Num(a), Num(1.0)))
memo(n::Int) = (m = Dict{Tuple{Int,Int},Int}(); function g(i, j); i == 0 || j == 0 && return 1; get!(m, (i, j)) do; g(i - 1, j) + g(i, j - 1); end; end; g(n, n))
wordlen(s::String) = (d = Dict{Int,Vector{String}}(); for w in split(s); push!(get!(d, length(w), String[]), w); end; [length(d[k]) for k in sort(collect(keys(d)))])
inv(d::Int) = (x = Dict("a" => 1, "b" => d); y = Dict(v => k for (k, v) in x); y[d])
mergew(n::Int) = (a = Dict(1 => 2, 3 => n); b = Dict(3 => 4); c = merge(+, a, b); c[3])
filterd(n::Int) = (d = Dict(i => i * i for i in 1:n); e = filter(p -> p.second % 2 == 0, d); sum(values(e)))
symd(v::Vector{Int}, w::Vector{Int}) = sort(collect(symdiff(Set(v), Set(w))))
prettyf(x::Float64) = string(round(x, digits = 2))
fmt(n::Int) = string(n, base = 8) * ":" * string(n, pad = 6) * ":" * bitstring(UInt8(n))
prs(s::String) = sum(parse(Int, t) for t in split(s, ','))
csv(s::String) = [split(l, ';') for l in split(s, '\n')][2][1]
trim(s::String) = string(lstrip(s), "|", rstrip(s), "|", chomp(s))
cap(s::String) = join([uppercasefirst(w) for w in split(s, " ")], " ")
pal(s::String) = (t = filter(isletter, lowercase(s)); t == reverse(t))
subst(s::String) = s[nextind(s, 1):prevind(s, lastindex(s))]
bytesum(s::String) = sum(codeunits(s))
chr(n::Int) = Char(n) * string(Char(n + 1))
isnum(s::String) = all(isdigit, s)
unesc(s::String) = repr(s)
cmpt(a::Tuple{Int,String}, b::Tuple{Int,String}) = (isless(a, b), a == b, max(a, b))
ntup(n::Int) = ntuple(i -> i * n, 4)
maptup(t::NTuple{3,Int}) = map(x -> x + 1, t)
revtup(t::NTuple{3,Int}) = reverse(t)
zip3(n::Int) = [a + b * c for (a, b, c) in zip(1:n, n:-1:1, 2:2:2n)]
enumd(v::Vector{String}) = Dict(i => s for (i, s) in enumerate(v))[2]
prodit(n::Int) = sum(i * j for i in 1:n, j in 1:n if i < j)
takew(n::Int) = collect(Iterators.take(Iterators.filter(isodd, 1:n), 3))
part(n::Int) = [sum(p) for p in Iterators.partition(1:n, 3)]
cyc(n::Int) = sum(Iterators.take(Iterators.cycle([1, 2, 3]), n))
red(v::Vector{Int}) = reduce(max, v) + mapreduce(abs, +, v; init = 10)
acc(v::Vector{Int}) = accumulate(max, v)
ext(v::Vector{Float64}) = extrema(v)
meanv(v::Vector{Int}) = sum(v) / length(v)
med(v::Vector{Float64}) = (s = sort(v); n = length(s); isodd(n) ? s[n ÷ 2 + 1] : (s[n ÷ 2] + s[n ÷ 2 + 1]) / 2)
dev(v::Vector{Float64}) = (m = sum(v) / length(v); maximum(abs.(v .- m)))
outer(n::Int) = sum((1:n) .* (1:n)')
diagm2(n::Int) = (m = zeros(Int, n, n); for i in 1:n; m[i, i] = i; end; sum(m, dims = 1)[2])
rot90(n::Int) = (m = reshape(1:n*n, n, n); [m[n + 1 - j, i] for i in 1:n, j in 1:n][1, 2])
slice(n::Int) = (m = [i * 10 + j for i in 1:n, j in 1:n]; sum(m[2:end, 1]) + sum(@view m[1, :]))
any2(n::Int) = any(x -> x > n, [1, 2, 3]) && !all(iseven, [2, 4, n])
cnt(v::Vector{Int}) = (count(iseven, v), count(==(3), v), findall(>(2), v))
fnd(v::Vector{Int}) = (findfirst(==(3), v), findlast(isodd, v), findnext(iseven, v, 2))
del(v::Vector{Int}) = (v = copy(v); filter!(x -> x != 3, v); splice!(v, 1); empty!(v); length(v))
res(n::Int) = (v = Int[]; sizehint!(v, n); resize!(v, 3); fill!(v, n); sum(v))
srt(v::Vector{Int}) = (sort(v, rev = true), sortperm(v, by = x -> -x), issorted(v))
srtby(v::Vector{Tuple{String,Int}}) = sort(v, by = last)
ps(v::Vector{Int}) = partialsort(v, 2)
circ(v::Vector{Int}) = circshift(v, 1)
rpt(v::Vector{Int}) = repeat(v, 2)
vct(v::Vector{Int}) = [v; v .+ 1; 9]
cl(x::Float64) = clamp(x, -1.0, 1.0) + sign(x) + abs(x) + hypot(x, 1.0)
trg(x::Float64) = sinh(x) + cosh(x) + tanh(x) + asin(x / 10) + acos(x / 10) + atan(x, 2.0)
pwf(x::Float64) = x^2 + x^-1 + x^0.5 + cbrt(x) + sqrt(x) + exp2(x) + exp10(x)
flt(x::Float64) = (isnan(x), isinf(x), isinteger(x), nextfloat(x), eps(x), significand(x), exponent(x))
rnd(x::Float64) = (round(x), round(x, RoundUp), trunc(x), floor(x), ceil(x), round(x, digits = 1))
fdiv(x::Float64, y::Float64) = (x % y, mod(x, y), div(x, y), rem(x, y, RoundNearest))
cx(a::Float64, b::Float64) = (z = complex(a, b); (real(z * conj(z)), imag(z), abs(z), angle(z)))
i8(x::Int8, y::Int8) = (x + y, x - y, x * y, x ÷ y, widemul(x, y))
ovf(x::Int) = try; Base.checked_add(x, 1); catch e; e isa OverflowError ? -1 : -2; end
inex(x::Float64) = try; Int(x); catch e; e isa InexactError ? 0 : 1; end
argerr(s::String) = try; parse(Int, s); catch e; e isa ArgumentError ? length(e.msg) : -1; end
thr(n::Int) = n > 3 ? throw(DomainError(n, "big")) : n
custom(n::Int) = (n == 0 && throw(ArgumentError("zero")); n)
fin(n::Int) = (r = Int[]; try; push!(r, 1); n > 0 && error("x"); push!(r, 2); catch; push!(r, 3); finally; push!(r, 4); end; r)
nest(n::Int) = try; try; error("a"); catch e; throw(ArgumentError("b")); end; catch e; e isa ArgumentError ? e.msg : "no"; end
loopc(n::Int) = (s = 0; for i in 1:n; i == 3 && continue; i == 7 && break; s += i; end; s)
dowh(n::Int) = (i = 0; while true; i += 3; i > n && break; end; i)
tern(n::Int) = n > 5 ? :big : n > 2 ? :mid : :small
sc(a::Bool, b::Bool) = (a && b, a || b, xor(a, b), !a)
defk(n::Int; k = n + 1, m::Float64 = 2.0) = n * k * m
defc(n::Int) = defk(n) + defk(n, k = 1) + defk(n; m = 1.0, k = 3)
vark(; kw...) = sum(values(kw))
varc(n::Int) = vark(a = n, b = 2)
destr(n::Int) = ((a, b), c) = ((n, 2), 3); 
clos(n::Int) = (fs = [() -> i * n for i in 1:3]; sum(f() for f in fs))
pipe(n::Int) = n |> (x -> x + 1) |> sqrt |> floor |> Int
bcast(v::Vector{Int}) = sum(@. v^2 + 2v - 1)
typep(x::T) where {T<:Number} = zero(T) + one(T) + typemax(Int8) * x
typc(n::Int) = typep(n) + typep(2.0) 
val(::Val{N}) where {N} = N + 1
valc(n::Int) = val(Val(3)) + n
unionf(n::Int) = (x = n > 2 ? n : "s"; x isa Int ? x + 1 : length(x))
missf(n::Int) = (x = n > 2 ? missing : n; coalesce(x, 0) + (ismissing(x) ? 1 : 2))
somef(n::Int) = (x = n > 2 ? Some(n) : nothing; something(x, 7))
randish(n::Int) = (s = UInt64(n); for _ in 1:10; s = s * 6364136223846793005 + 1442695040888963407; end; Int(s >> 33))
datef(n::Int) = (n % 4 == 0 && n % 100 != 0) || n % 400 == 0
life(n::Int) = (b = falses(5, 5); b[3, 2:4] .= true; for _ in 1:n; c = copy(b); for i in 2:4, j in 2:4; k = count(b[i-1:i+1, j-1:j+1]) - b[i, j]; c[i, j] = k == 3 || (b[i, j] && k == 2); end; b = c; end; findall(vec(b)))
end
const CASES = [
("toks", [("a bc  d",)]),
("balanced", [("(())()",), (")(",)]),
("rle", [("aaabcc",)]),
("anagram", [("abc","cab")]),
("romans", [(1994,)]),
("bubble", [([3.0,1.0,2.0],)]),
("heap", [([5,2,8,1],)]),
("dijkstra", [(6,)]),
("knap", [([1,2,3],[6,10,12],5)]),
("lcs", [("abcbdab","bdcaba")]),
("simpson", [(10,)]),
("newt", [(2.0,)]),
("lu2", [(4,)]),
("dft", [([1.0,2.0,3.0,4.0],)]),
("mandel", [(-0.5,0.5), (1.0,1.0)]),
("gcdx2", [(240,46)]),
("ratsum", [(6,)]),
("bitcnt", [(20,)]),
("crc", [("hello",)]),
("fnv", [("hello",)]),
("tree", [(4,)]),
("revlist", [(5,)]),
("evalx", [(3.0,)]),
("evalbad", [(3.0,)]),
("memo", [(4,)]),
("wordlen", [("a bb cc ddd",)]),
("inv", [(5,)]),
("mergew", [(3,)]),
("filterd", [(6,)]),
("symd", [([1,2],[2,3])]),
("prettyf", [(3.14159,)]),
("fmt", [(77,)]),
("prs", [("1,2,3",)]),
("csv", [("a;b\nc;d",)]),
("trim", [(" x \n",)]),
("cap", [("hello big world",)]),
("pal", [("A man a plan",), ("abcba",)]),
("subst", [("hello",)]),
("bytesum", [("abc",)]),
("chr", [(65,)]),
("isnum", [("123",), ("1a",)]),
("unesc", [("a\"b\n",)]),
("cmpt", [((1,"a"),(1,"b"))]),
("ntup", [(3,)]),
("maptup", [((1,2,3),)]),
("revtup", [((1,2,3),)]),
("zip3", [(3,)]),
("enumd", [(["x","y"],)]),
("prodit", [(4,)]),
("takew", [(20,)]),
("part", [(7,)]),
("cyc", [(7,)]),
("red", [([1,-5,3],)]),
("acc", [([1,3,2],)]),
("ext", [([2.0,1.0,3.0],)]),
("meanv", [([1,2,4],)]),
("med", [([3.0,1.0,2.0],), ([4.0,1.0,2.0,3.0],)]),
("dev", [([1.0,2.0,6.0],)]),
("outer", [(4,)]),
("diagm2", [(3,)]),
("rot90", [(3,)]),
("slice", [(3,)]),
("any2", [(2,)]),
("cnt", [([1,3,4,3],)]),
("fnd", [([1,3,4,3],)]),
("del", [([1,3,4],)]),
("res", [(5,)]),
("srt", [([3,1,2],)]),
("srtby", [([("a",2),("b",1)],)]),
("ps", [([3,1,2],)]),
("circ", [([1,2,3],)]),
("rpt", [([1,2],)]),
("vct", [([1,2],)]),
("cl", [(-2.5,)]),
("trg", [(0.5,)]),
("pwf", [(2.5,)]),
("flt", [(2.5,)]),
("rnd", [(2.567,), (-0.5,)]),
("fdiv", [(7.5,2.0), (-7.5,2.0)]),
("cx", [(3.0,4.0)]),
("i8", [(Int8(100),Int8(3))]),
("ovf", [(1,), (typemax(Int),)]),
("inex", [(2.0,), (2.5,)]),
("argerr", [("12",), ("zz",)]),
("thr", [(2,), (5,)]),
("custom", [(1,), (0,)]),
("fin", [(0,), (1,)]),
("nest", [(1,)]),
("loopc", [(10,)]),
("dowh", [(10,)]),
("tern", [(7,), (3,), (1,)]),
("sc", [(true,false)]),
("defc", [(3,)]),
("varc", [(3,)]),
("clos", [(2,)]),
("pipe", [(8,)]),
("bcast", [([1,2,3],)]),
("typc", [(3,)]),
("valc", [(2,)]),
("unionf", [(1,), (5,)]),
("missf", [(1,), (5,)]),
("somef", [(1,), (5,)]),
("randish", [(7,)]),
("datef", [(2000,), (1900,)]),
("life", [(1,)]),
]
