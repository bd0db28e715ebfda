//! Images as libraries and executables: a C program links with one, calls its functions by their own names, and sees what goes wrong as errors; an
//! executable runs alone.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use brolga::image;
use brolga::image::{Library, Linker, Run};
use brolga::options::CpuTarget;
use brolga::{Options, Program};

const SOURCE: &str = include_str!("library.jlir");

/// The folder that cargo builds libraries into, beside this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test's path");
    test.parent().expect("a folder").to_owned()
}

/// A folder of a test, which is empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("brolga-library-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Builds the image and its header.
fn build(folder: &Path) {
    let program = Program::read("library.jlir", SOURCE.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let library = Library::new("numbers")
        .export("fib")
        .export_as("mix(Int8, Float32, Bool, UInt16, Float64, Char, Ptr{Int64}, Int32, UInt8, Int64)", "mix")
        .export_as("half(Float64)", "half_f")
        .export("inverse")
        .export("same")
        .export("bump")
        .export("quiet")
        .export("kept");
    let options = Options::new().cpu_target(CpuTarget::Generic);
    let made = image::build_library(&program, &options, &library).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(made.functions[0], "fib(Int64)");
    image::write(folder.join("libnumbers.so"), &made.image).expect("the image");
    fs::write(folder.join("numbers.h"), &made.header).expect("the header");
}

/// Compiles the C program against the image and a library of Brolga.
fn compile(folder: &Path, source: &str, library: &[String]) -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let program = folder.join(source).with_extension("");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1"])
        .arg("-I")
        .arg(folder)
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests").join(source))
        .arg(format!("-L{}", folder.display()))
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-lnumbers")
        .args(library)
        .args(["-s", "-lm", "-lpthread", "-ldl", "-o"])
        .arg(&program);
    let made = cc.output().expect("a C compiler");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    program
}

fn run(program: &Path, args: &[&str]) -> (Output, String) {
    // Cargo's variable comes before the program's own path, and leads to a library of another build.
    let run = Command::new(program).args(args).env_remove("LD_LIBRARY_PATH").output();
    let run = run.expect("the program runs");
    let told = format!("{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    (run, told)
}

fn find(name: &str) -> Option<PathBuf> {
    let folder = built();
    [folder.clone(), folder.join("..")].into_iter().map(|dir| dir.join(name)).find(|path| path.exists())
}

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_c_program_calls_the_functions_of_an_image() {
    let folder = folder("calls");
    build(&folder);
    let archive = find("libbrolga_capi.a").expect("cargo builds the static library with the test");
    let mut ways = vec![vec![archive.display().to_string()]];
    if let Some(shared) = find("libbrolga_capi.so") {
        let beside = shared.parent().expect("a folder").display().to_string();
        let rpath = format!("-Wl,-rpath,{beside}");
        ways.push(vec![format!("-L{beside}"), rpath, "-lbrolga_capi".to_owned()]);
    }
    for library in ways {
        let program = compile(&folder, "library.c", &library);
        let (done, told) = run(&program, &[]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert_eq!(told, include_str!("library.out"));
        // An image that is damaged or gone is an error of the first call, and the program continues.
        let file = folder.join("libnumbers.so");
        let whole = fs::read(&file).expect("the image");
        let mut damaged = whole.clone();
        let at = damaged.windows(10).position(|window| window == b"fib(Int64)").expect("a name");
        damaged[at] ^= 1;
        fs::write(&file, &damaged).expect("the image");
        let (done, told) = run(&program, &["broken"]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert!(told.contains("fib: 0\nthe image is damaged: "), "{told}");
        let mended = folder.join("mended");
        fs::write(&mended, &whole).expect("the image");
        let (done, told) =
            run(&program, &["mended", &file.display().to_string(), &mended.display().to_string()]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert_eq!(told.matches("fib: 0\nthe image is damaged: ").count(), 2, "{told}");
        assert!(told.ends_with("opened: 1, fib: 5\n"), "{told}");
        let (done, told) = run(&program, &["replaced", &file.display().to_string()]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert!(told.contains("was replaced since it was loaded"), "{told}");
        build(&folder);
    }
    fs::remove_dir_all(&folder).expect("the folder");
}

const PROGRAM: &str = r#"
function main()::Nothing
1 ─ %1 = Main.println("all is well")::Nothing
└──      return nothing
end
function inverse(d::Int64)::Int64
1 ─ %1 = Base.checked_sdiv_int(1000, d)::Int64
└──      return %1
end
"#;

const ARGUMENTS: &str = r#"
function main(args::Vector{String})::Nothing
1 ─ %1 = Base.arraylen(args)::Int64
│   %2 = Base.arrayref(true, args, 1)::String
│        Main.println(%1, " arguments, the first is ", %2)::Nothing
└──      return nothing
end
"#;

#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn an_executable_runs_alone() {
    let folder = folder("executable");
    let archive = find("libbrolga_capi.a").expect("cargo builds the static library with the test");
    let path = folders();
    let linker = Linker::find(None, &path, archive).unwrap_or_else(|error| panic!("{error}"));
    let program = Program::read("program.jlir", PROGRAM.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let app = folder.join("app");
    let make = |program: &Program, run: Run<'_>| {
        let options = Options::new().cpu_target(CpuTarget::Generic);
        image::build_executable(program, &options, run, &linker, &app)
    };
    let division = "error: uncaught exception: DivideError: integer division error\n  in inverse(Int64)\n";
    for (what, args, status, told) in [
        (Run::Main, [].as_slice(), 0, "all is well\n"),
        (
            Run::Main,
            &["one"],
            1,
            "error: the program takes no arguments: it has no method `main(Vector{String})`\n",
        ),
        (Run::Value("inverse(0)"), &[], 1, division),
        (Run::Value("inverse(7)"), &["ignored"], 0, "142\n"),
    ] {
        make(&program, what).unwrap_or_else(|error| panic!("{error}"));
        let (done, all) = run(&app, args);
        assert_eq!((done.status.code(), all.as_str()), (Some(status), told), "{what:?}");
    }
    let takes = Program::read("takes.jlir", ARGUMENTS.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    make(&takes, Run::Main).unwrap_or_else(|error| panic!("{error}"));
    let (_, all) = run(&app, &["a b", "$x\n"]);
    assert_eq!(all, "2 arguments, the first is a b\n");
    let (_, all) = run(&app, &[]);
    assert!(all.contains("BoundsError"), "{all}");
    // A byte of the image inside the executable is another one.
    let mut bytes = fs::read(&app).expect("the executable");
    let at = bytes.windows(8).rposition(|window| window == b"BRLGIMG\x1a").expect("the image");
    bytes[at + 200] ^= 1;
    fs::remove_file(&app).expect("the executable");
    let damaged = folder.join("damaged");
    fs::write(&damaged, &bytes).expect("the executable");
    allow(&damaged);
    let (done, all) = run(&damaged, &[]);
    assert_eq!(done.status.code(), Some(4), "{all}");
    assert!(all.starts_with("error: the image is damaged: "), "{all}");
    let error = make(&program, Run::Value("nobody(1)")).expect_err("there is no such function").to_string();
    assert!(error.contains("nobody"), "{error}");
    let left: Vec<_> =
        fs::read_dir(&folder).expect("the folder").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["damaged"], "nothing is left beside it");
    fs::remove_dir_all(&folder).expect("the folder");
}

/// The folders in which the system looks for programs.
#[expect(clippy::disallowed_methods, reason = "the test finds the compiler as the command does")]
fn folders() -> std::ffi::OsString {
    std::env::var_os("PATH").expect("a path")
}

/// Makes a file one that can be executed.
#[cfg(unix)]
fn allow(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("the permissions");
}
