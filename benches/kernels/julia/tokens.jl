# A tokeniser: numbers, names, operators and blanks of a string, by its code units.
function is_digit(c::UInt8)::Bool
    return 0x30 <= c && c <= 0x39
end
function is_letter(c::UInt8)::Bool
    return (0x61 <= c && c <= 0x7a) || (0x41 <= c && c <= 0x5a) || c == 0x5f
end

function scan(s::String)::Int64
    n = ncodeunits(s)
    i = 1
    h = 0
    while i <= n
        c = codeunit(s, i)
        if c == 0x20
            i += 1
        elseif is_digit(c)
            v = 0
            while i <= n && is_digit(codeunit(s, i))
                v = v * 10 + Int64(codeunit(s, i) - 0x30)
                i += 1
            end
            h = (h * 31 + v) & 1073741823
        elseif is_letter(c)
            k = 17
            while i <= n && (is_letter(codeunit(s, i)) || is_digit(codeunit(s, i)))
                k = (k * 33 + Int64(codeunit(s, i))) & 65535
                i += 1
            end
            h = (h * 37 + k) & 1073741823
        else
            h = (h * 41 + Int64(c)) & 1073741823
            i += 1
        end
    end
    return h
end

function run(a::Int64, b::Int64)::Float64
    s = 0
    for r in 1:a
        s = (s + scan("alpha1 = beta_2 * (gamma + 12345) - delta4 / 67890 + eps * (x1 + y2 * 333) ; while index < length do index = index + 1 end")) & 1073741823
    end
    return Float64(s)
end
