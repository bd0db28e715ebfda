//! From a file to an [`Image`]; `mod.rs` has the order of the checks.
//!
//! Everything but the text is read when the image is opened, and used as it was read: a concurrent writer has no effect
//! on it. The text is read function by function (`text.rs`).

use std::path::Path;
use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::binary::Stored;
use bytes::Bytes;

use super::functions::Functions;
use super::header::{self, Described, Expected, Place};
use super::tables::{CALLEES, CODE, CONSTANTS, FUNCTIONS, MODULE, PIECES, Reader, TABLES, TARGETS};
use super::text::Text;
use super::{Image, ImageError, ImageFile, versions};

/// The bytes of a file, of at most the maximum size of an image.
///
/// # Errors
/// The system refuses to read it, it is not a regular file, or it is too large.
pub fn read_file(path: &Path) -> Result<Bytes, ImageError> {
    ImageFile::open(path)?.bytes()
}

/// The image in a file, with the names and types of `cx`.
///
/// # Errors
/// The bytes are not an image that this process can run; see [`ImageError`].
pub fn read(file: &ImageFile, cx: Arc<Context>, expected: &Expected<'_>) -> Result<Image, ImageError> {
    let damaged = |what: &str| ImageError::Damaged { reason: format!("{what} cannot be read") };
    let Described { header, front, text, back } = header::read(file, expected)?;
    let tables = tables(&header.tables, &front);
    let targets = versions::read(tables[TARGETS]).ok_or_else(|| damaged("the list of targets"))?;
    let chosen = versions::choose(&targets, expected.features)?;
    let chain = versions::chain(&targets, chosen).into();
    let functions = Functions::new(front.clone(), header.tables, chain, targets.len());
    let functions = functions.ok_or_else(|| damaged("the table of functions"))?;
    let reader = Reader { tables };
    let exports = reader.exports().ok_or_else(|| damaged("the table of exports"))?;
    let Place { offset, length } = header.tables[MODULE];
    let module = Stored::open(front.slice(offset..offset + length), cx)?;
    let imports = reader.imports(&module.listed()?).ok_or_else(|| damaged("the table of imports"))?;
    let places = [FUNCTIONS, PIECES, CALLEES].map(|table| header.tables[table]);
    let constants = header.tables[CONSTANTS];
    let constants = constants.offset - text.end..constants.offset - text.end + constants.length;
    let code = Text::new(file.clone(), front.clone(), places, text);
    let code = code.ok_or_else(|| damaged("the table of pieces"))?;
    if file.is_in_memory() {
        code.check()?;
    }
    Ok(Image {
        module,
        code_bytes: header.tables[CODE].length,
        code,
        constants: back.slice(constants),
        imports_at: header.imports_at,
        imports,
        frames: functions.frame_rows().ok_or_else(|| damaged("the places of roots"))?,
        functions,
        target: targets.into_iter().nth(chosen).map(|target| target.name).unwrap_or_default(),
        exports,
        needs_heap: header.needs_heap,
    })
}

/// The tables before the text. The header was checked against them.
pub(super) fn tables<'f>(places: &[Place; TABLES], front: &'f [u8]) -> [&'f [u8]; TABLES] {
    let mut tables: [&[u8]; TABLES] = [&[]; TABLES];
    for (table, place) in tables.iter_mut().zip(places).skip(FUNCTIONS) {
        *table = front.get(place.offset..place.offset + place.length).unwrap_or_default();
    }
    tables
}
