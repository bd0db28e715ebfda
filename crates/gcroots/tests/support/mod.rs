//! Test files, a heap's numbers, and reading low IR: what the tests of this crate share.

use std::path::PathBuf;
use std::sync::Arc;

use brolga_gcroots::{Lowering, Options};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Context, Module, text};

/// A heap of round numbers.
pub(crate) const HEAP: HeapAbi = HeapAbi {
    tag_bytes: 8,
    tag_bits: 15,
    tag_old: 2,
    tag_permanent: 8,
    cells: &[16, 24, 32, 48, 64, 128],
    gc_stack: 24,
    runs: 64,
    run_bytes: 16,
    zeroed: true,
    moving: false,
};

/// A test file.
#[allow(dead_code, reason = "each test program uses a part of this module")]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    head: String,
    pub(crate) options: Options,
    pub(crate) input: String,
    pub(crate) output: String,
}

impl Case {
    fn parse(path: PathBuf) -> Case {
        let text = std::fs::read_to_string(&path).expect("a readable test file");
        let name = path.file_stem().and_then(|n| n.to_str()).expect("a UTF-8 name").to_owned();
        let (head, rest) =
            text.split_once("==== input\n").unwrap_or_else(|| panic!("{name}: no `==== input`"));
        let (input, output) = rest.split_once("==== output\n").unwrap_or((rest, ""));
        let mut options = Options::new(HEAP);
        match head.lines().find_map(|line| line.strip_prefix("options: ")) {
            None => {}
            Some("whole-function") => options.shrink_wrap = false,
            Some("maps") => options.lowering = Lowering::Maps,
            Some(other) => panic!("{name}: there is no option `{other}`"),
        }
        let (head, input, output) = (head.to_owned(), input.to_owned(), output.to_owned());
        Case { name, path, head, options, input, output }
    }

    /// The file's text with this output.
    #[allow(dead_code, reason = "each test program uses a part of this module")]
    pub(crate) fn blessed(&self, output: &str) -> String {
        format!("{}==== input\n{}==== output\n{output}", self.head, self.input)
    }
}

/// All test files, by name.
pub(crate) fn cases() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/placed");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder of test files")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    paths.sort();
    paths.into_iter().map(Case::parse).collect()
}

/// Reads low IR, which has no faults.
pub(crate) fn read_module(name: &str, input: &str) -> Module {
    let cx: Arc<Context> = Context::new();
    let source = SourceFile::new(name, input).expect("a small file");
    let (unit, found) = text::read(&source, &cx);
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    unit.module
}
