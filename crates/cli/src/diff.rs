//! The changes of a pass to a function, as added and removed lines.
//!
//! ```text
//!   function f(n::Int64)::Int64
//! - 1 ─ %1 = intrinsic Base.mul_int(n, 1)::Int64
//!   └──      return n
//!   end
//! ```
//!
//! Rows are compared by identity, not by their text: a statement is the same if it is the same instruction with the same
//! operation, operands and targets in the same block, under any number. Rows that are in both functions are
//! unique, so the longest common sequence of rows is the longest ascending run of their old positions. Cost: `n log n`.

use std::collections::BTreeMap;

use brolga::ir::text::show_func;
use brolga::ir::{Block, Context, Func, Inst, Op};

/// Unchanged rows that are shown on either side of a change.
const CONTEXT: usize = 2;

/// The identity of a row.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Row(Block, Inst, String),
    /// The head and the end of a function, by their text.
    Text(String),
}

struct Row {
    key: Key,
    text: String,
}

/// The rows that differ between two states of a function, with some context.
pub(super) fn diff(cx: &Context, before: &Func, after: &Func) -> String {
    let (old, new) = (rows(cx, before), rows(cx, after));
    let places: BTreeMap<&Key, usize> = old.iter().enumerate().map(|(n, row)| (&row.key, n)).collect();
    let found: Vec<Option<usize>> = new.iter().map(|row| places.get(&row.key).copied()).collect();
    let kept = longest_ascending(&found);
    let mut lines = Vec::new();
    let (mut next_old, mut next_new) = (0, 0);
    let mut change = |lines: &mut Vec<(char, _)>, upto_old: usize, upto_new: usize| {
        lines.extend(old[next_old..upto_old].iter().map(|row| ('-', row.text.as_str())));
        lines.extend(new[next_new..upto_new].iter().map(|row| ('+', row.text.as_str())));
        (next_old, next_new) = (upto_old + 1, upto_new + 1);
    };
    for (n, row) in new.iter().enumerate() {
        if let Some(at) = found[n].filter(|_| kept[n]) {
            change(&mut lines, at, n);
            lines.push((' ', row.text.as_str()));
        }
    }
    change(&mut lines, old.len(), new.len());
    shown(&lines)
}

fn rows(cx: &Context, func: &Func) -> Vec<Row> {
    let text = show_func(cx, func).to_string();
    let lines: Vec<&str> = text.trim_end().lines().collect();
    let insts: Vec<(Block, Inst)> =
        func.blocks().flat_map(|b| func.block_insts(b).map(move |i| (b, i))).collect();
    // One line for the head, one for each statement, one for the end.
    let first = lines.len().saturating_sub(insts.len() + 1);
    let row = |(n, line): (usize, &&str)| {
        let statement = n.checked_sub(first).and_then(|n| insts.get(n));
        let key = match statement {
            Some(&(block, inst)) => Key::Row(block, inst, content(func, inst)),
            None => Key::Text((*line).to_owned()),
        };
        Row { key, text: (*line).to_owned() }
    };
    lines.iter().enumerate().map(row).collect()
}

/// An instruction with the names that do not change from pass to pass.
fn content(func: &Func, inst: Inst) -> String {
    let callee = match func.op(inst) {
        Op::Invoke(callee) | Op::CallSymbol(callee) | Op::CFunction(callee) => {
            format!("{:?}", func.callee(callee))
        }
        op => format!("{op:?}"),
    };
    let types: Vec<_> = func.results(inst).map(|v| func.ty(v)).collect();
    format!("{callee} {:?} {:?} {types:?}", func.args(inst), func.inst_blocks(inst))
}

/// Which of the numbers belong to a longest ascending sequence.
fn longest_ascending(numbers: &[Option<usize>]) -> Vec<bool> {
    // By length: where the sequence of this length ends whose last number is the least.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (n, number) in numbers.iter().enumerate().filter(|(_, number)| number.is_some()) {
        let length = ends.partition_point(|&end| numbers[end] < *number);
        before[n] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = n,
            None => ends.push(n),
        }
    }
    let mut kept = vec![false; numbers.len()];
    let mut at = ends.last().copied();
    while let Some(n) = at {
        kept[n] = true;
        at = before[n];
    }
    kept
}

fn shown(lines: &[(char, &str)]) -> String {
    let is_change = |n: usize| lines.get(n).is_some_and(|(mark, _)| *mark != ' ');
    let near = |n: usize| (n.saturating_sub(CONTEXT)..=n + CONTEXT).any(is_change);
    let mut text = String::new();
    let mut skipped = false;
    for (n, (mark, line)) in lines.iter().enumerate() {
        if !near(n) {
            skipped = true;
            continue;
        }
        if std::mem::take(&mut skipped) {
            text.push_str("  ⋮\n");
        }
        text.push_str(&format!("{mark} {line}\n"));
    }
    if skipped {
        text.push_str("  ⋮\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::longest_ascending;

    #[test]
    fn the_longest_run_is_kept() {
        let kept = |numbers: &[usize]| {
            let numbers: Vec<Option<usize>> = numbers.iter().map(|&n| Some(n)).collect();
            let kept = longest_ascending(&numbers);
            numbers.iter().zip(kept).filter(|(_, kept)| *kept).filter_map(|(n, _)| *n).collect::<Vec<_>>()
        };
        assert_eq!(kept(&[0, 4, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(kept(&[3, 2, 1]), [1]);
        assert!(kept(&[]).is_empty());
        assert_eq!(longest_ascending(&[None, Some(1), None]), [false, true, false]);
    }
}
