//! The compact binary form of a module, for images and caches.
//!
//! ```text
//! file      = "BRLG" version:u16 flags:u16 checksum:u64 directory strings decls definitions types globals functions listed
//! strings   = list of utf-8-bytes                              directory and lists: `sections.rs`
//! decls     = count (number builtin? name parameters)*
//! types     = list of type                                     each is made of earlier ones
//! globals   = count (name type literal kind:u8)*
//! functions = list of function
//! listed    = count type*
//! function  = name level inlining vararg params results statics
//!             constants callees c-functions slots notes data     each: count item*
//!             blocks:count (insts:count inst*)*
//!             branch-weights inlining-of-calls notes-of-loops              each: count (number item)*
//! inst      = operation result-types operands blocks line
//! ```
//!
//! With flag 1 the file has a list of types that data outside the module refers to by index; without it, the
//! list is empty.
//!
//! Numbers are unsigned LEB128 (signed ones zigzag), fixed fields little-endian. The checksum is FNV-1a over
//! all bytes after it. Nothing is stored by an id of this process: strings by their text, types by their
//! structure, declarations and operations by their names. A value of a function is a number: first its
//! arguments, then its constants, then the results of its instructions in order. Unlinked instructions and
//! unused entities are not written, so rewriting a module that was read yields the same bytes, as does
//! writing one module twice.
//!
//! Kept: everything in the text form, and source lines. Not kept: positions in a text.
//!
//! **On demand.** [`Stored`] reads declared types and global variables when opened, and a function, with the
//! strings and types that it names, on request. [`read`] reads everything.
//!
//! **Reading trusts nothing.** A count is compared with the bytes that remain before anything is allocated for it, ids are
//! compared with what was read, types are made by the functions that check them, and the finished module is verified.
//! Types that are already declared must be declared identically.
//!
//! | file | what it holds |
//! |---|---|
//! | `bytes` | numbers and texts, in both directions |
//! | `sections` | the directory, and lists, in both directions |
//! | `stored` | a file whose parts are read on demand |
//! | `tables` | strings, declarations, types, in both directions |
//! | `ops` | operations, in both directions |
//! | `func` | functions, in both directions |
//! | `hints` | their hints, in both directions |
//! | `error` | errors of reading |

mod bytes;
mod error;
mod func;
mod hints;
mod ops;
mod sections;
mod stored;
mod tables;
#[cfg(test)]
mod tests;

pub use error::{BinaryError, Refusal};
pub use stored::Stored;
use stored::verified;

use crate::context::Context;
use crate::module::{GlobalKind, Literal, Module};
use crate::types::Type;
use bytes::{Sink, Source};
use sections::ListSink;
use std::sync::Arc;
use tables::{Names, Tables};

const MAGIC: [u8; 4] = *b"BRLG";
/// The version of the form; a reader accepts only its own.
const VERSION: u16 = 8;
/// Magic, version, flags, checksum.
const HEADER: usize = 16;
/// Maximum nesting of literals, the same as for types.
const MAX_LITERAL_DEPTH: usize = crate::types::MAX_DEPTH as usize;

/// The flag for a list of types at the end.
const WITH_TYPES: u16 = 1;

/// Encodes a verified module. The bytes of an unverified module may be refused by [`read`].
pub fn write(module: &Module) -> Vec<u8> {
    write_all(module, None)
}

/// Encodes a verified module and the types of its context that data beside it refers to: [`read_with_types`]
/// returns them in the same order.
pub fn write_with_types(module: &Module, types: &[Type]) -> Vec<u8> {
    write_all(module, Some(types))
}

fn write_all(module: &Module, types: Option<&[Type]>) -> Vec<u8> {
    let mut names = Names::new(&module.cx);
    let mut globals = Sink::default();
    globals.count(module.globals().len());
    for global in module.globals() {
        names.name(&mut globals, global.name);
        names.ty(&mut globals, global.ty);
        write_literal(&mut names, &mut globals, &global.init);
        globals.byte(kind_byte(global.kind));
    }
    let mut functions = ListSink::default();
    for (_, func) in module.funcs() {
        let mut one = Sink::default();
        func::write(&mut names, &mut one, func);
        functions.push(&one.bytes);
    }
    let mut listed = Sink::default();
    names.tys(&mut listed, types.unwrap_or_default());
    let flags = if types.is_some() { WITH_TYPES } else { 0 };
    let mut out = Vec::new();
    out.extend(MAGIC);
    out.extend(VERSION.to_le_bytes());
    out.extend(flags.to_le_bytes());
    out.extend([0; HEADER - 8]);
    let [strings, decls, definitions, types] = names.finish();
    let sections = [strings, decls, definitions, types, globals.bytes, functions.finish(), listed.bytes];
    sections::write(&mut out, sections);
    seal(&mut out);
    out
}

/// Decodes a module, with the names and types of `cx`.
pub fn read(bytes: &[u8], cx: Arc<Context>) -> Result<Module, BinaryError> {
    read_all(bytes, cx, 0, true).map(|(module, _)| module)
}

/// As [`read`], for a module that the caller verifies: functions may be malformed.
///
/// # Errors
/// As [`read`], except for what the verifier finds.
pub fn read_unverified(bytes: &[u8], cx: Arc<Context>) -> Result<Module, BinaryError> {
    read_all(bytes, cx, 0, false).map(|(module, _)| module)
}

/// Decodes what [`write_with_types`] wrote, with the names and types of `cx`.
pub fn read_with_types(bytes: &[u8], cx: Arc<Context>) -> Result<(Module, Vec<Type>), BinaryError> {
    read_all(bytes, cx, WITH_TYPES, true)
}

fn read_all(
    bytes: &[u8],
    cx: Arc<Context>,
    flags: u16,
    verifies: bool,
) -> Result<(Module, Vec<Type>), BinaryError> {
    let fail = |offset, refusal| Err(BinaryError { offset, refusal });
    let Some((header, body)) = bytes.split_at_checked(HEADER) else {
        return fail(bytes.len(), Refusal::Truncated);
    };
    check_header(header, flags)?;
    if header[8..] != checksum(body).to_le_bytes() {
        return fail(8, Refusal::Checksum);
    }
    let whole = || {
        let stored = Stored::after_header(bytes, cx.clone())?;
        let (module, starts) = stored.unverified()?;
        if verifies {
            verified(&module, &starts)?;
        }
        Ok((module, stored.listed()?))
    };
    let (module, listed) = loop {
        match whole() {
            // In the context's scope the types' names may refer to other types.
            Err(BinaryError { refusal: Refusal::Redeclared(name), .. }) if cx.names.redeclare(&name) => {}
            read => break read?,
        }
    };
    match flags & WITH_TYPES == 0 && !listed.is_empty() {
        true => fail(6, Refusal::Flags),
        false => Ok((module, listed)),
    }
}

/// Magic, version and flags of a header.
fn check_header(header: &[u8], flags: u16) -> Result<(), BinaryError> {
    let fail = |offset, refusal| Err(BinaryError { offset, refusal });
    if header[..4] != MAGIC {
        return fail(0, Refusal::Magic);
    }
    let version = u16::from_le_bytes([header[4], header[5]]);
    if version != VERSION {
        return fail(4, Refusal::Version { found: version, known: VERSION });
    }
    if header[6..8] != flags.to_le_bytes() {
        return fail(6, Refusal::Flags);
    }
    Ok(())
}

/// FNV-1a: finds damage, not malice.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// Writes the checksum into the header.
fn seal(bytes: &mut [u8]) {
    if let Some((header, body)) = bytes.split_at_mut_checked(HEADER) {
        header[8..].copy_from_slice(&checksum(body).to_le_bytes());
    }
}

/// The tag of a kind of global variable.
fn kind_byte(kind: GlobalKind) -> u8 {
    match kind {
        GlobalKind::Variable => 0,
        GlobalKind::Constant => 1,
        GlobalKind::ThreadLocal => 2,
    }
}

fn read_kind(source: &mut Source<'_>) -> Result<GlobalKind, BinaryError> {
    match source.byte()? {
        0 => Ok(GlobalKind::Variable),
        1 => Ok(GlobalKind::Constant),
        2 => Ok(GlobalKind::ThreadLocal),
        tag => source.refuse(Refusal::Tag { what: "kind of global", tag }),
    }
}

// A literal is written before its parts: an aggregate states their number.

fn write_literal(names: &mut Names<'_>, out: &mut Sink, literal: &Literal) {
    let mut work = vec![literal];
    while let Some(literal) = work.pop() {
        match literal {
            Literal::Const(constant) => {
                out.byte(0);
                func::write_const(names, out, constant, &|_| None);
            }
            Literal::Aggregate { ty, fields } => {
                out.byte(1);
                names.ty(out, *ty);
                out.count(fields.len());
                work.extend(fields.iter().rev());
            }
            Literal::Array { ty, dims, items } => {
                out.byte(2);
                names.ty(out, *ty);
                out.count(dims.len());
                dims.iter().for_each(|&length| out.number(length as u64));
                out.count(items.len());
                work.extend(items.iter().rev());
            }
        }
    }
}

/// An aggregate, or an array with its dimensions, whose parts are not all read yet: its type, the dimensions,
/// the total number of parts, and the parts read so far.
type OpenLiteral = (Type, Option<Vec<usize>>, usize, Vec<Literal>);

fn read_literal(tables: Tables<'_>, source: &mut Source<'_>) -> Result<Literal, BinaryError> {
    let mut open: Vec<OpenLiteral> = Vec::new();
    let whole = |ty, dims, parts| match dims {
        None => Literal::Aggregate { ty, fields: parts },
        Some(dims) => Literal::Array { ty, dims, items: parts },
    };
    loop {
        let mut done = match source.byte()? {
            0 => Literal::Const(func::read_const(tables, source, &[])?),
            tag @ (1 | 2) => {
                let ty = tables.ty(source)?;
                let dims = match tag {
                    1 => None,
                    _ => {
                        let mut dims = Vec::new();
                        for _ in 0..source.count()? {
                            let Ok(length) = usize::try_from(source.number()?) else {
                                return source.refuse(Refusal::Number);
                            };
                            dims.push(length);
                        }
                        Some(dims)
                    }
                };
                let count = source.count()?;
                if open.len() >= MAX_LITERAL_DEPTH {
                    return source.refuse(Refusal::TooDeep);
                }
                if count > 0 {
                    open.push((ty, dims, count, Vec::new()));
                    continue;
                }
                whole(ty, dims, Vec::new())
            }
            tag => return source.refuse(Refusal::Tag { what: "literal", tag }),
        };
        loop {
            let Some((ty, dims, count, mut parts)) = open.pop() else { return Ok(done) };
            parts.push(done);
            if parts.len() < count {
                open.push((ty, dims, count, parts));
                break;
            }
            done = whole(ty, dims, parts);
        }
    }
}
