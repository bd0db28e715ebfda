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
//! Opening has the same result as compiling. The module is read into a context, whose types it uses; constants, types and singletons become
//! permanent objects of the run time; methods go into their own table; global variables get their values from the module.
//!
//! ```text
//!   open               imports with their types, global variables, the code in memory
//!   look-up of a name  its row in the tables and its declaration in the module, which is compared with the signature of the code
//!   dynamic call       the first one reads all declarations: rows of the method table
//!   program            the first request reads the whole module and verifies it
//! ```
//!
//! An image has its own trampolines for calls from Rust, one for each signature, so that the first call compiles nothing.
//!
//! Cost: building compiles, with the number of threads in the options (`emission.rs`). Opening neither compiles nor reads functions.
//!
//! Not done: images in sessions, which need symbols and cells for an image's functions; several programs in one image; edges and
//! worlds, so images are closed sets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use brolga_aot::executable::{append, executable_object};
use brolga_aot::image::{self, Expected, ImageParts};
use brolga_codegen::compile::CompileError;
use brolga_codegen::compiled::CompiledFunction;
use brolga_codegen::entry::{compile_entry, entry_function, entry_name};
use brolga_codegen::isa::TargetIsa;
use brolga_codegen::linkage::CallKind;
use brolga_codegen::sig::{FunctionType, Signature};
use brolga_codegen::target::{self, Target, TargetError};
use brolga_gcroots::Lowering as Roots;
use brolga_ir::binary::Stored;
use brolga_ir::doors::Door;
use brolga_ir::heap_abi::HeapAbi;
use brolga_ir::{Arch, Context, Func, FuncId, Module};
use brolga_jit::{
    BuildError, Compiled, Globals, ImageCode, ImageFunction, ImageFunctions, ImageLinkage, JitError,
    JitOptions, Source, Style, WriteCode, compile_for,
};
use brolga_opt::OptLevel;
use brolga_runtime::FrameMaps;
use brolga_runtime::heap::DEFAULT_ABI;

use crate::boxed::{self, Recipe};
use crate::clones::{Clones, with_gain};
use crate::emission::{Emission, weight};
use crate::engine::{Engine, Unit, set_globals};
use crate::error::Error;
use crate::library::Resolved;
use crate::main_call::main_call;
use crate::options::{Options, tier};
use crate::pipeline::{Pipeline, Settings};
use crate::program::Program;
use crate::trim;
use brolga_codegen::native_type::{function_type, type_of_declaration};
use brolga_jit::abi::abi_of;

pub use crate::image_info::{ImageInfo, info, program_id};
pub use crate::library::{Library, LibraryImage};
pub use crate::main_call::UntakenArguments;
pub use crate::options::{BuildReport, Progress};
pub use brolga_aot::executable::{Appended, ExecutableError, Linker, appended};
#[doc(hidden)]
pub use brolga_aot::image::seal;
pub use brolga_aot::image::{Export, HEADER_BYTES, ImageError, ImageFile, read_file};
pub use brolga_codegen::target::help as targets_help;
pub use bytes::Bytes;

/// The settings for building an image.
pub(crate) struct Making<'a> {
    pub(crate) level: OptLevel,
    pub(crate) roots: Roots,
    pub(crate) opt: &'a brolga_opt::Options,
    pub(crate) jit: JitOptions,
    pub(crate) heap: &'a HeapAbi,
    /// The targets; if empty, the target of the JIT's options.
    pub(crate) targets: &'a [Target],
    /// The functions to whose reach the image is trimmed.
    pub(crate) trim: Option<&'a [String]>,
    pub(crate) emission: Emission<'a>,
}

/// Builds an image of a whole program, for the default heap, and returns its bytes. The options select level, passes, roots and processors
/// ([`Options::cpu_target`], [`Options::cpu_targets`]); the same program and options yield the same bytes.
///
/// # Errors
/// A function has no native form, or refers to something that images cannot hold.
pub fn build(program: &Program, options: &Options) -> Result<Vec<u8>, Error> {
    Making::new(options).whole(program.module(), Vec::new(), None)
}

/// As [`build`], with functions that C calls: the image is a shared library that C programs link together with the C library of Brolga (the crate
/// `brolga-capi`). The first call of a function opens the image, as [`Engine::open`] does.
///
/// # Errors
/// As [`build`]; or a function has no C types, or no C name.
pub fn build_library(program: &Program, options: &Options, library: &Library) -> Result<LibraryImage, Error> {
    let module = program.module();
    let resolved = Resolved::new(module, library)?;
    let exported = trim::named(module, &resolved.symbols())?;
    let image = Making::new(options).whole(module, exported, Some(&resolved))?;
    Ok(LibraryImage { image, header: resolved.header(), functions: resolved.symbols() })
}

/// Builds an executable that runs a program: an image with the run time, linked by the system's linker.
///
/// # Errors
/// As [`build`]; the program does not have the called function; the linker fails.
pub fn build_executable(
    program: &Program,
    options: &Options,
    run: Run<'_>,
    linker: &Linker,
    output: impl AsRef<Path>,
) -> Result<(), Error> {
    let image = image_of_run(program, options, run)?;
    Ok(linker.link(&executable_object(&image, run.printed())?, output.as_ref())?)
}

/// Builds an executable that runs a program without a linker: a copy of `launcher`, a program that runs what [`appended`] finds in its own file, with an image. Returns
/// the size of the file in bytes.
///
/// # Errors
/// As [`build`]; the program does not have the called function; the file cannot be written.
pub fn append_executable(
    program: &Program,
    options: &Options,
    run: Run<'_>,
    launcher: impl AsRef<Path>,
    output: impl AsRef<Path>,
) -> Result<u64, Error> {
    let image = image_of_run(program, options, run)?;
    Ok(append(launcher.as_ref(), &image, run.printed(), output.as_ref())?)
}

fn image_of_run(program: &Program, options: &Options, run: Run<'_>) -> Result<Vec<u8>, Error> {
    let call = run.printed().unwrap_or("main()");
    // Errors of the call are reported here, not when the executable starts.
    program.call(call)?;
    let called = trim::named_in(program.module(), call);
    Making::new(options).whole(program.module(), called, None)
}

/// The call that an executable makes.
#[derive(Clone, Copy, Debug)]
pub enum Run<'a> {
    /// `main()`, or `main(Vector{String})` with the arguments of the process.
    Main,
    /// A call, such as `fib(35)`, whose value is printed.
    Value(&'a str),
}

impl<'a> Run<'a> {
    /// The call whose value is printed.
    fn printed(self) -> Option<&'a str> {
        match self {
            Run::Main => None,
            Run::Value(call) => Some(call),
        }
    }
}

/// Writes an image to a file atomically: readers see either the old file or the new one.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: impl AsRef<Path>, image: &[u8]) -> Result<(), Error> {
    Ok(image::write_file(path.as_ref(), image)?)
}

impl<'a> Making<'a> {
    /// The settings from options, for the default heap.
    fn new(options: &'a Options) -> Making<'a> {
        let Options { level, roots, opt, jit, targets, image_threads, progress, report, trim, .. } = options;
        let emission = Emission::new(*image_threads, progress.as_deref(), report.as_deref());
        Making {
            level: *level,
            roots: *roots,
            opt,
            jit: *jit,
            heap: &DEFAULT_ABI,
            targets,
            trim: trim.as_deref(),
            emission,
        }
    }

    /// The image of a module with all of its functions; or, if it is to be trimmed, with the functions reached from these and from the ones that the options name.
    fn whole(
        &self,
        module: &Module,
        mut entries: Vec<FuncId>,
        library: Option<&Resolved>,
    ) -> Result<Vec<u8>, Error> {
        let Some(names) = self.trim else {
            return self.image(module, module.funcs().map(|(id, _)| id), library);
        };
        entries.extend(trim::named(module, names)?);
        if entries.is_empty() {
            return Err(Error::NoEntry { name: None });
        }
        let (module, entries) = trim::trimmed(module, &entries);
        self.image(&module, entries, library)
    }

    /// The image of a module in which these functions and their callees have code.
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
        // A function that a version lacks is the base version's, in the same text.
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
        // In the order of versions, then in program order.
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
        let bases: Vec<usize> = versions.iter().map(|version| version.target.base).collect();
        let is_whole = |version: usize| self.targets.get(version).is_some_and(|target| target.clone_all);
        let (mut functions, constants) = with_gain(functions, constants, &bases, is_whole);
        let Some(first) = versions.first() else { return Err(TargetError::None.into()) };
        let called: BTreeSet<&Signature> =
            functions.iter().filter_map(|function| function.signature).collect();
        let trampolines = called.into_iter().map(|signature| {
            compile_entry(&entry_name(signature), entry_function(signature, &first.isa), &first.isa)
        });
        let trampolines: Vec<CompiledFunction> =
            trampolines.collect::<Result<_, _>>().map_err(not_generated)?;
        let entry = |function| image::Compiled { function, version: 0, signature: None };
        functions.extend(trampolines.iter().map(entry));
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

    /// The versions of an image; the first one has all functions.
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

fn not_generated(error: CompileError) -> BuildError {
    BuildError::Generate(error.into())
}

/// A version of an image.
struct Version {
    isa: TargetIsa,
    target: image::ImageTarget,
    /// The symbols of its functions; `None` for the first version, which has all.
    funcs: Option<BTreeSet<String>>,
}

/// An opened program: its callable functions, and its module, which is read when it is first requested.
#[derive(Clone, Debug)]
pub struct Image {
    functions: Arc<OpenedFunctions>,
    program: Arc<OnceLock<Program>>,
    unit: Unit,
    globals: Globals,
    about: About,
}

/// Facts about an opened image, without its program.
#[derive(Clone, Debug)]
pub(crate) struct About {
    exports: Arc<[Export]>,
    target: Arc<str>,
}

/// The opened code of a program.
pub(crate) struct Opened {
    functions: Arc<OpenedFunctions>,
    pub(crate) unit: Unit,
    about: About,
}

impl Image {
    /// The program: functions and globals, without its source text. The first request reads and verifies it, with the bodies of all
    /// functions.
    ///
    /// # Errors
    /// The image was not written by this version, although it claims to be: its program is malformed.
    pub fn program(&self) -> Result<&Program, Error> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let module = self.functions.stored.module().map_err(ImageError::from)?;
        let program = Program::of_verified(module)?;
        Ok(self.program.get_or_init(|| program))
    }

    /// The names and types of its program.
    pub fn context(&self) -> &Arc<Context> {
        self.functions.stored.cx()
    }

    /// A function without its body: name and signature. The name is as for [`Unit::func`]. `None` if the image has no code for such a function.
    ///
    /// # Errors
    /// As [`Image::program`].
    pub fn declaration(&self, name: &str) -> Result<Option<Func>, Error> {
        let OpenedFunctions { stored, functions, .. } = &*self.functions;
        match functions.find(&self.unit.symbol(name)) {
            Some(image::Found { id: Some(id), .. }) => {
                Ok(stored.declaration(id).map_err(ImageError::from)?)
            }
            _ => Ok(None),
        }
    }

    /// The text of the call that starts the program with these arguments: `main()`, or `main` with a vector of them. `None` if it has no `main`.
    ///
    /// # Errors
    /// There are arguments, and no method `main(Vector{String})`.
    pub fn main_call(&self, args: &[Vec<u8>]) -> Result<Option<String>, UntakenArguments> {
        let symbols = self.functions.functions.named("main");
        main_call(symbols.iter().map(String::as_str), args)
    }

    /// A module with the global variables, and with the declarations of the functions with a bare name.
    pub(crate) fn methods(&self, name: &str) -> Result<Module, Error> {
        let OpenedFunctions { stored, functions, .. } = &*self.functions;
        let mut module = stored.globals().clone();
        for symbol in functions.named(name) {
            let id = functions.find(&symbol).and_then(|found| found.id);
            let declared = id.map(|id| stored.declaration(id)).transpose().map_err(ImageError::from)?;
            if let Some(func) = declared.flatten() {
                let added = module.add_func(func);
                added.map_err(|error| ImageError::Damaged { reason: format!("of `{symbol}`, {error}") })?;
            }
        }
        Ok(module)
    }

    /// Its functions in machine code.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The functions that C calls, in the order of their entry numbers.
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

/// The functions of an image, in the tables of the file and in its module.
#[derive(Debug)]
struct OpenedFunctions {
    stored: Stored<Bytes>,
    functions: Arc<image::Functions>,
    text: image::Text,
}

impl OpenedFunctions {
    /// A module with the declarations of all functions that dynamic calls may reach.
    fn declarations(&self) -> (Module, Vec<FuncId>) {
        let mut module = self.stored.globals().without_functions();
        let with_bodies = self.functions.ids().filter_map(|(id, has_body)| has_body.then_some(id));
        // An unreadable declaration yields no method: its call throws. Reading the image's program reports the error.
        let declared = with_bodies.filter_map(|id| self.stored.declaration(id).ok().flatten());
        let ids = declared.filter_map(|func| module.add_func(func).ok()).collect();
        (module, ids)
    }
}

impl ImageFunctions for OpenedFunctions {
    fn load(&self, name: &str, write: WriteCode<'_>) -> Result<Option<u32>, String> {
        let Some(found) = self.functions.find(name) else { return Ok(None) };
        self.text.load(found.row, write).map_err(|error| error.to_string())?;
        Ok(Some(found.offset))
    }

    fn load_common(&self, write: WriteCode<'_>) -> Result<(), String> {
        self.text.load_tail(write).map_err(|error| error.to_string())
    }

    fn load_all(&self, write: WriteCode<'_>) -> Result<(), String> {
        self.text.load_all(write).map_err(|error| error.to_string())
    }

    fn ty(&self, name: &str) -> Result<Option<FunctionType>, String> {
        let Some(image::Found { id: Some(id), signature: Some(recorded), .. }) = self.functions.find(name)
        else {
            return Ok(None);
        };
        let declared = self.stored.declaration(id).map_err(|error| error.to_string())?;
        let Some(ty) = declared.and_then(|func| type_of_declaration(self.stored.cx(), &func)) else {
            return Ok(None);
        };
        match ty.symbol == name && ty.signature == recorded {
            true => Ok(Some(ty)),
            false => Err(format!(
                "its code has the signature {recorded:?}, and its declaration {:?}",
                ty.signature
            )),
        }
    }

    fn names(&self) -> Vec<String> {
        self.functions.names()
    }

    fn describe(&self) -> Vec<(bool, ImageFunction)> {
        let all = self.functions.all().unwrap_or_default();
        all.into_iter().map(|(is_chosen, function)| (is_chosen, placed(function))).collect()
    }
}

impl Engine {
    /// The settings for images whose code equals the engine's own.
    pub(crate) fn making(&self) -> Making<'_> {
        let (level, opt, roots, jit) = self.settings();
        let emission = Emission::new(1, None, None);
        Making {
            level,
            roots,
            opt,
            jit,
            heap: self.runtime().heap().abi(),
            targets: &[],
            trim: None,
            emission,
        }
    }

    /// Opens an image. It is machine code that runs with all rights of the process: open what you would load as a library.
    ///
    /// # Errors
    /// The doors are closed ([`Options::doors`]). The file cannot be read, is damaged, or was made for another version, heap or processor; the error says which. A symbol that its code
    /// imports is missing. In these cases none of its code has run.
    ///
    /// The code of a function is read from the file, which stays open, when it is looked up or first called: a change or a loss of it in the meantime is an error of that look-up.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Image, Error> {
        self.need_open_doors()?;
        self.open_file(&ImageFile::open(path.as_ref())?)
    }

    /// Refuses images while the doors are closed.
    pub(crate) fn need_open_doors(&self) -> Result<(), Error> {
        match self.has_open_doors() {
            true => Ok(()),
            false => Err(Error::Closed { what: "an image", door: Door::NativeCode }),
        }
    }

    /// As [`Engine::open`], for the bytes of an image, which are shared for as long as it is used. All of them are checked at once.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_bytes(&self, bytes: impl Into<Bytes>) -> Result<Image, Error> {
        self.open_file(&ImageFile::from(bytes))
    }

    /// As [`Engine::open`], for a file that is open already.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_file(&self, file: &ImageFile) -> Result<Image, Error> {
        self.need_open_doors()?;
        let globals = Globals::new(self.runtime());
        let Opened { functions, unit, about } = self.open_in(file, Context::new(), &globals)?;
        set_globals(functions.stored.globals(), &globals, self.runtime())?;
        Ok(Image { functions, program: Arc::default(), unit, globals, about })
    }

    /// As [`Engine::open_bytes`], with the names and types of a context, and existing global variables, which are not set.
    pub(crate) fn open_in(
        &self,
        file: &ImageFile,
        cx: Arc<Context>,
        globals: &Globals,
    ) -> Result<Opened, Error> {
        let (abi, features) = (abi_of(self.runtime().heap().abi()), self.image_features()?);
        let image = image::read(file, cx, &Expected { arch: Arch::HOST, abi, features: &features })?;
        let image::Image {
            module: stored,
            code: text,
            code_bytes,
            constants,
            imports_at,
            imports,
            functions,
            frames,
            exports,
            needs_heap,
            target,
        } = image;
        let opened = Arc::new(OpenedFunctions { stored, functions: Arc::new(functions), text });
        let cx = opened.stored.cx();
        for global in opened.stored.globals().globals() {
            globals.describe(cx, global);
        }
        let listed: Arc<dyn ImageFunctions> = opened.clone();
        let code = ImageCode {
            bytes: code_bytes,
            constants: &constants,
            imports_at,
            imports: &imports,
            functions: &listed,
            needs_heap,
        };
        let frames = FrameMaps::of_rows(frames.returns, frames.starts, frames.words);
        let frames = frames.ok_or_else(|| ImageError::Damaged {
            reason: "the places of roots contradict each other".to_owned(),
        })?;
        let jit = self.jit();
        let table = jit.runtime().method_table();
        let linkage = ImageLinkage { cx, globals, table: &table };
        let unit = jit.load_image(&code, frames, &linkage)?;
        let Making { level, roots, opt, .. } = self.making();
        let recipe =
            Recipe { level, opt: opt.clone(), roots, cache: self.cache_of("image"), compile_limit: None };
        let recipe = Arc::new(recipe);
        let of = unit.downgrade();
        // The table is new and belongs to this runtime.
        let declared = opened.clone();
        let later = jit.runtime().add_methods_later(&table, move || {
            let (module, ids) = declared.declarations();
            boxed::rows(&of, &module, ids, &recipe)
        });
        later.map(|later| unit.keep_later_methods(later));
        let about = About { exports: exports.into(), target: target.into() };
        let unit = Unit::of_image(unit, opened.functions.clone());
        Ok(Opened { functions: opened, unit, about })
    }
}

fn placed(function: image::Function) -> ImageFunction {
    let image::Function { name, offset, size, frame_bytes, lines, inlined, frame_maps, signature } = function;
    ImageFunction { name, offset, size, frame_bytes, lines, inlined, frame_maps, signature }
}
