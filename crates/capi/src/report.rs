//! Reports of a session to its host: failures that no look-up waits for, symbol events, a text dump.

use std::ffi::{CString, c_char, c_void};
use std::mem::MaybeUninit;

use brolga::SessionError;
use brolga::session::linking::{Happened, Observed};

use crate::callback::{BrolgaFreeFn, Data};
use crate::error::{BrolgaError, fenced, for_c};
use crate::out::{given, place};
use crate::session::BrolgaSession;
use crate::text::give_text;

/// Hears of a failure. The error is lent for the call. Called on the thread on which the failure happens, without a lock, and by several threads at the same time.
pub type BrolgaReportFn = Option<unsafe extern "C" fn(data: *mut c_void, error: *const BrolgaError)>;

/// Hears of events, in their order. They, and their texts, are lent for the call. Called on the threads on which they happen, without a lock, and by several threads at
/// the same time: events of several calls are in the order of their numbers.
pub type BrolgaObserveFn =
    Option<unsafe extern "C" fn(data: *mut c_void, events: *const BrolgaEvent, count: usize)>;

/// An event of a symbol.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaHappened {
    /// It was defined.
    Defined = 0,
    /// It begins to be made.
    Started = 1,
    /// It has an address.
    Resolved = 2,
    /// Its memory is final.
    Emitted = 3,
    /// It may be used.
    Ready = 4,
    /// It could not be made.
    Failed = 5,
    /// Its name does not lead to this definition any more: it was removed, replaced or overridden.
    Removed = 6,
    /// Something that this version of the header does not have.
    Other = 7,
}

/// An event of a symbol.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BrolgaEvent {
    /// Its number among the events of the session.
    pub number: u64,
    /// The name of the dylib.
    pub dylib: *const c_char,
    /// The symbol: of a function with its types.
    pub symbol: *const c_char,
    /// A `BrolgaHappened`.
    pub happened: u32,
    /// Whether it concerns a part of the symbol, such as the body of a function.
    pub is_part: bool,
}

fn happened(happened: &Happened) -> BrolgaHappened {
    match happened {
        Happened::Defined => BrolgaHappened::Defined,
        Happened::Started => BrolgaHappened::Started,
        Happened::Resolved => BrolgaHappened::Resolved,
        Happened::Emitted { .. } => BrolgaHappened::Emitted,
        Happened::Ready => BrolgaHappened::Ready,
        Happened::Failed(_) => BrolgaHappened::Failed,
        Happened::Removed => BrolgaHappened::Removed,
        _ => BrolgaHappened::Other,
    }
}

/// Has `report` called with each failure that no look-up was waiting for when it happened. Later look-ups get the failure too. A reporter that was set before is replaced; null reports
/// nothing. `data` is handed to `report`, and to `free`, if that is not null, when it is not called any more, also when this fails.
///
/// # Safety
///
/// `report` and `free` are what `BrolgaReportFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_report_failures(
    session: Option<&BrolgaSession>,
    report: BrolgaReportFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let session = &given(session, "session")?.session;
        session.report_failures(move |error: &SessionError| {
            if let Some(report) = report {
                let error = BrolgaError::from(error.clone());
                // SAFETY: by the contract.
                unsafe { report(data.pointer(), &raw const error) };
            }
        });
        Ok(())
    })
}

/// Has `observe` called with what happens to symbols from now on. An observer that was set before is replaced; null hears nothing. `data` is handed to `observe`, and to `free`, if that is not null,
/// when it is not called any more, also when this fails.
///
/// # Safety
///
/// `observe` and `free` are what `BrolgaObserveFn` and `BrolgaFreeFn` say, may be called on any thread, and return.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_session_observe(
    session: Option<&BrolgaSession>,
    observe: BrolgaObserveFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let session = &given(session, "session")?.session;
        session.observe(move |observed: &[Observed]| {
            let Some(observe) = observe else { return };
            let text = |event: &Observed| (for_c(&event.name.dylib), for_c(&event.name.symbol));
            let texts: Vec<(CString, CString)> = observed.iter().map(text).collect();
            let event = |(event, (dylib, symbol)): (&Observed, &(CString, CString))| BrolgaEvent {
                number: event.number,
                dylib: dylib.as_ptr(),
                symbol: symbol.as_ptr(),
                happened: happened(&event.happened) as u32,
                is_part: event.is_part,
            };
            let events: Vec<BrolgaEvent> = observed.iter().zip(&texts).map(event).collect();
            // SAFETY: by the contract.
            unsafe { observe(data.pointer(), events.as_ptr(), events.len()) };
        });
        Ok(())
    })
}

/// Returns a text with all dylibs, their link orders, re-exports and symbols, how far each symbol has come, what it waits for and who uses it. It is for people: its form may change.
/// The caller frees it with `brolga_text_free`.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn brolga_session_dump(
    session: Option<&BrolgaSession>,
    text: Option<&mut MaybeUninit<*mut c_char>>,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let (session, text) = (given(session, "session")?, place(text, "text")?);
        give_text(text, &session.session.dump());
        Ok(())
    })
}
