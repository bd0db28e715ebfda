# Loops that were written after what executes loops in lanes and in closed form was finished, to see what it does for others; docs/performance.md has their times.
module Programs
h_norm2(n::Int, m::Int) = (v = [0.5 * i for i in 1:n]; s = 0.0; for k in 1:m; t = 0.0; @inbounds @simd for i in 1:n; t += v[i] * v[i]; end; s += sqrt(t); end; s)
h_sumrange(n::Int, m::Int) = (s = 0; for k in 1:m; for i in 1:n; s += i * k + 3; end; end; s)
h_scale(n::Int, m::Int) = (v = [1.0 + i / 8 for i in 1:n]; for k in 1:m; for i in eachindex(v); v[i] = v[i] * 0.999 + 0.5; end; end; v[n])
h_evens(n::Int, m::Int) = (v = [(i * 31) % 97 for i in 1:n]; c = 0; for k in 1:m; for x in v; c += iseven(x + k); end; end; c)
h_minmax(n::Int, m::Int) = (v = Int32[(i * 31) % 977 for i in 1:n]; s = 0; for k in 1:m; a = typemax(Int32); for x in v; a = min(a, x ⊻ Int32(k)); end; s += a; end; s)
h_mask(n::Int, m::Int) = (b = [i % 3 == 0 for i in 1:n]; s = 0; for k in 1:m; for i in 1:n; s += b[i]; end; end; s)
h_bytehist(n::Int) = (v = UInt8[(i * 37) & 0xff for i in 1:n]; h = zeros(Int, 256); for x in v; h[Int(x)+1] += 1; end; maximum(h))
h_stencil(n::Int, m::Int) = (u = [1.0 / i for i in 1:n]; w = copy(u); for k in 1:m; for i in 2:n-1; w[i] = 0.25 * u[i-1] + 0.5 * u[i] + 0.25 * u[i+1]; end; u, w = w, u; end; u[2])
h_colsum(n::Int) = (a = [i + 2.0j for i in 1:n, j in 1:n]; s = zeros(n); for r in 1:20, j in 1:n, i in 1:n; s[i] += a[i, j]; end; s[n])
h_transpose(n::Int) = (a = [i * j for i in 1:n, j in 1:n]; b = similar(a); for r in 1:10, j in 1:n, i in 1:n; b[j, i] = a[i, j] + r; end; b[n, 1])
h_primes(n::Int) = (c = 0; for i in 2:n; p = true; d = 2; while d * d <= i; if i % d == 0; p = false; break; end; d += 1; end; c += p; end; c)
h_fibmod(n::Int) = (a = 0; b = 1; for i in 1:n; a, b = b, (a + b) % 1000007; end; a)
h_bits(n::Int) = (s = 0; for i in 1:n; s += count_ones(i ⊻ (i >> 1)); end; s)
h_dictint(n::Int) = (d = Dict{Int,Int}(); for i in 1:n; k = (i * 7919) % 1009; d[k] = get(d, k, 0) + 1; end; maximum(values(d)))
h_dictstr(n::Int) = (names = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta"]; d = Dict{String,Int}(); for i in 1:n; k = names[(i*i)%7+1]; d[k] = get(d, k, 0) + i; end; d["alpha"])
h_neigh(n::Int) = begin
    g = [(i * j) % 3 for i in 1:n, j in 1:n]; s = 0
    for j in 2:n-1, i in 2:n-1
        for b in -1:1, a in -1:1
            s += g[i+a, j+b] * (a + 2b)
        end
        s += g[i, j]
    end
    s
end
h_poly(n::Int, m::Int) = (v = [i / 100 for i in 1:n]; s = 0.0; for k in 1:m; for x in v; s += evalpoly(x, (1.0, 0.5, 0.25, 0.125)); end; end; s)
h_cumsum(n::Int, m::Int) = (v = collect(1:n); for k in 1:m; t = 0; for i in 1:n; t += v[i]; v[i] = t & 0xffff; end; end; v[n])
h_knap(n::Int) = (best = zeros(Int, n + 1); for w in [3, 5, 8, 11, 13]; for c in n:-1:w; best[c+1] = max(best[c+1], best[c-w+1] + w * 3); end; end; best[n+1])
h_clamp(n::Int, m::Int) = (v = [Float64(i % 100) for i in 1:n]; for k in 1:m; for i in 1:n; x = v[i] * 1.01; v[i] = x > 90.0 ? 90.0 : x; end; end; v[n])
end
const CASES = [("h_norm2", [(10, 2)]), ("h_sumrange", [(10, 2)]), ("h_scale", [(10, 2)]), ("h_evens", [(10, 2)]), ("h_minmax", [(10, 2)]), ("h_mask", [(10, 2)]), ("h_bytehist", [(100,)]), ("h_stencil", [(10, 2)]), ("h_colsum", [(5,)]), ("h_transpose", [(5,)]), ("h_primes", [(50,)]), ("h_fibmod", [(10,)]), ("h_bits", [(10,)]), ("h_dictint", [(10,)]), ("h_dictstr", [(10,)]), ("h_neigh", [(6,)]), ("h_poly", [(10, 2)]), ("h_cumsum", [(10, 2)]), ("h_knap", [(30,)]), ("h_clamp", [(10, 2)])]
# The sizes that `benches/julia.rs` times.
const TIMED = [("h_norm2", (10000, 10)), ("h_sumrange", (10000, 10)), ("h_scale", (10000, 10)), ("h_evens", (10000, 10)), ("h_minmax", (10000, 10)), ("h_mask", (10000, 10)), ("h_bytehist", (100000,)), ("h_stencil", (10000, 10)), ("h_colsum", (60,)), ("h_transpose", (60,)), ("h_primes", (3000,)), ("h_fibmod", (10000,)), ("h_bits", (100000,)), ("h_dictint", (10000,)), ("h_dictstr", (10000,)), ("h_neigh", (64,)), ("h_poly", (10000, 10)), ("h_cumsum", (10000, 10)), ("h_knap", (10000,)), ("h_clamp", (10000, 10))]
