//! The fates of a function's rows: the rows of high and low IR and the machine instructions that originate
//! from each.
//!
//! ```text
//! module ── number rows ──► Stages ── dumps of the function ──► the pass after which no row has its origin
//!                              └──── high, placed, machine code ──► rows by origin
//! ```
//!
//! Rows carry their origins as in `watch`, which shows all functions after all passes; this file handles a
//! single function, for editors during typing. Only the final form at each level is kept.
//!
//! Cost: optimising the function with its callees, and generating its code unless it has more than
//! [`MAX_CODE_ROWS`] rows.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_engine::emit;
use brolga_engine::{Error, Stages};
use brolga_gcroots::Lowering;
use brolga_ir::text::show_func;
use brolga_ir::{Context, Func, FuncId, Module};
use brolga_opt::{Changed, Cx, Dump, OptLevel, Options, PassFilter, When};

use crate::machine::byte_rows;
use crate::rows::row_lines;
use crate::watch::number_rows;

/// Functions with more rows are not compiled to machine code.
pub const MAX_CODE_ROWS: usize = 5_000;

/// The results of a row after compilation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fate {
    /// The rows of high IR after all passes that originate from it, as printed.
    pub high: Vec<String>,
    /// The rows of low IR that originate from it.
    pub low: Vec<String>,
    /// The machine instructions that originate from it.
    pub code: Vec<String>,
    /// The pass that removed the last of its rows at its level of the IR, if none are left.
    pub removed_by: Option<&'static str>,
}

/// The fates of a function's rows.
#[derive(Clone, Debug)]
pub struct Fates {
    /// The original positions of the rows, with their fates, in text order.
    rows: Vec<(u32, Fate)>,
    /// The number of rows of high IR after all passes, and of low IR.
    sizes: (usize, usize),
    /// Why there is no machine code.
    refusal: Option<String>,
}

impl Fates {
    /// The fate of the row whose statement starts at this offset of the text.
    pub fn of(&self, start: u32) -> Option<&Fate> {
        let at = self.rows.partition_point(|(place, _)| *place < start);
        self.rows.get(at).filter(|(place, _)| *place == start).map(|(_, fate)| fate)
    }

    /// The number of the function's rows after the passes on high IR, and in low IR.
    pub fn sizes(&self) -> (usize, usize) {
        self.sizes
    }

    /// Why there is no machine code, if there is none.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}

/// The origins present in a function's rows, and the passes that removed the others.
#[derive(Default)]
struct Watched {
    present: BTreeSet<u32>,
    gone: Vec<(u32, &'static str)>,
}

/// The fates of a function's rows. The module is verified and was read from text.
///
/// # Errors
/// The module has no such function, or a pass fails. A function without a native form has its rows of high
/// IR, and the reason.
pub fn fates(module: &Module, id: FuncId, level: OptLevel) -> Result<Fates, Error> {
    let Some(func) = module.func(id) else {
        return Err(Error::ForeignFunction { id, count: module.func_count() });
    };
    let symbol = func.symbol(&module.cx);
    let mut module = module.clone();
    let places = number_rows(&mut module);
    let first = places.iter().take_while(|(owner, _)| *owner != id).count();
    let own: Vec<u32> =
        places[first..].iter().take_while(|(owner, _)| *owner == id).map(|(_, place)| place.start).collect();
    let watched = Arc::new(Mutex::new(Watched::default()));
    let sink = watched.clone();
    let cx = Cx::new(None).with_sink(move |dump: &Dump<'_>| {
        if dump.symbol == symbol {
            note(&mut sink.lock().unwrap_or_else(PoisonError::into_inner), dump);
        }
    });
    let options =
        Options { print_before: PassFilter::All, print_after: PassFilter::All, ..Options::default() };
    let mut stages = Stages::new(&module, level, &options, cx).with_roots(Lowering::Maps);
    let mut fates = vec![Fate::default(); own.len()];
    let slot = |origin: u32| (origin as usize).checked_sub(first + 1).filter(|at| *at < own.len());
    let high = stages.high(id)?;
    let high_rows = printed(&module.cx, &high);
    for (origin, text) in &high_rows {
        if let Some(at) = slot(*origin) {
            fates[at].high.push(text.clone());
        }
    }
    let (mut low_count, mut refusal) = (0, None);
    match stages.placed(id) {
        Ok(placed) => {
            let low_rows = printed(&module.cx, &placed);
            low_count = low_rows.len();
            for (origin, text) in low_rows {
                if let Some(at) = slot(origin) {
                    fates[at].low.push(text);
                }
            }
            if low_count > MAX_CODE_ROWS {
                refusal = Some(format!("it has more than {MAX_CODE_ROWS} rows"));
            } else {
                match emit::generate(&module, [&placed], level) {
                    Ok(code) => {
                        for row in code.functions().flat_map(|function| byte_rows(&function)) {
                            if let Some(at) = slot(row.origin) {
                                let text = row.text.rsplit('\t').next().unwrap_or("");
                                fates[at].code.push(text.to_owned());
                            }
                        }
                    }
                    Err(error) => refusal = Some(error.to_string()),
                }
            }
        }
        Err(error @ (Error::NotNative(_) | Error::Roots { .. })) => refusal = Some(error.to_string()),
        Err(error) => return Err(error),
    }
    drop(stages);
    let watched = std::mem::take(&mut *watched.lock().unwrap_or_else(PoisonError::into_inner));
    for (origin, pass) in watched.gone {
        if let Some(fate) = slot(origin).map(|at| &mut fates[at])
            && fate.low.is_empty()
        {
            fate.removed_by = Some(pass);
        }
    }
    let mut rows: Vec<(u32, Fate)> = own.into_iter().zip(fates).collect();
    rows.sort_by_key(|(start, _)| *start);
    // One row of the text may become several instructions.
    rows.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1.high.append(&mut next.1.high);
            kept.1.low.append(&mut next.1.low);
            kept.1.code.append(&mut next.1.code);
            kept.1.removed_by = kept.1.removed_by.or(next.1.removed_by);
        }
        same
    });
    Ok(Fates { rows, sizes: (high_rows.len(), low_count), refusal })
}

/// Receives a dump of the pass manager.
fn note(watched: &mut Watched, dump: &Dump<'_>) {
    if dump.when == When::After && dump.changed != Changed::Yes {
        return;
    }
    let func = dump.func;
    let insts = func.blocks().flat_map(|block| func.block_insts(block));
    let present: BTreeSet<u32> = insts.map(|inst| func.place(inst).at.line().unwrap_or(0)).collect();
    if dump.when == When::After {
        watched.gone.extend(watched.present.difference(&present).map(|&origin| (origin, dump.label)));
    }
    watched.present = present;
}

/// The rows of a function as printed, without guards, each with its origin.
fn printed(cx: &Context, func: &Func) -> Vec<(u32, String)> {
    let text = show_func(cx, func).to_string();
    let lines: Vec<&str> = text.lines().collect();
    let insts = func.blocks().flat_map(|block| func.block_insts(block));
    let guard = |c: char| "│└─┄ 0123456789".contains(c);
    let row = |(inst, line): (_, u32)| {
        let line = lines.get(line as usize).copied().unwrap_or("");
        (func.place(inst).at.line().unwrap_or(0), line.trim_start_matches(guard).to_owned())
    };
    insts.zip(row_lines(func)).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_engine::Program;

    const PROGRAM: &str = "
function twice(x::Int64)::Int64
1 ─ %1 = Base.add_int(x, x)::Int64
└──      return %1
end
function f(n::Int64)::Int64
1 ─ %1 = Base.mul_int(n, 7)::Int64
│   %2 = Base.mul_int(n, 7)::Int64
│   %3 = invoke Main.twice(%1::Int64)::Int64
│   %4 = Base.xor_int(%3, %2)::Int64
└──      return %4
end";

    #[test]
    fn rows_have_fates() {
        let program = Program::read("p.jlir", PROGRAM.as_bytes()).unwrap();
        let (id, _) = program.module().funcs().nth(1).unwrap();
        let fates = fates(program.module(), id, OptLevel::O2).unwrap();
        let at = |text: &str| PROGRAM.find(text).unwrap() as u32;
        let second = fates.of(at("%2 = Base.mul_int")).unwrap();
        assert!(second.high.is_empty() && second.low.is_empty(), "{second:?}");
        assert!(second.removed_by.is_some());
        let xor = fates.of(at("%4 = Base.xor_int")).unwrap();
        assert!(xor.high[0].contains("xor_int") && xor.low[0].contains("xor_int"), "{xor:?}");
        assert_eq!(xor.removed_by, None);
        assert_eq!(fates.refusal(), None);
        assert!(fates.of(at("function f")).is_none());
    }

    #[test]
    fn ids_of_other_programs_are_errors() {
        let program = Program::read("p.jlir", PROGRAM.as_bytes()).unwrap();
        assert!(fates(program.module(), FuncId::from_u32(1000), OptLevel::O2).is_err());
    }
}
