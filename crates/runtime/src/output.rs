//! Where `print` writes, and numbers as `print` shows them.
//!
//! Writing never fails for the program: an error is kept for the embedder to ask for, and what follows it is dropped.
//!
//! Floats have the fewest digits that read back as the same number. The point stands where Julia puts it: with
//! `0.d₁d₂… × 10^p`, positional notation is used for `-4 < p ≤ 6` (`Float16`: `p ≤ 3`), and `d.ddde±x` beyond.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use crate::libcalls::f16_to_f32;

/// Where printed text goes.
#[derive(Default)]
pub enum Output {
    /// The standard output of the process.
    #[default]
    Stdout,
    /// Memory; see [`Sink::take_captured`].
    Capture,
    /// The embedder's writer.
    Writer(Box<dyn Write + Send>),
}

/// The open output of a runtime.
pub struct Sink {
    state: Mutex<State>,
}

struct State {
    target: Target,
    error: Option<io::Error>,
}

enum Target {
    Stdout,
    Capture(Vec<u8>),
    Writer(Box<dyn Write + Send>),
}

impl Sink {
    pub(crate) fn new(output: Output) -> Sink {
        let target = match output {
            Output::Stdout => Target::Stdout,
            Output::Capture => Target::Capture(Vec::new()),
            Output::Writer(writer) => Target::Writer(writer),
        };
        Sink { state: Mutex::new(State { target, error: None }) }
    }

    /// Writes all bytes, or keeps the error.
    pub fn write(&self, bytes: &[u8]) {
        self.with(|target| match target {
            Target::Stdout => io::stdout().write_all(bytes),
            Target::Capture(text) => {
                text.extend_from_slice(bytes);
                Ok(())
            }
            Target::Writer(writer) => writer.write_all(bytes),
        });
    }

    /// Makes sure that everything has left the process.
    pub fn flush(&self) {
        self.with(|target| match target {
            Target::Stdout => io::stdout().flush(),
            Target::Capture(_) => Ok(()),
            Target::Writer(writer) => writer.flush(),
        });
    }

    /// What was captured since the last time; nothing unless the output is [`Output::Capture`].
    pub fn take_captured(&self) -> Vec<u8> {
        match &mut self.lock().target {
            Target::Capture(text) => std::mem::take(text),
            Target::Stdout | Target::Writer(_) => Vec::new(),
        }
    }

    /// The first error since the last time this was asked. Output after an error is dropped until then.
    pub fn take_error(&self) -> Option<io::Error> {
        self.lock().error.take()
    }

    fn with(&self, act: impl FnOnce(&mut Target) -> io::Result<()>) {
        let mut state = self.lock();
        if state.error.is_none() {
            state.error = act(&mut state.target).err();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A writer that panicked left nothing of ours half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A `Float64` as `print` shows it.
pub(crate) fn float64(value: f64) -> String {
    special(value).unwrap_or_else(|| julia(&format!("{value:e}"), 6))
}

/// A `Float32` as `print` shows it.
pub(crate) fn float32(value: f32) -> String {
    special(f64::from(value)).unwrap_or_else(|| julia(&format!("{value:e}"), 6))
}

/// The bits of a `Float16` as `print` shows them.
pub(crate) fn float16(bits: u16) -> String {
    let value = f16_to_f32(bits);
    if let Some(text) = special(f64::from(value)) {
        return text;
    }
    // Five significant digits tell any two half-precision numbers apart; the fewest that do are searched for.
    let reads_back = |digits: usize| {
        let text = format!("{value:.digits$e}");
        let same = text.parse().is_ok_and(|read: f64| crate::libcalls::f64_to_f16(read) == bits);
        same.then_some(text)
    };
    let shortest = (0..5).find_map(reads_back).unwrap_or_else(|| format!("{value:e}"));
    julia(&shortest, 3)
}

fn special(value: f64) -> Option<String> {
    match value {
        _ if value.is_nan() => Some("NaN".into()),
        f64::INFINITY => Some("Inf".into()),
        f64::NEG_INFINITY => Some("-Inf".into()),
        _ => None,
    }
}

/// Rust's `-1.25e3` with the point where Julia has it.
fn julia(scientific: &str, longest_integer: i32) -> String {
    let (sign, scientific) = match scientific.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", scientific),
    };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if digits.chars().all(|c| c == '0') {
        return format!("{sign}0.0");
    }
    let digits = digits.trim_end_matches('0');
    let point = exponent + 1;
    let split = |at: usize| match digits.split_at_checked(at) {
        Some((whole, "")) => format!("{whole}.0"),
        Some((whole, fraction)) => format!("{whole}.{fraction}"),
        None => format!("{digits:0<at$}.0"),
    };
    let text = match point {
        -3..=0 => format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        1.. if point <= longest_integer => split(point.unsigned_abs() as usize),
        _ => format!("{}e{exponent}", split(1)),
    };
    format!("{sign}{text}")
}

/// The UTF-8 bytes in the bits of a `Char`, which holds them from the high end. Malformed characters are written as
/// the bytes they hold.
pub(crate) fn char_bytes(bits: u32) -> ([u8; 4], usize) {
    let bytes = bits.to_be_bytes();
    let length = 4 - (bits.trailing_zeros() as usize / 8).min(3);
    (bytes, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_julia_prints_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-2.5, "-2.5"),
            (1e-6, "1.0e-6"),
            (1e-5, "1.0e-5"),
            (1e-4, "0.0001"),
            (0.00123, "0.00123"),
            (123456.0, "123456.0"),
            (999999.5, "999999.5"),
            (1e6, "1.0e6"),
            (1234567.0, "1.234567e6"),
            (1e22, "1.0e22"),
            (f64::MAX, "1.7976931348623157e308"),
            (5e-324, "5.0e-324"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(float64(value), text);
        }
        assert_eq!(float32(0.1), "0.1");
        assert_eq!(float32(16777216.0), "1.6777216e7");
    }

    #[test]
    fn half_precision_has_the_fewest_digits_that_read_back() {
        assert_eq!(float16(0x3c00), "1.0");
        assert_eq!(float16(0x2e66), "0.1");
        assert_eq!(float16(0x7bff), "6.55e4");
        assert_eq!(float16(0x63d0), "1.0e3");
        assert_eq!(float16(0x0001), "6.0e-8");
        assert_eq!(float16(0xfc00), "-Inf");
    }

    #[test]
    fn a_char_is_written_as_its_bytes() {
        let text = |c: char| {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes);
            let (out, length) = char_bytes(u32::from_be_bytes(bytes));
            String::from_utf8(out[..length].to_vec()).unwrap()
        };
        for c in ['a', 'θ', '€', '🐦', '\0'] {
            assert_eq!(text(c), c.to_string());
        }
    }

    #[test]
    fn an_error_is_kept_and_silences_what_follows() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let sink = Sink::new(Output::Writer(Box::new(Full)));
        sink.write(b"x");
        sink.flush();
        assert_eq!(sink.take_error().map(|e| e.kind()), Some(io::ErrorKind::StorageFull));
        assert!(sink.take_error().is_none());
    }
}
