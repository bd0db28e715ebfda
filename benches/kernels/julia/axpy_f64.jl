# y += a x over checked vectors.
function axpy!(a::Float64, x::Vector{Float64}, y::Vector{Float64})::Nothing
    for i in 1:length(x)
        y[i] += a * x[i]
    end
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
    for r in 0:reps-1
        axpy!(r % 3 == 2 ? -1.0 : 0.5, x, y)
    end
    sum = 0.0
    for i in 1:n
        sum += y[i] * Float64(i)
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

