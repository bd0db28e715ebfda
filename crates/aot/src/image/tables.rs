//! Rows and strings: writing and reading.
//!
//! A table consists of rows of 32-bit little-endian words, all of the same length, so the n-th row is found
//! by its number. A row refers to other tables by number or offset:
//!
//! | table | words of a row |
//! |---|---|
//! | functions | name (offset, length), code (offset, length), frame bytes, first line, first map, signature (offset or none), target, first inlined body |
//! | lines | code offset, line, inlined body or none |
//! | inlined | name of the function (offset, length), line of the call, body around it or none |
//! | maps | return offset, first word |
//! | words | distance from the frame pointer |
//! | imports | kind, first string (offset, length), second string (offset or none, length), type, four words of bits |
//! | exports | function (offset, length), name for C (offset, length) |
//! | names | for each row of functions: bare name (offset, length), function of the module or none, whether it has a body |
//! | index | rows of functions by name and target, then the first target's rows by bare name |
//! | pieces | for each row of functions, and for what follows the last: checksum of its text, first callee |
//! | callees | rows of functions that the code refers to |
//!
//! The lines, maps and inlined bodies of a function end where the next function's begin, and bodies are numbered from its first. Signatures are bytes: the number of
//! parameters, the number of results, and one byte for each.
//!
//! Reading returns `None` for anything outside its table or malformed.

use std::ops::Range;

use brolga_codegen::compiled::{FrameMap, NamedType, Symbol};
use brolga_codegen::origin::{InlinedBody, Origin};
use brolga_codegen::sig::{Abi, Signature};
use brolga_ir::Type;
use brolga_ir::func::LineColumn;

use super::{Export, Function};

/// The number of tables of an image, in the order of the header.
pub(crate) const TABLES: usize = 17;
pub(crate) const CODE: usize = 0;
pub(crate) const CONSTANTS: usize = 1;
pub(crate) const FUNCTIONS: usize = 2;
pub(crate) const LINES: usize = 3;
pub(crate) const MAPS: usize = 4;
pub(crate) const WORDS: usize = 5;
pub(crate) const SIGNATURES: usize = 6;
pub(crate) const IMPORTS: usize = 7;
pub(crate) const STRINGS: usize = 8;
pub(crate) const TARGETS: usize = 9;
pub(crate) const MODULE: usize = 10;
pub(crate) const EXPORTS: usize = 11;
pub(crate) const NAMES: usize = 12;
pub(crate) const INDEX: usize = 13;
pub(crate) const INLINED: usize = 14;
pub(crate) const PIECES: usize = 15;
pub(crate) const CALLEES: usize = 16;

/// An absent offset or index.
pub(crate) const NONE: u32 = u32::MAX;
pub(crate) const FUNCTION_WORDS: usize = 10;
const LINE_WORDS: usize = 3;
const INLINED_WORDS: usize = 4;
pub(crate) const MAP_WORDS: usize = 2;
pub(crate) const NAME_WORDS: usize = 4;
pub(crate) const PIECE_WORDS: usize = 2;
const IMPORT_WORDS: usize = 10;
const EXPORT_WORDS: usize = 4;

const KIND_ROUTINE: u32 = 0;
const KIND_FOREIGN: u32 = 1;
const KIND_WEAK: u32 = 2;
const KIND_INTERNED: u32 = 3;
const KIND_MODULE: u32 = 4;
const KIND_TEXT: u32 = 5;
const KIND_GLOBAL: u32 = 6;
const KIND_TYPE: u32 = 7;
const KIND_INSTANCE: u32 = 8;
const KIND_BOXED: u32 = 9;
const KIND_METHODS: u32 = 10;
// Only in cache units.
const KIND_FUNCTION: u32 = 11;
const KIND_DATA: u32 = 12;
const KIND_INDIRECT_CELL: u32 = 13;
const KIND_COUNTER: u32 = 14;
const KIND_CELLS: u32 = 15;

// ----- writing -----

/// Tables being written.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) functions: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) inlined: Vec<u8>,
    pub(crate) maps: Vec<u8>,
    pub(crate) words: Vec<u8>,
    pub(crate) signatures: Vec<u8>,
    pub(crate) imports: Vec<u8>,
    pub(crate) strings: Vec<u8>,
    pub(crate) exports: Vec<u8>,
    pub(crate) names: Vec<u8>,
    pub(crate) index: Vec<u8>,
    pub(crate) pieces: Vec<u8>,
    pub(crate) callees: Vec<u8>,
    /// The types that imports refer to, by number.
    pub(crate) types: Vec<Type>,
}

pub(crate) fn put(table: &mut Vec<u8>, words: &[u32]) {
    words.iter().for_each(|word| table.extend(word.to_le_bytes()));
}

impl Writer {
    pub(crate) fn string(&mut self, bytes: &[u8]) -> [u32; 2] {
        let at = self.strings.len() as u32;
        self.strings.extend_from_slice(bytes);
        [at, bytes.len() as u32]
    }

    pub(crate) fn function(&mut self, function: &Function, version: usize) {
        let [name, length] = self.string(function.name.as_bytes());
        let (line, map) = (self.lines.len() / (4 * LINE_WORDS), self.maps.len() / (4 * MAP_WORDS));
        let body = self.inlined.len() / (4 * INLINED_WORDS);
        for &(offset, Origin { at, inlined }) in &function.lines {
            put(&mut self.lines, &[offset, at.bits(), inlined.unwrap_or(NONE)]);
        }
        for body in &function.inlined {
            let [name, length] = self.string(body.function.as_bytes());
            let within = body.within.unwrap_or(NONE);
            put(&mut self.inlined, &[name, length, body.called_at.bits(), within]);
        }
        for map in &function.frame_maps {
            put(&mut self.maps, &[map.return_offset, (self.words.len() / 4) as u32]);
            map.words.iter().for_each(|word| put(&mut self.words, &[word.cast_unsigned()]));
        }
        let signature = match &function.signature {
            Some(signature) => self.signature(signature),
            None => NONE,
        };
        let Function { offset, size, frame_bytes, .. } = *function;
        put(
            &mut self.functions,
            &[
                name,
                length,
                offset,
                size,
                frame_bytes,
                line as u32,
                map as u32,
                signature,
                version as u32,
                body as u32,
            ],
        );
    }

    pub(crate) fn signature(&mut self, signature: &Signature) -> u32 {
        let at = self.signatures.len() as u32;
        let Signature { params, results } = signature;
        for count in [params.len(), results.len()] {
            self.signatures.extend((count as u32).to_le_bytes());
        }
        let number =
            |abi: &Abi| Abi::ALL.iter().position(|known| known == abi).unwrap_or(Abi::ALL.len()) as u8;
        self.signatures.extend(params.iter().chain(results).map(number));
        at
    }

    /// Adds a symbol. Symbols that an image cannot contain were refused before (`place.rs`).
    pub(crate) fn import(&mut self, symbol: &Symbol) {
        let none = [NONE, 0];
        let mut bits = [0; 4];
        let mut ty = NONE;
        let (kind, first, second) = match symbol {
            Symbol::Routine(name) => (KIND_ROUTINE, self.string(name.as_bytes()), none),
            Symbol::Foreign { name, library, weak } => {
                let name = self.string(name.as_bytes());
                let library = library.as_ref().map_or(none, |library| self.string(library.as_bytes()));
                (if *weak { KIND_WEAK } else { KIND_FOREIGN }, name, library)
            }
            Symbol::Interned(name) => (KIND_INTERNED, self.string(name.as_bytes()), none),
            Symbol::Module(name) => (KIND_MODULE, self.string(name.as_bytes()), none),
            Symbol::Text(text) => (KIND_TEXT, self.string(text), none),
            Symbol::Global(name) => (KIND_GLOBAL, self.string(name.as_bytes()), none),
            Symbol::Type(named) => (KIND_TYPE, self.named(named, &mut ty), none),
            Symbol::Instance(named) => (KIND_INSTANCE, self.named(named, &mut ty), none),
            Symbol::Boxed { ty: named, low, high } => {
                bits = [*low as u32, (*low >> 32) as u32, *high as u32, (*high >> 32) as u32];
                (KIND_BOXED, self.named(named, &mut ty), none)
            }
            Symbol::Methods => (KIND_METHODS, none, none),
            Symbol::Function(name) => (KIND_FUNCTION, self.string(name.as_bytes()), none),
            Symbol::Data(name) => (KIND_DATA, self.string(name.as_bytes()), none),
            Symbol::IndirectCell(name) => (KIND_INDIRECT_CELL, self.string(name.as_bytes()), none),
            Symbol::Counter(name) => (KIND_COUNTER, self.string(name.as_bytes()), none),
            Symbol::Cells => (KIND_CELLS, none, none),
        };
        put(&mut self.imports, &[kind, first[0], first[1], second[0], second[1], ty]);
        put(&mut self.imports, &bits);
    }

    /// Adds a function exported to C, and its name in C.
    pub(crate) fn export(&mut self, export: &Export) {
        let (function, name) = (self.string(export.function.as_bytes()), self.string(export.name.as_bytes()));
        put(&mut self.exports, &[function[0], function[1], name[0], name[1]]);
    }

    fn named(&mut self, named: &NamedType, ty: &mut u32) -> [u32; 2] {
        *ty = self.types.len() as u32;
        self.types.push(named.ty);
        self.string(named.name.as_bytes())
    }
}

// ----- reading -----

/// Tables being read.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) tables: [&'a [u8]; TABLES],
}

pub(crate) fn word(table: &[u8], at: usize) -> Option<u32> {
    let start = at.checked_mul(4)?;
    Some(u32::from_le_bytes(*table.get(start..)?.first_chunk()?))
}

pub(crate) fn row<const N: usize>(table: &[u8], at: usize) -> Option<[u32; N]> {
    let start = at.checked_mul(N)?;
    let mut words = [0; N];
    for (index, out) in words.iter_mut().enumerate() {
        *out = word(table, start + index)?;
    }
    Some(words)
}

/// The number of rows of a table; `None` if the last row is incomplete.
pub(crate) fn rows(table: &[u8], words: usize) -> Option<usize> {
    table.len().is_multiple_of(4 * words).then_some(table.len() / (4 * words))
}

impl<'a> Reader<'a> {
    fn string(&self, at: u32, length: u32) -> Option<&'a [u8]> {
        self.tables[STRINGS].get(at as usize..)?.get(..length as usize)
    }

    pub(crate) fn text(&self, at: u32, length: u32) -> Option<String> {
        String::from_utf8(self.string(at, length)?.to_vec()).ok()
    }

    /// The functions, by ascending offset, each with the index of its target, which is below `targets`.
    pub(crate) fn functions(&self, targets: usize) -> Option<Vec<(usize, Function)>> {
        let count = rows(self.tables[FUNCTIONS], FUNCTION_WORDS)?;
        (0..count).map(|index| self.function(index, targets)).collect()
    }

    /// The function of a row.
    pub(crate) fn function(&self, index: usize, targets: usize) -> Option<(usize, Function)> {
        let table = self.tables[FUNCTIONS];
        let (lines, maps) = (rows(self.tables[LINES], LINE_WORDS)?, rows(self.tables[MAPS], MAP_WORDS)?);
        let words = rows(self.tables[WORDS], 1)?;
        let [name, length, offset, size, frame_bytes, line, map, signature, version, body] =
            row(table, index)?;
        let next: Option<[u32; FUNCTION_WORDS]> = row(table, index + 1);
        let bodies = rows(self.tables[INLINED], INLINED_WORDS)?;
        let (last_line, last_map, last_body) = match next {
            Some(next) => (next[5] as usize, next[6] as usize, next[9] as usize),
            None => (lines, maps, bodies),
        };
        if last_line > lines || last_map > maps || last_body > bodies {
            return None;
        }
        let inlined = self.inlined(body as usize..last_body)?;
        let lines = (line as usize..last_line).map(|at| {
            let [offset, place, body] = row(self.tables[LINES], at)?;
            let body = (body != NONE).then_some(body);
            let is_one = body.is_none_or(|body| (body as usize) < inlined.len());
            is_one.then_some((offset, Origin { at: LineColumn::from_bits(place)?, inlined: body }))
        });
        let lines = lines.collect::<Option<Vec<_>>>()?;
        if !lines.is_sorted_by_key(|line| line.0) {
            return None;
        }
        let frame_maps = (map as usize..last_map).map(|at| {
            let [return_offset, first] = row(self.tables[MAPS], at)?;
            let last = match row::<MAP_WORDS>(self.tables[MAPS], at + 1) {
                Some([_, last]) => last as usize,
                None => words,
            };
            let listed = (first as usize..last).map(|at| Some(word(self.tables[WORDS], at)?.cast_signed()));
            Some(FrameMap { return_offset, words: listed.collect::<Option<_>>()? })
        });
        let frame_maps = frame_maps.collect::<Option<Vec<_>>>()?;
        let signature = if signature == NONE { None } else { Some(self.signature(signature)?) };
        let name = self.text(name, length)?;
        let version = usize::try_from(version).ok().filter(|&version| version < targets)?;
        Some((version, Function { name, offset, size, frame_bytes, lines, inlined, frame_maps, signature }))
    }

    /// The inlined bodies of a function. An outer one precedes those within it.
    fn inlined(&self, bodies: Range<usize>) -> Option<Vec<InlinedBody>> {
        let first = bodies.start;
        let body = |at: usize| {
            let [name, length, called_at, within] = row(self.tables[INLINED], at)?;
            let within = (within != NONE).then_some(within);
            if within.is_some_and(|within| within as usize >= at - first) {
                return None;
            }
            let called_at = LineColumn::from_bits(called_at)?;
            Some(InlinedBody { function: self.text(name, length)?, called_at, within })
        };
        bodies.map(body).collect()
    }

    pub(crate) fn signature(&self, at: u32) -> Option<Signature> {
        let bytes = self.tables[SIGNATURES].get(at as usize..)?;
        let (params, results) = (word(bytes, 0)? as usize, word(bytes, 1)? as usize);
        let bytes = bytes.get(8..)?.get(..params.checked_add(results)?)?;
        let abis = bytes.iter().map(|&number| Abi::ALL.get(number as usize).copied());
        let mut abis = abis.collect::<Option<Vec<Abi>>>()?;
        let results = abis.split_off(params);
        Some(Signature::new(abis, results))
    }

    /// The functions exported to C, in the order of their numbers.
    pub(crate) fn exports(&self) -> Option<Vec<Export>> {
        let table = self.tables[EXPORTS];
        let export = |at| {
            let [function, function_length, name, name_length]: [u32; EXPORT_WORDS] = row(table, at)?;
            Some(Export {
                function: self.text(function, function_length)?,
                name: self.text(name, name_length)?,
            })
        };
        (0..rows(table, EXPORT_WORDS)?).map(export).collect()
    }

    /// The imports, which refer to `types`.
    pub(crate) fn imports(&self, types: &[Type]) -> Option<Vec<Symbol>> {
        let table = self.tables[IMPORTS];
        (0..rows(table, IMPORT_WORDS)?).map(|at| self.import(row(table, at)?, types)).collect()
    }

    fn import(&self, words: [u32; IMPORT_WORDS], types: &[Type]) -> Option<Symbol> {
        let [kind, at, length, second, second_length, ty, bits @ ..] = words;
        let name = || self.text(at, length);
        let named = || {
            let ty = *types.get(ty as usize)?;
            Some(NamedType { name: name()?.into_boxed_str(), ty })
        };
        Some(match kind {
            KIND_ROUTINE => Symbol::Routine(name()?),
            KIND_FOREIGN | KIND_WEAK => {
                let library = if second == NONE { None } else { Some(self.text(second, second_length)?) };
                Symbol::Foreign { name: name()?, library, weak: kind == KIND_WEAK }
            }
            KIND_INTERNED => Symbol::Interned(name()?),
            KIND_MODULE => Symbol::Module(name()?),
            KIND_TEXT => Symbol::Text(self.string(at, length)?.to_vec()),
            KIND_GLOBAL => Symbol::Global(name()?),
            KIND_TYPE => Symbol::Type(named()?),
            KIND_INSTANCE => Symbol::Instance(named()?),
            KIND_BOXED => {
                let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
                Symbol::Boxed { ty: named()?, low: half(bits[0], bits[1]), high: half(bits[2], bits[3]) }
            }
            KIND_METHODS => Symbol::Methods,
            KIND_FUNCTION => Symbol::Function(name()?),
            KIND_DATA => Symbol::Data(name()?),
            KIND_INDIRECT_CELL => Symbol::IndirectCell(name()?),
            KIND_COUNTER => Symbol::Counter(name()?),
            KIND_CELLS => Symbol::Cells,
            _ => return None,
        })
    }
}
