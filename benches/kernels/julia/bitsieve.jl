# The sieve of Eratosthenes over a set of bits.
function run(a::Int64, b::Int64)::Float64
    n = (a >> 6) + 1
    chunks = Vector{UInt64}(undef, n)
    s = 0
    for r in 1:b
        for i in 1:n
            chunks[i] = 0xffffffffffffffff
        end
        p = 2
        while p * p <= a
            if (chunks[(p >> 6) + 1] >> (p & 63)) & 0x0000000000000001 != 0x0000000000000000
                m = p * p
                while m <= a
                    chunks[(m >> 6) + 1] &= ~(0x0000000000000001 << (m & 63))
                    m += p
                end
            end
            p += 1
        end
        for c in chunks
            s += count_ones(c)
        end
    end
    return Float64(s)
end
