# Programs in the shape that users of Julia write, made after the reader: text, tables, graphs, simulations, operators of their own.
module Programs
# --- text ---
roman(n::Int) = (out = ""; for (v, s) in [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]; while n >= v; out *= s; n -= v; end; end; out)
function caesar(s::String, k::Int)
    io = IOBuffer()
    for c in s
        if isuppercase(c)
            print(io, Char((Int(c) - Int('A') + k) % 26 + Int('A')))
        elseif islowercase(c)
            print(io, 'a' + mod(c - 'a' + k, 26))
        else
            print(io, c)
        end
    end
    String(take!(io))
end
function rle(s::String)
    isempty(s) && return ""
    out, last, n = String[], s[1], 0
    for c in s
        if c == last
            n += 1
        else
            push!(out, string(last, n)); last = c; n = 1
        end
    end
    push!(out, "$last$n")
    join(out)
end
function brackets(s::String)
    pairs = Dict(')' => '(', ']' => '[', '}' => '{')
    stack = Char[]
    for c in s
        if c in "([{"
            push!(stack, c)
        elseif haskey(pairs, c)
            (isempty(stack) || pop!(stack) != pairs[c]) && return false
        end
    end
    isempty(stack)
end
function levenshtein(a::String, b::String)
    x, y = collect(a), collect(b)
    d = zeros(Int, length(x) + 1, length(y) + 1)
    d[:, 1] = 0:length(x)
    d[1, :] = 0:length(y)
    for j in 1:length(y), i in 1:length(x)
        d[i + 1, j + 1] = min(d[i, j + 1] + 1, d[i + 1, j] + 1, d[i, j] + (x[i] != y[j]))
    end
    d[end, end]
end
palindrome(s::String) = (t = filter(isletter, lowercase(s)); t == reverse(t))
function csv(s::String)
    rows = [split(line, ',') for line in split(s, '\n'; keepempty = false)]
    total = 0.0
    for r in rows[2:end]
        total += parse(Float64, strip(r[2])) * parse(Int, r[3])
    end
    (length(rows), total)
end
function wordfreq(s::String)
    d = Dict{String,Int}()
    for w in split(lowercase(s))
        d[w] = get(d, w, 0) + 1
    end
    sort(collect(d); by = p -> (-p[2], p[1]))
end
topword(s::String) = (w = wordfreq(s); string(w[1].first, ":", w[1].second, " ", length(w)))
anagrams(v::Vector{String}) = (d = Dict{String,Vector{String}}(); for w in v; push!(get!(() -> String[], d, join(sort(collect(w)))), w); end; maximum(length, values(d)))
titlec(s::String) = join([uppercase(w[1:1]) * w[2:end] for w in split(s, " ")], " ")
basec(n::Int) = string(n, base = 2) * " " * string(n, base = 16, pad = 4) * " " * string(parse(Int, "ff", base = 16))
luhn(s::String) = (t = 0; for (i, c) in enumerate(reverse(s)); d = c - '0'; if iseven(i); d *= 2; d > 9 && (d -= 9); end; t += d; end; t % 10 == 0)
vowels(s::String) = count(c -> c in ('a', 'e', 'i', 'o', 'u'), s)
table(n::Int) = join([join([lpad(i * j, 4) for j in 1:n]) for i in 1:n], "\n")
fmt(x::Float64) = string(round(x, digits = 2)) * " " * string(round(Int, x)) * " " * string(floor(Int, x)) * rpad(x, 8, '.')
chop3(s::String) = chop(s) * "|" * chomp(s * "\n") * "|" * lstrip("  " * s) * "|" * rstrip(s * "  ") * "|" * first(s, 2) * "|" * last(s, 2)
finds(s::String) = (a = findall(isequal('a'), s); b = findfirst(==('b'), s); (length(a), b === nothing ? 0 : b))
uni(s::String) = (n = 0; for c in s; n += isascii(c) ? 1 : ncodeunits(c) * 10; end; n + length(s) * 100)
esc(s::String) = repr(s) * escape_string(s)
tok(s::String) = begin
    out = Tuple{Symbol,String}[]
    i = 1
    while i <= lastindex(s)
        c = s[i]
        if isspace(c)
            i = nextind(s, i)
        elseif isdigit(c)
            j = i
            while j <= lastindex(s) && isdigit(s[j]); j = nextind(s, j); end
            push!(out, (:num, s[i:prevind(s, j)])); i = j
        else
            push!(out, (:op, string(c))); i = nextind(s, i)
        end
    end
    out
end
function prec(o::String)
    o == "+" || o == "-" ? 1 : o == "*" || o == "/" ? 2 : 0
end
function calc(s::String)
    vals, ops = Int[], String[]
    apply() = (o = pop!(ops); b = pop!(vals); a = pop!(vals); push!(vals, o == "+" ? a + b : o == "-" ? a - b : o == "*" ? a * b : a ÷ b))
    for (k, t) in tok(s)
        if k === :num
            push!(vals, parse(Int, t))
        elseif t == "("
            push!(ops, t)
        elseif t == ")"
            while last(ops) != "("; apply(); end
            pop!(ops)
        else
            while !isempty(ops) && prec(last(ops)) >= prec(t); apply(); end
            push!(ops, t)
        end
    end
    while !isempty(ops); apply(); end
    vals[1]
end
# --- numbers ---
function factors(n::Int)
    f = Dict{Int,Int}(); p = 2
    while p * p <= n
        while n % p == 0; f[p] = get(f, p, 0) + 1; n ÷= p; end
        p += 1
    end
    n > 1 && (f[n] = 1)
    sort(collect(keys(f)))
end
const MEMO = Dict{Int,Int}()
fibm(n::Int) = n < 2 ? n : get!(() -> fibm(n - 1) + fibm(n - 2), MEMO, n)
pascal(n::Int) = (r = [1]; for _ in 1:n; r = [1; r[1:end-1] .+ r[2:end]; 1]; end; r)
digitsum(n::Int) = sum(digits(n)) + length(digits(n, base = 2))
isprime(n::Int) = n > 1 && all(d -> n % d != 0, 2:isqrt(n))
primes(n::Int) = [p for p in 2:n if isprime(p)]
newton(x::Float64) = (g = x / 2; for _ in 1:50; n = (g + x / g) / 2; abs(n - g) < 1e-12 && break; g = n; end; g)
simpson(f, a, b, n) = (h = (b - a) / n; s = f(a) + f(b); for i in 1:n-1; s += (isodd(i) ? 4 : 2) * f(a + i * h); end; s * h / 3)
integrate(n::Int) = simpson(x -> x^3 - 2x + 1, 0.0, 2.0, n) + simpson(sin, 0, 1, n)
ratsum(n::Int) = (s = 0 // 1; for i in 1:n; s += 1 // i; end; s)
cplxpow(n::Int) = (z = 0.5 + 0.5im; for _ in 1:n; z = z^2 + 0.1im; end; abs2(z))
powm(a::Int, b::Int, m::Int) = powermod(a, b, m) + invmod(3, 11) + gcd(a, b) + lcm(4, 6)
bigs(n::Int) = (x = Int128(1); for i in 1:n; x *= i; end; string(x))
horner(x::Float64) = evalpoly(x, [1.0, -2.0, 0.5])
stats(v::Vector{Float64}) = (m = sum(v) / length(v); sd = sqrt(sum((v .- m) .^ 2) / (length(v) - 1)); (m, sd, minimum(v), maximum(v), extrema(v)))
hexs(n::Int) = "0x" * string(UInt16(n), base = 16) * bitstring(UInt8(n % 256))
logs(x::Float64) = log(x) + log2(x) + log10(x) + log1p(x) + exp(-x) + x^0.3
trig(x::Float64) = sin(x)^2 + cos(x)^2 + atan(x, 2.0) + tanh(x)
gray(n::Int) = [xor(i, i >> 1) for i in 0:n]
rounds(x::Float64) = (round(x), floor(x), ceil(x), trunc(Int, x), round(x, sigdigits = 2), fld(7, -2), cld(7, 2), divrem(-7, 2))
# --- containers ---
mutable struct Node{T}; value::T; next::Union{Node{T},Nothing}; end
mutable struct List{T}; head::Union{Node{T},Nothing}; n::Int; end
List{T}() where {T} = List{T}(nothing, 0)
Base.pushfirst!(l::List{T}, x) where {T} = (l.head = Node{T}(x, l.head); l.n += 1; l)
Base.length(l::List) = l.n
Base.iterate(l::List, s = l.head) = s === nothing ? nothing : (s.value, s.next)
Base.eltype(::Type{List{T}}) where {T} = T
linked(n::Int) = (l = List{Int}(); for i in 1:n; pushfirst!(l, i * i); end; sum(l) + maximum(l) + length(collect(l)))
struct Stack{T}; items::Vector{T}; end
Base.push!(s::Stack, x) = (push!(s.items, x); s)
Base.pop!(s::Stack) = pop!(s.items)
Base.isempty(s::Stack) = isempty(s.items)
stackm(prog::Vector{String}) = (s = Stack(Int[]); for p in prog; p == "+" ? push!(s, pop!(s) + pop!(s)) : p == "*" ? push!(s, pop!(s) * pop!(s)) : push!(s, parse(Int, p)); end; pop!(s))
mutable struct Lru; cap::Int; order::Vector{Int}; data::Dict{Int,String}; end
function put!(c::Lru, k::Int, v::String)
    haskey(c.data, k) && filter!(!=(k), c.order)
    if length(c.order) >= c.cap
        delete!(c.data, popfirst!(c.order))
    end
    push!(c.order, k); c.data[k] = v; c
end
lru(n::Int) = (c = Lru(3, Int[], Dict{Int,String}()); for i in 1:n; put!(c, i % 5, "v$i"); end; join(sort([v for v in values(c.data)]), ","))
function heapsum(v::Vector{Int})
    h = Int[]
    up(i) = while i > 1 && h[i] < h[i ÷ 2]; h[i], h[i ÷ 2] = h[i ÷ 2], h[i]; i ÷= 2; end
    function down(i)
        while 2i <= length(h)
            c = 2i
            c < length(h) && h[c + 1] < h[c] && (c += 1)
            h[i] <= h[c] && break
            h[i], h[c] = h[c], h[i]; i = c
        end
    end
    for x in v; push!(h, x); up(length(h)); end
    out = Int[]
    while !isempty(h)
        push!(out, h[1]); h[1] = h[end]; pop!(h); down(1)
    end
    out
end
struct Trie; kids::Dict{Char,Trie}; word::Base.RefValue{Bool}; end
Trie() = Trie(Dict{Char,Trie}(), Ref(false))
add!(t::Trie, w::String) = (for c in w; t = get!(Trie, t.kids, c); end; t.word[] = true)
has(t::Trie, w::String) = (for c in w; haskey(t.kids, c) || return false; t = t.kids[c]; end; t.word[])
trie(w::String) = (t = Trie(); foreach(x -> add!(t, x), ["car", "cart", "dog"]); has(t, w) ? 1 : 0)
sets(n::Int) = (a = Set(1:n); b = Set(2:2:2n); (length(union(a, b)), length(intersect(a, b)), length(setdiff(a, b)), 3 in a, issubset(Set([2]), b)))
dicts(n::Int) = (d = Dict(i => string(i) for i in 1:n); e = merge(d, Dict(1 => "one")); delete!(e, 2); s = sort(collect(e), by = first); join(["$k=$v" for (k, v) in s], ";"))
invert(n::Int) = (d = Dict("a" => n, "b" => 2n); e = Dict(v => k for (k, v) in d); e[2n] * e[n])
arr(n::Int) = (v = collect(1:n); insert!(v, 2, 99); deleteat!(v, 1); splice!(v, 2:2); append!(v, [7, 8]); push!(v, 1); reverse!(v); v)
uniqs(v::Vector{Int}) = (unique(v), sort(v, rev = true), sortperm(v), findall(>(2), v), argmax(v), findmax(v), cumsum(v), diff(v))
parts(n::Int) = [sum(c) for c in Iterators.partition(1:n, 3)]
iterz(n::Int) = sum(x * y + i for (i, (x, y)) in enumerate(zip(1:n, n:-1:1)))
takes(n::Int) = (collect(Iterators.take(Iterators.filter(isodd, Iterators.countfrom(n)), 3)), collect(Iterators.flatten([[1, 2], [n]])), first(Iterators.drop(1:9, n)))
prods(n::Int) = sum(i * j for (i, j) in Iterators.product(1:n, 1:n) if i < j)
vcats(n::Int) = (a = [1 2; 3 n]; b = hcat(a, [5, 6]); c = vcat(a, [7 8]); (size(b), size(c), sum(b), c[3, 2], a', vec(a)))
slices(n::Int) = (m = reshape(collect(1:n*n), n, n); (m[2, :], m[:, 2], m[1:2, 1:2], m[end, end], [sum(r) for r in eachrow(m)], sum(m, dims = 1)))
maps(n::Int) = (map(+, [1, 2], [3, n]), map(x -> x^2, (1, 2, n)), filter(iseven, 1:n), reduce(*, 1:n), foldr(-, [1, 2, n]), mapreduce(abs, max, [-n, 2]))
nothings(n::Int) = (v = Union{Int,Nothing}[1, nothing, n]; s = 0; for x in v; x === nothing || (s += x); end; s + count(isnothing, v) + something(v[2], 7))
missings(n::Int) = (v = [1, missing, n]; sum(skipmissing(v)) + coalesce(v[2], 5) + (ismissing(v[2] + 1) ? 100 : 0))
symbols(n::Int) = (s = Symbol("x", n); string(s) * String(:abc) * (s === :x3 ? "!" : "?"))
named(n::Int) = (p = (name = "p", x = n, y = 2.5); q = merge(p, (x = 5,)); (q.x, p.x, keys(p), length(values(q)), haskey(p, :y)))
tups(n::Int) = (t = (1, "a", n); a = t[1]; b = t[2:end]; (a, length(b), t[2:3], (t..., 4), reverse(t), ntuple(i -> i^2, 3)))
# --- graphs and grids ---
function bfs(n::Int)
    adj = [Int[] for _ in 1:n]
    for i in 1:n, j in (2i, 2i + 1, i + 3)
        j <= n && (push!(adj[i], j); push!(adj[j], i))
    end
    dist = fill(-1, n); dist[1] = 0; q = [1]
    while !isempty(q)
        u = popfirst!(q)
        for v in adj[u]
            dist[v] < 0 && (dist[v] = dist[u] + 1; push!(q, v))
        end
    end
    dist
end
function dijkstra(n::Int)
    g = Dict{Int,Vector{Tuple{Int,Float64}}}()
    for i in 1:n; g[i] = [(i % n + 1, 1.5), ((i * 2) % n + 1, 2.0)]; end
    dist = Dict(i => Inf for i in 1:n); dist[1] = 0.0; left = Set(1:n)
    while !isempty(left)
        u = argmin_by(left, dist); delete!(left, u)
        for (v, w) in g[u]; dist[u] + w < dist[v] && (dist[v] = dist[u] + w); end
    end
    maximum(values(dist))
end
argmin_by(s, d) = (best = first(s); for x in s; d[x] < d[best] && (best = x); end; best)
function unionfind(n::Int)
    parent = collect(1:n)
    find(x) = parent[x] == x ? x : (parent[x] = find(parent[x]))
    for i in 1:n-2; i % 3 != 0 && (parent[find(i)] = find(i + 2)); end
    length(unique(find.(1:n)))
end
knap(w::Vector{Int}, v::Vector{Int}, c::Int) = (best = zeros(Int, c + 1); for i in eachindex(w); for j in c:-1:w[i]; best[j + 1] = max(best[j + 1], best[j - w[i] + 1] + v[i]); end; end; best[end])
perms(n::Int) = (out = Vector{Int}[]; function go(p, rest); isempty(rest) ? push!(out, p) : for x in rest; go([p; x], filter(!=(x), rest)); end; end; go(Int[], collect(1:n)); (length(out), out[end]))
hanoi(n::Int) = (moves = Tuple{Char,Char}[]; h(k, a, b, c) = k == 0 ? nothing : (h(k - 1, a, c, b); push!(moves, (a, c)); h(k - 1, b, a, c)); h(n, 'A', 'B', 'C'); (length(moves), moves[1]))
function lifeb(n::Int)
    g = falses(n, n); g[2, 3] = g[3, 4] = g[4, 2] = g[4, 3] = g[4, 4] = true
    for _ in 1:4
        h = copy(g)
        for i in 1:n, j in 1:n
            c = sum(g[mod1(i + a, n), mod1(j + b, n)] for a in -1:1, b in -1:1) - g[i, j]
            h[i, j] = c == 3 || (g[i, j] && c == 2)
        end
        g = h
    end
    (count(g), findfirst(g))
end
det(a::Matrix{Float64}) = (m = copy(a); n = size(m, 1); d = 1.0; for k in 1:n; p = argmax(abs.(m[k:n, k])) + k - 1; if p != k; (m[k, :], m[p, :]) = (m[p, :], m[k, :]); d = -d; end; d *= m[k, k]; for i in k+1:n; m[i, k:n] .-= m[i, k] / m[k, k] .* m[k, k:n]; end; end; d)
dets(n::Int) = det([Float64((i * j) % 5 + (i == j)) for i in 1:n, j in 1:n])
merges(v::Vector{Tuple{Int,Int}}) = (s = sort(v); out = [s[1]]; for (a, b) in s[2:end]; (x, y) = out[end]; a <= y ? (out[end] = (x, max(y, b))) : push!(out, (a, b)); end; out)
sudoku(n::Int) = (g = [(3 * ((r - 1) % 3) + (r - 1) ÷ 3 + c - 1) % 9 + 1 for r in 1:9, c in 1:9]; g[1, 1] = n; all(i -> allunique(g[i, :]) && allunique(g[:, i]), 1:9))
spiral(n::Int) = (m = zeros(Int, n, n); (r, c, dr, dc) = (1, 1, 0, 1); for k in 1:n*n; m[r, c] = k; (a, b) = (r + dr, c + dc); if !(1 <= a <= n && 1 <= b <= n) || m[a, b] != 0; (dr, dc) = (dc, -dr); end; r += dr; c += dc; end; m[(n+1)÷2, :])
# --- types, operators, errors ---
struct Vec2; x::Float64; y::Float64; end
Base.:+(a::Vec2, b::Vec2) = Vec2(a.x + b.x, a.y + b.y)
Base.:*(k::Real, a::Vec2) = Vec2(k * a.x, k * a.y)
Base.:(==)(a::Vec2, b::Vec2) = a.x == b.x && a.y == b.y
Base.print(io::IO, a::Vec2) = print(io, "<", a.x, ", ", a.y, ">")
Base.zero(::Type{Vec2}) = Vec2(0, 0)
vecs(n::Int) = (v = [Vec2(i, -i) for i in 1:n]; s = sum(v); t = reduce(+, v); string(2 * s) * string(s == t))
struct Money; cents::Int; cur::Symbol; end
struct MoneyError <: Exception; msg::String; end
Base.showerror(io::IO, e::MoneyError) = print(io, "MoneyError: ", e.msg)
Base.:+(a::Money, b::Money) = a.cur === b.cur ? Money(a.cents + b.cents, a.cur) : throw(MoneyError("$(a.cur) and $(b.cur)"))
Base.isless(a::Money, b::Money) = a.cents < b.cents
money(n::Int) = try; (Money(n, :eur) + Money(5, n > 3 ? :usd : :eur)).cents; catch e; e isa MoneyError ? sprint(showerror, e) : rethrow(); end
moneys(n::Int) = maximum([Money(i * 7 % 5, :eur) for i in 1:n]).cents + sort([Money(3, :a), Money(n, :b)])[1].cents
abstract type Shape end
struct Circle <: Shape; r::Float64; end
struct Rect <: Shape; w::Float64; h::Float64; end
struct Tri <: Shape; a::Float64; b::Float64; c::Float64; end
area(c::Circle) = pi * c.r^2
area(r::Rect) = r.w * r.h
area(t::Tri) = (s = (t.a + t.b + t.c) / 2; sqrt(s * (s - t.a) * (s - t.b) * (s - t.c)))
name(::Circle) = "circle"; name(::Rect) = "rect"; name(::Shape) = "shape"
shapes(n::Int) = (v = Shape[Circle(1), Rect(2, n), Tri(3, 4, 5)]; (sum(area, v), join(name.(v), "/"), name(v[argmax(area.(v))])))
abstract type Expr2 end
struct Num <: Expr2; v::Float64; end
struct Bin <: Expr2; op::Symbol; l::Expr2; r::Expr2; end
ev(e::Num) = e.v
ev(e::Bin) = (a = ev(e.l); b = ev(e.r); e.op === :+ ? a + b : e.op === :* ? a * b : e.op === :/ ? (b == 0 ? throw(DivideError()) : a / b) : error("bad op $(e.op)"))
simp(e::Expr2) = e
simp(e::Bin) = (l = simp(e.l); r = simp(e.r); l isa Num && r isa Num ? Num(ev(Bin(e.op, l, r))) : Bin(e.op, l, r))
exprs(n::Int) = (e = Bin(:+, Num(n), Bin(:*, Num(2), Num(n))); (ev(e), simp(e) isa Num, try; ev(Bin(:/, Num(1), Num(0))); catch x; x isa DivideError ? -1.0 : -2.0; end))
badop(n::Int) = ev(Bin(n > 2 ? :% : :+, Num(1), Num(2)))
mutable struct Account; owner::String; balance::Float64; log::Vector{String}; end
Account(o::String; balance = 0.0) = Account(o, balance, String[])
deposit!(a::Account, x::Real) = x <= 0 ? throw(ArgumentError("bad amount: $x")) : (a.balance += x; push!(a.log, "d$x"); a)
withdraw!(a::Account, x) = a.balance < x ? error("insufficient: $(a.balance) < $x") : (a.balance -= x; push!(a.log, "w$x"); a)
bank(n::Int) = (a = Account("ann"; balance = 10); deposit!(a, n); msg = try; withdraw!(a, 100); "ok"; catch e; e.msg; finally; push!(a.log, "end"); end; (a.balance, msg, join(a.log, " ")))
bankerr(n::Int) = deposit!(Account("bob"), n).balance
struct Matrix2{T<:Real}; a::T; b::T; c::T; d::T; end
Base.:*(p::Matrix2, q::Matrix2) = Matrix2(p.a * q.a + p.b * q.c, p.a * q.b + p.b * q.d, p.c * q.a + p.d * q.c, p.c * q.b + p.d * q.d)
fibmat(n::Int) = (m = Matrix2(1, 1, 1, 0); r = Matrix2(1, 0, 0, 1); while n > 0; isodd(n) && (r = r * m); m = m * m; n >>= 1; end; r.b)
struct Countdown; n::Int; end
Base.iterate(c::Countdown, s = c.n) = s <= 0 ? nothing : (s, s - 1)
Base.length(c::Countdown) = c.n
counts(n::Int) = (collect(Countdown(n)), sum(x^2 for x in Countdown(n)), [x for x in Countdown(n) if isodd(x)])
struct Grid{T}; data::Vector{T}; w::Int; end
Base.getindex(g::Grid, i::Int, j::Int) = g.data[(i - 1) * g.w + j]
Base.setindex!(g::Grid, v, i::Int, j::Int) = (g.data[(i - 1) * g.w + j] = v)
Base.size(g::Grid) = (length(g.data) ÷ g.w, g.w)
grids(n::Int) = (g = Grid(zeros(n * n), n); for i in 1:n, j in 1:n; g[i, j] = i / j; end; (g[2, 1], size(g), try; g[n + 1, 1]; catch e; e isa BoundsError ? -1.0 : 0.0; end))
@enum Suit clubs diamonds hearts spades
suits(n::Int) = (s = Suit(n); (Int(s), s < spades, string(s), length(instances(Suit))))
kwargs(n::Int; scale = 2, opts...) = n * scale + length(opts) + get(opts, :extra, 0)
kwuse(n::Int) = (kwargs(n), kwargs(n, scale = 3), kwargs(n, extra = 5, other = 1))
vsum(f::Function, xs...; init = 0) = (s = init; for x in xs; s += f(x); end; s)
doblock(n::Int) = vsum(1, 2, n; init = 10) do x
    x > 1 ? x * 2 : 0
end
compose(n::Int) = (inc = x -> x + 1; dbl = x -> 2x; fs = [inc, dbl, inc ∘ dbl]; [f(n) for f in fs])
adders(n::Int) = (fs = [x -> x + i for i in 1:n]; sum(f(10) for f in fs))
counter() = (c = 0; () -> (c += 1))
tick(n::Int) = (f = counter(); g = counter(); for _ in 1:n; f(); end; g(); f() * 10 + g())
typeunst(n::Int) = (x = n > 2 ? 1 : 2.5; y = n > 5 ? "s" : x; z = y isa String ? length(y) : y * 2; z)
anymix(n::Int) = (v = Any[1, 2.5, "three", 'c', nothing, [1, 2], (3, 4), n]; s = 0.0; for x in v; s += x isa Number ? x : x isa AbstractString ? length(x) : x isa AbstractVector ? sum(x) : x isa Tuple ? x[1] : 0; end; s)
parametric(n::Int) = (f(x::Vector{T}) where {T<:Number} = zero(T) + sum(x); (f([1, n]), f([1.5, 2.5]), f(UInt8[200, 100])))
finals(n::Int) = (log = Int[]; for i in 1:n; try; i == 2 && error("x"); i == 3 && continue; push!(log, i); catch; push!(log, -i); finally; push!(log, 100); end; end; log)
rethrows(n::Int) = try; try; [1][n]; catch e; n > 5 && rethrow(); 0; end; catch e; e isa BoundsError ? 1 : 2; end
asserts(n::Int) = try; @assert n > 3 "n too small"; n; catch e; e isa AssertionError ? e.msg : "?"; end
parses(s::String) = (a = tryparse(Int, s); b = tryparse(Float64, s); (a === nothing ? -1 : a, b === nothing ? -1.0 : b))
parserr(s::String) = parse(Int, s)
simul(n::Int) = (seed = UInt32(12345); pos = 0; hi = 0; for _ in 1:n; seed = seed * 0x41c64e6d + 0x00003039; pos += (seed >> 16) & 1 == 0 ? -1 : 1; hi = max(hi, abs(pos)); end; (pos, hi))
matpow(n::Int) = (m = [1 1; 1 0]; r = m^n; r[1, 2])
lineq(n::Int) = (x = collect(range(0, stop = 1, length = n)); y = 2 .* x .+ 1; a = sum((x .- sum(x) / n) .* (y .- sum(y) / n)) / sum((x .- sum(x) / n) .^ 2); round(a, digits = 6))
bits(v::Vector{Int}) = (b = v .> 2; (count(b), v[b], any(b), all(b), sum(v[.!b])))
views(n::Int) = (v = collect(1:n); w = @view v[2:end-1]; w .= 0; w[1] = 5; (sum(v), length(w)))
strides(n::Int) = (collect(1:2:n), collect(n:-3:1), sum(0.5:0.5:2.5), length(0:0.1:1), (1:n)[end], reverse(1:n))
chars(s::String) = (v = Vector{Char}(s); sort!(v); String(v) * string('a':'e'...) * join(map(uppercase, v)))
wordsrev(s::String) = join(reverse(split(s)), " ")
occ(s::String) = (occursin("lo", s), startswith(s, "he"), endswith(s, 'o'), replace(s, "l" => "L", count = 1), s[end:-1:1], s * "!"^3, lowercase(s) == s)
cmps(a::String, b::String) = (a < b, cmp(a, b), isequal(a, b), hash(a) == hash(b), max(a, b), sort([b, a]))
end
const CASES = [
("roman", [(1994,), (3,)]), ("caesar", [("Hello, World!", 3)]), ("rle", [("aaabccd",), ("",)]), ("brackets", [("{[()]}",), ("(]",)]), ("levenshtein", [("kitten", "sitting")]), ("palindrome", [("Anna",), ("abc",)]),
("csv", [("name,price,n\na, 1.5,2\nb,2.25 ,4\n",)]), ("topword", [("the cat the dog a cat The",)]), ("anagrams", [(["abc", "bca", "xyz", "cab"],)]), ("titlec", [("hello big world",)]), ("basec", [(37,)]), ("luhn", [("4539578763621486",), ("1234",)]),
("vowels", [("education",)]), ("table", [(4,)]), ("fmt", [(3.14159,)]), ("chop3", [("hello",)]), ("finds", [("banana",), ("xyz",)]), ("uni", [("aäb😀",)]), ("esc", [("a\"b\n\t\$",)]), ("tok", [("12+ 3*4",)]), ("calc", [("2*(3+4)-10/5",)]),
("factors", [(360,), (97,)]), ("fibm", [(50,)]), ("pascal", [(6,)]), ("digitsum", [(9045,)]), ("primes", [(40,)]), ("newton", [(2.0,)]), ("integrate", [(100,)]), ("ratsum", [(10,)]), ("cplxpow", [(5,)]), ("powm", [(7, 13, 11)]), ("bigs", [(25,)]), ("horner", [(2.0,)]),
("stats", [([1.0, 2.5, 4.0],)]), ("hexs", [(1000,)]), ("logs", [(2.5,)]), ("trig", [(0.7,)]), ("gray", [(7,)]), ("rounds", [(-2.567,)]),
("linked", [(5,)]), ("stackm", [(["2", "3", "+", "4", "*"],)]), ("lru", [(9,)]), ("heapsum", [([5, 2, 9, 1, 7],)]), ("trie", [("cart",), ("ca",)]), ("sets", [(6,)]), ("dicts", [(4,)]), ("invert", [(3,)]), ("arr", [(5,)]), ("uniqs", [([3, 1, 3, 2, 5],)]),
("parts", [(8,)]), ("iterz", [(5,)]), ("takes", [(4,)]), ("prods", [(4,)]), ("vcats", [(4,)]), ("slices", [(3,)]), ("maps", [(5,)]), ("nothings", [(4,)]), ("missings", [(4,)]), ("symbols", [(3,), (4,)]), ("named", [(3,)]), ("tups", [(3,)]),
("bfs", [(10,)]), ("dijkstra", [(7,)]), ("unionfind", [(12,)]), ("knap", [([1, 3, 4, 5], [1, 4, 5, 7], 7)]), ("perms", [(4,)]), ("hanoi", [(4,)]), ("lifeb", [(6,)]), ("dets", [(3,)]), ("merges", [([(8, 10), (1, 3), (2, 6)],)]), ("sudoku", [(1,), (2,)]), ("spiral", [(5,)]),
("vecs", [(3,)]), ("money", [(2,), (4,)]), ("moneys", [(4,)]), ("shapes", [(3,)]), ("exprs", [(3,)]), ("badop", [(1,), (3,)]), ("bank", [(5,)]), ("bankerr", [(5,), (-1,)]), ("fibmat", [(50,)]), ("counts", [(4,)]), ("grids", [(3,)]), ("suits", [(2,)]), ("kwuse", [(4,)]),
("doblock", [(4,)]), ("compose", [(4,)]), ("adders", [(4,)]), ("tick", [(4,)]), ("typeunst", [(1,), (3,), (9,)]), ("anymix", [(4,)]), ("parametric", [(4,)]), ("finals", [(4,)]), ("rethrows", [(1,), (3,), (9,)]), ("asserts", [(1,), (5,)]), ("parses", [("12",), ("1.5",), ("x",)]), ("parserr", [("12",), ("x",)]),
("simul", [(100,)]), ("matpow", [(10,)]), ("lineq", [(5,)]), ("bits", [([1, 3, 2, 5],)]), ("views", [(6,)]), ("strides", [(7,)]), ("chars", [("hello",)]), ("wordsrev", [("a bc def",)]), ("occ", [("hello",)]), ("cmps", [("abc", "abd")]),
]
