//! From a program's code to the bytes of an image, and from bytes to a file.
//!
//! A file is written beside its final path under a temporary name, made durable, and renamed: readers see the
//! complete old image or the complete new one, even if the writer is killed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use brolga_files::fresh;
use brolga_ir::{Arch, FuncId, binary};

use super::header::checksum_of;
use super::place::{LIMIT, Placed, place};
use super::tables::{FUNCTION_WORDS, NONE, Writer, put, row};
use super::{Function, ImageError, ImageParts, elf, exports, versions};

/// The bytes of an image.
///
/// # Errors
/// The code refers to something that images cannot contain, or is too large; exports to C are not supported
/// for the architecture.
pub fn build(parts: &ImageParts<'_>) -> Result<Vec<u8>, ImageError> {
    if parts.library.is_some() && parts.arch != Arch::X86_64 {
        return Err(ImageError::Unsupported { arch: parts.arch });
    }
    let placed = place(parts)?;
    let mut tables = Writer::default();
    let targets = versions::write(parts.targets)?;
    for (compiled, &offset) in parts.functions.iter().zip(&placed.offsets) {
        let code = compiled.function;
        let function = Function {
            name: code.name.clone(),
            offset,
            size: code.code.len() as u32,
            frame_bytes: code.frame_bytes,
            lines: code.lines.clone(),
            inlined: code.inlined.clone(),
            frame_maps: code.frame_maps.clone(),
            signature: compiled.signature.cloned(),
        };
        tables.function(&function, compiled.version);
    }
    placed.imports.iter().for_each(|symbol| tables.import(symbol));
    let entries = parts.library.map(exports::place).transpose()?;
    parts.library.iter().flat_map(|library| library.exports).for_each(|(export, _)| tables.export(export));
    name(parts, &mut tables);
    pieces(&placed, &mut tables);
    let module = binary::write_with_types(parts.module, &tables.types);
    let file = elf::write(parts, &placed, entries.as_ref(), &tables, targets.as_bytes(), &module)?;
    if file.len() > LIMIT {
        return Err(ImageError::TooLarge { bytes: file.len(), limit: LIMIT });
    }
    Ok(file)
}

/// Writes the checksums of the functions' text, and the functions that each refers to.
fn pieces(placed: &Placed<'_>, tables: &mut Writer) {
    let ends = placed.offsets.iter().skip(1).map(|&offset| offset as usize).chain([placed.tail_at]);
    let mut first = 0;
    for ((&start, end), callees) in placed.offsets.iter().zip(ends).zip(&placed.callees) {
        put(&mut tables.pieces, &[checksum_of(&[&placed.code[start as usize..end]]), first]);
        put(&mut tables.callees, callees);
        first += callees.len() as u32;
    }
    let padding = vec![0; placed.imports_at - placed.code.len()];
    put(&mut tables.pieces, &[checksum_of(&[&placed.code[placed.tail_at..], &padding]), first]);
}

/// Writes the bare names of functions, their numbers in the module, and the index by which names and bare
/// names are found.
fn name(parts: &ImageParts<'_>, tables: &mut Writer) {
    let module = parts.module;
    let ids: BTreeMap<String, FuncId> =
        module.funcs().map(|(id, func)| (func.symbol(&module.cx), id)).collect();
    let mut rows: Vec<(&str, usize, u32)> = Vec::with_capacity(parts.functions.len());
    let mut bare_rows: Vec<(String, &str, u32)> = Vec::new();
    for (number, compiled) in parts.functions.iter().enumerate() {
        let (name, number) = (compiled.function.name.as_str(), number as u32);
        let func = ids.get(name).and_then(|&id| Some((id, module.func(id)?)));
        let bare = func.map_or_else(|| name.to_owned(), |(_, func)| func.spelled_name(&module.cx));
        let [at, length] = match row(&tables.functions, number as usize) {
            // Most names begin with the bare name, whose bytes are then shared.
            Some::<[u32; FUNCTION_WORDS]>([at, ..]) if name.starts_with(&bare) => [at, bare.len() as u32],
            _ => tables.string(bare.as_bytes()),
        };
        let id = func.map_or(NONE, |(id, _)| id.as_u32());
        let has_body = func.is_some_and(|(_, func)| func.entry().is_some());
        put(&mut tables.names, &[at, length, id, u32::from(has_body)]);
        rows.push((name, compiled.version, number));
        if compiled.version == 0 && compiled.signature.is_some() {
            bare_rows.push((bare, name, number));
        }
    }
    rows.sort_unstable();
    bare_rows.sort_unstable();
    rows.iter().for_each(|&(.., row)| put(&mut tables.index, &[row]));
    bare_rows.iter().for_each(|&(.., row)| put(&mut tables.index, &[row]));
}

/// Writes an image to a file, atomically for all readers.
///
/// # Errors
/// The system refuses to write beside the file, or to rename. The old file is then unchanged.
pub fn write_file(path: &Path, image: &[u8]) -> Result<(), ImageError> {
    let name = path.display().to_string();
    let failed = |what| {
        let path = name.clone();
        move |source| ImageError::File { what, path, source }
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let Some(file_name) = path.file_name() else {
        return Err(failed("write")(io::ErrorKind::InvalidInput.into()));
    };
    let mut temporary = file_name.to_os_string();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = folder.join(temporary);
    let written = write_whole(&temporary, image).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = written {
        // It may not exist; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
        return Err(failed("write")(error));
    }
    // The rename becomes durable with its folder. Systems that cannot open folders do so by themselves.
    if let Ok(folder) = File::open(folder) {
        folder.sync_all().map_err(failed("write"))?;
    }
    Ok(())
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fresh(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
