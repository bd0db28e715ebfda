# A binary heap in a vector, in a mutable struct.
mutable struct Queue
    items::Vector{Int64}
    count::Int64
end

function push!(q::Queue, x::Int64)::Nothing
    q.count += 1
    i = q.count
    while i > 1
        p = i >> 1
        y = q.items[p]
        if y <= x
            break
        end
        q.items[i] = y
        i = p
    end
    q.items[i] = x
end

function pop!(q::Queue)::Int64
    top = q.items[1]
    x = q.items[q.count]
    q.count -= 1
    n = q.count
    i = 1
    while 2 * i <= n
        c = 2 * i
        if c < n && q.items[c + 1] < q.items[c]
            c += 1
        end
        y = q.items[c]
        if x <= y
            break
        end
        q.items[i] = y
        i = c
    end
    q.items[i] = x
    return top
end

function run(a::Int64, b::Int64)::Float64
    q = Queue(Vector{Int64}(undef, a + 1), 0)
    x = 1
    s = 0
    for r in 1:b
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            push!(q, x)
        end
        for i in 1:a
            s = (s * 3 + pop!(q)) & 1073741823
        end
    end
    return Float64(s)
end
