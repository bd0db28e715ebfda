//! Thread-local storage at a fixed distance from each thread's pointer, for code that assumes it (`-fPIE`, `-fno-pic`).
//!
//! ```text
//!   template ──► a shared library in a memory file: PT_TLS, one relocation to an offset ──► dlopen ──► the offset
//! ```
//!
//! Only the system's loader can provide such storage: it has some spare bytes in the block of each thread (about 1.6 KB, `glibc.rtld.optional_static_tls`), fills them in for threads that run and for
//! threads that come, and takes them back when the library is closed, if they are the last ones.

use std::ffi::{CString, c_void};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;

use object::elf;

use crate::debug::MACHINE;
use crate::memory::pages;

/// Offsets in the library, which is one segment.
const HEADERS: usize = 64;
const DYNAMIC: usize = HEADERS + 4 * 56;
const HASH: usize = DYNAMIC + 10 * 16;
const SYMBOLS: usize = HASH + 24;
const NAMES: usize = SYMBOLS + 2 * 24;
const RELOCATION: usize = NAMES + 8;
const WORD: usize = RELOCATION + 24;
const END: usize = WORD + 8;

/// The name of the word with the offset.
const NAME: &[u8; 8] = b"\0offset\0";

/// Storage in the block of each thread. It is released when this is dropped.
#[derive(Debug)]
pub(super) struct StaticTls {
    handle: *mut c_void,
    #[expect(dead_code, reason = "while it is open no other library has its name")]
    file: File,
    /// From the thread's pointer.
    offset: isize,
}

// SAFETY: the handle is used once more, by whoever drops it.
unsafe impl Send for StaticTls {}
// SAFETY: nothing is done by reference.
unsafe impl Sync for StaticTls {}

impl StaticTls {
    /// Storage that begins with `template` in each thread; `None` if the loader has no room.
    pub(super) fn new(template: &[u8], align: usize) -> Option<StaticTls> {
        let bytes = library(template, align);
        let mut file = File::from(pages::memory_file(bytes.len()).ok()?);
        file.write_all(&bytes).ok()?;
        let path = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        // SAFETY: the library has no code, and the word that is read is in it.
        unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            if handle.is_null() {
                return None;
            }
            let word = libc::dlsym(handle, c"offset".as_ptr()).cast::<isize>();
            let offset = if word.is_null() { 0 } else { *word };
            Some(StaticTls { handle, file, offset })
        }
    }

    /// The distance of its first byte from the thread's pointer.
    pub(super) fn offset(&self) -> isize {
        self.offset
    }

    /// Its first byte in this thread.
    pub(super) fn address(&self) -> usize {
        thread_pointer().wrapping_add_signed(self.offset)
    }
}

impl Drop for StaticTls {
    fn drop(&mut self) {
        // SAFETY: it was opened once, and no code that uses the storage is left.
        unsafe { libc::dlclose(self.handle) };
    }
}

fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: reads the register or, on x86-64, the word that has the pointer.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly));
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem));
    }
    pointer
}

/// A shared library with the template and a word for the offset.
fn library(template: &[u8], align: usize) -> Vec<u8> {
    let align = align.max(1);
    let image = END.next_multiple_of(align);
    let total = image + template.len();
    let mut file = vec![0; total];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &elf_header());
    let (all, readable) = (0..total, elf::PF_R | elf::PF_W);
    let segments = [
        (elf::PT_LOAD, readable, all, 4096),
        (elf::PT_DYNAMIC, readable, DYNAMIC..HASH, 8),
        (elf::PT_TLS, elf::PF_R, image..total, align),
        // Without it the loader makes stacks executable.
        (elf::PT_GNU_STACK, readable, 0..0, 16),
    ];
    for (number, (kind, flags, range, align)) in segments.into_iter().enumerate() {
        let words =
            [range.start, range.start, range.start, range.len(), range.len(), align].map(|word| word as u64);
        let halves = [kind, flags].map(u32::to_le_bytes).concat();
        put(HEADERS + 56 * number, &[halves, words.map(u64::to_le_bytes).concat()].concat());
    }
    let dynamic: [(i64, usize); 9] = [
        (elf::DT_HASH, HASH),
        (elf::DT_SYMTAB, SYMBOLS),
        (elf::DT_SYMENT, 24),
        (elf::DT_STRTAB, NAMES),
        (elf::DT_STRSZ, NAME.len()),
        (elf::DT_RELA, RELOCATION),
        (elf::DT_RELASZ, 24),
        (elf::DT_RELAENT, 24),
        (elf::DT_FLAGS, elf::DF_STATIC_TLS as usize),
    ];
    for (number, (tag, value)) in dynamic.into_iter().enumerate() {
        put(DYNAMIC + 16 * number, &[tag as u64, value as u64].map(u64::to_le_bytes).concat());
    }
    // One bucket, with the only symbol.
    put(HASH, &[1u32, 2, 1, 0, 0].map(u32::to_le_bytes).concat());
    // The symbol: its name, a global object, in a section, at the word.
    put(SYMBOLS + 24, &[1, 0, 0, 0, elf::STB_GLOBAL << 4 | elf::STT_OBJECT, 0, 1, 0]);
    put(SYMBOLS + 32, &[WORD as u64, 8].map(u64::to_le_bytes).concat());
    put(NAMES, NAME);
    let kind = if MACHINE == elf::EM_X86_64 { elf::R_X86_64_TPOFF64 } else { elf::R_AARCH64_TLS_TPREL };
    put(RELOCATION, &[WORD as u64, kind.into(), 0].map(u64::to_le_bytes).concat());
    put(image, template);
    file
}

fn elf_header() -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', elf::ELFCLASS64, elf::ELFDATA2LSB, 1, 0];
    header.resize(16, 0);
    header.extend([elf::ET_DYN, MACHINE].map(u16::to_le_bytes).concat());
    header.extend(1u32.to_le_bytes());
    // Neither an entry nor sections; only the offset of the segments.
    header.extend([0, HEADERS as u64, 0].map(u64::to_le_bytes).concat());
    header.extend(0u32.to_le_bytes());
    // Sizes of this header and of segments, and their number; of sections.
    header.extend([64u16, 56, 4, 64, 0, 0].map(u16::to_le_bytes).concat());
    header
}
