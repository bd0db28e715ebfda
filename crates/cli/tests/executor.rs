//! `--executor`: the examples print the same in a process of their own, and a crash there is an error of the command.
#![cfg(target_os = "linux")]

use std::process::{Command, Output};

mod support;

use support::root;

fn brolga(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_brolga")).args(args).current_dir(root()).output().unwrap()
}

#[test]
fn examples_print_the_same() {
    let mut files: Vec<_> = std::fs::read_dir(root().join("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jlir"))
        .collect();
    files.sort();
    assert!(files.len() > 10);
    for file in files {
        let file = file.to_str().unwrap();
        let (here, there) = (brolga(&["run", file]), brolga(&["run", "--executor", file]));
        assert_eq!(there.status.code(), here.status.code(), "{file}");
        assert_eq!(String::from_utf8_lossy(&there.stdout), String::from_utf8_lossy(&here.stdout), "{file}");
        assert_eq!(String::from_utf8_lossy(&there.stderr), String::from_utf8_lossy(&here.stderr), "{file}");
    }
}

#[test]
fn a_crash_is_an_error_with_its_signal() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("wild-{}.jlir", std::process::id()));
    let program = "
# check: peek(0x0000000000000010) == 1
# check: fine(1) == 1
# check: peek(0x0000000000000010) == 2
# check: fine(2) == 2
function peek(address::UInt64)::Int64
1 ─ %1 = Base.bitcast(Ptr{Int64}, address)::Ptr{Int64}
│   %2 = Base.pointerref(%1, 1, 1)::Int64
└──      return %2
end
function fine(n::Int64)::Int64
1 ─      return n
end
";
    std::fs::write(&file, program).unwrap();
    let path = file.to_str().unwrap();
    let run = brolga(&["run", "--executor", "--call", "peek(0x0000000000000010)", path]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(4), "{said}");
    assert!(said.contains("the executor was lost: signal 11"), "{said}");
    let tested = brolga(&["test", "--executor", path]);
    let out = String::from_utf8_lossy(&tested.stdout);
    assert_eq!(tested.status.code(), Some(1), "{out}");
    assert!(out.contains("2 passed, 2 failed"), "each crash fails its own test: {out}");
    let missing = brolga(&["run", "--executor=/nowhere/executor", path]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("the executor `/nowhere/executor` cannot be started"), "{said}");
    std::fs::remove_file(&file).unwrap();
}
