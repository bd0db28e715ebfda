//! Symbols of object files in archives that are more than a name and an address, and libraries that are not there.

use brolga::{SessionError, Workers};

use crate::session;

#[test]
fn a_library_that_is_not_there_is_an_error_at_once() {
    let session = session(Workers::Caller);
    let main = session.create_dylib("main").unwrap();
    main.add_process_symbols(|_| true).unwrap();
    let error = main.add_library("/nowhere/libnothing.so").unwrap_err();
    assert!(matches!(error, SessionError::Library(_)), "{error}");
    assert!(error.to_string().contains("/nowhere/libnothing.so"), "{error}");
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod made_by_c {
    use std::process::Command;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use brolga::Workers;
    use brolga::session::Dependants;

    use crate::{dylib, session};

    /// An archive of the C sources, in order.
    fn archive(sources: &[(&str, &str)]) -> Vec<u8> {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("session-archives-{process}-{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        let run = |program: &str, args: &[&str]| {
            let done = Command::new(program).args(args).current_dir(&folder).status();
            assert!(done.is_ok_and(|status| status.success()), "{program} {args:?}");
        };
        let mut args = vec!["rcs".to_owned(), "made.a".to_owned()];
        for (name, source) in sources {
            std::fs::write(folder.join(format!("{name}.c")), source).unwrap();
            run("cc", &["-O1", "-fPIC", "-c", &format!("{name}.c"), "-o", &format!("{name}.o")]);
            args.push(format!("{name}.o"));
        }
        run("ar", &args.iter().map(String::as_str).collect::<Vec<_>>());
        let bytes = std::fs::read(folder.join("made.a")).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
        bytes
    }

    /// The results of C functions of one integer for 1, each called by its own program, in this order.
    fn call(sources: &[(&str, &str)], names: &[&str]) -> Vec<Result<i64, String>> {
        let session = session(Workers::Caller);
        let made = session.create_dylib("made").unwrap();
        made.add_process_symbols(|_| true).unwrap();
        made.add_archive("made.a", &archive(sources)).unwrap();
        let call = |(number, name): (usize, &&str)| {
            let source = format!(
                "function f(x::Int64)::Int64\n\
                 1 ─ %1 = $(Expr(:foreigncall, :(:{name}), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
                 └──      return %1\nend\n"
            );
            let main = dylib(&session, &format!("main {number}"), &source);
            main.link_against(&made).unwrap();
            let func = main.func::<(i64,), i64>("f").map_err(|error| error.to_string())?;
            func.call((1,)).map_err(|error| error.to_string())
        };
        names.iter().enumerate().map(call).collect()
    }

    /// Asserts an error that names all of `wanted`.
    fn names(found: &Result<i64, String>, wanted: &[&str]) {
        let error = found.as_ref().unwrap_err();
        assert!(wanted.iter().all(|name| error.contains(name)), "{error}");
    }

    const WEAK: &str =
        "__attribute__((weak)) long pick(void) { return 1; } long first(long x) { return pick(); }";
    const STRONG: &str = "long pick(void) { return 2; } long second(long x) { return pick(); }";

    #[test]
    fn a_weak_definition_gives_way_to_a_strong_one_whoever_asks_first() {
        for sources in [[("a", WEAK), ("b", STRONG)], [("a", STRONG), ("b", WEAK)]] {
            assert_eq!(call(&sources, &["first", "second"]), [Ok(2), Ok(2)]);
            assert_eq!(call(&sources, &["second", "first", "pick"]), [Ok(2), Ok(2), Ok(2)]);
        }
        assert_eq!(
            call(&[("a", WEAK)], &["first", "pick"]),
            [Ok(1), Ok(1)],
            "it is used where there is no other"
        );
    }

    /// C code uses what it is linked to, as code of programs does: removals ask about it.
    #[test]
    fn code_of_an_archive_is_a_user_of_what_it_is_linked_to() {
        let scale = archive(&[("scale", "long scale(long x) { return 3 * x; }")]);
        let area = archive(&[("area", "long scale(long); long area(long x) { return scale(x) + 1; }")]);
        let source = "function f(x::Int64)::Int64\n\
             1 ─ %1 = $(Expr(:foreigncall, :(:area), Int64, svec(Int64), 0, :(:ccall), :(x)))::Int64\n\
             └──      return %1\nend\n";
        for dependants in [Dependants::Deny, Dependants::Cascade, Dependants::Tombstone] {
            let session = session(Workers::Caller);
            let base = session.create_dylib("base").unwrap();
            base.add_process_symbols(|_| true).unwrap();
            base.add_archive("scale.a", &scale).unwrap();
            let top = session.create_dylib("top").unwrap();
            top.add_process_symbols(|_| true).unwrap();
            top.add_archive("area.a", &area).unwrap();
            top.link_against(&base).unwrap();
            let main = dylib(&session, "main", source);
            main.link_against(&top).unwrap();
            let f = main.func::<(i64,), i64>("f").unwrap();
            assert_eq!(f.call((2,)), Ok(7));
            let cleared = base.clear(dependants);
            // No exception passes C, so code of C stays as long as its callers, whatever is removed.
            assert_eq!(f.call((2,)), Ok(7), "{dependants:?}");
            match dependants {
                Dependants::Deny => {
                    let used = cleared.unwrap_err().to_string();
                    assert!(used.contains("used by `area` of `top`"), "{used}");
                }
                _ => cleared.unwrap(),
            }
            let is_there = main.func::<(i64,), i64>("f").is_ok();
            assert_eq!(is_there, dependants != Dependants::Cascade, "{dependants:?}");
        }
    }

    #[test]
    fn of_weak_definitions_there_is_one() {
        let counter = |name: &str| {
            format!(
                "__attribute__((weak)) long *counter(void) {{ static long n; return &n; }}\n\
                 long {name}(long x) {{ return *counter() += x; }}"
            )
        };
        let (one, two) = (counter("one"), counter("two"));
        assert_eq!(call(&[("a", &one), ("b", &two)], &["one", "two", "one"]), [Ok(1), Ok(2), Ok(3)]);
    }

    #[test]
    fn an_undefined_weak_symbol_is_null() {
        let source = "extern long missing(void) __attribute__((weak));\n\
                      long (*const table[])(void) = {missing};\n\
                      long ask(long x) { return missing || table[0] ? missing() : 7; }";
        assert_eq!(call(&[("a", source)], &["ask"]), [Ok(7)]);
        let there = "long missing(void) { return 8; }";
        assert_eq!(call(&[("a", source), ("b", there)], &["ask"]), [Ok(8)]);
    }

    #[test]
    fn hidden_symbols_are_seen_by_members_alone() {
        let inner = "__attribute__((visibility(\"hidden\"))) long inner(long x) { return x + 1; }\n\
                     long other(long x) { return inner(x) * 10; }";
        let outer = "__attribute__((visibility(\"hidden\"))) long inner(long x); long outer(long x) { return inner(x); }";
        for order in [["outer", "other", "inner"], ["other", "outer", "inner"]] {
            let found = call(&[("a", inner), ("b", outer)], &order);
            let sum: i64 = found[..2].iter().map(|found| found.clone().unwrap()).sum();
            assert_eq!(sum, 22);
            names(&found[2], &["inner"]);
        }
    }

    #[test]
    fn a_function_that_is_chosen_at_run_time_is_chosen_before_it_is_called() {
        let source = "static long fast(long x) { return 2; }\n\
                      static void *choose(void) { return fast; }\n\
                      long chosen(long x) __attribute__((ifunc(\"choose\")));";
        let user = "long chosen(long); long (*pointer)(long) = chosen; long user(long x) { return pointer(x) * 10; }";
        assert_eq!(call(&[("a", source), ("b", user)], &["user", "chosen"]), [Ok(20), Ok(2)]);
    }

    #[test]
    fn functions_that_run_at_loading_have_run() {
        let made = |attribute: &str| {
            format!(
                "static long state = 1; __attribute__(({attribute})) static void run(void) {{ state = 5; }}\n\
                 long get(long x) {{ return state; }}"
            )
        };
        for (attribute, value) in [("constructor", 5), ("constructor(101)", 5), ("destructor", 1)] {
            assert_eq!(call(&[("a", &made(attribute))], &["get"]), [Ok(value)], "{attribute}");
        }
    }

    #[test]
    fn functions_of_the_program_itself_are_refused() {
        let source = "static void run(void) {}\n\
                      __attribute__((section(\".preinit_array\"), used)) static void (*const entry)(void) = run;\n\
                      long get(long x) { return x; }";
        names(&call(&[("a", source)], &["get"])[0], &["a.o", ".preinit_array"]);
    }

    /// Definitions of C++ are equal, so they join no members; but there is one variable.
    #[test]
    fn groups_of_members_are_one_whoever_asks_first() {
        let source = |name: &str| {
            format!(
                "__asm__(\".section .data.n,\\\"awG\\\",@progbits,n,comdat\\n.weak n\\nn: .quad 5\\n.text\\n\");\n\
                 extern long n; long {name}(long x) {{ return n += x; }}"
            )
        };
        let (one, two) = (source("one"), source("two"));
        let sources = [("a", one.as_str()), ("b", two.as_str())];
        assert_eq!(call(&sources, &["one", "two", "one"]), [Ok(6), Ok(7), Ok(8)]);
        assert_eq!(call(&sources, &["two", "one"]), [Ok(6), Ok(7)]);
    }

    #[test]
    fn members_share_thread_local_symbols() {
        let define = "__thread long own = 5; long define(long x) { return own += x; }";
        let using = "extern __thread long own; long using(long x) { return own += 10 * x; }";
        assert_eq!(call(&[("a", define), ("b", using)], &["using", "define"]), [Ok(15), Ok(16)]);
    }

    #[test]
    fn a_symbol_that_two_members_of_one_unit_define_is_refused() {
        let first = "long second(long); long twice(long x) { return 1; } long first(long x) { return x ? second(x) : 0; }";
        let second = "long first(long); long twice(long x) { return 2; } long second(long x) { return x ? first(0) : 0; }";
        names(&call(&[("a", first), ("b", second)], &["first"])[0], &["b.o", "twice"]);
    }
}
