//! Relocatable object files.
//!
//! ```text
//!   CompiledFunction ──┐                .text      one symbol for each function, under its own name
//!   constant bytes ────┴─► object file  .rodata    constant bytes, strings
//!                                       undefined  everything else
//! ```
//!
//! The format is the host's (ELF, Mach-O or COFF). The code has to be position-independent
//! ([`TargetIsa::position_independent`]). A symbol that the file does not define becomes an undefined symbol,
//! to be resolved by the system linker:
//!
//! | symbol | name in the file |
//! |---|---|
//! | compiled function | its deterministic name: `fib(Int64)` |
//! | routine of the run time, C function | its own name |
//! | record of a symbol constant | `brolga.symbol.` and the text: records are unique in a process, so the run time has them |
//! | description of the type `String` | [`STRING_TYPE`] |
//!
//! String constants have no identity, so their records are written into the file as local data. A record has
//! the layout of the heap's objects (`runtime/src/records.rs`), because code may hold it as a root across a
//! safepoint:
//!
//! ```text
//!                -8  tag: address of the type's description + TAG_PERMANENT, which the loader fills in
//!   reference ─► +0  length in bytes
//!                +8  the text, then a NUL
//! ```
//!
//! Names are the same in every process and everything is in the order of the input, so equal input produces
//! equal bytes. Cost: linear in the code.
//!
//! Not done: unwind tables, line tables, images. Types, singletons, boxes and global variables belong to a
//! run time: code that refers to one is refused, by its name.

use std::collections::BTreeMap;

use brolga_codegen::compiled::{CompiledFunction, RelocTarget, Symbol};
use brolga_codegen::isa::{TargetIsa, Tier};
use cranelift_module::{
    DataDescription, DataId, FuncId, Linkage, Module, ModuleError, ModuleReloc, ModuleRelocTarget,
    default_libcall_names,
};
use cranelift_object::{ObjectBuilder, ObjectModule};

/// Why no object file was made.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectError {
    /// A function or data object is defined twice. The caller is at fault.
    #[error("`{name}` is defined twice")]
    Duplicate { name: String },
    /// A name cannot be represented in a symbol table.
    #[error("the name {name:?} holds a NUL byte, which no symbol table can hold")]
    Name { name: String },
    /// A relocation names a symbol that the function does not list. The caller is at fault.
    #[error("`{name}` refers to a symbol that it does not list")]
    Malformed {
        /// The function.
        name: String,
    },
    /// The code refers to something that only a run time can provide, and an object file has no loader that
    /// would request it.
    #[error("an object file cannot refer to {symbol} yet")]
    NeedsRuntime { symbol: String },
    /// The host has no object format, or the format cannot represent the code.
    #[error("cannot write an object file: {reason}")]
    Format {
        /// The format writer's message.
        reason: String,
    },
}

/// The content of one object file.
#[derive(Clone, Copy, Debug)]
pub struct ObjectUnit<'a> {
    /// The name of the file's source, for its symbol table.
    pub name: &'a str,
    pub functions: &'a [CompiledFunction],
    /// Constant bytes under their symbols, aligned to 16 bytes.
    pub data: &'a [(Symbol, Box<[u8]>)],
}

/// The symbol of a run time's description of the type `String`; the tags of string constants refer to it.
pub const STRING_TYPE: &str = "brolga.type.String";

/// The tag bit that makes the collector leave the object alone; `brolga_runtime::heap::TAG_PERMANENT`.
const TAG_PERMANENT: i64 = 2;

/// The size in bytes of the tag, which precedes the object.
const TAG_BYTES: u64 = 8;

/// The alignment of constant bytes: the alignment of the largest scalar.
const DATA_ALIGN: u64 = 16;

/// The bytes of an object file with the contents of `unit`.
pub fn emit_object(unit: &ObjectUnit<'_>, isa: &TargetIsa) -> Result<Vec<u8>, ObjectError> {
    let target = isa.for_tier(Tier::Optimised).clone();
    let builder = ObjectBuilder::new(target, unit.name.as_bytes().to_vec(), default_libcall_names());
    let module = ObjectModule::new(builder.map_err(format)?);
    let mut writer = Writer { module, known: BTreeMap::new(), records: Vec::new() };
    let mut functions = Vec::with_capacity(unit.functions.len());
    for function in unit.functions {
        functions.push(writer.declare_function(&function.name, Linkage::Export)?);
    }
    for (symbol, bytes) in unit.data {
        writer.define_data(symbol, bytes)?;
    }
    for (function, &id) in unit.functions.iter().zip(&functions) {
        writer.define_function(function, id)?;
    }
    let Writer { module, records, .. } = writer;
    let mut product = module.finish();
    for record in records {
        // A reference may go through a table of addresses, where no offset can be added, so the symbol itself
        // is after the tag.
        let symbol = product.data_symbol(record);
        let symbol = product.object.symbol_mut(symbol);
        symbol.value += TAG_BYTES;
        symbol.size -= TAG_BYTES;
    }
    product.emit().map_err(|e| ObjectError::Format { reason: e.to_string() })
}

struct Writer {
    module: ObjectModule,
    known: BTreeMap<Symbol, Known>,
    /// The data objects that begin with a tag.
    records: Vec<DataId>,
}

/// The form of a symbol in the module.
#[derive(Clone, Copy)]
enum Known {
    Function(FuncId),
    Data(DataId),
}

impl Writer {
    fn declare_function(&mut self, name: &str, linkage: Linkage) -> Result<FuncId, ObjectError> {
        let symbol = Symbol::Function(name.to_owned());
        if self.known.contains_key(&symbol) {
            return Err(ObjectError::Duplicate { name: name.to_owned() });
        }
        let id = self.import(name, linkage)?;
        self.known.insert(symbol, Known::Function(id));
        Ok(id)
    }

    fn import(&mut self, name: &str, linkage: Linkage) -> Result<FuncId, ObjectError> {
        check_name(name)?;
        // Only code that the module compiles itself would need the signature, and there is none.
        let signature = self.module.make_signature();
        self.module.declare_function(name, linkage, &signature).map_err(format)
    }

    fn define_data(&mut self, symbol: &Symbol, bytes: &[u8]) -> Result<(), ObjectError> {
        if self.known.contains_key(symbol) {
            return Err(ObjectError::Duplicate { name: symbol.to_string() });
        }
        let id = self.module.declare_anonymous_data(false, false).map_err(format)?;
        let mut data = DataDescription::new();
        data.define(bytes.into());
        data.set_align(DATA_ALIGN);
        self.module.define_data(id, &data).map_err(format)?;
        self.known.insert(symbol.clone(), Known::Data(id));
        Ok(())
    }

    /// Defines the record of a string constant, with its tag.
    fn define_record(&mut self, text: &[u8]) -> Result<Known, ObjectError> {
        let string = self.import_data(STRING_TYPE)?;
        let id = self.module.declare_anonymous_data(false, false).map_err(format)?;
        let mut bytes = vec![0; TAG_BYTES as usize];
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text);
        bytes.push(0);
        let mut data = DataDescription::new();
        data.define(bytes.into());
        data.set_align(DATA_ALIGN);
        let string = self.module.declare_data_in_data(string, &mut data);
        data.write_data_addr(0, string, TAG_PERMANENT);
        self.module.define_data(id, &data).map_err(format)?;
        self.records.push(id);
        Ok(Known::Data(id))
    }

    fn define_function(&mut self, function: &CompiledFunction, id: FuncId) -> Result<(), ObjectError> {
        let mut relocs = Vec::with_capacity(function.relocs.len());
        for reloc in &function.relocs {
            let name = match reloc.target {
                RelocTarget::Offset(offset) => ModuleRelocTarget::FunctionOffset(id, offset),
                RelocTarget::Symbol(index) => {
                    let malformed = || ObjectError::Malformed { name: function.name.clone() };
                    let symbol = function.symbols.get(index as usize).ok_or_else(malformed)?;
                    match self.find(symbol)? {
                        Known::Function(id) => id.into(),
                        Known::Data(id) => id.into(),
                    }
                }
            };
            relocs.push(ModuleReloc {
                offset: reloc.offset,
                kind: reloc.kind.clif(),
                name,
                addend: reloc.addend,
            });
        }
        self.module.define_function_bytes(id, function.align.into(), &function.code, &relocs).map_err(format)
    }

    fn find(&mut self, symbol: &Symbol) -> Result<Known, ObjectError> {
        if let Some(&known) = self.known.get(symbol) {
            return Ok(known);
        }
        let known = match symbol {
            Symbol::Function(name) | Symbol::Routine(name) | Symbol::Foreign { name, .. } => {
                Known::Function(self.import(name, Linkage::Import)?)
            }
            Symbol::Data(name) => Known::Data(self.import_data(name)?),
            Symbol::Global(_)
            | Symbol::Module(_)
            | Symbol::Type(_)
            | Symbol::Instance(_)
            | Symbol::Boxed { .. }
            | Symbol::IndirectCell(_)
            | Symbol::Counter(_)
            | Symbol::Cells
            | Symbol::Methods => {
                return Err(ObjectError::NeedsRuntime { symbol: symbol.to_string() });
            }
            Symbol::Interned(text) => Known::Data(self.import_data(&format!("brolga.symbol.{text}"))?),
            Symbol::Text(text) => self.define_record(text)?,
        };
        self.known.insert(symbol.clone(), known);
        Ok(known)
    }

    fn import_data(&mut self, name: &str) -> Result<DataId, ObjectError> {
        check_name(name)?;
        self.module.declare_data(name, Linkage::Import, false, false).map_err(format)
    }
}

fn check_name(name: &str) -> Result<(), ObjectError> {
    if name.contains('\0') { Err(ObjectError::Name { name: name.to_owned() }) } else { Ok(()) }
}

fn format(error: ModuleError) -> ObjectError {
    ObjectError::Format { reason: error.to_string() }
}
