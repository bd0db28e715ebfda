//! Lists the symbols of a dylib: their states, what they wait for, and their users.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ptr;

use brolga::session::linking::{Name, Progress, SymbolFlags};

use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced, for_c};
use crate::out::{give, given, place};

/// How far a symbol has come.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaProgress {
    /// It is defined, and nobody has looked it up.
    Defined = 0,
    /// It is being made.
    Materializing = 1,
    /// It has an address.
    Resolved = 2,
    /// Its memory is final; something that it needs is not ready.
    Emitted = 3,
    /// It may be used.
    Ready = 4,
    /// It could not be made.
    Failed = 5,
}

/// A symbol of a list.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BrolgaSymbol {
    /// Its name, valid as long as the list: of a function with its types (`fib(Int64)`), of a C symbol; of declarations with what they are (`count#global`, `Point#type`).
    pub name: *const c_char,
    /// A `BrolgaProgress`.
    pub progress: u32,
    /// Whether dylibs that are linked to this one see it.
    pub is_exported: bool,
    /// Whether another definition of its name overrides it until it is looked up first.
    pub is_weak: bool,
    /// Whether the host defined its address, and the session has no code of it.
    pub is_absolute: bool,
}

/// The symbols of a dylib at one time, in the order of their names.
pub struct BrolgaSymbols {
    symbols: Vec<Listed>,
}

/// A symbol with its texts.
struct Listed {
    name: CString,
    progress: BrolgaProgress,
    flags: SymbolFlags,
    waits_for: Vec<CString>,
    users: Vec<CString>,
}

fn texts(names: &[Name]) -> Vec<CString> {
    names.iter().map(|name| for_c(&name.to_string())).collect()
}

fn text_at(texts: &[CString], index: usize) -> *const c_char {
    texts.get(index).map_or(ptr::null(), |text| text.as_ptr())
}

impl BrolgaProgress {
    fn of(progress: Progress) -> BrolgaProgress {
        match progress {
            Progress::Defined => BrolgaProgress::Defined,
            Progress::Materializing => BrolgaProgress::Materializing,
            Progress::Resolved => BrolgaProgress::Resolved,
            Progress::Emitted => BrolgaProgress::Emitted,
            Progress::Ready => BrolgaProgress::Ready,
            Progress::Failed => BrolgaProgress::Failed,
        }
    }
}

/// Lists the symbols that are defined in a dylib. Starts nothing. The caller frees the list with `brolga_symbols_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_dylib_symbols(
    dylib: Option<&BrolgaDylib>,
    symbols: Option<&mut MaybeUninit<*mut BrolgaSymbols>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (dylib, place) = (given(dylib, "dylib")?, place(symbols, "symbols")?);
        let listed = dylib.dylib.symbols()?.into_iter().map(|facts| Listed {
            name: for_c(&facts.text),
            progress: BrolgaProgress::of(facts.progress),
            flags: facts.flags,
            waits_for: texts(&facts.waits_for),
            users: texts(&facts.users),
        });
        give(place, BrolgaSymbols { symbols: listed.collect() });
        Ok(())
    })
}

/// The number of symbols in a list; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_symbols_count(symbols: Option<&BrolgaSymbols>) -> usize {
    symbols.map_or(0, |symbols| symbols.symbols.len())
}

/// Returns a symbol of a list by its number from 0.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_symbols_get(
    symbols: Option<&BrolgaSymbols>,
    index: usize,
    symbol: Option<&mut MaybeUninit<BrolgaSymbol>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (symbols, place) = (&given(symbols, "symbols")?.symbols, place(symbol, "symbol")?);
        let none = || {
            let text = format!("there is no symbol {index}: the list has {}", symbols.len());
            BrolgaError::new(BrolgaCode::Argument, text)
        };
        let Listed { name, progress, flags, .. } = symbols.get(index).ok_or_else(none)?;
        place.write(BrolgaSymbol {
            name: name.as_ptr(),
            progress: *progress as u32,
            is_exported: flags.has(SymbolFlags::EXPORTED),
            is_weak: flags.has(SymbolFlags::WEAK),
            is_absolute: flags.has(SymbolFlags::ABSOLUTE),
        });
        Ok(())
    })
}

/// A symbol that the one of this number waits for, with its dylib, by its own number from 0; valid as long as the list. Null if there are not as many.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_symbols_waits_for(
    symbols: Option<&BrolgaSymbols>,
    index: usize,
    number: usize,
) -> *const c_char {
    let listed = symbols.and_then(|symbols| symbols.symbols.get(index));
    listed.map_or(ptr::null(), |listed| text_at(&listed.waits_for, number))
}

/// A symbol that uses the one of this number, with its dylib, by its own number from 0; valid as long as the list. Null if there are not as many.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_symbols_user(
    symbols: Option<&BrolgaSymbols>,
    index: usize,
    number: usize,
) -> *const c_char {
    let listed = symbols.and_then(|symbols| symbols.symbols.get(index));
    listed.map_or(ptr::null(), |listed| text_at(&listed.users, number))
}

/// Frees a list of symbols. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_symbols_free(symbols: Option<Box<BrolgaSymbols>>) {
    drop(symbols);
}
