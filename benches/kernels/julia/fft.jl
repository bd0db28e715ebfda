# Fast Fourier transform of 2^a numbers, in place; the real and the imaginary parts have a vector each.
function fft!(re::Vector{Float64}, im::Vector{Float64})::Nothing
    n = length(re)
    j = 0
    for i in 1:n-1
        bit = n >> 1
        while j & bit != 0
            j = j ⊻ bit
            bit = bit >> 1
        end
        j = j ⊻ bit
        if i < j
            t = re[i + 1]
            re[i + 1] = re[j + 1]
            re[j + 1] = t
            t = im[i + 1]
            im[i + 1] = im[j + 1]
            im[j + 1] = t
        end
    end
    c = -1.0
    s = 0.0
    h = 1
    while h < n
        k = 1
        while k <= n
            wr = 1.0
            wi = 0.0
            for q in k:k+h-1
                xr = re[q + h] * wr - im[q + h] * wi
                xi = re[q + h] * wi + im[q + h] * wr
                re[q + h] = re[q] - xr
                im[q + h] = im[q] - xi
                re[q] = re[q] + xr
                im[q] = im[q] + xi
                t = wr * c - wi * s
                wi = wr * s + wi * c
                wr = t
            end
            k += 2 * h
        end
        t = sqrt((1.0 + c) / 2.0)
        s = h == 1 ? 1.0 : s / (2.0 * t)
        c = h == 1 ? 0.0 : t
        h *= 2
    end
end

function run(a::Int64, b::Int64)::Float64
    n = 1 << a
    re = Vector{Float64}(undef, n)
    im = Vector{Float64}(undef, n)
    s = 0.0
    for r in 1:b
        for i in 1:n
            re[i] = Float64((i * 7919 + r) % 97) / 97.0
            im[i] = 0.0
        end
        fft!(re, im)
        s += re[2] + im[2] + re[n >> 1]
    end
    return s
end
