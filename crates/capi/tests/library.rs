//! Images as libraries: a C program links with one, calls its functions by their own names, and sees what goes wrong as errors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use brolga::image::{self, Library};
use brolga::{CpuTarget, Options, Program};

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
        // An image that is damaged or gone is an error of the first call, and the program goes on.
        let file = folder.join("libnumbers.so");
        let whole = fs::read(&file).expect("the image");
        let mut damaged = whole.clone();
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        fs::write(&file, &damaged).expect("the image");
        let (done, told) = run(&program, &["broken"]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert!(told.contains("fib: 0\nthe image is damaged: "), "{told}");
        fs::write(&file, &whole).expect("the image");
        let (done, told) = run(&program, &["replaced", &file.display().to_string()]);
        assert!(done.status.success(), "{:?} {told}", done.status);
        assert!(told.contains("was replaced since it was loaded"), "{told}");
        build(&folder);
    }
    fs::remove_dir_all(&folder).expect("the folder");
}
