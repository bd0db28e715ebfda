//! Results of one run of the command that another run uses: statements, packages, images, a cache.

const LIBRARY: &str = include_str!("../../../tests/support/library.jlir");

const APPLICATION: &str = include_str!("../../../tests/support/application.jlir");

/// Runs the command: what it prints, and what it says on the standard error. It ends well.
fn brolga(args: &[&str]) -> (String, String) {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_brolga")).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, said) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{args:?}: {said}");
    (out, said)
}

#[test]
fn the_command_traces_builds_and_runs() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (library, app, trace, package, cache, key) =
        (at("library.jlir"), at("app.jlir"), at("trace.txt"), at("app.pkg"), at("cache"), at("key"));
    std::fs::write(&library, LIBRARY).unwrap();
    let both = at("both.jlir");
    std::fs::write(&both, format!("{LIBRARY}{APPLICATION}")).unwrap();
    std::fs::write(&app, APPLICATION).unwrap();
    let traced = ["run", &both, "--tiered", "1000", "--call", "twice(5)", "--trace-compile", &trace];
    assert_eq!(brolga(&[&traced[..], &["--trace-compile-timing"]].concat()).0, "32\n");
    let text = std::fs::read_to_string(&trace).unwrap();
    let first = text.lines().find(|line| line.contains("twice")).unwrap();
    assert!(first.starts_with("precompile twice(Int64)  # tier 1, ") && first.ends_with(" ms"), "{text}");

    brolga(&["image", "build", "-q", &library, &app, "-o", &package]);
    let (out, said) = brolga(&["run", "--image", &package, "--call", "twice(5)", "--recompiled"]);
    assert_eq!((out.as_str(), said.as_str()), ("32\n", ""));
    brolga(&["image", "build", &both, "--package", "-o", &package, "--statements", &trace]);
    assert_eq!(brolga(&["run", "--image", &package, "--call", "shifted(5)"]).0, "107\n");

    // The same by a cache: the second run finds the run itself, and all that it refers to.
    let cached = |call: &str| {
        let args = ["run", &both, "--call", call, "--cache", &cache, "--cache-key", &key, "--cache-stats"];
        brolga(&args)
    };
    assert_eq!(cached("twice(5)").0, "32\n");
    let (out, said) = cached("twice(5)");
    assert_eq!(out, "32\n");
    assert!(said.contains(" hits, 0 misses") && !said.contains("cache: 0 hits"), "{said}");

    let image = at("app.so");
    let (_, said) = brolga(&["image", "build", "-q", &both, "-o", &image, "--timings"]);
    assert!(said.contains("functions, passes ") && said.contains("thread 0 "), "{said}");
    assert_eq!(brolga(&["run", "--image", &image, "--call", "twice(5)"]).0, "32\n");
}

#[test]
fn a_package_is_run_with_what_it_was_built_on_and_described() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (library, app, base, on, against) =
        (at("library.jlir"), at("app.jlir"), at("base.pkg"), at("on.pkg"), at("against.pkg"));
    std::fs::write(&library, LIBRARY).unwrap();
    std::fs::write(&app, APPLICATION).unwrap();
    brolga(&["image", "build", &library, "--package", "-o", &base]);
    brolga(&["image", "build", &app, "--package", "--needs", &base, "-o", &on]);
    brolga(&["image", "build", &app, "--package", "--against", &library, "-o", &against]);
    let run = ["--call", "twice(5)", "--recompiled"];
    let with = |file: &str, more: &[&str]| brolga(&[&["run", "--image", file][..], more, &run].concat());
    assert_eq!(with(&on, &["--needs", &base]), ("32\n".to_owned(), String::new()));
    assert_eq!(with(&against, &["--against", &library]), ("32\n".to_owned(), String::new()));
    let (out, _) = brolga(&["image", "info", &on, "--source", &app]);
    for begin in ["package    on, build ", "needs      base, build ", "setting    the level: ", "source     "]
    {
        assert!(out.lines().any(|line| line.starts_with(begin)), "{begin} in {out}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_executable_is_made_by_the_command_alone() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    // Away from all libraries, as it is installed.
    let (command, program, app) = (at("brolga"), at("both.jlir"), at("app"));
    std::fs::copy(env!("CARGO_BIN_EXE_brolga"), &command).unwrap();
    std::fs::write(&program, format!("{LIBRARY}{APPLICATION}")).unwrap();
    // Another test's child may still hold the copy open for writing, until it has begun.
    let run = |path: &str, args: &[&str]| {
        let made = || std::process::Command::new(path).args(args).output();
        let is_busy = |made: &std::io::Result<_>| {
            made.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
        };
        std::iter::repeat_with(made).find(|made| !is_busy(made)).unwrap().unwrap()
    };
    let build = ["image", "build", "-q", &program, "--executable", "-o", &app, "--call", "twice(5)"];
    let made = run(&command, &build);
    let said = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success() && said.contains("is a copy of this command"), "{said}");
    let done = run(&app, &[]);
    assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"32\n"[..]));
    // Damage of the image is said.
    let mut bytes = std::fs::read(&app).unwrap();
    let header = bytes.windows(8).rposition(|part| part == b"BRLGIMG\x1a").unwrap();
    bytes[header + 16] ^= 1;
    std::fs::remove_file(&app).unwrap();
    std::fs::copy(&command, &app).unwrap();
    std::fs::write(&app, &bytes).unwrap();
    let done = run(&app, &[]);
    assert_eq!(done.status.code(), Some(4), "{}", String::from_utf8_lossy(&done.stderr));
}
