# Sums of a vector: integers, marked floats, products, counters of a range.
function total(v::Vector{Int64})::Int64
    s = 0
    for x in v
        s += x
    end
    return s
end
function dot(v::Vector{Float64}, w::Vector{Float64})::Float64
    s = 0.0
    @simd for i in 1:length(v)
        @inbounds s += v[i] * w[i]
    end
    return s
end
function squares(v::Vector{Int64})::Int64
    s = 0
    for i in 1:length(v)
        s += v[i] * v[i]
    end
    return s
end
function triangle(n::Int64)::Int64
    s = 0
    for i in 1:n
        s += i
    end
    return s
end

function run(a::Int64, b::Int64)::Float64
    v = Vector{Int64}(undef, a)
    f = Vector{Float64}(undef, a)
    for i in 1:a
        v[i] = i % 100
        f[i] = Float64(i % 16)
    end
    s = 0
    t = 0.0
    for r in 1:b
        v[1 + r % a] = r & 127
        s += total(v) + squares(v) + (triangle(a) & 65535)
        t += dot(f, f)
    end
    return Float64(s & 1073741823) + t
end
