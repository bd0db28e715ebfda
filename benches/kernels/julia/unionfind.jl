# Components of a graph: a forest in a vector, whose paths are halved on the way to the root.
function root!(parent::Vector{Int64}, i::Int64)::Int64
    while parent[i] != i
        parent[i] = parent[parent[i]]
        i = parent[i]
    end
    return i
end

function run(a::Int64, b::Int64)::Float64
    parent = Vector{Int64}(undef, a)
    s = 0
    x = 4
    for r in 1:b
        for i in 1:a
            parent[i] = i
        end
        n = a
        for k in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            u = root!(parent, x % a + 1)
            v = root!(parent, (x >> 8) % a + 1)
            if u != v
                parent[u] = v
                n -= 1
            end
        end
        s += n
    end
    return Float64(s)
end
