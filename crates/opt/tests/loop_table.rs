//! The loop table: what becomes of loops as front ends print them at O2 and O3, row by row.
//!
//! ```text
//!               Ptr     Memory          Vector
//!                       free   checked  free   checked
//! sum while     lanes   lanes  lanes    lanes  lanes
//! ```
//!
//! The main loop of a row is its innermost loop that does most at once: in lanes before scalar, without checks before with checks, without
//! loads of headers before with some. The expectations may only improve: a row that does better than the table fails the
//! test as well, so that the table stays true.

#[path = "../../../tests/support/loops.rs"]
#[allow(dead_code, reason = "another test calls the loops")]
mod loops;

use brolga_ir::analysis::{Cfg, DomTree, Loop, Loops, Rpo};
use brolga_ir::diag::{SourceFile, Style};
use brolga_ir::op::Region;
use brolga_ir::text::read;
use brolga_ir::{Block, Context, Func, Module, Op, Type};
use brolga_opt::lower::{self, lower};
use brolga_opt::{Cx, OptLevel, Options, optimize};
use loops::{ACCESSES, KERNELS, Row, SHAPES};

/// By kernel and shape: the five columns. `lanes`, or what a scalar loop keeps: `c` a check, `h` a load of a header, `-` nothing.
/// `BLESS=1 cargo test -p brolga-opt --test loop_table` writes the file.
const TABLE: &str = "tests/loop_table.txt";

/// The remainders in a loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Left {
    scalar: bool,
    check: bool,
    header: bool,
}

impl Left {
    fn text(self) -> &'static str {
        match (self.scalar, self.check, self.header) {
            (false, ..) => "lanes",
            (true, false, false) => "-",
            (true, true, false) => "c",
            (true, false, true) => "h",
            (true, true, true) => "ch",
        }
    }
}

fn module() -> Module {
    let text: String = loops::rows().into_iter().map(Row::function).collect();
    let source = SourceFile::new("loops", text).unwrap();
    let (unit, found) = read(&source, &Context::new());
    assert!(!found.has_errors(), "{}", found.render(&source, &Style::PLAIN));
    unit.module
}

/// The low form of a function as the pipeline of a level leaves it.
fn compiled(module: &Module, func: &Func, level: OptLevel) -> Func {
    let options = Options { verify_each: true, ..Options::default() };
    let mut cx = Cx::new(None);
    let (high, _) = optimize(module, func.clone(), level, &options, &mut cx).unwrap();
    let low = lower(module, &high, &lower::Options::of(level)).unwrap();
    optimize(module, low, level, &options, &mut cx).unwrap().0
}

/// The remainders in the main loop.
fn left(func: &Func) -> Option<Left> {
    let cfg = Cfg::compute(func);
    let rpo = Rpo::compute(&cfg);
    let tree = DomTree::compute(&cfg);
    let loops = Loops::compute(&cfg, &rpo, &tree);
    loops.iter().filter(|&l| loops.is_innermost(l)).map(|l| left_in(func, &cfg, &loops, l)).min()
}

fn left_in(func: &Func, cfg: &Cfg, loops: &Loops, l: Loop) -> Left {
    let insts = || loops.blocks(l).iter().flat_map(|&b| func.block_insts(b));
    let in_lanes = insts().any(|inst| func.results(inst).any(|v| func.ty(v) == Type::V128));
    let throws = |block: Block| func.terminator(block).is_some_and(|end| func.op(end) == Op::Unreachable);
    let header = |op| {
        let of_header =
            |region| matches!(region, Region::Header | Region::Size | Region::Length | Region::Immutable);
        matches!(op, Op::Load(access) if of_header(access.region))
    };
    Left {
        scalar: !in_lanes,
        check: loops.exits(cfg, l).any(|(_, to)| throws(to)),
        header: insts().any(|inst| header(func.op(inst))),
    }
}

/// The table at a level.
fn table(module: &Module, level: OptLevel) -> String {
    let found = |row: Row| {
        let name = row.name();
        let func = module.funcs().map(|(_, func)| func).find(|func| module.cx.names.text(func.name) == name);
        let func = func.unwrap_or_else(|| panic!("no function `{name}`"));
        left(&compiled(module, func, level)).unwrap_or_else(|| panic!("`{name}` has no loop")).text()
    };
    let mut table = format!("{:<18}{:<8}{:<16}{}\n", format!("{level:?}"), "Ptr", "Memory", "Vector");
    table += &format!("{:<26}{:<8}{:<8}{:<8}{}\n", "", "free", "checked", "free", "checked");
    for kernel in KERNELS {
        for shape in SHAPES {
            let mut line = format!("{:<18}", format!("{kernel:?} {shape:?}").to_lowercase());
            for (container, checked) in ACCESSES {
                line += &format!("{:<8}", found(Row { container, checked, shape, kernel }));
            }
            table += line.trim_end();
            table.push('\n');
        }
    }
    table
}

#[test]
#[expect(clippy::disallowed_methods, reason = "`BLESS` is how a developer talks to the test")]
fn the_main_loop_of_every_row_is_as_good_as_the_table_says() {
    let module = module();
    let found = [OptLevel::O2, OptLevel::O3].map(|level| table(&module, level)).join("\n");
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &found).unwrap();
    }
    let expected =
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(found, expected, "\n{found}");
}
