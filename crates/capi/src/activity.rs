//! A listener of C for the activities of a run time: compiling, publishing, tiers, collections. Symbols of sessions are observed by `report.rs`.

use std::ffi::{CString, c_char, c_void};
use std::ptr;
use std::sync::Arc;

use brolga::observe::events::{Event, EventListener};

use crate::callback::{BrolgaFreeFn, Data};
use crate::error::{BrolgaCode, BrolgaError, fenced, for_c};
use crate::out::given;
use crate::runtime::BrolgaRuntime;

/// The kind of an activity.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BrolgaActivityKind {
    /// Work begins on this thread: `stage` says what, `name` on what. Spans of one thread nest.
    Begin = 0,
    /// The innermost work of this thread ends.
    End = 1,
    /// A task waits for a thread: `number`.
    Queued = 2,
    /// A task begins on this thread: `number`.
    Started = 3,
    /// Code of the function `name` is in force, of the tier `number`.
    Published = 4,
    /// The function `name` has code of the next tier.
    TieredUp = 5,
    /// Threads have left a running loop of `name` for better code, `number` times.
    LeftLoop = 6,
    /// The function `name` has lost its code, because of `reason`.
    Invalidated = 7,
    /// The function `name` has lost its code for room: `number` bytes.
    Evicted = 8,
    /// A collection has ended, which stopped threads for `number` nanoseconds.
    Collected = 9,
    /// An interrupt has reached compiled code.
    Interrupted = 10,
    /// Something that this version of the header does not have.
    Other = 11,
}

/// Something that a run time has done. The texts are lent for the call, and null where the kind has none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BrolgaActivity {
    /// A `BrolgaActivityKind`.
    pub kind: u32,
    /// The stage of work: `optimise`, `generate code`, `link`, `collect` and others.
    pub stage: *const c_char,
    /// The function, or what the work is about.
    pub name: *const c_char,
    /// The reason.
    pub reason: *const c_char,
    /// A number, as the kind says.
    pub number: u64,
}

/// Hears of activities, on their threads, in the middle of compilations and collections. It calls no function of this library, waits for no lock that a thread may hold while it runs a program, and
/// returns.
pub type BrolgaActivityFn = Option<unsafe extern "C" fn(data: *mut c_void, activity: *const BrolgaActivity)>;

type ActivityFn = unsafe extern "C" fn(*mut c_void, *const BrolgaActivity);

struct Listener {
    listen: ActivityFn,
    data: Data,
}

impl EventListener for Listener {
    fn event(&self, event: Event<'_>) {
        use BrolgaActivityKind as Kind;
        let (kind, stage, name, reason, number) = match event {
            Event::Begin { stage, name } => (Kind::Begin, stage.name(), name, "", 0),
            Event::End { stage } => (Kind::End, stage.name(), "", "", 0),
            Event::Queued { task } => (Kind::Queued, "", "", "", task),
            Event::Started { task } => (Kind::Started, "", "", "", task),
            Event::Published { function, tier, .. } => (Kind::Published, "", function, "", tier as u64),
            Event::TieredUp { function } => (Kind::TieredUp, "", function, "", 0),
            Event::LeftLoop { function, times } => (Kind::LeftLoop, "", function, "", times),
            Event::Invalidated { function, reason } => (Kind::Invalidated, "", function, reason, 0),
            Event::Evicted { function, bytes } => (Kind::Evicted, "", function, "", bytes as u64),
            Event::Collected { pause, .. } => {
                (Kind::Collected, "", "", "", u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
            }
            Event::Interrupted => (Kind::Interrupted, "", "", "", 0),
            _ => (Kind::Other, "", "", "", 0),
        };
        let text = |text: &str| (!text.is_empty()).then(|| for_c(text));
        let texts = [stage, name, reason].map(text);
        let [stage, name, reason] =
            [0, 1, 2].map(|n: usize| texts[n].as_ref().map_or(ptr::null(), |text: &CString| text.as_ptr()));
        let activity = BrolgaActivity { kind: kind as u32, stage, name, reason, number };
        // SAFETY: by the contract of `brolga_runtime_listen`.
        unsafe { (self.listen)(self.data.pointer(), &raw const activity) };
    }
}

/// Has `listen` called with what the run time does from now on. A run time has one listener; if it has one, this is an error. `data` is handed to `listen`, and to `free`, if that is not null, when the run time
/// is freed, or at once if this fails.
///
/// # Safety
///
/// `listen` and `free` are what `BrolgaActivityFn` and `BrolgaFreeFn` say, may be called on any thread and by several at the same time, and return.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn brolga_runtime_listen(
    runtime: Option<&BrolgaRuntime>,
    listen: BrolgaActivityFn,
    data: *mut c_void,
    free: BrolgaFreeFn,
) -> Option<Box<BrolgaError>> {
    fenced(|| {
        let data = Data::new(data, free);
        let (runtime, listen) = (given(runtime, "runtime")?, given(listen, "listen")?);
        match runtime.runtime.events().listen(Arc::new(Listener { listen, data })) {
            true => Ok(()),
            false => Err(BrolgaError::new(BrolgaCode::Argument, "the run time has a listener")),
        }
    })
}
