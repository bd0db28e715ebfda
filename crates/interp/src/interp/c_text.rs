//! The C functions that print and format text: `puts`, `putchar`, `printf`, `sprintf`, `snprintf`, `write`, `fflush`.
//!
//! Text goes to the interpreter's output, in the order of the calls and interleaved with the texts of
//! `print`. If raw memory has the function itself (as the process does), that one is used.
//!
//! ```text
//! %  flags      width    precision  length               conversion
//!    - + ␣ # 0  n or *   .n or .*   hh h l ll j z t      d i u o x X c s p f F e E g G %
//! ```
//!
//! An argument whose type does not match its conversion, or a missing one, is an error of the call; in C it
//! is undefined behaviour. Refused by name: `%n`, `%a`, `long double`, wide characters.

use super::Interp;
use super::callback::fits;
use super::error::{Eval, Fault};
use super::memory::{ForeignCall, MemoryError};
use brolga_ir::types::{LowType, PtrClass};

const I32: LowType = LowType::I32;
const PTR: LowType = LowType::Ptr(PtrClass::Raw);

/// The maximum length of the text that one call makes.
const MOST_BYTES: usize = 1 << 24;

/// The number of digits after the point, or after the first digit, beyond which all digits of a double are
/// zero.
const MOST_DIGITS: usize = 1100;

/// The file number of standard output.
const STDOUT: u32 = 1;

impl Interp<'_> {
    /// Calls a function of the header's list; returns `None` for others.
    pub(super) fn c_text_call(&mut self, call: &ForeignCall<'_>) -> Eval<Option<u128>> {
        let bad_call = || MemoryError::BadCall { name: call.name.to_owned() };
        let returns_int = matches!(call.result, None | Some(LowType::I32));
        let fixed = |params: &[LowType]| {
            let fits = call.args.len() == params.len()
                && call.args.iter().zip(params).all(|(&(given, _), &wanted)| fits(given, wanted));
            if fits && call.variadic_after.is_none() && returns_int { Ok(()) } else { Err(bad_call()) }
        };
        let bits = |n: usize| call.args[n].1 as u64;
        // The number of parameters before `…`; a call may also declare exactly these.
        let variadic = |params: &[LowType]| {
            let fits = call.args.len() >= params.len()
                && call.args.iter().zip(params).all(|(&(given, _), &wanted)| fits(given, wanted))
                && call.variadic_after.is_none_or(|after| after as usize == params.len());
            if fits && returns_int { Ok(()) } else { Err(bad_call()) }
        };
        let result = match call.name {
            "puts" => {
                fixed(&[PTR])?;
                let mut text = self.c_string(bits(0), usize::MAX)?;
                text.push(b'\n');
                self.output.write(&text);
                text.len() as u64
            }
            "putchar" => {
                fixed(&[I32])?;
                self.output.write(&[bits(0) as u8]);
                u64::from(bits(0) as u8)
            }
            "printf" => {
                variadic(&[PTR])?;
                let text = self.formatted(call.name, bits(0), &call.args[1..])?;
                self.output.write(&text);
                text.len() as u64
            }
            "sprintf" => {
                variadic(&[PTR, PTR])?;
                let mut text = self.formatted(call.name, bits(1), &call.args[2..])?;
                text.push(0);
                self.memory.store(bits(0), 1, &text)?;
                text.len() as u64 - 1
            }
            "snprintf" => {
                variadic(&[PTR, LowType::I64, PTR])?;
                let text = self.formatted(call.name, bits(2), &call.args[3..])?;
                if let Some(room) = bits(1).checked_sub(1) {
                    let mut kept =
                        text[..text.len().min(usize::try_from(room).unwrap_or(usize::MAX))].to_vec();
                    kept.push(0);
                    self.memory.store(bits(0), 1, &kept)?;
                }
                text.len() as u64
            }
            "fflush" => {
                fixed(&[PTR])?;
                // Text is written immediately. Streams have no addresses here, so only all of them can be
                // flushed.
                if bits(0) != 0 {
                    return Err(bad_call().into());
                }
                0
            }
            "write" => {
                let fits = matches!(call.args, &[(I32, _), (to, _), (LowType::I64, _)] if fits(to, PTR));
                if !fits || !matches!(call.result, None | Some(LowType::I64)) || call.variadic_after.is_some()
                {
                    return Err(bad_call().into());
                }
                if bits(0) as u32 != STDOUT {
                    let text = format!("`write` to file {}: there is standard output only", bits(0) as i32);
                    return Err(Fault::Unsupported(text).into());
                }
                let mut text = vec![0; self.text_length(bits(2))?];
                self.memory.load(bits(1), 1, &mut text)?;
                self.output.write(&text);
                bits(2)
            }
            _ => return Ok(None),
        };
        // Text is limited to fewer bytes than `int` can count.
        Ok(Some(u128::from(result)))
    }

    fn text_length(&self, length: u64) -> Eval<usize> {
        let length = usize::try_from(length).ok().filter(|&length| length <= MOST_BYTES);
        length.ok_or_else(|| Fault::Unsupported(format!("a text of more than {MOST_BYTES} bytes")).into())
    }

    /// The bytes of a zero-terminated string, up to `most`.
    fn c_string(&mut self, address: u64, most: usize) -> Eval<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < most {
            let mut byte = [0];
            self.memory.load(address.wrapping_add(text.len() as u64), 1, &mut byte)?;
            if byte == [0] {
                break;
            }
            text.push(byte[0]);
            self.text_length(text.len() as u64)?;
        }
        Ok(text)
    }

    /// A format with its arguments inserted.
    fn formatted(&mut self, name: &str, format: u64, args: &[(LowType, u128)]) -> Eval<Vec<u8>> {
        let format = self.c_string(format, usize::MAX)?;
        let bad_call = || MemoryError::BadCall { name: name.to_owned() };
        let mut args = args.iter().copied();
        let mut text = Vec::new();
        let mut at = 0;
        while let Some(&byte) = format.get(at) {
            at += 1;
            if byte != b'%' {
                text.push(byte);
                self.text_length(text.len() as u64)?;
                continue;
            }
            let (mut spec, conversion, end) = Spec::parse(&format, at, || match args.next() {
                Some((I32, bits)) => Some(bits as i32),
                _ => None,
            })
            .ok_or_else(bad_call)?;
            let source = String::from_utf8_lossy(&format[at - 1..end]).into_owned();
            at = end;
            // Neither width nor precision may make the text exceed the limit.
            self.text_length(spec.width.max(spec.precision.unwrap_or(0)) as u64)?;
            match conversion {
                b'%' => text.push(b'%'),
                b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' | b'p' => {
                    let (form, bits) = args.next().ok_or_else(bad_call)?;
                    let wanted = match conversion {
                        b'c' => 4,
                        b'p' => 8,
                        _ => spec.bytes,
                    };
                    // Integers of less than 32 bits are passed as C's `int`.
                    let given = match form {
                        LowType::I8 | LowType::I16 | LowType::I32 => 4,
                        LowType::I64 | LowType::Ptr(_) => 8,
                        _ => return Err(bad_call().into()),
                    };
                    if given < wanted.max(4) {
                        return Err(bad_call().into());
                    }
                    text.extend(spec.integer(conversion, bits as u64, wanted));
                }
                b's' => {
                    let Some((LowType::Ptr(_) | LowType::I64, address)) = args.next() else {
                        return Err(bad_call().into());
                    };
                    let bytes = self.c_string(address as u64, spec.precision.unwrap_or(usize::MAX))?;
                    spec.zero = false;
                    text.extend(spec.padded("", &bytes));
                }
                b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                    let Some((LowType::F64, bits)) = args.next() else { return Err(bad_call().into()) };
                    text.extend(spec.float(conversion, f64::from_bits(bits as u64)));
                }
                _ => {
                    return Err(Fault::Unsupported(format!("`{source}` in a format of `{name}`")).into());
                }
            }
            self.text_length(text.len() as u64)?;
        }
        Ok(text)
    }
}

/// A conversion without its letter.
#[derive(Default)]
struct Spec {
    minus: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    /// The significant bytes of an integer.
    bytes: u32,
}

impl Spec {
    /// Parses after a `%`; returns the letter and the position after it. `next` supplies the arguments of
    /// `*`.
    fn parse(
        format: &[u8],
        mut at: usize,
        mut next: impl FnMut() -> Option<i32>,
    ) -> Option<(Spec, u8, usize)> {
        let mut spec = Spec { bytes: 4, ..Spec::default() };
        loop {
            match format.get(at)? {
                b'-' => spec.minus = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternative = true,
                b'0' => spec.zero = true,
                _ => break,
            }
            at += 1;
        }
        let mut number = |at: &mut usize| -> Option<i64> {
            if format.get(*at) == Some(&b'*') {
                *at += 1;
                return next().map(i64::from);
            }
            let mut number = 0i64;
            while let Some(digit) = format.get(*at).filter(|byte| byte.is_ascii_digit()) {
                number = number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
                *at += 1;
            }
            Some(number)
        };
        let width = number(&mut at)?;
        spec.minus |= width < 0;
        spec.width = usize::try_from(width.unsigned_abs()).ok()?;
        if format.get(at) == Some(&b'.') {
            at += 1;
            // A negative precision means none.
            spec.precision = usize::try_from(number(&mut at)?).ok();
        }
        let rest = format.get(at..)?;
        let lengths: [(&[u8], u32); 7] =
            [(b"hh", 1), (b"h", 2), (b"ll", 8), (b"l", 8), (b"j", 8), (b"z", 8), (b"t", 8)];
        if let Some(&(letters, bytes)) = lengths.iter().find(|(letters, _)| rest.starts_with(letters)) {
            spec.bytes = bytes;
            at += letters.len();
            // `%ls` and `%lc` take wide characters; they are reported by their length letter.
            if bytes == 8 && matches!(format.get(at), Some(b's' | b'c')) {
                return Some((spec, b'l', at + 1));
            }
        }
        Some((spec, *format.get(at)?, at + 1))
    }

    fn integer(&mut self, conversion: u8, bits: u64, bytes: u32) -> Vec<u8> {
        let unused = 64 - bytes * 8;
        let unsigned = bits << unused >> unused;
        let signed = ((bits << unused) as i64) >> unused;
        let (sign, mut digits) = match conversion {
            b'c' => {
                self.zero = false;
                return self.padded("", &[bits as u8]);
            }
            b'd' | b'i' => (self.sign(signed < 0), signed.unsigned_abs().to_string()),
            b'u' => ("", unsigned.to_string()),
            b'o' => ("", format!("{unsigned:o}")),
            b'x' if self.alternative && unsigned != 0 => ("0x", format!("{unsigned:x}")),
            b'x' => ("", format!("{unsigned:x}")),
            b'X' if self.alternative && unsigned != 0 => ("0X", format!("{unsigned:X}")),
            b'X' => ("", format!("{unsigned:X}")),
            _ if unsigned == 0 => {
                self.zero = false;
                return self.padded("", b"(nil)");
            }
            _ => ("0x", format!("{unsigned:x}")),
        };
        if let Some(precision) = self.precision {
            self.zero = false;
            if precision == 0 && unsigned == 0 {
                digits.clear();
            }
            digits = "0".repeat(precision.saturating_sub(digits.len())) + &digits;
        }
        if conversion == b'o' && self.alternative && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        self.padded(sign, digits.as_bytes())
    }

    fn float(&mut self, conversion: u8, x: f64) -> Vec<u8> {
        let upper = conversion.is_ascii_uppercase();
        let sign = self.sign(x.is_sign_negative());
        let mut digits = match conversion.to_ascii_lowercase() {
            _ if !x.is_finite() => {
                self.zero = false;
                if x.is_nan() { "nan".to_owned() } else { "inf".to_owned() }
            }
            b'f' => self.with_point(fixed(x.abs(), self.precision.unwrap_or(6))),
            b'e' => {
                let (digits, exponent) = scientific(x.abs(), self.precision.unwrap_or(6));
                self.with_point(digits) + &exponent_text(exponent)
            }
            _ => {
                let precision = self.precision.unwrap_or(6).max(1);
                let (digits, exponent) = scientific(x.abs(), precision - 1);
                let (mut digits, tail) = match usize::try_from(i64::from(exponent) + 4) {
                    Ok(above) if above < precision + 4 => {
                        (fixed(x.abs(), precision + 3 - above), String::new())
                    }
                    _ => (digits, exponent_text(exponent)),
                };
                if self.alternative {
                    digits = self.with_point(digits);
                } else if digits.contains('.') {
                    digits.truncate(digits.trim_end_matches('0').trim_end_matches('.').len());
                }
                digits + &tail
            }
        };
        if upper {
            digits.make_ascii_uppercase();
        }
        self.padded(sign, digits.as_bytes())
    }

    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    fn with_point(&self, mut digits: String) -> String {
        if self.alternative && !digits.contains('.') {
            digits.push('.');
        }
        digits
    }

    fn padded(&self, sign: &str, body: &[u8]) -> Vec<u8> {
        let missing = self.width.saturating_sub(sign.len() + body.len());
        let blanks = |is: bool| vec![b' '; if is { missing } else { 0 }];
        let zeros = self.zero && !self.minus;
        let mut text = blanks(!zeros && !self.minus);
        text.extend_from_slice(sign.as_bytes());
        text.extend(vec![b'0'; if zeros { missing } else { 0 }]);
        text.extend_from_slice(body);
        text.extend(blanks(self.minus));
        text
    }
}

/// A non-negative number with the given number of digits after the point.
fn fixed(x: f64, precision: usize) -> String {
    let digits = precision.min(MOST_DIGITS);
    format!("{x:.digits$}") + &"0".repeat(precision - digits)
}

/// The digits of a non-negative number, the first one before the point, and its exponent.
fn scientific(x: f64, precision: usize) -> (String, i32) {
    let digits = precision.min(MOST_DIGITS);
    let text = format!("{x:.digits$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (mantissa.to_owned() + &"0".repeat(precision - digits), exponent.parse().unwrap_or(0))
}

fn exponent_text(exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::super::memory::SimMemory;
    use super::super::{Fault, Options, Outcome};
    use super::*;
    use brolga_ir::{Context, Module};

    fn formatted(format: &str, args: &[(LowType, u128)]) -> Result<String, Fault> {
        let module = Module::new(Context::new());
        let mut memory = SimMemory::default();
        let address = memory.allocate(format.len() as u64 + 1, 1).unwrap();
        memory.store(address, 1, format.as_bytes()).unwrap();
        let word = memory.allocate(6, 1).unwrap();
        memory.store(word, 1, b"crane\0").unwrap();
        let args: Vec<_> = args
            .iter()
            .map(|&(form, bits)| (form, if form == PTR && bits == 1 { word.into() } else { bits }))
            .collect();
        let mut interp = Interp::new(&module, Options::default(), Box::new(memory));
        let made = interp.formatted("printf", address, &args);
        let text = made.map_err(|stop| match interp.outcome_without_place(stop) {
            Outcome::Error(error) => error.fault,
            other => panic!("{other:?}"),
        })?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn numbers_are_formatted_as_c_does() {
        let minus = |n: i64| (LowType::I64, u128::from(n.cast_unsigned()));
        let int = |n: i32| (I32, u128::from(n.cast_unsigned()));
        let rows = [
            (
                "%d|%5d|%-5d|%05d|%+d|% d",
                vec![int(-7), int(42), int(42), int(-42), int(3), int(3)],
                "-7|   42|42   |-0042|+3| 3",
            ),
            (
                "%ld %lld %zu %lu",
                vec![minus(-1), minus(i64::MIN), minus(-1), minus(5)],
                "-1 -9223372036854775808 18446744073709551615 5",
            ),
            ("%hhd %hd %hhu", vec![int(0x1ff), int(0x18000), int(-1)], "-1 -32768 255"),
            (
                "%x %X %#x %#o %o %#x",
                vec![int(255), int(255), int(255), int(8), int(8), int(0)],
                "ff FF 0xff 010 10 0",
            ),
            ("%.3d|%6.3d|%.0d|%06.3d", vec![int(7), int(-7), int(0), int(7)], "007|  -007||   007"),
            ("%*d|%-*d|%.*d", vec![int(4), int(1), int(-4), int(1), int(3), int(1)], "   1|1   |001"),
            ("%c%c|%3c", vec![int(65), int(66), int(67)], "AB|  C"),
            ("%s|%8s|%-8s|%.2s|%%", vec![(PTR, 1); 4], "crane|   crane|crane   |cr|%"),
            ("%p %p", vec![(PTR, 0), (PTR, 0xbeef)], "(nil) 0xbeef"),
        ];
        for (format, args, text) in rows {
            assert_eq!(formatted(format, &args).as_deref(), Ok(text), "{format}");
        }
    }

    #[test]
    fn floats_are_formatted_as_c_does() {
        let rows = [
            ("%f", 1.5, "1.500000"),
            ("%.0f", 2.5, "2"),
            ("%#.0f", 2.5, "2."),
            ("%10.3f|", -3.24159, "    -3.242|"),
            ("%010.3f|", -3.24159, "-00003.242|"),
            ("%e", 12345.678, "1.234568e+04"),
            ("%.2E", 1e-300, "1.00E-300"),
            ("%g", 100000.0, "100000"),
            ("%g", 1000000.0, "1e+06"),
            ("%g", 0.0001, "0.0001"),
            ("%g", 0.00001, "1e-05"),
            ("%g", 9.999995e5, "1e+06"),
            ("%.3g", 1234.5, "1.23e+03"),
            ("%#g", 1.0, "1.00000"),
            ("%g", 0.0, "0"),
            ("%g", -0.0, "-0"),
            ("%f", f64::INFINITY, "inf"),
            ("%5F", f64::NEG_INFINITY, " -INF"),
            ("%05f", f64::NAN, "  nan"),
            ("%.20f", 0.1, "0.10000000000000000555"),
        ];
        for (format, x, text) in rows {
            assert_eq!(
                formatted(format, &[(LowType::F64, x.to_bits().into())]).as_deref(),
                Ok(text),
                "{format}"
            );
        }
        let long = formatted("%.70000f", &[(LowType::F64, 1.0f64.to_bits().into())]).unwrap();
        assert_eq!(long.len(), 70002);
    }

    #[test]
    fn undefined_formats_are_refused() {
        for (format, args) in [
            ("%d", vec![]),
            ("%ld", vec![(I32, 1)]),
            ("%d", vec![(LowType::F64, 0)]),
            ("%f", vec![(LowType::F32, 0)]),
            ("%s", vec![(I32, 0)]),
            ("%", vec![]),
            ("%-", vec![]),
            ("%*d", vec![(LowType::I64, 1), (I32, 1)]),
        ] {
            assert!(
                matches!(formatted(format, &args), Err(Fault::Memory(MemoryError::BadCall { .. }))),
                "{format}"
            );
        }
        for format in ["%n", "%a", "%Lf", "%ls", "%y"] {
            assert!(matches!(formatted(format, &[(PTR, 1)]), Err(Fault::Unsupported(_))), "{format}");
        }
        for format in ["%99999999d", "%.99999999f", "%9999999999999999999999d"] {
            let arg = [(if format.ends_with('f') { LowType::F64 } else { I32 }, 1)];
            assert!(formatted(format, &arg).is_err(), "{format}");
        }
    }
}
