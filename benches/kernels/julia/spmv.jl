# Sparse matrix times vector, compressed rows.
struct Sparse
    rows::Vector{Int64}
    cols::Vector{Int64}
    vals::Vector{Float64}
end

function mul!(y::Vector{Float64}, m::Sparse, x::Vector{Float64})::Nothing
    for i in 1:length(y)
        t = 0.0
        for k in m.rows[i]:m.rows[i + 1]-1
            t += m.vals[k] * x[m.cols[k]]
        end
        y[i] = t
    end
end

function run(a::Int64, b::Int64)::Float64
    m = Sparse(Vector{Int64}(undef, a + 1), Vector{Int64}(undef, a * 8), Vector{Float64}(undef, a * 8))
    r = 5
    for i in 1:a+1
        m.rows[i] = (i - 1) * 8 + 1
    end
    for k in 1:a*8
        r = (r * 1103515245 + 12345) & 2147483647
        m.cols[k] = r % a + 1
        m.vals[k] = Float64(r % 13) * 0.02
    end
    x = Vector{Float64}(undef, a)
    y = Vector{Float64}(undef, a)
    for i in 1:a
        x[i] = 1.0
    end
    for i in 1:b
        mul!(y, m, x)
        mul!(x, m, y)
    end
    s = 0.0
    for v in x
        s += v
    end
    return s
end
