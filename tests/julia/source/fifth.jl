# Loops that are executed in lanes, written out or have a closed form, with sizes around those of a trip: what is left behind the last one counts.
module Programs
lanes_xor(n::Int, m::Int) = (v = collect(1:n); s = 0; for k in 1:m; t = 0; for x in v; t += xor(x, k); end; s += t; end; s)
lanes_bools(n::Int) = (v = fill(true, n); v[1] = false; i = 2; while i * i <= n; if v[i]; for j in i*i:i:n; v[j] = false; end; end; i += 1; end; c = 0; for b in v; c += b; end; c)
lanes_dot(n::Int) = (a = [1.0 / i for i in 1:n]; b = [i * 0.5 for i in 1:n]; t = 0.0; @inbounds @simd for i in 1:n; t += a[i] * b[i]; end; abs(t - n / 2) < 1.0e-9)
lanes_floats(n::Int) = (a = [i - 3.0 for i in -n:n]; b = [3 * i / 7 for i in 1:n]; s = a[1] + a[end]; for x in b; s += x; end; s)
lanes_broadcast(n::Int, m::Int) = (x = [i * 0.25 for i in 1:n]; y = zeros(n); for r in 1:m; y .= y .+ r .* x; end; y[n])
lanes_max(n::Int, m::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; s = 0; for k in 1:m; t = typemin(Int); for x in v; t = max(t, xor(x, k)); end; s += t; end; s)
lanes_count(n::Int, k::Int) = (v = [(i * 7919) % 10007 for i in 1:n]; count(x -> x > k, v))
lanes_bytes(n::Int, m::Int) = (v = UInt8[i % 251 for i in 1:n]; s = 0; for k in 1:m; for x in v; s += x; end; end; s)
lanes_signed(n::Int) = (v = Int8[i % 255 - 127 for i in 1:n]; w = Int16[200 * x for x in v]; s = 0; for x in v; s += x; end; for x in w; s += x; end; s)
lanes_wide(n::Int) = (v = Int32[i % 1000 - 500 for i in 1:n]; s = 0; for x in v; s += x; end; s)
lanes_narrow(n::Int) = (v = [i * 77 for i in 1:n]; w = UInt8[x & 0xff for x in v]; u = [x % UInt16 for x in v]; sum(w) + sum(u))
lanes_single(n::Int) = (x = Float32[i for i in 1:n]; y = zeros(Float32, n); for r in 1:3; for i in 1:n; y[i] = y[i] + Float32(r) * x[i]; end; end; y[n])
lanes_shifted(n::Int, d::Int) = (v = collect(1:n+d); for i in 1:n; v[i+d] = v[i] + 1; end; sum(v))
closed_squares(n::Int) = (s = 0; for i in 1:n; s += i * i; end; s)
closed_line(n::Int, k::Int) = (s = 7; for i in -3:n; s += k * i + 1; s -= 2i; end; s)
closed_product(n::Int, k::Int) = (s = 0; for i in 5:n; s += (i - 2) * (k - i) + i << 3; end; s)
odd_ones(n::Int) = (s = 0; for x in Iterators.filter(isodd, 1:n); s += x; end; s)
steps_to_one(n::Int) = (c = 0; x = n; while x != 1; x = iseven(x) ? x >> 1 : 3x + 1; c += 1; end; c)
thirds_of_signed(n::Int) = (c = 0; for i in -n:n; rem(i, 8) == 0 && (c += 1); rem(i, -4) == 0 && (c += 10); rem(i, 2) == 1 && (c += 100); end; c)
function around(n::Int)
    g = [((i * 7 + j * 13) % 5) < 2 for i in 1:n, j in 1:n]
    c = 0
    for j in 2:n-1, i in 2:n-1
        k = 0
        for dj in -1:1, di in -1:1
            (di != 0 || dj != 0) && (k += g[i+di, j+dj])
        end
        c = (3c + k) % 1000003
    end
    c
end
matrix_product(n::Int) = (a = [i + 0.5j for i in 1:n, j in 1:n]; b = [i - 0.5j for i in 1:n, j in 1:n]; c = zeros(n, n); for j in 1:n, k in 1:n, i in 1:n; c[i, j] += a[i, k] * b[k, j]; end; c[n, 1] + c[1, n])
end
const SIZES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 100, 257]
const CASES = [
    ("lanes_xor", [(n, 3) for n in SIZES]), ("lanes_bools", [(n,) for n in SIZES[2:end]]), ("lanes_dot", [(n,) for n in SIZES]), ("lanes_floats", [(n,) for n in SIZES]),
    ("lanes_broadcast", [(n, 3) for n in SIZES]), ("lanes_max", [(n, 3) for n in SIZES]), ("lanes_count", [(n, 5000) for n in SIZES]), ("lanes_bytes", [(n, 3) for n in SIZES]),
    ("lanes_signed", [(n,) for n in SIZES]), ("lanes_wide", [(n,) for n in SIZES]), ("lanes_narrow", [(n,) for n in SIZES]), ("lanes_single", [(n,) for n in SIZES]),
    ("lanes_shifted", [(n, d) for n in [1, 9, 40] for d in [1, 2, 4, 5, 8]]), ("closed_squares", [(n,) for n in [-1, 0, 1, 2, 3, 100, 3000]]),
    ("closed_line", [(n, k) for n in [-9, -3, -2, 10, 1000] for k in [0, -5, 7]]), ("closed_product", [(n, 11) for n in [4, 5, 6, 7, 1000]]), ("odd_ones", [(n,) for n in [0, 1, 2, 9, 100]]),
    ("steps_to_one", [(n,) for n in [1, 2, 27, 97]]), ("thirds_of_signed", [(n,) for n in [0, 1, 8, 50]]), ("around", [(n,) for n in [1, 3, 4, 20]]), ("matrix_product", [(n,) for n in [1, 2, 9, 20]]),
]
