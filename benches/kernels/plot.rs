//! The table of kernels as a picture: a row for each kernel, a dot for each contender, on a logarithmic axis of time divided by C's.
//!
//! The bench writes it with `--plot`. `tests/pictures` draws it from the table in `README.md` beside this file, so that the two show the same run.

use std::fmt::Write as _;

/// The contenders that are shown, each with its class of colours.
const SHOWN: [(&str, &str); 4] = [("-O2", "a"), ("-O3", "b"), ("java", "c"), ("node", "d")];

const STYLE: &str = "<style>text{font:12px system-ui,sans-serif;fill:#1f2328}.grid{stroke:#d1d9e0}.one{stroke:#59636e}\
    .a{fill:#0969da}.b{fill:#1a7f37}.c{fill:#bf8700}.d{fill:#cf222e}\
    @media (prefers-color-scheme:dark){text{fill:#e6edf3}.grid{stroke:#3d444d}.one{stroke:#9198a1}\
    .a{fill:#4493f8}.b{fill:#3fb950}.c{fill:#d29922}.d{fill:#f85149}}</style>\n";

const LEFT: f64 = 120.0;
const WIDTH: f64 = 700.0;
const ROW: f64 = 17.0;
const TOP: f64 = 44.0;

/// The ends of the axis.
const ENDS: (f64, f64) = (0.08, 32.0);

fn place(ratio: f64) -> f64 {
    let part = (ratio / ENDS.0).ln() / (ENDS.1 / ENDS.0).ln();
    LEFT + part.clamp(0.0, 1.0) * WIDTH
}

/// The picture of rows with a ratio for each column, to two places as the table has them.
pub(crate) fn svg(columns: &[&str], rows: &[(String, Vec<Option<f64>>)]) -> String {
    let bottom = TOP + rows.len() as f64 * ROW;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\">\n\
         <title>Time of each kernel divided by that of C; smaller is better</title>\n{STYLE}",
        LEFT + WIDTH + 30.0,
        bottom + 26.0
    );
    // Writing to a string cannot fail.
    for tick in [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0] {
        let (x, class) = (place(tick), if tick == 1.0 { "one" } else { "grid" });
        let _ = writeln!(text, "<path class=\"{class}\" d=\"M{x:.1} {TOP}V{bottom}\"/>");
        let _ =
            writeln!(text, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{tick}</text>", bottom + 16.0);
    }
    for (n, (column, class)) in SHOWN.iter().enumerate() {
        let x = LEFT + n as f64 * 80.0;
        let _ = writeln!(
            text,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"20\" r=\"5\"/><text x=\"{}\" y=\"24\">{column}</text>",
            x + 10.0
        );
    }
    for (n, (name, ratios)) in rows.iter().enumerate() {
        let y = TOP + (n as f64 + 0.5) * ROW;
        let _ =
            writeln!(text, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{name}</text>", LEFT - 12.0, y + 4.0);
        for (shown, class) in SHOWN {
            let ratio = columns
                .iter()
                .position(|column| *column == shown)
                .and_then(|at| ratios.get(at).copied().flatten());
            if let Some(ratio) = ratio {
                let x = place((ratio * 100.0).round() / 100.0);
                let _ = writeln!(
                    text,
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y}\" r=\"4\" fill-opacity=\".8\"><title>{name} {shown}: {ratio:.2}</title></circle>"
                );
            }
        }
    }
    text.push_str("</svg>\n");
    text
}
