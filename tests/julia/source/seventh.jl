# Loops that were written after what executes loops in 256 and 512 bits, and takes the checks of matrices out of them, was finished; docs/performance.md has their times.
module Programs
s_dist(n::Int, m::Int) = (x = [i / 8 for i in 1:n]; y = [(n - i) / 4 for i in 1:n]; s = 0.0; for k in 1:m; t = 0.0; @inbounds @simd for i in 1:n; d = x[i] - y[i]; t += d * d; end; s += sqrt(t); end; s)
s_lerp(n::Int, m::Int) = (a = [i * 0.5 for i in 1:n]; b = [n - i * 0.25 for i in 1:n]; c = zeros(n); for k in 1:m; t = k / m; for i in 1:n; c[i] = a[i] * (1.0 - t) + b[i] * t; end; end; c[n])
s_cubes(n::Int, m::Int) = (v = collect(1:n); s = 0; for k in 1:m; for x in v; s += x * x * x + k; end; end; s)
s_hash(n::Int, m::Int) = (v = UInt64[i for i in 1:n]; s = UInt64(0); for k in 1:m; for x in v; y = (x ⊻ (x >> 33)) * 0xff51afd7ed558ccd; s ⊻= y ⊻ (y >> 29); end; end; Int(s & 0xffff))
s_norms(n::Int) = (a = [i / j for i in 1:n, j in 1:n]; s = 0.0; for r in 1:20; for j in 1:n; t = 0.0; for i in 1:n; t += a[i, j] * a[i, j]; end; s += t; end; end; s)
s_addmat(n::Int) = (a = [i + 2j for i in 1:n, j in 1:n]; b = [i * j for i in 1:n, j in 1:n]; c = zeros(Int, n, n); for r in 1:10; for j in 1:n, i in 1:n; c[i, j] += a[i, j] - b[i, j]; end; end; c[n, 2])
s_rowsum(n::Int) = (a = [i * j % 17 for i in 1:n, j in 1:n]; s = zeros(Int, n); for r in 1:10; for i in 1:n, j in 1:n; s[i] += a[i, j]; end; end; maximum(s))
s_heat(n::Int) = begin
    u = [i == 1 ? 1.0 : 0.0 for i in 1:n, j in 1:n]; w = copy(u)
    for step in 1:10
        for j in 2:n-1, i in 2:n-1
            w[i, j] = u[i, j] + 0.1 * (u[i-1, j] + u[i+1, j] + u[i, j-1] + u[i, j+1] - 4.0 * u[i, j])
        end
        u, w = w, u
    end
    u[2, 2]
end
s_range(n::Int, m::Int) = (v = Int32[(i * 37) % 1009 for i in 1:n]; s = 0; for k in 1:m; lo = typemax(Int32); hi = typemin(Int32); for x in v; lo = min(lo, x); hi = max(hi, x); end; s += hi - lo; end; s)
s_odd(n::Int, m::Int) = (v = collect(1:n); c = 0; for k in 1:m; for x in v; c += isodd(x * k); end; end; c)
s_fir(n::Int, m::Int) = (x = [sin(i * 1.0) for i in 1:n]; y = zeros(n); for k in 1:m; for i in 4:n; y[i] = 0.1 * x[i] + 0.2 * x[i-1] + 0.3 * x[i-2] + 0.4 * x[i-3]; end; end; y[n])
s_pascal(n::Int) = (a = zeros(Int, n); b = zeros(Int, n); a[1] = 1; for r in 1:n; b[1] = 1; for i in 2:n; b[i] = (a[i] + a[i-1]) & 0xffffff; end; a, b = b, a; end; a[n÷2])
s_digits(n::Int) = (c = 0; for i in 1:n; c += length(string(i * 7)); end; c)
s_repr(n::Int) = (v = String[]; for i in 1:n; push!(v, string(i, ":", i * 2)); end; length(join(v, ";")))
s_bytes(n::Int, m::Int) = (v = UInt8[i & 0x7f for i in 1:n]; s = 0; for k in 1:m; for x in v; s += x ⊻ 0x15; end; end; s)
s_saxpy(n::Int, m::Int) = (x = Float32[i for i in 1:n]; y = zeros(Float32, n); for k in 1:m; a = Float32(k); for i in 1:n; y[i] = a * x[i] + y[i]; end; end; Float64(y[n]))
end
const CASES = [("s_dist", [(10, 2)]), ("s_lerp", [(10, 2)]), ("s_cubes", [(10, 2)]), ("s_hash", [(40, 2)]), ("s_norms", [(5,)]), ("s_addmat", [(5,)]), ("s_rowsum", [(5,)]), ("s_heat", [(8,)]), ("s_range", [(40, 2)]), ("s_odd", [(40, 3)]), ("s_fir", [(40, 2)]), ("s_pascal", [(20,)]), ("s_digits", [(20,)]), ("s_repr", [(20,)]), ("s_bytes", [(70, 2)]), ("s_saxpy", [(40, 2)])]
# The sizes that `benches/julia.rs` times.
const TIMED = [("s_dist", (10000, 10)), ("s_lerp", (10000, 10)), ("s_cubes", (10000, 10)), ("s_hash", (10000, 10)), ("s_norms", (100,)), ("s_addmat", (100,)), ("s_rowsum", (100,)), ("s_heat", (100,)), ("s_range", (10000, 10)), ("s_odd", (10000, 10)), ("s_fir", (10000, 10)), ("s_pascal", (1000,)), ("s_digits", (1000,)), ("s_repr", (1000,)), ("s_bytes", (10000, 10)), ("s_saxpy", (10000, 10))]
