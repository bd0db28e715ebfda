//! Instructions and calls that the final code of printed Julia programs must have, and must not have.

use std::path::PathBuf;
use std::process::Command;

mod support;

use support::root;

#[test]
fn loops_run_in_lanes() {
    let found = root().ancestors().map(|dir| dir.join("shared/julia/min")).find(|dir| dir.is_dir());
    let Some(folder) = found else {
        println!("skipped: no folder `shared/julia` beside the checkout");
        return;
    };
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let loops = paths
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vectorize_")));
    let mut count = 0;
    for path in loops {
        let as_text = path.extension().is_some_and(|ext| ext == "jlir");
        let args: &[&str] =
            if as_text { &["opt", "--passes=vectorize"] } else { &["compile", "-O3", "--emit=low"] };
        let done =
            Command::new(env!("CARGO_BIN_EXE_brolga")).args(args).arg(path).output().expect("the command");
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.contains("lanes("), "{}: no lanes in\n{text}", path.display());
        count += 1;
    }
    assert_eq!(count, 3);
}

/// Strings, arrays and collected arguments are made in place, and no test of a φ's missing edge is left: what the final code of these
/// programs must not have.
#[test]
fn final_code_has_no_calls_by_name_and_no_undefined_flags() {
    let by_name = ["brolga_julia_call", "brolga_apply_builtin"];
    let flags = ["brolga_throw_undef_var"];
    let programs: [(&str, &[&str]); 7] = [
        ("reverse_bytes_110", &by_name),
        ("array3d_110", &by_name),
        ("push_pop_110", &by_name),
        ("any_all_110", &flags),
        ("zip_112", &flags),
        ("reverse_bytes_110", &flags),
        ("view_sum_111", &flags),
    ];
    let folder = root().join("tests/julia");
    for (name, unwanted) in programs {
        let path = folder.join(format!("{name}.txt"));
        let done = Command::new(env!("CARGO_BIN_EXE_brolga"))
            .args(["compile", "-O2", "--emit=low"])
            .arg(&path)
            .output()
            .expect("the command");
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(text.contains("low function"), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        for word in unwanted {
            assert!(!text.contains(word), "{name}: `{word}` in\n{text}");
        }
    }
}
