//! The dump of code that `perf inject --jit` reads: `jit-PID.dump`, with the code itself, lines and times.
//!
//! ```text
//!   header   magic "DTiJ"  version 1  40  machine  0  pid  time  0
//!   record   2 (lines)     size  time │ address  count  (address  line  0  file\0)*
//!   record   0 (code)      size  time │ pid  tid  address  address  bytes  number  name\0  code
//!   record   3 (end)       size  time
//! ```
//!
//! All integers have the byte order of the machine; times are of the monotonic clock, as `perf record -k mono` takes them. `perf`
//! finds the file because it is mapped executable once, which the recording shows. The record of a function's lines precedes
//! its code; they are lines of the IR, whose file is given when the dump is made.
//!
//! ```text
//!   perf record -k mono program;  perf inject --jit -i perf.data -o jitted.data;  perf annotate -i jitted.data
//! ```
//!
//! Cost: one write for each unit. After a write has failed nothing more is written ([`JitDump::error`]).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, PoisonError};

use brolga_files::fresh;

use crate::debug::MACHINE;
use crate::debug::code_map::{CodeFunction, CodeListener, CodeUnit};

const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
const HEADER_BYTES: u32 = 40;

/// Kinds of records.
const CODE: u32 = 0;
const LINES: u32 = 2;
const END: u32 = 3;

/// Writes a dump of code for `perf`.
#[derive(Debug)]
pub struct JitDump {
    path: PathBuf,
    /// The name of the file that line numbers refer to.
    source: String,
    open: Mutex<Result<Open, io::Error>>,
}

#[derive(Debug)]
struct Open {
    dump: File,
    /// The memory of this process, to read code from.
    memory: File,
    #[expect(dead_code, reason = "held so that the file stays mapped")]
    marker: Marker,
    functions: u64,
}

impl JitDump {
    /// A new dump in a directory, named after this process. `source` is the name of the file that line numbers refer to.
    pub fn create_in(directory: &Path, source: &str) -> io::Result<JitDump> {
        let path = directory.join(format!("jit-{}.dump", std::process::id()));
        let mut dump = fresh(&path)?;
        let mut header = Vec::new();
        for word in [MAGIC, VERSION, HEADER_BYTES, MACHINE.into(), 0, std::process::id()] {
            header.extend(word.to_ne_bytes());
        }
        header.extend(now().to_ne_bytes());
        header.extend(0u64.to_ne_bytes());
        dump.write_all(&header)?;
        let marker = Marker::new(&dump)?;
        let memory = File::open("/proc/self/mem")?;
        let open = Mutex::new(Ok(Open { dump, memory, marker, functions: 0 }));
        Ok(JitDump { path, source: source.replace('\0', " "), open })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The error that ended writing.
    pub fn error(&self) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.as_ref().err().map(io::Error::to_string)
    }

    fn write(&self, records: impl FnOnce(&mut Open) -> io::Result<Vec<u8>>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(parts) = &mut *open
            && let Err(error) = records(parts).and_then(|records| parts.dump.write_all(&records))
        {
            *open = Err(error);
        }
    }
}

impl Open {
    fn code_record(&mut self, function: CodeFunction<'_>, records: &mut Vec<u8>) -> io::Result<()> {
        let mut code = vec![0; function.size()];
        self.memory.seek(SeekFrom::Start(function.address() as u64))?;
        self.memory.read_exact(&mut code)?;
        self.functions += 1;
        let mut body = Vec::with_capacity(code.len() + 64);
        body.extend(std::process::id().to_ne_bytes());
        body.extend(thread_id().to_ne_bytes());
        let address = function.address() as u64;
        for word in [address, address, code.len() as u64, self.functions] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(function.name().bytes().filter(|byte| *byte != 0));
        body.push(0);
        body.extend(code);
        record(CODE, &body, records);
        Ok(())
    }
}

impl CodeListener for JitDump {
    fn loaded(&self, unit: &Arc<CodeUnit>) {
        self.write(|open| {
            let mut records = Vec::new();
            for function in unit.functions() {
                if !function.lines().is_empty() {
                    let source = function.file().unwrap_or(&self.source);
                    record(LINES, &line_entries(function, source), &mut records);
                }
                open.code_record(function, &mut records)?;
            }
            Ok(records)
        });
    }

    fn freed(&self, _: &Arc<CodeUnit>) {}
}

impl Drop for JitDump {
    fn drop(&mut self) {
        self.write(|_| {
            let mut records = Vec::new();
            record(END, &[], &mut records);
            Ok(records)
        });
    }
}

fn line_entries(function: CodeFunction<'_>, source: &str) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend((function.address() as u64).to_ne_bytes());
    body.extend((function.lines().len() as u64).to_ne_bytes());
    for &(offset, place) in function.lines() {
        body.extend((function.address() as u64 + u64::from(offset)).to_ne_bytes());
        body.extend(place.at.line().unwrap_or(0).to_ne_bytes());
        body.extend(0u32.to_ne_bytes());
        body.extend(source.bytes().filter(|byte| *byte != 0));
        body.push(0);
    }
    body
}

fn record(kind: u32, body: &[u8], records: &mut Vec<u8>) {
    let prefix = 16;
    records.extend(kind.to_ne_bytes());
    records.extend((prefix + body.len() as u32).to_ne_bytes());
    records.extend(now().to_ne_bytes());
    records.extend(body);
}

/// Nanoseconds of the monotonic clock.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable, and the clock exists everywhere.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned().wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec.cast_unsigned())
}

fn thread_id() -> u32 {
    #[cfg(target_os = "linux")]
    // SAFETY: reads the id of the calling thread.
    return unsafe { libc::gettid() }.cast_unsigned();
    #[cfg(not(target_os = "linux"))]
    std::process::id()
}

/// The first page of the dump, mapped executable: the sign that `perf` looks for.
#[derive(Debug)]
struct Marker {
    address: usize,
}

const MARKER_BYTES: usize = 4096;

impl Marker {
    fn new(dump: &File) -> io::Result<Marker> {
        let protection = libc::PROT_READ | libc::PROT_EXEC;
        // SAFETY: a new private mapping at an address of the system's choice touches nothing that exists; nothing reads it.
        let mapped = unsafe {
            libc::mmap(null_mut(), MARKER_BYTES, protection, libc::MAP_PRIVATE, dump.as_raw_fd(), 0)
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Marker { address: mapped.expose_provenance() })
    }
}

impl Drop for Marker {
    fn drop(&mut self) {
        // SAFETY: the mapping is this structure's own, and nothing points into it.
        unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(self.address), MARKER_BYTES) };
    }
}
