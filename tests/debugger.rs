//! A toy language under gdb: a breakpoint by a line of its own source, its variables, and a backtrace through frames of compiled code. And under `perf`: a
//! profile with its names and lines.
//!
//! The tests run this program again under the tool, which watches the ignored tests. They are skipped, with the reason, if the tool is missing, or not
//! permitted.
#![cfg(all(feature = "gdb", target_os = "linux"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use brolga::ir::build::{BuildError, Builder, Variable};
use brolga::ir::intrinsic::Intrinsic;
use brolga::ir::{Context, Module, Type, Value};
use brolga::observe::{CodeListener, CodeUnit, GdbInterface, JitDump};
use brolga::options::Mapping;
use brolga::{Engine, OptLevel, Options, Program};

/// A program of the toy language: assignments, one on a line, of sums and products of variables and numbers; `loop n` repeats the lines up to `end`.
const SOURCE: &str = "total = 1
step = start
loop n
  square = step * step
  total = total * square
  step = step + 1
end
return total
";

/// The folder of a test's source, which the tools read.
fn folder(tool: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("brolga-toy-{tool}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The column of a line's first word.
fn column(line: &str) -> u32 {
    (line.len() - line.trim_start().len()) as u32 + 1
}

/// The front end of the toy language.
struct Toy<'b, 'c> {
    b: &'b mut Builder<'c>,
    variables: Vec<(String, Variable)>,
}

impl Toy<'_, '_> {
    fn variable(&mut self, name: &str) -> Variable {
        if let Some((_, known)) = self.variables.iter().find(|(known, _)| known == name) {
            return *known;
        }
        let new = self.b.declare_named_var(name, Type::INT64);
        self.variables.push((name.to_owned(), new));
        new
    }

    fn operand(&mut self, text: &str) -> Result<Value, BuildError> {
        match text.parse::<i64>() {
            Ok(number) => self.b.int(Type::INT64, number.into()),
            Err(_) => {
                let variable = self.variable(text);
                self.b.use_var(variable)
            }
        }
    }

    /// Compiles lines up to `end`; the rest is left.
    fn lines<'l>(&mut self, mut lines: &'l [(usize, &'l str)]) -> Result<&'l [(usize, &'l str)], BuildError> {
        while let [(number, line), rest @ ..] = lines {
            lines = rest;
            self.b.set_line_column(*number as u32, column(line));
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["end"] => break,
                ["return", value] => {
                    let value = self.operand(value)?;
                    self.b.ret(&[value])?;
                }
                ["loop", count] => {
                    let count = self.operand(count)?;
                    let (zero, one) = (self.b.int(Type::INT64, 0)?, self.b.int(Type::INT64, 1)?);
                    let round = self.b.declare_var(Type::INT64);
                    self.b.def_var(round, zero)?;
                    let (head, inside, done) =
                        (self.b.create_block(), self.b.create_block(), self.b.create_block());
                    self.b.goto(head)?;
                    self.b.switch_to_block(head)?;
                    let at = self.b.use_var(round)?;
                    let more = self.b.intrinsic(Intrinsic::SltInt, &[at, count])?;
                    self.b.branch(more, inside, done)?;
                    self.b.switch_to_block(inside)?;
                    lines = self.lines(rest)?;
                    let at = self.b.use_var(round)?;
                    let next = self.b.intrinsic(Intrinsic::AddInt, &[at, one])?;
                    self.b.def_var(round, next)?;
                    self.b.goto(head)?;
                    self.b.seal_block(head)?;
                    self.b.switch_to_block(done)?;
                }
                [name, "=", value] => {
                    let value = self.operand(value)?;
                    let variable = self.variable(name);
                    self.b.def_var(variable, value)?;
                }
                [name, "=", left, operator, right] => {
                    let operands = [self.operand(left)?, self.operand(right)?];
                    let operator = if operator == "*" { Intrinsic::MulInt } else { Intrinsic::AddInt };
                    let value = self.b.intrinsic(operator, &operands)?;
                    let variable = self.variable(name);
                    self.b.def_var(variable, value)?;
                }
                _ => panic!("line {number}: `{line}`"),
            }
        }
        Ok(lines)
    }
}

/// The toy program as `toy(start, n)`, and `outer(start, n)`, which calls it.
fn program(file: &Path) -> Program {
    let build = |cx: &Context| -> Result<_, BuildError> {
        let params = [("start", Type::INT64), ("n", Type::INT64)];
        let mut b = Builder::high(cx, "toy", &params, Type::INT64);
        b.set_file(&file.to_string_lossy());
        b.set_inlining(brolga::ir::hints::Inlining::Never)?;
        let mut toy = Toy { b: &mut b, variables: Vec::new() };
        for (n, (name, _)) in params.iter().enumerate() {
            let variable = toy.variable(name);
            let value = toy.b.param(n)?;
            toy.b.def_var(variable, value)?;
        }
        let lines: Vec<(usize, &str)> = SOURCE.lines().enumerate().map(|(at, line)| (at + 1, line)).collect();
        toy.lines(&lines)?;
        let toy = b.finish()?;
        let mut b = Builder::high(cx, "outer", &params, Type::INT64);
        let args = [b.param(0)?, b.param(1)?];
        let value = b.invoke("toy", &args, Type::INT64)?;
        let one = b.int(Type::INT64, 1)?;
        let value = b.intrinsic(Intrinsic::AddInt, &[value, one])?;
        b.ret(&[value])?;
        Ok([toy, b.finish()?])
    };
    let cx = Context::new();
    let mut module = Module::new(cx.clone());
    for func in build(&cx).unwrap_or_else(|error| panic!("{error}")) {
        module.add_func(func).unwrap();
    }
    Program::from_module(module).unwrap_or_else(|error| panic!("{error}"))
}

/// `1 + start² (start + 1)² …`, n numbers.
fn expected(start: i64, n: i64) -> i64 {
    let squares = (start..start + n).map(|step| step.wrapping_mul(step));
    squares.fold(1_i64, i64::wrapping_mul).wrapping_add(1)
}

#[test]
fn the_toy_language_computes() {
    for level in OptLevel::ALL {
        let engine = Engine::new(Options::new().opt_level(level)).unwrap();
        let outer = engine.compile(&program(Path::new("toy.src"))).unwrap();
        let outer = outer.func::<(i64, i64), i64>("outer").unwrap();
        assert_eq!(outer.call((3, 4)), Ok(expected(3, 4)), "{level:?}");
    }
}

/// The lines and columns of the code of `toy`.
#[derive(Default)]
struct Places(Mutex<Vec<(u32, u32)>>);

impl CodeListener for Places {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        let toy = unit.functions().filter(|function| function.name() == "toy(Int64, Int64)");
        let places = toy.flat_map(|function| function.lines());
        let known = places.map(|(_, place)| (place.at.line().unwrap_or(0), place.at.column().unwrap_or(0)));
        self.0.lock().unwrap().extend(known);
    }

    fn freed(&self, _: &Arc<CodeUnit>) {}
}

#[test]
fn code_has_the_lines_and_columns_of_the_source() {
    let of_source: Vec<(u32, u32)> =
        SOURCE.lines().enumerate().map(|(at, line)| (at as u32 + 1, column(line))).collect();
    for level in OptLevel::ALL {
        let engine = Engine::new(Options::new().opt_level(level)).unwrap();
        let places = Arc::new(Places::default());
        engine.listen(places.clone());
        let _unit = engine.compile(&program(Path::new("toy.src"))).unwrap();
        let places = places.0.lock().unwrap();
        // Sums stay in the loop; the product as well.
        assert!(places.contains(&(5, 3)) && places.contains(&(4, 3)), "{level:?}: {places:?}");
        assert!(places.iter().all(|place| of_source.contains(place)), "{level:?}: {places:?}");
    }
}

/// The file of the source, by the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "a debugger starts the test, which has no other way to be told"
)]
fn file() -> PathBuf {
    PathBuf::from(std::env::var_os("BROLGA_TOY").unwrap())
}

fn toy_under_gdb(level: OptLevel) {
    // Of several places of a line in one block gdb takes the first. That one is in the loop in lanes, which few iterations never enter.
    let options = Options::new().opt_level(level).without_passes(&["vectorize"]).unwrap();
    let engine = Engine::new(options.code_mapping(Mapping::Private)).unwrap();
    engine.listen(Arc::new(GdbInterface::new(1, "unknown.src")));
    let unit = engine.compile(&program(&file())).unwrap();
    assert_eq!(unit.func::<(i64, i64), i64>("outer").unwrap().call((3, 4)), Ok(expected(3, 4)));
}

#[test]
#[ignore = "runs under gdb, started by the test below"]
fn under_gdb() {
    toy_under_gdb(OptLevel::O0);
}

#[test]
#[ignore = "runs under gdb, started by the test below"]
fn optimised_under_gdb() {
    toy_under_gdb(OptLevel::O2);
}

/// Runs the ignored test of this program under a command; what it printed, or why it cannot.
fn run_under(tool: &mut Command, test: &str, file: &Path) -> Result<String, String> {
    tool.arg(std::env::current_exe().unwrap());
    tool.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]).env("BROLGA_TOY", file);
    let output = tool.output().map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// What gdb prints at these commands in the ignored test of this program; nothing if there is no gdb, or it may not debug.
fn gdb(commands: &[&str], test: &str, file: &Path) -> Option<String> {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: there is no gdb on this machine");
        return None;
    }
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]);
    let settings = ["set pagination off", "set breakpoint pending on", "set debuginfod enabled off"];
    for command in settings.iter().chain(commands) {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args");
    let text = run_under(&mut gdb, test, file).unwrap();
    if text.contains("ptrace: Operation not permitted") {
        println!("skipped: debugging is not permitted here");
        return None;
    }
    Some(text)
}

#[test]
fn gdb_stops_at_lines_of_the_source_and_prints_variables() {
    let folder = folder("gdb");
    let file = folder.join("toy.src");
    std::fs::write(&file, SOURCE).unwrap();
    let commands = [
        "break toy.src:5",
        "run",
        "print step",
        "print square",
        "print total",
        "print n",
        "ptype step",
        "backtrace 3",
        "continue",
        "print step",
        "print total",
        "kill",
    ];
    let printed = gdb(&commands, "under_gdb", &file);
    std::fs::remove_dir_all(folder).unwrap();
    let Some(text) = printed else { return };
    let tells = |what: &str| assert!(text.contains(what), "no `{what}` in:\n{text}");
    // The line of the source, with its text.
    tells("toy.src:5");
    tells("total = total * square");
    for shown in ["$1 = 3", "$2 = 9", "$3 = 1", "$4 = 4", "type = Int64"] {
        tells(shown);
    }
    tells("#0  toy(Int64, Int64) ()");
    tells("in outer(Int64, Int64) ()");
    tells("in entry ()");
    // The next iteration.
    for shown in ["$5 = 4", "$6 = 9"] {
        tells(shown);
    }
}

/// What is left of a variable has its value.
#[test]
fn gdb_prints_no_wrong_values_of_optimised_code() {
    let folder = folder("gdb-optimised");
    let file = folder.join("toy.src");
    std::fs::write(&file, SOURCE).unwrap();
    let names = ["step", "square", "total", "n"];
    let prints =
        names.map(|name| [format!("echo \\n<{name}>"), format!("output {name}"), "echo \\n".to_owned()]);
    let mut commands = vec!["break toy.src:5", "run"];
    commands.extend(prints.as_flattened().iter().map(String::as_str));
    commands.extend(["backtrace 3", "kill"]);
    let printed = gdb(&commands, "optimised_under_gdb", &file);
    std::fs::remove_dir_all(folder).unwrap();
    let Some(text) = printed else { return };
    for what in ["toy.src:5", "toy(Int64, Int64) ()", "in outer(Int64, Int64) ()"] {
        assert!(text.contains(what), "no `{what}` in:\n{text}");
    }
    for (name, right) in names.iter().zip([3, 9, 1, 4]) {
        let prompt = format!("<{name}>");
        let shown = text.lines().find_map(|line| line.strip_prefix(&prompt));
        // gdb has no symbol for a variable that is not kept anywhere.
        let is_right = |shown: &str| ["", "<optimized out>", &right.to_string()].contains(&shown.trim());
        assert!(shown.is_some_and(is_right), "{name} is {right} in:\n{text}");
    }
}

/// A function of C that calls another one, both of an object file.
#[cfg(target_arch = "x86_64")]
const C: &str = "__attribute__((noinline)) static long inner_of_c(long x) { __asm__ volatile(\"\"); return x * 3; }\n\
                 long outer_of_c(long x) { return inner_of_c(x + 1) + 1; }\n";

#[cfg(target_arch = "x86_64")]
#[test]
#[ignore = "runs under gdb, started by the test below"]
fn object_file_under_gdb() {
    let session = brolga::Session::new(
        doors::open(Options::new().code_mapping(Mapping::Private)),
        brolga::Workers::Caller,
    )
    .unwrap();
    session.listen(Arc::new(GdbInterface::new(1, "unknown.src")));
    let made = session.create_dylib("made").unwrap();
    made.add_process_symbols(|_| true).unwrap();
    made.add_object("made.o", &std::fs::read(file()).unwrap()).unwrap();
    let program = "function f(x::Int64)::Int64\n\
         1 ─ %1 = $(Expr(:foreigncall, :(:outer_of_c), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
         └──      return %1\nend\n";
    made.define(made.read("f.jlir", program.as_bytes()).unwrap()).unwrap();
    assert_eq!(made.func::<(i64,), i64>("f").unwrap().call((6,)), Ok(22));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn gdb_stops_in_functions_of_object_files() {
    let folder = folder("gdb-object");
    let object = folder.join("made.o");
    std::fs::write(folder.join("made.c"), C).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-fno-omit-frame-pointer", "-c", "made.c"]).current_dir(&folder);
    assert!(compiler.status().unwrap().success());
    let commands = [
        "break 'f(Int64)'",
        "break inner_of_c",
        "run",
        "backtrace 1",
        "continue",
        "print $rdi",
        "backtrace 5",
        "kill",
    ];
    let printed = gdb(&commands, "object_file_under_gdb", &object);
    std::fs::remove_dir_all(folder).unwrap();
    let Some(text) = printed else { return };
    for what in ["#0  0x", "in f(Int64) ()", "inner_of_c ()", "$1 = 7", "in outer_of_c ()", "in entry ()"] {
        assert!(text.contains(what), "no `{what}` in:\n{text}");
    }
}

#[test]
#[ignore = "runs under perf, started by the test below"]
fn under_perf() {
    let file = file();
    let engine = Engine::new(Options::new()).unwrap();
    engine.listen(Arc::new(JitDump::create_in(file.parent().unwrap(), "unknown.src").unwrap()));
    let unit = engine.compile(&program(&file)).unwrap();
    let outer = unit.func::<(i64, i64), i64>("outer").unwrap();
    // Long enough for a few hundred samples.
    let (begun, expected) = (std::time::Instant::now(), expected(3, 100_000));
    while begun.elapsed() < std::time::Duration::from_millis(400) {
        assert_eq!(outer.call((3, 100_000)), Ok(expected));
    }
}

#[test]
fn perf_knows_names_and_lines() {
    if Command::new("perf").arg("--version").output().is_err() {
        println!("skipped: there is no perf on this machine");
        return;
    }
    let folder = folder("perf");
    let (file, data, jitted) = (folder.join("toy.src"), folder.join("perf.data"), folder.join("jitted.data"));
    std::fs::write(&file, SOURCE).unwrap();
    let mut record = Command::new("perf");
    record.args(["record", "-k", "mono", "-e", "cpu-clock", "-o"]).arg(&data).arg("--");
    let recorded = run_under(&mut record, "under_perf", &file).unwrap();
    let perf = |args: &[&str], input: &Path| {
        let output = Command::new("perf").args(args).arg("-i").arg(input).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    if !data.exists() || recorded.contains("No permission") || recorded.contains("not permitted") {
        println!("skipped: recording is not permitted here:\n{recorded}");
        return;
    }
    let injected = perf(&["inject", "--jit", "-o", jitted.to_str().unwrap()], &data);
    assert!(jitted.exists(), "{injected}\n{recorded}");
    let report = perf(&["report", "--stdio", "--sort", "symbol"], &jitted);
    assert!(report.contains("toy(Int64, Int64)"), "{report}\n{recorded}");
    let lines = perf(&["annotate", "--stdio", "-l", "-s", "toy(Int64, Int64)"], &jitted);
    std::fs::remove_dir_all(folder).unwrap();
    // `perf` disassembles by a tool of its own choice, which need not be there.
    if lines.trim().is_empty() || lines.contains("objdump") && !lines.contains("toy.src") {
        println!("skipped: `perf annotate` finds no disassembler:\n{lines}");
        return;
    }
    assert!(lines.contains("toy.src:5"), "no line of the source in:\n{lines}");
}

#[cfg(target_arch = "x86_64")]
#[path = "support/doors.rs"]
mod doors;
