//! The C functions of simulated memory.
//!
//! A small set: memory, bytes, and the mathematics whose value is the same in every C library, to the last
//! bit or within the error that C allows. Everything else is refused by name. The signature of a call is
//! checked against the function's, because a program may declare any signature.

use super::memory::{ForeignCall, MemoryError, RawMemory, SimMemory};
use brolga_ir::types::{LowType, PtrClass};
use brolga_ir::{hashing, unicode};

const I32: LowType = LowType::I32;
const I64: LowType = LowType::I64;
const F32: LowType = LowType::F32;
const F64: LowType = LowType::F64;
const PTR: LowType = LowType::Ptr(PtrClass::Raw);

/// The alignment of memory from `malloc`.
const MALLOC_ALIGN: u64 = 16;

type Body = fn(&mut SimMemory, &[u128]) -> Result<u128, MemoryError>;

struct Row {
    name: &'static str,
    params: &'static [LowType],
    result: Option<LowType>,
    body: Body,
}

const fn row(name: &'static str, params: &'static [LowType], result: Option<LowType>, body: Body) -> Row {
    Row { name, params, result, body }
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    row("malloc",  &[I64],            Some(PTR), |m, a| malloc(m, a[0] as u64)),
    row("calloc",  &[I64, I64],       Some(PTR), |m, a| match (a[0] as u64).checked_mul(a[1] as u64) {
        Some(size) => malloc(m, size),
        None => Ok(0),
    }),
    row("realloc", &[PTR, I64],       Some(PTR), |m, a| realloc(m, a[0] as u64, a[1] as u64)),
    row("free",    &[PTR],            None,      |m, a| match a[0] as u64 {
        0 => Ok(0),
        address => m.free(address).map(|()| 0),
    }),
    row("memcpy",  &[PTR, PTR, I64],  Some(PTR), memory_copy),
    row("memmove", &[PTR, PTR, I64],  Some(PTR), memory_copy),
    row("memset",  &[PTR, I32, I64],  Some(PTR), |m, a| {
        if a[2] != 0 {
            m.range_mut(a[0] as u64, a[2] as u64)?.fill(a[1] as u8);
        }
        Ok(a[0])
    }),
    row("memcmp",  &[PTR, PTR, I64],  Some(I32), |m, a| {
        let size = a[2] as u64;
        if size == 0 {
            return Ok(0);
        }
        let order = m.range(a[0] as u64, size)?.cmp(m.range(a[1] as u64, size)?);
        Ok(u128::from((order as i32).cast_unsigned()))
    }),
    row("memchr",  &[PTR, I32, I64],  Some(PTR), |m, a| {
        if a[2] == 0 {
            return Ok(0);
        }
        // C reads no further than the first match, so the end of the allocation matters only after it.
        let (tail, size) = (m.tail(a[0] as u64)?, a[2] as u64);
        let reach = tail.len().min(usize::try_from(size).unwrap_or(usize::MAX));
        match tail[..reach].iter().position(|&b| b == a[1] as u8) {
            Some(at) => Ok(a[0] + at as u128),
            None if reach as u64 == size => Ok(0),
            None => Err(MemoryError::OutOfBounds { address: a[0] as u64, size }),
        }
    }),
    row("memhash_seed", &[PTR, I64, I32], Some(I64), |m, a| {
        bytes_at(m, a).map(|bytes| u128::from(hashing::memhash_seed(bytes, a[2] as u32)))
    }),
    row("memhash32_seed", &[PTR, I64, I32], Some(I32), |m, a| {
        bytes_at(m, a).map(|bytes| u128::from(hashing::memhash32_seed(bytes, a[2] as u32)))
    }),
    row("memhash", &[PTR, I64], Some(I64), |m, a| bytes_at(m, a).map(|bytes| u128::from(hashing::memhash(bytes)))),
    row("utf8proc_category",  &[I32], Some(I32), |_, a| signed(unicode::category(a[0] as u32))),
    row("utf8proc_charwidth", &[I32], Some(I32), |_, a| signed(unicode::char_width(a[0] as u32))),
    row("utf8proc_toupper",   &[I32], Some(I32), |_, a| Ok(unicode::to_upper(a[0] as u32).into())),
    row("utf8proc_tolower",   &[I32], Some(I32), |_, a| Ok(unicode::to_lower(a[0] as u32).into())),
    row("utf8proc_totitle",   &[I32], Some(I32), |_, a| Ok(unicode::to_title(a[0] as u32).into())),
    row("utf8proc_isupper",   &[I32], Some(I32), |_, a| Ok(unicode::is_upper(a[0] as u32).into())),
    row("utf8proc_islower",   &[I32], Some(I32), |_, a| Ok(unicode::is_lower(a[0] as u32).into())),
    row("utf8proc_codepoint_valid", &[I32], Some(LowType::I8), |_, a| Ok(unicode::is_valid(a[0] as u32).into())),
    row("jl_crc32c", &[I32, PTR, I64], Some(I32), |m, a| {
        bytes_at(m, &a[1..]).map(|bytes| hashing::crc32c(a[0] as u32, bytes).into())
    }),
    row("strlen",  &[PTR],            Some(I64), |m, a| string(m, a[0] as u64).map(|bytes| bytes.len() as u128)),
    row("strcmp",  &[PTR, PTR],       Some(I32), |m, a| compare(m, a, u64::MAX)),
    row("strncmp", &[PTR, PTR, I64],  Some(I32), |m, a| compare(m, a, a[2] as u64)),
    // The terminating zero byte can be found as well.
    row("strchr",  &[PTR, I32],       Some(PTR), |m, a| found(m, a, |bytes, b| bytes.iter().position(|&byte| byte == b))),
    row("strrchr", &[PTR, I32],       Some(PTR), |m, a| found(m, a, |bytes, b| bytes.iter().rposition(|&byte| byte == b))),
    row("strstr",  &[PTR, PTR],       Some(PTR), |m, a| {
        let (text, part) = (string(m, a[0] as u64)?, string(m, a[1] as u64)?);
        Ok(position(text, part).map_or(0, |at| a[0] + at as u128))
    }),
    row("strpbrk", &[PTR, PTR],       Some(PTR), |m, a| {
        let set = string(m, a[1] as u64)?;
        let at = string(m, a[0] as u64)?.iter().position(|byte| set.contains(byte));
        Ok(at.map_or(0, |at| a[0] + at as u128))
    }),
    row("strnlen", &[PTR, I64],       Some(I64), |m, a| shortened(m, a[0] as u64, a[1] as u64).map(|bytes| bytes.len() as u128)),
    row("strcpy",  &[PTR, PTR],       Some(PTR), |m, a| copy_string(m, a[0] as u64, a[1] as u64).map(|_| a[0])),
    row("stpcpy",  &[PTR, PTR],       Some(PTR), |m, a| copy_string(m, a[0] as u64, a[1] as u64).map(|length| a[0] + length as u128)),
    row("strncpy", &[PTR, PTR, I64],  Some(PTR), |m, a| {
        let size = a[2] as u64;
        if size > 0 {
            let bytes = shortened(m, a[1] as u64, size)?.to_vec();
            let (text, rest) = m.range_mut(a[0] as u64, size)?.split_at_mut(bytes.len());
            text.copy_from_slice(&bytes);
            rest.fill(0);
        }
        Ok(a[0])
    }),
    row("strcat",  &[PTR, PTR],       Some(PTR), |m, a| {
        let end = a[0] as u64 + string(m, a[0] as u64)?.len() as u64;
        copy_string(m, end, a[1] as u64).map(|_| a[0])
    }),
    row("strncat", &[PTR, PTR, I64],  Some(PTR), |m, a| {
        let end = a[0] as u64 + string(m, a[0] as u64)?.len() as u64;
        let mut bytes = shortened(m, a[1] as u64, a[2] as u64)?.to_vec();
        bytes.push(0);
        m.range_mut(end, bytes.len() as u64)?.copy_from_slice(&bytes);
        Ok(a[0])
    }),
    row("strspn",  &[PTR, PTR],       Some(I64), |m, a| span(m, a, true)),
    row("strcspn", &[PTR, PTR],       Some(I64), |m, a| span(m, a, false)),
    row("toupper", &[I32],            Some(I32), |_, a| Ok(ascii(a[0], |b| b.to_ascii_uppercase()))),
    row("tolower", &[I32],            Some(I32), |_, a| Ok(ascii(a[0], |b| b.to_ascii_lowercase()))),
    row("abs",     &[I32],            Some(I32), |_, a| Ok(u128::from((a[0] as i32).wrapping_abs().cast_unsigned()))),
    row("labs",    &[I64],            Some(I64), |_, a| Ok(u128::from((a[0] as i64).wrapping_abs().cast_unsigned()))),
    row("llabs",   &[I64],            Some(I64), |_, a| Ok(u128::from((a[0] as i64).wrapping_abs().cast_unsigned()))),
    row("sqrt",    &[F64],            Some(F64), |_, a| unary(a, f64::sqrt)),
    row("cbrt",    &[F64],            Some(F64), |_, a| unary(a, f64::cbrt)),
    row("frexp",   &[F64, PTR],       Some(F64), |m, a| {
        let (fraction, exponent) = frexp(f64::from_bits(a[0] as u64));
        m.range_mut(a[1] as u64, 4)?.copy_from_slice(&exponent.to_le_bytes());
        Ok(fraction.to_bits().into())
    }),
    row("fabs",    &[F64],            Some(F64), |_, a| unary(a, f64::abs)),
    row("floor",   &[F64],            Some(F64), |_, a| unary(a, f64::floor)),
    row("ceil",    &[F64],            Some(F64), |_, a| unary(a, f64::ceil)),
    row("trunc",   &[F64],            Some(F64), |_, a| unary(a, f64::trunc)),
    row("sin",     &[F64],            Some(F64), |_, a| unary(a, f64::sin)),
    row("cos",     &[F64],            Some(F64), |_, a| unary(a, f64::cos)),
    row("tan",     &[F64],            Some(F64), |_, a| unary(a, f64::tan)),
    row("atan",    &[F64],            Some(F64), |_, a| unary(a, f64::atan)),
    row("exp",     &[F64],            Some(F64), |_, a| unary(a, f64::exp)),
    row("log",     &[F64],            Some(F64), |_, a| unary(a, f64::ln)),
    row("log2",    &[F64],            Some(F64), |_, a| unary(a, f64::log2)),
    row("log10",   &[F64],            Some(F64), |_, a| unary(a, f64::log10)),
    row("atan2",   &[F64, F64],       Some(F64), |_, a| binary(a, f64::atan2)),
    row("pow",     &[F64, F64],       Some(F64), |_, a| binary(a, f64::powf)),
    row("hypot",   &[F64, F64],       Some(F64), |_, a| binary(a, f64::hypot)),
    row("fmod",    &[F64, F64],       Some(F64), |_, a| binary(a, |x, y| x % y)),
    row("remainder", &[F64, F64],     Some(F64), |_, a| binary(a, remainder)),
    row("fmin",    &[F64, F64],       Some(F64), |_, a| binary(a, f64::min)),
    row("fmax",    &[F64, F64],       Some(F64), |_, a| binary(a, f64::max)),
    row("asin", &[F64], Some(F64), |_, a| unary(a, f64::asin)),
    row("acos", &[F64], Some(F64), |_, a| unary(a, f64::acos)),
    row("sinh", &[F64], Some(F64), |_, a| unary(a, f64::sinh)),
    row("cosh", &[F64], Some(F64), |_, a| unary(a, f64::cosh)),
    row("tanh", &[F64], Some(F64), |_, a| unary(a, f64::tanh)),
    row("asinh", &[F64], Some(F64), |_, a| unary(a, f64::asinh)),
    row("acosh", &[F64], Some(F64), |_, a| unary(a, f64::acosh)),
    row("atanh", &[F64], Some(F64), |_, a| unary(a, f64::atanh)),
    row("exp2", &[F64], Some(F64), |_, a| unary(a, f64::exp2)),
    row("expm1", &[F64], Some(F64), |_, a| unary(a, f64::exp_m1)),
    row("log1p", &[F64], Some(F64), |_, a| unary(a, f64::ln_1p)),
    row("round", &[F64], Some(F64), |_, a| unary(a, f64::round)),
    row("rint", &[F64], Some(F64), |_, a| unary(a, f64::round_ties_even)),
    row("nearbyint", &[F64], Some(F64), |_, a| unary(a, f64::round_ties_even)),
    row("sqrtf", &[F32], Some(F32), |_, a| unary32(a, f32::sqrt)),
    row("cbrtf", &[F32], Some(F32), |_, a| unary32(a, f32::cbrt)),
    row("fabsf", &[F32], Some(F32), |_, a| unary32(a, f32::abs)),
    row("floorf", &[F32], Some(F32), |_, a| unary32(a, f32::floor)),
    row("ceilf", &[F32], Some(F32), |_, a| unary32(a, f32::ceil)),
    row("truncf", &[F32], Some(F32), |_, a| unary32(a, f32::trunc)),
    row("roundf", &[F32], Some(F32), |_, a| unary32(a, f32::round)),
    row("rintf", &[F32], Some(F32), |_, a| unary32(a, f32::round_ties_even)),
    row("nearbyintf", &[F32], Some(F32), |_, a| unary32(a, f32::round_ties_even)),
    row("fminf", &[F32, F32], Some(F32), |_, a| binary32(a, f32::min)),
    row("fmaxf", &[F32, F32], Some(F32), |_, a| binary32(a, f32::max)),
    row("sinf", &[F32], Some(F32), |_, a| unary32(a, f32::sin)),
    row("cosf", &[F32], Some(F32), |_, a| unary32(a, f32::cos)),
    row("tanf", &[F32], Some(F32), |_, a| unary32(a, f32::tan)),
    row("asinf", &[F32], Some(F32), |_, a| unary32(a, f32::asin)),
    row("acosf", &[F32], Some(F32), |_, a| unary32(a, f32::acos)),
    row("atanf", &[F32], Some(F32), |_, a| unary32(a, f32::atan)),
    row("sinhf", &[F32], Some(F32), |_, a| unary32(a, f32::sinh)),
    row("coshf", &[F32], Some(F32), |_, a| unary32(a, f32::cosh)),
    row("tanhf", &[F32], Some(F32), |_, a| unary32(a, f32::tanh)),
    row("expf", &[F32], Some(F32), |_, a| unary32(a, f32::exp)),
    row("exp2f", &[F32], Some(F32), |_, a| unary32(a, f32::exp2)),
    row("logf", &[F32], Some(F32), |_, a| unary32(a, f32::ln)),
    row("log2f", &[F32], Some(F32), |_, a| unary32(a, f32::log2)),
    row("log10f", &[F32], Some(F32), |_, a| unary32(a, f32::log10)),
    row("expm1f", &[F32], Some(F32), |_, a| unary32(a, f32::exp_m1)),
    row("log1pf", &[F32], Some(F32), |_, a| unary32(a, f32::ln_1p)),
    row("copysign", &[F64, F64],      Some(F64), |_, a| binary(a, f64::copysign)),
    row("fma",     &[F64, F64, F64],  Some(F64), |_, a| Ok(float(a[0]).mul_add(float(a[1]), float(a[2])).to_bits().into())),
    row("ldexp",   &[F64, I32],       Some(F64), |_, a| Ok(ldexp(float(a[0]), a[1] as i32).to_bits().into())),
    row("powf",    &[F32, F32],       Some(F32), |_, a| binary32(a, f32::powf)),
    row("atan2f",  &[F32, F32],       Some(F32), |_, a| binary32(a, f32::atan2)),
    row("hypotf",  &[F32, F32],       Some(F32), |_, a| binary32(a, f32::hypot)),
    row("fmodf",   &[F32, F32],       Some(F32), |_, a| binary32(a, |x, y| x % y)),
];

impl RawMemory for SimMemory {
    fn allocate(&mut self, size: u64, align: u64) -> Result<u64, MemoryError> {
        SimMemory::allocate(self, size, align)
    }

    fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        SimMemory::free(self, address)
    }

    fn load(&mut self, address: u64, align: u64, out: &mut [u8]) -> Result<(), MemoryError> {
        SimMemory::load(self, address, align, out)
    }

    fn store(&mut self, address: u64, align: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        SimMemory::store(self, address, align, bytes)
    }

    fn copy(&mut self, to: u64, from: u64, size: u64) -> Result<(), MemoryError> {
        SimMemory::copy(self, to, from, size)
    }

    fn has(&self, name: &str) -> bool {
        TABLE.iter().any(|row| row.name == name)
    }

    fn call(&mut self, of: &ForeignCall<'_>) -> Result<u128, MemoryError> {
        call(self, of)
    }
}

/// Calls a function of the table.
fn call(memory: &mut SimMemory, call: &ForeignCall<'_>) -> Result<u128, MemoryError> {
    let Some(row) = TABLE.iter().find(|row| row.name == call.name) else {
        return Err(MemoryError::UnknownFunction { name: call.name.to_owned() });
    };
    let params_fit = call.args.len() == row.params.len()
        && call.args.iter().zip(row.params).all(|(&(given, _), &wanted)| fits(given, wanted));
    // The result may always be ignored.
    let result_fits = match (call.result, row.result) {
        (None, _) => true,
        (Some(given), Some(wanted)) => fits(given, wanted),
        (Some(_), None) => false,
    };
    if !params_fit || !result_fits || call.variadic_after.is_some() {
        return Err(MemoryError::BadCall { name: call.name.to_owned() });
    }
    let args: Vec<u128> = call.args.iter().map(|&(_, bits)| bits).collect();
    (row.body)(memory, &args)
}

/// Addresses are declared as `Ptr` or as 64-bit integers.
fn fits(given: LowType, wanted: LowType) -> bool {
    let word = |t: LowType| matches!(t, LowType::Ptr(_) | LowType::I64);
    given == wanted || (word(given) && word(wanted))
}

/// The first position of a part in a text. Uses the library's linear-time search, which takes texts of
/// characters.
fn position(text: &[u8], part: &[u8]) -> Option<usize> {
    let characters = |bytes: &[u8]| bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
    let text = characters(text);
    text.find(&characters(part)).map(|at| text[..at].chars().count())
}

/// Like C's, returns null when there is no memory.
fn malloc(memory: &mut SimMemory, size: u64) -> Result<u128, MemoryError> {
    match memory.allocate(size, MALLOC_ALIGN) {
        Ok(address) => Ok(u128::from(address)),
        Err(MemoryError::OutOfMemory { .. }) => Ok(0),
        Err(error) => Err(error),
    }
}

fn realloc(memory: &mut SimMemory, old: u64, size: u64) -> Result<u128, MemoryError> {
    if old == 0 {
        return malloc(memory, size);
    }
    let kept = memory.size_of_allocation(old)?.min(size);
    let new = malloc(memory, size)?;
    if new != 0 {
        memory.copy(new as u64, old, kept)?;
        memory.free(old)?;
    }
    Ok(new)
}

fn memory_copy(memory: &mut SimMemory, args: &[u128]) -> Result<u128, MemoryError> {
    memory.copy(args[0] as u64, args[1] as u64, args[2] as u64)?;
    Ok(args[0])
}

/// The bytes of a string, without the terminating zero.
fn string(memory: &SimMemory, address: u64) -> Result<&[u8], MemoryError> {
    let tail = memory.tail(address)?;
    match tail.iter().position(|&byte| byte == 0) {
        Some(length) => Ok(&tail[..length]),
        None => Err(MemoryError::OutOfBounds { address, size: tail.len() as u64 + 1 }),
    }
}

/// At most `most` bytes of a string, without the terminating zero. C reads no further.
fn shortened(memory: &SimMemory, address: u64, most: u64) -> Result<&[u8], MemoryError> {
    if most == 0 {
        return Ok(&[]);
    }
    let tail = memory.tail(address)?;
    let reach = tail.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    match tail[..reach].iter().position(|&byte| byte == 0) {
        Some(length) => Ok(&tail[..length]),
        None if reach as u64 == most => Ok(&tail[..reach]),
        None => Err(MemoryError::OutOfBounds { address, size: tail.len() as u64 + 1 }),
    }
}

/// Copies a string with its zero; returns its length.
fn copy_string(memory: &mut SimMemory, to: u64, from: u64) -> Result<usize, MemoryError> {
    let mut bytes = string(memory, from)?.to_vec();
    bytes.push(0);
    memory.range_mut(to, bytes.len() as u64)?.copy_from_slice(&bytes);
    Ok(bytes.len() - 1)
}

/// The order of two strings, comparing at most `most` bytes. C reads no further than the first difference, so
/// a terminator after it may be missing.
fn compare(memory: &SimMemory, args: &[u128], most: u64) -> Result<u128, MemoryError> {
    if most == 0 {
        return Ok(0);
    }
    let (address, other) = (args[0] as u64, args[1] as u64);
    let pairs = memory.tail(address)?.iter().zip(memory.tail(other)?);
    let mut seen = 0;
    for (left, right) in pairs {
        seen += 1;
        if left != right || *left == 0 || seen == most {
            return Ok(u128::from((left.cmp(right) as i32).cast_unsigned()));
        }
    }
    Err(MemoryError::OutOfBounds { address, size: seen + 1 })
}

/// The address of the byte of a string that `search` finds, the terminating zero included; null if there is
/// none.
fn found(
    memory: &SimMemory,
    args: &[u128],
    search: impl Fn(&[u8], u8) -> Option<usize>,
) -> Result<u128, MemoryError> {
    let address = args[0] as u64;
    let length = string(memory, address)?.len();
    // The zero was found there.
    let bytes = memory.tail(address)?.get(..length + 1).unwrap_or_default();
    Ok(search(bytes, args[1] as u8).map_or(0, |at| args[0] + at as u128))
}

/// The length of the prefix of a string whose bytes are, or are not, in another one.
fn span(memory: &SimMemory, args: &[u128], among: bool) -> Result<u128, MemoryError> {
    let set = string(memory, args[1] as u64)?;
    let bytes = string(memory, args[0] as u64)?;
    let end = bytes.iter().position(|byte| set.contains(byte) != among);
    Ok(end.unwrap_or(bytes.len()) as u128)
}

/// In the C locale only ASCII has cases; anything else, `EOF` included, is unchanged.
fn ascii(bits: u128, change: impl Fn(u8) -> u8) -> u128 {
    match u8::try_from(bits) {
        Ok(byte) => u128::from(change(byte)),
        Err(_) => bits,
    }
}

/// The bytes given by the first two arguments of a hash function.
fn bytes_at<'m>(memory: &'m mut SimMemory, args: &[u128]) -> Result<&'m [u8], MemoryError> {
    if args[1] == 0 { Ok(&[]) } else { memory.range(args[0] as u64, args[1] as u64) }
}

fn signed(value: i32) -> Result<u128, MemoryError> {
    Ok(value.cast_unsigned().into())
}

fn float(bits: u128) -> f64 {
    f64::from_bits(bits as u64)
}

/// A float times a power of two. The result is rounded once: only the last factor can make it subnormal.
fn ldexp(mut x: f64, exponent: i32) -> f64 {
    // Outside this range everything is zero or infinite.
    let mut exponent = exponent.clamp(-2200, 2200);
    let power = |exponent: i32| f64::from_bits(((exponent + 1023) as u64) << 52);
    while exponent > 1000 {
        x *= power(1000);
        exponent -= 1000;
    }
    // A subnormal is normalised first, so that it loses nothing on the way down.
    if exponent < 0 && x != 0.0 && x.is_finite() {
        while exponent < -900 && x.abs() >= power(-100) {
            x *= power(-900);
            exponent += 900;
        }
    }
    while exponent < -1000 {
        x *= power(-1000);
        exponent += 1000;
    }
    x * power(exponent)
}

/// Two to a power that is a normal number.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((1023 + i64::from(exponent)) as u64) << 52)
}

/// A fraction in [0.5, 1) and the power of two that scales it to the number.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // A subnormal number is normalised.
    let (normal, by) = if x.is_subnormal() { (x * power_of_two(54), 54) } else { (x, 0) };
    let bits = normal.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52), exponent - by)
}

fn unary32(args: &[u128], f: impl Fn(f32) -> f32) -> Result<u128, MemoryError> {
    Ok(u128::from(f(f32::from_bits(args[0] as u32)).to_bits()))
}

fn binary32(args: &[u128], f: impl Fn(f32, f32) -> f32) -> Result<u128, MemoryError> {
    Ok(u128::from(f(f32::from_bits(args[0] as u32), f32::from_bits(args[1] as u32)).to_bits()))
}

fn unary(args: &[u128], f: impl Fn(f64) -> f64) -> Result<u128, MemoryError> {
    Ok(u128::from(f(f64::from_bits(args[0] as u64)).to_bits()))
}

fn binary(args: &[u128], f: impl Fn(f64, f64) -> f64) -> Result<u128, MemoryError> {
    Ok(u128::from(f(f64::from_bits(args[0] as u64), f64::from_bits(args[1] as u64)).to_bits()))
}

/// `x - n * y` for the integer `n` nearest to `x / y`, ties to even: exact, as in IEEE 754.
fn remainder(x: f64, y: f64) -> f64 {
    let y = y.abs();
    let twice = y + y;
    let mut rest = if twice.is_finite() { (x % twice).abs() } else { x.abs() };
    if x.is_nan() || y.is_nan() || x.is_infinite() || y == 0.0 {
        return f64::NAN;
    }
    if y.is_finite() {
        // `rest` is less than `2 y`. Twice the rest is exact where half of `y` is not.
        let is_small = y < 2.0 * f64::MIN_POSITIVE;
        let above = |rest: f64, or_equal: bool| {
            let (a, b) = if is_small { (rest + rest, y) } else { (rest, 0.5 * y) };
            if or_equal { a >= b } else { a > b }
        };
        if above(rest, false) {
            rest -= y;
            if above(rest, true) {
                rest -= y;
            }
        }
    }
    if x.is_sign_negative() { -rest } else { rest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_texts_are_found_by_their_bytes() {
        for (text, part, at) in [
            (&b"abcabd"[..], &b"abd"[..], Some(3)),
            (b"abc", b"", Some(0)),
            (b"", b"a", None),
            (b"\xc3\xa4\xff\xa4", b"\xff\xa4", Some(2)),
            (b"\xe4", b"\xc3\xa4", None),
        ] {
            assert_eq!(position(text, part), at, "{text:?} {part:?}");
        }
    }

    #[test]
    fn remainders_are_those_of_the_nearest_multiple() {
        for (x, y, rest) in [
            (7.5, 2.0, -0.5),
            (-7.5, 2.0, 0.5),
            (5.0, 2.0, 1.0),
            (7.0, 2.0, -1.0),
            (-0.0, 3.0, -0.0),
            (7.5, -2.0, -0.5),
            (3.0, f64::INFINITY, 3.0),
            (f64::MAX, f64::MAX, 0.0),
            (5e-324, 1e-323, 5e-324),
        ] {
            assert_eq!(remainder(x, y).to_bits(), f64::to_bits(rest), "{x} {y}");
        }
        assert!(remainder(1.0, 0.0).is_nan() && remainder(f64::INFINITY, 1.0).is_nan());
    }

    fn run(
        m: &mut SimMemory,
        name: &str,
        args: &[(LowType, u128)],
        result: Option<LowType>,
    ) -> Result<u128, MemoryError> {
        call(m, &ForeignCall { name, args, variadic_after: None, result })
    }

    #[test]
    fn memory_grows_and_keeps_its_bytes() {
        let mut m = SimMemory::default();
        let a = run(&mut m, "malloc", &[(I64, 4)], Some(PTR)).unwrap();
        run(&mut m, "memset", &[(PTR, a), (I32, 0x161), (I64, 4)], Some(PTR)).unwrap();
        let b = run(&mut m, "realloc", &[(PTR, a), (I64, 6)], Some(PTR)).unwrap();
        assert_eq!(run(&mut m, "strlen", &[(PTR, b)], Some(I64)), Ok(4));
        assert!(matches!(run(&mut m, "strlen", &[(PTR, a)], Some(I64)), Err(MemoryError::Freed { .. })));
        assert_eq!(run(&mut m, "calloc", &[(I64, u128::from(u64::MAX)), (I64, 2)], Some(PTR)), Ok(0));
        assert_eq!(run(&mut m, "free", &[(PTR, b)], None), Ok(0));
        assert_eq!(m.live_bytes(), 0);
    }

    #[test]
    fn strings_are_compared_and_searched() {
        let mut m = SimMemory::default();
        let mut put = |text: &[u8]| {
            let address = m.allocate(text.len() as u64, 1).unwrap();
            m.store(address, 1, text).unwrap();
            (PTR, u128::from(address))
        };
        let (a, b, set, open) = (put(b"abca\0"), put(b"abd\0"), put(b"ab\0"), put(b"ab"));
        let mut value = |name: &str, args: &[(LowType, u128)], result| run(&mut m, name, args, Some(result));
        let minus = u128::from(u32::MAX);
        assert_eq!(value("strcmp", &[a, b], I32), Ok(minus));
        assert_eq!(value("strcmp", &[b, a], I32), Ok(1));
        assert_eq!(value("strcmp", &[a, a], I32), Ok(0));
        assert_eq!(value("strncmp", &[a, b, (I64, 2)], I32), Ok(0));
        assert_eq!(value("strncmp", &[a, b, (I64, 3)], I32), Ok(minus));
        assert_eq!(value("strncmp", &[set, open, (I64, 2)], I32), Ok(0));
        assert!(matches!(value("strcmp", &[set, open], I32), Err(MemoryError::OutOfBounds { .. })));
        assert_eq!(value("strchr", &[a, (I32, 97)], PTR), Ok(a.1));
        assert_eq!(value("strrchr", &[a, (I32, 97)], PTR), Ok(a.1 + 3));
        assert_eq!(value("strchr", &[a, (I32, 0)], PTR), Ok(a.1 + 4));
        assert_eq!(value("strchr", &[a, (I32, 122)], PTR), Ok(0));
        assert_eq!(value("strspn", &[a, set], I64), Ok(2));
        assert_eq!(value("strcspn", &[b, a], I64), Ok(0));
        assert_eq!(value("strcspn", &[a, b], I64), Ok(0));
        assert!(matches!(value("strlen", &[open], I64), Err(MemoryError::OutOfBounds { .. })));
    }

    #[test]
    fn numbers_are_taken_apart() {
        for x in [1.0, -3.5, 0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, -1.5e-310] {
            let (fraction, exponent) = frexp(x);
            assert!((0.5..1.0).contains(&fraction.abs()), "{x}");
            assert_eq!(ldexp(fraction, exponent), x);
        }
        assert_eq!(frexp(8.0), (0.5, 4));
        assert_eq!(frexp(0.0), (0.0, 0));
    }

    #[test]
    fn unknown_names_and_wrong_signatures_are_refused() {
        let mut m = SimMemory::default();
        assert!(matches!(run(&mut m, "system", &[], None), Err(MemoryError::UnknownFunction { .. })));
        for (args, result) in
            [(&[(I32, 1)][..], Some(F64)), (&[(F64, 0), (F64, 0)], Some(F64)), (&[(F64, 0)], Some(I64))]
        {
            assert!(matches!(run(&mut m, "sin", args, result), Err(MemoryError::BadCall { .. })));
        }
    }

    #[test]
    fn bytes_compare_as_unsigned() {
        let mut m = SimMemory::default();
        let a = m.allocate(2, 1).unwrap();
        m.store(a, 1, &[0x80, 0x7f]).unwrap();
        let args = [(PTR, u128::from(a)), (PTR, u128::from(a) + 1), (I64, 1)];
        assert_eq!(run(&mut m, "memcmp", &args, Some(I32)), Ok(1));
        assert_eq!(run(&mut m, "toupper", &[(I32, 0xffff_ffff)], Some(I32)), Ok(0xffff_ffff));
    }
}
