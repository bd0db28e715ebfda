# map, filter and fold by closures with captured numbers.
struct Scale
    by::Float64
    plus::Float64
end
struct Over
    limit::Float64
end
function (f::Scale)(x::Float64)::Float64
    return x * f.by + f.plus
end
function (f::Over)(x::Float64)::Bool
    return x > f.limit
end
function map!(f::Scale, v::Vector{Float64}, w::Vector{Float64})::Nothing
    for i in 1:length(v)
        w[i] = f(v[i])
    end
end
function filter!(f::Over, v::Vector{Float64}, w::Vector{Float64})::Int64
    j = 1
    for x in v
        w[j] = x
        j = f(x) ? j + 1 : j
    end
    return j - 1
end

function run(a::Int64, b::Int64)::Float64
    v = Vector{Float64}(undef, a)
    w = Vector{Float64}(undef, a + 1)
    u = Vector{Float64}(undef, a + 1)
    w[a + 1] = 0.0
    x = 23
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        v[i] = Float64(x >> 8) / 65536.0
    end
    s = 0.0
    for r in 1:b
        map!(Scale(0.5, Float64(r & 7)), v, w)
        n = filter!(Over(32.0), w, u)
        for i in 1:n
            s += u[i]
        end
    end
    return s
end
