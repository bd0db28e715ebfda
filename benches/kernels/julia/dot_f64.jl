# The strict dot product over checked vectors.
function dot(x::Vector{Float64}, y::Vector{Float64})::Float64
    s = 0.0
    for i in 1:length(x)
        s += x[i] * y[i]
    end
    return s
end

function run(n::Int64, reps::Int64)::Float64
    x = Vector{Float64}(undef, n)
    y = Vector{Float64}(undef, n)
    g = 0x00000009
    for i in 1:n
        g = xs(g)
        x[i] = Float64(g >> 28)
        g = xs(g)
        y[i] = Float64(g >> 28)
    end
    sum = 0.0
    for r in 0:reps-1
        sum += dot(x, y)
        k = (r & (n - 1)) + 1
        x[k] = 15.0 - x[k]
    end
    return sum
end

function xs(x::UInt32)::UInt32
    x = x ⊻ (x << 13)
    x = x ⊻ (x >> 17)
    return x ⊻ (x << 5)
end
function u01(x::UInt32)::Float64
    return Float64(x >> 8) * 5.960464477539063e-8
end

