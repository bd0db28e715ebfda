//! A snapshot as text: totals, then functions.
//!
//! ```text
//! brolga top   pid 4711   12.3 s   312 compiled in 45.1 ms   2 waiting
//! code 1.2 MiB (64 KiB retired)   heap 8.0 MiB   3 + 1 collections, longest pause 1.1 ms
//! 280 functions: 200 without code, 60 in tier 1, 20 in tier 2; 20 went up, 0 invalidated, 0 evicted, 3 loops left
//!
//! tier      calls       code    compile  function
//!    2          -      1.2 KiB   310 µs  fib(Int64)
//! ```

use std::cmp::Reverse;
use std::fmt::Write as _;

use crate::snapshot::{FunctionRow, Snapshot};

/// The column by which functions are sorted. Equal ones are sorted by symbol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SortBy {
    /// The highest tier first, and within a tier the most calls.
    #[default]
    Tier,
    /// The most calls first.
    Calls,
    /// The most code first.
    Code,
    /// The longest compile time first.
    Compile,
    /// By symbol.
    Name,
}

impl SortBy {
    /// All of them.
    pub const ALL: [SortBy; 5] = [SortBy::Tier, SortBy::Calls, SortBy::Code, SortBy::Compile, SortBy::Name];

    /// The name of the column.
    pub fn name(self) -> &'static str {
        match self {
            SortBy::Tier => "tier",
            SortBy::Calls => "calls",
            SortBy::Code => "code",
            SortBy::Compile => "compile",
            SortBy::Name => "name",
        }
    }

    /// The column with this name.
    pub fn from_name(name: &str) -> Option<SortBy> {
        SortBy::ALL.into_iter().find(|sort| sort.name() == name)
    }
}

fn time(nanoseconds: u64) -> String {
    let value = nanoseconds as f64;
    match nanoseconds {
        0..1_000 => format!("{nanoseconds} ns"),
        1_000..1_000_000 => format!("{:.1} µs", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", value / 1e6),
        _ => format!("{:.1} s", value / 1e9),
    }
}

fn size(bytes: u64) -> String {
    let value = bytes as f64;
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", value / 1_024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

fn or_dash<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}

/// The lines of a snapshot: at most `height` lines of at most `width` characters. Control characters in
/// symbols are replaced.
pub fn lines(snapshot: &Snapshot, sort: SortBy, height: usize, width: usize) -> Vec<String> {
    let mut lines = sums(snapshot);
    lines.push(String::new());
    lines.push(format!("{:>4} {:>10} {:>10} {:>10}  {}", "tier", "calls", "code", "compile", "function"));
    let mut functions: Vec<&FunctionRow> = snapshot.functions.iter().collect();
    functions.sort_by(|a, b| {
        let order = match sort {
            SortBy::Tier => Reverse((a.tier, a.calls)).cmp(&Reverse((b.tier, b.calls))),
            SortBy::Calls => Reverse(a.calls).cmp(&Reverse(b.calls)),
            SortBy::Code => Reverse(a.bytes).cmp(&Reverse(b.bytes)),
            SortBy::Compile => Reverse(a.compiling).cmp(&Reverse(b.compiling)),
            SortBy::Name => std::cmp::Ordering::Equal,
        };
        order.then_with(|| (&a.symbol, &a.dylib).cmp(&(&b.symbol, &b.dylib)))
    });
    let room = height.saturating_sub(lines.len());
    let shown = if functions.len() > room { room.saturating_sub(1) } else { functions.len() };
    let is_one = functions.iter().all(|function| function.dylib == functions[0].dylib);
    lines.extend(functions[..shown].iter().map(|function| row(function, !is_one)));
    if shown < functions.len() {
        lines.push(format!("… and {} more", functions.len() - shown));
    }
    lines.truncate(height);
    lines.into_iter().map(|line| line.chars().take(width).collect()).collect()
}

fn row(function: &FunctionRow, with_dylib: bool) -> String {
    let code = if function.bytes == 0 { "-".to_owned() } else { size(function.bytes) };
    let name = match with_dylib {
        true => format!("{} of {}", function.symbol, function.dylib),
        false => function.symbol.clone(),
    };
    let name = name.replace(char::is_control, "\u{fffd}");
    format!(
        "{:>4} {:>10} {code:>10} {:>10}  {name}",
        or_dash(function.tier, |tier| tier.to_string()),
        or_dash(function.calls, |calls| calls.to_string()),
        or_dash(function.compiling, time),
    )
}

fn sums(snapshot: &Snapshot) -> Vec<String> {
    let mut first = format!(
        "brolga top   pid {}   {}   {} compiled",
        snapshot.pid,
        time(snapshot.uptime),
        snapshot.compiled
    );
    // Writing to a string cannot fail.
    if let Some(compiling) = snapshot.compiling {
        let _ = write!(first, " in {}", time(compiling));
    }
    if let Some(queued) = snapshot.queued {
        let _ = write!(first, "   {queued} tasks wait");
    }
    let _ = write!(first, "   {} look-ups wait", snapshot.lookups);
    let second = format!(
        "code {} ({} retired, {} resident)   heap {} of {} mapped   {} + {} collections, {} in pauses, longest {}",
        size(snapshot.code_in_use),
        size(snapshot.code_retired),
        size(snapshot.code_resident),
        size(snapshot.heap_used),
        size(snapshot.heap_mapped),
        snapshot.collections.0,
        snapshot.collections.1,
        time(snapshot.pauses.0),
        time(snapshot.pauses.1),
    );
    let tier = |tier: u8| snapshot.functions.iter().filter(|function| function.tier == Some(tier)).count();
    let third = format!(
        "{} functions: {} without code, {} in tier 1, {} in tier 2   {} went up, {} invalidated, {} evicted, {} loops left",
        snapshot.functions.len(),
        tier(0),
        tier(1),
        tier(2),
        or_dash(snapshot.upgrades, |count| count.to_string()),
        or_dash(snapshot.invalidations, |count| count.to_string()),
        snapshot.evictions,
        snapshot.left_loops,
    );
    vec![first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(symbol: &str, tier: Option<u8>, calls: Option<u32>, bytes: u64) -> FunctionRow {
        let dylib = "main".to_owned();
        FunctionRow { dylib, symbol: symbol.to_owned(), tier, calls, bytes, compiling: None }
    }

    #[test]
    fn functions_are_sorted_and_cut() {
        let functions = vec![
            function("a(Int64)", Some(0), None, 0),
            function("b\u{1b}[2J()", Some(1), Some(7), 2048),
            function("c()", Some(2), None, 100),
        ];
        let snapshot = Snapshot { functions, ..Snapshot::default() };
        let names = |sort, height| -> Vec<String> {
            let lines = lines(&snapshot, sort, height, 200);
            lines[5..].iter().map(|line| line.rsplit("  ").next().unwrap_or("").to_owned()).collect()
        };
        assert_eq!(names(SortBy::Tier, 99), ["c()", "b\u{fffd}[2J()", "a(Int64)"]);
        assert_eq!(names(SortBy::Code, 99)[0], "b\u{fffd}[2J()");
        assert_eq!(names(SortBy::Name, 99)[0], "a(Int64)");
        assert_eq!(names(SortBy::Calls, 7), ["b\u{fffd}[2J()", "… and 2 more"]);
        assert!(lines(&snapshot, SortBy::Tier, 0, 0).is_empty());
        assert!(lines(&snapshot, SortBy::Tier, 99, 5).iter().all(|line| line.chars().count() <= 5));
        assert!(SortBy::ALL.iter().all(|sort| SortBy::from_name(sort.name()) == Some(*sort)));
    }

    #[test]
    fn snapshots_survive_json() {
        let functions = vec![function("f(\"\\\u{1}\")", Some(1), Some(3), 9)];
        let snapshot = Snapshot { pid: 7, queued: Some(2), functions, ..Snapshot::default() };
        let line = snapshot.to_json();
        assert!(!line.contains('\n'));
        assert_eq!(Snapshot::from_json(&line), Ok(snapshot));
        // From another version.
        assert_eq!(Snapshot::from_json("{\"pid\":3,\"new\":1}").map(|snapshot| snapshot.pid), Ok(3));
        assert!(Snapshot::from_json("[]x").is_err());
    }
}
