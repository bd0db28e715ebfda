//! Libraries of C as object files and archives in sessions. `tests/c_libraries.sh` compiles them and runs this.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use brolga::session::{Dependants, OnDrop};
use brolga::{Options, Session, Workers};

#[path = "support/doors.rs"]
mod doors;

/// Libraries: the argument of their check, and a function that programs call with one integer.
const LIBRARIES: [(&str, i64, &str); 4] = [
    ("zlib", 20_000, "compressBound"),
    ("lz4", 20_000, "LZ4_compressBound"),
    ("sqlite", 500, "sqlite3_sleep"),
    ("blake3", 60_000, "blake3_version"),
];

/// How often each is loaded and unloaded.
const LOADS: usize = 1000;

#[expect(clippy::disallowed_methods, reason = "the script says where the object files are")]
fn objects(name: &str, model: &str) -> Vec<PathBuf> {
    let folder =
        std::env::var("C_LIBRARIES").expect("`tests/c_libraries.sh` says where the object files are");
    let folder = Path::new(&folder).join(format!("{name}{model}"));
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "o"));
    paths.sort();
    paths
}

/// What the check returns in a program of the system's linker.
fn by_the_system(paths: &[PathBuf], argument: i64, model: &str) -> i64 {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (main, program) = (folder.join("c_libraries.c"), folder.join("c_libraries"));
    let source = format!(
        "#include <stdio.h>\nlong check(long);\nint main(void) {{ printf(\"%ld\\n\", check({argument})); return 0; }}\n"
    );
    std::fs::write(&main, source).unwrap();
    let kind = if model == "-fno-pic" { "-no-pie" } else { "-pie" };
    let mut command = Command::new("gcc");
    command.arg(kind).arg(&main).args(paths).arg("-o").arg(&program).arg("-lm");
    assert!(command.status().unwrap().success());
    let said = Command::new(&program).output().unwrap();
    String::from_utf8_lossy(&said.stdout).trim().parse().unwrap()
}

/// A program with a function `check` that calls the check, and `own` that calls a function of the library.
fn program(own: &str) -> String {
    let call = |name: &str, callee: &str| {
        format!(
            "function {name}(x::Int64)::Int64\n\
             1 ─ %1 = $(Expr(:foreigncall, :(:{callee}), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
             └──      return %1\nend\n"
        )
    };
    call("check", "check") + &call("own", own)
}

fn archive(paths: &[PathBuf]) -> Vec<u8> {
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c_libraries.a");
    let _ = std::fs::remove_file(&made);
    assert!(Command::new("ar").arg("rcs").arg(&made).args(paths).status().unwrap().success());
    std::fs::read(&made).unwrap()
}

/// Bytes of memory of the process.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
#[ignore = "tests/c_libraries.sh compiles the libraries"]
fn libraries_do_what_they_do_in_programs_and_leave_nothing() {
    for (name, argument, own) in LIBRARIES {
        for model in ["-fPIC", "-fPIE", "-fno-pic"] {
            let paths = objects(name, model);
            let wanted = by_the_system(&paths, argument, model);
            let files: Vec<(String, Vec<u8>)> = paths
                .iter()
                .map(|path| {
                    (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())
                })
                .collect();
            let archive = archive(&paths);
            let session = Session::new(doors::open(Options::new()), Workers::Caller).unwrap();
            let library = session.create_dylib("library").unwrap();
            library.add_process_symbols(|_| true).unwrap();
            library.add_library("libm.so.6").unwrap();
            let mut loads = 0;
            let mut once = |as_archive: bool, argument: i64| {
                let tracker = library.create_tracker(OnDrop::Keep).unwrap();
                let tracked = library.tracked_by(&tracker);
                match as_archive {
                    true => tracked.add_archive("library.a", &archive).unwrap(),
                    false => tracked
                        .add_objects(files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))
                        .unwrap(),
                }
                loads += 1;
                let main = session.create_dylib(&format!("main {loads}")).unwrap();
                main.add_process_symbols(|_| true).unwrap();
                main.define(main.read("main.jlir", program(own).as_bytes()).unwrap()).unwrap();
                main.link_against(&library).unwrap();
                let call = |function: &str, x: i64| {
                    main.func::<(i64,), i64>(function)
                        .unwrap_or_else(|error| panic!("{error:?}"))
                        .call((x,))
                        .unwrap()
                };
                let found = (call("check", argument), call("own", 7));
                session.close_dylibs(&[&main], Dependants::Keep).unwrap();
                tracker.remove(Dependants::Keep).unwrap();
                session.runtime().free_retired();
                found
            };
            let (first, second) = (once(false, argument), once(true, argument));
            assert_eq!((first.0, second.0), (wanted, wanted), "{name} {model}");
            (0..100).for_each(|_| assert_ne!(once(false, 10).0, 0));
            let (memory, code, start) = (resident(), session.stats().code.in_use, std::time::Instant::now());
            (0..LOADS).for_each(|_| assert_ne!(once(false, 10).0, 0));
            let taken = start.elapsed() / LOADS as u32;
            let grown = resident().saturating_sub(memory);
            let bytes: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
            println!(
                "{name} {model}: {} files of {bytes} bytes, {LOADS} times, {taken:?} each, {grown} bytes more",
                files.len()
            );
            assert!(grown < 8 << 20, "{name} {model}: {grown} bytes more than before");
            assert_eq!(session.stats().code.in_use, code, "{name} {model}");
        }
    }
}
