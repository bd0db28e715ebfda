//! From a file to an [`Image`]; `mod.rs` has the order of the checks.
//!
//! The file is copied as a whole, and only the checked bytes are used: a concurrent writer has no effect.

use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use brolga_files::{FileError, Links, open, read_at_most};
use brolga_ir::Context;
use brolga_ir::binary::Stored;
use bytes::Bytes;
#[cfg(target_os = "linux")]
use memmap2::Advice;
use memmap2::MmapOptions;

use super::functions::Functions;
use super::header::{self, Expected, Place};
use super::place::LIMIT;
use super::tables::{CODE, CONSTANTS, MODULE, Reader, TABLES, TARGETS};
use super::{Image, ImageError, versions};

/// Files of at least this size are read into large pages.
const LARGE: usize = 1 << 20;
/// The size of a large page.
const LARGE_PAGE: usize = 1 << 21;

/// The bytes of a file, of at most the maximum size of an image.
///
/// # Errors
/// The system refuses to read it, it is not a regular file, or it is too large.
pub fn read_file(path: &Path) -> Result<Bytes, ImageError> {
    let failed = |source| ImageError::File { what: "read", path: path.display().to_string(), source };
    let mut file = open(path, Links::Followed).map_err(|error| failed(error.into()))?;
    let known = file.metadata().map_err(failed)?;
    let length = usize::try_from(known.len()).unwrap_or(usize::MAX);
    match length {
        _ if length > LIMIT => Err(ImageError::TooLarge { bytes: length, limit: LIMIT }),
        LARGE.. => {
            let mut pages = MmapOptions::new().len(length + LARGE_PAGE).map_anon().map_err(failed)?;
            // A hint: two page faults for four megabytes instead of a thousand. The file begins at the start
            // of a large page.
            #[cfg(target_os = "linux")]
            let _ = pages.advise(Advice::HugePage);
            let start = pages.as_ptr().addr().next_multiple_of(LARGE_PAGE) - pages.as_ptr().addr();
            file.read_exact(&mut pages[start..start + length]).map_err(failed)?;
            Ok(Bytes::from_owner(pages).slice(start..start + length))
        }
        _ => {
            let read = read_at_most(file, known.len(), LIMIT as u64);
            let read = read.map_err(|error| match error {
                FileError::TooLarge { .. } => ImageError::TooLarge { bytes: LIMIT + 1, limit: LIMIT },
                error => failed(error.into()),
            })?;
            Ok(read.into())
        }
    }
}

/// The image in a file's bytes, with the names and types of `cx`.
///
/// # Errors
/// The bytes are not an image that this process can run; see [`ImageError`].
pub fn read(file: &Bytes, cx: Arc<Context>, expected: &Expected<'_>) -> Result<Image, ImageError> {
    let damaged = |what: &str| ImageError::Damaged { reason: format!("{what} cannot be read") };
    let header = header::read(file, expected)?;
    // The header was checked against the file's length.
    let part = |Place { offset, length }| file.slice(offset..offset + length);
    let of = |table: usize| part(header.tables[table]);
    let mut tables: [&[u8]; TABLES] = [&[]; TABLES];
    for (table, place) in tables.iter_mut().zip(&header.tables) {
        *table = file.get(place.offset..place.offset + place.length).ok_or_else(|| damaged("a table"))?;
    }
    let targets = versions::read(tables[TARGETS]).ok_or_else(|| damaged("the list of targets"))?;
    let chosen = versions::choose(&targets, expected.features)?;
    let chain = versions::chain(&targets, chosen).into();
    let functions = Functions::new(file.clone(), header.tables, chain, targets.len());
    let functions = functions.ok_or_else(|| damaged("the table of functions"))?;
    let reader = Reader { tables };
    let exports = reader.exports().ok_or_else(|| damaged("the table of exports"))?;
    let module = Stored::open(of(MODULE), cx)?;
    let imports = reader.imports(&module.listed()?).ok_or_else(|| damaged("the table of imports"))?;
    if tables[CODE].len() > header.imports_at {
        return Err(damaged("the code, which reaches into the imports,"));
    }
    Ok(Image {
        module,
        code: of(CODE),
        constants: of(CONSTANTS),
        imports_at: header.imports_at,
        imports,
        frames: functions.frame_rows().ok_or_else(|| damaged("the places of roots"))?,
        functions,
        target: targets.into_iter().nth(chosen).map(|target| target.name).unwrap_or_default(),
        exports,
        needs_heap: header.needs_heap,
    })
}
