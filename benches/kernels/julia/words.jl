# Words of a text, by a table of strings' hashes: structs with several arrays, a loop over code units.
mutable struct Words
    hashes::Vector{UInt64}
    counts::Vector{Int64}
    used::Int64
end

function add!(w::Words, h::UInt64)::Nothing
    n = length(w.hashes)
    i = reinterpret(Int64, h >> 7) & (n - 1)
    while true
        k = w.hashes[i + 1]
        if k == h
            w.counts[i + 1] += 1
            return nothing
        end
        if k == 0x0000000000000000
            w.hashes[i + 1] = h
            w.counts[i + 1] = 1
            w.used += 1
            return nothing
        end
        i = (i + 1) & (n - 1)
    end
end

function run(a::Int64, b::Int64)::Float64
    text = Vector{UInt8}(undef, a)
    x = 2
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        k = (x >> 16) & 7
        text[i] = k < 2 ? 0x20 : 0x61 + k % UInt8
    end
    s = 0
    for r in 1:b
        w = Words(Vector{UInt64}(undef, 4096), Vector{Int64}(undef, 4096), 0)
        for i in 1:4096
            w.hashes[i] = 0x0000000000000000
        end
        h = 0xcbf29ce484222325
        n = 0
        for c in text
            if c == 0x20 || n == 3
                add!(w, h | 0x0000000000000001)
                h = 0xcbf29ce484222325
                n = 0
            else
                h = (h ⊻ UInt64(c)) * 0x00000100000001b3
                n += 1
            end
        end
        s += w.used
        for i in 1:4096
            if w.hashes[i] != 0x0000000000000000
                s = (s * 3 + w.counts[i]) & 1073741823
            end
        end
    end
    return Float64(s)
end
