# An interpreter of a small machine: code and registers in vectors, a chain of comparisons.
function execute(code::Vector{Int64}, regs::Vector{Int64})::Int64
    pc = 1
    steps = 0
    while true
        op = code[pc]
        x = code[pc + 1]
        y = code[pc + 2]
        pc += 3
        steps += 1
        if op == 0
            regs[x] += regs[y]
        elseif op == 1
            regs[x] -= regs[y]
        elseif op == 2
            regs[x] = y
        elseif op == 3
            regs[x] = regs[y]
        elseif op == 4
            regs[x] = (regs[x] * regs[y]) & 1073741823
        elseif op == 5
            if regs[x] > 0
                pc = y
            end
        elseif op == 6
            regs[x] = regs[x] ⊻ regs[y]
        else
            return steps
        end
    end
end

function emit!(code::Vector{Int64}, at::Int64, op::Int64, x::Int64, y::Int64)::Int64
    code[at] = op
    code[at + 1] = x
    code[at + 2] = y
    return at + 3
end

function run(a::Int64, b::Int64)::Float64
    code = Vector{Int64}(undef, 64)
    regs = Vector{Int64}(undef, 8)
    at = emit!(code, 1, 2, 1, a)
    at = emit!(code, at, 2, 2, 1)
    at = emit!(code, at, 2, 3, 7)
    at = emit!(code, at, 2, 4, 3)
    top = at
    at = emit!(code, at, 4, 3, 4)
    at = emit!(code, at, 0, 3, 1)
    at = emit!(code, at, 6, 5, 3)
    at = emit!(code, at, 3, 6, 5)
    at = emit!(code, at, 1, 1, 2)
    at = emit!(code, at, 5, 1, top)
    at = emit!(code, at, 9, 1, 1)
    s = 0
    for r in 1:b
        for i in 1:8
            regs[i] = r
        end
        s += execute(code, regs) + regs[5]
    end
    return Float64(s)
end
