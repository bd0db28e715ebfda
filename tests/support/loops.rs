//! Loops as front ends print them: programs in high IR, one function for each row of the loop table.
//!
//! ```text
//! container   ptr  memory  vector                  what is walked over
//! shape       while  range  iterate  simd          how the front end prints the loop
//! kernel      sum  dot  axpy  map  count  find  min  stencil
//! checked     accesses throw if they are out of bounds
//! ```
//!
//! A kernel is a function of the element `%e` of the first container at the index `%i`, of the second container, and of `%k`. Every row has the
//! signature `(a, b, n::Int64, k)`; `n` is the number of elements of `a` for a `Ptr`, all others ask the container. [`driver`] makes
//! a function that fills two containers, calls a row, and returns what it came to with a digest of both containers, also if it throws.

use std::fmt::Write as _;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Container {
    Ptr,
    Memory,
    Vector,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    While,
    Range,
    Iterate,
    Simd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kernel {
    Sum,
    Dot,
    Axpy,
    Map,
    Count,
    Find,
    Min,
    Stencil,
}

pub(crate) const KERNELS: [Kernel; 8] = [
    Kernel::Sum,
    Kernel::Dot,
    Kernel::Axpy,
    Kernel::Map,
    Kernel::Count,
    Kernel::Find,
    Kernel::Min,
    Kernel::Stencil,
];
pub(crate) const SHAPES: [Shape; 4] = [Shape::While, Shape::Range, Shape::Iterate, Shape::Simd];
/// Containers with and without checks; nothing checks a `Ptr`.
pub(crate) const ACCESSES: [(Container, bool); 5] = [
    (Container::Ptr, false),
    (Container::Memory, false),
    (Container::Memory, true),
    (Container::Vector, false),
    (Container::Vector, true),
];

/// A row of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) container: Container,
    pub(crate) checked: bool,
    pub(crate) shape: Shape,
    pub(crate) kernel: Kernel,
}

/// All rows, kernel by kernel.
pub(crate) fn rows() -> Vec<Row> {
    let mut all = Vec::new();
    for kernel in KERNELS {
        for shape in SHAPES {
            for (container, checked) in ACCESSES {
                all.push(Row { container, checked, shape, kernel });
            }
        }
    }
    all
}

impl Kernel {
    pub(crate) fn element(self) -> &'static str {
        match self {
            Kernel::Sum | Kernel::Count | Kernel::Find | Kernel::Min => "Int64",
            Kernel::Dot | Kernel::Axpy | Kernel::Map | Kernel::Stencil => "Float64",
        }
    }

    /// The accumulator of the iterations, and its start.
    fn carried(self) -> Option<(&'static str, &'static str)> {
        match self {
            Kernel::Sum | Kernel::Count => Some(("Int64", "0")),
            Kernel::Min => Some(("Int64", "9223372036854775807")),
            Kernel::Dot => Some(("Float64", "0.0")),
            Kernel::Find | Kernel::Axpy | Kernel::Map | Kernel::Stencil => None,
        }
    }

    pub(crate) fn result(self) -> &'static str {
        match self {
            Kernel::Find => "Int64",
            _ => self.carried().map_or("Int64", |(ty, _)| ty),
        }
    }
}

impl Row {
    pub(crate) fn name(self) -> String {
        let checked = if self.checked { "checked" } else { "unchecked" };
        format!("{:?}_{:?}_{:?}_{checked}", self.kernel, self.shape, self.container).to_lowercase()
    }

    pub(crate) fn container_type(self) -> String {
        format!("{:?}{{{}}}", self.container, self.kernel.element())
    }

    fn get(self, to: &str, from: &str, index: &str) -> String {
        let (element, check) = (self.kernel.element(), self.checked);
        match self.container {
            Container::Ptr => format!("│ %{to} = Base.pointerref({from}, {index}, 1)::{element}\n"),
            Container::Vector => format!("│ %{to} = Base.arrayref({check}, {from}, {index})::{element}\n"),
            Container::Memory => format!(
                "│ %{to}r = Base.memoryrefnew({from})::MemoryRef{{{element}}}
│ %{to}s = Base.memoryrefnew(%{to}r, {index}, {check})::MemoryRef{{{element}}}
│ %{to} = Base.memoryrefget(%{to}s, :not_atomic, false)::{element}\n"
            ),
        }
    }

    fn set(self, to: &str, index: &str, value: &str) -> String {
        let (element, check) = (self.kernel.element(), self.checked);
        match self.container {
            Container::Ptr => format!("│ Base.pointerset({to}, {value}, {index}, 1)::Ptr{{{element}}}\n"),
            Container::Vector => {
                format!("│ Base.arrayset({check}, {to}, {value}, {index})::Vector{{{element}}}\n")
            }
            Container::Memory => format!(
                "│ %wr = Base.memoryrefnew({to})::MemoryRef{{{element}}}
│ %ws = Base.memoryrefnew(%wr, {index}, {check})::MemoryRef{{{element}}}
│ Base.memoryrefset!(%ws, {value}, :not_atomic, false)::{element}\n"
            ),
        }
    }

    /// How many elements the first container has.
    fn length(self, to: &str) -> String {
        match self.container {
            Container::Ptr => format!("│ %{to} = Base.add_int(n, 0)::Int64\n"),
            Container::Vector => format!("│ %{to} = Base.arraylen(a)::Int64\n"),
            Container::Memory => format!("│ %{to} = Base.getfield(a, :length)::Int64\n"),
        }
    }

    /// The body of an iteration with `%e` at `%i`; makes `%acc` of `%sofar`, and for `find` the condition `%hit`.
    fn body(self) -> String {
        match self.kernel {
            Kernel::Sum => "│ %acc = Base.add_int(%sofar, %e)::Int64\n".to_owned(),
            Kernel::Dot => {
                self.get("x", "b", "%i")
                    + "│ %p = Base.mul_float(%e, %x)::Float64\n│ %acc = Base.add_float(%sofar, %p)::Float64\n"
            }
            Kernel::Axpy => {
                self.get("x", "b", "%i")
                    + "│ %p = Base.mul_float(k, %x)::Float64\n│ %q = Base.add_float(%e, %p)::Float64\n"
                    + &self.set("a", "%i", "%q")
            }
            Kernel::Map => {
                "│ %p = Base.mul_float(%e, %e)::Float64\n│ %q = Base.add_float(%p, k)::Float64\n".to_owned()
                    + &self.set("b", "%i", "%q")
            }
            Kernel::Count => "│ %p = Base.slt_int(k, %e)::Bool
│ %q = Core.zext_int(Core.Int64, %p)::Int64
│ %acc = Base.add_int(%sofar, %q)::Int64\n"
                .to_owned(),
            Kernel::Find => "│ %hit = (%e === k)::Bool\n".to_owned(),
            Kernel::Min => "│ %p = Base.slt_int(%e, %sofar)::Bool
│ %acc = Core.ifelse(%p, %e, %sofar)::Int64\n"
                .to_owned(),
            Kernel::Stencil => {
                let mut text = self.get("x", "b", "%i");
                text += "│ %j1 = Base.add_int(%i, 1)::Int64\n";
                text += &self.get("y", "b", "%j1");
                text += "│ %j2 = Base.add_int(%i, 2)::Int64\n";
                text += &self.get("z", "b", "%j2");
                text += "│ %p = Base.add_float(%e, %x)::Float64\n│ %q = Base.add_float(%y, %z)::Float64
│ %v = Base.mul_float(%p, %q)::Float64\n";
                text + &self.set("a", "%i", "%v")
            }
        }
    }

    /// The function.
    pub(crate) fn function(self) -> String {
        let (container, result) = (self.container_type(), self.kernel.result());
        let head = format!(
            "function {}(a::{container}, b::{container}, n::Int64, k::{})::{result}\n",
            self.name(),
            self.kernel.element()
        );
        let text = match self.shape {
            Shape::While => self.while_loop(),
            Shape::Range => self.range_loop(),
            Shape::Iterate => self.iterate_loop(),
            Shape::Simd => self.simd_loop(),
        };
        numbered(&(head + &text + "end\n\n"))
    }

    /// The φ that carries what the rounds put together.
    fn sofar(self, name: &str, edges: &[(&str, &str)]) -> String {
        let Some((ty, start)) = self.kernel.carried() else { return String::new() };
        let edge = |(block, value): &(&str, &str)| match *value {
            "start" => format!("#{block} => {start}"),
            value => format!("#{block} => {value}"),
        };
        let edges: Vec<String> = edges.iter().map(edge).collect();
        format!("│ %{name} = φ ({})::{ty}\n", edges.join(", "))
    }

    fn found_value(self) -> &'static str {
        match self.kernel {
            Kernel::Find => "%i",
            _ => "0",
        }
    }

    /// The result when all iterations are done, and in block `found` when something was found.
    fn ends(self, done: &str, found: &str, value: &str) -> String {
        let value = if self.kernel.carried().is_some() { value } else { "0" };
        let mut text = format!("{done} ─ return {value}\n");
        if self.kernel == Kernel::Find {
            let _ = writeln!(text, "{found} ─ return {}", self.found_value());
        }
        text
    }

    /// The end of the body: on to `next`, or out of the loop to `found`.
    fn body_end(self, found: &str, next: &str) -> String {
        match self.kernel {
            Kernel::Find => {
                format!("│ %miss = Base.not_int(%hit)::Bool\n└── goto #{found} if not %miss\n")
            }
            _ => format!("└── goto #{next}\n"),
        }
    }

    /// `i = 1; while i <= length(a) … i += 1 end`, the length asked for in every iteration.
    fn while_loop(self) -> String {
        let mut text = "1 ─ goto #2\n".to_owned();
        text += "2 ┄ %i = φ (#1 => 1, #4 => %next)::Int64\n";
        text += &self.sofar("sofar", &[("1", "start"), ("4", "%acc")]);
        text += &self.length("len");
        text += "│ %c = Base.sle_int(%i, %len)::Bool\n└── goto #5 if not %c\n";
        text += &("3 ─ nothing::Nothing\n".to_owned() + &self.get("e", "a", "%i"));
        text += &self.body();
        text += &self.body_end("6", "4");
        text += "4 ─ %next = Base.add_int(%i, 1)::Int64\n└── goto #2\n";
        text + &self.ends("5", "6", "%sofar")
    }

    /// `for i in 1:length(a)`.
    fn range_loop(self) -> String {
        let mut text = "1 ─ nothing::Nothing\n".to_owned() + &self.length("len");
        text += "│ %some = Base.sle_int(1, %len)::Bool
│ %stop = Base.ifelse(%some, %len, 0)::Int64
│ %none = Base.slt_int(%stop, 1)::Bool
└── goto #3 if not %none
2 ─ goto #4
3 ─ goto #4
4 ┄ %f = φ (#2 => true, #3 => false)::Bool
│ %i0 = φ (#3 => 1)::Int64
│ %s0 = φ (#3 => 1)::Int64
│ %g = Base.not_int(%f)::Bool
└── goto #11 if not %g
5 ┄ %i = φ (#4 => %i0, #10 => %i1)::Int64
│ %s = φ (#4 => %s0, #10 => %s1)::Int64\n";
        text += &self.sofar("sofar", &[("4", "start"), ("10", "%acc")]);
        text += &self.get("e", "a", "%i");
        text += &self.body();
        text += &self.body_end("12", "6");
        text += "6 ─ %end = (%s === %stop)::Bool
└── goto #8 if not %end
7 ─ goto #9
8 ─ %n1 = Base.add_int(%s, 1)::Int64
└── goto #9
9 ┄ %i1 = φ (#8 => %n1)::Int64
│ %s1 = φ (#8 => %n1)::Int64
│ %d = φ (#7 => true, #8 => false)::Bool
│ %h = Base.not_int(%d)::Bool
└── goto #11 if not %h
10 ─ goto #5\n";
        let merged = self.sofar("r", &[("4", "start"), ("9", "%acc")]);
        text += &if merged.is_empty() {
            "11 ┄ nothing::Nothing\n".to_owned()
        } else {
            merged.replacen("│", "11 ┄", 1)
        };
        text += "└── goto #13\n";
        text + &self.ends("13", "12", "%r")
    }

    /// `for (i, e) in enumerate(a)`: the first element is read in front of the loop, the next one at the end of an iteration.
    fn iterate_loop(self) -> String {
        let unchecked = Row { checked: false, ..self };
        let test = |text: &mut String, at: &str, name: &str| {
            text.push_str(&self.length(&format!("{name}len")));
            let _ = write!(
                text,
                "│ %{name}n = Base.sub_int({at}, 1)::Int64
│ %{name}u = Base.bitcast(UInt64, %{name}n)::UInt64
│ %{name}p = Base.sle_int(0, %{name}len)::Bool
│ %{name}v = Base.bitcast(UInt64, %{name}len)::UInt64
│ %{name}w = Base.ult_int(%{name}u, %{name}v)::Bool
│ %{name} = Base.and_int(%{name}p, %{name}w)::Bool\n"
            );
        };
        let element = self.kernel.element();
        let mut text = "1 ─ nothing::Nothing\n".to_owned();
        test(&mut text, "1", "t");
        text += "└── goto #3 if not %t\n2 ─ nothing::Nothing\n";
        text += &unchecked.get("e0", "a", "1");
        let _ = write!(
            text,
            "└── goto #4
3 ─ goto #4
4 ┄ %f = φ (#2 => false, #3 => true)::Bool
│ %e1 = φ (#2 => %e0)::{element}
│ %s0 = φ (#2 => 2)::Int64
│ %g = Base.not_int(%f)::Bool
└── goto #11 if not %g
5 ┄ %i = φ (#4 => 1, #10 => %i1)::Int64
│ %e = φ (#4 => %e1, #10 => %e3)::{element}
│ %s = φ (#4 => %s0, #10 => %s2)::Int64\n"
        );
        text += &self.sofar("sofar", &[("4", "start"), ("10", "%acc")]);
        text += &self.body();
        text += &self.body_end("12", "6");
        text += "6 ─ %i1 = Base.add_int(%i, 1)::Int64\n";
        test(&mut text, "%s", "t2");
        text += "└── goto #8 if not %t2\n7 ─ nothing::Nothing\n";
        text += &unchecked.get("e2", "a", "%s");
        let _ = write!(
            text,
            "│ %s1 = Base.add_int(%s, 1)::Int64
└── goto #9
8 ─ goto #9
9 ┄ %e3 = φ (#7 => %e2)::{element}
│ %s2 = φ (#7 => %s1)::Int64
│ %d = φ (#7 => false, #8 => true)::Bool
│ %h = Base.not_int(%d)::Bool
└── goto #11 if not %h
10 ─ goto #5\n"
        );
        let merged = self.sofar("r", &[("4", "start"), ("9", "%acc")]);
        text += &if merged.is_empty() {
            "11 ┄ nothing::Nothing\n".to_owned()
        } else {
            merged.replacen("│", "11 ┄", 1)
        };
        text += "└── goto #13\n";
        text + &self.ends("13", "12", "%r")
    }

    /// `@simd for i in eachindex(a)`.
    fn simd_loop(self) -> String {
        let mut text = "1 ─ nothing::Nothing\n".to_owned() + &self.length("len");
        text += "│ %neg = Base.slt_int(%len, 0)::Bool
│ %stop = Base.ifelse(%neg, 0, %len)::Int64
│ %some = Base.slt_int(0, %stop)::Bool
└── goto #6 if not %some
2 ┄ %j = φ (#1 => 0, #4 => %next)::Int64\n";
        text += &self.sofar("sofar", &[("1", "start"), ("4", "%acc")]);
        text += "│ %c = Base.slt_int(%j, %stop)::Bool\n└── goto #5 if not %c\n3 ─ %i = Base.add_int(%j, 1)::Int64\n";
        text += &self.get("e", "a", "%i");
        text += &self.body();
        text += &self.body_end("7", "4");
        text += "4 ─ %next = Base.add_int(%j, 1)::Int64
│ $(Expr(:loopinfo, Symbol(\"julia.simdloop\"), nothing))::Any
└── goto #2\n";
        text += &self.ends("5", "7", "%sofar");
        let start = self.kernel.carried().map_or("0", |(_, start)| start);
        let _ = writeln!(text, "6 ─ return {start}");
        text
    }
}

/// Gives blocks and statements that are named the numbers that the text form wants, in the order in which they stand.
pub(crate) fn numbered(text: &str) -> String {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        let label = line.split_whitespace().next().unwrap_or("");
        if !label.is_empty() && label.chars().all(|c| c.is_ascii_digit()) {
            blocks.push(label.to_owned());
        }
    }
    let mut names: Vec<String> = Vec::new();
    let mut out = String::new();
    for line in text.lines() {
        let label = line.split_whitespace().next().unwrap_or("");
        let mut rest = line;
        if let Some(n) = blocks.iter().position(|b| b == label) {
            let _ = write!(out, "{}", n + 1);
            rest = &line[label.len()..];
        }
        while let Some(at) = rest.find(['%', '#']) {
            out.push_str(&rest[..=at]);
            let is_value = rest.as_bytes()[at] == b'%';
            rest = &rest[at + 1..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            if name == "new" {
                out.push_str(name);
                rest = behind;
                continue;
            }
            let known = if is_value { &mut names } else { &mut blocks };
            let number = known.iter().position(|k| k == name).unwrap_or_else(|| {
                known.push(name.to_owned());
                known.len() - 1
            });
            let _ = write!(out, "{}", number + 1);
            rest = behind;
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

impl Row {
    /// Functions that call the row and return a number made of its result, or of its exception, and of all elements afterwards:
    /// `try_…(v, w, k)` of two vectors, `same_…(v, k)` of one for both, and `shifted_…(v, d, k)` of two that share their `Memory`, the second one
    /// `d` elements further on.
    pub(crate) fn drivers(self) -> String {
        let (name, element, result) = (self.name(), self.kernel.element(), self.kernel.result());
        let (vector, container) = (format!("Vector{{{element}}}"), self.container_type());
        let (a, b, parts) = match self.container {
            Container::Memory => {
                let part = |of: &str, to: &str| {
                    format!(
                        "│ %r{to} = Base.getfield({of}, :ref)::MemoryRef{{{element}}}
│ %{to} = Base.getfield(%r{to}, :mem)::{container}\n"
                    )
                };
                ("%a", "%b", part("v", "a") + &part("w", "b"))
            }
            Container::Ptr => {
                let pointer = |of: &str, to: &str| {
                    format!(
                        "│ %r{to} = Base.getfield({of}, :ref)::MemoryRef{{{element}}}
│ %p{to} = Base.getfield(%r{to}, :ptr_or_offset)::Ptr{{Nothing}}
│ %{to} = Base.bitcast({container}, %p{to})::{container}\n"
                    )
                };
                // The digests behind the call keep both vectors alive.
                ("%a", "%b", pointer("v", "a") + &pointer("w", "b"))
            }
            _ => ("v", "w", String::new()),
        };
        let digest = |blocks: [&str; 4], of: &str, from: (&str, &str), n: &str| {
            let [head, body, latch, exit] = blocks;
            format!(
                "{head} ┄ %i{n} = φ (#{before} => 1, #{latch} => %m{n})::Int64
│ %h{n} = φ (#{before} => {start}, #{latch} => %d{n})::Int64
│ %l{n} = Base.arraylen({of})::Int64
│ %c{n} = Base.sle_int(%i{n}, %l{n})::Bool
└── goto #{exit} if not %c{n}
{body} ─ %e{n} = Base.arrayref(true, {of}, %i{n})::{element}
│ %f{n} = Base.bitcast(Int64, %e{n})::Int64
│ %g{n} = Base.mul_int(%h{n}, 1000003)::Int64
│ %d{n} = Base.xor_int(%g{n}, %f{n})::Int64
│ %m{n} = Base.add_int(%i{n}, 1)::Int64
└── goto #{latch}
{latch} ─ goto #{head}\n",
                before = from.0,
                start = from.1,
            )
        };
        let mut text = format!(
            "function try_{name}(v::{vector}, w::{vector}, k::{element})::Int64
1 ─ %n = Base.arraylen(v)::Int64
{parts}└── %t = enter #3
2 ─ %r = invoke Main.{name}({a}::{container}, {b}::{container}, %n::Int64, k::{element})::{result}
│ %x = Base.bitcast(Int64, %r)::Int64
│ $(Expr(:leave, :(%t)))
└── goto #4
3 ─ $(Expr(:pop_exception, :(%t)))::Nothing
└── goto #4
4 ┄ %s = φ (#2 => %x, #3 => -77)::Int64
└── goto #5\n"
        );
        text += &digest(["5", "6", "7", "8"], "v", ("4", "%s"), "1");
        text += "8 ─ goto #9\n";
        text += &digest(["9", "10", "11", "12"], "w", ("8", "%h1"), "2");
        text += "12 ─ return %h2\nend\n\n";
        let mut all = numbered(&text);
        all += &numbered(&format!(
            "function same_{name}(v::{vector}, k::{element})::Int64
1 ─ %r = invoke Main.try_{name}(v::{vector}, v::{vector}, k::{element})::Int64
└── return %r
end

"
        ));
        if self.container != Container::Vector {
            return all;
        }
        let less = if self.kernel == Kernel::Stencil { 2 } else { 0 };
        all + &numbered(&format!(
            "function shifted_{name}(v::{vector}, d::Int64, k::{element})::Int64
1 ─ %n = Base.arraylen(v)::Int64
│ %m = Base.sub_int(%n, d)::Int64
│ %o = Base.sub_int(%m, {less})::Int64
│ %ref = Base.getfield(v, :ref)::MemoryRef{{{element}}}
│ %p = Base.add_int(d, 1)::Int64
│ %far = Base.memoryrefnew(%ref, %p, true)::MemoryRef{{{element}}}
│ %ma = Core.tuple(%o)::Tuple{{Int64}}
│ %mb = Core.tuple(%m)::Tuple{{Int64}}
│ %a = %new({vector}, %ref, %ma)::{vector}
│ %b = %new({vector}, %far, %mb)::{vector}
│ %r = invoke Main.try_{name}(%a::{vector}, %b::{vector}, k::{element})::Int64
└── return %r
end

"
        ))
    }
}
