//! From a file to an [`Image`]: see the folder's header for the order of the checks.
//!
//! The file is read as a whole, and only the checked bytes are used: a writer that changes it meanwhile has no effect here.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use brolga_ir::{Context, binary};

use super::header::{self, Expected};
use super::place::LIMIT;
use super::tables::{CODE, CONSTANTS, MODULE, Reader, TABLES, TARGETS};
use super::{Function, Image, ImageError, versions};

/// The bytes of the file at a path, which is no larger than images are.
///
/// # Errors
/// The system refuses to read it, or it is too large.
pub fn read_file(path: &Path) -> Result<Vec<u8>, ImageError> {
    let failed = |source| ImageError::File { what: "read", path: path.display().to_string(), source };
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no regular file")));
    }
    let mut bytes = Vec::new();
    file.take(LIMIT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    match bytes.len() {
        length if length > LIMIT => Err(ImageError::TooLarge { bytes: length, limit: LIMIT }),
        _ => Ok(bytes),
    }
}

/// The image in a file's bytes, with the names and types of `cx`.
///
/// # Errors
/// The bytes are not those of an image that this process can run; see [`ImageError`].
pub fn read(file: &[u8], cx: Arc<Context>, expected: &Expected<'_>) -> Result<Image, ImageError> {
    let damaged = |what: &str| ImageError::Damaged { reason: format!("{what} cannot be read") };
    let header = header::read(file, expected)?;
    let mut tables: [&[u8]; TABLES] = [&[]; TABLES];
    for (table, place) in tables.iter_mut().zip(&header.tables) {
        // The header was held against the file.
        *table = file.get(place.offset..place.offset + place.length).ok_or_else(|| damaged("a table"))?;
    }
    let targets = versions::read(tables[TARGETS]).ok_or_else(|| damaged("the list of targets"))?;
    let chosen = versions::choose(&targets, expected.features)?;
    let reader = Reader { tables };
    let functions = reader.functions(targets.len()).ok_or_else(|| damaged("the table of functions"))?;
    let functions = of_chain(functions, &versions::chain(&targets, chosen));
    let exports = reader.exports().ok_or_else(|| damaged("the table of exports"))?;
    let (module, types) = binary::read_with_types(tables[MODULE], cx)?;
    let imports = reader.imports(&types).ok_or_else(|| damaged("the table of imports"))?;
    if tables[CODE].len() > header.imports_at {
        return Err(damaged("the code, which reaches into the imports,"));
    }
    Ok(Image {
        module,
        code: tables[CODE].to_vec(),
        constants: tables[CONSTANTS].to_vec(),
        imports_at: header.imports_at,
        imports,
        functions,
        target: targets.into_iter().nth(chosen).map(|target| target.name).unwrap_or_default(),
        exports,
        needs_heap: header.needs_heap,
    })
}

/// Of each function the version that comes first in a chain of targets.
fn of_chain(functions: Vec<(usize, Function)>, chain: &[usize]) -> Vec<Function> {
    let rank = |version: usize| chain.iter().position(|&target| target == version);
    let mut best: BTreeMap<String, usize> = BTreeMap::new();
    for (version, function) in &functions {
        if let Some(rank) = rank(*version) {
            let known = best.entry(function.name.clone()).or_insert(rank);
            *known = rank.min(*known);
        }
    }
    let is_best = |(version, function): &(usize, Function)| {
        rank(*version).is_some_and(|rank| best.get(&function.name) == Some(&rank))
    };
    functions.into_iter().filter(is_best).map(|(_, function)| function).collect()
}
