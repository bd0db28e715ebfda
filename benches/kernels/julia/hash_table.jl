# A dictionary with open addressing: a byte for each slot, keys and values beside it, as Base's Dict.
mutable struct Table
    slots::Memory{UInt8}
    keys::Memory{Int64}
    vals::Memory{Int64}
    count::Int64
end

function hashed(x::Int64)::UInt64
    a = reinterpret(UInt64, x)
    a = ~a + (a << 21)
    a = a ⊻ (a >> 24)
    a = a + (a << 3) + (a << 8)
    a = a ⊻ (a >> 14)
    a = a + (a << 2) + (a << 4)
    a = a ⊻ (a >> 28)
    return a + (a << 31)
end

function table(n::Int64)::Table
    slots = Memory{UInt8}(undef, n)
    for i in 1:n
        @inbounds slots[i] = 0x00
    end
    return Table(slots, Memory{Int64}(undef, n), Memory{Int64}(undef, n), 0)
end

function find(t::Table, key::Int64)::Int64
    n = length(t.slots)
    i = reinterpret(Int64, hashed(key)) & (n - 1)
    i += 1
    while true
        @inbounds s = t.slots[i]
        if s == 0x00
            return -i
        end
        @inbounds k = t.keys[i]
        if k == key
            return i
        end
        i = (i & (n - 1)) + 1
    end
end

function rehash!(t::Table)::Nothing
    slots = t.slots
    keys = t.keys
    vals = t.vals
    n = length(slots)
    big = table(n * 2)
    t.slots = big.slots
    t.keys = big.keys
    t.vals = big.vals
    for i in 1:n
        if slots[i] != 0x00
            j = -find(t, keys[i])
            t.slots[j] = 0x80
            t.keys[j] = keys[i]
            t.vals[j] = vals[i]
        end
    end
end

function put!(t::Table, key::Int64, val::Int64)::Nothing
    i = find(t, key)
    if i > 0
        t.vals[i] = val
    else
        j = -i
        t.slots[j] = 0x80
        t.keys[j] = key
        t.vals[j] = val
        t.count += 1
        if t.count * 3 > length(t.slots) * 2
            rehash!(t)
        end
    end
end

function run(a::Int64, b::Int64)::Float64
    s = 0
    for r in 1:b
        t = table(16)
        x = r
        for i in 1:a
            x = (x * 1103515245 + 12345) & 2147483647
            k = x % a
            j = find(t, k)
            old = 0
            if j > 0
                old = t.vals[j]
            end
            put!(t, k, old + i)
        end
        for k in 0:a-1
            j = find(t, k)
            if j > 0
                s = (s * 31 + t.vals[j]) & 1073741823
            end
        end
        s += t.count
    end
    return Float64(s)
end
