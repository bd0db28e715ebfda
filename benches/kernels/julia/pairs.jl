# Sums over all pairs of points: the inner range begins behind the outer counter.
function energy(xs::Vector{Float64}, ys::Vector{Float64})::Float64
    e = 0.0
    n = length(xs)
    for i in 1:n-1
        for j in i+1:n
            dx = xs[i] - xs[j]
            dy = ys[i] - ys[j]
            e += 1.0 / (dx * dx + dy * dy + 0.25)
        end
    end
    return e
end

function run(a::Int64, b::Int64)::Float64
    xs = Vector{Float64}(undef, a)
    ys = Vector{Float64}(undef, a)
    x = 1
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        xs[i] = Float64(x % 1000) * 0.01
        ys[i] = Float64((x >> 12) % 1000) * 0.01
    end
    s = 0.0
    for r in 1:b
        xs[1] = Float64(r)
        s += energy(xs, ys)
    end
    return s
end
