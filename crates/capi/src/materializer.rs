//! C symbols on demand: names now, addresses when one of them is first needed.
//!
//! ```text
//!   promise_c_symbols(a, b) ── code needs a ──► materialize ── BrolgaResponsibility: a, b ── resolve, need ── emit ──► a and b are ready, if all that they need is
//!                                                                  ├ delegate(b): another responsibility                 └ fail: look-ups get the error
//!                                                                  └ hand_back(b): promised again
//! ```
//!
//! The responsibility is an obligation: C ends it by `emit` or `fail`, at once or later, on any thread. Until then, look-ups that need one of its symbols wait.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use brolga::SessionError;
use brolga::session::linking::{
    Dependence, MaterializationUnit, Need, Responsibility, Symbol, SymbolFlags, SymbolRef, Until, Want,
};
use brolga::session::{Native, WeakDylib};

use crate::callback::{BrolgaFreeFn, Data};
use crate::dylib::BrolgaDylib;
use crate::error::{BrolgaCode, BrolgaError, fenced, for_c};
use crate::out::{give, given, place};
use crate::runtime::BrolgaRuntime;
use crate::text::{name, names};

/// The obligation to define the addresses of C symbols. It ends by `brolga_responsibility_emit` or `brolga_responsibility_fail`, which free it.
pub struct BrolgaResponsibility {
    responsibility: Responsibility<Native>,
    names: Vec<CString>,
    /// The symbols that its symbols need.
    needs: Mutex<Vec<SymbolRef>>,
    dylib: WeakDylib,
    runtime: BrolgaRuntime,
}

/// Sets the addresses of C symbols: `responsibility` belongs to the function, which ends it now, or keeps it and ends it later, on any thread. `dylib` is the one that has the symbols, and lent for the call.
pub type BrolgaMaterializeFn = Option<
    unsafe extern "C" fn(
        data: *mut c_void,
        dylib: *const BrolgaDylib,
        responsibility: *mut BrolgaResponsibility,
    ),
>;

type MaterializeFn = unsafe extern "C" fn(*mut c_void, *const BrolgaDylib, *mut BrolgaResponsibility);

/// C symbols that a C function materializes.
struct Promised {
    /// Held, to keep the names.
    symbols: Vec<SymbolRef>,
    materialize: MaterializeFn,
    data: Arc<Data>,
    dylib: WeakDylib,
    runtime: BrolgaRuntime,
}

impl MaterializationUnit<Native> for Promised {
    fn symbols(&self) -> Vec<(Symbol, SymbolFlags)> {
        self.symbols.iter().map(|held| (held.symbol(), SymbolFlags::EXPORTED)).collect()
    }

    fn materialize(self: Box<Self>, responsibility: Responsibility<Native>) {
        let dylib = match self.dylib.upgrade() {
            Ok(dylib) => BrolgaDylib { dylib, runtime: self.runtime.clone() },
            Err(error) => return responsibility.fail(error),
        };
        // The unit was removed meanwhile: there is nothing to materialize.
        let Ok(made) = BrolgaResponsibility::new(responsibility, self.dylib, &self.runtime) else { return };
        let made = Box::into_raw(Box::new(made));
        // SAFETY: by the contract of `brolga_dylib_promise_c_symbols`: the function owns the responsibility from here on.
        unsafe { (self.materialize)(self.data.pointer(), &raw const dylib, made) };
    }
}

impl BrolgaResponsibility {
    fn new(
        responsibility: Responsibility<Native>,
        dylib: WeakDylib,
        runtime: &BrolgaRuntime,
    ) -> Result<BrolgaResponsibility, BrolgaError> {
        let symbols = responsibility.symbols().map_err(SessionError::from)?;
        let all = responsibility.session().names();
        let names = symbols.into_iter().map(|(symbol, _)| for_c(&all.text(symbol))).collect();
        let (needs, runtime) = (Mutex::default(), runtime.clone());
        Ok(BrolgaResponsibility { responsibility, names, needs, dylib, runtime })
    }

    /// Its symbol of this name.
    fn own(&self, name: &str) -> Result<Symbol, BrolgaError> {
        let symbols = self.responsibility.symbols().map_err(SessionError::from)?;
        let all = self.responsibility.session().names();
        let found = all.find(name).filter(|found| symbols.iter().any(|(symbol, _)| symbol == found));
        found.ok_or_else(|| {
            let text = format!("`{name}` is not a symbol of this responsibility");
            BrolgaError::new(BrolgaCode::Argument, text)
        })
    }

    fn all_own(&self, names: &[&str]) -> Result<Vec<Symbol>, BrolgaError> {
        names.iter().map(|name| self.own(name)).collect()
    }
}

/// Names as held symbols of a dylib's session.
fn held(dylib: &BrolgaDylib, names: &[&str]) -> Vec<SymbolRef> {
    let linking = dylib.dylib.session().linking();
    names.iter().map(|name| linking.symbol(name)).collect()
}

/// Promises C symbols, all or none: `materialize` defines their addresses when one of them is first needed. `data` is handed to `materialize`, and to `free`, if that is not null, when it is not called
/// any more, also when this fails. Needs open doors.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `names`, or it is null. `materialize` and `free` are what `BrolgaMaterializeFn` and `BrolgaFreeFn` say, may be called on
/// any thread, and return: no exception of C++ and no `longjmp` leaves them.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_dylib_promise_c_symbols(
    dylib: Option<&BrolgaDylib>,
    names: *const *const c_char,
    count: usize,
    materialize: BrolgaMaterializeFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Arc::new(Data::new(data, free));
        let (dylib, materialize) = (given(dylib, "dylib")?, given(materialize, "materialize")?);
        // SAFETY: by the contract.
        let names = unsafe { self::names(names, count, "names") }?;
        if names.is_empty() {
            return Err(BrolgaError::new(BrolgaCode::Argument, "a promise is of one symbol at least"));
        }
        let (symbols, runtime) = (held(dylib, &names), dylib.runtime.clone());
        let weak = dylib.dylib.downgrade();
        let promised = Promised { symbols, materialize, data, dylib: weak, runtime };
        Ok(dylib.dylib.promise_c_symbols(Box::new(promised))?)
    })
}

/// The number of symbols of a responsibility when it was made; 0 for null.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_responsibility_count(responsibility: Option<&BrolgaResponsibility>) -> usize {
    responsibility.map_or(0, |responsibility| responsibility.names.len())
}

/// A symbol of a responsibility, by its number from 0; valid as long as that. Null if there are not as many.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_responsibility_name(
    responsibility: Option<&BrolgaResponsibility>,
    index: usize,
) -> *const c_char {
    let text = responsibility.and_then(|responsibility| responsibility.names.get(index));
    text.map_or(ptr::null(), |text| text.as_ptr())
}

/// Says whether a look-up waits for a symbol of a responsibility now.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_responsibility_is_requested(
    responsibility: Option<&BrolgaResponsibility>,
    name: *const c_char,
    is_requested: Option<&mut MaybeUninit<bool>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (responsibility, place) =
            (given(responsibility, "responsibility")?, place(is_requested, "is_requested")?);
        // SAFETY: by the contract.
        let symbol = responsibility.own(unsafe { self::name(name) }?)?;
        let requested = responsibility.responsibility.requested().map_err(SessionError::from)?;
        place.write(requested.contains(&symbol));
        Ok(())
    })
}

/// Sets the address of a symbol. Symbols that need each other can be linked from then on; look-ups are answered when they are emitted.
///
/// # Safety
///
/// As `brolga_dylib_define_c_symbol`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_responsibility_resolve(
    responsibility: Option<&BrolgaResponsibility>,
    name: *const c_char,
    address: *const c_void,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let responsibility = given(responsibility, "responsibility")?;
        // SAFETY: by the contract.
        let symbol = responsibility.own(unsafe { self::name(name) }?)?;
        given((!address.is_null()).then_some(()), "address")?;
        let resolved = responsibility.responsibility.resolve_some([(symbol, address.expose_provenance())]);
        Ok(resolved.map_err(SessionError::from)?)
    })
}

/// Says that the symbols of a responsibility need a C symbol that their dylib sees: they are not ready before it is, fail if it fails, and are among its users when it is removed. It is
/// looked up when they are emitted.
///
/// # Safety
///
/// `name` is null or ends in a zero byte.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_responsibility_need(
    responsibility: Option<&BrolgaResponsibility>,
    name: *const c_char,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let responsibility = given(responsibility, "responsibility")?;
        // SAFETY: by the contract.
        let symbol = responsibility.responsibility.session().symbol(unsafe { self::name(name) }?);
        responsibility.needs.lock().unwrap_or_else(PoisonError::into_inner).push(symbol);
        Ok(())
    })
}

/// Splits symbols off into a responsibility of their own.
///
/// # Safety
///
/// There are `count` texts that end in a zero byte at `names`, or it is null.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_responsibility_delegate(
    responsibility: Option<&BrolgaResponsibility>,
    names: *const *const c_char,
    count: usize,
    other: Option<&mut MaybeUninit<*mut BrolgaResponsibility>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (of, place) = (given(responsibility, "responsibility")?, place(other, "other")?);
        // SAFETY: by the contract.
        let symbols = of.all_own(&unsafe { self::names(names, count, "names") }?)?;
        let other = of.responsibility.delegate(symbols).map_err(SessionError::from)?;
        give(place, BrolgaResponsibility::new(other, of.dylib.clone(), &of.runtime)?);
        Ok(())
    })
}

/// Hands symbols back: `materialize` makes them, at once if a look-up waits for one of them, else at the next one. `data` and `free` are as for `brolga_dylib_promise_c_symbols`.
///
/// # Safety
///
/// As `brolga_dylib_promise_c_symbols`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_responsibility_hand_back(
    responsibility: Option<&BrolgaResponsibility>,
    names: *const *const c_char,
    count: usize,
    materialize: BrolgaMaterializeFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Arc::new(Data::new(data, free));
        let of = given(responsibility, "responsibility")?;
        let materialize = given(materialize, "materialize")?;
        // SAFETY: by the contract.
        let names = unsafe { self::names(names, count, "names") }?;
        of.all_own(&names)?;
        let linking = of.responsibility.session();
        let symbols = names.iter().map(|name| linking.symbol(name)).collect();
        let (dylib, runtime) = (of.dylib.clone(), of.runtime.clone());
        let again = Box::new(Promised { symbols, materialize, data, dylib, runtime });
        Ok(of.responsibility.hand_back(again).map_err(SessionError::from)?)
    })
}

/// Ends a responsibility: its symbols, all of which have addresses, are ready when what they need is. If that cannot be, or one has no address, they fail. Frees `responsibility`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_responsibility_emit(
    responsibility: Option<Box<BrolgaResponsibility>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let BrolgaResponsibility { responsibility, needs, .. } = *given(responsibility, "responsibility")?;
        let needs = needs.into_inner().unwrap_or_else(PoisonError::into_inner);
        if needs.is_empty() {
            let resolved = responsibility.resolve([]).map_err(SessionError::from)?;
            return Ok(resolved.emit([]).map_err(SessionError::from)?);
        }
        let want = |held: &SymbolRef| Want { symbol: held.symbol(), need: Need::Required, at: None };
        let wants = needs.iter().map(want).collect();
        responsibility.lookup_then(wants, Until::Resolved, move |responsibility, found| {
            // Refusals fail the symbols, with the reason.
            if let Ok(resolved) = responsibility.resolve([]) {
                let _ = resolved.emit(found.into_iter().map(Dependence::from));
            }
        });
        Ok(())
    })
}

/// Ends a responsibility: its symbols fail with this error, which belongs to the library afterwards; null is an error without a message. Frees `responsibility`. Null is nothing.
#[unsafe(no_mangle)]
pub extern "C" fn brolga_responsibility_fail(
    responsibility: Option<Box<BrolgaResponsibility>>,
    error: Option<Box<BrolgaError>>,
) {
    if let Some(responsibility) = responsibility {
        let unsaid = || Box::new(BrolgaError::new(BrolgaCode::Lookup, "a C symbol could not be made"));
        responsibility.responsibility.fail(error.unwrap_or_else(unsaid).text());
    }
}
