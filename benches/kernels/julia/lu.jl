# LU decomposition with partial pivoting, a matrix with two indices.
function lu!(m::Matrix{Float64}, n::Int64)::Float64
    d = 1.0
    for k in 1:n
        p = k
        for i in k+1:n
            if abs(m[i, k]) > abs(m[p, k])
                p = i
            end
        end
        if p != k
            for j in 1:n
                t = m[k, j]
                m[k, j] = m[p, j]
                m[p, j] = t
            end
            d = -d
        end
        d *= m[k, k] / 16.0
        for i in k+1:n
            m[i, k] /= m[k, k]
        end
        for j in k+1:n
            for i in k+1:n
                m[i, j] -= m[i, k] * m[k, j]
            end
        end
    end
    return d
end

function run(a::Int64, b::Int64)::Float64
    m = Matrix{Float64}(undef, a, a)
    s = 0.0
    x = 3
    for r in 1:b
        for j in 1:a
            for i in 1:a
                x = (x * 1103515245 + 12345) & 2147483647
                m[i, j] = Float64((x >> 8) % 1000) / 100.0
            end
        end
        s += lu!(m, a)
    end
    return s
end
