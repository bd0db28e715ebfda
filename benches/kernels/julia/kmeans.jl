# k-means of points in the plane: structs in vectors, mutable sums.
struct Point
    x::Float64
    y::Float64
end
mutable struct Sum
    x::Float64
    y::Float64
    n::Int64
end

function nearest(p::Point, centres::Vector{Point})::Int64
    best = 1
    least = 1.0e300
    for k in 1:length(centres)
        c = centres[k]
        dx = p.x - c.x
        dy = p.y - c.y
        d = dx * dx + dy * dy
        if d < least
            least = d
            best = k
        end
    end
    return best
end

function run(a::Int64, b::Int64)::Float64
    points = Vector{Point}(undef, a)
    x = 77
    for i in 1:a
        x = (x * 1103515245 + 12345) & 2147483647
        px = Float64(x >> 11) / 1024.0
        x = (x * 1103515245 + 12345) & 2147483647
        points[i] = Point(px, Float64(x >> 11) / 1024.0)
    end
    centres = Vector{Point}(undef, 8)
    sums = Vector{Sum}(undef, 8)
    for k in 1:8
        centres[k] = points[k]
        sums[k] = Sum(0.0, 0.0, 0)
    end
    for r in 1:b
        for p in points
            s = sums[nearest(p, centres)]
            s.x += p.x
            s.y += p.y
            s.n += 1
        end
        for k in 1:8
            s = sums[k]
            if s.n > 0
                centres[k] = Point(s.x / Float64(s.n), s.y / Float64(s.n))
            end
            s.x = 0.0
            s.y = 0.0
            s.n = 0
        end
    end
    t = 0.0
    for c in centres
        t += c.x * 3.0 + c.y
    end
    return t
end
