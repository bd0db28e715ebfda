//! Columns: vectors over memory of the host, used by checked programs at every level, under stress of the collector, and by several threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brolga::heap::{Bits, Column, ObjectError, Root, Scope, TypeRef};
use brolga::host::Handle;
use brolga::ir::{Context, Type};
use brolga::session::{Session, Workers};
use brolga::{Engine, OptLevel, Options, Program, Unit};

const PROGRAM: &str = "
mutable struct Held
    numbers::Vector{Float64}
end

function total(v::Vector{Float64})::Float64
1 ─ %1 = Base.arraylen(v)::Int64
└──      goto #2
2 ┄ %3 = φ (#1 => 1, #3 => %8)::Int64
│   %4 = φ (#1 => 0.0, #3 => %7)::Float64
│   %5 = Base.sle_int(%3, %1)::Bool
└──      goto #4 if not %5
3 ─ %6 = Base.arrayref(true, v, %3)::Float64
│   %7 = Base.add_float(%4, %6)::Float64
│   %8 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return %4
end

function double(v::Vector{Float64})::Nothing
1 ─ %1 = Base.arraylen(v)::Int64
└──      goto #2
2 ┄ %3 = φ (#1 => 1, #3 => %8)::Int64
│   %5 = Base.sle_int(%3, %1)::Bool
└──      goto #4 if not %5
3 ─ %6 = Base.arrayref(true, v, %3)::Float64
│   %7 = Base.mul_float(%6, 2.0)::Float64
│        Base.arrayset(true, v, %7, %3)::Vector{Float64}
│   %8 = Base.add_int(%3, 1)::Int64
└──      goto #2
4 ─      return nothing
end

function get(v::Vector{Float64}, i::Int64)::Float64
1 ─ %1 = Base.arrayref(true, v, i)::Float64
└──      return %1
end

function any(v::Any, i::Any)::Any
1 ─ %1 = Base.getindex(v, i)::Any
│        Base.setindex!(v, 0.5, i)::Any
└──      return %1
end

function grow(v::Vector{Float64}, x::Float64)::Vector{Float64}
1 ─      $(Expr(:foreigncall, :(:jl_array_grow_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(v), 0x0000000000000001))::Nothing
│   %2 = Base.arraylen(v)::Int64
│        Base.arrayset(true, v, x, %2)::Vector{Float64}
└──      return v
end

function shrink(v::Vector{Float64})::Vector{Float64}
1 ─      $(Expr(:foreigncall, :(:jl_array_del_end), Nothing, svec(Any, UInt64), 0, :(:ccall), :(v), 0x0000000000000001))::Nothing
└──      return v
end

function hold(v::Vector{Float64})::Any
1 ─ %1 = %new(Held, v)::Held
└──      return %1
end

function held(h::Held)::Float64
1 ─ %1 = Base.getfield(h, :numbers)::Vector{Float64}
│   %2 = invoke Main.total(%1::Vector{Float64})::Float64
└──      return %2
end

function churn(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => 0, #3 => %5)::Int64
│   %3 = Base.slt_int(%2, n)::Bool
└──      goto #4 if not %3
3 ─ %4 = $(Expr(:foreigncall, :(:jl_alloc_array_1d), Vector{Float64}, svec(Any, Int64), 0, :(:ccall), Vector{Float64}, 100))::Vector{Float64}
│        Core.donotdelete(%4)::Nothing
│   %5 = Base.add_int(%2, 1)::Int64
└──      goto #2
4 ─      return %2
end
";

/// The type of vectors of an element type.
fn vectors(engine: &Engine, element: Type) -> TypeRef {
    let cx = Context::new();
    let ty = cx.types.vector(element).unwrap();
    engine.runtime().heap().type_object(&cx, ty).unwrap()
}

/// Every level with both settings of the collector.
fn engines() -> impl Iterator<Item = (Engine, Unit)> {
    let program = Program::read("columns", PROGRAM.as_bytes()).unwrap();
    OptLevel::ALL.into_iter().flat_map(|level| [(level, false), (level, true)]).map(move |(level, stress)| {
        let engine = Engine::new(Options::new().opt_level(level).gc_stress(stress)).unwrap();
        let unit = engine.compile(&program).unwrap();
        (engine, unit)
    })
}

/// A column that counts its releases, each with the sum of its numbers.
fn column(numbers: &[f64], released: &Arc<AtomicUsize>) -> Column<f64> {
    let released = released.clone();
    Column::new(numbers.to_vec(), move |numbers: Vec<f64>| {
        released.fetch_add(1 + 1000 * numbers.iter().sum::<f64>() as usize, Ordering::SeqCst);
    })
}

#[test]
fn checked_programs_read_and_write_numbers_of_the_host() {
    for (engine, unit) in engines() {
        let ty = vectors(&engine, Type::FLOAT64);
        let released = Arc::new(AtomicUsize::new(0));
        let total = unit.func_in::<(Handle,), f64>("total").unwrap();
        let double = unit.func_in::<(Handle,), ()>("double").unwrap();
        let get = unit.func_in::<(Handle, i64), f64>("get").unwrap();
        let any = unit.func_in::<(Handle, Handle), Handle>("any").unwrap();
        let run = |scope: &mut Scope<'_, '_>| {
            let vector = scope.borrow(&ty, column(&[1.0, 2.0, 4.0], &released)).unwrap();
            assert_eq!(total.call(scope, (vector,)), Ok(7.0));
            double.call(scope, (vector,)).unwrap();
            assert_eq!(get.call(scope, (vector, 3)), Ok(8.0));
            for outside in [0, 4, -1, i64::MAX, i64::MIN] {
                let thrown = get.call(scope, (vector, outside)).unwrap_err();
                assert!(thrown.to_string().starts_with("BoundsError"), "{thrown}");
            }
            let two = scope.int(2).unwrap();
            let got = any.call(scope, (vector, two)).unwrap();
            assert_eq!(got.get(scope).unboxed(), Ok(4.0));
            scope.collect();
            assert_eq!(vector.get(scope).copied_bits(), Ok(vec![2.0, 0.5, 8.0]));
            assert_eq!(vector.get(scope).element_bits::<f64>(1), Ok(0.5));
            assert!(vector.get(scope).element_bits::<f64>(3).is_err());
            assert_eq!(released.load(Ordering::SeqCst), 0, "it is in use");
        };
        engine.runtime().enter(run).unwrap();
        engine.runtime().enter(|scope| scope.collect()).unwrap();
        assert_eq!(released.load(Ordering::SeqCst), 10_001, "it was released once, with what was written");
    }
}

#[test]
fn a_longer_vector_is_a_copy_and_a_shorter_one_is_not() {
    for (engine, unit) in engines() {
        let ty = vectors(&engine, Type::FLOAT64);
        let released = Arc::new(AtomicUsize::new(0));
        let grow = unit.func_in::<(Handle, f64), Handle>("grow").unwrap();
        let shrink = unit.func_in::<(Handle,), Handle>("shrink").unwrap();
        let run = |scope: &mut Scope<'_, '_>| {
            let vector = scope.borrow(&ty, column(&[1.0, 2.0, 4.0], &released)).unwrap();
            shrink.call(scope, (vector,)).unwrap();
            // The place of the removed element is there again.
            grow.call(scope, (vector, 8.0)).unwrap();
            assert_eq!(vector.get(scope).copied_bits(), Ok(vec![1.0, 2.0, 8.0]));
            grow.call(scope, (vector, 16.0)).unwrap();
            assert_eq!(vector.get(scope).copied_bits(), Ok(vec![1.0, 2.0, 8.0, 16.0]));
            scope.collect();
            assert_eq!(released.load(Ordering::SeqCst), 11_001, "only the copy is in use");
            vector.get(scope).set_element_bits(0, 5.0).unwrap();
        };
        engine.runtime().enter(run).unwrap();
    }
}

#[test]
fn what_keeps_the_vector_keeps_the_column() {
    for (engine, unit) in engines() {
        let ty = vectors(&engine, Type::FLOAT64);
        let released = Arc::new(AtomicUsize::new(0));
        let hold = unit.func_in::<(Handle,), Handle>("hold").unwrap();
        let held = unit.func_in::<(Handle,), f64>("held").unwrap();
        let kept = engine.runtime().enter(|scope| {
            let vector = scope.borrow(&ty, column(&[1.0, 2.0], &released)).unwrap();
            let holder = hold.call(scope, (vector,)).unwrap();
            scope.persistent(holder.get(scope))
        });
        let kept = kept.unwrap();
        engine.runtime().enter(|scope| scope.collect()).unwrap();
        let sum = engine.runtime().enter(|scope| {
            let object = scope.get_persistent(&kept).unwrap();
            let root = scope.root(object);
            held.call(scope, (root,)).unwrap()
        });
        assert_eq!((sum.unwrap(), released.load(Ordering::SeqCst)), (3.0, 0));
        drop(kept);
        engine.runtime().enter(|scope| scope.collect()).unwrap();
        assert_eq!(released.load(Ordering::SeqCst), 3001);
    }
}

#[test]
fn a_column_ends_with_its_engine_and_without_use() {
    let released = Arc::new(AtomicUsize::new(0));
    drop(column(&[1.0], &released));
    assert_eq!(released.load(Ordering::SeqCst), 1001);
    for (engine, unit) in engines() {
        released.store(0, Ordering::SeqCst);
        let ty = vectors(&engine, Type::FLOAT64);
        let kept = engine.runtime().enter(|scope| {
            let vector = scope.borrow(&ty, column(&[1.0], &released)).unwrap();
            scope.persistent(vector.get(scope))
        });
        drop((ty, unit, engine));
        drop(kept);
        assert_eq!(released.load(Ordering::SeqCst), 1001);
    }
}

#[test]
fn borrowed_bytes_bring_a_collection_and_do_not_count_towards_the_limit() {
    let engine = Engine::new(Options::new().heap_limit(Some(64 << 20))).unwrap();
    let unit = engine.compile(&Program::read("columns", PROGRAM.as_bytes()).unwrap()).unwrap();
    let churn = unit.func::<(i64,), i64>("churn").unwrap();
    let ty = vectors(&engine, Type::FLOAT64);
    let released = Arc::new(AtomicUsize::new(0));
    let zeros = vec![0.0; 16 << 20];
    for _ in 0..4 {
        // 128 MiB each, of a heap of 64.
        engine
            .runtime()
            .enter(|scope| scope.borrow(&ty, column(&zeros, &released)).map(drop))
            .unwrap()
            .unwrap();
        churn.call((1000,)).unwrap();
    }
    assert!(released.load(Ordering::SeqCst) >= 3, "{released:?}");
}

/// The error of a column of these numbers.
fn refused<T: Bits + Send + 'static>(engine: &Engine, ty: &TypeRef, numbers: Vec<T>) -> Option<ObjectError> {
    engine.runtime().enter(|scope| scope.borrow(ty, Column::new(numbers, drop)).err()).unwrap()
}

#[test]
fn columns_of_other_types_and_places_are_refused_and_released() {
    let engine = Engine::new(Options::new()).unwrap();
    let of = |element| vectors(&engine, element);
    assert_eq!(refused(&engine, &of(Type::INT64), vec![1i64]), None);
    assert_eq!(refused(&engine, &of(Type::UINT8), vec![1u8]), None);
    assert_eq!(refused(&engine, &of(Type::FLOAT32), vec![1.0f32]), None);
    assert_eq!(refused(&engine, &of(Type::INT64), Vec::<i64>::new()), None);
    assert!(matches!(refused(&engine, &of(Type::FLOAT64), vec![1.0f32]), Some(ObjectError::NotBits { .. })));
    assert!(matches!(refused(&engine, &of(Type::ANY), vec![1u64]), Some(ObjectError::NotBits { .. })));
    assert!(matches!(refused(&engine, &of(Type::BOOL), vec![2u8]), Some(ObjectError::NoValue { .. })));
    let cx = Context::new();
    let text = engine.runtime().heap().type_object(&cx, Type::STRING).unwrap();
    assert!(matches!(refused(&engine, &text, vec![1u8]), Some(ObjectError::WrongKind { .. })));
    let other = Engine::new(Options::new()).unwrap();
    assert!(matches!(refused(&other, &of(Type::INT64), vec![1i64]), Some(ObjectError::OtherHeap { .. })));
}

#[test]
fn threads_use_columns_while_others_collect() {
    let session = Session::new(Options::new().opt_level(OptLevel::O2), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.define(main.read("columns", PROGRAM.as_bytes()).unwrap()).unwrap();
    let cx = Context::new();
    let ty = cx.types.vector(Type::FLOAT64).unwrap();
    let ty = session.runtime().heap().type_object(&cx, ty).unwrap();
    let released = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (main, session, ty, released) = (&main, &session, &ty, &released);
            threads.spawn(move || {
                let total = main.func_in::<(Handle,), f64>("total").unwrap();
                let double = main.func_in::<(Handle,), ()>("double").unwrap();
                for round in 0..50 {
                    let run = |scope: &mut Scope<'_, '_>| {
                        let numbers = vec![1.0; 100 + thread];
                        let vector: Root<'_, '_> = scope.borrow(ty, column(&numbers, released)).unwrap();
                        double.call(scope, (vector,)).unwrap();
                        if round % 10 == thread {
                            scope.collect();
                        }
                        assert_eq!(total.call(scope, (vector,)), Ok(2.0 * numbers.len() as f64));
                    };
                    session.runtime().enter(run).unwrap();
                }
            });
        }
    });
    session.runtime().enter(|scope| scope.collect()).unwrap();
    assert_eq!(released.load(Ordering::SeqCst) % 1000, 200);
}

#[test]
fn host_functions_see_the_numbers_of_the_host() {
    let session = Session::new(Options::new(), Workers::Caller).unwrap();
    let main = session.create_dylib("main").unwrap();
    main.define_fn("add_one", |numbers: &mut [f64]| numbers.iter_mut().for_each(|n| *n += 1.0)).unwrap();
    let text = "function f(v::Vector{Float64})::Nothing\n1 ─ invoke Main.add_one(v::Vector{Float64})::Nothing\n└── return nothing\nend";
    main.define(main.read("f", text.as_bytes()).unwrap()).unwrap();
    let f = main.func_in::<(Handle,), ()>("f").unwrap();
    let cx = Context::new();
    let ty = cx.types.vector(Type::FLOAT64).unwrap();
    let ty = session.runtime().heap().type_object(&cx, ty).unwrap();
    let released = Arc::new(AtomicUsize::new(0));
    session
        .runtime()
        .enter(|scope| {
            let vector = scope.borrow(&ty, column(&[1.0, 2.0], &released)).unwrap();
            f.call(scope, (vector,)).unwrap();
            assert_eq!(vector.get(scope).copied_bits(), Ok(vec![2.0, 3.0]));
        })
        .unwrap();
}
