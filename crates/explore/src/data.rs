//! The data of the page as compact JSON.
//!
//! ```text
//! { source, own, strings, lines, owns, counts, funcs: [ { stages, steps, texts, … } ] }
//! ```
//!
//! Statements are in one table without duplicates: passes keep most rows, and rows refer to instructions by
//! ids that passes keep. A stage is encoded as its difference from the previous stage, a flat list of
//! numbers:
//!
//! ```text
//! from, count, new, (instruction, statement, origin) × new      repeated: `count` rows of the previous stage from `from` on, then `new` rows
//! ```
//!
//! With flat lists instead of objects, and compressed, a page of 1,000 functions takes two to three megabytes.
//! `page.js` reads it (`decodeStages`).

use std::collections::BTreeMap;

use brolga_engine::Program;
use brolga_ir::func::Place;
use brolga_ir::text::show_func;
use brolga_ir::{Block, FuncId, Level, Module};
use brolga_opt::callgraph::callees;

use crate::json::Json;
use crate::machine::TextRow;
use crate::options::Options;
use crate::rows::{Row, Snapshot, row_lines};
use crate::watch::{FuncLog, LevelLog, Machine};

/// The result of a counted call.
pub(crate) struct Profile {
    pub(crate) call: String,
    pub(crate) outcome: String,
    /// The number of times that each block was entered.
    pub(crate) counts: Vec<(FuncId, Block, u64)>,
}

/// The data of a page.
pub(crate) fn of(
    program: &Program,
    module: &Module,
    places: &[(FuncId, Place)],
    logs: &[(FuncId, FuncLog)],
    profile: Option<&Profile>,
    options: &Options,
) -> Json {
    let numbers: BTreeMap<FuncId, usize> = logs.iter().enumerate().map(|(n, (id, _))| (*id, n)).collect();
    let source = match options.only {
        None if !program.source().text().is_empty() => source_of(program, places),
        // A program that was built has no text except its printed form.
        _ => printed(module, &numbers),
    };
    let mut strings = Strings::default();
    let funcs: Vec<Json> = logs
        .iter()
        .map(|(id, log)| function(module, *id, log, &numbers, &source.heads, &mut strings))
        .collect();
    let (counts, entries) = counts_of(module, profile, &numbers);
    let own = options.source.as_ref().map_or(Json::Null, |own| {
        let lines = own.text.lines().map(str::to_owned);
        Json::Object(vec![("name", Json::text(&own.name)), ("lines", Json::texts(lines))])
    });
    let run = profile.map_or(Json::Null, |profile| {
        let (call, outcome) = (Json::text(&profile.call), Json::text(&profile.outcome));
        Json::Object(vec![("call", call), ("outcome", outcome), ("entries", entries)])
    });
    Json::Object(vec![
        ("version", Json::text(env!("CARGO_PKG_VERSION"))),
        ("level", Json::Number(options.level as i64)),
        (
            "source",
            Json::Object(vec![("name", Json::text(source.name)), ("lines", Json::texts(source.lines))]),
        ),
        ("own", own),
        ("run", run),
        ("lines", Json::numbers(source.rows)),
        ("owns", Json::numbers(places.iter().map(|(_, place)| place.at.line().unwrap_or(0)))),
        ("of", Json::numbers(places.iter().map(|(id, _)| numbers.get(id).map_or(-1, |&n| n as i64)))),
        ("counts", counts),
        ("funcs", Json::List(funcs)),
        ("strings", Json::texts(strings.texts)),
    ])
}

/// The text of the program in the first column.
struct SourceText {
    name: String,
    lines: Vec<String>,
    /// The line of each origin, from 1; 0 for rows that are not in the text.
    rows: Vec<u32>,
    /// The line of each function's head, from 1.
    heads: BTreeMap<FuncId, u32>,
}

fn source_of(program: &Program, places: &[(FuncId, Place)]) -> SourceText {
    let source = program.source();
    let mut heads: BTreeMap<FuncId, u32> = BTreeMap::new();
    let line = |place: &Place| if place.end > 0 { source.position(place.start).line } else { 0 };
    let rows: Vec<u32> = places.iter().map(|(_, place)| line(place)).collect();
    for ((id, _), &line) in places.iter().zip(&rows).filter(|(_, line)| **line > 1) {
        heads.entry(*id).or_insert(line - 1);
    }
    let lines = source.text().lines().map(str::to_owned).collect();
    SourceText { name: source.name().to_owned(), lines, rows, heads }
}

/// The printed text of the functions that have numbers.
fn printed(module: &Module, numbers: &BTreeMap<FuncId, usize>) -> SourceText {
    let mut heads: BTreeMap<FuncId, u32> = BTreeMap::new();
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for (id, func) in module.funcs() {
        if !numbers.contains_key(&id) {
            rows.extend(row_lines(func).iter().map(|_| 0));
            continue;
        }
        let first = lines.len() as u32 + 1;
        heads.insert(id, first);
        rows.extend(row_lines(func).into_iter().map(|line| first + line));
        lines.extend(show_func(&module.cx, func).to_string().lines().map(str::to_owned));
        lines.push(String::new());
    }
    SourceText { name: "printed program".to_owned(), lines, rows, heads }
}

/// The number of executions of each origin, and the number of calls of each function.
fn counts_of(module: &Module, profile: Option<&Profile>, numbers: &BTreeMap<FuncId, usize>) -> (Json, Json) {
    let Some(profile) = profile else { return (Json::Null, Json::Null) };
    let entered: BTreeMap<(FuncId, Block), u64> =
        profile.counts.iter().map(|&(func, block, count)| ((func, block), count)).collect();
    let count = |id, block| entered.get(&(id, block)).copied().unwrap_or(0);
    let mut counts = Vec::new();
    let mut entries = vec![0; numbers.len()];
    for (id, func) in module.funcs() {
        if let (Some(&number), Some(entry)) = (numbers.get(&id), func.entry()) {
            entries[number] = count(id, entry);
        }
        for block in func.blocks() {
            counts.extend(func.block_insts(block).map(|_| Json::count(count(id, block))));
        }
    }
    (Json::List(counts), Json::List(entries.into_iter().map(Json::count).collect()))
}

/// Texts by number, without duplicates.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    numbers: BTreeMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as i64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

fn function(
    module: &Module,
    id: FuncId,
    log: &FuncLog,
    numbers: &BTreeMap<FuncId, usize>,
    heads: &BTreeMap<FuncId, u32>,
    strings: &mut Strings,
) -> Json {
    let func = &module[id];
    let mut stages = Stages { strings, last: None, stages: Vec::new(), steps: Vec::new() };
    if func.level == Level::High {
        stages.level("read", "high", &log.high);
        if log.low.before.is_some() {
            stages.step("lower", "lower", log.lower_time);
        }
    }
    stages.level(if func.level == Level::High { "lower" } else { "read" }, "low", &log.low);
    if let Some(placed) = &log.placed {
        stages.step("place roots", "roots", log.roots_time);
        stages.stage("roots", "place roots", placed);
    }
    if log.machine.is_some() {
        stages.step("generate code", "code", log.code_time);
    }
    let (stages, steps) = (stages.stages, stages.steps);
    let called = callees(module, func);
    let called = called.iter().filter_map(|id| numbers.get(id)).map(|&number| number as i64);
    let text = |text: &Option<String>| text.as_ref().map_or(Json::Null, Json::text);
    let mut fields = vec![
        ("name", Json::text(func.spelled_name(&module.cx))),
        ("symbol", Json::text(func.symbol(&module.cx))),
        ("line", Json::Number(heads.get(&id).copied().unwrap_or(0).into())),
        ("calls", Json::numbers(called)),
        ("steps", Json::List(steps)),
        ("stages", Json::List(stages)),
        ("refusal", text(&log.refusal)),
    ];
    if let Some(machine) = &log.machine {
        fields.extend(machine_fields(machine));
    }
    Json::Object(fields)
}

fn machine_fields(machine: &Machine) -> Vec<(&'static str, Json)> {
    let rows = |rows: &[TextRow]| {
        let lines: Vec<&str> = rows.iter().map(|row| row.text.as_str()).collect();
        Json::List(vec![Json::numbers(rows.iter().map(|row| row.origin)), Json::text(lines.join("\n"))])
    };
    let maps = machine.frame_maps.iter().map(|map| {
        let words = map.words.iter().map(|&word| i64::from(word));
        Json::numbers(std::iter::once(i64::from(map.return_offset)).chain(words))
    });
    vec![
        ("clif", rows(&machine.clif)),
        ("vcode", rows(&machine.listing)),
        ("asm", rows(&machine.bytes)),
        ("size", Json::count(machine.size as u64)),
        ("frame", Json::Number(machine.frame_bytes.into())),
        ("maps", Json::List(maps.collect())),
    ]
}

/// The stages of one function while they are collected.
struct Stages<'a> {
    strings: &'a mut Strings,
    last: Option<&'a Snapshot>,
    stages: Vec<Json>,
    steps: Vec<Json>,
}

impl<'a> Stages<'a> {
    /// All stages at one level of the IR, the first of which has the label `first`.
    fn level(&mut self, first: &str, kind: &str, log: &'a LevelLog) {
        let Some(before) = &log.before else { return };
        // Lowering and reading produce a function that has nothing in common with the previous one.
        self.last = None;
        self.stage(kind, first, before);
        for step in &log.steps {
            let report = &step.report;
            let stage = step.after.as_ref().map_or(-1, |_| self.stages.len() as i64);
            let counters: Vec<String> =
                report.counters.iter().map(|(name, count)| format!("{count} {name}")).collect();
            let numbers = [report.time, report.rewrites, report.insts_before, report.insts_after];
            let mut fields = vec![Json::text(report.label), Json::text(kind), Json::Number(stage)];
            fields.extend(numbers.map(Json::count));
            fields.push(Json::text(counters.join(", ")));
            self.steps.push(Json::List(fields));
            if let Some(after) = &step.after {
                self.stage(kind, report.label, after);
            }
        }
    }

    /// A step other than a pass; the next stage, if there is one, is its result.
    fn step(&mut self, label: &str, kind: &str, time: u64) {
        let stage = if kind == "code" { -1 } else { self.stages.len() as i64 };
        let fields = vec![Json::text(label), Json::text(kind), Json::Number(stage), Json::count(time)];
        self.steps.push(Json::List(fields));
    }

    fn stage(&mut self, kind: &str, label: &str, now: &'a Snapshot) {
        let old = self.last.map_or(&[][..], |last| &last.rows);
        let delta = delta(old, &now.rows, self.strings);
        let same_blocks = self.last.is_some_and(|last| last.blocks == now.blocks);
        let blocks = if same_blocks { Json::Null } else { Json::numbers(now.blocks.iter().copied()) };
        self.stages.push(Json::List(vec![
            Json::text(label),
            Json::text(kind),
            Json::text(&now.signature),
            Json::numbers(delta),
            blocks,
        ]));
        self.last = Some(now);
    }
}

/// The difference of two lists of rows, as described in the file's header.
fn delta(old: &[Row], new: &[Row], strings: &mut Strings) -> Vec<i64> {
    let mut places: BTreeMap<(u32, &str, u32), usize> = BTreeMap::new();
    for (at, row) in old.iter().enumerate() {
        places.insert((row.inst, &row.text, row.origin), at);
    }
    let place = |row: &Row| places.get(&(row.inst, row.text.as_str(), row.origin)).copied();
    let mut flat = Vec::new();
    let mut at = 0;
    while at < new.len() {
        let from = place(&new[at]).unwrap_or(0);
        let count = if place(&new[at]).is_none() {
            0
        } else {
            old[from..].iter().zip(&new[at..]).take_while(|(old, new)| old == new).count()
        };
        at += count;
        let fresh = new[at..].iter().take_while(|row| place(row).is_none()).count();
        flat.extend([from as i64, count as i64, fresh as i64]);
        for row in &new[at..at + fresh] {
            flat.extend([i64::from(row.inst), strings.number(&row.text), i64::from(row.origin)]);
        }
        at += fresh;
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::{Strings, delta};
    use crate::rows::Row;

    fn rows(list: &[(u32, &str)]) -> Vec<Row> {
        list.iter().map(|&(inst, text)| Row { inst, text: text.to_owned(), origin: inst }).collect()
    }

    #[test]
    fn a_delta_copies_what_stayed() {
        let old = rows(&[(1, "a"), (2, "b"), (3, "c"), (4, "d")]);
        let new = rows(&[(1, "a"), (2, "b"), (9, "x"), (4, "d"), (3, "c")]);
        let mut strings = Strings::default();
        assert_eq!(delta(&old, &new, &mut strings), [0, 2, 1, 9, 0, 9, 3, 1, 0, 2, 1, 0]);
        assert_eq!(strings.texts, ["x"]);
        assert_eq!(delta(&[], &rows(&[(5, "x")]), &mut strings), [0, 0, 1, 5, 0, 5]);
        assert!(delta(&old, &[], &mut strings).is_empty());
    }
}
