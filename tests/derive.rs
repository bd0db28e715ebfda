//! Derived structs in typed calls and functions of the host, in both directions: by registers, in memory, nested, and those that do not fit.
#![cfg(feature = "derive")]

use brolga::host::Struct;
use brolga::limits::Guests;
use brolga::session::{Session, Workers};
use brolga::{
    Brolga, CallError, Engine, ExceptionKind, Limits, LookupError, OptLevel, Options, Program, Unit,
};

#[derive(Brolga, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
}

/// Padding between all fields, of every kind.
#[derive(Brolga, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
#[brolga(name = "Padded")]
struct Mixed {
    is_on: bool,
    wide: i64,
    letter: char,
    small: i16,
    half: f32,
    last: u8,
}

#[derive(Brolga, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Segment {
    from: Point,
    to: Point,
    weight: u8,
}

/// More scalars than travel in registers.
#[derive(Brolga, Clone, Copy, PartialEq, Debug)]
#[repr(C)]
struct Grid {
    a: f64,
    b: f64,
    c: f64,
    d: f32,
    e: f64,
    f: i8,
    g: f64,
    h: f64,
    origin: Point,
}

const TYPES: &str = "
struct Point
    x::Float64
    y::Float64
end
struct Padded
    is_on::Bool
    wide::Int64
    letter::Char
    small::Int16
    half::Float32
    last::UInt8
end
struct Segment
    from::Point
    to::Point
    weight::UInt8
end
struct Grid
    a::Float64
    b::Float64
    c::Float64
    d::Float32
    e::Float64
    f::Int8
    g::Float64
    h::Float64
    origin::Point
end
";

const FUNCTIONS: &str = "
function swap(of::Point)::Point
1 ─ %1 = Base.getfield(of, :x)::Float64
│   %2 = Base.getfield(of, :y)::Float64
│   %3 = %new(Point, %2, %1)::Point
└──      return %3
end
function same(of::Padded)::Padded
1 ─      return of
end
function turn(of::Segment)::Segment
1 ─ %1 = Base.getfield(of, :from)::Point
│   %2 = Base.getfield(of, :to)::Point
│   %3 = Base.getfield(of, :weight)::UInt8
│   %4 = %new(Segment, %2, %1, %3)::Segment
└──      return %4
end
function shift(by::Float64, of::Grid, times::Int64)::Grid
1 ─ %1 = Base.getfield(of, :a)::Float64
│   %2 = Base.add_float(%1, by)::Float64
│   %3 = Base.getfield(of, :b)::Float64
│   %4 = Base.getfield(of, :c)::Float64
│   %5 = Base.getfield(of, :d)::Float32
│   %6 = Base.sitofp(Float64, times)::Float64
│   %7 = Base.getfield(of, :f)::Int8
│   %8 = Base.getfield(of, :g)::Float64
│   %9 = Base.getfield(of, :h)::Float64
│   %10 = Base.getfield(of, :origin)::Point
│   %11 = Base.getfield(%10, :x)::Float64
│   %12 = Base.getfield(%10, :y)::Float64
│   %13 = %new(Point, %12, %11)::Point
│   %14 = %new(Grid, %2, %3, %4, %5, %6, %7, %8, %9, %13)::Grid
└──      return %14
end
function corner(of::Grid)::Float64
1 ─ %1 = Base.getfield(of, :origin)::Point
│   %2 = Base.getfield(%1, :y)::Float64
└──      return %2
end
";

const GRID: Grid =
    Grid { a: 1.0, b: 2.0, c: 3.0, d: 4.5, e: 5.0, f: -6, g: 7.0, h: 8.0, origin: Point { x: 9.0, y: 10.0 } };

const MIXED: Mixed = Mixed { is_on: true, wide: -5, letter: 'θ', small: -300, half: 0.5, last: 255 };

fn unit(level: OptLevel) -> Unit {
    let text = format!("{TYPES}{FUNCTIONS}");
    let program = Program::read("structs.jlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    Engine::new(Options::new().opt_level(level)).unwrap().compile(&program).unwrap()
}

#[test]
fn structs_pass_through_typed_calls() {
    for level in OptLevel::ALL {
        let unit = unit(level);
        let swap = unit.func::<(Point,), Point>("swap").unwrap();
        assert_eq!(swap.call((Point { x: 1.0, y: -2.0 },)), Ok(Point { x: -2.0, y: 1.0 }));
        let same = unit.func::<(Mixed,), Mixed>("same").unwrap();
        assert_eq!(same.call((MIXED,)), Ok(MIXED));
        let turn = unit.func::<(Segment,), Segment>("turn").unwrap();
        let (a, b) = (Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 });
        let turned = turn.call((Segment { from: a, to: b, weight: 7 },));
        assert_eq!(turned, Ok(Segment { from: b, to: a, weight: 7 }));
    }
}

#[test]
fn structs_of_many_scalars_pass_in_memory() {
    for level in OptLevel::ALL {
        let unit = unit(level);
        let shift = unit.func::<(f64, Grid, i64), Grid>("shift").unwrap();
        let expected = Grid { a: 1.5, e: 12.0, origin: Point { x: 10.0, y: 9.0 }, ..GRID };
        assert_eq!(shift.call((0.5, GRID, 12)), Ok(expected));
        let corner = unit.func::<(Grid,), f64>("corner").unwrap();
        assert_eq!(corner.call((GRID,)), Ok(10.0));
        assert_eq!(corner.clone().call((expected,)), Ok(9.0));
    }
}

/// Names, order, types and distances of fields are compared where a function is looked up.
#[test]
fn structs_that_are_not_the_programs_are_refused() {
    #[derive(Brolga, PartialEq, Debug)]
    #[repr(C)]
    #[brolga(name = "Point")]
    struct Renamed {
        x: f64,
        z: f64,
    }
    #[derive(Brolga, PartialEq, Debug)]
    #[repr(C)]
    #[brolga(name = "Point")]
    struct Turned {
        y: f64,
        x: f64,
    }
    #[derive(Brolga, PartialEq, Debug)]
    #[repr(C)]
    #[brolga(name = "Point")]
    struct Narrow {
        x: f32,
        y: f64,
    }
    #[derive(Brolga, PartialEq, Debug)]
    #[repr(C)]
    struct Punkt {
        x: f64,
        y: f64,
    }
    let unit = unit(OptLevel::O2);
    let argument = |refused: Result<(), LookupError>| {
        assert!(matches!(refused, Err(LookupError::Argument { index: 1, .. })), "{refused:?}");
    };
    argument(unit.func::<(Renamed,), Point>("swap").map(drop));
    argument(unit.func::<(Turned,), Point>("swap").map(drop));
    argument(unit.func::<(Narrow,), Point>("swap").map(drop));
    argument(unit.func::<(Punkt,), Point>("swap").map(drop));
    argument(unit.func::<((f64, f64),), Point>("swap").map(drop));
    let refused = unit.func::<(Point,), Segment>("swap").map(drop);
    assert!(matches!(refused, Err(LookupError::Result { .. })), "{refused:?}");
    assert_eq!(Point::OFFSETS, [0, 8]);
}

/// A struct that implements the trait by hand and says that its fields lie elsewhere.
#[test]
fn distances_are_compared() {
    struct Wrong;
    impl Struct for Wrong {
        type Fields = (f64, f64);
        const NAME: &'static str = "Point";
        const FIELDS: &'static [&'static str] = &["x", "y"];
        const OFFSETS: &'static [usize] = &[0, 4];
        fn into_fields(self) -> (f64, f64) {
            (0.0, 0.0)
        }
        fn from_fields(_: (f64, f64)) -> Wrong {
            Wrong
        }
    }
    impl brolga::host::StructValue for Wrong {}
    let refused = unit(OptLevel::O2).func::<(Wrong,), Point>("swap").map(drop);
    assert!(matches!(refused, Err(LookupError::Argument { .. })), "{refused:?}");
}

const CALLS: &str = "
function through(of::Padded, n::Int64)::Padded
1 ─ %1 = invoke Main.change(of::Padded, n::Int64)::Padded
└──      return %1
end
function far(of::Grid)::Float64
1 ─ %1 = invoke Main.trace(of::Grid)::Float64
└──      return %1
end
function turned(of::Segment)::Segment
1 ─ %1 = invoke Main.turn(of::Segment)::Segment
└──      return %1
end
";

#[test]
fn structs_pass_through_functions_of_the_host() {
    for level in OptLevel::ALL {
        let session = Session::new(Options::new().opt_level(level), Workers::Caller).unwrap();
        let main = session.create_dylib("main").unwrap();
        main.define_fn("change", |of: Mixed, n: i64| -> Result<Mixed, String> {
            match n {
                0 => Err("nothing to change".to_owned()),
                n => Ok(Mixed { wide: of.wide * n, is_on: !of.is_on, ..of }),
            }
        })
        .unwrap();
        main.define_fn("trace", |of: Grid| of.a + of.e + f64::from(of.f) + f64::from(of.d) + of.origin.y)
            .unwrap();
        main.define_fn("turn", |of: Segment| Segment { from: of.to, to: of.from, ..of }).unwrap();
        let read = main.read("calls.jlir", format!("{TYPES}{CALLS}").as_bytes());
        main.define(read.unwrap_or_else(|error| panic!("{error}"))).unwrap();
        let through = main.func::<(Mixed, i64), Mixed>("through").unwrap();
        assert_eq!(through.call((MIXED, 3)), Ok(Mixed { wide: -15, is_on: false, ..MIXED }));
        let Err(CallError::Exception(thrown)) = through.call((MIXED, 0)) else { panic!("it throws") };
        assert_eq!((thrown.kind, &*thrown.message), (ExceptionKind::ErrorException, "nothing to change"));
        assert_eq!(main.func::<(Grid,), f64>("far").unwrap().call((GRID,)), Ok(14.5));
        let (a, b) = (Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 });
        let turned = main.func::<(Segment,), Segment>("turned").unwrap();
        assert_eq!(
            turned.call((Segment { from: a, to: b, weight: 1 },)),
            Ok(Segment { from: b, to: a, weight: 1 })
        );
        session.end();
    }
}

/// The struct of the program may be declared before the function of the host, below another type; one that differs is refused.
#[test]
fn host_functions_take_the_programs_struct() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    let text = "abstract type Shape end
struct Point <: Shape
    x::Float64
    y::Float64
end
function x(of::Point)::Float64
1 ─ %1 = Base.getfield(of, :x)::Float64
└──      return %1
end";
    main.define(main.read("point.jlir", text.as_bytes()).unwrap()).unwrap();
    main.define_fn("norm", |of: Point| of.x.hypot(of.y)).unwrap();
    let text = "function length(of::Point)::Float64
1 ─ %1 = invoke Main.norm(of::Point)::Float64
└──      return %1
end";
    let read = main.read(
        "length.jlir",
        format!(
            "abstract type Shape end\nstruct Point <: Shape\n    x::Float64\n    y::Float64\nend\n{text}"
        )
        .as_bytes(),
    );
    main.define(read.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let length = main.func::<(Point,), f64>("length").unwrap();
    assert_eq!(length.call((Point { x: 3.0, y: 4.0 },)), Ok(5.0));
    #[derive(Brolga)]
    #[repr(C)]
    #[brolga(name = "Point")]
    struct Other {
        x: i64,
    }
    let refused = main.define_fn("other", |of: Other| of.x).unwrap_err();
    assert!(refused.to_string().contains("Point"), "{refused}");
    session.end();
}

#[test]
fn structs_pass_through_guests() {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    let unit = unit(OptLevel::O2);
    let shift = unit.func::<(f64, Grid, i64), Grid>("shift").unwrap();
    let mut call = pin!(shift.call_async(&Guests::default(), &Limits::new(), (0.0, GRID, 5)));
    let result = loop {
        if let Poll::Ready(result) = call.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            break result;
        }
    };
    assert_eq!(result, Ok(Grid { origin: Point { x: 10.0, y: 9.0 }, ..GRID }));
}
