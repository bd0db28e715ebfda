//! Calls that are decided at run time, turned into calls of methods: who has such calls is compiled anew when methods come.

use brolga::session::Dylib;
use brolga::{TypedFunc, Workers};

use super::session;

type Int = TypedFunc<(i64,), i64>;

fn kind(ty: &str, n: i64) -> String {
    format!("function kind(x::{ty})::Int64\n1 ─      return {n}\nend\n")
}

/// Asks for the kind of a float if it is given 0, else for that of an integer.
const ASK: &str = "
function ask(n::Int64)::Int64
1 ─ %1 = (n === 0)::Bool
└──      goto #3 if not %1
2 ─ %3 = Base.sitofp(Float64, n)::Float64
└──      goto #4
3 ─      goto #4
4 ┄ %6 = φ (#2 => %3, #3 => n)::Union{Float64, Int64}
│   %7 = dynamic Main.kind(%6)::Any
│   %8 = Core.typeassert(%7, Int64)::Int64
└──      return %8
end
";

fn put(dylib: &Dylib, source: &str, again: bool) {
    let program = dylib.read("p.jlir", source.as_bytes()).unwrap_or_else(|error| panic!("{error}")).lazy();
    let put = if again { dylib.redefine(program).map(drop) } else { dylib.define(program) };
    put.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn who_has_been_led_to_methods_is_compiled_anew_when_there_are_others() {
    for elsewhere in [false, true] {
        let session = session(Workers::Pool(1));
        let library = session.create_dylib("library").unwrap();
        let main = session.create_dylib("main").unwrap();
        main.link_against(&library).unwrap();
        let kinds = if elsewhere { &library } else { &main };
        put(kinds, &(kind("Any", 0) + &kind("Int64", 1)), false);
        put(&main, ASK, false);
        let ask: Int = main.func("ask").unwrap();
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(0), Ok(1)));
        let because = |function: &str| {
            let told: Vec<String> = session.take_invalidations().iter().map(ToString::to_string).collect();
            assert_eq!(told, [format!("`ask(Int64)` of `main` depends on `{function}`, which was defined")]);
        };
        // A method that is more specific.
        put(kinds, &kind("Float64", 2), false);
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(2), Ok(1)));
        because("kind(Float64)");
        // Another one in the place of one that was found.
        put(kinds, &kind("Int64", 3), true);
        assert_eq!((ask.call((0,)), ask.call((5,))), (Ok(2), Ok(3)));
        because("kind(Int64)");
        // What has nothing to do with it.
        put(kinds, &kind("Int64", 4).replace("kind", "other"), false);
        assert_eq!(session.take_invalidations(), []);
    }
}
