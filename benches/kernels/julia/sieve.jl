# The sieve over a vector of bytes, with ranges.
function run(n::Int64, b::Int64)::Float64
    f = Vector{UInt8}(undef, n + 1)
    total = 0
    for r in 1:b
        for i in 1:length(f)
            f[i] = 0x01
        end
        i = 2
        while i * i <= n
            if f[i + 1] != 0x00
                for j in i*i:i:n
                    f[j + 1] = 0x00
                end
            end
            i += 1
        end
        for i in 2:n
            total += Int64(f[i + 1])
        end
    end
    return Float64(total)
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
