//! Programs as images: built ahead of time, opened by path.
//!
//! ```text
//!   Program ── Stages ──► low functions ── codegen (position-independent) ──► brolga_aot::image ──► file
//!   file ── checks ──► module, code, imports ── Jit::load_image ──► Unit: functions, methods, globals as after a compile
//! ```
//!
//! An image holds a whole program: all requested functions, their callees, and the boxed entries of methods, in machine code; and the
//! module with its types, globals and the IR of its functions. So an opened program can be called, tested, printed and compiled again.
//!
//! Opening has the same result as compiling. Types are those of the context that the module is read into; constants, types and singletons become
//! permanent objects of the run time; methods go into their own table; global variables get their values from the module. Types of
//! functions are computed from the module and compared with those that the code was compiled with.
//!
//! Cost: building compiles, with as many threads as the options say (`emission.rs`). Opening reads the module and the tables, and compiles nothing.
//!
//! Not done: images in sessions, which need symbols for an image's functions and cells in front of them; several programs in one image; edges and
//! worlds, so images are closed sets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use brolga_aot::executable::executable_object;
use brolga_aot::image::{self, Expected, ImageParts};
use brolga_codegen::isa::TargetIsa;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::{Abi, Signature};
use brolga_codegen::target::{self, Target, TargetError};
use brolga_gcroots::Lowering as Roots;
use brolga_ir::doors::Door;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Arch, Context, Func, FuncId, Level, Module};
use brolga_jit::{
    Compiled, Globals, ImageCode, ImageFunction, ImageLinkage, JitError, JitOptions, Source, Style,
    compile_for,
};
use brolga_opt::OptLevel;
use brolga_runtime::heap::DEFAULT_ABI;

use crate::abi::abi_of;
use crate::boxed::{self, Recipe};
use crate::clones::Clones;
use crate::emission::{Emission, weight};
use crate::engine::{Engine, Unit, set_globals};
use crate::error::Error;
use crate::library::Resolved;
use crate::native_type::{declared_type, function_type};
use crate::options::{Options, tier};
use crate::pipeline::{Pipeline, Settings};
use crate::program::Program;

pub use crate::library::{Library, LibraryImage};
pub use crate::options::{BuildReport, Progress};
pub use brolga_aot::executable::{ExecutableError, Linker};
pub use brolga_aot::image::{Export, HEADER_BYTES, is_header_of, read_file};
pub use brolga_codegen::target::help as targets_help;

/// How an image is made.
pub(crate) struct Making<'a> {
    pub(crate) level: OptLevel,
    pub(crate) roots: Roots,
    pub(crate) opt: &'a brolga_opt::Options,
    pub(crate) jit: JitOptions,
    pub(crate) heap: &'a HeapAbi,
    /// The targets; that of the options of the JIT if there is none.
    pub(crate) targets: &'a [Target],
    pub(crate) emission: Emission<'a>,
}

/// The bytes of an image of a whole program, for the default heap. The options choose level, passes, roots and the processors
/// ([`Options::cpu_target`], [`Options::cpu_targets`]); the same program and options give the same bytes.
///
/// # Errors
/// A function has no native form, or refers to what images do not hold.
pub fn build(program: &Program, options: &Options) -> Result<Vec<u8>, Error> {
    let making = Making::new(options);
    let module = program.module();
    making.image(module, module.funcs().map(|(id, _)| id), None)
}

/// As [`build`], with functions that C calls: the image is a shared library that C programs link with, beside the C library of Brolga (the crate
/// `brolga-capi`). The first call of a function opens the image, as [`Engine::open`] does.
///
/// # Errors
/// As [`build`]; or a function has no types of C, or no name for C.
pub fn build_library(program: &Program, options: &Options, library: &Library) -> Result<LibraryImage, Error> {
    let making = Making::new(options);
    let module = program.module();
    let resolved = Resolved::new(module, library)?;
    let image = making.image(module, module.funcs().map(|(id, _)| id), Some(&resolved))?;
    Ok(LibraryImage { image, header: resolved.header(), functions: resolved.symbols() })
}

/// Makes an executable that runs a program by a call such as `main()`: an image with the run time, put together by the system's linker.
///
/// # Errors
/// As [`build`]; the call is none of the program; the linker refuses.
pub fn build_executable(
    program: &Program,
    options: &Options,
    run: &Run<'_>,
    linker: &Linker,
    output: impl AsRef<Path>,
) -> Result<(), Error> {
    // Errors of the call are reported here, not when the executable starts.
    program.call(run.call)?;
    let object = executable_object(&build(program, options)?, run.call, run.shows)?;
    Ok(linker.link(&object, output.as_ref())?)
}

/// The call that an executable makes.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The call.
    pub call: &'a str,
    /// Whether its value is printed.
    pub shows: bool,
}

/// Which parameters of an exported function are addresses.
pub fn pointers(signature: &Signature) -> Vec<bool> {
    signature.params.iter().map(|abi| *abi == Abi::Ptr).collect()
}

/// Writes an image to a file. Readers see the old file or the new one, whole.
///
/// # Errors
/// The system refuses.
pub fn write(path: impl AsRef<Path>, image: &[u8]) -> Result<(), Error> {
    Ok(image::write_file(path.as_ref(), image)?)
}

impl<'a> Making<'a> {
    /// As options say, for the default heap.
    fn new(options: &'a Options) -> Making<'a> {
        let Options { level, roots, opt, jit, targets, image_threads, progress, report, .. } = options;
        let emission = Emission::new(*image_threads, progress.as_deref(), report.as_deref());
        Making { level: *level, roots: *roots, opt, jit: *jit, heap: &DEFAULT_ABI, targets, emission }
    }

    /// The image of a module in which these functions, and what they call, have code.
    pub(crate) fn image(
        &self,
        module: &Module,
        roots: impl IntoIterator<Item = FuncId>,
        library: Option<&Resolved>,
    ) -> Result<Vec<u8>, Error> {
        let options = Cow::Borrowed(self.opt);
        let settings =
            Settings { level: self.level, options, roots: self.roots, heap: *self.heap, advice: None };
        let pipeline = Pipeline::new(module.clone(), settings, BTreeSet::new());
        let mut report = BuildReport::default();
        let versions = self.targets.len().max(1);
        let linked = self.emission.linked(&pipeline, roots, versions, &mut report)?;
        let low = linked.iter();
        let sources: Vec<Source<'_>> = low
            .map(|(&id, low)| Source { func: low, ty: Some(function_type(module, id, low).into()) })
            .collect();
        let versions = self.versions(module, &linked)?;
        let begun = Instant::now();
        let symbol = |func: &Func| module.cx.names.text(func.name);
        let funcs: BTreeSet<&str> = linked.values().map(symbol).collect();
        // A function that a version does not have is that of its base, in the same text.
        let others = |name: &str| if funcs.contains(name) { CallKind::Near } else { CallKind::Far };
        let mut shards: Vec<(usize, usize)> = Vec::new();
        for (version, Version { funcs, .. }) in versions.iter().enumerate() {
            let own = |at: &usize| funcs.as_ref().is_none_or(|own| own.contains(symbol(sources[*at].func)));
            shards.extend((0..sources.len()).filter(own).map(|at| (version, at)));
        }
        shards.sort_by_key(|&(version, at)| (std::cmp::Reverse(weight(sources[at].func)), version, at));
        self.emission.left(shards.len());
        let made = self.emission.all(&shards, &mut report, |&(version, at)| {
            let style = Style { others: &others, ..Style::from(tier(self.level)) };
            let source = std::slice::from_ref(&sources[at]);
            let compiled = compile_for(&versions[version].isa, self.jit.limits, &module.cx, source, style);
            self.emission.step(symbol(sources[at].func));
            compiled
        });
        // In the order of the versions, and of the program.
        let made: BTreeMap<(usize, usize), _> = shards.into_iter().zip(made).collect();
        let mut units: Vec<Vec<Compiled>> = versions.iter().map(|_| Vec::new()).collect();
        for ((version, _), compiled) in made {
            units[version].push(compiled?);
        }
        let compiled: Vec<Compiled> =
            units.into_iter().map(|units| Compiled::joined(&module.cx, units)).collect();
        report.generate = begun.elapsed();
        if let Some(told) = self.emission.report {
            told(&report);
        }
        let (mut functions, mut constants) = (Vec::new(), Vec::new());
        for (version, compiled) in compiled.iter().enumerate() {
            let unit = compiled.link_unit();
            functions.extend(unit.functions.iter().map(|function| {
                let signature = compiled.signature(&function.name);
                image::Compiled { function, version, signature }
            }));
            let objects = unit.data.iter();
            constants.extend(objects.map(|object| (version, object.name.as_str(), object.bytes.as_slice())));
        }
        let Some(first) = versions.first() else { return Err(TargetError::None.into()) };
        let entries = library.map(|library| library.entries(&first.isa)).transpose()?;
        let library = entries.as_ref().map(|(exports, open)| image::Library { open, exports });
        let targets: Vec<image::ImageTarget> =
            versions.iter().map(|version| version.target.clone()).collect();
        Ok(image::build(&ImageParts {
            arch: self.jit.isa.arch,
            functions: &functions,
            constants: &constants,
            module,
            needs_heap: compiled.iter().any(Compiled::needs_heap),
            abi: abi_of(self.heap),
            targets: &targets,
            library: library.as_ref(),
        })?)
    }

    /// The versions of an image, the first one with all functions.
    fn versions(&self, module: &Module, linked: &BTreeMap<FuncId, Func>) -> Result<Vec<Version>, Error> {
        if self.targets.is_empty() {
            let isa = TargetIsa::for_images(self.jit.isa).map_err(JitError::Isa)?;
            let name = self.jit.isa.target.name().to_owned();
            let target = image::ImageTarget { name, features: isa.features(), base: 0 };
            return Ok(vec![Version { isa, target, funcs: None }]);
        }
        let clones = Clones::new(&module.cx, linked);
        let mut versions: Vec<Version> = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            let features = target::resolve(self.jit.isa.arch, target)?;
            let isa = TargetIsa::for_features(self.jit.isa, &features).map_err(JitError::Isa)?;
            let funcs = versions.get(target.base).map(|base| {
                let is_richer = features.iter().any(|feature| !base.target.features.contains(feature));
                let cloned = clones.of_target(target.clone_all, is_richer);
                cloned
                    .iter()
                    .filter_map(|id| linked.get(id))
                    .map(|func| module.cx.names.text(func.name).to_owned())
                    .collect()
            });
            let (name, base) = (target.text.clone(), target.base);
            versions.push(Version { isa, target: image::ImageTarget { name, features, base }, funcs });
        }
        Ok(versions)
    }
}

/// A version of an image.
struct Version {
    isa: TargetIsa,
    target: image::ImageTarget,
    /// The symbols of its functions; all if it is the first one.
    funcs: Option<BTreeSet<String>>,
}

/// A program that was opened: its module, and its functions ready to be called.
#[derive(Clone, Debug)]
pub struct Image {
    program: Program,
    unit: Unit,
    globals: Globals,
    about: About,
}

/// Facts about an opened image beside its program.
#[derive(Clone, Debug)]
pub(crate) struct About {
    exports: Arc<[Export]>,
    target: Arc<str>,
}

impl Image {
    /// The program: functions and globals, without the text that it was made from.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Its functions in machine code.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The functions that C calls, in the order of the numbers that their entries have.
    pub fn exports(&self) -> &[Export] {
        &self.about.exports
    }

    /// The target whose code was chosen for this processor.
    pub fn target(&self) -> &str {
        &self.about.target
    }

    pub(crate) fn globals(&self) -> &Globals {
        &self.globals
    }
}

impl Engine {
    /// How images are made whose code is as the engine's own.
    pub(crate) fn making(&self) -> Making<'_> {
        let (level, opt, roots, jit) = self.settings();
        let emission = Emission::new(1, None, None);
        Making { level, roots, opt, jit, heap: self.runtime().heap().abi(), targets: &[], emission }
    }

    /// Opens an image. It is machine code that runs with all rights of the process: open what you would load as a library.
    ///
    /// # Errors
    /// The doors are closed ([`Options::doors`]). The file cannot be read, is damaged, or was made for another version, heap or processor; the error says which. Something that its code
    /// imports is not there. Nothing of it was run then.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Image, Error> {
        self.need_open_doors()?;
        self.open_bytes(&image::read_file(path.as_ref())?)
    }

    /// Refuses images while the doors are closed.
    pub(crate) fn need_open_doors(&self) -> Result<(), Error> {
        match self.has_open_doors() {
            true => Ok(()),
            false => Err(Error::Closed { what: "an image", door: Door::NativeCode }),
        }
    }

    /// As [`Engine::open`], for the bytes of an image.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_bytes(&self, bytes: &[u8]) -> Result<Image, Error> {
        self.need_open_doors()?;
        let globals = Globals::new(self.runtime());
        let (module, unit, about) = self.open_in(bytes, Context::new(), &globals)?;
        set_globals(&module, &globals, self.runtime())?;
        Ok(Image { program: Program::of_verified(module)?, unit, globals, about })
    }

    /// As [`Engine::open_bytes`], with the names and types of a context, and global variables that are given and not set.
    pub(crate) fn open_in(
        &self,
        bytes: &[u8],
        cx: Arc<Context>,
        globals: &Globals,
    ) -> Result<(Module, Unit, About), Error> {
        let (abi, features) = (abi_of(self.runtime().heap().abi()), self.image_features()?);
        let image = image::read(bytes, cx, &Expected { arch: Arch::HOST, abi, features: &features })?;
        let image::Image {
            module,
            code,
            constants,
            imports_at,
            imports,
            functions,
            exports,
            needs_heap,
            target,
        } = image;
        let signatures: BTreeMap<&str, _> = functions
            .iter()
            .filter_map(|function| Some((function.name.as_str(), function.signature.as_ref()?)))
            .collect();
        let (mut types, mut compiled) = (Vec::new(), Vec::new());
        let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (id, func) in module.funcs() {
            let symbol = func.symbol(&module.cx);
            if signatures.contains_key(symbol.as_str()) {
                let declared = match func.level {
                    Level::High => declared_type(&module.cx, symbol.clone(), &func.sig),
                    Level::Low => Some(function_type(&module, id, func)),
                };
                // A function of this module has code only if it has a native form; for a foreign module this is unknown.
                types.extend(declared);
                compiled.push(id);
                names.entry(func.spelled_name(&module.cx)).or_default().push(symbol.clone());
            }
        }
        for global in module.globals() {
            globals.declare_type(&module.cx, module.cx.names.text(global.name), global.ty);
        }
        let functions: Vec<ImageFunction> = functions.into_iter().map(placed).collect();
        let code = ImageCode {
            code: &code,
            constants: &constants,
            imports_at,
            imports: &imports,
            functions: &functions,
            needs_heap,
        };
        let jit = self.jit();
        let table = jit.runtime().method_table();
        let linkage = ImageLinkage { cx: &module.cx, globals, table: &table };
        let unit = jit.load_image(&code, types, &linkage)?;
        let Making { level, roots, opt, .. } = self.making();
        let recipe =
            Recipe { level, opt: opt.clone(), roots, cache: self.cache().cloned(), compile_limit: None };
        compiled.retain(|&id| module[id].entry().is_some());
        let rows = boxed::rows(&unit, &module, compiled, recipe);
        // The table is one of this runtime's.
        unit.keep_methods(jit.runtime().change_methods_of(&table, rows).unwrap_or_default());
        let about = About { exports: exports.into(), target: target.into() };
        Ok((module, Unit::new(unit, names), about))
    }
}

fn placed(function: image::Function) -> ImageFunction {
    let image::Function { name, offset, size, frame_bytes, lines, frame_maps, signature } = function;
    ImageFunction { name, offset, size, frame_bytes, lines, frame_maps, signature }
}
