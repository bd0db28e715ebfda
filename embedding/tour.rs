//! A tour of sessions, for those who come from LLVM's ORC: what its tutorials do, in one program.
//!
//! ```text
//! $ cargo run --example tour
//! ```
//!
//! | step | ORC | here |
//! |---|---|---|
//! | a small language, compiled from its own trees when a function is called | `MaterializationUnit`, lazy re-exports | `Dylib::promise` |
//! | a facade that passes some names on | `reexports` | `Dylib::reexport` |
//! | an object file of C in the same session, which calls the language | `ObjectLinkingLayer` | `Dylib::add_object` |
//! | a transform of all programs | `IRTransformLayer` | `Session::transform` |
//! | removal | `ResourceTracker` | `Tracker` |
//! | what is there | `dump`, debugger plugins | `Session::dump`, `Session::symbolize` |

use std::error::Error;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use brolga::build::{Builder, Intrinsic, Module, Type, Value};
use brolga::session::{Dependants, Dylib, Exports, OnDrop, Signature};
use brolga::{Doors, Options, Session, Workers};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// An expression of the language, with one variable.
#[derive(Clone)]
enum Expr {
    Number(i64),
    X,
    Add(Box<Expr>, Box<Expr>),
    Times(Box<Expr>, Box<Expr>),
    Call(String, Box<Expr>),
}

impl Expr {
    fn emit(&self, b: &mut Builder<'_>) -> Done<Value> {
        Ok(match self {
            Expr::Number(n) => b.int(Type::INT64, i128::from(*n))?,
            Expr::X => b.param(0)?,
            Expr::Add(left, right) => {
                let parts = [left.emit(b)?, right.emit(b)?];
                b.intrinsic(Intrinsic::AddInt, &parts)?
            }
            Expr::Times(left, right) => {
                let parts = [left.emit(b)?, right.emit(b)?];
                b.intrinsic(Intrinsic::MulInt, &parts)?
            }
            Expr::Call(name, arg) => {
                let arg = arg.emit(b)?;
                b.invoke(name, &[arg], Type::INT64)?
            }
        })
    }
}

fn times(left: Expr, right: Expr) -> Expr {
    Expr::Times(Box::new(left), Box::new(right))
}

fn add(left: Expr, right: Expr) -> Expr {
    Expr::Add(Box::new(left), Box::new(right))
}

fn call(name: &str, arg: Expr) -> Expr {
    Expr::Call(name.to_owned(), Box::new(arg))
}

/// Promises a function: its tree is kept, and compiled when the function is called first.
fn def(dylib: &Dylib, name: &str, body: Expr) -> Done<()> {
    let signature = Signature::new(name, &[Type::INT64], Type::INT64);
    let name = name.to_owned();
    Ok(dylib.promise(&[signature], move |dylib| {
        let cx = dylib.context();
        let mut b = Builder::high(&cx, &name, &[("x", Type::INT64)], Type::INT64);
        let result = body.emit(&mut b)?;
        b.ret(&[result])?;
        let func = b.finish()?;
        let mut module = Module::new(cx);
        module.add_func(func)?;
        Ok(module)
    })?)
}

/// An object file that the C compiler makes: `twice` calls a function of the language by its name.
fn object() -> Done<Vec<u8>> {
    let folder = std::env::temp_dir().join(format!("brolga-tour-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let (source, object) = (folder.join("twice.c"), folder.join("twice.o"));
    std::fs::write(&source, "long square(long); long twice(long x) { return 2 * square(x); }")?;
    let done = Command::new("cc").args(["-c", "-O2", "-fPIC", "-o"]).arg(&object).arg(&source).status()?;
    let bytes = std::fs::read(&object);
    std::fs::remove_dir_all(&folder)?;
    if done.success() { Ok(bytes?) } else { Err("the C compiler failed".into()) }
}

/// A program in the text form that calls C.
const CALLS_C: &str = "function through_c(x::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:twice), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
└──      return %1
end";

/// The tour. Returns the lines that it prints.
fn tour() -> Done<Vec<String>> {
    // SAFETY: the object file below is called as its source says.
    let doors = unsafe { Doors::open() };
    let session = Session::new(Options::new().doors(doors), Workers::Pool(2))?;
    let [library, facade, main] =
        [session.create_dylib("library")?, session.create_dylib("facade")?, session.create_dylib("main")?];
    let mut lines = Vec::new();

    // All programs come by here before they are defined.
    let seen = Arc::new(Mutex::new(0));
    let count = seen.clone();
    session.transform(move |_, module| {
        *count.lock().unwrap_or_else(PoisonError::into_inner) += module.func_count();
        Ok(module)
    });

    // Lazy compilation from the language's own trees.
    def(&library, "square", times(Expr::X, Expr::X))?;
    def(&library, "internal", Expr::Number(7))?;
    facade.reexport(&library, Exports::only(["square"]))?;
    main.link_against(&facade)?;
    def(&main, "poly", add(call("square", Expr::X), add(times(Expr::Number(3), Expr::X), Expr::Number(1))))?;
    let poly = main.func::<(i64,), i64>("poly")?;
    lines.push(format!("compiled before the first call: {}", session.stats().compiled_functions));
    lines.push(format!("poly(10) = {}", poly.call((10,))?));
    lines.push(format!("compiled then: {}", session.stats().compiled_functions));
    lines.push(format!("`internal` is seen: {}", main.function("internal").is_ok()));

    // C in the same session: it calls the language, and the language calls it.
    let objects = session.create_dylib("objects")?;
    objects.link_against(&facade)?;
    objects.add_object("twice.o", &object()?)?;
    main.link_against(&objects)?;
    let tracker = main.create_tracker(OnDrop::Keep)?;
    main.tracked_by(&tracker).define(main.read("calls_c.jlir", CALLS_C.as_bytes())?)?;
    lines.push(format!("through_c(5) = {}", main.func::<(i64,), i64>("through_c")?.call((5,))?));
    lines.push(format!("functions transformed: {}", seen.lock().unwrap_or_else(PoisonError::into_inner)));

    // What is used is not removed, unless it is asked for.
    let refused = objects.clear(Dependants::Deny).err().map(|error| error.to_string());
    lines.push(format!("without C: {}", refused.unwrap_or_default()));
    tracker.remove(Dependants::Deny)?;
    objects.clear(Dependants::Deny)?;
    lines.push(format!("`through_c` is there: {}", main.function("through_c").is_ok()));

    let dump = session.dump();
    let of_main = dump.lines().map(str::trim).find(|line| line.starts_with("poly")).unwrap_or_default();
    lines.push(of_main.split_whitespace().collect::<Vec<_>>().join(" "));
    session.end();
    Ok(lines)
}

fn main() -> Done<()> {
    tour()?.iter().for_each(|line| println!("{line}"));
    Ok(())
}

#[cfg(all(test, target_os = "linux", target_arch = "x86_64"))]
mod tests {
    #[test]
    fn the_tour_goes_as_it_says() {
        let lines = super::tour().unwrap_or_else(|error| panic!("{error}"));
        let expected = [
            "compiled before the first call: 0",
            "poly(10) = 131",
            "compiled then: 2",
            "`internal` is seen: false",
            "through_c(5) = 50",
            "functions transformed: 3",
            "without C: `twice` of `objects` used by `through_c(Int64)` of `main`",
            "`through_c` is there: false",
            "poly(Int64) ready",
        ];
        assert_eq!(lines, expected);
    }
}
