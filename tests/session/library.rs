//! The methods of Base in sessions: programs share one library, which all other definitions override.

use brolga::ir::Module;
use brolga::session::{Dylib, Evaluator};
use brolga::{OptLevel, Options, Program, Session, Workers};

/// Measures whatever it is given, by a call that is decided at run time.
const MEASURE: &str = "
function measure(x::Any)::Any
1 ─ %1 = Base.length(x)::Any
└──      return %1
end
";

/// The same under another name, and a list with its own length.
const LIST: &str = "
mutable struct List
    size::Int64
end

function Base.length(l::List)::Int64
1 ─ %1 = Base.getfield(l, :size)::Int64
└──      return %1
end

function longest(x::Any)::Any
1 ─ %1 = Base.length(x)::Any
└──      return %1
end
";

/// A length of strings that is not the library's.
const OTHER: &str = "
function Base.length(s::String)::Int64
1 ─      return -5
end
";

fn session() -> Session {
    Session::new(crate::doors::open(Options::new()).opt_level(OptLevel::O2), Workers::Caller).unwrap()
}

fn read_text(dylib: &Dylib, text: &str) {
    dylib.define(dylib.read("library.jlir", text.as_bytes()).unwrap()).unwrap();
}

/// The values of expressions, as text.
fn values<'t, const N: usize>(dylib: &Dylib, texts: [&'t str; N]) -> [(&'t str, String); N] {
    let names = Module::new(dylib.session().context().view());
    let mut evaluator = Evaluator::new(dylib, &names);
    texts.map(|text| {
        let value = evaluator.evaluate("input", text).and_then(|value| evaluator.show(&value));
        (text, value.unwrap_or_else(|error| error.to_string()))
    })
}

fn expect<const N: usize>(dylib: &Dylib, expected: [(&str, &str); N]) {
    let given = values(dylib, expected.map(|(text, _)| text));
    assert_eq!(given, expected.map(|(text, value)| (text, value.to_owned())));
}

#[test]
fn a_program_calls_methods_of_base_without_defining_them() {
    let session = session();
    let dylib = session.create_dylib("main").unwrap();
    read_text(&dylib, MEASURE);
    expect(&dylib, [("measure(\"abcd\")", "4"), ("measure((1, 2, 3))", "3"), ("measure(\"häß\")", "3")]);
    // Nothing that uses nothing of it is linked to it.
    let other = session.create_dylib("other").unwrap();
    read_text(&other, "function one()::Int64\n1 ─      return 1\nend\n");
    assert_eq!(other.linking().links().unwrap().len(), 1);
    assert_eq!(dylib.linking().links().unwrap().len(), 2);
    let listed = dylib.methods().unwrap().into_iter().map(|method| method.symbol);
    assert_eq!(listed.collect::<Vec<_>>(), ["measure(Any)"]);
}

#[test]
fn programs_share_one_library() {
    let session = session();
    let (one, two) = (session.create_dylib("one").unwrap(), session.create_dylib("two").unwrap());
    read_text(&one, MEASURE);
    let symbols = session.stats().symbols;
    read_text(&two, MEASURE);
    // `measure` and its body.
    assert_eq!(session.stats().symbols, symbols + 2);
    expect(&one, [("measure(\"ab\")", "2")]);
    expect(&two, [("measure((1, 2))", "2")]);
}

#[test]
fn methods_of_several_programs_and_of_the_library_are_of_one_function() {
    for list_is_first in [false, true] {
        let session = session();
        let (main, lists) = (session.create_dylib("main").unwrap(), session.create_dylib("lists").unwrap());
        if list_is_first {
            read_text(&lists, LIST);
            main.link_against(&lists).unwrap();
            read_text(&main, MEASURE);
        } else {
            read_text(&main, MEASURE);
            read_text(&lists, LIST);
            main.link_against(&lists).unwrap();
        }
        expect(&main, [("measure(List(7))", "7"), ("measure(\"abc\")", "3"), ("longest(\"ab\")", "2")]);
    }
}

#[test]
fn the_library_gives_way_to_a_method_of_the_same_signature_and_comes_back() {
    for other_is_first in [false, true] {
        let session = session();
        let (main, other) = (session.create_dylib("main").unwrap(), session.create_dylib("other").unwrap());
        if other_is_first {
            read_text(&other, OTHER);
        }
        read_text(&main, MEASURE);
        if !other_is_first {
            expect(&main, [("measure(\"abc\")", "3")]);
            read_text(&other, OTHER);
        }
        expect(&main, [("measure(\"abc\")", "-5"), ("measure((1,))", "1")]);
        other.remove(&["Base.length(String)"]).unwrap();
        expect(&main, [("measure(\"abc\")", "3")]);
    }
}

#[test]
fn a_static_call_takes_the_method_of_the_program_before_that_of_the_library() {
    let call = "function strlen(s::String)::Int64\n1 ─ %1 = invoke Base.length(s::String)::Int64\n└──      return %1\nend\n";
    let session = session();
    let (plain, main, other) = (
        session.create_dylib("plain").unwrap(),
        session.create_dylib("main").unwrap(),
        session.create_dylib("other").unwrap(),
    );
    read_text(&other, OTHER);
    read_text(&plain, call);
    expect(&plain, [("strlen(\"abc\")", "3")]);
    main.link_against(&other).unwrap();
    read_text(&main, &call.replace("strlen", "size"));
    expect(&main, [("size(\"abc\")", "-5")]);
    expect(&plain, [("strlen(\"abc\")", "3")]);
}

#[test]
fn programs_that_were_read_before_are_defined_in_one_dylib() {
    let session = session();
    let dylib = session.create_dylib("main").unwrap();
    let text = "function first()::Int64\n1 ─ %1 = Base.length(\"häß\")::Any\n│   %2 = Core.typeassert(%1, Main.Int64)::Int64\n└──      return %2\nend\n";
    for name in ["first", "second"] {
        let program = Program::read("program.jlir", text.replace("first", name).as_bytes()).unwrap();
        dylib.define(program).unwrap();
    }
    for name in ["first", "second"] {
        assert_eq!(dylib.func::<(), i64>(name).unwrap().call(()).unwrap(), 3);
    }
}

#[test]
fn a_prompt_calls_methods_of_base() {
    let dylib = session().create_dylib("prompt").unwrap();
    expect(
        &dylib,
        [
            ("Base.length(\"häß\")", "3"),
            ("Base.sqrt(16)", "4.0"),
            ("Base.mod(-7, 3)", "2"),
            ("1 + 2", "3"),
            ("Base.isempty(())", "true"),
            ("Base.first((5, 6))", "5"),
        ],
    );
}

#[test]
fn a_program_may_call_what_is_defined_later() {
    let session = session();
    let dylib = session.create_dylib("main").unwrap();
    let early =
        "function early(n::Int64)::Any\n1 ─ %1 = invoke Main.late(n::Int64)::Any\n└──      return %1\nend\n";
    assert!(dylib.read("early.jlir", early.as_bytes()).is_err());
    let read = dylib.read_late("early.jlir", early.as_bytes()).unwrap();
    assert_eq!(read.missing(), ["`late` has no method for (Int64)"]);
    dylib.define(read).unwrap();
    expect(&dylib, [("early(1)", "uncaught exception: MethodError: no method matching late(::Int64)")]);
    read_text(
        &dylib,
        "function late(n::Int64)::Any\n1 ─ %1 = Base.add_int(n, 40)::Int64\n└──      return %1\nend\n",
    );
    expect(&dylib, [("early(2)", "42")]);
}

#[test]
fn a_missing_c_function_matters_where_it_is_reached() {
    let session = session();
    let dylib = session.create_dylib("main").unwrap();
    let text = "function cold(n::Int64)::Int64\n1 ─ %1 = Base.slt_int(n, 0)::Bool\n└──      goto #3 if not %1\n\
                2 ─ %3 = $(Expr(:foreigncall, :(:nobody_has_this), Int64, svec(Int64), 0, :(:ccall), :(n)))::Int64\n\
                └──      return %3\n3 ─      return n\nend\n";
    dylib.define(dylib.read_late("cold.jlir", text.as_bytes()).unwrap()).unwrap();
    expect(&dylib, [("cold(5)", "5")]);
    let [(_, thrown)] = values(&dylib, ["cold(-1)"]);
    assert!(thrown.contains("nobody_has_this"), "{thrown}");
}
