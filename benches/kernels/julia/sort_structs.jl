# Merge sort of structs by a comparator that is a closure.
struct Entry
    key::Float64
    id::Int64
end
struct Less
    sign::Float64
end

function (c::Less)(x::Entry, y::Entry)::Bool
    return c.sign * x.key < c.sign * y.key || (x.key == y.key && x.id < y.id)
end

function sort!(v::Vector{Entry}, t::Vector{Entry}, lo::Int64, hi::Int64, lt::Less)::Nothing
    if hi - lo < 12
        for i in lo+1:hi
            x = v[i]
            j = i
            while j > lo && lt(x, v[j - 1])
                v[j] = v[j - 1]
                j -= 1
            end
            v[j] = x
        end
        return nothing
    end
    m = lo + ((hi - lo) >> 1)
    sort!(v, t, lo, m, lt)
    sort!(v, t, m + 1, hi, lt)
    for i in lo:m
        t[i] = v[i]
    end
    i = lo
    j = m + 1
    k = lo
    while i <= m && j <= hi
        if lt(v[j], t[i])
            v[k] = v[j]
            j += 1
        else
            v[k] = t[i]
            i += 1
        end
        k += 1
    end
    while i <= m
        v[k] = t[i]
        i += 1
        k += 1
    end
end

function run(a::Int64, b::Int64)::Float64
    v = Vector{Entry}(undef, a)
    t = Vector{Entry}(undef, a)
    s = 0.0
    x = 42
    for r in 1:b
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            v[i] = Entry(Float64(x % 1000) / 8.0, i)
        end
        sort!(v, t, 1, a, Less(r % 2 == 0 ? 1.0 : -1.0))
        for i in 1:a
            e = v[i]
            s = s * 0.5 + e.key + Float64(e.id)
        end
    end
    return s
end
