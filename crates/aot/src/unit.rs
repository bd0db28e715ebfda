//! A unit of compiled functions as bytes, for a cache that outlives the process.
//!
//! ```text
//!   UnitCode, types, words ── write ──► lengths of the tables │ tables of images (image/tables.rs) │ tables of units
//!                                 ◄── read ──
//! ```
//!
//! The format is the image format: the same rows for functions, lines, frame maps, signatures and symbols;
//! types as indices into a list at the end of a module. The code of an image is laid out when it is written,
//! a unit of a cache when it is linked, so a unit also has the inputs of the layout:
//!
//! | table of units | words of a row |
//! |---|---|
//! | parts | alignment, code generator, first relocation, first symbol; one row per function |
//! | relocations | offset, kind, symbol or none, offset in the function, two words of the addend |
//! | constants | name (offset, length), bytes (offset, length) |
//! | known | name (offset, length), signature or none: the requested functions |
//! | calls | name (offset, length), signature: functions in other units |
//! | facts | number of symbols of functions, flags, cells of the profile, number of types that symbols name |
//! | words | arbitrary data of the writer |
//!
//! The list of types ends with arbitrary types of the writer. It is omitted if it is empty; the module that
//! precedes it is empty.
//!
//! **Reading** is bounds-checked as for images, and returns an error for malformed input. It cannot check
//! machine code: the reader must be certain that the bytes are unchanged (by the seal of a cache entry).

use std::sync::Arc;

use brolga_codegen::compiled::{
    CompiledFunction, MadeBy, RelocKind, RelocTarget, Relocation, Symbol, UnitCode,
};
use brolga_ir::{Context, Module, Type, binary};

use crate::image::Function;
use crate::image::tables::{
    CODE, CONSTANTS, FUNCTIONS, IMPORTS, INLINED, LINES, MAPS, MODULE, NONE, PIECES, Reader, SIGNATURES,
    STRINGS, TABLES, WORDS, Writer, put, row, rows,
};

/// The format version of units; it is one of the facts that an entry depends on.
pub const UNIT_VERSION: u64 = 3;

/// The tables that units have in common with images come first.
const SHARED: usize = PIECES;
const PARTS: usize = SHARED;
const RELOCATIONS: usize = SHARED + 1;
const DATA: usize = SHARED + 2;
const KNOWN: usize = SHARED + 3;
const CALLS: usize = SHARED + 4;
const FACTS: usize = SHARED + 5;
const EXTRA: usize = SHARED + 6;
const ALL: usize = SHARED + 7;

const PART_WORDS: usize = 4;
const RELOCATION_WORDS: usize = 6;
const DATA_WORDS: usize = 4;
const KNOWN_WORDS: usize = 3;
const FACT_WORDS: usize = 4;

const NEEDS_HEAP: u32 = 1;

const KINDS: [RelocKind; 10] = [
    RelocKind::Abs8,
    RelocKind::X86PcRel4,
    RelocKind::X86CallPcRel4,
    RelocKind::Arm64Call,
    RelocKind::Aarch64AdrPrelPgHi21,
    RelocKind::Aarch64AddAbsLo12Nc,
    RelocKind::X86CallPltRel4,
    RelocKind::X86GotPcRel4,
    RelocKind::Aarch64AdrGotPage21,
    RelocKind::Aarch64Ld64GotLo12Nc,
];

const MAKERS: [MadeBy; 4] =
    [MadeBy::SinglePass, MadeBy::Cranelift, MadeBy::CraneliftOversized, MadeBy::Other];

/// A unit that was read.
#[derive(Debug)]
pub struct StoredUnit {
    pub code: UnitCode,
    /// The writer's types.
    pub types: Vec<Type>,
    /// The writer's words.
    pub words: Vec<u32>,
}

/// The bytes are not a unit of this version.
#[derive(thiserror::Error, Clone, Copy, PartialEq, Eq, Debug)]
#[error("this is not a unit of code: {0} cannot be read")]
pub struct UnitError(&'static str);

/// A unit as bytes, with types and words for the writer's own use. The types belong to `cx`. `None` if it
/// is too large for its tables.
pub fn write(cx: &Arc<Context>, code: &UnitCode, types: &[Type], words: &[u32]) -> Option<Vec<u8>> {
    let mut tables = Writer::default();
    let (mut text, mut parts, mut relocations): (Vec<u8>, Vec<u8>, Vec<u8>) = Default::default();
    let mut symbols = 0;
    for function in &code.functions {
        let place = Function {
            name: function.name.clone(),
            offset: u32::try_from(text.len()).ok()?,
            size: u32::try_from(function.code.len()).ok()?,
            frame_bytes: function.frame_bytes,
            lines: function.lines.clone(),
            inlined: function.inlined.clone(),
            frame_maps: function.frame_maps.clone(),
            signature: None,
        };
        tables.function(&place, 0);
        text.extend_from_slice(&function.code);
        let maker = MAKERS.iter().position(|maker| *maker == function.made_by)?;
        let first = relocations.len() / (4 * RELOCATION_WORDS);
        put(&mut parts, &[function.align, maker as u32, u32::try_from(first).ok()?, symbols]);
        for reloc in &function.relocs {
            let kind = KINDS.iter().position(|kind| *kind == reloc.kind)?;
            let (symbol, offset) = match reloc.target {
                RelocTarget::Symbol(symbol) => (symbol, 0),
                RelocTarget::Offset(offset) => (NONE, offset),
            };
            let addend = reloc.addend.cast_unsigned();
            put(
                &mut relocations,
                &[reloc.offset, kind as u32, symbol, offset, addend as u32, (addend >> 32) as u32],
            );
        }
        function.symbols.iter().for_each(|symbol| tables.import(symbol));
        symbols = symbols.checked_add(u32::try_from(function.symbols.len()).ok()?)?;
    }
    code.c_callees.iter().for_each(|symbol| tables.import(symbol));
    let (mut constants, mut data): (Vec<u8>, Vec<u8>) = Default::default();
    for (name, bytes) in &code.constants {
        let [name, length] = tables.string(name.as_bytes());
        let at = u32::try_from(constants.len()).ok()?;
        put(&mut data, &[name, length, at, u32::try_from(bytes.len()).ok()?]);
        constants.extend_from_slice(bytes);
    }
    let (mut known, mut calls): (Vec<u8>, Vec<u8>) = Default::default();
    for (name, signature) in &code.signatures {
        let [name, length] = tables.string(name.as_bytes());
        let signature = signature.as_ref().map_or(NONE, |signature| tables.signature(signature));
        put(&mut known, &[name, length, signature]);
    }
    for (name, signature) in &code.calls {
        let [name, length] = tables.string(name.as_bytes());
        let signature = tables.signature(signature);
        put(&mut calls, &[name, length, signature]);
    }
    let mut facts = Vec::new();
    let flags = if code.needs_heap { NEEDS_HEAP } else { 0 };
    let named = u32::try_from(tables.types.len()).ok()?;
    put(&mut facts, &[symbols, flags, u32::try_from(code.cells).ok()?, named]);
    tables.types.extend_from_slice(types);
    let mut extra = Vec::new();
    put(&mut extra, words);
    let module = match tables.types.is_empty() {
        true => Vec::new(),
        false => binary::write_with_types(&Module::new(cx.clone()), &tables.types),
    };
    let mut all: [&[u8]; ALL] = [&[]; ALL];
    for (at, table) in [
        (CODE, &text),
        (CONSTANTS, &constants),
        (FUNCTIONS, &tables.functions),
        (LINES, &tables.lines),
        (INLINED, &tables.inlined),
        (MAPS, &tables.maps),
        (WORDS, &tables.words),
        (SIGNATURES, &tables.signatures),
        (IMPORTS, &tables.imports),
        (STRINGS, &tables.strings),
        (MODULE, &module),
        (PARTS, &parts),
        (RELOCATIONS, &relocations),
        (DATA, &data),
        (KNOWN, &known),
        (CALLS, &calls),
        (FACTS, &facts),
        (EXTRA, &extra),
    ] {
        all[at] = table;
    }
    let mut bytes = Vec::with_capacity(4 * ALL + all.iter().map(|table| table.len()).sum::<usize>());
    for table in all {
        put(&mut bytes, &[u32::try_from(table.len()).ok()?]);
    }
    all.iter().for_each(|table| bytes.extend_from_slice(table));
    Some(bytes)
}

/// The unit described by `bytes`, with the names and types of `cx`.
///
/// # Errors
/// The bytes were not written by [`write`](fn@write).
pub fn read(bytes: &[u8], cx: &Arc<Context>) -> Result<StoredUnit, UnitError> {
    let tables = tables(bytes).ok_or(UnitError("the list of tables"))?;
    let mut own: [&[u8]; TABLES] = [&[]; TABLES];
    own[..SHARED].copy_from_slice(&tables[..SHARED]);
    let reader = Reader { tables: own };
    let types = match own[MODULE] {
        [] => Vec::new(),
        module => binary::read_with_types(module, cx.clone()).map_err(|_| UnitError("the list of types"))?.1,
    };
    let [count, flags, cells, named] = single(tables[FACTS]).ok_or(UnitError("the table of facts"))?;
    let (named, types) = types.split_at_checked(named as usize).ok_or(UnitError("the number of types"))?;
    let symbols = reader.imports(named).ok_or(UnitError("the table of symbols"))?;
    let (symbols, c_callees) =
        symbols.split_at_checked(count as usize).ok_or(UnitError("the number of symbols"))?;
    let functions = functions(&reader, &tables, symbols).ok_or(UnitError("the table of functions"))?;
    let known = names(&reader, tables[KNOWN]).ok_or(UnitError("the table of signatures"))?;
    let called = names(&reader, tables[CALLS]).ok_or(UnitError("the table of calls"))?;
    let calls = called.into_iter().map(|(name, signature)| Some((name, signature?)));
    let code = UnitCode {
        functions,
        constants: constants(&reader, tables[DATA]).ok_or(UnitError("the table of constants"))?,
        signatures: known.into_iter().collect(),
        calls: calls.collect::<Option<_>>().ok_or(UnitError("the table of calls"))?,
        c_callees: c_callees.iter().cloned().collect(),
        needs_heap: flags & NEEDS_HEAP != 0,
        cells: cells as usize,
    };
    let count = rows(tables[EXTRA], 1).ok_or(UnitError("the words"))?;
    let words = (0..count).filter_map(|at| row::<1>(tables[EXTRA], at)).map(|[word]| word).collect();
    Ok(StoredUnit { code, types: types.to_vec(), words })
}

/// The tables, which must cover all of the bytes.
fn tables(bytes: &[u8]) -> Option<[&[u8]; ALL]> {
    let lengths: [u32; ALL] = row(bytes, 0)?;
    let mut rest = bytes.get(4 * ALL..)?;
    let mut tables: [&[u8]; ALL] = [&[]; ALL];
    for (table, length) in tables.iter_mut().zip(lengths) {
        (*table, rest) = rest.split_at_checked(length as usize)?;
    }
    rest.is_empty().then_some(tables)
}

/// The row of a table with a single row.
fn single<const N: usize>(table: &[u8]) -> Option<[u32; N]> {
    if rows(table, N)? == 1 { row(table, 0) } else { None }
}

fn functions(
    reader: &Reader<'_>,
    tables: &[&[u8]; ALL],
    symbols: &[Symbol],
) -> Option<Vec<CompiledFunction>> {
    let placed = reader.functions(1)?;
    let relocations = rows(tables[RELOCATIONS], RELOCATION_WORDS)?;
    if rows(tables[PARTS], PART_WORDS)? != placed.len() || rows(tables[FACTS], FACT_WORDS)? != 1 {
        return None;
    }
    let mut functions = Vec::with_capacity(placed.len());
    for (index, (_, place)) in placed.into_iter().enumerate() {
        let [align, maker, reloc, symbol] = row::<PART_WORDS>(tables[PARTS], index)?;
        let next = row::<PART_WORDS>(tables[PARTS], index + 1);
        let (last_reloc, last_symbol) = match next {
            Some([_, _, reloc, symbol]) => (reloc as usize, symbol as usize),
            None => (relocations, symbols.len()),
        };
        let own = symbols.get(symbol as usize..last_symbol)?;
        let code = tables[CODE].get(place.offset as usize..)?.get(..place.size as usize)?;
        if last_reloc > relocations || reloc as usize > last_reloc || !maps_fit(&place) {
            return None;
        }
        let relocs = (reloc as usize..last_reloc).map(|at| {
            let [offset, kind, symbol, place, low, high] = row::<RELOCATION_WORDS>(tables[RELOCATIONS], at)?;
            let kind = *KINDS.get(kind as usize)?;
            let target = match symbol {
                NONE => RelocTarget::Offset(place),
                symbol => RelocTarget::Symbol(symbol),
            };
            let addend = (u64::from(low) | u64::from(high) << 32).cast_signed();
            Some(Relocation { offset, kind, target, addend })
        });
        functions.push(CompiledFunction {
            name: place.name,
            code: code.to_vec(),
            align,
            relocs: relocs.collect::<Option<_>>()?,
            symbols: own.to_vec(),
            frame_bytes: place.frame_bytes,
            frame_maps: place.frame_maps,
            lines: place.lines,
            inlined: place.inlined,
            made_by: *MAKERS.get(maker as usize)?,
            file: None,
            variables: Vec::new(),
            listing: None,
        });
    }
    Some(functions)
}

/// Whether the return addresses are inside the function and ascending.
fn maps_fit(function: &Function) -> bool {
    let returns = function.frame_maps.iter().map(|map| map.return_offset);
    returns.clone().is_sorted_by(|a, b| a < b) && returns.clone().all(|at| at > 0 && at <= function.size)
}

fn constants(reader: &Reader<'_>, table: &[u8]) -> Option<Vec<(String, Vec<u8>)>> {
    let constant = |at| {
        let [name, length, start, bytes] = row::<DATA_WORDS>(table, at)?;
        let bytes = reader.tables[CONSTANTS].get(start as usize..)?.get(..bytes as usize)?;
        Some((reader.text(name, length)?, bytes.to_vec()))
    };
    (0..rows(table, DATA_WORDS)?).map(constant).collect()
}

type Known = (String, Option<brolga_codegen::sig::Signature>);

/// Names with their signatures.
fn names(reader: &Reader<'_>, table: &[u8]) -> Option<Vec<Known>> {
    let named = |at| {
        let [name, length, signature] = row::<KNOWN_WORDS>(table, at)?;
        let signature = if signature == NONE { None } else { Some(reader.signature(signature)?) };
        Some((reader.text(name, length)?, signature))
    };
    (0..rows(table, KNOWN_WORDS)?).map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use brolga_codegen::compiled::{FrameMap, NamedType};
    use brolga_codegen::origin::{InlinedBody, Origin};
    use brolga_codegen::sig::{Abi, Signature};
    use brolga_ir::func::LineColumn;

    fn function(name: &str) -> CompiledFunction {
        let reloc = |offset, kind, target, addend| Relocation { offset, kind, target, addend };
        CompiledFunction {
            name: name.to_owned(),
            code: (0..40).collect(),
            align: 32,
            relocs: vec![
                reloc(3, RelocKind::X86CallPcRel4, RelocTarget::Symbol(1), -4),
                reloc(20, RelocKind::Abs8, RelocTarget::Offset(7), i64::MAX),
            ],
            symbols: vec![
                Symbol::IndirectCell("g(Int64)".into()),
                Symbol::Type(NamedType { name: "Int64".into(), ty: Type::INT64 }),
                Symbol::Counter("g(Int64)".into()),
                Symbol::Function("h()".into()),
                Symbol::Data("h()#data0".into()),
                Symbol::Cells,
                Symbol::Methods,
                Symbol::Text(b"not \xff UTF-8".to_vec()),
                Symbol::Foreign { name: "cos".into(), library: Some("libm".into()), weak: true },
            ],
            frame_bytes: 48,
            frame_maps: vec![FrameMap { return_offset: 12, words: Box::new([-8, 16]) }],
            lines: vec![
                (0, LineColumn::new(1, 0).into()),
                (9, Origin { at: LineColumn::new(2, 40), inlined: Some(1) }),
                (12, Origin::default()),
            ],
            inlined: vec![
                InlinedBody { function: "g()".into(), called_at: LineColumn::new(5, 0), within: None },
                InlinedBody { function: "h()".into(), called_at: LineColumn::UNKNOWN, within: Some(0) },
            ],
            made_by: MadeBy::SinglePass,
            file: None,
            variables: Vec::new(),
            listing: None,
        }
    }

    fn code() -> UnitCode {
        let signature = Signature::new([Abi::I64, Abi::Object], [Abi::F64]);
        let last = CompiledFunction { symbols: Vec::new(), relocs: Vec::new(), ..function("empty") };
        UnitCode {
            functions: vec![function("f(Int64)"), function("f(Float64)"), last],
            constants: vec![("h()#data0".into(), vec![1, 2, 3]), ("none".into(), Vec::new())],
            signatures: [("f(Int64)".to_owned(), Some(signature.clone())), ("f(Any)".to_owned(), None)]
                .into(),
            calls: [("g(Int64)".to_owned(), signature)].into(),
            c_callees: [Symbol::IndirectCell("called_back(Int64)".into())].into(),
            needs_heap: true,
            cells: 17,
        }
    }

    #[test]
    fn a_unit_is_read_as_it_was_written() {
        let cx = Context::new();
        let own = [Type::FLOAT64, cx.types.function_of("f")];
        let bytes = write(&cx, &code(), &own, &[5, 6]).unwrap();
        let read = read(&bytes, &cx).unwrap();
        assert_eq!(read.code, code());
        assert_eq!((&*read.types, &*read.words), (&own[..], &[5, 6][..]));
        let empty = write(&cx, &UnitCode::default(), &[], &[]).unwrap();
        assert_eq!(super::read(&empty, &cx).unwrap().code, UnitCode::default());
    }

    #[test]
    fn changed_bytes_are_an_error_or_another_unit_and_never_a_panic() {
        let cx = Context::new();
        let bytes = write(&cx, &code(), &[Type::FLOAT64], &[5, 6]).unwrap();
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], &cx).is_err(), "cut at {length}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] = value;
                let _ = read(&changed, &cx);
            }
        }
    }
}
