# Shortest paths between all nodes of a graph, by a matrix in a vector.
function run(a::Int64, b::Int64)::Float64
    d = Vector{Int64}(undef, a * a)
    s = 0
    x = 1
    for r in 1:b
        for i in 1:a*a
            x = (x * 1103515245 + 12345) & 2147483647
            d[i] = x >> 12
        end
        for k in 0:a-1
            for i in 0:a-1
                t = d[i * a + k + 1]
                for j in 1:a
                    d[i * a + j] = min(d[i * a + j], t + d[k * a + j])
                end
            end
        end
        for y in d
            s += y
        end
    end
    return Float64(s)
end
