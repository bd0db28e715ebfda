# Programs with types named as Julia's own, methods that only dispatch reaches, and the shapes that printed code takes: written after the reader.
module Programs
# --- types named as those of Core and Base ---
struct Box; w::Int; h::Int; end
area(b::Box) = b.w * b.h
boxes(n::Int) = (v = Box[Box(i, i + 1) for i in 1:n]; s = 0; for b in v; s += area(b); end; s)
boxcap(n::Int) = (b = Box(n, 2); k = 0; f = () -> (k += area(b)); f(); f(); k)
struct Token; kind::Symbol; at::Int; end
tokens(s::String) = (v = Token[]; for (i, c) in enumerate(s); push!(v, Token(isdigit(c) ? :num : :op, i)); end; sum(t.at for t in v if t.kind === :num))
mutable struct Task; left::Int; name::String; end
step!(t::Task) = (t.left -= 1; t.left > 0)
runtask(n::Int) = (t = Task(n, "t"); k = 0; while step!(t); k += 1; end; k)
struct Pair; a::Int; b::Int; end
pairsum(n::Int) = (s = 0; for i in 1:n; p = Pair(i, 2i); s += p.a * p.b; end; s)
struct Some; x::Float64; end
somesum(n::Int) = (v = Some[Some(i / 2) for i in 1:n]; s = 0.0; for x in v; s += x.x; end; s)
# --- dispatch ---
findn(s::String, t::String) = (x = Any[s, t]; r = findnext(x[2], x[1], 1); r === nothing ? 0 : first(r))
dictany(n::Int) = (d = Any[Dict{Int,Int}()]; for i in 1:n; d[1][i] = i * i; end; d[1][n])
dictget(k::String) = (d = Any[Dict("a" => 1, "b" => 2)]; haskey(d[1], k) ? d[1][k] : get(d[1], k, -1))
showany(n::Int) = (x = Any[n, "q", 'c', 1.5, :s]; io = IOBuffer(); for v in x; show(io, v); print(io, ' '); end; String(take!(io)))
reprs(x::Float64) = repr(x) * repr("a\"b\n") * repr('x') * repr(:sym)
reprv(v::Vector{Int}) = string(v)
lens(n::Int) = (x = Any["abc", [1, 2], (1, 2, 3), 1:n, Dict(1 => 2)]; s = 0; for v in x; s += length(v); end; s)
anysum(n::Int) = (x = Any[]; for i in 1:n; push!(x, i % 3 == 0 ? i : i % 3 == 1 ? i / 2 : Int8(i % 100)); end; s = 0.0; for v in x; s += v; end; s)
fcalls(n::Int) = (fs = Any[sin, abs, x -> x + 1, sqrt]; s = 0.0; for i in 1:n; s += fs[i % 4 + 1](Float64(i)); end; round(s, digits = 6))
amb(x::Int, y) = 1
amb(x, y::Int) = 2
ambig(n::Int) = (v = Any[n, n]; amb(v[1], v[2]))
nomethod(n::Int) = (v = Any["s"]; v[1] + n)
eqs(a::String, b::String) = (v = Any[a, b, 1, 1.0, :x, (1, 2), [1, 2]]; (v[1] == v[2]) + 2 * (v[3] == v[4]) + 4 * (v[5] == :x) + 8 * (v[6] == (1, 2)) + 16 * (v[7] == [1, 2]))
cmps(a::String, b::String) = (v = Any[a, b]; (v[1] < v[2], v[1] > v[2], isless(v[1], v[2]), max(1, 2, 3)))
tos(n::Int) = (v = Any[n, 2.5, true, 'c', "s", :y, nothing]; join([string(x) for x in v], "|"))
conv2(n::Int) = (v = Any[n, 2.0]; convert(Float64, v[1]) + convert(Int, v[2]))
ups(s::String) = (v = Any[s]; uppercase(v[1]) * lowercase(v[1]))
firsts(n::Int) = (v = Any[(n, 2), [3, n], "xy", 4:n]; (first(v[1]), last(v[2]), first(v[3]), last(v[4])))
mapany(n::Int) = (v = Any[1, 2.5, n]; w = map(x -> x * 2, v); w[1] + w[2] + w[3])
sortany(n::Int) = (v = Any[n, 1, 5, 3]; sort!(v); v[1] * 1000 + v[4])
setf(n::Int) = (v = Any[Ref(1), Task(n, "a")]; v[1][] = 5; v[2].left = 7; v[1][] + v[2].left)
# --- strings ---
fnext(s::String) = (i = findfirst("an", s); j = i === nothing ? 0 : last(i); k = findnext("an", s, j + 1); k === nothing ? j : j * 100 + first(k))
frev(s::String) = (i = findlast(isequal('a'), s); i === nothing ? -1 : i)
occ(s::String) = occursin("ell", s)
repn(s::String) = replace(replace(s, "a" => "bb"), 'b' => 'c')
splitn(s::String) = length(split(s, ',')) * 100 + length(split(s, ','; limit = 2, keepempty = false))
padn(n::Int) = lpad(n, 6, '0') * rpad(string(n), 5) * "|"
joinf(v::Vector{Float64}) = join(v, "; ", " and ")
interp(n::Int, x::Float64) = "n=$n x=$x $(n + 1) $((n, x))"
rev2(s::String) = reverse(s) * string(length(s)) * string(sizeof(s))
nextind2(s::String) = (i = 1; k = 0; while i <= ncodeunits(s); k += i; i = nextind(s, i); end; k)
subs(s::String) = (t = SubString(s, 2, 4); t * "!" * t[1:1] * string(t == "bcd"))
hexes(n::Int) = string(n, base = 16) * string(n, base = 2, pad = 8) * bitstring(UInt8(n % 256))
parses(s::String) = parse(Int, s) + parse(Float64, s)
tryp(s::String) = (r = tryparse(Int, s); r === nothing ? -1 : r)
chars2(s::String) = (k = 0; for c in s; k += isuppercase(c) ? 100 : isletter(c) ? 10 : isspace(c) ? 1 : 0; end; k)
cmpstr(a::String, b::String) = cmp(a, b) * 10 + (a < b) + (a == b)
badidx(s::String) = s[2]
symb(s::String) = string(Symbol(s, 1)) * String(:abc)
asc(n::Int) = String([UInt8(65 + i % 26) for i in 0:n])
strvec(n::Int) = (v = String[]; for i in 1:n; push!(v, string("k", i)); end; sort!(v); v[2])
# --- collections ---
iddict(n::Int) = (d = IdDict{Any,Int}(); for i in 1:n; d[Symbol("s", i)] = i; end; d[:s2] + length(d))
dictiter(n::Int) = (d = Dict{Symbol,Float64}(); d[:a] = n; d[:b] = 2.5; delete!(d, :a); d[:c] = 1; sum(values(d)))
dictstr(n::Int) = (d = Dict{String,Vector{Int}}(); for i in 1:n; push!(get!(() -> Int[], d, string(i % 3)), i); end; length(d["1"]) * 100 + sum(d["2"]))
setops2(n::Int) = (a = Set(1:n); b = Set(3:n+3); length(union(a, b)) * 10000 + length(intersect(a, b)) * 100 + length(setdiff(a, b)))
bitv(n::Int) = (b = falses(n); for i in 1:3:n; b[i] = true; end; c = .!b; count(b) * 100 + count(c .& trues(n)))
viewsum(n::Int) = (a = reshape(collect(1:n*n), n, n); v = view(a, 2:n, 1); w = @view a[1, :]; sum(v) * 1000 + sum(w))
cartes(n::Int) = (a = zeros(Int, n, n); for I in CartesianIndices(a); a[I] = I[1] * 10 + I[2]; end; a[2, 3] + sum(a))
mats(n::Int) = (a = [i + j for i in 1:n, j in 1:n]; b = a'; c = a * b; c[1, 2] + sum(c[:, 1]))
bcast3(v::Vector{Float64}) = sum((v .^ 2 .+ 1.0) ./ (abs.(v) .+ 2))
gens(n::Int) = sum(x * y for x in 1:n, y in 1:n if x != y)
iters(n::Int) = (s = 0; for (i, (a, b)) in enumerate(zip(1:n, n:-1:1)); s += i * a - b; end; for x in Iterators.flatten([1:2, 3:4]); s += x; end; s)
acc2(v::Vector{Int}) = (c = cumsum(v); accumulate(max, v)[end] + c[end] + sum(diff(v)))
fold3(v::Vector{Int}) = foldl(-, v) * 100 + foldr(-, v) + reduce(*, v; init = 1) + mapreduce(x -> x^2, +, v)
pr2(n::Int) = (v = rand(n) ; length(v))
ntup2(n::Int) = (t = ntuple(i -> i * n, 4); t2 = (t..., 1.5); u = map(x -> x + 1, t); sum(u) + t2[5])
named2(n::Int) = (t = (a = n, b = 2.5); u = merge(t, (c = 1,)); u.a + u.b + u.c + length(keys(u)))
rangef(n::Int) = (r = range(0.0, stop = 1.0, length = n); s = 0.0; for x in r; s += x; end; s + step(r))
ranges2(n::Int) = (s = 0; for i in n:-2:1; s += i; end; s + length(1:3:n) + sum(1:2:n) + last(1:3:n))
matarr(n::Int) = (v = [Int[] for _ in 1:3]; for i in 1:n; push!(v[i % 3 + 1], i); end; maximum(length, v) + sum(sum, v))
resize2(n::Int) = (v = collect(1:n); insert!(v, 2, 99); deleteat!(v, 1); append!(v, [7, 8]); pushfirst!(v, 5); popfirst!(v); splice!(v, 2); v[1] * 1000 + length(v))
uni(x::Int) = (r = x > 5 ? x : x > 2 ? 2.5 : nothing; r === nothing ? -1.0 : r + 1)
iff(x::Int) = (v = Any[true, 1]; v[x] ? 1 : 2)
copies(n::Int) = (a = [1, n]; b = copy(a); c = deepcopy([a, b]); b[1] = 9; c[1][1] = 8; a[1] * 100 + b[1] * 10 + c[1][1])
missing2(n::Int) = (v = [1, missing, n]; sum(skipmissing(v)) + count(ismissing, v) + coalesce(v[2], 7))
# --- numbers ---
cplx2(x::Float64) = (z = complex(x, 1.0); w = z * conj(z) + 2im / z; abs(w) + real(exp(z)))
ratio(n::Int) = (r = 1 // 3; for i in 2:n; r = r * i // (i + 1) + 1 // i; end; r)
wide2(n::Int) = (a = Int128(n)^20; b = UInt128(n) << 70; (a % 1000007) + Int128(b >> 64))
f16b(n::Int) = (s = Float16(0); for i in 1:n; s += Float16(i) / 3; end; Float64(s))
ints2(n::Int) = gcd(n, 36) * 1000 + lcm(n, 6) + isqrt(n * n + 1) + powermod(3, n, 1000) + invmod(3, 7) + digits(n * 11)[1] + ndigits(n)
bits2(n::Int) = (u = UInt32(n); bitrotate(u, 5) ⊻ bswap(u) + leading_zeros(u) + trailing_zeros(u << 3) + count_ones(u))
flt2(x::Float64) = (f = floor(Int, x); c = ceil(Int, x); r = round(x, digits = 1); t = trunc(Int, -x); f * 1000 + c * 100 + t + r + mod(x, 0.7) + rem(x, 0.4) + hypot(x, 1.0))
math2(x::Float64) = round(sin(x) + cos(x) * tan(x) + atan(x, 2.0) + log(x) + exp(-x) + x^1.5 + cbrt(x) + log1p(x) + expm1(x) + sinh(x) + asin(x / 10), digits = 10)
ovf2(x::Int) = Base.checked_mul(x, typemax(Int) ÷ 2)
divz(x::Int) = 7 ÷ x
inex2(x::Float64) = Int(x)
toobig(x::Int) = UInt8(x)
sgn(x::Int) = sign(-x) + abs(-x) + copysign(3, -x) + clamp(x, 2, 4) + (x ∈ (1, 2, 3)) + min(x, 3, 9) + flipsign(2, -1)
evalp(x::Float64) = evalpoly(x, (1.0, 2.0, 3.0)) + @evalpoly(x, 1, 2, 3)
# --- closures, control, exceptions ---
curry2(n::Int) = (add = a -> b -> a + b; f = add(n); g = f ∘ f; g(1) + (n |> f |> abs))
counters(n::Int) = (c = 0; inc() = (c += 1; c); for i in 1:n; inc(); end; d = 0; bump = k -> (d += k); bump(2); bump(3); c * 10 + d)
varf(xs...) = length(xs) + sum(xs)
vars(n::Int) = varf(1, n) + varf(n, 2, 3) + varf((1:n)...)
kwf(a; b = 2, c::Int = a + b, rest...) = a + b * 10 + c * 100 + length(rest)
kws(n::Int) = kwf(n) + kwf(n; b = 1) + kwf(n; c = 4, z = 1)
trys(n::Int) = (r = 0; for i in 0:n; try; r += 10 ÷ i; catch e; r += e isa DivideError ? 100 : 0; finally; r += 1; end; end; r)
nest2(n::Int) = try; try; [1, 2][n]; catch e; throw(ArgumentError("inner")); end; catch e; e isa ArgumentError ? e.msg : "other"; end
retfin(n::Int) = (x = Ref(0); f() = try; return n; finally; x[] = 5; end; f() + x[])
errs(n::Int) = try; n == 1 ? error("one") : n == 2 ? throw(KeyError(:k)) : n == 3 ? Dict(1 => 2)[n] : n == 4 ? throw(DomainError(n, "dom")) : sqrt(-1.0); catch e; sprint(showerror, e); end
whilebreak(n::Int) = (i = 0; s = 0; while true; i += 1; i % 2 == 0 && continue; i > n && break; s += i; end; s)
struct Poly{T}; c::Vector{T}; end
(p::Poly)(x) = (s = zero(x); for a in reverse(p.c); s = s * x + a; end; s)
polyc(x::Float64) = Poly([1.0, 2.0, 3.0])(x) + Poly([1, 2])(2)
abstract type Animal end
struct Dog <: Animal; n::Int; end
struct Cat <: Animal; n::Float64; end
struct Cow <: Animal; n::String; end
struct Hen <: Animal; end
noise(d::Dog) = d.n; noise(c::Cat) = 2; noise(c::Cow) = length(c.n); noise(::Hen) = 7
animals(n::Int) = (v = Animal[Dog(n), Cat(2.5), Cow("moo"), Hen()]; s = 0; for k in 1:n, a in v; s += noise(a); end; s)
valf(::Val{N}) where {N} = N * 2
vals2(n::Int) = valf(Val(3)) + (n > 2 ? valf(Val(n)) : 0)
typs(x) = x isa Integer ? 1 : x isa AbstractFloat ? 2 : x isa AbstractString ? 3 : x isa AbstractArray{<:Number} ? 4 : x isa Tuple{Int,Vararg{Int}} ? 5 : 0
typs2(n::Int) = (s = 0; for x in Any[n, 1.5, "a", [1.0], (1, 2), (1.0,), :q]; s = s * 10 + typs(x); end; s)
@enum Color red = 1 green = 5 blue
enums(n::Int) = Int(green) + Int(Color(n)) + (blue > red)
globalc = 3
const TAB = [1, 4, 9, 16]
const NT = (a = 1, b = "x")
consts(n::Int) = TAB[n] + length(NT.b) + NT.a
globals2(n::Int) = (global globalc; globalc = globalc + n; globalc::Int - n)
simdsum(n::Int) = (v = [Float64(i) for i in 1:n]; s = 0.0; @simd for i in eachindex(v); @inbounds s += v[i]; end; s)
gotos(n::Int) = (@label top; n > 10 || (n += 3; @goto top); n)
unr(n::Int) = n > 0 ? n : error("neg $n")
rands(n::Int) = (r = Base.Threads.Atomic{Int}(0); for i in 1:n; Base.Threads.atomic_add!(r, i); end; r[])
reint(x::Float64) = reinterpret(UInt64, x) >> 52
reintv(n::Int) = (v = [1.0, Float64(n)]; w = reinterpret(UInt64, v); Int(w[1] >> 60) + length(w))
ptrs(n::Int) = (v = UInt8[1, 2, 3, n]; GC.@preserve v unsafe_load(pointer(v), 4) + 0x01)
cstr(s::String) = ccall(:strlen, Csize_t, (Cstring,), s) % Int
hashes(s::String) = hash(s) == hash(string(s)) && hash(1) == hash(1.0) && hash((1, 2)) != hash((2, 1))
objid(n::Int) = objectid(:a) == objectid(:a) && objectid(n) == objectid(n)
trail(n::Int) = (a = Vector{Any}(undef, 2); isassigned(a, 1) + (a[1] = n; isassigned(a, 1)))
undefv(n::Int) = (a = Vector{String}(undef, 2); a[n])
undefl(n::Int) = (if n > 3; q = n; end; q + 1)
end
const CASES = [
("boxes", [(5,)]), ("boxcap", [(5,)]), ("tokens", [("1+23",)]), ("runtask", [(4,)]), ("pairsum", [(4,)]), ("somesum", [(4,)]),
("findn", [("hello","l"),("a","z")]), ("dictany", [(5,)]), ("dictget", [("a",),("q",)]), ("showany", [(5,)]), ("reprs", [(1.5,)]), ("reprv", [([1,2],)]), ("lens", [(4,)]), ("anysum", [(9,)]), ("fcalls", [(9,)]),
("ambig", [(1,)]), ("nomethod", [(1,)]), ("eqs", [("a","a"),("a","b")]), ("cmps", [("a","b")]), ("tos", [(3,)]), ("conv2", [(3,)]), ("ups", [("aBä",)]), ("firsts", [(6,)]), ("mapany", [(3,)]), ("sortany", [(4,)]), ("setf", [(4,)]),
("fnext", [("banana",),("xx",)]), ("frev", [("banana",),("xx",)]), ("occ", [("hello",)]), ("repn", [("banana",)]), ("splitn", [("a,b,,c",)]), ("padn", [(42,)]), ("joinf", [([1.0,2.5,3.0],)]), ("interp", [(3,2.5)]), ("rev2", [("añb",)]),
("nextind2", [("aäb😀c",)]), ("subs", [("abcdef",)]), ("hexes", [(77,)]), ("parses", [("42",)]), ("tryp", [("42",),("4x",)]), ("chars2", [("aB c1",)]), ("cmpstr", [("a","b"),("b","b")]), ("badidx", [("ä",)]), ("symb", [("q",)]), ("asc", [(5,)]), ("strvec", [(12,)]),
("iddict", [(4,)]), ("dictiter", [(4,)]), ("dictstr", [(9,)]), ("setops2", [(9,)]), ("bitv", [(70,)]), ("viewsum", [(4,)]), ("cartes", [(4,)]), ("mats", [(3,)]), ("bcast3", [([1.0,-2.0,3.0],)]), ("gens", [(4,)]), ("iters", [(4,)]), ("acc2", [([3,1,2],)]), ("fold3", [([3,1,2],)]),
("ntup2", [(4,)]), ("named2", [(4,)]), ("rangef", [(5,)]), ("ranges2", [(9,)]), ("matarr", [(9,)]), ("resize2", [(4,)]), ("uni", [(9,),(3,),(1,)]), ("iff", [(1,),(2,)]), ("copies", [(4,)]), ("missing2", [(4,)]),
("cplx2", [(1.5,)]), ("ratio", [(4,)]), ("wide2", [(7,)]), ("f16b", [(9,)]), ("ints2", [(30,)]), ("bits2", [(77,)]), ("flt2", [(2.75,)]), ("math2", [(1.5,)]), ("ovf2", [(1,),(3,)]), ("divz", [(2,),(0,)]), ("inex2", [(2.0,),(2.5,)]), ("toobig", [(5,),(300,)]), ("sgn", [(3,),(7,)]), ("evalp", [(1.5,)]),
("curry2", [(4,)]), ("counters", [(4,)]), ("vars", [(4,)]), ("kws", [(4,)]), ("trys", [(3,)]), ("nest2", [(1,),(5,)][2:2]), ("retfin", [(4,)]), ("errs", [(1,),(2,),(3,),(4,),(5,)]), ("whilebreak", [(9,)]), ("polyc", [(1.5,)]), ("animals", [(4,)]), ("vals2", [(4,)]), ("typs2", [(4,)]), ("enums", [(5,)]), ("consts", [(2,),(9,)]), ("globals2", [(2,)]),
("simdsum", [(100,)]), ("gotos", [(1,)]), ("unr", [(1,),(-1,)]), ("rands", [(9,)]), ("reint", [(1.5,)]), ("reintv", [(2,)]), ("ptrs", [(4,)]), ("cstr", [("abc",)]), ("hashes", [("abc",)]), ("objid", [(4,)]), ("trail", [(4,)]), ("undefv", [(1,)]), ("undefl", [(5,),(1,)]),
]
