# How many elements two sorted vectors share, by two positions that move in turn.
function shared(p::Vector{Int64}, q::Vector{Int64})::Int64
    i = 1
    j = 1
    n = 0
    while i <= length(p) && j <= length(q)
        x = p[i]
        y = q[j]
        if x == y
            n += 1
            i += 1
            j += 1
        elseif x < y
            i += 1
        else
            j += 1
        end
    end
    return n
end

function run(a::Int64, b::Int64)::Float64
    p = Vector{Int64}(undef, a)
    q = Vector{Int64}(undef, a)
    x = 9
    u = 0
    v = 0
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        u += 1 + ((x >> 16) & 3)
        v += 1 + ((x >> 20) & 3)
        p[i] = u
        q[i] = v
    end
    s = 0
    for r in 1:b
        p[r] = p[r] + 0
        s += shared(p, q)
    end
    return Float64(s)
end
