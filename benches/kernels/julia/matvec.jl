# Matrix times vector, both ways: a matrix with two indices, columns contiguous.
function run(a::Int64, b::Int64)::Float64
    m = Matrix{Float64}(undef, a, a)
    x = Vector{Float64}(undef, a)
    y = Vector{Float64}(undef, a)
    for j in 1:a
        x[j] = Float64(j % 17)
        for i in 1:a
            m[i, j] = Float64((i * 31 + j * 17) % 101)
        end
    end
    s = 0.0
    for r in 1:b
        for i in 1:a
            y[i] = 0.0
        end
        for j in 1:a
            for i in 1:a
                y[i] += m[i, j] * x[j]
            end
        end
        for j in 1:a
            t = 0.0
            for i in 1:a
                t += m[i, j] * y[i]
            end
            x[j] = t / 1.0e7
        end
        s += x[1 + r % a]
    end
    return s
end
