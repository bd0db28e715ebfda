# A backtracking matcher of patterns with . * and literals, over bytes.
function match_here(p::Vector{UInt8}, i::Int64, s::Vector{UInt8}, j::Int64)::Bool
    while i <= length(p)
        if i < length(p) && p[i + 1] == 0x2a
            c = p[i]
            while true
                if match_here(p, i + 2, s, j)
                    return true
                end
                if j > length(s) || (s[j] != c && c != 0x2e)
                    return false
                end
                j += 1
            end
        end
        if j > length(s) || (p[i] != s[j] && p[i] != 0x2e)
            return false
        end
        i += 1
        j += 1
    end
    return true
end

function bytes(s::String)::Vector{UInt8}
    v = Vector{UInt8}(undef, ncodeunits(s))
    for i in 1:ncodeunits(s)
        v[i] = codeunit(s, i)
    end
    return v
end

function run(a::Int64, b::Int64)::Float64
    p = bytes("a.b*c.*d")
    s = Vector{UInt8}(undef, a)
    x = 21
    n = 0
    for r in 1:b
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            s[i] = 0x61 + ((x >> 16) & 3) % UInt8
        end
        for j in 1:a
            if match_here(p, 1, s, j)
                n += j
            end
        end
    end
    return Float64(n)
end
