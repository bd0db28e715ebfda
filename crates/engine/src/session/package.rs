//! Packages: programs with their code, built ahead of time and opened by path in a session.
//!
//! ```text
//!   build:  texts ── read, define, compile everything in a session that records ───► units, edges, modules ──► file
//!   open:   file ── checks ──► modules ── defined like programs read from text ► a function is needed ──► key ──► its unit, linked
//!                                                                                                       └──► compiled, with the reason in the report
//! ```
//!
//! Unlike in an [image](crate::image), nothing in a package is bound: each unit calls others through cells, so its functions are evicted,
//! tiered up, redefined and removed like all others of a session, and code compiled in the process calls them and is called by them.
//!
//! **Validation.** Opening a package validates nothing. When a function is to be compiled, the key of its unit is computed from the *present* definitions:
//! the function, the functions that it may call, wherever they are defined, global variables, types (`cached/keys.rs`). If the package has no unit under
//! that key, the function is compiled and [`Session::recompiled`] lists the inputs that have changed. So a package can be opened with other versions of the
//! programs that it was built against.
//!
//! **Needs.** A package built on others records their build ids, and is opened only where exactly these builds are open.
//!
//! **Trust.** A package is machine code; it requires [open doors](crate::Options::doors).
//!
//! Cost: opening computes a checksum, and reads, verifies and defines the module of each program. The first use of a function computes its key
//! and links its unit.
//!
//! Not done: continuations of first-tier loops, which are compiled when a loop is first left.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brolga_aot::image::{ImageError, read_file};
use brolga_aot::package::{self, Key, Need, Note, Package, PackageParts, StoredProgram};
use brolga_cache::Digest;
use brolga_codegen::linkage::CallKind;
use brolga_ir::doors::Door;
use brolga_ir::{Context, FunctionName, Module, binary};
use brolga_linking::{Dependants, OnDrop, Until};

use brolga_aot::package::BuildId;

use super::Session;
use super::definitions::Definitions;
use super::dylib::Dylib;
use super::error::SessionError;
use super::function::answer;
use super::linking;
use super::scope::with_others;
use super::target::Native;
use super::workers::Workers;
use crate::boxed::Declared;
use crate::cached::{Collected, Packages};
use crate::error::Error;
use crate::options::Options;
use crate::sync::lock;
use brolga_codegen::native_type::type_of;
use brolga_jit::abi::abi_of;

/// The settings for building a package.
///
/// ```
/// # extern crate brolga_engine as brolga;
/// use brolga::session::{PackageBuild, Session, Workers};
/// use brolga::Options;
/// use brolga_runtime::Doors;
/// const HALF: &[u8] = "
/// function half(n::Int64)::Int64
/// 1 ─ %1 = Base.checked_sdiv_int(n, 2)::Int64
/// └──      return %1
/// end".as_bytes();
///
/// // SAFETY: the package is the one that is built here.
/// let options = || Options::new().doors(unsafe { Doors::open() });
/// let package = PackageBuild::new("halves").build(&[("half.jlir", HALF)], options())?;
///
/// let session = Session::new(options(), Workers::Caller)?;
/// let main = session.create_dylib("main")?;
/// main.open_package_bytes(package.bytes)?;
/// assert_eq!(main.func::<(i64,), i64>("half")?.call((8,))?, 4);
/// assert_eq!(session.stats().compiled_functions, 0, "its code was there");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackageBuild {
    name: String,
    tiers: Option<u32>,
    needs: Vec<PathBuf>,
    /// Programs by name and text.
    against: Vec<(String, Vec<u8>)>,
    only: Option<BTreeSet<String>>,
    threads: usize,
}

/// A built package.
#[derive(Clone, Debug)]
pub struct PackageImage {
    /// The file ([`image::write`](crate::image::write)).
    pub bytes: Vec<u8>,
    /// Its build id.
    pub id: BuildId,
    /// The number of its units.
    pub units: usize,
    /// The functions without code in it, by symbol, with the reason.
    pub left_out: Vec<(String, String)>,
}

impl PackageBuild {
    /// Creates the settings of a package of this name, with second-tier code for all functions.
    pub fn new(name: impl Into<String>) -> PackageBuild {
        let (needs, against) = Default::default();
        PackageBuild { name: name.into(), tiers: None, needs, against, only: None, threads: 1 }
    }

    /// Includes code of both tiers: where the package is opened, functions are promoted to the second tier after `calls` calls.
    #[must_use]
    pub fn tiered(mut self, calls: u32) -> PackageBuild {
        self.tiers = Some(calls);
        self
    }

    /// Builds on another package, which must be open wherever this one is opened.
    #[must_use]
    pub fn needs(mut self, path: impl Into<PathBuf>) -> PackageBuild {
        self.needs.push(path.into());
        self
    }

    /// Builds against a program that will be present where the package is opened, defined lazily and [inlinable](Definitions::inlinable) in a dylib that its own dylib sees. The package contains no
    /// part of it. If that program differs there, or is defined differently, the functions that depend on the difference are compiled.
    #[must_use]
    pub fn against(mut self, name: impl Into<String>, text: impl Into<Vec<u8>>) -> PackageBuild {
        self.against.push((name.into(), text.into()));
        self
    }

    /// Includes code only for these functions, by symbol; the others are compiled where they are called.
    #[must_use]
    pub fn only(mut self, functions: impl IntoIterator<Item = String>) -> PackageBuild {
        self.only = Some(functions.into_iter().collect());
        self
    }

    /// Compiles with `threads` threads; the package is the same for any number.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> PackageBuild {
        self.threads = threads.max(1);
        self
    }

    /// Builds the package: defines the programs one after the other in one dylib, so that each sees the earlier ones, and compiles them.
    ///
    /// # Errors
    /// The doors are closed; a program is broken; a needed package cannot be opened; the package would be too large.
    pub fn build(&self, programs: &[(&str, &[u8])], options: Options) -> Result<PackageImage, SessionError> {
        let mut options = options.settled();
        // Units found in a cache would be missing in the package.
        options.cache = None;
        let runtime = brolga_runtime::Runtime::new(std::mem::take(&mut options.runtime));
        let workers = if self.threads > 1 { Workers::Pool(self.threads) } else { Workers::Caller };
        let session = Session::make(runtime, Context::new(), options, workers, Packages::collecting())?;
        session.need("building a package", Door::NativeCode)?;
        let main = session.create_dylib(&self.name)?;
        let needs = self.open_needs(&session, &main)?;
        let mut stored = Vec::new();
        let mut declared = Vec::new();
        let mut symbols = Vec::new();
        for &(name, text) in programs {
            let definitions = main.read_late(name, text)?;
            let module = &definitions.module;
            let own = with_others(module, definitions.own, |_| None);
            stored.push(StoredProgram {
                name: name.to_owned(),
                tiers: self.tiers,
                module: binary::write(&own),
            });
            symbols.extend(definitions.functions());
            declared.extend(declarations(module, definitions.own));
            main.define(definitions.in_tiers(self.tiers))?;
        }
        symbols.retain(|symbol| self.is_wanted(symbol));
        let mut left_out = main.compile_all(&symbols)?;
        if let Some(library) = session.library_dylib() {
            left_out.extend(self.compile_library(&session, &library, &mut declared)?);
        }
        for (symbol, method, call_kind) in declared.into_iter().filter(|(symbol, ..)| self.is_wanted(symbol))
        {
            let shared = &session.inner.shared;
            if let Err(error) = method.compile(&shared.jit, &shared.recipe, call_kind) {
                left_out.push((symbol, error.to_string()));
            }
        }
        let collected = session.packages().take_collected();
        let bytes = self.file(&session, collected, &needs, &stored)?;
        session.end();
        let package = Package::read(bytes.0, bytes.1).map_err(Error::from)?;
        left_out.sort();
        left_out.dedup();
        Ok(PackageImage {
            id: package.id(),
            units: package.unit_count(),
            left_out,
            bytes: package.into_bytes(),
        })
    }

    fn is_wanted(&self, symbol: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(symbol))
    }

    /// Opens the packages and defines the programs that the package depends on, and links `main` to them.
    fn open_needs(&self, session: &Session, main: &Dylib) -> Result<Vec<Need>, SessionError> {
        let mut needs = Vec::new();
        for path in &self.needs {
            let dylib = session.create_dylib(&path.display().to_string())?;
            let opened = dylib.open_package(path)?;
            needs.push(Need { name: opened.package.name().to_owned(), id: opened.package.id() });
            main.link_against(&dylib)?;
        }
        if !self.against.is_empty() {
            // Not a valid name of a file or package.
            let dylib = session.create_dylib("<against>")?;
            for (name, text) in &self.against {
                dylib.define(dylib.read_late(name, text)?.in_tiers(None))?;
            }
            main.link_against(&dylib)?;
        }
        Ok(needs)
    }

    /// Compiles the methods of Base that the programs use, and declares them. Returns the omitted ones.
    fn compile_library(
        &self,
        session: &Session,
        library: &Dylib,
        declared: &mut Vec<Declaration>,
    ) -> Result<Vec<(String, String)>, SessionError> {
        let scope = session.scope(library.linking.id()).unwrap_or_default();
        let used: Vec<String> = scope
            .functions()
            .into_iter()
            .map(|(_, symbol, _)| symbol.to_string())
            .filter(|symbol| self.is_wanted(symbol))
            .collect();
        let left_out = library.compile_all(&used)?;
        for (module, name) in scope.names() {
            let cx = session.context().view();
            let function = FunctionName::of(&cx.names, &module, &name);
            if let Some(methods) = library.declared(cx.types.function_named(function))? {
                declared.extend(declarations(&methods, methods.func_count()));
            }
        }
        Ok(left_out)
    }

    /// The file, and the ABI id of its code.
    fn file(
        &self,
        session: &Session,
        collected: Collected,
        needs: &[Need],
        programs: &[StoredProgram],
    ) -> Result<(Vec<u8>, u64), SessionError> {
        let Collected { units, notes } = collected;
        let units: Vec<(Key, &[u8])> = units.iter().map(|(key, unit)| (*key, unit.as_slice())).collect();
        let notes = notes.into_iter().map(|((function, tier), edges)| Note { function, tier, edges });
        let notes: Vec<Note> = notes.collect();
        let abi = abi_of(session.runtime().heap().abi());
        let parts = PackageParts {
            name: &self.name,
            abi,
            settings: session.settings(),
            needs,
            programs,
            units: &units,
            notes: &notes,
        };
        let hash = |bytes: &[u8]| {
            let mut digest = Digest::new("package");
            digest.bytes(bytes);
            *digest.finish().as_bytes()
        };
        Ok((package::write(&parts, hash).map_err(Error::from)?, abi))
    }
}

/// A function that dynamic calls may reach: its symbol, its declaration, and how its code is called.
type Declaration = (String, Declared, CallKind);

/// Declares the first `own` functions of a module.
fn declarations(module: &Module, own: usize) -> Vec<Declaration> {
    let declaration = |id| {
        let call_kind = if type_of(module, id).is_some() { CallKind::Cell } else { CallKind::Far };
        Some((module[id].symbol(&module.cx), Declared::new(module, id)?, call_kind))
    };
    module.funcs().take(own).filter_map(|(id, _)| declaration(id)).collect()
}

/// A package that is open in a session. Dropping it changes nothing.
pub struct OpenedPackage {
    session: Session,
    package: Arc<Package>,
    tracker: linking::Tracker<Native>,
}

impl OpenedPackage {
    /// Its name.
    pub fn name(&self) -> &str {
        self.package.name()
    }

    /// Its build id.
    pub fn id(&self) -> BuildId {
        self.package.id()
    }

    /// The number of its units.
    pub fn units(&self) -> usize {
        self.package.unit_count()
    }

    /// Removes its functions, and stops looking for code in it. Code in use stays until it is unused.
    ///
    /// # Errors
    /// The policy forbids it, or the functions were removed before. The package stays open then.
    pub fn close(&self, dependants: Dependants) -> Result<(), SessionError> {
        self.tracker.remove(dependants)?;
        self.session.packages().remove(&self.package);
        Ok(())
    }
}

impl std::fmt::Debug for OpenedPackage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.package.fmt(f)
    }
}

impl Dylib {
    /// Opens a [package](PackageBuild): defines its programs here, lazily or in tiers as it was built, and finds their code in it from now on. It is machine code that runs with all rights of the
    /// process: open what you would load as a library.
    ///
    /// # Errors
    /// The doors are closed. The file cannot be read, is damaged, or was built for another version, heap or processor, or for settings other than the session's; a package that it needs is not open;
    /// the error says which. A program cannot be defined here. Nothing is defined then.
    pub fn open_package(&self, path: impl AsRef<Path>) -> Result<OpenedPackage, SessionError> {
        self.session.need("a package", Door::NativeCode)?;
        self.open_package_bytes(read_file(path.as_ref()).map_err(Error::from)?.into())
    }

    /// As [`Dylib::open_package`], for the bytes of a package.
    ///
    /// # Errors
    /// As [`Dylib::open_package`].
    pub fn open_package_bytes(&self, bytes: Vec<u8>) -> Result<OpenedPackage, SessionError> {
        let session = &self.session;
        session.need("a package", Door::NativeCode)?;
        let abi = abi_of(session.runtime().heap().abi());
        let package = Arc::new(Package::read(bytes, abi).map_err(Error::from)?);
        session.fits(&package).map_err(Error::from)?;
        let tracker = self.create_tracker(OnDrop::Keep)?;
        session.packages().add(package.clone());
        if let Err(error) = self.tracked_by(&tracker).define_stored(&package) {
            session.packages().remove(&package);
            // The definitions have not been used yet.
            let _ = tracker.remove(Dependants::Keep);
            return Err(error);
        }
        Ok(OpenedPackage { session: session.clone(), package, tracker })
    }

    fn define_stored(&self, package: &Package) -> Result<(), SessionError> {
        for (_, tiers, module) in package.programs() {
            // It is verified with what it imports here.
            let module = binary::read_unverified(module, self.context());
            let module = module.map_err(|error| Error::from(ImageError::from(error)))?;
            self.define(self.build_stored(module)?.in_tiers(tiers))?;
        }
        Ok(())
    }

    /// Compiles functions, by symbol, in all their tiers. Returns the functions that cannot be compiled, with the reasons.
    fn compile_all(&self, symbols: &[String]) -> Result<Vec<(String, String)>, SessionError> {
        let linking = self.session.linking();
        let mut lookups = Vec::new();
        for symbol in symbols {
            let whole = linking.symbol(symbol).symbol();
            for part in [whole].into_iter().chain(whole.parts()) {
                let lookup = linking.lookup(vec![self.linking.all()], linking::weak([part]), Until::Ready);
                lookups.push((symbol, lookup));
            }
        }
        let mut failed = Vec::new();
        for (symbol, lookup) in lookups {
            if let Err(error) = answer(self.session.runtime(), lookup)? {
                failed.push((symbol.clone(), SessionError::from(error).to_string()));
            }
        }
        Ok(failed)
    }
}

impl Definitions {
    /// Makes the definitions lazy, or tiered.
    fn in_tiers(self, tiers: Option<u32>) -> Self {
        match tiers {
            Some(calls) => self.tiered(calls).inlinable(),
            None => self.lazy().inlinable(),
        }
    }
}

impl Session {
    /// The packages of the session.
    pub(super) fn packages(&self) -> &Packages {
        self.inner.code.packages()
    }

    /// The name and text of all settings that the session's code depends on.
    fn settings(&self) -> &[(String, String)] {
        self.inner.code.settings()
    }

    /// The dylib of the library, if it has been needed.
    fn library_dylib(&self) -> Option<Dylib> {
        let id = self.inner.library.id()?;
        let linking = lock(&self.inner.homes).get(&id).map(|home| home.linking.clone())?;
        Some(Dylib::new(self.clone(), linking))
    }

    /// Refuses a package that was built for other settings, or on packages that are not open.
    fn fits(&self, package: &Package) -> Result<(), ImageError> {
        let known = self.settings();
        for (name, found) in package.settings() {
            let known = known.iter().find(|(other, _)| other == name).map_or("", |(_, text)| text.as_str());
            if known != found {
                let (what, found, known) = (name.clone(), found.clone(), known.to_owned());
                return Err(ImageError::Settings { what, found, known });
            }
        }
        for need in package.needs() {
            let open = self.packages().open(&need.name);
            if open != Some(need.id) {
                return Err(ImageError::Needs { name: need.name.clone(), id: need.id, open });
            }
        }
        Ok(())
    }
}
