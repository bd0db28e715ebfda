# CRC-32 by a table, over checked vectors.
function run(n::Int64, reps::Int64)::Float64
    table = Vector{UInt32}(undef, 256)
    m = Vector{UInt8}(undef, n)
    x = 0x00000003
    crc = 0x00000000
    for i in 0:255
        c = i % UInt32
        for k in 1:8
            c = c & 0x00000001 != 0x00000000 ? 0xedb88320 ⊻ (c >> 1) : c >> 1
        end
        table[i + 1] = c
    end
    for i in 1:n
        x = xs(x)
        m[i] = (x >> 8) % UInt8
    end
    for r in 1:reps
        crc = ~crc
        for b in m
            crc = table[Int64((crc ⊻ UInt32(b)) & 0x000000ff) + 1] ⊻ (crc >> 8)
        end
        crc = ~crc
    end
    return Float64(crc)
end

function xs(x::UInt32)::UInt32
    x = x ⊻ (x << 13)
    x = x ⊻ (x >> 17)
    return x ⊻ (x << 5)
end
function u01(x::UInt32)::Float64
    return Float64(x >> 8) * 5.960464477539063e-8
end

