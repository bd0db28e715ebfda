//! The command and the system: output that cannot be written, and limits of memory. By both engines, and in an executor.
#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

mod support;

use support::root;

/// Runs the command on a program, with this standard output: its status, and what it says.
fn run(args: &[&str], program: &str, stdout: Stdio) -> (Option<i32>, String) {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let name = format!("command-{}-{:?}.jlir", std::process::id(), std::thread::current().id());
    let file = folder.join(name.replace(['(', ')'], ""));
    std::fs::write(&file, program).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    let output = command.args(args).arg(&file).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn full() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").unwrap().into()
}

const ENGINES: [&str; 3] = ["--jit", "--interp", "--executor"];

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let line = "function main()::Nothing\n1 ─      invoke Main.println(\"text\"::String)::Nothing\n└──      return nothing\nend\n";
    // Without a line's end it is written when the process ends.
    let part = line.replace("println", "print");
    // C holds its text back.
    let by_c = "function main()::Nothing\n1 ─      $(Expr(:foreigncall, :(:putchar), Int32, svec(Int32), 0, :(:ccall), Int32(65)))::Int32\n\
                └──      return nothing\nend\n";
    let value = "function main()::Int64\n1 ─      return 1\nend\n";
    let test = format!("# check: main() == 1\n{value}");
    for engine in ENGINES {
        for (args, program) in [
            (&["run", engine][..], line),
            (&["run", engine], &part),
            (&["run", engine], by_c),
            (&["run", engine, "--call", "main()"], value),
            (&["test", engine], &test),
        ] {
            let (status, said) = run(args, program, full());
            assert_eq!(status, Some(4), "{args:?}: {said}");
            assert!(said.contains("No space left"), "{args:?}: {said}");
            assert_eq!(run(args, program, Stdio::null()).0, Some(0), "{args:?}");
        }
    }
}

#[test]
fn an_exception_goes_before_output_that_cannot_be_written() {
    let program = "function main()::Int64\n\
        1 ─      invoke Main.print(\"text\"::String)::Nothing\n\
        │   %2 = Base.checked_sdiv_int(1, 0)::Int64\n\
        └──      return %2\nend\n";
    for engine in ENGINES {
        let (status, said) = run(&["run", engine], program, full());
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains("DivideError"), "{said}");
    }
}

/// `exit` and `abort` end the process alike in compiled code and in the interpreter: no handler catches them, and a callback may call them.
#[test]
fn functions_that_end_the_process_end_it() {
    let program = |end: &str| {
        format!(
            "function leave(a::Ptr{{Int64}}, b::Ptr{{Int64}})::Int32\n\
             1 ─      {end}\n\
             └──      return Int32(0)\nend\n\
             function main()::Nothing\n\
             1 ─      invoke Main.println(\"before\"::String)::Nothing\n\
             2 ─ %2 = enter #4\n\
             3 ─ %3 = $(Expr(:foreigncall, :(:malloc), Ptr{{Int64}}, svec(UInt64), 0, :(:ccall), 0x0000000000000010))::Ptr{{Int64}}\n\
             │        Base.pointerset(%3, 1, 1, 1)::Ptr{{Int64}}\n\
             │        Base.pointerset(%3, 2, 2, 1)::Ptr{{Int64}}\n\
             │   %6 = $(Expr(:cfunction, Ptr{{Nothing}}, :(:leave), Int32, svec(Ptr{{Int64}}, Ptr{{Int64}}), :(:ccall)))::Ptr{{Nothing}}\n\
             │        $(Expr(:foreigncall, :(:qsort), Nothing, svec(Ptr{{Int64}}, UInt64, UInt64, Ptr{{Nothing}}), 0, :(:ccall), :(%3), 0x0000000000000002, 0x0000000000000008, :(%6)))::Nothing\n\
             │        $(Expr(:leave, :(%2)))\n\
             └──      goto #5\n\
             4 ─      $(Expr(:pop_exception, :(%2)))::Any\n\
             5 ┄      return nothing\nend\n"
        )
    };
    let exit = |name: &str, status: i32| {
        format!(
            "$(Expr(:foreigncall, :(:{name}), Nothing, svec(Int32), 0, :(:ccall), Int32({status})))::Nothing"
        )
    };
    let abort = "$(Expr(:foreigncall, :(:abort), Nothing, svec(), 0, :(:ccall)))::Nothing".to_owned();
    for engine in ENGINES {
        for (end, expected) in [
            (exit("exit", 0), Some(0)),
            (exit("exit", 7), Some(7)),
            (exit("exit", 259), Some(3)),
            (exit("_exit", 4), Some(4)),
            (exit("quick_exit", 5), Some(5)),
            (abort.clone(), None),
        ] {
            let (status, said) = run(&["run", engine], &program(&end), Stdio::piped());
            assert_eq!(status, expected, "{engine}: {end}: {said}");
        }
    }
    // A test of a program that ends has failed, where the process is the interpreter's.
    let test = format!("# check: main() == nothing\n{}", program(&exit("exit", 7)));
    let (status, said) = run(&["test", "--interp"], &test, Stdio::piped());
    assert_eq!(status, Some(1), "{said}");
}

#[test]
fn the_heap_has_the_limit_that_is_given() {
    // A list that grows forever.
    let program = "global LAST::Any = nothing\nmutable struct Item\n    next::Any\n    a::Int64\n    b::Int64\nend\n\
        function main()::Int64\n\
        1 ─      goto #2\n\
        2 ┄ %2 = φ (#1 => nothing, #2 => %3)::Any\n\
        │   %3 = %new(Main.Item, %2, 1, 2)::Main.Item\n\
        │        Base.setglobal!(Main, :LAST, %3)::Any\n\
        └──      goto #2\nend\n";
    for engine in ENGINES {
        let (status, said) = run(&["run", engine, "--heap-limit", "8M"], program, Stdio::null());
        assert_eq!(status, Some(1), "{engine}: {said}");
        assert!(said.contains("OutOfMemoryError"), "{engine}: {said}");
    }
    for wrong in ["0", "many", "8X", "99999999T"] {
        let (status, said) = run(&["run", "--heap-limit", wrong], program, Stdio::null());
        assert_eq!(status, Some(2), "{wrong}: {said}");
    }
}

/// Runs the command with limits that `sh` sets.
fn limited(limits: &str) -> (Option<i32>, String) {
    let example = root().join("examples/fib.jlir");
    let script = format!("ulimit {limits} && exec \"$0\" run --call 'fib(10)' \"$1\"");
    let mut command = Command::new("sh");
    let output = command.args(["-c", &script, env!("CARGO_BIN_EXE_brolga")]).arg(example).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn code_takes_less_where_addresses_are_limited() {
    for kilobytes in [1_500_000, 600_000, 200_000] {
        assert_eq!(limited(&format!("-v {kilobytes}")), (Some(0), "55\n".to_owned()), "{kilobytes}");
    }
}

#[test]
fn a_refusal_of_the_system_has_its_own_status() {
    // Without a file descriptor the system does not tell where the stack ends.
    assert_eq!(limited("-n 4").0, Some(4));
}
