# Times programs of a file, for `benches/julia.rs`:
#
#     julia time.jl FILE.jl
#
# Each line of the input is a name and a size, numbers. The answer is a line: the name, the microseconds of the best call within 0.15 s, and the milliseconds of the
# first call, which compiles it.

include(ARGS[1])

function shortest(kernel, size)
    best = typemax(UInt64)
    start = time_ns()
    while time_ns() - start < 150_000_000
        before = time_ns()
        kernel(size...)
        best = min(best, time_ns() - before)
    end
    best
end

for line in eachline(stdin)
    words = split(line)
    kernel = getfield(Programs, Symbol(words[1]))
    size = Tuple(parse(Int, word) for word in words[2:end])
    before = time_ns()
    kernel(size...)
    first = time_ns() - before
    println(words[1], ' ', shortest(kernel, size) / 1e3, ' ', first / 1e6)
    flush(stdout)
end
