//! Features of C and C++, one a file of `tests/c_features/`, as object files in a session and as programs of the system's linker: the same value.
//!
//! Every file defines `long feature(void)`. It is compiled by gcc, and by clang where that is installed, with `-fPIC`, `-fPIE` and `-fno-pic`, at `-O0` and at `-O2`. Lines at its start say more:
//!
//! | line | means |
//! |---|---|
//! | `// flags: …` | more options of the compiler |
//! | `// refused -fPIE …: text` | with these options the session refuses it, and says `text` |
//! | `// unresolved: text` | the session names a missing symbol with `text` |
//! | `// gcc-only:` | clang makes something else of it, or does not compile it |
//! | `// not-linked:` | the system's linker is not tried |
//! | `// value: n` | the value, where the system's linker makes another one |
//! | `//// other.c` | the rest is another file, which is linked with the first |
//!
//! `tests/c_features_aarch64.sh` runs those without assembly on aarch64, under an emulator.
//!
//! `C_FEATURES=text` runs the files whose names have the text, and prints what is found.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga::{Options, Session, Workers};

#[path = "support/doors.rs"]
mod doors;

const MODELS: [&str; 3] = ["-fPIC", "-fPIE", "-fno-pic"];
const LEVELS: [&str; 2] = ["-O0", "-O2"];

/// The compilers of C and of C++.
#[derive(Clone, Copy)]
struct Compiler([&'static str; 2]);

const GCC: Compiler = Compiler(["gcc", "g++"]);
const CLANG: Compiler = Compiler(["clang", "clang++"]);

impl Compiler {
    fn of(self, is_cpp: bool) -> &'static str {
        self.0[usize::from(is_cpp)]
    }

    fn is_there(self) -> bool {
        self.0.iter().all(|name| Command::new(name).arg("--version").output().is_ok())
    }

    /// Whether it has the options of a feature: clang has had `-mtls-dialect` since version 18.
    fn has_options_of(self, feature: &Feature) -> bool {
        let mut command = Command::new(self.of(feature.is_cpp()));
        command.args(&feature.flags).args(["-fsyntax-only", "-x", "c", "/dev/null"]);
        feature.flags.is_empty() || run(&mut command).is_ok()
    }
}

/// A file of the folder.
struct Feature {
    name: String,
    /// Names and texts of sources.
    sources: Vec<(String, String)>,
    flags: Vec<String>,
    /// Options with which it is refused, and what is said.
    refused: Vec<(Vec<String>, String)>,
    unresolved: Option<String>,
    is_linked: bool,
    is_gcc_only: bool,
    value: Option<i64>,
}

impl Feature {
    fn read(path: &Path) -> Feature {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        let mut sources = vec![(name.clone(), String::new())];
        for line in text.lines() {
            match line.strip_prefix("//// ") {
                Some(other) => sources.push((other.to_owned(), String::new())),
                None => {
                    let (_, source) = sources.last_mut().unwrap();
                    source.push_str(line);
                    source.push('\n');
                }
            }
        }
        let said = |word: &str| {
            let prefix = format!("// {word}");
            let lines = text.lines().filter_map(|line| line.strip_prefix(&prefix)?.split_once(':'));
            lines.map(|(with, what)| (words(with), what.trim().to_owned())).collect::<Vec<_>>()
        };
        Feature {
            name,
            sources,
            flags: said("flags").into_iter().flat_map(|(_, flags)| words(&flags)).collect(),
            refused: said("refused "),
            unresolved: said("unresolved").into_iter().next().map(|(_, what)| what),
            is_linked: said("not-linked").is_empty(),
            is_gcc_only: !said("gcc-only").is_empty(),
            value: said("value").first().map(|(_, value)| value.parse().unwrap()),
        }
    }

    fn is_cpp(&self) -> bool {
        self.name.ends_with(".cpp")
    }

    /// Compares the feature in one model and level; the difference if there is one.
    fn check(&self, folder: &Path, compiler: Compiler, model: &str, level: &str) -> Result<(), String> {
        let objects = self.compile(folder, compiler, model, level)?;
        let found = self.in_session(&objects);
        let refusal = self.refused.iter().find(|(models, _)| models.iter().any(|one| one == model));
        let wanted = refusal.map(|(_, what)| what).or(self.unresolved.as_ref());
        if let Some(what) = wanted {
            return match found {
                Err(error) if error.contains(what) => Ok(()),
                other => Err(format!("{other:?} in place of a refusal with {what:?}")),
            };
        }
        let value = match self.value {
            Some(value) => value,
            None => self.by_the_system(folder, compiler, &objects, model)?,
        };
        if found == Ok(value) { Ok(()) } else { Err(format!("{found:?} in place of {value}")) }
    }

    fn compile(
        &self,
        folder: &Path,
        compiler: Compiler,
        model: &str,
        level: &str,
    ) -> Result<Vec<PathBuf>, String> {
        let mut objects = Vec::new();
        for (name, source) in &self.sources {
            let path = folder.join(name);
            std::fs::write(&path, source).unwrap();
            let object = path.with_extension("o");
            let mut command = Command::new(compiler.of(self.is_cpp()));
            command.args(["-w", model, level, "-c"]).args(&self.flags).arg(&path).arg("-o").arg(&object);
            run(command.current_dir(folder))?;
            objects.push(object);
        }
        Ok(objects)
    }

    /// The value of the program that the system's linker makes.
    fn by_the_system(
        &self,
        folder: &Path,
        compiler: Compiler,
        objects: &[PathBuf],
        model: &str,
    ) -> Result<i64, String> {
        assert!(self.is_linked, "{} has a value or is refused", self.name);
        let main = folder.join("main.c");
        let source = "#include <stdio.h>\nlong feature(void);\nint main(void) { printf(\"%ld\\n\", feature()); return 0; }\n";
        std::fs::write(&main, source).unwrap();
        let (object, program) = (folder.join("main.o"), folder.join("program"));
        run(Command::new("gcc").args(["-c", "-fPIC"]).arg(&main).arg("-o").arg(&object))?;
        let kind = if model == "-fno-pic" { "-no-pie" } else { "-pie" };
        let mut command = Command::new(compiler.of(self.is_cpp()));
        command.args([kind, "-w"]).args(&self.flags).args(objects).arg(&object);
        run(command.arg("-o").arg(&program).args(["-lm", "-lpthread"]))?;
        let text = run(&mut Command::new(&program))?;
        text.trim().parse().map_err(|_| format!("the program says {text:?}"))
    }

    /// The value in a session.
    fn in_session(&self, objects: &[PathBuf]) -> Result<i64, String> {
        in_session(objects, self.is_cpp())
    }
}

/// The value of object files in a session.
fn in_session(objects: &[PathBuf], is_cpp: bool) -> Result<i64, String> {
    let session = Session::new(doors::open(Options::new()), Workers::Caller).unwrap();
    let dylib = session.create_dylib("c").unwrap();
    dylib.add_process_symbols(|_| true).unwrap();
    dylib.add_library("libm.so.6").unwrap();
    if is_cpp {
        dylib.add_library("libstdc++.so.6").unwrap();
    }
    let files: Vec<(String, Vec<u8>)> = objects
        .iter()
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap()))
        .collect();
    let files = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    dylib.add_objects(files).map_err(|error| whole(&error))?;
    let main = session.create_dylib("main").unwrap();
    main.add_process_symbols(|_| true).unwrap();
    main.link_against(&dylib).unwrap();
    main.define(main.read("main.jlir", PROGRAM.as_bytes()).unwrap()).unwrap();
    let call = main.func::<(), i64>("f").map_err(|error| whole(&error))?;
    call.call(()).map_err(|error| whole(&error))
}

const PROGRAM: &str = "\
function f()::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:feature), Int64, svec(), 0, :(:ccall)))::Int64
└──      return %1
end
";

/// An error with its causes.
fn whole(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn run(command: &mut Command) -> Result<String, String> {
    let done = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = || format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    if done.status.success() { Ok(String::from_utf8_lossy(&done.stdout).into_owned()) } else { Err(said()) }
}

/// Object files that a script has made, with the value that the system's linker makes of them: a folder for each feature and model.
#[test]
#[ignore = "tests/c_features_aarch64.sh makes the object files"]
fn prepared_features_are_what_the_systems_linker_makes_of_them() {
    #[expect(clippy::disallowed_methods, reason = "the script says where the object files are")]
    let folder = std::env::var("C_FEATURES_PREPARED").unwrap();
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let mut wrong = Vec::new();
    for folder in &folders {
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut objects: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "o")).collect();
        objects.sort();
        let wanted = std::fs::read_to_string(folder.join("wanted")).unwrap();
        let is_cpp = folder.to_string_lossy().contains(".cpp");
        let found = in_session(&objects, is_cpp);
        if found.as_ref().ok() != wanted.trim().parse().ok().as_ref() {
            let line = format!("{}: {found:?} in place of {}", folder.display(), wanted.trim());
            println!("{line}");
            wrong.push(line);
        }
    }
    println!("{} of {} are right", folders.len() - wrong.len(), folders.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn features_of_c_and_cpp_are_what_the_systems_linker_makes_of_them() {
    #[expect(clippy::disallowed_methods, reason = "one feature may be run alone")]
    let wanted = std::env::var("C_FEATURES").ok();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir("tests/c_features").unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let features: Vec<Feature> = paths.iter().map(|path| Feature::read(path)).collect();
    let is_wanted = |feature: &&Feature| wanted.as_ref().is_none_or(|text| feature.name.contains(text));
    let features: Vec<&Feature> = features.iter().filter(is_wanted).collect();
    assert!(wanted.is_some() || features.len() >= 100, "there are {} features", features.len());
    let mut cases: Vec<(&Feature, Compiler)> = features.iter().map(|&feature| (feature, GCC)).collect();
    if CLANG.is_there() {
        let for_clang = |feature: &&&Feature| !feature.is_gcc_only && CLANG.has_options_of(feature);
        cases.extend(features.iter().filter(for_clang).map(|&feature| (feature, CLANG)));
    }
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-features-{}", std::process::id()));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (folder, next, wrong, cases) = (folder.join(worker.to_string()), &next, &wrong, &cases);
            std::fs::create_dir_all(&folder).unwrap();
            scope.spawn(move || {
                while let Some(&(feature, compiler)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for model in MODELS {
                        for level in LEVELS {
                            if let Err(why) = feature.check(&folder, compiler, model, level) {
                                let (name, by) = (&feature.name, compiler.of(feature.is_cpp()));
                                let line = format!("{name} {by} {model} {level}: {why}");
                                eprintln!("{line}");
                                wrong.lock().unwrap().push(line);
                            }
                        }
                    }
                }
            });
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), 6 * cases.len(), wrong.join("\n"));
}
