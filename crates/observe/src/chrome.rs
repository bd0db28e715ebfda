//! A trace in the trace-event format: JSON that can be opened in Perfetto (`ui.perfetto.dev`) and
//! `chrome://tracing`.
//!
//! | event | in the file |
//! |---|---|
//! | span | `B` and `E` on its thread, named after its stage; passes and parts of collections by their own names |
//! | wait of a task in the queue | `b` and `e`, category `queue`, by the number of the task |
//! | published, tiered up, left a loop (once, and whenever the number has doubled), invalidated, evicted, collected, interrupted | `i`, with details in `args` |
//! | bytes that objects use | `C`, after each collection |
//! | names of process and threads | `M` |
//!
//! Times are microseconds since the trace began, and do not decrease from row to row.

use std::fmt::Write as _;
use std::time::Duration;

use brolga_runtime::events::Stage;

use crate::json::string;
use crate::trace::{Row, Trace, What};

/// The number of the file's only process.
const PROCESS: u32 = 1;

impl Trace {
    /// The trace in the trace-event format.
    pub fn chrome_json(&self) -> String {
        let kept = self.kept();
        let mut events = vec![meta("process_name", 0, "brolga")];
        events.extend(kept.threads.iter().enumerate().map(|(at, name)| meta("thread_name", at, name)));
        let mut open: Vec<Vec<&str>> = vec![Vec::new(); kept.threads.len()];
        for row in &kept.rows {
            let names = &mut open[row.thread];
            // The end of a span is named like its beginning.
            let name = match &row.what {
                What::Begin(stage, subject) => {
                    let name = if is_named(*stage) { subject } else { stage.name() };
                    names.push(name);
                    name
                }
                What::End(_) => names.pop().unwrap_or_default(),
                _ => "",
            };
            event(&mut events, row, name);
        }
        let mut text = "{\"displayTimeUnit\":\"ns\",".to_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\"otherData\":{{\"dropped\":{}}},\"traceEvents\":[", kept.dropped);
        text.push_str(&events.join(",\n"));
        text.push_str("\n]}\n");
        text
    }
}

fn meta(kind: &str, thread: usize, name: &str) -> String {
    format!(
        "{{\"ph\":\"M\",\"name\":{},\"cat\":\"__metadata\",\"pid\":{PROCESS},\"tid\":{},\"ts\":0,\"args\":{{\"name\":{}}}}}",
        string(kind),
        thread + 1,
        string(name)
    )
}

fn event(events: &mut Vec<String>, row: &Row, span: &str) {
    let (ph, name, rest) = match &row.what {
        What::Begin(stage, subject) if is_named(*stage) || subject.is_empty() => ("B", span, String::new()),
        What::Begin(_, subject) => ("B", span, args(&[("of", string(subject))])),
        What::End(_) => ("E", span, String::new()),
        What::Queued(task) => ("b", "queued", format!(",\"id\":{task}")),
        What::Started(task) => ("e", "queued", format!(",\"id\":{task}")),
        What::Published { function, tier } => {
            ("i", "published", instant(&[("function", string(function)), ("tier", tier.to_string())]))
        }
        What::TieredUp(function) => ("i", "tiered up", instant(&[("function", string(function))])),
        What::LeftLoop { function, times } => {
            ("i", "left a loop", instant(&[("function", string(function)), ("times", times.to_string())]))
        }
        What::Invalidated { function, reason } => {
            ("i", "invalidated", instant(&[("function", string(function)), ("reason", string(reason))]))
        }
        What::Evicted { function, bytes } => {
            ("i", "evicted", instant(&[("function", string(function)), ("bytes", bytes.to_string())]))
        }
        What::Collected { is_full, pause, used } => {
            let kind = if *is_full { "full" } else { "minor" };
            let about = [("kind", string(kind)), ("pause_us", micros(*pause)), ("used", used.to_string())];
            events.push(line("i", "collected", row, &instant(&about)));
            ("C", "objects", args(&[("bytes", used.to_string())]))
        }
        What::Interrupted => ("i", "interrupted", instant(&[])),
    };
    events.push(line(ph, name, row, &rest));
}

/// Whether spans of a stage have their own names: passes, parts of collections.
pub(crate) fn is_named(stage: Stage) -> bool {
    matches!(stage, Stage::Pass | Stage::Phase)
}

fn line(ph: &str, name: &str, row: &Row, rest: &str) -> String {
    let category = match row.what {
        What::Queued(_) | What::Started(_) => "queue",
        What::Collected { .. } => "heap",
        What::Begin(Stage::Collect | Stage::Phase | Stage::Finalize, _) => "heap",
        What::End(Stage::Collect | Stage::Phase | Stage::Finalize) => "heap",
        _ => "code",
    };
    format!(
        "{{\"ph\":\"{ph}\",\"name\":{},\"cat\":\"{category}\",\"ts\":{},\"pid\":{PROCESS},\"tid\":{}{rest}}}",
        string(name),
        micros(row.at),
        row.thread + 1
    )
}

/// An instant event on a thread.
fn instant(about: &[(&str, String)]) -> String {
    format!(",\"s\":\"t\"{}", args(about))
}

fn args(about: &[(&str, String)]) -> String {
    let parts: Vec<String> = about.iter().map(|(key, value)| format!("{}:{value}", string(key))).collect();
    format!(",\"args\":{{{}}}", parts.join(","))
}

/// Microseconds, exact to the nanosecond.
fn micros(time: Duration) -> String {
    format!("{}.{:03}", time.as_micros(), time.as_nanos() % 1000)
}

#[cfg(test)]
mod tests {
    use brolga_runtime::events::{Event, EventListener as _, Stage};

    use crate::Trace;

    #[test]
    fn spans_and_waits_that_are_open_end() {
        let trace = Trace::new();
        trace.event(Event::End { stage: Stage::Link });
        trace.event(Event::Queued { task: 7 });
        trace.event(Event::Begin { stage: Stage::Optimise, name: "a \"b\"" });
        trace.event(Event::Begin { stage: Stage::Collect, name: "" });
        trace.event(Event::Started { task: 8 });
        let json = trace.chrome_json();
        let phases: Vec<&str> =
            json.lines().filter_map(|line| line.strip_prefix("{\"ph\":\"")?.get(..1)).collect();
        assert_eq!(phases, ["M", "M", "b", "B", "B", "E", "E", "e"]);
        let ends: Vec<&str> = json.lines().filter(|line| line.contains("\"ph\":\"E\"")).collect();
        assert!(ends[0].contains("collect") && ends[1].contains("optimise"), "{json}");
        assert!(json.contains("a \\\"b\\\""), "{json}");
    }
}
