# Longest common subsequence: a table of dynamic programming, row by row.
function run(a::Int64, b::Int64)::Float64
    p = Vector{UInt8}(undef, a)
    q = Vector{UInt8}(undef, a)
    w = a + 1
    t = Vector{Int64}(undef, w * w)
    x = 7
    s = 0
    for r in 1:b
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            p[i] = (x >> 16) % UInt8 & 0x03
            x = (x * 1103515245 + 12345) & 2147483647
            q[i] = (x >> 16) % UInt8 & 0x03
        end
        for i in 1:w
            t[i] = 0
            t[(i - 1) * w + 1] = 0
        end
        for i in 1:a
            for j in 1:a
                if p[i] == q[j]
                    t[i * w + j + 1] = t[(i - 1) * w + j] + 1
                else
                    t[i * w + j + 1] = max(t[(i - 1) * w + j + 1], t[i * w + j])
                end
            end
        end
        s += t[w * w]
    end
    return Float64(s)
end
