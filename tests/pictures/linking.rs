//! The states of a symbol, from the table in the header of the linking machine, compared with its enumeration.

use crate::source;
use crate::svg::{Svg, lines};

const FILE: &str = "crates/linking/src/machine/mod.rs";

/// The rows of the table: state, what it owns, what leaves it.
fn table(text: &str) -> Vec<[String; 3]> {
    let rows = text.lines().skip_while(|line| !line.starts_with("//! | state of a symbol"));
    let rows = rows.skip(2).take_while(|line| line.starts_with("//! |"));
    let cells = |line: &str| {
        let cells: Vec<&str> =
            line.trim_start_matches("//! |").trim_end_matches('|').split('|').map(str::trim).collect();
        <[&str; 3]>::try_from(cells).unwrap().map(str::to_owned)
    };
    rows.map(cells).collect()
}

/// The variants of the enumeration, as words.
fn variants(text: &str) -> Vec<String> {
    let body = text.split_once("\nenum State<P: Parts> {").unwrap().1.split_once("\n}").unwrap().0;
    let name = |line: &str| line.trim().split(['(', ',']).next().unwrap_or("").to_owned();
    let words = |name: String| {
        let mut words = String::new();
        for (at, c) in name.chars().enumerate() {
            if c.is_uppercase() && at > 0 {
                words.push(' ');
            }
            words.extend(c.to_lowercase());
        }
        words
    };
    body.lines().map(name).filter(|name| !name.is_empty()).map(words).collect()
}

pub(crate) fn picture() -> String {
    let text = source(FILE);
    let rows = table(&text);
    assert_eq!(
        rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>(),
        variants(&text),
        "the table of {FILE}"
    );
    let (step, size) = (172.0, (150.0, 58.0));
    let mut svg = Svg::new(880.0, 300.0);
    svg.text("title", (20.0, 24.0), "One symbol of a session: from a promise to code that may be called");
    let place = |at: usize| (14.0 + at as f64 * step, 44.0);
    for (at, [state, owns, leaves]) in rows.iter().enumerate() {
        let is_failed = at + 1 == rows.len();
        let (x, y) = if is_failed { (14.0 + 2.0 * step, 224.0) } else { place(at) };
        let class = if is_failed { "d" } else { ["box", "c", "c", "a", "b"][at.min(4)] };
        svg.rect(class, (x, y), size);
        svg.text("title", (x + 10.0, y + 21.0), state);
        for (n, line) in lines(owns, 24).iter().enumerate() {
            svg.text("small", (x + 10.0, y + 38.0 + n as f64 * 13.0), line);
        }
        let beside = if is_failed { (x + size.0 + 14.0, y + 12.0, 70) } else { (x, y + size.1 + 18.0, 26) };
        for (n, line) in lines(&format!("left by: {leaves}"), beside.2).iter().enumerate() {
            svg.text("small", (beside.0, beside.1 + n as f64 * 13.0), line);
        }
        if at + 2 < rows.len() {
            svg.arrow(&format!("M {} {} h {}", x + size.0, y + size.1 / 2.0, step - size.0 - 2.0));
        }
        // The states that failing leaves by the table.
        if !is_failed && leaves.contains("fail") {
            svg.arrow(&format!(
                "M {} 170 L {} 222",
                x + size.0 / 2.0,
                14.0 + 2.0 * step + size.0 / 2.0 + (at as f64 - 2.0) * 30.0
            ));
        }
    }
    svg.finish("States of a symbol of a session")
}
