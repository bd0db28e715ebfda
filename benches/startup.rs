//! Start-up of a program that was built ahead of time: from a file to the first result.
//!
//! ```text
//! cargo bench --bench startup             10,000 functions
//! cargo bench --bench startup -- 1000     another number
//! cargo bench --bench startup -- --package FILE FUNCTION [ARGUMENT]   a package of the program in FILE instead
//! ```
//!
//! A generated program of small functions with a loop each, as an image, as the text that it is made of, and as a C library of the same functions
//! (`cc -O2 -shared`). All files are in the cache of the system.
//!
//! | table | a row |
//! |---|---|
//! | file | bytes of the image for each function, by part; relocations |
//! | in the process | µs of a step, the median and the least of [`ITERATIONS`] iterations: an engine, the image opened, a function looked up, its first call, and both for a second one; the program read at once, which a look at IR needs; and for C `dlopen`, `dlsym`, first call |
//! | packages | µs of a step: a session, the package of 1,000 of the functions opened, a function looked up, its first call |
//! | processes | ms from the start of a process to its end, which makes one call: by the image, by compiling what the call needs, by the C library; the median of [`PROCESSES`] |
//!
//! The processes are this program again. The C library is opened under another name in each iteration, because the system's loader keeps what it has seen.

use std::error::Error;
use std::fmt::Write as _;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use brolga::session::PackageBuild;
use brolga::{Doors, Engine, Evaluator, Options, Program, Session, Workers, image};
use object::{Object as _, ObjectSection as _};

type Done<T> = Result<T, Box<dyn Error>>;

const FUNCTIONS: usize = 10_000;
const ITERATIONS: usize = 31;
const PROCESSES: usize = 15;
/// The function that is called.
const CALLED: usize = 77;

/// Doors for images that this program has made.
fn doors() -> Doors {
    // SAFETY: the images are made here, by the code generator that this program has.
    unsafe { Doors::open() }
}

fn options() -> Options {
    Options::new().doors(doors())
}

/// The program, and the same in C.
fn sources(functions: usize) -> (String, String) {
    let (mut text, mut c) = (String::new(), String::new());
    for at in 0..functions {
        let factor = at + 3;
        let _ = write!(
            text,
            "function f{at}(n::Int64)::Int64
1 ─ %1 = Base.mul_int(n, {factor})::Int64
└──      goto #2
2 ┄ %3 = φ (#1 => %1, #3 => %7)::Int64
│   %4 = φ (#1 => 0, #3 => %8)::Int64
│   %5 = Base.slt_int(%4, n)::Bool
└──      goto #4 if not %5
3 ─ %7 = Base.xor_int(%3, %4)::Int64
│   %8 = Base.add_int(%4, 1)::Int64
└──      goto #2
4 ─      return %3
end

"
        );
        let _ = writeln!(c, "long f{at}(long n){{long s=n*{factor};for(long i=0;i<n;i++)s^=i;return s;}}");
    }
    (text, c)
}

/// Median and least of measured µs.
fn summary(mut micros: Vec<f64>) -> (f64, f64) {
    micros.sort_by(f64::total_cmp);
    (micros[micros.len() / 2], micros[0])
}

fn micros<R>(work: impl FnOnce() -> R) -> (R, f64) {
    let begun = Instant::now();
    let result = work();
    (result, begun.elapsed().as_nanos() as f64 / 1e3)
}

fn row(name: &str, measured: Vec<f64>) {
    let (median, least) = summary(measured);
    println!("| {name} | {median:.1} | {least:.1} |");
}

fn in_the_process(image: &Path, library: &Path, scratch: &Path) -> Done<()> {
    let name = format!("f{CALLED}");
    let mut steps: [Vec<f64>; 10] = Default::default();
    for iteration in 0..ITERATIONS {
        let (engine, made) = micros(|| Engine::new(options()));
        let engine = engine?;
        let (opened, open) = micros(|| engine.open(image));
        let opened = opened?;
        let (func, found) = micros(|| opened.unit().func::<(i64,), i64>(&name));
        let func = func?;
        let (value, called) = micros(|| func.call((5,)));
        black_box(value?);
        let other = format!("f{}", CALLED - 1);
        let (second, found_again) = micros(|| opened.unit().func::<(i64,), i64>(&other));
        let second = second?;
        let (value, called_again) = micros(|| second.call((5,)));
        black_box(value?);
        let (program, read) = micros(|| opened.program().map(|program| program.module().func_count()));
        black_box(program?);
        let copy = scratch.join(format!("c{iteration}.so"));
        std::fs::copy(library, &copy)?;
        // SAFETY: a library of functions without state, made here.
        let (library, opened_c) = micros(|| unsafe { libloading::Library::new(&copy) });
        let library = library?;
        // SAFETY: the function has this type.
        let (symbol, found_c) =
            micros(|| unsafe { library.get::<extern "C" fn(i64) -> i64>(name.as_bytes()) });
        let symbol = symbol?;
        let (value, called_c) = micros(|| symbol(5));
        black_box(value);
        for (step, micros) in steps.iter_mut().zip([
            made,
            open,
            found,
            called,
            found_again,
            called_again,
            read,
            opened_c,
            found_c,
            called_c,
        ]) {
            step.push(micros);
        }
        drop(library);
        std::fs::remove_file(copy)?;
    }
    println!("| step | median µs | least |\n|---|---:|---:|");
    let names = [
        "engine",
        "image: open",
        "image: look a function up",
        "image: first call, which attaches the thread",
        "image: look another function up",
        "image: its first call",
        "image: read the program",
        "C: dlopen",
        "C: dlsym",
        "C: first call",
    ];
    for (name, measured) in names.into_iter().zip(steps) {
        row(name, measured);
    }
    Ok(())
}

/// A package of a program opened in a session, and a function of it called.
fn packages(text: &[u8], called: &str, argument: Option<i64>, scratch: &Path) -> Done<()> {
    let package = PackageBuild::new("startup").build(&[("program.jlir", text)], options())?;
    let file = scratch.join("program.pkg");
    image::write(&file, &package.bytes)?;
    println!("\n{} units, {} bytes\n", package.units, package.bytes.len());
    let mut steps: [Vec<f64>; 5] = Default::default();
    for _ in 0..ITERATIONS {
        let (session, made) = micros(|| Session::new(options(), Workers::Caller));
        let session = session?;
        let main = session.create_dylib("main")?;
        let (opened, open) = micros(|| main.open_package(&file));
        opened?;
        let (found, call) = match argument {
            Some(argument) => {
                let (func, found) = micros(|| main.func::<(i64,), i64>(called));
                let func = func?;
                let (value, call) = micros(|| func.call((argument,)));
                black_box(value?);
                (found, call)
            }
            None => {
                let (func, found) = micros(|| main.function(called));
                black_box(func?);
                (found, 0.0)
            }
        };
        let compiled = session.stats().compiled_functions;
        if compiled > 0 {
            return Err(format!("{compiled} functions were compiled").into());
        }
        let ((), dropped) = micros(|| drop((main, session)));
        for (step, micros) in steps.iter_mut().zip([made, open, found, call, dropped]) {
            step.push(micros);
        }
    }
    println!("| step | median µs | least |\n|---|---:|---:|");
    let names = ["session", "package: open", "package: look a function up", "package: first call", "end"];
    for (name, measured) in names.into_iter().zip(steps) {
        row(name, measured);
    }
    Ok(())
}

fn processes(image: &Path, text: &Path, library: &Path) -> Done<()> {
    let this = std::env::current_exe()?;
    println!("\n| process | median ms | least |\n|---|---:|---:|");
    for (name, kind, path) in [
        ("nothing", "nothing", text),
        ("an engine", "engine", text),
        ("a session", "session", text),
        ("image: a function by its name", "image", image),
        ("image: a call by text", "call", image),
        ("image: a call by text, of the whole program", "whole", image),
        ("text: read, compile what the call needs", "text", text),
        ("C library", "library", library),
    ] {
        let mut measured = Vec::with_capacity(PROCESSES);
        for _ in 0..PROCESSES {
            let (status, micros) = micros(|| Command::new(&this).arg("--child").arg(kind).arg(path).status());
            if !status?.success() {
                return Err(format!("the process `{kind}` failed").into());
            }
            measured.push(micros / 1e3);
        }
        row(name, measured);
    }
    Ok(())
}

/// One call, in a process of its own.
fn child(kind: &str, path: &Path) -> Done<()> {
    let name = format!("f{CALLED}");
    match kind {
        "engine" => drop(black_box(Engine::new(options())?)),
        "session" => drop(black_box(Session::new(options(), Workers::Caller)?)),
        "image" => {
            let engine = Engine::new(options())?;
            let image = engine.open(path)?;
            black_box(image.unit().func::<(i64,), i64>(&name)?.call((5,))?);
        }
        "call" => {
            let engine = Engine::new(options())?;
            let image = engine.open(path)?;
            let run = image.run(&engine, &format!("{name}(5)"))?;
            black_box(run.evaluator().call(run.call())?);
        }
        "whole" => {
            let engine = Engine::new(options())?;
            let image = engine.open(path)?;
            let call = image.program()?.call(&format!("{name}(5)"))?;
            black_box(Evaluator::of_image(&image, &engine)?.call(&call)?);
        }
        "text" => {
            let engine = Engine::new(options())?;
            let program = Program::read("startup", &std::fs::read(path)?)?;
            let call = program.call(&format!("{name}(5)"))?;
            black_box(Evaluator::native(&program, &engine).call(&call)?);
        }
        "library" => {
            // SAFETY: a library of functions without state, made here.
            let library = unsafe { libloading::Library::new(path)? };
            // SAFETY: the function has this type.
            let function = unsafe { library.get::<extern "C" fn(i64) -> i64>(name.as_bytes())? };
            black_box(function(5));
        }
        _ => {}
    }
    Ok(())
}

/// Bytes of the image by section, for each function.
fn file(bytes: &[u8], functions: usize) -> Done<()> {
    let file = object::File::parse(bytes)?;
    println!("| part | bytes a function |\n|---|---:|");
    println!("| file | {:.0} |", bytes.len() as f64 / functions as f64);
    for name in [".brolga.tables", ".text", ".symtab", ".strtab"] {
        let size = file.section_by_name(name).map_or(0, |section| section.size());
        println!("| {name} | {:.0} |", size as f64 / functions as f64);
    }
    let relocations = file.dynamic_relocations().map_or(0, Iterator::count);
    let imports = file.section_by_name(".brolga.imports").map_or(0, |section| section.size() / 8);
    println!(
        "\n{relocations} relocations of the system's loader; {imports} words of imports and constants\n"
    );
    Ok(())
}

fn main() -> Done<()> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [flag, kind, path] = args.as_slice()
        && flag == "--child"
    {
        return child(kind, Path::new(path));
    }
    if let [flag, file, called, argument @ ..] = args.as_slice()
        && flag == "--package"
    {
        let folder = tempfile::tempdir()?;
        let argument = argument.first().map(|argument| argument.parse()).transpose()?;
        return packages(&std::fs::read(file)?, called, argument, folder.path());
    }
    let functions = args.first().map_or(Ok(FUNCTIONS), |count| count.parse::<usize>())?.max(CALLED + 1);
    let folder = tempfile::tempdir()?;
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let (text, c) = sources(functions);
    std::fs::write(path("program.jlir"), &text)?;
    std::fs::write(path("library.c"), c)?;
    let program = Program::read("program.jlir", text.as_bytes())?;
    let bytes = image::build(&program, &options())?;
    image::write(path("program.so"), &bytes)?;
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-shared", "-fPIC", "-o"]).arg(path("library.so")).arg(path("library.c"));
    if !compile.status()?.success() {
        return Err("the C compiler failed".into());
    }
    println!("{functions} functions\n");
    file(&bytes, functions)?;
    in_the_process(&path("program.so"), &path("library.so"), folder.path())?;
    packages(sources(1000).0.as_bytes(), &format!("f{CALLED}"), Some(5), folder.path())?;
    processes(&path("program.so"), &path("program.jlir"), &path("library.so"))
}
