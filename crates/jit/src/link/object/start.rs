//! The code that runs when a unit of object files starts and ends, and its unwind table.
//!
//! ```text
//!   start   functions are chosen (`ifunc`) ──► unwind table is registered ──► initialisers, by rising priority
//!   end     destructors of this thread ──► finalisers, by falling priority ──► `__cxa_finalize` ──► unwind table is taken back
//! ```
//!
//! The system's loader does the same for a shared library. The end runs on the thread that drops the last handle to the
//! unit. A process that exits before runs the functions registered with `atexit`, but no finalisers.

use std::ffi::c_void;
use std::sync::OnceLock;

use brolga_runtime::Doors;

use super::tls::{self, Registered};
use crate::link::linker::Start;

/// Addresses in the unit.
pub(super) struct Plan {
    /// Words of stubs, each with the function that chooses the destination.
    pub(super) choices: Vec<(usize, usize)>,
    /// By rising priority.
    pub(super) init: Vec<usize>,
    /// The same.
    pub(super) fini: Vec<usize>,
    /// `__dso_handle`.
    pub(super) handle: usize,
    pub(super) unwind: Option<usize>,
}

/// A unit's start and end. When it is dropped the unit ends, if it was started; the code and its callees must still be in
/// memory.
pub(crate) struct Started {
    plan: Plan,
    tls: Option<Registered>,
    started: OnceLock<()>,
}

impl Started {
    pub(super) fn new(plan: Plan, tls: Option<Registered>) -> Started {
        Started { plan, tls, started: OnceLock::new() }
    }
}

impl Start for Started {
    fn start(&self, _promise: Doors) {
        self.started.get_or_init(|| {
            // SAFETY: by the promise the embedder vouches for the code: it conforms to its sections and symbols, and does
            // not unwind. It is complete and executable, and its callees are in memory.
            unsafe {
                for &(word, choose) in &self.plan.choices {
                    system::choose(word, choose);
                }
                if let Some(table) = self.plan.unwind {
                    system::register(table);
                }
                for &function in &self.plan.init {
                    system::initialise(function);
                }
            }
        });
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let Plan { fini, handle, unwind, .. } = &self.plan;
        if self.started.get().is_some() {
            if let Some(module) = &self.tls {
                tls::run_exits_of(&module.module());
            }
            // SAFETY: the code was started under the promise, and stays in memory until this is done.
            unsafe {
                for &function in fini.iter().rev() {
                    system::finalise(function);
                }
                system::finalize_handle(*handle);
                if let Some(table) = unwind {
                    system::deregister(*table);
                }
            }
        }
    }
}

/// Whether an address is in code of a program or library of the process.
pub(super) fn is_code(address: usize) -> bool {
    system::is_code(address)
}

/// The size of the constant of a library at an address; `None` if it may change, or is not known.
pub(super) fn constant_at(address: usize) -> Option<usize> {
    system::constant_at(address)
}

/// The bytes of a constant that [`constant_at`] has found.
pub(super) fn constant(address: usize, size: usize) -> Vec<u8> {
    match constant_at(address) {
        // SAFETY: it is as long, and does not change. A library that is closed meanwhile is the embedder's, who was to keep it for the code.
        Some(found) if found == size => unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(address), size).to_vec()
        },
        _ => vec![0; size],
    }
}

/// The address of the C library's `__cxa_atexit`.
pub(super) fn cxa_atexit() -> usize {
    system::cxa_atexit()
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod system {
    use std::ffi::{c_char, c_int};

    use super::c_void;

    unsafe extern "C" {
        static environ: *const *const c_char;
        fn __register_frame(table: *const u8);
        fn __deregister_frame(table: *const u8);
        fn dladdr1(
            address: *const c_void,
            info: *mut libc::Dl_info,
            more: *mut *mut c_void,
            what: c_int,
        ) -> c_int;
        fn __cxa_finalize(handle: *mut c_void);
        fn __cxa_atexit(
            function: extern "C" fn(*mut c_void),
            argument: *mut c_void,
            handle: *mut c_void,
        ) -> c_int;
    }

    pub(super) fn cxa_atexit() -> usize {
        __cxa_atexit as *const () as usize
    }

    /// # Safety
    ///
    /// The word is writable and the stub's, and `choose` is a function that chooses one.
    pub(super) unsafe fn choose(word: usize, choose: usize) {
        // SAFETY: by the contract. On x86-64 the function has no parameters; on aarch64 it has the features of the processor.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            let chosen = std::mem::transmute::<usize, extern "C" fn() -> usize>(choose)();
            #[cfg(not(target_arch = "x86_64"))]
            let chosen = {
                /// The flag for "there is a second argument".
                const HAS_MORE: u64 = 1 << 62;
                let features = [libc::AT_HWCAP, libc::AT_HWCAP2].map(|kind| libc::getauxval(kind));
                let more = [24u64, features[0], features[1]];
                let choose = std::mem::transmute::<usize, extern "C" fn(u64, *const u64) -> usize>(choose);
                choose(features[0] | HAS_MORE, more.as_ptr())
            };
            std::ptr::with_exposed_provenance_mut::<usize>(word).write(chosen);
        }
    }

    /// # Safety
    ///
    /// There is a whole unwind table, which stays until it is deregistered.
    pub(super) unsafe fn register(table: usize) {
        // SAFETY: by the contract.
        unsafe { __register_frame(std::ptr::with_exposed_provenance(table)) }
    }

    /// # Safety
    ///
    /// The table is registered.
    pub(super) unsafe fn deregister(table: usize) {
        // SAFETY: by the contract.
        unsafe { __deregister_frame(std::ptr::with_exposed_provenance(table)) }
    }

    /// # Safety
    ///
    /// There is an initialiser, which may run now.
    pub(super) unsafe fn initialise(function: usize) {
        type Initialiser = extern "C" fn(c_int, *const *const c_char, *const *const c_char);
        let arguments = [std::ptr::null::<c_char>()];
        // SAFETY: by the contract. Initialisers get what `main` gets; there are no arguments here.
        unsafe { std::mem::transmute::<usize, Initialiser>(function)(0, arguments.as_ptr(), environ) }
    }

    /// # Safety
    ///
    /// There is a finaliser, which may run now.
    pub(super) unsafe fn finalise(function: usize) {
        // SAFETY: by the contract.
        unsafe { std::mem::transmute::<usize, extern "C" fn()>(function)() }
    }

    /// # Safety
    ///
    /// Functions that were passed to `__cxa_atexit` with the handle may run now.
    pub(super) unsafe fn finalize_handle(handle: usize) {
        // SAFETY: by the contract.
        unsafe { __cxa_finalize(std::ptr::with_exposed_provenance_mut(handle)) }
    }

    /// The use of the memory at an address.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Segment {
        Code,
        Constant,
        Variable,
    }

    /// The segment of a program or library that an address is in.
    fn segment(address: usize) -> Option<Segment> {
        let mut search = (address, None);
        // SAFETY: the callback reads the headers that it is given, during the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
        search.1
    }

    pub(super) fn is_code(address: usize) -> bool {
        segment(address) == Some(Segment::Code)
    }

    pub(super) fn constant_at(address: usize) -> Option<usize> {
        /// Requests the row of the symbol.
        const RTLD_DL_SYMENT: c_int = 1;
        if segment(address) != Some(Segment::Constant) {
            return None;
        }
        let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        let mut row = std::ptr::null_mut::<c_void>();
        let at = std::ptr::without_provenance(address);
        // SAFETY: both results are written by a call that succeeds. The row is in the library, which is there.
        let (start, row) = unsafe {
            if dladdr1(at, info.as_mut_ptr(), &raw mut row, RTLD_DL_SYMENT) == 0 || row.is_null() {
                return None;
            }
            (info.assume_init().dli_saddr.addr(), *row.cast::<libc::Elf64_Sym>())
        };
        (start == address).then(|| usize::try_from(row.st_size).ok()).flatten().filter(|&size| size > 0)
    }

    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _: libc::size_t, search: *mut c_void) -> c_int {
        // SAFETY: the system passes a library's headers, and what was given to it: the pair above.
        let (info, (address, found)) = unsafe { (&*info, &mut *search.cast::<(usize, Option<Segment>)>()) };
        // SAFETY: the field has the number of headers.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let find = |kind| {
            headers.iter().find(|header| {
                let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
                header.p_type == kind && (*address as u64).wrapping_sub(start) < header.p_memsz
            })
        };
        let Some(header) = find(libc::PT_LOAD) else { return 0 };
        // Relocated data is read-only after loading.
        let is_variable = header.p_flags & libc::PF_W != 0 && find(libc::PT_GNU_RELRO).is_none();
        *found = Some(match header.p_flags & libc::PF_X != 0 {
            true => Segment::Code,
            false if is_variable => Segment::Variable,
            false => Segment::Constant,
        });
        1
    }
}

/// Object files are not read on other systems.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod system {
    pub(super) fn cxa_atexit() -> usize {
        0
    }
    pub(super) fn is_code(_: usize) -> bool {
        false
    }
    pub(super) fn constant_at(_: usize) -> Option<usize> {
        None
    }
    pub(super) unsafe fn choose(_: usize, _: usize) {}
    pub(super) unsafe fn register(_: usize) {}
    pub(super) unsafe fn deregister(_: usize) {}
    pub(super) unsafe fn initialise(_: usize) {}
    pub(super) unsafe fn finalise(_: usize) {}
    pub(super) unsafe fn finalize_handle(_: usize) {}
}
