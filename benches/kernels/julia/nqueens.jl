# Queens on a board, by masks of bits.
function solve(all::Int32, cols::Int32, d1::Int32, d2::Int32)::Int32
    if cols == all
        return 1 % Int32
    end
    n = 0 % Int32
    free = all & ~(cols | d1 | d2)
    while free != 0 % Int32
        bit = free & -free
        free = free ⊻ bit
        n += solve(all, cols | bit, (d1 | bit) << 1, (d2 | bit) >> 1)
    end
    return n
end

function run(n::Int64, unused::Int64)::Float64
    return Float64(solve(((1 << n) - 1) % Int32, 0 % Int32, 0 % Int32, 0 % Int32))
end
