//! Sequences of operations on a session: what they are, how a seed makes them, and their text.

use std::fmt::Write as _;

use crate::kinds::Kind;

/// How many dylibs a sequence has.
pub(super) const DYLIBS: usize = 3;
/// The names of functions; the last one is the library's.
pub(super) const NAMES: [&str; 4] = ["Main.f", "Main.g", "Main.h", "Base.sign"];
/// The name of the library's function. Its method for `Int64` gets 7 in all calls, so it returns 1.
pub(super) const SIGN: usize = 3;

/// A name as it is written in a definition and a symbol.
pub(super) fn spelled(name: usize) -> &'static str {
    NAMES[name].trim_start_matches("Main.")
}
/// The names of global variables.
pub(super) const VARIABLES: [&str; 2] = ["u", "v"];

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Type {
    Int,
    Float,
    Any,
}

impl Type {
    pub(super) fn text(self) -> &'static str {
        match self {
            Type::Int => "Int64",
            Type::Float => "Float64",
            Type::Any => "Any",
        }
    }
}

/// The symbol of a function: `f(Int64)`.
pub(super) fn symbol(name: usize, ty: Type) -> String {
    format!("{}({})", spelled(name), ty.text())
}

/// The argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arg {
    /// `7`, of type `Int64`.
    Int,
    /// `1.5`, of type `Float64`.
    Float,
    /// `7`, of type `Any`.
    Hidden,
    /// The value of a function, of type `Any`.
    Function(usize),
    /// The parameter of the caller.
    Param,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum How {
    Static,
    /// A static call that is not inlined.
    Noinline,
    Dynamic,
    /// A dynamic call of the function's value, which no pass sees through.
    Value,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Body {
    Constant,
    Call(usize, How, Arg),
    /// A call of the parameter.
    CallParam(Arg),
    Read(usize),
    Set(usize),
    /// The size of `P`.
    Size,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Function {
    pub(super) name: usize,
    pub(super) ty: Type,
    pub(super) body: Body,
    /// What it returns, or adds to what it has called, read.
    pub(super) salt: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Program {
    pub(super) functions: Vec<Function>,
    /// Declared variables with their first values.
    pub(super) globals: Vec<(usize, i64)>,
    /// How many fields the declared type `P` has, if it is declared.
    pub(super) fields: Option<usize>,
    pub(super) kind: Kind,
    /// Whether callees may be missing.
    pub(super) is_late: bool,
    /// Whether other dylibs do not see its functions.
    pub(super) is_hidden: bool,
    pub(super) tracker: Option<usize>,
}

/// What a name is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Item {
    Function(usize),
    Variable(usize),
    /// `P`.
    Type,
}

impl Item {
    pub(super) fn text(self) -> &'static str {
        match self {
            Item::Function(name) => spelled(name),
            Item::Variable(variable) => VARIABLES[variable],
            Item::Type => "P",
        }
    }
}

/// What is re-exported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Passed {
    All,
    Only(Vec<Item>),
    Except(Vec<Item>),
}

impl Passed {
    pub(super) fn has(&self, item: Item) -> bool {
        match self {
            Passed::All => true,
            Passed::Only(items) => items.contains(&item),
            Passed::Except(items) => !items.contains(&item),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Link {
        from: usize,
        to: usize,
    },
    /// Puts a linked dylib first in the link order.
    First {
        dylib: usize,
        first: usize,
    },
    Reexport {
        dylib: usize,
        from: usize,
        passed: Passed,
        tracker: Option<usize>,
    },
    EndReexport {
        dylib: usize,
        from: usize,
    },
    Alias {
        dylib: usize,
        name: usize,
        from: usize,
        original: usize,
        tracker: Option<usize>,
    },
    Define {
        dylib: usize,
        program: Program,
        replace: bool,
    },
    Host {
        dylib: usize,
        name: usize,
        is_float: bool,
        salt: i64,
        replace: bool,
    },
    Remove {
        dylib: usize,
        name: usize,
        ty: Type,
    },
    RemoveTracker {
        dylib: usize,
        tracker: usize,
    },
    Clear {
        dylib: usize,
    },
    Call {
        dylib: usize,
        name: usize,
        ty: Type,
        times: usize,
    },
}

/// A generator of numbers.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn is(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn ty(&mut self) -> Type {
        self.of(&[Type::Int, Type::Int, Type::Float, Type::Any])
    }

    fn arg(&mut self) -> Arg {
        match self.below(8) {
            0 | 1 => Arg::Int,
            2 => Arg::Float,
            3 => Arg::Hidden,
            4 => Arg::Function(self.below(SIGN)),
            _ => Arg::Param,
        }
    }

    fn body(&mut self, ty: Type) -> Body {
        match self.below(13) {
            12 => Body::Size,
            0..3 => Body::Constant,
            3..9 => {
                let how = self.of(&[
                    How::Static,
                    How::Static,
                    How::Noinline,
                    How::Noinline,
                    How::Dynamic,
                    How::Value,
                ]);
                let name = self.below(NAMES.len());
                let arg = match self.arg() {
                    // The library's other methods return other types.
                    Arg::Param if name == SIGN && ty != Type::Int => Arg::Int,
                    Arg::Hidden if name == SIGN && matches!(how, How::Static | How::Noinline) => Arg::Int,
                    Arg::Float | Arg::Function(_) if name == SIGN => Arg::Int,
                    arg => arg,
                };
                Body::Call(name, how, arg)
            }
            9 if ty == Type::Any => Body::CallParam(self.of(&[Arg::Int, Arg::Float, Arg::Hidden])),
            9 | 10 => Body::Read(self.below(VARIABLES.len())),
            _ => Body::Set(self.below(VARIABLES.len())),
        }
    }

    fn program(&mut self, salt: &mut i64) -> Program {
        let mut functions: Vec<Function> = Vec::new();
        for _ in 0..self.of(&[1, 1, 2, 3]) {
            let (name, ty) = if self.is(12) { (SIGN, Type::Int) } else { (self.below(SIGN), self.ty()) };
            if !functions.iter().any(|known| (known.name, known.ty) == (name, ty)) {
                *salt += 1;
                functions.push(Function { name, ty, body: self.body(ty), salt: *salt * 1_000_003 });
            }
        }
        let mut globals = Vec::new();
        for variable in 0..VARIABLES.len() {
            if self.is(3) {
                globals.push((variable, self.of(&[3, 3, 4])));
            }
        }
        let kind = self.of(&[
            Kind::Eager,
            Kind::Eager,
            Kind::Inlinable,
            Kind::Inlinable,
            Kind::Lazy,
            Kind::Tiered,
            Kind::Interpreted,
            Kind::Replaceable,
        ]);
        let tracker = self.is(4).then(|| self.below(2));
        let fields = self.is(4).then(|| 1 + self.below(3));
        Program { functions, globals, fields, kind, is_late: self.is(2), is_hidden: self.is(8), tracker }
    }

    fn passed(&mut self) -> Passed {
        let mut items: Vec<Item> = (0..NAMES.len()).map(Item::Function).collect();
        items.extend([Item::Variable(0), Item::Variable(1), Item::Type]);
        let kind = self.below(3);
        items.retain(|_| self.is(2));
        match kind {
            0 => Passed::All,
            1 => Passed::Only(items),
            _ => Passed::Except(items),
        }
    }

    fn step(&mut self, salt: &mut i64) -> Step {
        let dylib = self.below(DYLIBS);
        let name = self.below(SIGN);
        match self.below(43) {
            40 => {
                let (from, passed) = (self.below(DYLIBS), self.passed());
                Step::Reexport { dylib, from, passed, tracker: self.is(4).then(|| self.below(2)) }
            }
            41 if self.is(2) => Step::EndReexport { dylib, from: self.below(DYLIBS) },
            42 => {
                let (from, original) = (self.below(DYLIBS), self.below(SIGN));
                Step::Alias { dylib, name, from, original, tracker: self.is(4).then(|| self.below(2)) }
            }
            0..2 => Step::Link { from: dylib, to: self.below(DYLIBS) },
            2 if self.is(2) => Step::First { dylib, first: self.below(DYLIBS) },
            2..17 => Step::Define { dylib, program: self.program(salt), replace: self.is(3) },
            17 => {
                *salt += 1;
                let is_float = self.is(3);
                Step::Host { dylib, name, is_float, salt: *salt * 1_000_003, replace: self.is(2) }
            }
            18 if self.is(4) => Step::Remove { dylib, name: SIGN, ty: Type::Int },
            18 => Step::Remove { dylib, name, ty: self.ty() },
            19 if self.is(2) => Step::RemoveTracker { dylib, tracker: self.below(2) },
            19 if self.is(4) => Step::Clear { dylib },
            _ => Step::Call { dylib, name, ty: self.ty(), times: 1 + self.below(3) },
        }
    }

    /// A sequence of operations.
    pub(super) fn steps(&mut self) -> Vec<Step> {
        let count = self.of(&[12, 30, 60]);
        let mut salt = 0;
        (0..count).map(|_| self.step(&mut salt)).collect()
    }
}

impl Function {
    /// The statements before the call that make an argument, and the argument with its type.
    fn argument(&self, arg: Arg) -> (String, &'static str, Type) {
        let hidden = |value: &str| format!("│   %1 = Core.compilerbarrier(:type, {value})::Any\n");
        match arg {
            Arg::Int => (String::new(), "7", Type::Int),
            Arg::Float => (String::new(), "1.5", Type::Float),
            Arg::Hidden => (hidden("7"), "%1", Type::Any),
            Arg::Function(name) => (hidden(NAMES[name]), "%1", Type::Any),
            Arg::Param => (String::new(), "x", self.ty),
        }
    }

    fn text(&self) -> String {
        let Function { name, ty, body, salt } = self;
        let checked = "│   %4 = Core.typeassert(%3, Int64)::Int64\n";
        let (statements, result) = match *body {
            Body::Constant => (String::new(), format!("{salt}")),
            Body::Read(variable) => (format!("│   %4 = Main.{}::Int64\n", VARIABLES[variable]), "%5".into()),
            Body::Size => ("│   %4 = Core.sizeof(P)::Int64\n".into(), "%5".into()),
            Body::Set(variable) => (
                format!("│        Core.setglobal!(Main, :{}, {salt})::Int64\n", VARIABLES[variable]),
                format!("{salt}"),
            ),
            Body::Call(callee, how, arg) => {
                let (before, value, of) = self.argument(arg);
                let callee = NAMES[callee];
                let call = match how {
                    How::Static | How::Noinline => {
                        let hint = if how == How::Static { "" } else { " noinline" };
                        format!("│   %4 = invoke {callee}({value}::{})::Int64{hint}\n", of.text())
                    }
                    How::Dynamic => format!("│   %3 = dynamic {callee}({value})::Any\n{checked}"),
                    How::Value => format!(
                        "│   %2 = Core.compilerbarrier(:type, {callee})::Any\n│   %3 = dynamic (%2)({value})::Any\n{checked}"
                    ),
                };
                (before + &call, "%5".into())
            }
            Body::CallParam(arg) => {
                let (before, value, _) = self.argument(arg);
                (format!("{before}│   %3 = dynamic (x)({value})::Any\n{checked}"), "%5".into())
            }
        };
        let added = match result.as_str() {
            "%5" => format!("│   %5 = Base.add_int(%4, {salt})::Int64\n"),
            _ => String::new(),
        };
        let all = format!("{statements}{added}└──      return {result}\n");
        // The first line of a block has its number.
        let first = all.chars().next().map_or(0, char::len_utf8);
        let after = if all.starts_with('│') { &all[first..] } else { &all[first + 2 * '─'.len_utf8()..] };
        let after =
            if all.starts_with('│') { after.replacen("  ", "─", 1) } else { format!("─{after}") };
        format!("function {}(x::{})::Int64\n1 {}end\n", spelled(*name), ty.text(), renumbered(&after))
    }
}

/// Statements with their values numbered from 1 without gaps.
fn renumbered(text: &str) -> String {
    let mut text = text.to_owned();
    let mut next = 1;
    for number in 1..=5 {
        if text.contains(&format!("%{number} =")) {
            text = text.replace(&format!("%{number}"), &format!("%{next}"));
            next += 1;
        }
    }
    text
}

impl Program {
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some(fields) = self.fields {
            let fields: String = (0..fields).map(|at| format!("    f{at}::Int64\n")).collect();
            let _ = writeln!(text, "struct P\n{fields}end");
        }
        for (variable, first) in &self.globals {
            let _ = writeln!(text, "global {}::Int64 = {first}", VARIABLES[*variable]);
        }
        self.functions.iter().for_each(|function| text += &function.text());
        text
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Define { dylib, program, replace } => {
                let Program { kind, is_late, is_hidden, tracker, .. } = program;
                let word = if *replace { "redefine" } else { "define" };
                write!(
                    f,
                    "{word} in d{dylib}: {kind:?}, late: {is_late}, hidden: {is_hidden}, tracker: {tracker:?}\n{}",
                    program.text()
                )
            }
            other => write!(f, "{other:?}"),
        }
    }
}
