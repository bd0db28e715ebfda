//! Executables: an image, a few instructions that pass it to the run time, and the system's linker.
//!
//! ```text
//!   image ──► object: .rodata  the program: image, call    ┐
//!                     .text    main: jmp brolga_image_main ├─ cc ──► executable
//!   libbrolga_capi.a: the run time, and the code generator ┘
//! ```
//!
//! The run time opens the image in place, with the same checks as for files. So an executable is just its
//! image, and the same rules apply: a damaged one reports an error and runs nothing.
//!
//! **Linking** is done by the system's C compiler, which finds the start-up code and the C library. It is
//! looked up by name in a list of folders from the caller; every error includes the command that was run. The
//! result is written to a temporary file beside the output and renamed, as images are.
//!
//! **Start.** The executable is bound to an address (`-no-pie`), so the system's loader has nothing to
//! relocate in it, and functions of the C library are bound at their first call.
//!
//! **Without a linker** an executable is a copy of another one that can run images, with the image appended, which that
//! program finds at its start:
//!
//! ```text
//!   program │ image │ call │ length of the image, length of the call or none, magic
//! ```
//!
//! Not done: architectures other than x86-64, hosts without ELF, executables without the code generator,
//! which boxed entries need.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use brolga_files::fresh;

use crate::image::{ImageError, ImageFile};
use object::write::{Object, Relocation, StandardSection, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind, SymbolFlags,
    SymbolKind, SymbolScope,
};

/// The routine of the C library that runs an image.
pub const IMAGE_MAIN: &str = "brolga_image_main";

/// C compilers, in search order.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// The options of every link. Unused functions of the C library are omitted.
const OPTIONS: [&str; 4] = ["-no-pie", "-Wl,--gc-sections", "-Wl,-z,lazy", "-s"];

/// The libraries of the system that the run time needs.
const LIBRARIES: [&str; 3] = ["-lm", "-lpthread", "-ldl"];

/// Why no executable was made.
#[derive(thiserror::Error, Debug)]
pub enum ExecutableError {
    /// Executables are not supported for this architecture.
    #[error("executables are made for x86-64 with ELF only so far, and this machine is {arch}")]
    Unsupported {
        /// The name of the architecture.
        arch: &'static str,
    },
    /// The object for the linker could not be written.
    #[error("cannot write the object for the linker: {reason}")]
    Object { reason: String },
    #[error("there is no linker: none of {} is in the folders {}", names(.wanted), names(.folders))]
    NoLinker {
        /// The names that were searched for.
        wanted: Vec<String>,
        /// The folders that were searched.
        folders: Vec<String>,
    },
    /// The library with the run time is missing.
    #[error(
        "there is no run time for executables at `{path}`: `cargo build --release -p brolga-capi` makes `libbrolga_capi.a`"
    )]
    NoRuntime {
        /// The path at which it was expected.
        path: String,
    },
    /// The linker could not be run, or its result could not be moved into place.
    #[error("cannot {what} `{path}`: {source}; the command is {command}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The program or file.
        path: String,
        command: String,
        /// The system's error.
        source: io::Error,
    },
    /// The linker failed.
    #[error("the linker failed ({status}): {command}\n{output}")]
    Failed {
        /// Its exit status.
        status: String,
        command: String,
        /// What it printed.
        output: String,
    },
}

fn names(list: &[String]) -> String {
    format!("`{}`", list.join("`, `"))
}

/// The linker and its inputs.
#[derive(Clone, Debug)]
pub struct Linker {
    /// The C compiler that links.
    pub program: PathBuf,
    /// The static C library of Brolga.
    pub runtime: PathBuf,
    /// Options that precede all others.
    pub options: Vec<OsString>,
}

impl Linker {
    /// The first C compiler found in a list of folders in the form of `PATH`; `wanted`, a name or a path,
    /// restricts the search to it.
    ///
    /// # Errors
    /// No compiler is found, or the run time is missing.
    pub fn find(wanted: Option<&OsStr>, path: &OsStr, runtime: PathBuf) -> Result<Linker, ExecutableError> {
        if !runtime.is_file() {
            return Err(ExecutableError::NoRuntime { path: runtime.display().to_string() });
        }
        let wanted: Vec<&OsStr> = match wanted {
            Some(only) => vec![only],
            None => COMPILERS.iter().map(OsStr::new).collect(),
        };
        let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
        for name in &wanted {
            // A name with a folder in it is used as a path.
            let is_path = Path::new(name).components().count() > 1;
            let at = |folder: &PathBuf| folder.join(name);
            let mut places = folders.iter().map(at).filter(|_| !is_path);
            let found = if is_path { Some(PathBuf::from(name)) } else { places.find(|path| path.is_file()) };
            if let Some(program) = found.filter(|program| program.is_file()) {
                return Ok(Linker { program, runtime, options: Vec::new() });
            }
        }
        let text = |text: &OsStr| text.to_string_lossy().into_owned();
        Err(ExecutableError::NoLinker {
            wanted: wanted.into_iter().map(text).collect(),
            folders: folders.iter().map(|folder| text(folder.as_os_str())).collect(),
        })
    }

    /// Links an object of [`executable_object`] into an executable. A reader sees either the complete old
    /// file or the complete new one.
    ///
    /// # Errors
    /// The linker fails, or the system refuses.
    pub fn link(&self, object: &[u8], output: &Path) -> Result<(), ExecutableError> {
        let beside = |end: &str| {
            let mut name = output.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{}.{end}", std::process::id()));
            output.with_file_name(name)
        };
        let (object_file, made) = (beside("o"), beside("new"));
        let done = self.link_at(object, &object_file, &made, output);
        // They may not exist; the first error is the one to report.
        let _ = (fs::remove_file(&object_file), fs::remove_file(&made));
        done
    }

    fn link_at(
        &self,
        object: &[u8],
        object_file: &Path,
        made: &Path,
        output: &Path,
    ) -> Result<(), ExecutableError> {
        let mut command = Command::new(&self.program);
        command.args(&self.options).args(OPTIONS).arg("-o").arg(made).arg(object_file).arg(&self.runtime);
        command.args(LIBRARIES);
        let shown = spoken(&command);
        let failed = |what, path: &Path| {
            let (path, command) = (path.display().to_string(), shown.clone());
            move |source| ExecutableError::System { what, path, command, source }
        };
        // The linker would write through a link, or wait for the reader of a FIFO.
        let written = fresh(made).and_then(|_| fresh(object_file)?.write_all(object));
        written.map_err(failed("write", object_file))?;
        let run = command.output().map_err(failed("run", &self.program))?;
        if !run.status.success() {
            let both = [run.stderr, run.stdout].concat();
            let output = String::from_utf8_lossy(&both).trim_end().to_owned();
            return Err(ExecutableError::Failed { status: run.status.to_string(), command: shown, output });
        }
        let file = fs::File::open(made).map_err(failed("open", made))?;
        file.sync_all().map_err(failed("write", made))?;
        fs::rename(made, output).map_err(failed("write", output))
    }
}

/// A command in shell syntax.
fn spoken(command: &Command) -> String {
    let quoted = |text: &OsStr| {
        let text = text.to_string_lossy();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=+:@%".contains(c);
        match !text.is_empty() && text.chars().all(is_plain) {
            true => text.into_owned(),
            false => format!("'{}'", text.replace('\'', r"'\''")),
        }
    };
    let parts: Vec<String> =
        [command.get_program()].into_iter().chain(command.get_args()).map(quoted).collect();
    parts.join(" ")
}

/// The end of an executable with an appended image.
const APPENDED: [u8; 16] = *b"\x1aBRLG appended\x1a\n";
const TRAILER: u64 = 32;
/// In place of the length of a call: there is none.
const NO_CALL: u64 = u64::MAX;
/// Longer calls are not appended.
const LONGEST_CALL: u64 = 1 << 20;

/// An image that was appended to an executable.
#[derive(Debug)]
pub struct Appended {
    pub image: ImageFile,
    /// The call whose value is printed; `None` for `main`.
    pub call: Option<String>,
}

/// Makes an executable of a program that can run images, by a copy of it with an image appended. A reader sees either the
/// complete old file or the complete new one. Returns the size of the file in bytes.
///
/// # Errors
/// The system refuses.
pub fn append(
    program: &Path,
    image: &[u8],
    call: Option<&str>,
    output: &Path,
) -> Result<u64, ExecutableError> {
    let mut name = output.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", std::process::id()));
    let made = output.with_file_name(name);
    let written = copy_and_append(program, image, call, &made);
    let done = written.and_then(|bytes| fs::rename(&made, output).map(|()| bytes));
    done.map_err(|source| {
        // It may not exist; the first error is the one to report.
        let _ = fs::remove_file(&made);
        let (path, command) = (output.display().to_string(), format!("a copy of {}", program.display()));
        ExecutableError::System { what: "write", path, command, source }
    })
}

fn copy_and_append(program: &Path, image: &[u8], call: Option<&str>, made: &Path) -> io::Result<u64> {
    let mut from = fs::File::open(program)?;
    let mut file = fresh(made)?;
    io::copy(&mut from, &mut file)?;
    file.write_all(image)?;
    file.write_all(call.unwrap_or_default().as_bytes())?;
    file.write_all(&(image.len() as u64).to_le_bytes())?;
    file.write_all(&call.map_or(NO_CALL, |call| call.len() as u64).to_le_bytes())?;
    file.write_all(&APPENDED)?;
    file.set_permissions(from.metadata()?.permissions())?;
    file.sync_all()?;
    file.stream_position()
}

/// The image that was appended to a program, if one was.
///
/// # Errors
/// The file cannot be read, or what was appended is damaged.
pub fn appended(program: &Path) -> Result<Option<Appended>, ImageError> {
    let failed = |source| ImageError::File { what: "read", path: program.display().to_string(), source };
    let file = fs::File::open(program).map_err(failed)?;
    let end = file.metadata().map_err(failed)?.len();
    let mut trailer = [0; TRAILER as usize];
    let Some(trailer_at) = end.checked_sub(TRAILER) else { return Ok(None) };
    file.read_exact_at(&mut trailer, trailer_at).map_err(failed)?;
    let [image, call, magic @ ..] = trailer.as_chunks::<8>().0 else { return Ok(None) };
    if magic.as_flattened() != APPENDED {
        return Ok(None);
    }
    let damaged =
        || ImageError::Damaged { reason: "what was appended to the program is malformed".to_owned() };
    let (image, call) = (u64::from_le_bytes(*image), u64::from_le_bytes(*call));
    let call_bytes = if call == NO_CALL { 0 } else { call };
    let call_at =
        trailer_at.checked_sub(call_bytes).filter(|_| call_bytes <= LONGEST_CALL).ok_or_else(damaged)?;
    let image_at = call_at.checked_sub(image).ok_or_else(damaged)?;
    let mut text = vec![0; call_bytes as usize];
    file.read_exact_at(&mut text, call_at).map_err(failed)?;
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    let image = ImageFile::within(file, program, image_at, usize::try_from(image).map_err(|_| damaged())?)?;
    Ok(Some(Appended { image, call: (call != NO_CALL).then_some(text) }))
}

/// `lea rdx, [program]; jmp brolga_image_main`: the arguments of `main` stay in their registers.
const MAIN: [u8; 12] = [0x48, 0x8d, 0x15, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
const PROGRAM_FIELD: u64 = 3;
const ROUTINE_FIELD: u64 = 8;
/// The program of an executable, as [`IMAGE_MAIN`] reads it: the image, its length in bytes, and the call.
const PROGRAM_BYTES: usize = 24;
const IMAGE_FIELD: u64 = 0;
const LENGTH_FIELD: usize = 8;
const CALL_FIELD: u64 = 16;

/// A relocatable object whose `main` runs an image: its `main`, or a call whose value is printed.
///
/// # Errors
/// The architecture is not supported, or the call contains a zero byte.
pub fn executable_object(image: &[u8], call: Option<&str>) -> Result<Vec<u8>, ExecutableError> {
    if !cfg!(all(target_arch = "x86_64", unix)) || cfg!(target_vendor = "apple") {
        return Err(ExecutableError::Unsupported { arch: std::env::consts::ARCH });
    }
    let refused = |reason: &str| ExecutableError::Object { reason: reason.to_owned() };
    if call.is_some_and(|call| call.contains('\0')) {
        return Err(refused("the call has a zero byte"));
    }
    let mut object = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let data = object.section_id(StandardSection::ReadOnlyData);
    let image_at = object.append_section_data(data, image, 64);
    let call_at = call.map(|call| object.append_section_data(data, &[call.as_bytes(), &[0]].concat(), 1));
    let mut program = [0; PROGRAM_BYTES];
    program[LENGTH_FIELD..LENGTH_FIELD + 8].copy_from_slice(&(image.len() as u64).to_le_bytes());
    let program_at = object.append_section_data(data, &program, 8);
    let text = object.section_id(StandardSection::Text);
    let main_at = object.append_section_data(text, &MAIN, 16);
    let symbol = |name: &str, kind, value, size, section| Symbol {
        name: name.as_bytes().to_vec(),
        value,
        size,
        kind,
        scope: SymbolScope::Dynamic,
        weak: false,
        section,
        flags: SymbolFlags::None,
    };
    object.add_symbol(symbol(
        "main",
        SymbolKind::Text,
        main_at,
        MAIN.len() as u64,
        SymbolSection::Section(text),
    ));
    let routine = object.add_symbol(symbol(IMAGE_MAIN, SymbolKind::Text, 0, 0, SymbolSection::Undefined));
    let here = object.section_symbol(data);
    let address = |at, to: u64| (data, program_at + at, here, to as i64, RelocationKind::Absolute, 64);
    // A distance is measured from the end of its field.
    let distance = |at, symbol, to: i64, kind| (text, main_at + at, symbol, to - 4, kind, 32);
    let fields = [
        Some(address(IMAGE_FIELD, image_at)),
        call_at.map(|call_at| address(CALL_FIELD, call_at)),
        Some(distance(PROGRAM_FIELD, here, program_at as i64, RelocationKind::Relative)),
        Some(distance(ROUTINE_FIELD, routine, 0, RelocationKind::PltRelative)),
    ];
    for (section, offset, symbol, addend, kind, size) in fields.into_iter().flatten() {
        let flags = RelocationFlags::Generic { kind, encoding: RelocationEncoding::Generic, size };
        let relocation = Relocation { offset, symbol, addend, flags };
        object.add_relocation(section, relocation).map_err(|error| refused(&error.to_string()))?;
    }
    let stack = object.add_section(Vec::new(), b".note.GNU-stack".to_vec(), object::SectionKind::Other);
    object.section_mut(stack).flags = object::SectionFlags::Elf { sh_flags: 0 };
    object.write().map_err(|error| refused(&error.to_string()))
}

#[cfg(test)]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_object_has_main_and_the_image() {
        use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
        let bytes = executable_object(b"an image", Some("f(1)")).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let main = file.symbol_by_name("main").unwrap();
        assert!(main.is_global() && main.size() == MAIN.len() as u64);
        let data = file.section_by_name(".rodata").unwrap().data().unwrap();
        assert_eq!(data[..13], *b"an imagef(1)\0");
        assert_eq!(data.len(), 16 + PROGRAM_BYTES);
        assert_eq!(data[16 + LENGTH_FIELD..16 + CALL_FIELD as usize], 8u64.to_le_bytes());
        let relocated = file.section_by_name(".rodata").unwrap().relocations();
        assert_eq!(relocated.map(|(at, _)| at).collect::<Vec<_>>(), [16 + IMAGE_FIELD, 16 + CALL_FIELD]);
        let text = file.section_by_name(".text").unwrap();
        assert_eq!(text.relocations().count(), 2);
        assert!(executable_object(b"", Some("f\0")).unwrap_err().to_string().contains("zero byte"));
    }

    #[test]
    fn an_appended_image_is_found() {
        let folder = std::env::temp_dir().join(format!("brolga-appended-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (program, output) = (folder.join("program"), folder.join("app"));
        fs::write(&program, b"a program").unwrap();
        assert!(appended(&program).unwrap().is_none());
        for call in [None, Some("f(1)"), Some("")] {
            let bytes = append(&program, b"an image", call, &output).unwrap();
            assert_eq!(bytes, fs::metadata(&output).unwrap().len());
            let found = appended(&output).unwrap().unwrap();
            assert_eq!((&*found.image.bytes().unwrap(), found.call.as_deref()), (&b"an image"[..], call));
        }
        // Lengths beyond the file.
        let mut whole = fs::read(&output).unwrap();
        let at = whole.len() - TRAILER as usize;
        whole[at + 6] = 1;
        fs::write(&output, &whole).unwrap();
        assert!(appended(&output).unwrap_err().to_string().contains("malformed"));
        assert!(append(&program, b"", None, &folder.join("none/app")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn errors_name_the_command() {
        let here = std::env::current_exe().unwrap();
        let error = |wanted: Option<&str>, path: &str, runtime: &Path| {
            let found = Linker::find(wanted.map(OsStr::new), OsStr::new(path), runtime.to_owned());
            found.map(|_| ()).unwrap_err().to_string()
        };
        let none = error(None, "/nowhere:/there", &here);
        let expected =
            "there is no linker: none of `cc`, `gcc`, `clang` is in the folders `/nowhere`, `/there`";
        assert_eq!(none, expected);
        assert!(error(Some("/no/cc"), "/bin", &here).contains("`/no/cc`"));
        assert!(
            error(None, "/bin", Path::new("/no/lib.a"))
                .contains("no run time for executables at `/no/lib.a`")
        );
        let linker = |program: &str| Linker {
            program: program.into(),
            runtime: "lib with a blank.a".into(),
            options: Vec::new(),
        };
        let folder = std::env::temp_dir().join(format!("brolga-executable-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let output = folder.join("app");
        let failed = linker("/bin/false").link(b"", &output).unwrap_err().to_string();
        assert!(failed.starts_with("the linker failed (exit status: 1): /bin/false -no-pie"), "{failed}");
        assert!(failed.contains("'lib with a blank.a' -lm"), "{failed}");
        let missing = linker("/no/such/cc").link(b"", &output).unwrap_err().to_string();
        assert!(missing.starts_with("cannot run `/no/such/cc`: "), "{missing}");
        assert!(missing.contains("the command is /no/such/cc -no-pie"), "{missing}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "nothing is left");
        fs::remove_dir_all(&folder).unwrap();
    }
}
