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
