//! The text tests in `tests/placed/`; `placed` describes their format.

use std::path::PathBuf;

use brolga_gcroots::{Lowering, Options};

use crate::support::HEAP;

/// A test file.
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
            Some("coarse") => options.budget = 0,
            Some("moving") => options.heap.moving = true,
            Some("dirty") => options.heap.zeroed = false,
            Some(other) => panic!("{name}: there is no option `{other}`"),
        }
        let (head, input, output) = (head.to_owned(), input.to_owned(), output.to_owned());
        Case { name, path, head, options, input, output }
    }

    /// The file's text with this output.
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
