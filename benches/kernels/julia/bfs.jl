# Breadth-first search in a graph whose edges are in compressed rows.
struct Graph
    first::Vector{Int64}
    to::Vector{Int64}
end

function distances!(d::Vector{Int64}, queue::Vector{Int64}, g::Graph, from::Int64)::Int64
    for i in 1:length(d)
        d[i] = -1
    end
    d[from] = 0
    queue[1] = from
    head = 1
    tail = 2
    while head < tail
        u = queue[head]
        head += 1
        for k in g.first[u]:g.first[u + 1]-1
            v = g.to[k]
            if d[v] < 0
                d[v] = d[u] + 1
                queue[tail] = v
                tail += 1
            end
        end
    end
    return tail
end

function run(a::Int64, b::Int64)::Float64
    g = Graph(Vector{Int64}(undef, a + 1), Vector{Int64}(undef, a * 4))
    x = 3
    for i in 1:a+1
        g.first[i] = (i - 1) * 4 + 1
    end
    for k in 1:a*4
        x = (x * 1103515245 + 12345) & 2147483647
        g.to[k] = x % a + 1
    end
    d = Vector{Int64}(undef, a)
    queue = Vector{Int64}(undef, a)
    s = 0
    for r in 1:b
        s += distances!(d, queue, g, r)
        for y in d
            s += y
        end
    end
    return Float64(s)
end
