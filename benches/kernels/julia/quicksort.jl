# Julia's quicksort benchmark over a checked vector.
function qsort!(a::Vector{Float64}, lo::Int64, hi::Int64)::Nothing
    i = lo
    j = hi
    while i < hi
        pivot = a[(lo + hi) >> 1]
        while i <= j
            while a[i] < pivot
                i += 1
            end
            while a[j] > pivot
                j -= 1
            end
            if i <= j
                t = a[i]
                a[i] = a[j]
                a[j] = t
                i += 1
                j -= 1
            end
        end
        if lo < j
            qsort!(a, lo, j)
        end
        lo = i
        j = hi
    end
end

function run(n::Int64, b::Int64)::Float64
    a = Vector{Float64}(undef, n)
    sum = 0.0
    x = 0x0000002a
    for r in 1:b
        for i in 1:n
            x = xs(x)
            a[i] = u01(x)
        end
        qsort!(a, 1, n)
        sum += a[1] + a[(n >> 1) + 1] + a[n]
    end
    for i in 2:n
        if a[i - 1] > a[i]
            sum = -1.0
        end
    end
    return sum
end

function xs(x::UInt32)::UInt32
    x = x ⊻ (x << 13)
    x = x ⊻ (x >> 17)
    return x ⊻ (x << 5)
end
function u01(x::UInt32)::Float64
    return Float64(x >> 8) * 5.960464477539063e-8
end

