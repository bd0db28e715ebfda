# Ordinary code of many kinds, for the bench that runs programs beside Julia (`benches/julia.rs`): bits, strings, text of values, dictionaries, sets, structs, sorting, matrices, iterators, closures.
module Programs
e_popcount(n::Int, m::Int) = (v = UInt64[i * 0x9e3779b97f4a7c15 for i in 1:n]; s = 0; for k in 1:m; for x in v; s += count_ones(x); end; end; s)
e_hamming(n::Int, m::Int) = (a = [i * 31 for i in 1:n]; b = [i * 17 for i in 1:n]; s = 0; for k in 1:m; for i in 1:n; s += count_ones(xor(a[i], b[i])); end; end; s)
e_zeros(n::Int) = (s = 0; for i in 1:n; s += trailing_zeros(i) + leading_zeros(i); end; s)
e_parity(n::Int) = (s = 0; for i in 1:n; x = i; x ⊻= x >> 4; x ⊻= x >> 2; x ⊻= x >> 1; s += x & 1; end; s)
e_bitrev(n::Int) = begin
    s = UInt32(0)
    for i in 1:n
        x = UInt32(i)
        x = ((x >> 1) & 0x55555555) | ((x & 0x55555555) << 1)
        x = ((x >> 2) & 0x33333333) | ((x & 0x33333333) << 2)
        x = ((x >> 4) & 0x0f0f0f0f) | ((x & 0x0f0f0f0f) << 4)
        s ⊻= bswap(x)
    end
    Int(s)
end
e_xorshift(n::Int) = (x = UInt64(88172645463325252); s = 0; for i in 1:n; x ⊻= x << 13; x ⊻= x >> 7; x ⊻= x << 17; s += Int(x & 0xff); end; s)
e_reprs(n::Int) = (v = [i * 3 for i in 1:n]; s = 0; for x in v; s += sizeof(repr(x)); end; s)
e_interp(n::Int) = (s = 0; for i in 1:n; t = "x=$i, y=$(i * 2)"; s += length(t); end; s)
e_floatstr(n::Int) = (s = 0; for i in 1:n; s += length(string(i / 8)); end; s)
e_digitsum(n::Int) = (s = 0; for i in 1:n; s += sum(digits(i)); end; s)
e_digitloop(n::Int) = (s = 0; for i in 1:n; x = i; while x > 0; s += x % 10; x = div(x, 10); end; end; s)
e_bytehist(n::Int) = (s = repeat("the quick brown fox ", n); h = zeros(Int, 256); for b in codeunits(s); h[b+1] += 1; end; maximum(h))
e_charcount(n::Int) = (s = repeat("the quick brown fox ", n); d = Dict{Char,Int}(); for c in s; d[c] = get(d, c, 0) + 1; end; d['o'])
e_vowels(n::Int) = (s = repeat("the quick brown fox ", n); c = 0; for ch in s; if ch == 'a' || ch == 'e' || ch == 'i' || ch == 'o' || ch == 'u'; c += 1; end; end; c)
e_caesar(n::Int) = (s = repeat("hello world ", n); io = IOBuffer(); for c in s; print(io, 'a' <= c <= 'z' ? 'a' + (c - 'a' + 3) % 26 : c); end; sizeof(String(take!(io))))
e_palin(n::Int) = (c = 0; for i in 1:n; s = string(i); s == reverse(s) && (c += 1); end; c)
e_parse(n::Int) = (v = [string(i * 7) for i in 1:n]; s = 0; for x in v; s += parse(Int, x); end; s)
e_strhash(n::Int) = (s = repeat("abcdefgh", n); h = UInt32(2166136261); for b in codeunits(s); h = (h ⊻ b) * 0x01000193; end; Int(h))
e_djb(n::Int) = (s = repeat("abcdefgh", n); h = 5381; for c in s; h = (h * 33 + Int(c)) & 0xffffffff; end; h)
e_upper(n::Int) = (s = repeat("Hello World ", n); c = 0; for ch in uppercase(s); c += ch == 'L'; end; c)
e_replace(n::Int) = sizeof(replace(repeat("one two ", n), "two" => "three"))
e_occurs(n::Int) = (v = ["item$i" for i in 1:n]; c = 0; for x in v; occursin("7", x) && (c += 1); end; c)
e_wordfreq(n::Int) = (d = Dict{String,Int}(); for i in 1:n; w = "k$(i % 50)"; d[w] = get(d, w, 0) + 1; end; maximum(values(d)))
e_dictgroup(n::Int) = (d = Dict{Int,Vector{Int}}(); for i in 1:n; push!(get!(() -> Int[], d, i % 31), i); end; s = 0; for (k, v) in d; s += k * length(v); end; s)
e_setuniq(n::Int) = (s = Set{Int}(); for i in 1:n; push!(s, (i * i) % 1009); end; length(s))
e_evens(n::Int) = (v = filter(iseven, collect(1:n)); sum(v))
e_filtmap(n::Int) = (s = 0; for x in (y * y for y in 1:n if y % 3 == 0); s += x; end; s)
e_compif(n::Int) = length([x for x in 1:n if x % 3 == 1 && x % 5 != 0])
e_zip(n::Int) = (a = collect(1:n); b = [2i for i in 1:n]; s = 0; for (x, y) in zip(a, b); s += x * y; end; s)
e_enum(n::Int) = (a = [i % 13 for i in 1:n]; s = 0; for (i, x) in enumerate(a); s += i * x; end; s)
e_revrange(n::Int) = (s = 0; for i in n:-1:1; s = s ⊻ (i * 3); end; s)
e_steprange(n::Int) = (s = 0; for i in 1:3:n; s += i & 7; end; s)
e_floatrange(n::Int) = (s = 0.0; for x in 0.0:0.5:n; s += x * x; end; s)
e_takewhile(n::Int) = (s = 0; i = 1; while true; i * i > n && break; for j in 1:i; s += j; end; i += 1; end; s)
struct Point; x::Float64; y::Float64; end
e_points(n::Int) = (v = [Point(i, 2i) for i in 1:n]; s = 0.0; for p in v; s += sqrt(p.x * p.x + p.y * p.y); end; s)
mutable struct Account; id::Int; balance::Float64; end
e_accounts(n::Int) = (v = [Account(i, 100.0) for i in 1:n]; for k in 1:5, a in v; a.balance += a.id % 3 - 1; end; s = 0.0; for a in v; s += a.balance; end; s)
mutable struct Node; value::Int; next::Union{Node,Nothing}; end
e_list(n::Int) = (head = nothing; for i in 1:n; head = Node(i, head); end; s = 0; p = head; while p !== nothing; s += p.value; p = p.next; end; s)
struct Particle; x::Float64; y::Float64; vx::Float64; vy::Float64; end
e_particles(n::Int) = begin
    ps = [Particle(i, 0.0, 1.0, 0.5) for i in 1:n]
    for t in 1:10
        for i in eachindex(ps)
            p = ps[i]
            ps[i] = Particle(p.x + 0.01 * p.vx, p.y + 0.01 * p.vy, p.vx * 0.99, p.vy - 0.0981)
        end
    end
    ps[n].y
end
e_bubble(n::Int) = (v = [(i * 7919) % 1009 for i in 1:n]; for i in 1:n-1, j in 1:n-i; if v[j] > v[j+1]; v[j], v[j+1] = v[j+1], v[j]; end; end; v[1] + v[n])
e_insert(n::Int) = (v = [(i * 7919) % 1009 for i in 1:n]; for i in 2:n; x = v[i]; j = i - 1; while j >= 1 && v[j] > x; v[j+1] = v[j]; j -= 1; end; v[j+1] = x; end; v[n÷2])
e_sort(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; sort!(v); v[1] + v[n])
e_sortf(n::Int) = (v = [sin(1.0i) for i in 1:n]; sort!(v); v[n])
e_sortperm(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; p = sortperm(v); p[1])
e_sortstr(n::Int) = (v = [string((i * 7919) % 10007) for i in 1:n]; sort!(v); length(v[1]))
e_bsearch(n::Int) = (v = collect(1:3:3n); c = 0; for i in 1:n; c += searchsortedfirst(v, i); end; c)
e_matvec(n::Int) = (a = [1.0 / (i + j) for i in 1:n, j in 1:n]; x = ones(n); y = zeros(n); for r in 1:10; for i in 1:n; s = 0.0; for j in 1:n; s += a[i, j] * x[j]; end; y[i] = s; end; end; y[n])
e_lu(n::Int) = begin
    a = [i == j ? n + 0.0 : 1.0 / (i + j) for i in 1:n, j in 1:n]
    for k in 1:n, i in k+1:n
        f = a[i, k] / a[k, k]
        a[i, k] = f
        for j in k+1:n
            a[i, j] -= f * a[k, j]
        end
    end
    a[n, n]
end
e_floyd(n::Int) = begin
    d = [(i * 7 + j * 3) % 11 + 1 for i in 1:n, j in 1:n]
    for k in 1:n, j in 1:n, i in 1:n
        t = d[i, k] + d[k, j]
        if t < d[i, j]
            d[i, j] = t
        end
    end
    sum(d)
end
e_lcs(n::Int) = begin
    a = [i * 7 % 5 for i in 1:n]; b = [i * 3 % 5 for i in 1:n]
    t = zeros(Int, n + 1, n + 1)
    for i in 1:n, j in 1:n
        t[i+1, j+1] = a[i] == b[j] ? t[i, j] + 1 : max(t[i, j+1], t[i+1, j])
    end
    t[n+1, n+1]
end
e_edit(n::Int) = begin
    s = repeat("kitten", n); t = repeat("sitting", n); p = collect(0:length(t))
    for (i, a) in enumerate(s)
        q = p[1]; p[1] = i
        for (j, b) in enumerate(t)
            c = min(p[j+1] + 1, p[j] + 1, q + (a != b))
            q = p[j+1]; p[j+1] = c
        end
    end
    p[end]
end
e_bcast(n::Int) = (x = [i * 0.5 for i in 1:n]; y = 2.0 .* x .+ 1.0; y .= y .- x; sum(y))
e_mapreduce(n::Int) = mapreduce(x -> x % 7, +, 1:n)
e_sumabs(n::Int) = (v = [sin(1.0i) for i in 1:n]; sum(abs, v))
e_anyall(n::Int) = (v = collect(1:n); c = 0; for k in 1:10; any(x -> x == n - k, v) && (c += 1); all(x -> x > 0, v) && (c += 1); end; c)
e_gcds(n::Int) = (s = 0; for i in 1:n; s += gcd(i, 360); end; s)
e_isprime(n::Int) = (c = 0; for i in 3:2:n; p = true; for d in 3:2:isqrt(i); if i % d == 0; p = false; break; end; end; p && (c += 1); end; c)
e_pushpop(n::Int) = (v = Int[]; s = 0; for i in 1:n; push!(v, i); i % 3 == 0 && (s += pop!(v)); end; s + length(v))
e_queue(n::Int) = (q = [1]; seen = falses(n); seen[1] = true; c = 0; while !isempty(q); x = popfirst!(q); c += 1; for y in (2x, 2x + 1); if y <= n && !seen[y]; seen[y] = true; push!(q, y); end; end; end; c)
e_tuples(n::Int) = (v = [(i, i * 0.5) for i in 1:n]; s = 0.0; for (a, b) in v; s += a * b; end; s)
e_compose(n::Int) = (f = x -> x + 1; g = x -> 2x; h = f ∘ g; s = 0; for i in 1:n; s += h(i); end; s)
e_apply(n::Int) = (fs = [x -> x + 1, x -> 2x, x -> x - 3]; s = 0; for i in 1:n; s += fs[i%3+1](i); end; s)
e_counter(n::Int) = (c = 0; inc() = (c += 1); for i in 1:n; inc(); end; c)
e_complexsum(n::Int) = (z = complex(0.0, 0.0); for k in 1:n; z += complex(1.0 / k, -1.0 / (k * k)); end; abs2(z))
e_rational(n::Int) = (s = 0 // 1; for i in 1:n; s += (i % 5) // 7; end; numerator(s))
e_dot32(n::Int, m::Int) = (a = Float32[i % 7 for i in 1:n]; b = Float32[i % 5 for i in 1:n]; s = 0.0f0; for k in 1:m; @inbounds @simd for i in 1:n; s += a[i] * b[i]; end; end; Float64(s))
e_i32sum(n::Int, m::Int) = (a = Int32[i % 100 for i in 1:n]; s = Int32(0); for k in 1:m; for x in a; s += x; end; end; Int(s))
e_argmax(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; b = 1; for i in 2:n; if v[i] > v[b]; b = i; end; end; b)
e_runmax(n::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; m = typemin(Int); c = 0; for x in v; if x > m; m = x; c += 1; end; end; c)
e_variance(n::Int) = (v = [sin(1.0i) for i in 1:n]; m = sum(v) / n; s = 0.0; for x in v; s += (x - m)^2; end; s / (n - 1))
e_newton(n::Int) = (s = 0.0; for i in 1:n; x = 1.0; for k in 1:6; x = 0.5 * (x + i / x); end; s += x; end; s)
e_horner(n::Int) = (c = [1.0, -2.0, 3.0, 0.5, 0.25]; s = 0.0; for i in 1:n; x = i / n; p = 0.0; for a in c; p = p * x + a; end; s += p; end; s)
e_trig(n::Int) = (s = 0.0; for i in 1:n; s += sin(i * 0.01) * cos(i * 0.02); end; s)
e_exps(n::Int) = (s = 0.0; for i in 1:n; s += exp(-i / n) + log(1.0 + i); end; s)
e_union(n::Int) = (v = Union{Int,Nothing}[i % 4 == 0 ? nothing : i for i in 1:n]; s = 0; for x in v; x === nothing || (s += x); end; s)
e_missing(n::Int) = (v = [i % 5 == 0 ? missing : i / 2 for i in 1:n]; s = 0.0; for x in skipmissing(v); s += x; end; s)
e_hanoi(n::Int) = (h(k, a, b, c) = k == 0 ? 0 : h(k - 1, a, c, b) + 1 + h(k - 1, c, b, a); h(n, 1, 2, 3))
e_ackermann(n::Int) = (a(m, k) = m == 0 ? k + 1 : k == 0 ? a(m - 1, 1) : a(m - 1, a(m, k - 1)); a(2, n))
e_perms(n::Int) = begin
    v = collect(1:n); c = 0; s = zeros(Int, n); i = 1
    while i <= n
        if s[i] < i - 1
            j = isodd(i) ? 1 : s[i] + 1
            v[i], v[j] = v[j], v[i]
            v[1] < v[n] && (c += 1)
            s[i] += 1; i = 1
        else
            s[i] = 0; i += 1
        end
    end
    c
end
solve!(b::Vector{Int}, r::Int, n::Int) = begin
    r > n && return 1
    c = 0
    for k in 1:n
        ok = true
        for q in 1:r-1
            if b[q] == k || abs(b[q] - k) == r - q
                ok = false; break
            end
        end
        if ok
            b[r] = k
            c += solve!(b, r + 1, n)
        end
    end
    c
end
e_queens(n::Int) = solve!(zeros(Int, n), 1, n)
e_subsets(n::Int) = (w = [i * 5 % 13 + 1 for i in 1:n]; c = 0; for m in 0:(1<<n)-1; t = 0; for i in 1:n; if m & (1 << (i - 1)) != 0; t += w[i]; end; end; t == 30 && (c += 1); end; c)
end
# The sizes that `benches/julia.rs` times.
const TIMED = [
    ("e_popcount", (10000, 10)), ("e_hamming", (10000, 10)), ("e_zeros", (100000,)), ("e_parity", (100000,)), ("e_bitrev", (100000,)), ("e_xorshift", (100000,)),
    ("e_reprs", (1000,)), ("e_interp", (1000,)), ("e_floatstr", (1000,)), ("e_digitsum", (1000,)), ("e_digitloop", (10000,)), ("e_bytehist", (1000,)), ("e_charcount", (1000,)),
    ("e_vowels", (1000,)), ("e_caesar", (1000,)), ("e_palin", (1000,)), ("e_parse", (1000,)), ("e_strhash", (1000,)), ("e_djb", (1000,)), ("e_upper", (1000,)),
    ("e_replace", (1000,)), ("e_occurs", (1000,)), ("e_wordfreq", (1000,)), ("e_dictgroup", (10000,)), ("e_setuniq", (10000,)), ("e_evens", (10000,)), ("e_filtmap", (100000,)),
    ("e_compif", (100000,)), ("e_zip", (10000,)), ("e_enum", (10000,)), ("e_revrange", (100000,)), ("e_steprange", (100000,)), ("e_floatrange", (10000,)), ("e_takewhile", (100000,)),
    ("e_points", (10000,)), ("e_accounts", (1000,)), ("e_list", (10000,)), ("e_particles", (1000,)), ("e_bubble", (300,)), ("e_insert", (300,)), ("e_sort", (10000,)),
    ("e_sortf", (10000,)), ("e_sortperm", (10000,)), ("e_sortstr", (1000,)), ("e_bsearch", (10000,)), ("e_matvec", (100,)), ("e_lu", (60,)), ("e_floyd", (60,)), ("e_lcs", (200,)),
    ("e_edit", (10,)), ("e_bcast", (10000,)), ("e_mapreduce", (100000,)), ("e_sumabs", (10000,)), ("e_anyall", (10000,)), ("e_gcds", (10000,)), ("e_isprime", (10000,)),
    ("e_pushpop", (10000,)), ("e_queue", (10000,)), ("e_tuples", (10000,)), ("e_compose", (100000,)), ("e_apply", (10000,)), ("e_counter", (10000,)), ("e_complexsum", (100000,)),
    ("e_rational", (1000,)), ("e_dot32", (10000, 10)), ("e_i32sum", (10000, 10)), ("e_argmax", (10000,)), ("e_runmax", (10000,)), ("e_variance", (10000,)), ("e_newton", (10000,)),
    ("e_horner", (10000,)), ("e_trig", (10000,)), ("e_exps", (10000,)), ("e_union", (10000,)), ("e_missing", (10000,)), ("e_hanoi", (14,)), ("e_ackermann", (100,)),
    ("e_perms", (7,)), ("e_queens", (7,)), ("e_subsets", (12,)),
]
const CASES = [(name, [map(n -> min(n, most), size) for most in (name == "e_sumabs" ? (9,) : (9, 70))]) for (name, size) in TIMED]
