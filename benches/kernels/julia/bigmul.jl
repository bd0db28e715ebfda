# Big integers: schoolbook multiplication of limbs of 32 bits.
function mul!(z::Vector{UInt32}, x::Vector{UInt32}, y::Vector{UInt32})::Nothing
    for i in 1:length(z)
        z[i] = 0x00000000
    end
    for i in 1:length(x)
        carry = 0x0000000000000000
        xi = UInt64(x[i])
        for j in 1:length(y)
            t = xi * UInt64(y[j]) + UInt64(z[i + j - 1]) + carry
            z[i + j - 1] = t % UInt32
            carry = t >> 32
        end
        z[i + length(y)] = carry % UInt32
    end
end

function run(a::Int64, b::Int64)::Float64
    x = Vector{UInt32}(undef, a)
    y = Vector{UInt32}(undef, a)
    z = Vector{UInt32}(undef, 2 * a)
    r = 11
    for i in 1:a
        r = (r * 1103515245 + 12345) & 2147483647
        x[i] = r % UInt32
        y[i] = (r * 3) % UInt32
    end
    h = 0x00000000
    for k in 1:b
        mul!(z, x, y)
        for i in 1:a
            x[i] = x[i] ⊻ z[i + (a >> 1)]
        end
        h = h ⊻ z[a]
    end
    return Float64(h)
end
