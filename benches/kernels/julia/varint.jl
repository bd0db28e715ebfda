# Numbers of varying length in a vector of bytes: a position that the data moves.
function encode!(bytes::Vector{UInt8}, at::Int64, n::Int64)::Int64
    while n > 127
        bytes[at] = (n & 127) % UInt8 | 0x80
        at += 1
        n = n >> 7
    end
    bytes[at] = n % UInt8
    return at + 1
end

function total(bytes::Vector{UInt8}, stop::Int64)::Int64
    at = 1
    s = 0
    while at < stop
        n = 0
        shift = 0
        while true
            c = Int64(bytes[at])
            at += 1
            n = n | ((c & 127) << (shift & 63))
            shift += 7
            if c < 128
                break
            end
        end
        s += n
    end
    return s
end

function run(a::Int64, b::Int64)::Float64
    bytes = Vector{UInt8}(undef, a * 4)
    x = 5
    at = 1
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        at = encode!(bytes, at, x >> 10)
    end
    s = 0
    for r in 1:b
        s += total(bytes, at) & 1073741823
    end
    return Float64(s)
end
