//! A directory for code that several processes use.

use std::process::{Command, Stdio};

const SOURCE: &str = concat!(
    include_str!("../../../tests/support/outlives.jlir"),
    include_str!("../../../tests/support/chain.jlir")
);

#[test]
fn a_directory_takes_what_several_processes_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("program.jlir"), SOURCE).unwrap();
    let run = |extra: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
        command.arg("run").arg(path("program.jlir")).args(["--call", "chain(100)", "--cache-stats"]);
        command.arg("--cache").arg(path("cache")).arg("--cache-key").arg(path("key")).args(extra);
        command
    };
    for extra in [&[][..], &["--tiered", "2"][..], &["-O0"][..]] {
        let processes: Vec<_> = (0..4)
            .map(|_| {
                let mut command = run(extra);
                command.stdout(Stdio::piped()).stderr(Stdio::piped());
                command.spawn().unwrap()
            })
            .collect();
        for process in processes {
            let output = process.wait_with_output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), "5050\n");
        }
        let output = run(extra).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            said.contains(" 0 misses, 0 refused,") && !said.contains("cache: 0 hits"),
            "{extra:?}: {said}"
        );
    }
    // Another key, another user: nothing is found, and nothing is refused.
    let mut other = run(&[]);
    other.arg("--cache-key").arg(path("other"));
    let show = |extra: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_brolga")).arg("cache").arg(path("cache")).args(extra).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    assert!(!show(&[]).contains(" 0 entries"));
    assert!(show(&["--clear"]).ends_with(": 0 entries, 0 bytes\n"));
}
