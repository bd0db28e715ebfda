//! Compiles the functions of a module one by one, and records the result of each pass.
//!
//! ```text
//! module ── number rows ──► Stages ── dumps ──► StepLog for each pass
//!                              └──── placed ──► CLIF, listing, bytes
//! ```
//!
//! **How rows are linked.** Passes renumber rows, make new instructions and inline functions, but every
//! instruction carries the [`Place`] of the instruction that it was made from, through all stages down to the
//! machine code's line table. At the beginning the line of each row is replaced by a unique number, the
//! *origin*: 1 for the first row of the first function and so on through the module. Everything with the same
//! origin, in any stage of any function, is highlighted together. The original lines are kept separately.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brolga_engine::emit::{self, FrameMap};
use brolga_engine::{Error, Stages};
use brolga_gcroots::Lowering;
use brolga_ir::func::{LineColumn, Place};
use brolga_ir::{FuncId, Level, Module};
use brolga_opt::{Changed, Cx, Dump, OptLevel, PassFilter, StepReport, When};

use crate::machine::{TextRow, byte_rows, clif_rows, listing_rows};
use crate::rows::{Snapshot, snapshot};

/// The effect of a pass on a function.
pub(crate) struct StepLog {
    pub(crate) report: StepReport,
    /// The function after it, if it was changed.
    pub(crate) after: Option<Snapshot>,
}

/// The log of a function at one level of the IR.
#[derive(Default)]
pub(crate) struct LevelLog {
    /// The function before the first pass.
    pub(crate) before: Option<Snapshot>,
    pub(crate) steps: Vec<StepLog>,
}

/// The log of a function.
pub(crate) struct FuncLog {
    pub(crate) high: LevelLog,
    pub(crate) low: LevelLog,
    /// The time taken to lower and to place roots, in nanoseconds.
    pub(crate) lower_time: u64,
    pub(crate) roots_time: u64,
    pub(crate) code_time: u64,
    pub(crate) placed: Option<Snapshot>,
    pub(crate) machine: Option<Machine>,
    /// Why there is no machine code.
    pub(crate) refusal: Option<String>,
}

/// A function after code generation.
pub(crate) struct Machine {
    pub(crate) clif: Vec<TextRow>,
    pub(crate) listing: Vec<TextRow>,
    pub(crate) bytes: Vec<TextRow>,
    pub(crate) size: usize,
    pub(crate) frame_bytes: u32,
    pub(crate) frame_maps: Vec<FrameMap>,
}

/// Replaces the line of each row of a module by its origin. Returns the original places, indexed by origin
/// minus one, with their functions.
pub(crate) fn number_rows(module: &mut Module) -> Vec<(FuncId, Place)> {
    let mut places = Vec::new();
    let ids: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
    for id in ids {
        let func = &mut module[id];
        let insts: Vec<_> = func.blocks().flat_map(|block| func.block_insts(block)).collect();
        for inst in insts {
            let place = func.place(inst);
            places.push((id, place));
            let mut numbered = place;
            numbered.at = LineColumn::new(places.len() as u32, 0);
            func.set_place(inst, numbered);
        }
    }
    places
}

type Logs = BTreeMap<(String, bool), LevelLog>;

/// Compiles functions of a module whose rows are numbered.
pub(crate) fn watch(
    module: &Module,
    funcs: &[FuncId],
    level: OptLevel,
    options: &brolga_opt::Options,
) -> Result<Vec<(FuncId, FuncLog)>, Error> {
    let logs: Arc<Mutex<Logs>> = Arc::default();
    let options = brolga_opt::Options {
        print_before: PassFilter::All,
        print_after: PassFilter::All,
        ..options.clone()
    };
    let start = Instant::now();
    let clock = move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let sink = logs.clone();
    let cx = Cx::new(None).with_clock(clock).with_sink(move |dump| {
        note(&mut sink.lock().unwrap_or_else(PoisonError::into_inner), dump);
    });
    let mut stages = Stages::new(module, level, &options, cx).with_roots(Lowering::Maps);
    let mut made = Vec::new();
    for &id in funcs {
        let times = |stages: &Stages<'_, '_>| {
            ["lower", "place roots"].map(|label| {
                stages.report().steps.iter().filter(|step| step.label == label).map(|step| step.time).sum()
            })
        };
        let before: [u64; 2] = times(&stages);
        let (mut placed, mut machine, mut refusal, mut code_time) = (None, None, None, 0);
        match stages.placed(id) {
            Ok(mut func) => {
                // A row's number identifies it, and CLIF shows it for statements of the function itself.
                func.forget_inlined_calls();
                placed = Some(snapshot(&module.cx, &func));
                let begin = clock();
                match emit::generate(module, [&func], level) {
                    Ok(code) => machine = machine_of(&code),
                    Err(error) => refusal = Some(error.to_string()),
                }
                code_time = clock() - begin;
            }
            Err(error @ (Error::NotNative(_) | Error::Roots { .. })) => refusal = Some(error.to_string()),
            Err(error) => return Err(error),
        }
        let after: [u64; 2] = times(&stages);
        made.push((
            id,
            FuncLog {
                high: LevelLog::default(),
                low: LevelLog::default(),
                lower_time: after[0].saturating_sub(before[0]),
                roots_time: after[1].saturating_sub(before[1]),
                code_time,
                placed,
                machine,
                refusal,
            },
        ));
    }
    drop(stages);
    let mut logs = std::mem::take(&mut *logs.lock().unwrap_or_else(PoisonError::into_inner));
    for (id, log) in &mut made {
        let symbol = module[*id].symbol(&module.cx);
        log.low = logs.remove(&(symbol.clone(), true)).unwrap_or_default();
        log.high = logs.remove(&(symbol, false)).unwrap_or_default();
        // The pipeline may be empty, and then there are no dumps.
        let first = if module[*id].level == Level::Low { &mut log.low.before } else { &mut log.high.before };
        first.get_or_insert_with(|| snapshot(&module.cx, &module[*id]));
    }
    Ok(made)
}

/// Receives the dumps of the pass manager.
fn note(logs: &mut Logs, dump: &Dump<'_>) {
    let key = (dump.symbol.to_owned(), dump.func.level == Level::Low);
    let log = logs.entry(key).or_default();
    let seen = || snapshot(&dump.module.cx, dump.func);
    match (dump.when, dump.row) {
        (When::Before, _) if log.before.is_none() => log.before = Some(seen()),
        (When::After, Some(report)) => {
            let after = (dump.changed == Changed::Yes).then(seen);
            log.steps.push(StepLog { report: report.clone(), after });
        }
        _ => {}
    }
}

fn machine_of(code: &emit::Code) -> Option<Machine> {
    let function = code.functions().next()?;
    let bytes = byte_rows(&function);
    Some(Machine {
        clif: clif_rows(code.clif().next().unwrap_or("")),
        listing: listing_rows(&function, &bytes),
        size: function.bytes.len(),
        frame_bytes: function.frame_bytes,
        frame_maps: function.frame_maps.to_vec(),
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::TextRow;
    use brolga_engine::Program;
    use brolga_ir::Arch;

    const PROGRAM: &str = "
function twice(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, x)::Int64
└──      return %1
end
function f(n::Int64)::Int64
1 ─ %1 = Base.mul_int(n, 7)::Int64
│   %2 = invoke Main.twice(%1::Int64)::Int64
│   %3 = Base.xor_int(%2, n)::Int64
└──      return %3
end";

    fn watched(level: OptLevel) -> Vec<(FuncId, FuncLog)> {
        let mut module = Program::read("p.jlir", PROGRAM.as_bytes()).unwrap().module().clone();
        let places = number_rows(&mut module);
        assert_eq!(places.len(), 6);
        let funcs: Vec<FuncId> = module.funcs().map(|(id, _)| id).collect();
        watch(&module, &funcs, level, &brolga_opt::Options::default()).unwrap()
    }

    #[test]
    fn rows_keep_their_origins_down_to_machine_code() {
        for level in OptLevel::ALL {
            let logs = watched(level);
            let machine = logs[1].1.machine.as_ref().unwrap();
            // Rows 3, 5 and 6 belong to `f`; row 1 belongs to `twice`, and appears where its body is inlined.
            let inlined = level >= OptLevel::O1;
            for rows in [&machine.clif, &machine.bytes, &machine.listing] {
                let has = |origin| rows.iter().any(|row| row.origin == origin);
                assert!(has(3) && has(5), "{level:?}: {rows:?}");
                assert_eq!(has(1), inlined, "{level:?}: {rows:?}");
            }
            assert_eq!(
                machine.size,
                machine.bytes.iter().map(|row| row.text.split('\t').nth(1).unwrap().len() / 2).sum::<usize>()
            );
        }
    }

    #[test]
    fn listings_for_another_architecture_have_origins() {
        let mut module = Program::read("p.jlir", PROGRAM.as_bytes()).unwrap().module().clone();
        number_rows(&mut module);
        let f = module.funcs().nth(1).unwrap().0;
        for level in OptLevel::ALL {
            let options = brolga_opt::Options::default();
            let mut stages = Stages::new(&module, level, &options, Cx::default()).with_roots(Lowering::Maps);
            let placed = stages.placed(f).unwrap();
            let code = emit::generate_for(&module, [&placed], level, Arch::Aarch64).unwrap();
            let rows = machine_of(&code).unwrap().listing;
            let origin = |mnemonics: &[&str]| {
                let is_one =
                    |row: &&TextRow| mnemonics.iter().any(|one| row.text.trim_start().starts_with(one));
                rows.iter().find(is_one).map(|row| row.origin)
            };
            let expected = (Some(3), Some(5));
            assert_eq!((origin(&["madd", "sub x"]), origin(&["eor"])), expected, "{level}: {rows:?}");
        }
    }

    #[test]
    fn steps_that_change_something_have_a_stage() {
        let logs = watched(OptLevel::O2);
        let log = &logs[1].1;
        let inline = log.high.steps.iter().find(|step| step.report.label == "inline").unwrap();
        let after = inline.after.as_ref().unwrap();
        assert!(inline.report.rewrites > 0);
        assert!(after.rows.iter().any(|row| row.origin == 1), "{after:?}");
        assert!(log.high.steps.iter().any(|step| step.after.is_none()));
        assert!(log.low.before.is_some() && log.placed.is_some() && log.refusal.is_none());
    }
}
