//! `dlopen` and its family, with which programs and C code open, search and close dylibs of their session.
//!
//! ```text
//!   program or C ── dlopen("plugin") ──► IR: the text of the name ───────► Loader: find the dylib, open it ──► a handle
//!                ── dlsym(handle, "f") ──► its C symbols, and C entries of its functions
//!                ── atexit(f) ──► Session::at_exit ──► Session::end calls f
//! ```
//!
//! They are functions of a separate dylib, with C symbols of their names: a dylib linked to it finds them, unless an earlier one in the link order has the symbols of the process. A handle is a number, so an invalid one is an error. A call that
//! fails returns null or -1, and `dlerror` returns the reason, per thread. Each name is passed in two steps: a closure with a view of a string must not run programs, but opening does.
//!
//! Not done: `mode` is ignored: a look-up compiles what it needs. Addresses from `dlsym` are valid until their symbol is removed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex};

use brolga_ir::doors::Door;
use brolga_linking::{Dependants, DylibId};
use brolga_runtime::TypedHost;

use super::Session;
use super::dylib::{Dylib, WeakDylib};
use super::error::SessionError;
use super::sync::lock;

/// The functions visible to programs and C, with their C names.
const SEEN: [(&str, &str); 6] = [
    ("dlopen", "dlopen(Ptr{UInt8}, Int32)"),
    ("dlsym", "dlsym(Ptr{Nothing}, Ptr{UInt8})"),
    ("dlclose", "dlclose(Ptr{Nothing})"),
    ("dlupdate", "dlupdate(Ptr{Nothing})"),
    ("dlerror", "dlerror()"),
    ("atexit", "atexit(Ptr{Nothing})"),
];

/// Functions called only by the others.
const HIDDEN: &str = "\
function loader_text(name::Ptr{UInt8})::UInt64
1 ─ %1 = Base.bitcast(UInt64, name)::UInt64
│   %2 = Base.eq_int(%1, 0x0000000000000000)::Bool
└──      goto #3 if not %2
2 ─      return 0x0000000000000000
3 ─ %5 = $(Expr(:foreigncall, :(:jl_cstr_to_string), Ref{String}, svec(Ptr{UInt8}), 0, :(:ccall), :(name)))::String
│   %6 = invoke Main.loader_keep(%5::String)::UInt64
└──      return %6
end
function loader_call(f::UInt64)::Nothing
1 ─ %1 = Base.bitcast(Ptr{Nothing}, f)::Ptr{Nothing}
│        $(Expr(:foreigncall, :(%1), Nothing, svec(), 0, :(:ccall)))::Nothing
└──      return nothing
end
";

/// Converts between C's types and the types of the closures.
const PROGRAM: &str = "\
function dlopen(name::Ptr{UInt8}, mode::Int32)::Ptr{Nothing}
1 ─ %1 = invoke Main.loader_text(name::Ptr{UInt8})::UInt64
│   %2 = invoke Main.loader_open(%1::UInt64)::UInt64
│   %3 = Base.bitcast(Ptr{Nothing}, %2)::Ptr{Nothing}
└──      return %3
end
function dlsym(handle::Ptr{Nothing}, name::Ptr{UInt8})::Ptr{Nothing}
1 ─ %1 = invoke Main.loader_text(name::Ptr{UInt8})::UInt64
│   %2 = Base.bitcast(UInt64, handle)::UInt64
│   %3 = invoke Main.loader_find(%2::UInt64, %1::UInt64)::UInt64
│   %4 = Base.bitcast(Ptr{Nothing}, %3)::Ptr{Nothing}
└──      return %4
end
function dlclose(handle::Ptr{Nothing})::Int32
1 ─ %1 = Base.bitcast(UInt64, handle)::UInt64
│   %2 = invoke Main.loader_close(%1::UInt64)::Int32
└──      return %2
end
function dlupdate(handle::Ptr{Nothing})::Int32
1 ─ %1 = Base.bitcast(UInt64, handle)::UInt64
│   %2 = invoke Main.loader_update(%1::UInt64)::Int32
└──      return %2
end
function dlerror()::Ptr{UInt8}
1 ─ %1 = invoke Main.loader_error()::UInt64
│   %2 = Base.bitcast(Ptr{UInt8}, %1)::Ptr{UInt8}
└──      return %2
end
function atexit(f::Ptr{Nothing})::Int32
1 ─ %1 = Base.bitcast(UInt64, f)::UInt64
│   %2 = invoke Main.loader_at_exit(%1::UInt64)::Int32
└──      return %2
end
";

/// The symbol of the function that calls the functions registered by `atexit`.
const CALL: &str = "loader_call(UInt64)";

impl Session {
    /// Creates a dylib with `dlopen`, `dlsym`, `dlclose`, `dlupdate`, `dlerror` and `atexit`, for programs and C code of dylibs linked to it. `find` maps a name to a dylib; it may create one. Without a
    /// name (`dlopen(NULL)`, `dlsym(RTLD_DEFAULT, …)`) a program refers to the dylib that it is part of.
    ///
    /// `dlopen` opens as [`Dylib::open`] does, `dlclose` closes, and `dlupdate` runs the initialisers added since. `dlsym` finds C symbols, and program functions by a bare name if they have a single method with C types.
    /// Functions registered by `atexit` run when the session ends, like those registered by [`Session::at_exit`]; in an object file `atexit` belongs to the file.
    ///
    /// ```
    /// # extern crate brolga_engine as brolga;
    /// # use brolga_runtime::Doors;
    /// use brolga::{Options, Session, Workers};
    ///
    /// const PLUGIN: &str = "function area(r::Float64)::Float64\n1 ─ %1 = Base.mul_float(r, r)::Float64\n└── return %1\nend";
    /// const PROGRAM: &str = r#"
    /// function main(r::Float64)::Float64
    /// 1 ─ %1 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), "plugin"))::Ptr{UInt8}
    /// │   %2 = $(Expr(:foreigncall, :(:dlopen), Ptr{Nothing}, svec(Ptr{UInt8}, Int32), 0, :(:ccall), :(%1), 1))::Ptr{Nothing}
    /// │   %3 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), "area"))::Ptr{UInt8}
    /// │   %4 = $(Expr(:foreigncall, :(:dlsym), Ptr{Nothing}, svec(Ptr{Nothing}, Ptr{UInt8}), 0, :(:ccall), :(%2), :(%3)))::Ptr{Nothing}
    /// │   %5 = $(Expr(:foreigncall, :(%4), Float64, svec(Float64), 0, :(:ccall), :(r)))::Float64
    /// └──      return %5
    /// end"#;
    ///
    /// // SAFETY: the program states the signatures that the functions have.
    /// let doors = unsafe { Doors::open() };
    /// let session = Session::new(Options::new().doors(doors), Workers::Caller)?;
    /// let plugin = session.create_dylib("plugin")?;
    /// plugin.define(plugin.read("plugin.jlir", PLUGIN.as_bytes())?)?;
    /// let loader = session.create_loader("loader", |session, name| session.dylib(name?))?;
    /// let main = session.create_dylib("main")?;
    /// main.link_against(&loader)?;
    /// main.define(main.read("main.jlir", PROGRAM.as_bytes())?)?;
    /// assert_eq!(main.func::<(f64,), f64>("main")?.call((3.0,))?, 9.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The doors are closed ([`Options::doors`](crate::Options::doors)); a dylib of that name exists; the session is ending.
    pub fn create_loader(
        &self,
        name: &str,
        find: impl Fn(&Session, Option<&str>) -> Option<Dylib> + Send + Sync + 'static,
    ) -> Result<Dylib, SessionError> {
        self.need("`Session::create_loader`", Door::NativeCode)?;
        let dylib = self.create_dylib(name)?;
        let loader = Loader { own: dylib.downgrade(), find, state: Mutex::default() };
        match define(&dylib, Arc::new(loader)) {
            Ok(()) => Ok(dylib),
            Err(error) => {
                // Only an ending session refuses, which removes the dylib as well.
                let _ = self.close_dylibs(&[&dylib], Dependants::Keep);
                Err(error)
            }
        }
    }

    /// Runs `function` when the session ends, before the finalisers of its dylibs; the function registered last runs first.
    ///
    /// # Errors
    /// The session has ended.
    pub fn at_exit(
        &self,
        function: impl FnOnce() -> Result<(), SessionError> + Send + 'static,
    ) -> Result<(), SessionError> {
        match &mut *lock(&self.inner.exits) {
            Some(exits) => exits.push(Box::new(function)),
            None => return Err(brolga_linking::Error::SessionEnded.into()),
        }
        Ok(())
    }

    /// Runs the functions registered by [`Session::at_exit`], including functions they register, and returns the errors. Later registrations are refused.
    pub(super) fn run_exits(&self) -> Vec<SessionError> {
        let mut thrown = Vec::new();
        loop {
            let mut exits = lock(&self.inner.exits);
            let Some(last) = exits.as_mut().and_then(Vec::pop) else {
                *exits = None;
                return thrown;
            };
            drop(exits);
            thrown.extend(last().err());
        }
    }
}

/// A function to run when the session ends.
pub(super) type Exit = Box<dyn FnOnce() -> Result<(), SessionError> + Send>;

/// Defines the functions in the loader's dylib.
fn define<F: Find>(dylib: &Dylib, loader: Arc<Loader<F>>) -> Result<(), SessionError> {
    let with = || loader.clone();
    let own = with();
    hide(dylib, "loader_keep", move |text: &str| Ok::<u64, String>(own.keep(text)))?;
    let own = with();
    hide(dylib, "loader_open", move |key: u64| Ok::<u64, String>(or_zero(own.open(key))))?;
    let own = with();
    let find = move |handle: u64, key: u64| Ok::<u64, String>(or_zero(own.symbol(handle, key)));
    hide(dylib, "loader_find", find)?;
    let own = with();
    hide(dylib, "loader_close", move |handle: u64| Ok::<i32, String>(status(own.close(handle))))?;
    let own = with();
    hide(dylib, "loader_update", move |handle: u64| Ok::<i32, String>(status(own.update(handle))))?;
    hide(dylib, "loader_error", || Ok::<u64, String>(take_error()))?;
    hide(dylib, "loader_at_exit", move |f: u64| Ok::<i32, String>(status(loader.at_exit(f))))?;
    dylib.define(dylib.read("loader.jlir", HIDDEN.as_bytes())?.hidden())?;
    dylib.define(dylib.read("loader.jlir", PROGRAM.as_bytes())?)?;
    for (name, symbol) in SEEN {
        dylib.define_c_symbol(name, dylib.function(symbol)?.c_address()?)?;
    }
    Ok(())
}

fn hide<M>(dylib: &Dylib, name: &str, body: impl TypedHost<M>) -> Result<(), SessionError> {
    dylib.define(dylib.typed_host(name, body)?.hidden())
}

/// See [`Session::create_loader`].
trait Find: Fn(&Session, Option<&str>) -> Option<Dylib> + Send + Sync + 'static {}

impl<F: Fn(&Session, Option<&str>) -> Option<Dylib> + Send + Sync + 'static> Find for F {}

struct Loader<F> {
    /// The dylib with the functions.
    own: WeakDylib,
    find: F,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last key or handle.
    last: u64,
    /// Names being passed to the closures.
    names: BTreeMap<u64, String>,
    opened: BTreeMap<u64, Opened>,
}

/// A dylib that programs have open, by its handle.
struct Opened {
    dylib: WeakDylib,
    id: DylibId,
    openings: usize,
}

impl State {
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl<F: Find> Loader<F> {
    /// Keeps a name for the next call, which has its key.
    fn keep(&self, text: &str) -> u64 {
        let mut state = lock(&self.state);
        let key = state.next();
        state.names.insert(key, text.to_owned());
        key
    }

    /// The name with a key; `None` for a null pointer.
    fn name(&self, key: u64) -> Option<String> {
        lock(&self.state).names.remove(&key)
    }

    fn found(&self, name: Option<&str>) -> Result<Dylib, String> {
        let own = self.own.upgrade().map_err(|error| whole(&error))?;
        (self.find)(own.session(), name).ok_or_else(|| match name {
            Some(name) => format!("there is no dylib `{name}`"),
            None => "there is no dylib without a name".to_owned(),
        })
    }

    fn open(&self, key: u64) -> Result<u64, String> {
        let dylib = self.found(self.name(key).as_deref())?;
        dylib.open().map_err(|error| whole(&error))?;
        let mut state = lock(&self.state);
        let id = dylib.linking().id();
        if let Some((&handle, opened)) = state.opened.iter_mut().find(|(_, opened)| opened.id == id) {
            opened.openings += 1;
            return Ok(handle);
        }
        let handle = state.next();
        state.opened.insert(handle, Opened { dylib: dylib.downgrade(), id, openings: 1 });
        Ok(handle)
    }

    fn opened(&self, handle: u64) -> Result<Dylib, String> {
        let known = lock(&self.state).opened.get(&handle).map(|opened| opened.dylib.clone());
        known.ok_or_else(|| no_handle(handle))?.upgrade().map_err(|error| whole(&error))
    }

    fn symbol(&self, handle: u64, key: u64) -> Result<u64, String> {
        let name = self.name(key).ok_or("a symbol has a name")?;
        let dylib = if handle == 0 { self.found(None)? } else { self.opened(handle)? };
        let address = match dylib.c_symbol(&name) {
            Ok(symbol) => symbol.address(),
            Err(missing) => match dylib.function(&name).and_then(|function| function.c_address()) {
                Ok(address) => address,
                Err(SessionError::CEntry(error)) => return Err(format!("`{name}`: {error}")),
                Err(_) => return Err(whole(&missing)),
            },
        };
        Ok(address.addr() as u64)
    }

    fn close(&self, handle: u64) -> Result<(), String> {
        let dylib = self.opened(handle)?;
        let mut state = lock(&self.state);
        let opened = state.opened.get_mut(&handle).ok_or_else(|| no_handle(handle))?;
        opened.openings -= 1;
        if opened.openings == 0 {
            state.opened.remove(&handle);
        }
        drop(state);
        let thrown = dylib.close().map_err(|error| whole(&error))?;
        let all: Vec<String> = thrown.iter().map(whole).collect();
        if all.is_empty() { Ok(()) } else { Err(all.join("; ")) }
    }

    fn update(&self, handle: u64) -> Result<(), String> {
        self.opened(handle)?.update().map_err(|error| whole(&error))
    }

    fn at_exit(&self, function: u64) -> Result<(), String> {
        let own = self.own.upgrade().map_err(|error| whole(&error))?;
        let call = own.func::<(u64,), ()>(CALL).map_err(|error| whole(&error))?;
        let run = move || {
            call.call((function,)).map_err(|error| SessionError::Initializer {
                function: "atexit".to_owned(),
                reason: error.to_string(),
            })
        };
        own.session().at_exit(run).map_err(|error| whole(&error))
    }
}

fn no_handle(handle: u64) -> String {
    format!("there is no open dylib with the handle {handle:#x}")
}

/// An error with its causes.
fn whole(error: &SessionError) -> String {
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

thread_local! {
    /// The next result of `dlerror`, and its last result, which C may read until the next call.
    static ERRORS: RefCell<[Option<CString>; 2]> = const { RefCell::new([None, None]) };
}

fn or_zero(result: Result<u64, String>) -> u64 {
    result.unwrap_or_else(|error| {
        note(error);
        0
    })
}

fn status(result: Result<(), String>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            note(error);
            -1
        }
    }
}

fn note(error: String) {
    let text = CString::new(error.replace('\0', "")).unwrap_or_default();
    ERRORS.with_borrow_mut(|errors| errors[0] = Some(text));
}

/// Takes the thread's last error and returns its address.
fn take_error() -> u64 {
    ERRORS.with_borrow_mut(|errors| {
        errors[1] = errors[0].take();
        errors[1].as_ref().map_or(0, |text| text.as_ptr().expose_provenance() as u64)
    })
}
