# Heat in a plane: five-point stencil, the index computed by row.
function step!(u::Vector{Float64}, v::Vector{Float64}, w::Int64, h::Int64)::Nothing
    for y in 2:h-1
        for x in 2:w-1
            i = (y - 1) * w + x
            v[i] = u[i] + 0.125 * ((u[i - 1] + u[i + 1]) + (u[i - w] + u[i + w]) - 4.0 * u[i])
        end
    end
end

function run(a::Int64, b::Int64)::Float64
    u = Vector{Float64}(undef, a * a)
    v = Vector{Float64}(undef, a * a)
    for i in 1:a*a
        u[i] = Float64(i * 7919 % 1000)
        v[i] = u[i]
    end
    for r in 1:b
        step!(u, v, a, a)
        step!(v, u, a, a)
    end
    s = 0.0
    for x in u
        s += x
    end
    return s
end
