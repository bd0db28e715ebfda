# An image filter: three by three, bytes in and out.
function blur!(p::Vector{UInt8}, q::Vector{UInt8}, w::Int64, h::Int64)::Nothing
    for y in 2:h-1
        for x in 2:w-1
            i = (y - 1) * w + x
            s = Int64(p[i - w - 1]) + 2 * Int64(p[i - w]) + Int64(p[i - w + 1])
            s += 2 * Int64(p[i - 1]) + 4 * Int64(p[i]) + 2 * Int64(p[i + 1])
            s += Int64(p[i + w - 1]) + 2 * Int64(p[i + w]) + Int64(p[i + w + 1])
            q[i] = (s >> 4) % UInt8
        end
    end
end

function run(a::Int64, b::Int64)::Float64
    p = Vector{UInt8}(undef, a * a)
    q = Vector{UInt8}(undef, a * a)
    r = 9
    for i in 1:a*a
        r = (r * 1103515245 + 12345) & 2147483647
        p[i] = (r >> 12) % UInt8
        q[i] = p[i]
    end
    for k in 1:b
        blur!(p, q, a, a)
        blur!(q, p, a, a)
    end
    s = 0
    for x in p
        s += Int64(x)
    end
    return Float64(s)
end
