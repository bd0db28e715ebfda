//! Checks of bounds that passes take out of loops or decide: every call gives at every level what the interpreter gives, and an index that is out of
//! range is the one that is named, whichever of several neighbours it is.

#[path = "support/doors.rs"]
mod doors;
#[path = "support/front/mod.rs"]
mod front;

use brolga::{Engine, Evaluator, OptLevel, Options, Program};

/// Neighbours of an index, of constant indices, of several arrays, in loops that jump and in none, and loops whose steps are not known.
const SOURCE: &str = "
function around(v::Vector{Int64}, i::Int64)::Int64
    return v[i] + 2 * v[i + 1] + 3 * v[i - 1] + 4 * v[i + 2]
end

function first_three(v::Vector{Int64})::Int64
    return v[3] + 2 * v[1] + 3 * v[2]
end

function jumps(v::Vector{Int64}, w::Vector{Int64}, from::Int64, rounds::Int64)::Int64
    at = from
    sum = 0
    while true
        a = v[at]
        b = v[at + 1]
        c = w[at + 1]
        rounds -= 1
        if rounds < 0
            return sum
        end
        sum += a + 3 * b + 5 * c
        at = a
    end
end

function pairs_while(v::Vector{Int64}, w::Vector{Int64}, from::Int64, least::Int64)::Int64
    i = from
    while v[i] + w[i] > least
        w[i] = w[i] - 1
        i += v[i]
    end
    return i
end

function stepped(v::Vector{Int64}, from::Int64, by::Int64, to::Int64)::Int64
    sum = 0
    for i in from:by:to
        sum = 3 * sum + v[i]
        v[i] = sum
    end
    return sum
end

function by_two(v::Vector{Int64}, from::Int64, to::Int64)::Int64
    sum = 0
    for i in from:2:to
        sum += v[i] - v[i + 1]
    end
    return sum
end

function up_by(v::Vector{Int64}, from::Int64, by::Int64, below::Int64)::Int64
    sum = 0
    i = from
    while i < below
        sum += v[i]
        i += by
    end
    return sum
end

function steprange_last(start::Int64, step::Int64, stop::Int64)::Int64
    if stop == start
        return stop
    end
    if (step > 0) != (stop > start)
        return step > 0 ? start - 1 : start + 1
    end
    if stop > start
        return stop - (stop - start) % step
    end
    return stop + (start - stop) % (-step)
end
";

const LEAST: i64 = i64::MIN;
const MOST: i64 = i64::MAX;

fn array(length: i64) -> String {
    let elements: Vec<String> = (0..length).map(|n| format!("{}", (n * 5 + 3) % 7 + 1)).collect();
    if elements.is_empty() { "Int64[]".to_owned() } else { format!("[{}]", elements.join(", ")) }
}

fn calls() -> Vec<String> {
    let mut calls = Vec::new();
    for length in 0..=6 {
        let v = array(length);
        calls.push(format!("first_three({v})"));
        for i in (-2..=length + 2).chain([LEAST, LEAST + 1, MOST - 2, MOST - 1, MOST]) {
            calls.push(format!("around({v}, {i})"));
            for other in [0, 1, length - 1, length, length + 1, 9] {
                let w = array(other.max(0));
                calls.push(format!("jumps({v}, {w}, {i}, {})", other + 3));
                calls.push(format!("pairs_while({v}, {w}, {i}, {other})"));
            }
        }
    }
    for length in [0, 1, 2, 5, 16, 33] {
        let v = array(length);
        for from in [LEAST, -1, 0, 1, 2, length, length + 1, MOST - 1, MOST] {
            for to in [LEAST, -1, 0, 1, length - 1, length, length + 1, MOST] {
                // Without an element that is out of range these would count for years.
                calls.push(format!("by_two({v}, {from}, {to})"));
                for by in [LEAST, -3, -1, 1, 2, 3, 7, length.max(1), MOST - 1, MOST] {
                    calls.push(format!("stepped({v}, {from}, {by}, {to})"));
                    calls.push(format!("up_by({v}, {from}, {by}, {to})"));
                }
            }
        }
    }
    calls
}

#[test]
fn checks_name_the_same_index_at_every_level() {
    let text = front::print(SOURCE);
    let program = Program::read("checks", text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let levels = [OptLevel::O0, OptLevel::O1, OptLevel::O2, OptLevel::O3];
    let engines: Vec<Engine> = levels
        .iter()
        .map(|&level| Engine::new(crate::doors::open(Options::new()).opt_level(level)).unwrap())
        .collect();
    let mut interpreted = Evaluator::interpreted(&program);
    let mut native: Vec<Evaluator<'_>> = engines.iter().map(|e| Evaluator::native(&program, e)).collect();
    let (mut values, mut errors) = (0, 0);
    for call in calls() {
        let parsed = program.call(&call).unwrap_or_else(|error| panic!("{call}: {error}"));
        let expected = interpreted.call(&parsed);
        *(if expected.is_ok() { &mut values } else { &mut errors }) += 1;
        let expected = expected.map_err(|failure| failure.to_string());
        for (native, level) in native.iter_mut().zip(levels) {
            let found = native.call(&parsed).map_err(|failure| failure.to_string());
            assert_eq!(expected, found, "{level:?}: {call}");
        }
    }
    assert!(values > 500 && errors > 500, "{values} values, {errors} errors");
}
