# Counts of bytes, their running sums, and a counting sort by them.
function run(a::Int64, b::Int64)::Float64
    v = Vector{UInt8}(undef, a)
    w = Vector{UInt8}(undef, a)
    counts = Vector{Int64}(undef, 256)
    x = 19
    s = 0
    for r in 1:b
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            v[i] = (x >> 16) % UInt8
        end
        for i in 1:256
            counts[i] = 0
        end
        for c in v
            counts[Int64(c) + 1] += 1
        end
        at = 1
        for i in 1:256
            n = counts[i]
            counts[i] = at
            at += n
        end
        for c in v
            k = counts[Int64(c) + 1]
            w[k] = c
            counts[Int64(c) + 1] = k + 1
        end
        for i in 1:16:a
            s = (s * 31 + Int64(w[i])) & 1073741823
        end
    end
    return Float64(s)
end

function steprange_last(start::Int64, step::Int64, stop::Int64)::Int64
    if stop == start
        return stop
    end
    if (step > 0) != (stop > start)
        return step > 0 ? start - 1 : start + 1
    end
    if stop > start
        return stop - (stop - start) % step
    end
    return stop + (start - stop) % (-step)
end
