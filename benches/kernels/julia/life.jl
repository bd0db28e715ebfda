# The game of life: bytes, eight neighbours, a rule with branches.
function run(a::Int64, b::Int64)::Float64
    p = Vector{UInt8}(undef, a * a)
    q = Vector{UInt8}(undef, a * a)
    x = 5
    for i in 1:a*a
        x = (x * 1103515245 + 12345) & 2147483647
        p[i] = ((x >> 16) & 1) % UInt8
        q[i] = 0x00
    end
    for r in 1:b
        for i in 2:a-1
            for j in 2:a-1
                k = (i - 1) * a + j
                n = p[k - a - 1] + p[k - a] + p[k - a + 1] + p[k - 1] + p[k + 1] + p[k + a - 1] + p[k + a] + p[k + a + 1]
                if n == 0x03 || (n == 0x02 && p[k] == 0x01)
                    q[k] = 0x01
                else
                    q[k] = 0x00
                end
            end
        end
        t = p
        p = q
        q = t
    end
    s = 0
    for c in p
        s += Int64(c)
    end
    return Float64(s)
end
