//! Runs the text tests in `tests/placed/`: low IR, and its placement.
//!
//!     Two live values at a call, so two slots.     a description, any number of lines
//!     options: whole-function                      optional: no shrink-wrapping; `maps`: frame maps instead of links;
//!                                                  `moving`: the heap moves objects
//!     ==== input
//!     low function f(…)…
//!     ==== output                                  counts and the functions, or broken rules
//!
//! `BLESS=1 cargo test -p brolga-gcroots placed` writes the current output into the files; review the diff
//! before committing it. Every output is verified; the oracle, which also reads these files, checks the
//! roots.

use crate::cases::{Case, cases};
use crate::support::read_module;
use std::fmt::Write as _;

use brolga_gcroots::{Error, Report, place};
use brolga_ir::Func;
use brolga_ir::diag::Finding;
use brolga_ir::text::show_func;
use brolga_ir::verify::{point_into_printout, verify_func};

fn counted(report: &Report) -> String {
    let Report { safepoints, slots, stores, nulls, naive_slots, lifted, barriers, barriers_removed, .. } =
        report;
    let mut text = format!("safepoints {safepoints}, slots {slots}, stores {stores}, naive {naive_slots}");
    let further = [
        ("nulls", nulls),
        ("lifted", lifted),
        ("barriers", barriers),
        ("barriers removed", barriers_removed),
    ];
    for (name, number) in further.into_iter().filter(|(_, number)| **number > 0) {
        let _ = write!(text, ", {name} {number}");
    }
    text
}

/// The frame maps, by line of the function's text.
fn maps(func: &Func) -> String {
    let mut out = String::new();
    let mut line = 1;
    for block in func.blocks() {
        for inst in func.block_insts(block) {
            line += 1;
            if let Some(map) = func.root_map(inst) {
                let _ =
                    writeln!(out, "# line {line}: roots at {:?} of slot {}", map.offsets, map.slot.as_u32());
            }
        }
    }
    out
}

fn run(case: &Case) -> String {
    let module = read_module(&case.name, &case.input);
    let mut out = String::new();
    for (_, func) in module.funcs() {
        let mut func = func.clone();
        let name = module.cx.names.text(func.name).to_owned();
        match place(&mut func, &module.cx, &case.options) {
            Ok(report) => {
                if let Err(broken) = verify_func(&module.cx, &func) {
                    panic!("{}: {name}: {broken:#?}\n{}", case.name, show_func(&module.cx, &func));
                }
                let _ = write!(out, "# {}\n{}", counted(&report), show_func(&module.cx, &func));
                out.push_str(&maps(&func));
            }
            Err(Error::Classes(broken)) => {
                for violation in broken {
                    let line =
                        violation.inst.map_or(String::new(), |inst| func.place(inst).to_line(&case.input));
                    let _ = writeln!(out, "{name}: {}: {}\n  {line}", violation.rule.code(), violation.rule);
                }
            }
            Err(Error::Ir(broken)) => {
                let (_, found) = point_into_printout(&module.cx, &func, &broken);
                for diagnostic in found {
                    let _ = writeln!(out, "{name}: {}: {}", diagnostic.code, diagnostic.message);
                }
            }
            Err(error @ Error::Moving { inst }) => {
                let line = func.place(inst).to_line(&case.input);
                let _ = writeln!(out, "{name}: {error}\n  {line}");
            }
            Err(error) => {
                let _ = writeln!(out, "{name}: {error}");
            }
        }
    }
    out
}

/// Maps statements to lines of the input.
trait ToLine {
    fn to_line(&self, input: &str) -> String;
}

impl ToLine for brolga_ir::func::Place {
    fn to_line(&self, input: &str) -> String {
        input.get(self.start as usize..self.end as usize).unwrap_or("").trim().to_owned()
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "`BLESS` is how a developer talks to the harness")]
fn placed_functions_are_as_written() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for case in cases() {
        let output = run(&case);
        if output == case.output {
            continue;
        }
        if bless {
            std::fs::write(&case.path, case.blessed(&output)).expect("a writable test file");
        } else {
            wrong.push(format!("{}:\n---- expected\n{}---- found\n{output}", case.name, case.output));
        }
    }
    assert!(wrong.is_empty(), "{}\n`BLESS=1` accepts all of it", wrong.join("\n"));
}

#[test]
fn every_test_stands_in_the_list_of_behaviours() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance-gc.md");
    let text = std::fs::read_to_string(path).expect("the list of behaviours");
    let mut named: Vec<&str> =
        text.split("`placed/").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    named.sort_unstable();
    named.dedup();
    let cases = cases();
    let mut files: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
    files.sort_unstable();
    assert_eq!(named, files);
}
