//! The samples of `brolga bench` as a picture: a row for each variant, a dot for each sample, a bar for the interval of the median.
//!
//! The axis is linear from zero if the variants are within a factor of ten, otherwise logarithmic.

use std::fmt::Write as _;

use super::{Row, time};

const WIDTH: f64 = 760.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const ROW: f64 = 34.0;
const TICKS: usize = 5;

/// The places of times on the axis.
struct Axis {
    low: f64,
    high: f64,
    is_log: bool,
}

impl Axis {
    fn of(rows: &[Row]) -> Axis {
        let all = || rows.iter().flat_map(|row| row.samples.iter().copied()).filter(|time| *time > 0.0);
        let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        let is_log = high > low * 10.0;
        match is_log {
            true => Axis { low, high, is_log },
            false => Axis { low: 0.0, high: high.max(f64::MIN_POSITIVE), is_log },
        }
    }

    /// A part of the way from one end to the other.
    fn place(&self, time: f64) -> f64 {
        let part = match self.is_log {
            true => (time.max(self.low) / self.low).ln() / (self.high / self.low).ln(),
            false => time / self.high,
        };
        LEFT + part.clamp(0.0, 1.0) * (WIDTH - LEFT - RIGHT)
    }

    fn tick(&self, part: f64) -> f64 {
        match self.is_log {
            true => self.low * (self.high / self.low).powf(part),
            false => self.high * part,
        }
    }
}

/// The picture.
pub(super) fn svg(call: &str, rows: &[Row]) -> String {
    let axis = Axis::of(rows);
    let bottom = TOP + ROW * rows.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {:.0}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{LEFT}\" y=\"22\" font-size=\"14\">{}</text>\n",
        bottom + 30.0,
        escaped(call)
    );
    // Writing to a string cannot fail.
    for tick in 0..=TICKS {
        let at = axis.tick(tick as f64 / TICKS as f64);
        let x = axis.place(at);
        let _ = writeln!(
            text,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            bottom + 18.0,
            time(at)
        );
    }
    for (index, row) in rows.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let _ = writeln!(
            text,
            "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            y + 4.0,
            escaped(&row.name)
        );
        for (number, &sample) in row.samples.iter().enumerate() {
            // Spread over a few lines, so that equal samples are seen.
            let offset = (number * 7 % 13) as f64 - 6.0;
            let _ = writeln!(
                text,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2\" fill=\"#3b7dd8\" fill-opacity=\"0.4\"/>",
                axis.place(sample),
                y + offset
            );
        }
        let (low, high) = (axis.place(row.time.low), axis.place(row.time.high));
        let _ = writeln!(
            text,
            "<rect x=\"{low:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"18\" fill=\"none\" stroke=\"#c0392b\"/>\
             <line x1=\"{m:.1}\" x2=\"{m:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"#c0392b\" stroke-width=\"2\"/>",
            y - 9.0,
            (high - low).max(1.0),
            y - 12.0,
            y + 12.0,
            m = axis.place(row.time.value)
        );
    }
    text.push_str("</svg>\n");
    text
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
