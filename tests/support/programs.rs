//! The programs of this repository that check themselves: the corpus, the examples, `tests/objects/` and `tests/checked/`.

use std::path::{Path, PathBuf};

use brolga::Program;

/// All programs of some folders of this repository, with their names.
pub(crate) fn programs(folders: &[&str]) -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let entries = std::fs::read_dir(root.join(folder)).expect("a folder of this repository");
        let is_program = |path: &PathBuf| {
            path.extension().is_some_and(|extension| extension == "jlir" || extension == "txt")
        };
        paths.extend(entries.map(|entry| entry.expect("a file").path()).filter(is_program));
    }
    // Beside the programs stand examples in Rust.
    paths.retain(|path| path.extension().is_none_or(|extension| extension != "rs"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).expect("a file");
        let program = Program::read(&name, &bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, program)
    };
    paths.into_iter().map(read).collect()
}
