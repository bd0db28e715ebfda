//! Packages: code that was built ahead of time equals that of a session, and only changed functions are compiled.

#[path = "support/doors.rs"]
mod doors;

use brolga::ir::Module;
use brolga::options::Roots;
use brolga::session::{Dependants, Evaluator, PackageBuild, PackageImage, Reason, Session, Workers};
use brolga::{OptLevel, Options};

const SOURCE: &str = include_str!("support/outlives.jlir");

/// The dependencies of the application.
const LIBRARY: &str = include_str!("support/library.jlir");

/// Functions that see different parts of the library.
const APPLICATION: &str = include_str!("support/application.jlir");

fn options() -> Options {
    crate::doors::open(Options::new())
}

fn session(options: Options) -> Session {
    Session::new(options, Workers::Caller).unwrap()
}

fn build(build: &PackageBuild, programs: &[(&str, &str)], options: Options) -> PackageImage {
    let programs: Vec<(&str, &[u8])> = programs.iter().map(|(name, text)| (*name, text.as_bytes())).collect();
    build.build(&programs, options).unwrap_or_else(|error| panic!("{error}"))
}

/// The values of calls in a session's dylib.
fn values(session: &Session, dylib: &brolga::session::Dylib, calls: &[&str]) -> Vec<String> {
    let module = Module::new(session.context().view());
    let mut evaluator = Evaluator::new(dylib, &module);
    let value = |call: &&str| match evaluator.evaluate("call", call) {
        Ok(value) => evaluator.show(&value).unwrap(),
        Err(failure) => failure.to_string(),
    };
    calls.iter().map(value).collect()
}

const CALLS: [&str; 6] = ["total(4)", "guarded(0)", "guarded(5)", "area(Square(7))", "step(2)", "inverse(0)"];

#[test]
fn a_package_is_what_its_program_was_and_compiles_nothing() {
    for level in [OptLevel::O0, OptLevel::O2] {
        for roots in [Roots::Maps, Roots::Linked] {
            for tiers in [None, Some(3)] {
                for stress in [false, true] {
                    let how = || options().opt_level(level).roots(roots).gc_stress(stress);
                    let made = tiers.map_or(PackageBuild::new("outlives"), |calls| {
                        PackageBuild::new("outlives").tiered(calls)
                    });
                    let package = build(&made, &[("outlives.jlir", SOURCE)], how());
                    assert_eq!(package.left_out, []);
                    let (with, without) = (session(how()), session(how()));
                    let dylib = with.create_dylib("main").unwrap();
                    let opened = dylib.open_package_bytes(package.bytes).unwrap();
                    assert_eq!((opened.name(), opened.id()), ("outlives", package.id));
                    let plain = without.create_dylib("main").unwrap();
                    plain.define(plain.read("outlives.jlir", SOURCE.as_bytes()).unwrap().lazy()).unwrap();
                    for _ in 0..3 {
                        assert_eq!(
                            values(&with, &dylib, &CALLS),
                            values(&without, &plain, &CALLS),
                            "{level:?} {roots:?} {tiers:?}"
                        );
                    }
                    with.optimize_hot();
                    assert_eq!(values(&with, &dylib, &["guarded(5)"]), ["201"]);
                    assert_eq!(with.recompiled(), []);
                    assert_eq!(with.stats().compiled_functions, 0, "{level:?} {roots:?} {tiers:?}");
                }
            }
        }
    }
}

/// Thread-local variables of a package belong to the dylib in which it is opened.
#[test]
fn threads_have_their_own_variables_of_a_package() {
    for level in [OptLevel::O0, OptLevel::O2] {
        let how = || options().opt_level(level);
        let text = include_str!("support/thread_local.jlir");
        let package = build(&PackageBuild::new("own"), &[("own.jlir", text)], how());
        assert_eq!(package.left_out, []);
        let session = session(how());
        let dylib = session.create_dylib("main").unwrap();
        dylib.open_package_bytes(package.bytes).unwrap();
        let call = |name: &str, n: i64| dylib.func::<(i64,), i64>(name).unwrap().call((n,)).unwrap();
        let all = || (call("last", -1), call("inc", 5), call("last", -1));
        let elsewhere = || std::thread::scope(|threads| threads.spawn(all).join().unwrap());
        assert_eq!(
            (all(), elsewhere(), all()),
            ((-1, 105, 105), (-1, 105, 105), (105, 110, 110)),
            "{level:?}"
        );
        assert_eq!(session.stats().compiled_functions, 0, "{level:?}");
        // A program of the dylib means the same variable.
        let reads = "function reads(n::Int64)::Int64\n1 ─ %1 = Main.count::Int64\n└──      return %1\nend\n";
        dylib.define(dylib.read("reads.jlir", reads.as_bytes()).unwrap()).unwrap();
        assert_eq!(call("reads", 0), 110, "{level:?}");
        session.end();
    }
}

/// Library and application as two programs of one package.
fn both() -> PackageImage {
    build(&PackageBuild::new("both"), &[("library.jlir", LIBRARY), ("app.jlir", APPLICATION)], options())
}

const VALUES: [&str; 5] = ["scaled(5)", "shifted(5)", "twice(5)", "alone(5)", "weighed(5)"];

#[test]
fn exactly_what_a_change_concerns_is_compiled_again() {
    let against = PackageBuild::new("application").against("library.jlir", LIBRARY);
    let application = build(&against, &[("app.jlir", APPLICATION)], options());
    let opened = |library: &str| {
        let (with, without) = (session(options()), session(options()));
        let mut seen = Vec::new();
        for (session, is_package) in [(&with, true), (&without, false)] {
            let base = session.create_dylib("library").unwrap();
            base.define(base.read("library.jlir", library.as_bytes()).unwrap().lazy().inlinable()).unwrap();
            let main = session.create_dylib("main").unwrap();
            main.link_against(&base).unwrap();
            if is_package {
                main.open_package_bytes(application.bytes.clone()).unwrap();
            } else {
                main.define(main.read("app.jlir", APPLICATION.as_bytes()).unwrap().lazy()).unwrap();
            }
            seen.push(values(session, &main, &VALUES));
        }
        let recompiled: Vec<(String, Vec<Reason>)> =
            with.recompiled().into_iter().map(|it| (it.function, it.reasons)).collect();
        let expected = seen.pop().unwrap();
        (recompiled, seen.pop().unwrap(), expected)
    };
    let of = |function: &str, reasons: &[Reason]| (function.to_owned(), reasons.to_vec());
    let callee = |name: &str| Reason::Callee(name.to_owned());

    let (recompiled, got, expected) = opened(LIBRARY);
    assert_eq!((recompiled, &got), (vec![], &expected));
    assert_eq!(got, ["16", "107", "32", "25", "1"]);

    let (recompiled, got, expected) = opened(&LIBRARY.replace("mul_int(n, 3)", "mul_int(n, 4)"));
    assert_eq!(got, expected);
    assert_eq!(got, ["21", "107", "42", "25", "1"]);
    assert_eq!(
        recompiled,
        [
            of("scaled(Int64)", &[callee("scale(Int64)")]),
            of("twice(Int64)", &[callee("scaled(Int64)")]),
            of("weighed(Int64)", &[Reason::Anything]),
        ]
    );

    // A method that came: the caller by dispatch may have seen that there was one only.
    let more = format!(
        "{LIBRARY}function weigh(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, n)::Int64\n└──      return %1\nend\n"
    );
    let (recompiled, got, expected) = opened(&more);
    assert_eq!(got, expected);
    assert_eq!(got, ["16", "107", "32", "25", "10"]);
    assert_eq!(recompiled, [of("weighed(Int64)", &[Reason::Anything])]);
}

#[test]
fn functions_of_a_package_are_redefined_and_removed_like_others() {
    let session = session(options());
    let main = session.create_dylib("main").unwrap();
    let opened = main.open_package_bytes(both().bytes).unwrap();
    assert_eq!(values(&session, &main, &VALUES), ["16", "107", "32", "25", "1"]);
    assert_eq!(session.stats().compiled_functions, 0);
    let text = "function scale(n::Int64)::Int64\n1 ─      return n\nend";
    main.redefine(main.read("scale.jlir", text.as_bytes()).unwrap()).unwrap();
    assert_eq!(values(&session, &main, &VALUES), ["6", "107", "12", "25", "1"]);
    opened.close(Dependants::Tombstone).unwrap();
    assert!(values(&session, &main, &["alone(5)"])[0].contains("alone"), "it is gone");
    assert!(opened.close(Dependants::Tombstone).is_err());
}

#[test]
fn packages_stack_by_exact_builds() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("library.pkg");
    let write = |text: &str| {
        let library = build(&PackageBuild::new("library"), &[("library.jlir", text)], options());
        brolga::image::write(&path, &library.bytes).unwrap();
        library
    };
    let old = write(LIBRARY);
    let application =
        build(&PackageBuild::new("application").needs(&path), &[("app.jlir", APPLICATION)], options());
    let other = write(&LIBRARY.replace("n, 3", "n, 5"));
    assert_ne!(old.id, other.id);
    let open = |library: Option<&PackageImage>| {
        let session = session(options());
        let (base, main) = (session.create_dylib("base").unwrap(), session.create_dylib("main").unwrap());
        main.link_against(&base).unwrap();
        if let Some(library) = library {
            base.open_package_bytes(library.bytes.clone()).unwrap();
        }
        main.open_package_bytes(application.bytes.clone()).map_err(|error| error.to_string())?;
        let values = values(&session, &main, &VALUES);
        assert_eq!(session.stats().compiled_functions, 0);
        Ok::<_, String>(values)
    };
    assert_eq!(open(Some(&old)).unwrap(), ["16", "107", "32", "25", "1"]);
    assert!(open(None).unwrap_err().contains("needs `library`"));
    let refused = open(Some(&other)).unwrap_err();
    assert!(refused.contains(&format!("needs `library` of build {}", old.id)), "{refused}");
    assert!(refused.contains(&format!("build {} is open", other.id)), "{refused}");
}

#[test]
fn a_package_is_the_same_by_any_number_of_threads() {
    let built = |threads| {
        let package = PackageBuild::new("outlives").tiered(10).threads(threads);
        build(&package, &[("outlives.jlir", SOURCE)], options()).bytes
    };
    let one = built(1);
    assert!(one == built(1) && one == built(2) && one == built(4));
}

#[test]
fn an_unsuitable_package_is_refused_with_a_reason() {
    let package = build(&PackageBuild::new("p"), &[("p.jlir", LIBRARY)], options());
    let refused = |options: Options, bytes: Vec<u8>| {
        let session = session(options);
        let main = session.create_dylib("main").unwrap();
        let error = main.open_package_bytes(bytes).unwrap_err().to_string();
        assert!(main.methods().unwrap().is_empty(), "nothing is defined");
        error
    };
    let other = refused(options().opt_level(OptLevel::O1), package.bytes.clone());
    assert!(other.contains("the level `O2`") && other.contains("`O1`"), "{other}");
    assert!(refused(Options::new(), package.bytes.clone()).contains("closed"));
    let mut damaged = package.bytes.clone();
    *damaged.last_mut().unwrap() ^= 1;
    assert!(refused(options(), damaged).contains("damaged"));
    // A name that is taken: nothing of the package is there afterwards.
    let session = session(options());
    let main = session.create_dylib("main").unwrap();
    let shift = "function shift(n::Int64)::Int64\n1 ─      return n\nend";
    main.define(main.read("shift.jlir", shift.as_bytes()).unwrap()).unwrap();
    assert!(main.open_package_bytes(package.bytes).unwrap_err().to_string().contains("shift"));
    assert_eq!(main.methods().unwrap().len(), 1);
    assert_eq!(values(&session, &main, &["shift(1)"]), ["1"]);
}

#[test]
fn functions_that_are_not_named_are_compiled_where_they_are_called() {
    let only = PackageBuild::new("p").only(["scale(Int64)".to_owned()]);
    let package = build(&only, &[("p.jlir", LIBRARY)], options());
    let session = session(options());
    let main = session.create_dylib("main").unwrap();
    main.open_package_bytes(package.bytes).unwrap();
    assert_eq!(values(&session, &main, &["scale(2)"]), ["6"]);
    assert_eq!(session.stats().compiled_functions, 0);
    assert_eq!(values(&session, &main, &["shift(2)"]), ["102"]);
    assert_eq!(session.stats().compiled_functions, 1);
    assert_eq!(session.recompiled(), [], "the package never had code for it");
}
