# Matrix product with row-major index arithmetic on checked vectors.
function run(n::Int64, reps::Int64)::Float64
    a = Vector{Float64}(undef, n * n)
    b = Vector{Float64}(undef, n * n)
    c = Vector{Float64}(undef, n * n)
    x = 0x00000007
    for i in 1:n*n
        x = xs(x)
        a[i] = u01(x)
        x = xs(x)
        b[i] = u01(x)
    end
    sum = 0.0
    for r in 0:reps-1
        for i in 0:n-1
            for j in 0:n-1
                s = 0.0
                for k in 0:n-1
                    s += a[i * n + k + 1] * b[k * n + j + 1]
                end
                c[i * n + j + 1] = s
            end
        end
        for i in 0:n-1
            sum += c[i * n + i + 1]
        end
        a[r % n + 1] += 1.0
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

