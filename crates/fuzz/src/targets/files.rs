//! Programs and files with arbitrary bytes.

use std::collections::{BTreeMap, BTreeSet};

use brolga_engine::{Engine, Error, Session, Workers};
use brolga_jit::{Archive, Foreign, Jit, JitOptions, ObjectFile};
use brolga_runtime::{Runtime, RuntimeOptions};

use super::{Fault, doors};
use crate::check::{Reading, check_binary, check_text};
use crate::mutate;

/// The compiler and linker for inputs. A fuzzer keeps a single one.
pub struct Machine {
    jit: Jit,
    engine: Engine,
}

impl Machine {
    /// The compiler and linker for this process.
    ///
    /// # Errors
    /// The processor has no code generator, or there is no memory for code.
    pub fn new() -> Result<Machine, Error> {
        let jit = Jit::new(Runtime::new(RuntimeOptions::default()), JitOptions::default())?;
        Ok(Machine { jit, engine: Engine::new(doors::open())? })
    }
}

/// One text in this many is compiled.
const COMPILED: usize = 16;

/// A program as text. Returns whether it was one. Compiling takes far longer than reading, and
/// [`checked`](super::checked) also compiles texts: few are compiled here, selected by their bytes.
///
/// # Errors
/// A panic, or a finding without a position.
pub fn text(machine: &Machine, bytes: &[u8]) -> Result<bool, Fault> {
    let sum = bytes.iter().fold(0usize, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let read = check_text(0, bytes, (sum % COMPILED == 0).then_some(&machine.jit));
    read.map(|reading| reading == Reading::Accepted).map_err(|failure| Fault(failure.to_string()))
}

/// A program in binary form, with a matching checksum. Returns whether it was one.
///
/// # Errors
/// Like [`text`].
pub fn binary(machine: &Machine, bytes: &[u8]) -> Result<bool, Fault> {
    let mut sealed = bytes.to_vec();
    mutate::seal(&mut sealed);
    let read = check_binary(0, &sealed, Some(&machine.jit));
    read.map(|reading| reading == Reading::Accepted).map_err(|failure| Fault(failure.to_string()))
}

/// An object file. Returns whether it was linked.
///
/// # Errors
/// A refusal without a reason.
pub fn object(machine: &Machine, bytes: &[u8]) -> Result<bool, Fault> {
    let file = match ObjectFile::parse("fuzz.o", bytes) {
        Ok(file) => file,
        Err(error) => return said(&error).map(|()| false),
    };
    if file.defined().any(|given| given.name.is_empty()) {
        return Err(Fault("a symbol without a name is defined".to_owned()));
    }
    match machine.jit.load_object(&file, &imports(&file), &BTreeSet::new()) {
        Ok(_) => Ok(true),
        Err(error) => said(&error).map(|()| false),
    }
}

/// Addresses for all imports of a file; the code is not run.
fn imports(file: &ObjectFile) -> BTreeMap<String, Foreign> {
    let somewhere = std::ptr::from_ref(&MOST).addr();
    file.undefined().map(|name| (name.to_owned(), Foreign { address: somewhere, object: None })).collect()
}

/// The maximum number of archive members that are visited.
const MOST: usize = 8;

/// An archive: all its members, with the members that each needs. Returns whether it was one.
///
/// # Errors
/// A refusal without a reason.
pub fn archive(machine: &Machine, bytes: &[u8]) -> Result<bool, Fault> {
    let archive = match Archive::parse("fuzz.a", bytes) {
        Ok(archive) => archive,
        Err(error) => return said(&error).map(|()| false),
    };
    // A name of each kind, and members by index, one of which does not exist.
    let _ = archive.member_with("main");
    for number in 0..MOST {
        match archive.component(number) {
            Ok((file, _)) => {
                if let Err(error) = machine.jit.load_object(&file, &imports(&file), &BTreeSet::new()) {
                    said(&error)?;
                }
            }
            Err(error) => said(&error)?,
        }
    }
    let session = Session::new(doors::open(), Workers::Caller).map_err(|error| Fault(error.to_string()))?;
    let dylib = session.create_dylib("main").map_err(|error| Fault(error.to_string()))?;
    if let Err(error) = dylib.add_archive("fuzz.a", bytes) {
        said(&error)?;
    }
    Ok(true)
}

/// A program built ahead of time, with a matching length and checksum. Returns whether it was opened.
///
/// # Errors
/// A refusal without a reason.
pub fn image(machine: &Machine, bytes: &[u8]) -> Result<bool, Fault> {
    let mut sealed = bytes.to_vec();
    mutate::seal_image(&mut sealed);
    match machine.engine.open_bytes(sealed) {
        Ok(image) => {
            // Reads everything that is read on demand; the code is not run.
            for symbol in image.unit().symbols() {
                if let Err(error) = image.unit().untyped(symbol) {
                    said(&error)?;
                }
            }
            if let Err(error) = image.program() {
                said(&error)?;
            }
            Ok(true)
        }
        Err(error) => said(&error).map(|()| false),
    }
}

/// A refusal must have a reason.
fn said(error: &dyn std::error::Error) -> Result<(), Fault> {
    match error.to_string().is_empty() {
        true => Err(Fault("a refusal without a reason".to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use brolga_engine::{Options, Program, Stages, emit, image as images};
    use brolga_opt::{Cx, OptLevel};

    const SOURCE: &str = "\
global STEPS::Int64 = 40
function f(x::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:labs), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64
│   %2 = invoke Main.g(%1::Int64)::Int64
└──      return %2
end
function g(x::Int64)::Int64
1 ─ %1 = Base.sitofp(Float64, x)::Float64
│   %2 = Base.mul_float(%1, 2.5)::Float64
│   %3 = Base.fptosi(Int64, %2)::Int64
└──      return %3
end
";

    /// An object file of functions without objects.
    fn object_file() -> Vec<u8> {
        let source = SOURCE.split_once('\n').map_or("", |(_, functions)| functions);
        let program = Program::read("o.jlir", source.as_bytes()).unwrap();
        let (module, options) = (program.module(), brolga_opt::Options::default());
        let mut stages = Stages::new(module, OptLevel::O1, &options, Cx::default());
        let lows = stages.linked(module.funcs().map(|(id, _)| id)).unwrap();
        let code = emit::generate(module, lows.funcs.values(), OptLevel::O1).unwrap();
        code.object("o").unwrap()
    }

    /// An archive without an index: the header of each member is text.
    fn archive_file(members: &[&[u8]]) -> Vec<u8> {
        let mut file = b"!<arch>\n".to_vec();
        for (number, member) in members.iter().enumerate() {
            let name = format!("{number}.o/");
            file.extend(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, member.len()).bytes(),
            );
            file.extend(*member);
            file.resize(file.len().next_multiple_of(2), b'\n');
        }
        file
    }

    type Target = fn(&Machine, &[u8]) -> Result<bool, Fault>;

    /// Damaged originals: some are still valid, most are not.
    fn damaged(target: Target, original: &[u8], count: u64) {
        let machine = Machine::new().unwrap();
        assert_eq!(target(&machine, original), Ok(true), "the original is right");
        let mut right = 0;
        for seed in 0..count {
            let bytes = mutate::bytes(&mut Rng::new(seed), original);
            match target(&machine, &bytes) {
                Ok(taken) => right += u64::from(taken),
                Err(fault) => panic!("seed {seed}: {fault}"),
            }
        }
        assert!(right < count, "damage is never noticed");
    }

    #[test]
    fn damaged_object_files_are_linked_or_refused() {
        damaged(object, &object_file(), 3000);
    }

    #[test]
    fn damaged_archives_are_read_or_refused() {
        let file = object_file();
        damaged(archive, &archive_file(&[&file, b"no object file", &file]), 400);
    }

    #[test]
    fn damaged_images_are_opened_or_refused() {
        let program = Program::read("i.jlir", SOURCE.as_bytes()).unwrap();
        damaged(image, &images::build(&program, &Options::new()).unwrap(), 3000);
    }
}
