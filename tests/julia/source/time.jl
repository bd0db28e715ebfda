# Times kernels of `kernels.jl`, for `benches/julia.rs`:
#
#     julia time.jl NAME SIZE [NAME SIZE …]
#
# A line for each: its name, the microseconds of the best call within 0.3 s, and the milliseconds of the first call, which compiles it.

include("kernels.jl")

function shortest(kernel, size)
    best = typemax(UInt64)
    start = time_ns()
    while time_ns() - start < 300_000_000
        before = time_ns()
        kernel(size)
        best = min(best, time_ns() - before)
    end
    best
end

for at in 1:2:length(ARGS)
    kernel = getfield(Programs, Symbol(ARGS[at]))
    size = parse(Int, ARGS[at+1])
    before = time_ns()
    kernel(size)
    first = time_ns() - before
    println(ARGS[at], ' ', shortest(kernel, size) / 1e3, ' ', first / 1e6)
end
