//! Follows CONTRIBUTING.md: adds a pass and an intrinsic to a copy of the sources, step by step, builds it and runs the tests that the page names.
//!
//! ```text
//! sources ── copy ──► target/contributing/tree ── steps ──► a pass and an intrinsic more ── cargo test ──► ok
//! ```
//!
//! | section | what is added |
//! |---|---|
//! | Add a pass | `toy-double`: `add_int(x, x)` becomes `shl_int(x, 1)` |
//! | Add an intrinsic | `toy_andnot_int`: the bits of the first operand that the second one does not have |
//!
//! A step edits one file, which the section has to name: so the page cannot lose a file that is needed, and the steps here cannot need one that it does
//! not list. The copy is built without optimisation in its own target folder; a second run compiles only what has changed since.
//!
//! Cost: minutes, so the test is ignored unless asked for: `cargo test --test contributing -- --ignored`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The parts of the sources that are copied.
const PARTS: [&str; 13] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "src",
    "crates",
    "tests",
    "benches",
    "embedding",
    "examples",
    "docs",
];

/// One edit of one file.
enum Edit {
    /// The file is new.
    Create(&'static str),
    /// The text stands behind the first line that contains the anchor.
    After(&'static str, &'static str),
    /// The text stands behind the anchor, in its line.
    Within(&'static str, &'static str),
}

struct Step {
    /// The path as the section names it: the file, or the folder that it is put into.
    named: &'static str,
    file: &'static str,
    edit: Edit,
}

const fn create(named: &'static str, file: &'static str, text: &'static str) -> Step {
    Step { named, file, edit: Edit::Create(text) }
}

const fn after(named: &'static str, file: &'static str, anchor: &'static str, text: &'static str) -> Step {
    Step { named, file, edit: Edit::After(anchor, text) }
}

const PASS: &[Step] = &[
    create(
        "crates/opt/src/passes",
        "crates/opt/src/passes/toy_double.rs",
        "//! Doubles by a shift.
//!
//! ```text
//! %1 = add_int(x, x)::i64     ==>     %1 = shl_int(x, 1)::i64
//! ```
//!
//! Cost: one look at each instruction. Breaks the uses.

use crate::facts::Fact;
use crate::pass::{Changed, Pass, PassCx, PassLevel};
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::{Func, Inst, Op};

pub(crate) const PASS: Pass = Pass::new(\"toy-double\", PassLevel::Low, run).breaks(&[Fact::Uses]);

fn run(func: &mut Func, cx: &mut PassCx<'_>) -> Changed {
    let blocks: Vec<_> = func.blocks().collect();
    let insts: Vec<Inst> = blocks.into_iter().flat_map(|block| func.block_insts(block).collect::<Vec<_>>()).collect();
    for inst in insts {
        let (Op::Intrinsic(Intrinsic::AddInt), &[x, y]) = (func.op(inst), func.args(inst)) else { continue };
        if x != y || !cx.spend(\"sums of equal numbers\") {
            continue;
        }
        let one = func.bits(cx.types(), func.ty(x), 1);
        func.set_op(inst, Op::Intrinsic(Intrinsic::ShlInt), &[x, one]);
    }
    cx.changed()
}
",
    ),
    after(
        "crates/opt/src/passes/mod.rs",
        "crates/opt/src/passes/mod.rs",
        "pub(crate) mod tail_recursion;",
        "pub(crate) mod toy_double;\n",
    ),
    after("crates/opt/src/pipeline.rs", "crates/opt/src/pipeline.rs", "use crate::passes::{", "    toy_double,\n"),
    after("crates/opt/src/pipeline.rs", "crates/opt/src/pipeline.rs", "    &div_rem::PASS,", "    &toy_double::PASS,\n"),
    after(
        "crates/opt/src/pipeline.rs",
        "crates/opt/src/pipeline.rs",
        "step(O2, \"div-rem\", &div_rem::PASS),",
        "    step(O3, \"toy-double\", &toy_double::PASS),\n",
    ),
    after(
        "crates/opt/src/pipeline.rs",
        "crates/opt/src/pipeline.rs",
        "pub static ORDER: &[Order] = &[",
        "    order(\"late gvn\", \"toy-double\", \"numbers that are equal are one value then\"),\n",
    ),
    Step {
        named: "tests/filetests/cli/bench/usage.txt",
        file: "tests/filetests/cli/bench/usage.txt",
        edit: Edit::Within("`div-rem`, ", "`toy-double`, "),
    },
    create(
        "tests/filetests/opt",
        "tests/filetests/opt/toy-double/sum.txt",
        "$ brolga opt --passes=toy-double --verify-each -
A number is doubled by a shift.
==== input
low function f(x::i64)::i64
1 ─ %1 = add_int(x, x)::i64
└──      return %1
end
==== stdout
low function f(x::i64)::i64
1 ─ %1 = shl_int(x, 1)::i64
└──      return %1
end
",
    ),
    create(
        "tests/filetests/opt",
        "tests/filetests/opt/toy-double/not.txt",
        "$ brolga opt --passes=toy-double --verify-each -
Not: the sum of two numbers.
==== input
low function f(x::i64, y::i64)::i64
1 ─ %1 = add_int(x, y)::i64
└──      return %1
end
==== stdout
low function f(x::i64, y::i64)::i64
1 ─ %1 = add_int(x, y)::i64
└──      return %1
end
",
    ),
    after(
        "docs/passes.md",
        "docs/passes.md",
        "| `div-rem` |",
        "| `toy-double` | O3 | Doubles by a shift. | [tests](../tests/filetests/opt/toy-double) | 1.00 |  |\n",
    ),
];

const INTRINSIC: &[Step] = &[
    after(
        "crates/ir/src/intrinsic.rs",
        "crates/ir/src/intrinsic.rs",
        "    XorInt \"xor_int\" Shape::IntBinary, COMMUTES;",
        "    ToyAndnotInt \"toy_andnot_int\" Shape::IntBinary, 0;\n",
    ),
    after(
        "crates/ir/src/scalar/",
        "crates/ir/src/scalar/int.rs",
        "        Intrinsic::XorInt => a ^ b,",
        "        Intrinsic::ToyAndnotInt => a & !b,\n",
    ),
    after(
        "crates/codegen/src/translate/",
        "crates/codegen/src/translate/int.rs",
        "            Intrinsic::XorInt => ins.bxor(x, y),",
        "            Intrinsic::ToyAndnotInt => ins.band_not(x, y),\n",
    ),
    after(
        "docs/ir.md",
        "docs/ir.md",
        "| `and_int` `or_int` `xor_int` `not_int` |",
        "| `toy_andnot_int` | the bits of the first that the second does not have |\n",
    ),
    after(
        "tests/expected/",
        "tests/expected/int.rs",
        "\"xor_int\" => of_unsigned(u ^ v),",
        "                \"toy_andnot_int\" => of_unsigned(u & !v),\n",
    ),
];

/// The text of the section of that name.
fn section<'t>(page: &'t str, name: &str) -> &'t str {
    let start = page
        .find(&format!("\n## {name}\n"))
        .unwrap_or_else(|| panic!("CONTRIBUTING.md has no section `{name}`"));
    let text = &page[start + 1..];
    text[1..].find("\n## ").map_or(text, |end| &text[..end + 1])
}

/// The sources by path.
type Sources = BTreeMap<PathBuf, Vec<u8>>;

fn collect(path: &Path, into: &mut Sources) {
    let whole = root().join(path);
    if whole.is_dir() {
        for entry in fs::read_dir(&whole).unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
            collect(&path.join(entry.expect("an entry").file_name()), into);
        }
    } else {
        let contents = fs::read(&whole).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        into.insert(path.to_owned(), contents);
    }
}

fn follow(page: &str, name: &str, steps: &[Step], sources: &mut Sources) {
    let text = section(page, name);
    for Step { named, file, edit } in steps {
        assert!(text.contains(&format!("`{named}`")), "the section `{name}` does not name {named}");
        assert!(file.starts_with(named), "{file} is not in {named}");
        match edit {
            Edit::Create(text) => {
                let old = sources.insert(PathBuf::from(file), text.as_bytes().to_vec());
                assert_eq!(old, None, "{file} is there already");
            }
            Edit::After(anchor, text) | Edit::Within(anchor, text) => {
                let whole = sources.get_mut(Path::new(file)).unwrap_or_else(|| panic!("there is no {file}"));
                let old = String::from_utf8_lossy(whole).into_owned();
                let at = old.find(anchor).unwrap_or_else(|| panic!("{file} has no line with `{anchor}`"));
                let end = match edit {
                    Edit::Within(..) => at + anchor.len(),
                    _ => old[at..].find('\n').map_or(old.len(), |length| at + length + 1),
                };
                *whole = format!("{}{text}{}", &old[..end], &old[end..]).into_bytes();
            }
        }
    }
}

/// Makes `tree` hold the sources and nothing else. Files that are as they should be are not written: cargo compiles by the time of change.
fn put(sources: &Sources, tree: &Path) {
    let mut old = Vec::new();
    files_of(tree, &mut old);
    for path in old.iter().filter(|path| !sources.contains_key(path.strip_prefix(tree).unwrap_or(path))) {
        fs::remove_file(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
    for (path, contents) in sources {
        let path = tree.join(path);
        if fs::read(&path).is_ok_and(|old| old == *contents) {
            continue;
        }
        let folder = path.parent().expect("a folder");
        let done = fs::create_dir_all(folder).and_then(|()| fs::write(&path, contents));
        done.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn files_of(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        if path.is_dir() { files_of(&path, into) } else { into.push(path) }
    }
}

#[test]
fn the_sections_name_every_file_that_a_step_edits() {
    let page = read("CONTRIBUTING.md");
    for (name, steps) in [("Add a pass", PASS), ("Add an intrinsic", INTRINSIC)] {
        let text = section(&page, name);
        for step in steps {
            assert!(
                text.contains(&format!("`{}`", step.named)),
                "the section `{name}` does not name {}",
                step.named
            );
            if let Edit::After(anchor, _) | Edit::Within(anchor, _) = step.edit {
                assert!(read(step.file).contains(anchor), "{} has no line with `{anchor}`", step.file);
            }
        }
    }
}

#[test]
#[ignore = "builds a copy of the workspace, which takes minutes"]
fn the_steps_of_the_page_add_a_pass_and_an_intrinsic() {
    let target = root().join("target/contributing");
    let tree = target.join("tree");
    let mut sources = Sources::new();
    for part in PARTS {
        collect(Path::new(part), &mut sources);
    }
    let page = read("CONTRIBUTING.md");
    follow(&page, "Add a pass", PASS, &mut sources);
    follow(&page, "Add an intrinsic", INTRINSIC, &mut sources);
    put(&sources, &tree);
    let done = Command::new(env!("CARGO"))
        .current_dir(&tree)
        .args([
            "test",
            "--quiet",
            "-p",
            "brolga",
            "--test",
            "pass_table",
            "--test",
            "filetests",
            "--test",
            "intrinsics",
        ])
        .args(["--config", "profile.dev.opt-level=0", "--config", "profile.dev.debug=false"])
        .args(["--config", "profile.dev.package.\"*\".opt-level=0"])
        .env("CARGO_TARGET_DIR", target.join("build"))
        .env_remove("RUST_BACKTRACE")
        .output()
        .expect("cargo");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", text(&done.stdout), text(&done.stderr));
}
