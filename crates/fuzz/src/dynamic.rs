//! Programs of dynamic operators: loops over `Any` whose types stay the same, change in one iteration, or
//! change in every iteration.
//!
//! ```text
//!   entry      two arguments, constants of several types
//!    iteration  operators on available values; a branch on the result of an operator, and the φs after it
//!    once       a value is replaced by one of another type: the type tests fail there
//!   end        the values as a tuple, or an exception
//! ```
//!
//! Each program is a text of one function `f(a, b, n)` with operator methods for its own type; [`calls`]
//! returns calls of it. A call may throw: no method accepts the operands, a condition is not a `Bool`, or a
//! number is divided by zero. Floats are chosen so that `NaN` cannot result from a few iterations.
//!
//! Two more functions have typed operands: one that calls `f`, and one that calls a function of operators in a loop.
//!
//! Not done: nested loops; more than one changed iteration.

use std::fmt::Write;

use crate::rng::Rng;

const TYPES: &str = r"
struct Meters
    v::Int64
end

function Base.:+(x::Meters, y::Meters)::Meters
1 ─ %1 = Base.getfield(x, :v)::Int64
│   %2 = Base.getfield(y, :v)::Int64
│   %3 = Base.add_int(%1, %2)::Int64
│   %4 = %new(Meters, %3)::Meters
└──      return %4
end

function Base.:+(x::Meters, y::Int64)::Meters
1 ─ %1 = Base.getfield(x, :v)::Int64
│   %2 = Base.add_int(%1, y)::Int64
│   %3 = %new(Meters, %2)::Meters
└──      return %3
end

function Base.:*(x::Any, y::Meters)::Any
1 ─      return y
end

function Base.:<(x::Meters, y::Meters)::Bool
1 ─ %1 = Base.getfield(x, :v)::Int64
│   %2 = Base.getfield(y, :v)::Int64
│   %3 = Base.slt_int(%1, %2)::Bool
└──      return %3
end
";

/// Operators whose results are numbers, and operators whose results are `Bool`s.
const NUMBERS: [&str; 8] = ["+", "-", "*", "+", "-", "&", "+", "⊻"];
const TRUTHS: [&str; 6] = ["<", "<=", ">", ">=", "==", "!="];

/// Initial values of variables, or their values in the changed iteration.
const CONSTANTS: [&str; 9] = ["0", "1", "3", "1000", "0.5", "2.0", "true", "0x05", "nothing"];

pub fn program(seed: u64) -> String {
    let mut rng = Rng::new(seed);
    // Without the type declarations, the operators have few enough methods to be tested one by one.
    let mut text = if rng.chance(60) { TYPES.to_owned() } else { String::new() };
    let usual = rng.chance(70);
    let values = rng.between(2, 4);
    let constant = |rng: &mut Rng| {
        let kinds = if usual { 6 } else { CONSTANTS.len() };
        CONSTANTS[rng.below(kinds)]
    };
    let entries: Vec<String> = (0..values)
        .map(|n| match (n, rng.chance(50)) {
            (0, true) => "a".to_owned(),
            (1, true) => "b".to_owned(),
            _ => constant(&mut rng).to_owned(),
        })
        .collect();
    // Labels: 1… are the φs, 20… the computations of an iteration, 50… the part after the branch, 60… the
    // part after the change.
    let mut round = String::new();
    let mut at_hand: Vec<String> = (0..values).map(|n| format!("%{}", n + 1)).collect();
    at_hand.extend(["a".to_owned(), "b".to_owned()]);
    let pick = |rng: &mut Rng, at_hand: &[String]| match rng.chance(25) {
        true => CONSTANTS[rng.below(6)].to_owned(),
        false => at_hand[rng.below(at_hand.len())].clone(),
    };
    for label in (20..).take(rng.between(1, 4)) {
        let operator = NUMBERS[rng.below(NUMBERS.len())];
        let (x, y) = (pick(&mut rng, &at_hand), pick(&mut rng, &at_hand));
        let _ = writeln!(round, "│   %{label} = Base.:{operator}({x}, {y})::Any");
        at_hand.push(format!("%{label}"));
    }
    let operator = TRUTHS[rng.below(TRUTHS.len())];
    let (x, y) = (pick(&mut rng, &at_hand), pick(&mut rng, &at_hand));
    let _ = writeln!(round, "│   %40 = Base.:{operator}({x}, {y})::Any");
    let before = at_hand.clone();
    let mut yes = String::new();
    let operator = NUMBERS[rng.below(NUMBERS.len())];
    let (x, y) = (pick(&mut rng, &before), pick(&mut rng, &before));
    let _ = writeln!(yes, "4 ─ %41 = Base.:{operator}({x}, {y})::Any");
    let other = match rng.chance(50) {
        true => pick(&mut rng, &before),
        false => constant(&mut rng).to_owned(),
    };
    at_hand.extend(["%50".to_owned(), "%50".to_owned()]);
    let changed = constant(&mut rng);
    let asserted = rng.chance(20);
    let next: Vec<String> = (0..values)
        .map(|n| match n {
            0 => "%60".to_owned(),
            _ => at_hand[rng.below(at_hand.len())].clone(),
        })
        .collect();
    let kept = at_hand[rng.below(at_hand.len())].clone();
    let _ = writeln!(text, "\nfunction f(a::Any, b::Any, n::Int64, change::Int64)::Any\n1 ─      goto #2");
    for (n, (entry, next)) in entries.iter().zip(&next).enumerate() {
        let rail = if n == 0 { "2 ┄" } else { "│  " };
        let _ = writeln!(text, "{rail} %{} = φ (#1 => {entry}, #8 => {next})::Any", n + 1);
    }
    text.push_str("│   %10 = φ (#1 => 0, #8 => %11)::Int64\n");
    text.push_str("│   %12 = Base.slt_int(%10, n)::Bool\n└──      goto #9 if not %12\n");
    let _ = writeln!(text, "3 ─ %11 = Base.add_int(%10, 1)::Int64\n{round}└──      goto #5 if not %40");
    let _ = writeln!(text, "{yes}└──      goto #5");
    let _ = writeln!(text, "5 ┄ %50 = φ (#3 => {other}, #4 => %41)::Any");
    if asserted {
        text.push_str("│   %51 = Core.typeassert(%50, Int64)::Int64\n");
    }
    text.push_str(
        "│   %52 = (%10 === change)::Bool\n└──      goto #7 if not %52\n6 ─      goto #8\n7 ─      goto #8\n",
    );
    let _ = writeln!(text, "8 ┄ %60 = φ (#6 => {changed}, #7 => {kept})::Any\n└──      goto #2");
    let fields: Vec<String> = (1..=values).map(|n| format!("%{n}")).collect();
    let _ = writeln!(text, "9 ─ %70 = Core.tuple({})::Any\n└──      return %70\nend", fields.join(", "));
    if text.starts_with("\nstruct") {
        text.push_str(
            "\nfunction meters(v::Int64, n::Int64, change::Int64)::Any\n1 ─ %1 = %new(Meters, v)::Meters\n",
        );
        text.push_str("│   %2 = invoke Main.f(%1::Any, 2::Any, n::Int64, change::Int64)::Any\n└──      return %2\nend\n");
    }
    text.push_str(&callers(seed));
    text
}

/// Functions with typed operands: one calls `f` with an `Int64` and a `Float64`, and in another's loop a dynamic call has a function of three operators as its callee.
fn callers(seed: u64) -> String {
    let mut rng = Rng::new(seed ^ 0x5e7);
    let mut operator = || NUMBERS[rng.below(NUMBERS.len())];
    let [first, second, third] = [(); 3].map(|()| operator());
    let [start, operand, other] = [(); 3].map(|()| CONSTANTS[rng.below(7)]);
    let last = ["%1", other][rng.below(2)];
    format!(
        "
function known(a::Int64, b::Float64, n::Int64, change::Int64)::Any
1 ─ %1 = invoke Main.f(a::Int64, b::Float64, n::Int64, change::Int64)::Any
└──      return %1
end

function step(x::Any, y::Any)::Any
1 ─ %1 = Base.:{first}(x, y)::Any
│   %2 = Base.:{second}(%1, {operand})::Any
│   %3 = Base.:{third}(%2, x)::Any
└──      return %3
end

function steps(n::Int64)::Any
1 ─      goto #2
2 ┄ %1 = φ (#1 => 0, #3 => %4)::Int64
│   %2 = φ (#1 => {start}, #3 => %5)::Any
│   %3 = Base.slt_int(%1, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = Base.add_int(%1, 1)::Int64
│   %5 = Main.step(%2, {last})::Any
└──      goto #2
4 ─      return %2
end
"
    )
}

/// Calls of the program of a seed: each type at the entry, and a change in each of the first iterations and
/// in none.
pub fn calls(seed: u64, rounds: i64) -> Vec<String> {
    let mut rng = Rng::new(!seed);
    let operands = ["0", "7", "-3", "0.25", "1.5", "true", "0x07", "nothing"];
    let mut calls = Vec::new();
    for change in -1..rounds {
        let (a, b) = (operands[rng.below(5)], operands[rng.below(5)]);
        calls.push(format!("f({a}, {b}, {rounds}, {change})"));
    }
    for a in operands {
        calls.push(format!("f({a}, {}, {rounds}, -1)", operands[rng.below(operands.len())]));
    }
    calls.extend([-1, 1].map(|change| format!("known(3, 0.5, {rounds}, {change})")));
    calls.extend([0, 1, 3].map(|n| format!("steps({n})")));
    if program(seed).contains("function meters") {
        calls.extend([-1, 0, 2].map(|change| format!("meters(5, {rounds}, {change})")));
    }
    calls
}

/// A program whose operands can be exchanged by its caller, one at a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guarded {
    /// The program: `f(a::Any, b::Any, n::Int64, site::Int64, round::Int64, other::Any)`.
    pub text: String,
    /// The number of operands, which are numbered from 0.
    pub sites: i64,
}

/// A loop over dynamic operators; in iteration `round`, the operand with index `site` is `other`.
///
/// ```text
/// 3 ─  at = round == i ? site : -1
///      goto #5 if not at === 0
/// 4 ─  goto #5
/// 5 ┄  x = φ (#3 => a, #4 => other)        operand 0, and so on for each
/// ```
pub fn guarded(seed: u64) -> Guarded {
    let mut rng = Rng::new(seed ^ 0x9a2d);
    let mut body = Body::default();
    let carried = rng.between(1, 3);
    let first: Vec<&str> = (0..carried).map(|n| ["a", "b", "a"][n]).collect();
    body.block();
    body.rows("goto #2");
    body.block();
    let mut at_hand: Vec<String> = (0..carried)
        .map(|n| body.value(&format!("φ (#1 => {}, #LATCH => NEXT{n})::Any", first[n])))
        .collect();
    let index = body.value("φ (#1 => 0, #LATCH => STEPPED)::Int64");
    let more = body.value(&format!("Base.slt_int({index}, n)::Bool"));
    body.rows(&format!("goto #END if not {more}"));
    body.block();
    let now = body.value(&format!("({index} === round)::Bool"));
    let at = body.value(&format!("Core.ifelse({now}, site, -1)::Int64"));
    at_hand.extend(["a".to_owned(), "b".to_owned()]);
    let mut sites = 0;
    let mut operand = |rng: &mut Rng, body: &mut Body, at_hand: &[String]| {
        let usual = match rng.chance(15) {
            true => CONSTANTS[rng.below(6)].to_owned(),
            false => at_hand[rng.below(at_hand.len())].clone(),
        };
        let here = body.value(&format!("({at} === {sites})::Bool"));
        sites += 1;
        body.either(&here, "other", &usual)
    };
    for _ in 0..rng.between(1, 3) {
        let (x, y) = (operand(&mut rng, &mut body, &at_hand), operand(&mut rng, &mut body, &at_hand));
        let operator = NUMBERS[rng.below(NUMBERS.len())];
        at_hand.push(body.value(&format!("Base.:{operator}({x}, {y})::Any")));
    }
    let (x, y) = (operand(&mut rng, &mut body, &at_hand), operand(&mut rng, &mut body, &at_hand));
    let truth = body.value(&format!("Base.:{}({x}, {y})::Any", TRUTHS[rng.below(TRUTHS.len())]));
    let newest = at_hand[at_hand.len() - 1].clone();
    let chosen = body.either(&truth, &newest, &x);
    let stepped = body.value(&format!("Base.add_int({index}, 1)::Int64"));
    body.rows("goto #2");
    let latch = body.blocks.len();
    body.block();
    let fields: Vec<String> = (0..carried).map(|n| format!("%{}", n + 1)).collect();
    let tuple = body.value(&format!("Core.tuple({})::Any", fields.join(", ")));
    body.rows(&format!("return {tuple}"));
    let mut text = String::from(TYPES);
    text.push_str("\nfunction f(a::Any, b::Any, n::Int64, site::Int64, round::Int64, other::Any)::Any\n");
    text.push_str(&body.text());
    text.push_str("end\n");
    for n in 0..carried {
        let next = if n == 0 { chosen.clone() } else { at_hand[rng.below(at_hand.len())].clone() };
        text = text.replace(&format!("NEXT{n}"), &next);
    }
    let text = text.replace("STEPPED", &stepped).replace("#LATCH", &format!("#{latch}"));
    Guarded { text: text.replace("#END", &format!("#{}", latch + 1)), sites }
}

/// The blocks of a function's text.
#[derive(Default)]
struct Body {
    blocks: Vec<Vec<String>>,
    values: usize,
}

impl Body {
    /// Begins a block, whose number is the number of blocks including it.
    fn block(&mut self) {
        self.blocks.push(Vec::new());
    }

    fn rows(&mut self, row: &str) {
        self.blocks.last_mut().into_iter().for_each(|rows| rows.push(row.to_owned()));
    }

    fn value(&mut self, statement: &str) -> String {
        self.values += 1;
        self.rows(&format!("%{} = {statement}", self.values));
        format!("%{}", self.values)
    }

    /// One value if a condition holds, otherwise another, by a branch.
    fn either(&mut self, condition: &str, yes: &str, no: &str) -> String {
        let head = self.blocks.len();
        self.rows(&format!("goto #{} if not {condition}", head + 2));
        self.block();
        self.rows(&format!("goto #{}", head + 2));
        self.block();
        self.value(&format!("φ (#{head} => {no}, #{} => {yes})::Any", head + 1))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (n, rows) in self.blocks.iter().enumerate() {
            for (row, statement) in rows.iter().enumerate() {
                let _ = match row {
                    0 => writeln!(text, "{} ┄ {statement}", n + 1),
                    _ if row + 1 == rows.len() => writeln!(text, "└── {statement}"),
                    _ => writeln!(text, "│   {statement}"),
                };
            }
        }
        text
    }
}
