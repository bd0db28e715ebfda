//! C programs of the tests: built once against the static library, run with arguments.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A C program, in a folder of its own with an object file.
pub(crate) struct Program {
    folder: PathBuf,
    path: PathBuf,
}

impl Program {
    /// Builds a program of the folder of tests, and the object file `object.c`.
    pub(crate) fn build(source: &str) -> Program {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        // A later run replaces the program, which is large.
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{source}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("program");
        let object = cc(|cc| cc.arg("-c").arg(tests.join("object.c")).arg("-o").arg(folder.join("object.o")));
        let archive = archive();
        let program = cc(|cc| {
            cc.arg("-I").arg(tests.join("../include")).arg(tests.join(source)).arg(&archive);
            cc.args(["-s", "-lm", "-lpthread", "-ldl", "-o"]).arg(&path)
        });
        for made in [object, program] {
            assert!(made.status.success(), "{source}: {}", String::from_utf8_lossy(&made.stderr));
        }
        Program { folder, path }
    }

    /// The path of the object file.
    pub(crate) fn object(&self) -> String {
        self.folder.join("object.o").display().to_string()
    }

    /// Runs the program, which has to succeed. Returns what it prints.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let run = Command::new(&self.path).args(args).output().expect("the program runs");
        let told = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{args:?}: {:?} {told}", run.status);
        String::from_utf8_lossy(&run.stdout).into_owned()
    }
}

fn cc(args: impl FnOnce(&mut Command) -> &mut Command) -> Output {
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    args(&mut cc).output().expect("a C compiler")
}

/// The static library, which cargo builds with the tests.
fn archive() -> PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    let folder = test.parent().expect("a folder");
    let places = [folder.join("libbrolga_capi.a"), folder.join("../libbrolga_capi.a")];
    places.into_iter().find(|path| path.exists()).expect("cargo builds the static library with the test")
}
