# The planets as mutable structs in a vector.
mutable struct Body
    x::Float64
    y::Float64
    z::Float64
    vx::Float64
    vy::Float64
    vz::Float64
    m::Float64
end

function advance!(b::Vector{Body}, dt::Float64)::Nothing
    for i in 1:length(b)
        p = b[i]
        for j in i+1:length(b)
            q = b[j]
            dx = p.x - q.x
            dy = p.y - q.y
            dz = p.z - q.z
            d2 = dx * dx + dy * dy + dz * dz
            mag = dt / (d2 * sqrt(d2))
            mi = p.m * mag
            mj = q.m * mag
            p.vx -= dx * mj
            p.vy -= dy * mj
            p.vz -= dz * mj
            q.vx += dx * mi
            q.vy += dy * mi
            q.vz += dz * mi
        end
    end
    for p in b
        p.x += dt * p.vx
        p.y += dt * p.vy
        p.z += dt * p.vz
    end
end

function energy(b::Vector{Body})::Float64
    e = 0.0
    for i in 1:length(b)
        p = b[i]
        e += 0.5 * p.m * (p.vx * p.vx + p.vy * p.vy + p.vz * p.vz)
        for j in i+1:length(b)
            q = b[j]
            dx = p.x - q.x
            dy = p.y - q.y
            dz = p.z - q.z
            e -= p.m * q.m / sqrt(dx * dx + dy * dy + dz * dz)
        end
    end
    return e
end

function run(steps::Int64, unused::Int64)::Float64
    sm = 4.0 * 3.141592653589793 * 3.141592653589793
    day = 365.24
    b = Vector{Body}(undef, 5)
    b[1] = Body(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, sm)
    b[2] = Body(4.8414314424647209, -1.16032004402742839, -0.103622044471123109, 0.00166007664274403694 * day, 0.00769901118419740425 * day, -6.90460016972063023e-05 * day, 9.54791938424326609e-04 * sm)
    b[3] = Body(8.34336671824457987, 4.12479856412430479, -0.403523417114321381, -0.00276742510726411899 * day, 0.00499852801234917238 * day, 2.30417297573763929e-05 * day, 2.85885980666130812e-04 * sm)
    b[4] = Body(12.8943695621391310, -15.1111514016986312, -0.223307578892655734, 0.00296460137564761618 * day, 0.00237847173959480950 * day, -2.96589568540237556e-05 * day, 4.36624404335156298e-05 * sm)
    b[5] = Body(15.3796971148509165, -25.9193146099879641, 0.179258772950371181, 0.00268067772490389322 * day, 0.00162824170038242295 * day, -9.51592254519715870e-05 * day, 5.15138902046611451e-05 * sm)
    px = 0.0
    py = 0.0
    pz = 0.0
    for p in b
        px += p.vx * p.m
        py += p.vy * p.m
        pz += p.vz * p.m
    end
    s = b[1]
    s.vx = -px / sm
    s.vy = -py / sm
    s.vz = -pz / sm
    for i in 1:steps
        advance!(b, 0.01)
    end
    return energy(b)
end
