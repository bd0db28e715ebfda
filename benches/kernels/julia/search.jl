# any, all, count, find, least and greatest over a vector.
function any_over(v::Vector{Int64}, k::Int64)::Bool
    for x in v
        if x > k
            return true
        end
    end
    return false
end
function all_under(v::Vector{Int64}, k::Int64)::Bool
    for x in v
        if x > k
            return false
        end
    end
    return true
end
function find(v::Vector{Int64}, k::Int64)::Int64
    for i in 1:length(v)
        if v[i] == k
            return i
        end
    end
    return 0
end
function count_over(v::Vector{Int64}, k::Int64)::Int64
    n = 0
    for x in v
        n += Int64(x > k)
    end
    return n
end
function least(v::Vector{Int64})::Int64
    m = v[1]
    for i in 2:length(v)
        m = min(m, v[i])
    end
    return m
end

function run(a::Int64, b::Int64)::Float64
    v = Vector{Int64}(undef, a)
    x = 13
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        v[i] = x >> 8
    end
    s = 0
    for r in 1:b
        v[1 + r % a] = 8388608 + r
        if any_over(v, 8388608 + r)
            s += 1
        end
        if all_under(v, 8388608 + r)
            s += 2
        end
        s += find(v, 8388608 + r) + find(v, -r)
        s += count_over(v, r * 1000) + least(v) + r
    end
    return Float64(s)
end
