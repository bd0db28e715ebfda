//! The view of profilers and debuggers: files are read back, and gdb is run if there is one.

mod support;

use std::process::Command;
use std::sync::Arc;

use brolga_codegen::compiled::{CompiledFunction, Symbol};
use brolga_codegen::isa::Tier;
use brolga_codegen::sig::Abi;
use brolga_ir::func::LineColumn;
use brolga_jit::{GdbInterface, Jit, JitDump, PerfMap, UnwindTables};
use cranelift_codegen::ir::InstBuilder;
use support::{compile, engine, engines, int_function, ints, load};

/// A function that adds one to its argument, on the given lines.
fn successor(jit: &Jit, name: &str, lines: &[(u32, u32)]) -> CompiledFunction {
    let mut function = compile(jit, Tier::Optimised, name, &ints(1, 1), |c| {
        let x = c.params()[0];
        let next = c.b.ins().iadd_imm_s(x, 1);
        c.b.ins().return_(&[next]);
    });
    function.lines = lines.iter().map(|&(at, line)| (at, LineColumn::new(line, 0).into())).collect();
    function
}

/// A directory of this test's own.
fn directory(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("brolga-tools-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn the_perf_map_has_a_line_for_each_function() {
    let directory = directory("map");
    for jit in engines() {
        let before = load(&jit, vec![successor(&jit, "before", &[])], vec![]);
        let map = Arc::new(PerfMap::create_in(&directory).unwrap());
        jit.listen(map.clone());
        let unit = load(&jit, vec![successor(&jit, "f", &[]), successor(&jit, "two\nlines", &[])], vec![]);
        let text = std::fs::read_to_string(map.path()).unwrap();
        let line = |unit: &brolga_jit::Unit, name: &str, shown: &str| {
            let function = unit.loaded().code().function(name).unwrap();
            format!("{:x} {:x} {shown}\n", function.address(), function.size())
        };
        let expected = [
            line(&before, "before", "before"),
            line(&unit, "f", "f"),
            line(&unit, "two\nlines", "two lines"),
        ];
        assert_eq!(text, expected.concat());
        assert_eq!(map.error(), None);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// Takes integers and texts from the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(count);
        self.0 = rest;
        front
    }

    fn word(&mut self) -> u32 {
        u32::from_ne_bytes(self.take(4).try_into().unwrap())
    }

    fn long(&mut self) -> u64 {
        u64::from_ne_bytes(self.take(8).try_into().unwrap())
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap();
        let text = String::from_utf8(self.take(end).to_vec()).unwrap();
        self.take(1);
        text
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_jitdump_has_code_lines_and_an_end() {
    let directory = directory("dump");
    let jit = engine();
    let dump = Arc::new(JitDump::create_in(&directory, "f.jlir").unwrap());
    let path = dump.path().to_owned();
    jit.listen(dump.clone());
    let function = successor(&jit, "f", &[(0, 3), (4, 5)]);
    let unit = load(&jit, vec![function.clone()], vec![]);
    let start = unit.loaded().function("f").unwrap() as u64;
    assert_eq!(dump.error(), None);
    drop((unit, jit, dump));

    let bytes = std::fs::read(&path).unwrap();
    let mut dump = Reader(&bytes);
    assert_eq!(dump.word(), 0x4a69_5444);
    assert_eq!((dump.word(), dump.word()), (1, 40));
    assert_eq!(dump.word(), if cfg!(target_arch = "x86_64") { 62 } else { 183 });
    dump.word();
    assert_eq!(dump.word(), std::process::id());
    let (mut time, _) = (dump.long(), dump.long());
    let mut record = |dump: &mut Reader<'_>| {
        let (kind, size, at) = (dump.word(), dump.word(), dump.long());
        assert!(at >= time, "times rise");
        time = at;
        (kind, size)
    };
    assert_eq!(record(&mut dump), (2, 16 + 16 + 2 * (16 + 7)));
    assert_eq!((dump.long(), dump.long()), (start, 2));
    for (offset, line) in [(0, 3), (4, 5)] {
        assert_eq!((dump.long(), dump.word(), dump.word()), (start + offset, line, 0));
        assert_eq!(dump.text(), "f.jlir");
    }
    assert_eq!(record(&mut dump), (0, (16 + 40 + 2 + function.code.len()) as u32));
    assert_eq!(dump.word(), std::process::id());
    dump.word();
    assert_eq!((dump.long(), dump.long(), dump.long()), (start, start, function.code.len() as u64));
    dump.long();
    assert_eq!(dump.text(), "f");
    assert_eq!(dump.take(function.code.len()), function.code);
    assert_eq!(record(&mut dump), (3, 16));
    assert!(dump.0.is_empty());
    std::fs::remove_dir_all(directory).unwrap();
}

/// How often a backtrace that starts in a C function mentions the caller of the compiled code.
static SEEN: std::sync::Mutex<Vec<bool>> = std::sync::Mutex::new(Vec::new());

extern "C" fn look_back() -> i64 {
    let text = std::backtrace::Backtrace::force_capture().to_string();
    SEEN.lock().unwrap().push(text.contains("calls_compiled_code"));
    0
}

#[inline(never)]
fn calls_compiled_code(unit: &brolga_jit::Unit) {
    assert_eq!(unit.func::<(), i64>("f").unwrap().call(()), Ok(0));
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn backtraces_go_through_compiled_code() {
    for jit in engines() {
        let tables = Arc::new(UnwindTables::new());
        jit.listen(tables.clone());
        let look = look_back as extern "C" fn() -> i64;
        // SAFETY: compiled code calls it by its signature.
        unsafe { jit.runtime().foreign().define("look_back", look as *const ()) };
        let unit = load(
            &jit,
            vec![compile(&jit, Tier::Optimised, "f", &ints(0, 1), |c| {
                let symbol = Symbol::Foreign { name: "look_back".into(), library: None, weak: false };
                let value = c.call_c(symbol, &[], Some(Abi::I64), &[])[0];
                c.b.ins().return_(&[value]);
            })],
            vec![int_function("f", 0)],
        );
        calls_compiled_code(&unit);
        // The function and its trampoline.
        assert_eq!(tables.len(), 2);
        drop(unit);
        assert_eq!(tables.len(), 1);
        drop(jit);
        assert!(tables.is_empty(), "tables are freed with the code");
    }
    assert_eq!(*SEEN.lock().unwrap(), [true; 3]);
}

/// The program under the debugger: a batch that loses a unit, and another one. The code can be written to by the debugger.
#[test]
#[ignore = "runs under gdb, started by the test below"]
fn under_the_debugger() {
    let [_, jit, _] = engines();
    let gdb = Arc::new(GdbInterface::new(2, "brolga_lines.jlir"));
    jit.listen(gdb.clone());
    let gone = load(&jit, vec![successor(&jit, "brolga_gone", &[])], vec![]);
    let unit = load(
        &jit,
        vec![successor(&jit, "brolga_seen", &[(0, 40), (4, 41)])],
        vec![int_function("brolga_seen", 1)],
    );
    drop(gone);
    // The trampoline waits for a second function.
    let function = unit.func::<(i64,), i64>("brolga_seen").unwrap();
    gdb.flush();
    assert_eq!(function.call((1,)), Ok(2));
}

#[cfg(target_os = "linux")]
#[test]
fn gdb_stops_in_compiled_code_and_names_it() {
    if Command::new("gdb").arg("--version").output().is_err() {
        println!("skipped: there is no gdb on this machine");
        return;
    }
    let commands = [
        "set pagination off",
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "break brolga_seen",
        "run",
        "info symbol $pc",
        "info line *$pc",
        "info functions brolga_gone",
        "backtrace 2",
        "kill",
    ];
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args").arg(std::env::current_exe().unwrap());
    gdb.args(["--exact", "under_the_debugger", "--ignored", "--nocapture", "--test-threads=1"]);
    let output = gdb.output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if text.contains("ptrace: Operation not permitted") {
        println!("skipped: debugging is not permitted here");
        return;
    }
    let tells = |what: &str| assert!(text.contains(what), "no `{what}` in:\n{text}");
    tells("brolga_seen () at brolga_lines.jlir:41");
    tells("brolga_seen + 4 in section .text");
    // The caller.
    tells(" in entry ()");
    assert!(!text.contains("void brolga_gone()"), "{text}");
}
