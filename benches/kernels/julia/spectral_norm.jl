# The spectral norm over checked vectors.
function a(i::Int32, j::Int32)::Float64
    k = i + j
    return 1.0 / Float64(((k * (k + 1 % Int32)) >> 1) + i + 1 % Int32)
end
function mul_av(v::Vector{Float64}, o::Vector{Float64}, n::Int64)::Nothing
    for i in 1:n
        s = 0.0
        for j in 1:n
            s += a((i - 1) % Int32, (j - 1) % Int32) * v[j]
        end
        o[i] = s
    end
end
function mul_atv(v::Vector{Float64}, o::Vector{Float64}, n::Int64)::Nothing
    for i in 1:n
        s = 0.0
        for j in 1:n
            s += a((j - 1) % Int32, (i - 1) % Int32) * v[j]
        end
        o[i] = s
    end
end

function run(n::Int64, b::Int64)::Float64
    u = Vector{Float64}(undef, n)
    v = Vector{Float64}(undef, n)
    t = Vector{Float64}(undef, n)
    for i in 1:n
        u[i] = 1.0
    end
    for i in 1:10
        mul_av(u, t, n)
        mul_atv(t, v, n)
        mul_av(v, t, n)
        mul_atv(t, u, n)
    end
    vbv = 0.0
    vv = 0.0
    for i in 1:n
        vbv += u[i] * v[i]
        vv += v[i] * v[i]
    end
    return sqrt(vbv / vv)
end
