//! Functions, lines and variables of loaded code for debuggers, as DWARF 4.
//!
//! ```text
//!   compilation unit    one for each unit: name of the source, addresses
//!     base types        types of its variables
//!     subprogram        one for each function: its name, addresses, the frame base
//!       variable        its name, its type, a list of places by ranges of code
//!   line program        one sequence for each function that has lines
//! ```
//!
//! Compiled code keeps frame pointers, so the frame base is the canonical frame address by the frame pointer, and there is no frame information.
//!
//! Not done: scopes of variables within a function; the fields of objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_codegen::compiled::{Shown, VariablePlace};
use brolga_codegen::origin::Origin;
use gimli::write::{
    Address, AttributeValue, Dwarf, EndianVec, Error, Expression, LineProgram, LineString, Location,
    LocationList, Sections, Unit, UnitEntryId,
};
use gimli::{
    DW_AT_byte_size, DW_AT_encoding, DW_AT_external, DW_AT_frame_base, DW_AT_high_pc, DW_AT_language,
    DW_AT_location, DW_AT_low_pc, DW_AT_name, DW_AT_type, DW_ATE_address, DW_ATE_boolean, DW_ATE_float,
    DW_ATE_signed, DW_ATE_unsigned, DW_LANG_C, DW_TAG_base_type, DW_TAG_subprogram, DW_TAG_variable,
    Encoding, Format, LineEncoding, Register, RunTimeEndian,
};

use crate::debug::code_map::{CodeFunction, CodeUnit};

/// DWARF's number of the frame pointer.
const FRAME_POINTER: Register = Register(if cfg!(target_arch = "x86_64") { 6 } else { 29 });

const ENCODING: Encoding = Encoding { format: Format::Dwarf32, version: 4, address_size: 8 };

/// The sections about these units, by name; `source` is the file of functions that do not record theirs.
///
/// # Errors
/// The data does not fit the format: a defect, which leaves debuggers with symbols alone.
pub(crate) fn sections(units: &[Arc<CodeUnit>], source: &str) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut dwarf = Dwarf::new();
    for unit in units {
        dwarf.units.add(compilation_unit(unit, source));
    }
    let endian = if cfg!(target_endian = "little") { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut sections = Sections::new(EndianVec::new(endian));
    dwarf.write(&mut sections)?;
    let mut written = Vec::new();
    sections.for_each(|id, data| {
        if !data.slice().is_empty() {
            written.push((id.name(), data.slice().to_vec()));
        }
        Ok::<(), Error>(())
    })?;
    Ok(written)
}

/// Bytes of a name: without zeros, and not empty.
fn text(name: &str) -> Vec<u8> {
    let bytes: Vec<u8> = name.bytes().filter(|byte| *byte != 0).collect();
    if bytes.is_empty() { b"?".to_vec() } else { bytes }
}

fn compilation_unit(unit: &CodeUnit, source: &str) -> Unit {
    let mut lines = LineProgram::new(
        ENCODING,
        LineEncoding::default(),
        LineString::String(b".".to_vec()),
        None,
        LineString::String(text(source)),
        None,
    );
    for function in unit.functions().filter(|function| !function.lines().is_empty()) {
        add_lines(&mut lines, function, source);
    }
    let mut described = Unit::new(ENCODING, lines);
    let addresses = unit.addresses();
    let root = described.root();
    let entry = described.get_mut(root);
    entry.set(DW_AT_name, AttributeValue::String(text(source)));
    // Debuggers take names of C as they are.
    entry.set(DW_AT_language, AttributeValue::Language(DW_LANG_C));
    entry.set(DW_AT_low_pc, AttributeValue::Address(Address::Constant(addresses.start as u64)));
    entry.set(DW_AT_high_pc, AttributeValue::Udata(addresses.len() as u64));
    let mut types = BTreeMap::new();
    for function in unit.functions() {
        add_function(&mut described, function, &mut types);
    }
    described
}

fn add_lines(lines: &mut LineProgram, function: CodeFunction<'_>, source: &str) {
    let file = LineString::String(text(function.file().unwrap_or(source)));
    let file = lines.add_file(file, lines.default_directory(), None);
    lines.begin_sequence(Some(Address::Constant(function.address() as u64)));
    for &(offset, Origin { at: place, .. }) in function.lines() {
        let row = lines.row();
        (row.address_offset, row.file) = (offset.into(), file);
        // 0 means "unknown" in both.
        (row.line, row.column) = (place.line().unwrap_or(0).into(), place.column().unwrap_or(0).into());
        lines.generate_row();
    }
    lines.end_sequence(function.size() as u64);
}

fn add_function(unit: &mut Unit, function: CodeFunction<'_>, types: &mut BTreeMap<String, UnitEntryId>) {
    let root = unit.root();
    let start = Address::Constant(function.address() as u64);
    let own = unit.add(root, DW_TAG_subprogram);
    let entry = unit.get_mut(own);
    entry.set(DW_AT_name, AttributeValue::String(text(function.name())));
    entry.set(DW_AT_low_pc, AttributeValue::Address(start));
    entry.set(DW_AT_high_pc, AttributeValue::Udata(function.size() as u64));
    entry.set(DW_AT_external, AttributeValue::Flag(true));
    let mut base = Expression::new();
    // The saved frame pointer and the return address are between it and the canonical frame address.
    base.op_breg(FRAME_POINTER, 16);
    entry.set(DW_AT_frame_base, AttributeValue::Exprloc(base));
    for variable in function.variables() {
        let (encoding, bytes) = match variable.shown {
            Shown::Signed(bytes) => (DW_ATE_signed, bytes),
            Shown::Unsigned(bytes) => (DW_ATE_unsigned, bytes),
            Shown::Float(bytes) => (DW_ATE_float, bytes),
            Shown::Bool => (DW_ATE_boolean, 1),
            Shown::Address => (DW_ATE_address, 8),
        };
        let ty = *types.entry(variable.ty.clone()).or_insert_with(|| {
            let ty = unit.add(root, DW_TAG_base_type);
            let entry = unit.get_mut(ty);
            entry.set(DW_AT_name, AttributeValue::String(text(&variable.ty)));
            entry.set(DW_AT_encoding, AttributeValue::Encoding(encoding));
            entry.set(DW_AT_byte_size, AttributeValue::Udata(bytes.into()));
            ty
        });
        let mut places = vec![Location::BaseAddress { address: start }];
        places.extend(variable.places.iter().filter(|(begin, end, _)| begin < end).map(
            |&(begin, end, place)| {
                let mut data = Expression::new();
                match place {
                    VariablePlace::Register(register) => data.op_reg(Register(register)),
                    VariablePlace::Frame(offset) => data.op_fbreg(offset),
                }
                Location::OffsetPair { begin: begin.into(), end: end.into(), data }
            },
        ));
        let places = unit.locations.add(LocationList(places));
        let entry = unit.add(own, DW_TAG_variable);
        let entry = unit.get_mut(entry);
        entry.set(DW_AT_name, AttributeValue::String(text(&variable.name)));
        entry.set(DW_AT_type, AttributeValue::UnitRef(ty));
        entry.set(DW_AT_location, AttributeValue::LocationListRef(places));
    }
}
