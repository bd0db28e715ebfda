//! Programs and C code that open, search and close dylibs of their session, and functions that run at its end.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use std::sync::{Arc, Mutex};

use brolga::session::{Dependants, Dylib};
use brolga::{Session, SessionError, Workers};

use super::kinds::each;
use super::objects::{c, call, whole};
use super::{dylib, session};

/// A dylib that says when it is opened and closed, and has a function of each language.
fn plugin(session: &Session) -> Dylib {
    let text = "\
function up()::Nothing
1 ─      invoke Base.print(\"up \"::String)::Nothing
└──      return nothing
end
function down()::Nothing
1 ─      invoke Base.print(\"down \"::String)::Nothing
└──      return nothing
end
function twice(n::Int64)::Int64
1 ─ %1 = Base.add_int(n, n)::Int64
└──      return %1
end
function text(s::String)::String
1 ─      return s
end
";
    let plugin = session.create_dylib("plugin").unwrap();
    let program = plugin.read("plugin.jlir", text.as_bytes()).unwrap();
    plugin.define(program.initializer("up").finalizer("down")).unwrap();
    plugin
        .add_object("plugin.o", &c("long variable = 40; long thrice(long n) { return variable++ + 3 * n; }"))
        .unwrap();
    plugin
}

fn loader(session: &Session) -> Dylib {
    session.create_loader("loader", |session, name| session.dylib(name.unwrap_or("main"))).unwrap()
}

fn printed(session: &Session) -> String {
    String::from_utf8(session.runtime().sink().take_captured()).unwrap()
}

/// C code with a function for each that the loader has.
const USER: &str = "\
#include <string.h>\n\
extern void *dlopen(const char *, int), *dlsym(void *, const char *);\n\
extern int dlclose(void *), dlupdate(void *);\n\
extern char *dlerror(void);\n\
static void *handle;\n\
long open(long n) { void *again = dlopen(\"plugin\", n); long same = !handle || handle == again; handle = again; return again && same; }\n\
long thrice(long n) { long (*f)(long) = dlsym(handle, \"thrice\"); return f(n); }\n\
long twice(long n) { long (*f)(long) = dlsym(handle, \"twice\"); return f(n); }\n\
long variable(long n) { return *(long *)dlsym(handle, \"variable\"); }\n\
long update(long n) { return dlupdate(handle); }\n\
long close(long n) { return dlclose(handle); }\n\
long own(long n) { long (*f)(long) = dlsym(0, \"own\"); return n ? f(0) + 1 : 10; }\n\
long whole(long n) { return dlopen(0, n) == dlopen(\"main\", n); }\n\
long said(long n) { const char *why = dlerror(); return why && strstr(why, n == 0 ? \"`nowhere`\" : n == 1 ? \"handle\" : \"C cannot call\") ? 1 : why ? -1 : 0; }\n\
long wrong(long n) {\n\
  if (n == 0) return dlopen(\"nowhere\", 1) == 0;\n\
  if (n == 1) return dlsym((void *)12345, \"twice\") == 0;\n\
  if (n == 2) return dlsym(handle, \"text\") == 0;\n\
  if (n == 3) return dlclose((void *)12345) == -1 && dlupdate((void *)-1) == -1;\n\
  return dlsym(handle, \"nowhere\") == 0;\n\
}\n";

#[test]
fn code_in_c_opens_searches_and_closes_dylibs() {
    let session = session(Workers::Caller);
    let (plugin, loader) = (plugin(&session), loader(&session));
    let main = session.create_dylib("main").unwrap();
    main.link_against(&loader).unwrap();
    main.add_process_symbols(|name| name.starts_with("str")).unwrap();
    main.add_object("user.o", &c(USER)).unwrap();
    let ask = |name, n| call(&main, name, n);
    assert_eq!((ask("open", 1), printed(&session).as_str()), (Ok(1), "up "));
    assert_eq!((ask("thrice", 5), ask("twice", 5), ask("variable", 0)), (Ok(55), Ok(10), Ok(41)));
    // Of two openings the second close is the last.
    assert_eq!((ask("open", 1), ask("close", 0), printed(&session).as_str()), (Ok(1), Ok(0), ""));
    let more = "function later()::Nothing\n1 ─      invoke Base.print(\"later \"::String)::Nothing\n└──      return nothing\nend\n";
    plugin.define(plugin.read("more.jlir", more.as_bytes()).unwrap().initializer("later")).unwrap();
    assert_eq!((ask("update", 0), printed(&session).as_str()), (Ok(0), "later "));
    assert_eq!((ask("own", 1), ask("whole", 2)), (Ok(11), Ok(1)));

    assert_eq!(
        (ask("said", 0), ask("wrong", 0), ask("said", 0), ask("said", 0)),
        (Ok(0), Ok(1), Ok(1), Ok(0))
    );
    assert_eq!((ask("wrong", 1), ask("said", 1)), (Ok(1), Ok(1)));
    assert_eq!((ask("wrong", 2), ask("said", 2)), (Ok(1), Ok(1)));
    assert_eq!((ask("wrong", 3), ask("said", 1)), (Ok(1), Ok(1)));
    // The reasons are each thread's.
    assert_eq!(ask("wrong", 4), Ok(1));
    std::thread::scope(|scope| assert_eq!(scope.spawn(|| ask("said", 0)).join().unwrap(), Ok(0)));
    assert_eq!(ask("said", 0), Ok(1));

    assert_eq!((ask("close", 0), printed(&session).as_str()), (Ok(0), "down "));
    assert_eq!((ask("close", 0), ask("said", 1)), (Ok(-1), Ok(1)));
    assert!(plugin.close().is_err(), "it is not open");
    // Of the dylib that sees itself by a handle nothing is left that keeps the session.
    assert!(session.end().is_empty());
}

#[test]
fn programs_open_dylibs_at_each_level() {
    let program = "\
function main(n::Int64)::Int64
1 ─ %1 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), \"plugin\"))::Ptr{UInt8}
│   %2 = $(Expr(:foreigncall, :(:dlopen), Ptr{Nothing}, svec(Ptr{UInt8}, Int32), 0, :(:ccall), :(%1), 1))::Ptr{Nothing}
│   %3 = $(Expr(:foreigncall, :(:jl_string_ptr), Ptr{UInt8}, svec(Any), 0, :(:ccall), \"twice\"))::Ptr{UInt8}
│   %4 = $(Expr(:foreigncall, :(:dlsym), Ptr{Nothing}, svec(Ptr{Nothing}, Ptr{UInt8}), 0, :(:ccall), :(%2), :(%3)))::Ptr{Nothing}
│   %5 = $(Expr(:foreigncall, :(%4), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64
│   %6 = invoke Main.dlclose(%2::Ptr{Nothing})::Int32
│   %7 = Base.sext_int(Int64, %6)::Int64
│   %8 = Base.add_int(%5, %7)::Int64
└──      return %8
end
";
    each(|session, kind, at| {
        plugin(session);
        let loader = loader(session);
        let main = session.create_dylib("main").unwrap();
        main.link_against(&loader).unwrap();
        main.define(kind.of(main.read("main.jlir", program.as_bytes()).unwrap())).unwrap();
        let call = main.func::<(i64,), i64>("main").unwrap_or_else(|error| panic!("{at}: {}", whole(&error)));
        assert_eq!(call.call((21,)).unwrap(), 42, "{at}");
        assert_eq!(printed(session), "up down ", "{at}");
    });
}

#[test]
fn functions_run_at_the_end_the_last_one_first() {
    let session = session(Workers::Caller);
    let loader = loader(&session);
    let text = "\
function first()::Nothing
1 ─      invoke Base.print(\"first \"::String)::Nothing
└──      return nothing
end
function bad()::Nothing
1 ─      invoke Base.error(\"no luck\"::String)::Union{}
└──      unreachable
end
function last()::Nothing
1 ─      invoke Base.print(\"last \"::String)::Nothing
└──      return nothing
end
function register()::Int32
1 ─ %1 = $(Expr(:cfunction, Ptr{Nothing}, :(Main.first), Nothing, svec(), :(:ccall)))::Ptr{Nothing}
│   %2 = $(Expr(:cfunction, Ptr{Nothing}, :(Main.bad), Nothing, svec(), :(:ccall)))::Ptr{Nothing}
│        $(Expr(:foreigncall, :(:atexit), Int32, svec(Ptr{Nothing}), 0, :(:ccall), :(%1)))::Int32
│   %4 = $(Expr(:foreigncall, :(:atexit), Int32, svec(Ptr{Nothing}), 0, :(:ccall), :(%2)))::Int32
└──      return %4
end
";
    let main = session.create_dylib("main").unwrap();
    main.link_against(&loader).unwrap();
    main.define(main.read("main.jlir", text.as_bytes()).unwrap().finalizer("last")).unwrap();
    main.open().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = |name: &'static str| {
        let order = order.clone();
        move || {
            order.lock().unwrap().push(name);
            Ok(())
        }
    };
    session.at_exit(note("below")).unwrap();
    assert_eq!(main.func::<(), i32>("register").unwrap().call(()).unwrap(), 0);
    session.at_exit(note("above")).unwrap();
    // What is given while they run is next.
    let (again, noted) = (session.clone(), note("between"));
    session.at_exit(move || again.at_exit(noted)).unwrap();
    let thrown = session.end();
    assert!(
        matches!(thrown.as_slice(), [SessionError::Initializer { reason, .. }] if reason.contains("no luck")),
        "{thrown:?}"
    );
    assert_eq!(*order.lock().unwrap(), ["between", "above", "below"]);
    assert_eq!(printed(&session), "first last ");
    assert!(session.at_exit(|| Ok(())).is_err() && session.end().is_empty());
}

#[test]
fn a_loader_goes_with_its_dylib_and_leaves_nothing() {
    let session = session(Workers::Caller);
    let main = dylib(&session, "main", "function f()::Int64\n1 ─      return 1\nend\n");
    let name = "loader";
    for _ in 0..3 {
        let loader = session.create_loader(name, |_, _| None).unwrap();
        assert!(session.create_loader(name, |_, _| None).is_err(), "the name is taken");
        main.link_against(&loader).unwrap();
        assert!(main.c_symbol("dlopen").is_ok());
        session.close_dylibs(&[&loader], Dependants::Keep).unwrap();
        assert!(main.c_symbol("dlopen").is_err());
    }
    let (before, stats) = (session.stats().placed, |session: &Session| session.stats().placed);
    let loader = session.create_loader(name, |_, _| None).unwrap();
    session.close_dylibs(&[&loader], Dependants::Keep).unwrap();
    assert_eq!(stats(&session), before);
}
