//! Worlds: which methods calls see while methods are added and removed, and when code and functions are
//! freed.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brolga_ir::Context;
use brolga_ir::types::Type;
use brolga_runtime::objects::{
    CodeEntry, EntrySource, MethodEntry, MethodRow, MethodTable, Methods, NewMethods,
};
use brolga_runtime::{Runtime, RuntimeOptions, with_attached};

fn runtime() -> (Arc<Runtime>, Arc<Context>) {
    (Runtime::new(RuntimeOptions::default()), Context::new())
}

fn row(cx: &Arc<Context>, name: &str, entry: MethodEntry) -> MethodRow {
    let function = cx.types.function(cx.names.intern(name));
    MethodRow::new(function, vec![Type::ANY], name, entry)
}

/// A method that returns a number.
fn giving(runtime: &Runtime, table: &MethodTable, cx: &Arc<Context>, name: &str, number: i64) -> Methods {
    let entry = MethodEntry::host(move |scope, _| Ok(scope.int(number).unwrap()));
    runtime.add_methods_to(table, cx, [row(cx, name, entry)]).unwrap()
}

/// The result of `name(1)`; `None` if no method is found.
fn call(runtime: &Arc<Runtime>, table: &MethodTable, cx: &Arc<Context>, name: &str) -> Option<i64> {
    let function = runtime.heap().type_object(cx, cx.types.function(cx.names.intern(name))).unwrap();
    runtime
        .enter(|scope| {
            let (function, one) = (scope.instance(&function).unwrap(), scope.int(1).unwrap());
            let result = runtime.call_in(table, scope, function, &[one]);
            result.ok().map(|root| root.get(scope).unboxed::<i64>().unwrap())
        })
        .unwrap()
}

#[test]
fn programs_do_not_see_each_others_methods() {
    let (runtime, cx) = runtime();
    let (one, two) = (runtime.method_table(), runtime.method_table());
    assert_ne!(one.id(), two.id());
    let _f1 = giving(&runtime, &one, &cx, "f", 1);
    let f2 = giving(&runtime, &two, &cx, "f", 2);
    let base = runtime.methods();
    let _g = giving(&runtime, base, &cx, "g", 3);
    for _ in 0..2 {
        let found = [&one, &two, base].map(|table| call(&runtime, table, &cx, "f"));
        assert_eq!(found, [Some(1), Some(2), None]);
        let found = [&one, &two, base].map(|table| call(&runtime, table, &cx, "g"));
        assert_eq!(found, [Some(3); 3]);
    }
    // A program's own method wins, even if the other one was added later.
    let _f0 = giving(&runtime, base, &cx, "f", 4);
    assert_eq!([&one, &two, base].map(|table| call(&runtime, table, &cx, "f")), [Some(1), Some(2), Some(4)]);
    drop(f2);
    assert_eq!(call(&runtime, &two, &cx, "f"), Some(4));
}

#[test]
fn each_change_makes_a_world() {
    let (runtime, cx) = runtime();
    let first = runtime.world();
    let f = giving(&runtime, runtime.methods(), &cx, "f", 1);
    let g = giving(&runtime, &runtime.method_table(), &cx, "g", 1);
    let nothing = runtime.add_methods(&cx, []).unwrap();
    assert_eq!((f.world(), g.world(), runtime.world()), (first + 1, first + 2, first + 2));
    drop(nothing);
    assert_eq!(runtime.world(), first + 2, "nothing has changed");
    drop((f, g));
    assert_eq!(runtime.world(), first + 4);
}

/// The rows of a method that returns a number, and how often they were made.
fn counted(cx: &Arc<Context>, number: i64) -> (Arc<AtomicUsize>, impl Fn() -> NewMethods + use<>) {
    let (count, cx) = (Arc::new(AtomicUsize::new(0)), cx.clone());
    let made = count.clone();
    let make = move || {
        made.fetch_add(1, Ordering::SeqCst);
        let mut rows = NewMethods::default();
        rows.add(&cx, row(&cx, "f", MethodEntry::host(move |scope, _| Ok(scope.int(number).unwrap()))));
        rows
    };
    (count, make)
}

#[test]
fn the_first_methods_of_a_table_are_made_at_the_first_search() {
    let (runtime, cx) = runtime();
    let table = runtime.method_table();
    let (count, make) = counted(&cx, 1);
    let later = runtime.add_methods_later(&table, make).unwrap();
    let world = runtime.world();
    let (_, other) = counted(&cx, 2);
    assert!(runtime.add_methods_later(&table, other).is_none(), "a table has first methods once");
    assert_eq!(count.load(Ordering::SeqCst), 0);
    for _ in 0..3 {
        assert_eq!(call(&runtime, &table, &cx, "f"), Some(1));
    }
    assert_eq!((count.load(Ordering::SeqCst), runtime.world()), (1, world), "they make no world");
    drop(later);
    assert_eq!(call(&runtime, &table, &cx, "f"), None);

    // Rows of a table dropped before are never made.
    let table = runtime.method_table();
    let (count, make) = counted(&cx, 1);
    drop(runtime.add_methods_later(&table, make).unwrap());
    assert_eq!(call(&runtime, &table, &cx, "f"), None);
    assert_eq!(count.load(Ordering::SeqCst), 0);
    // Another runtime's table is refused.
    let (_, make) = counted(&cx, 1);
    assert!(Runtime::new(RuntimeOptions::default()).add_methods_later(&table, make).is_none());
}

#[test]
fn first_methods_rank_below_those_that_are_added() {
    let (runtime, cx) = runtime();
    let table = runtime.method_table();
    let (count, make) = counted(&cx, 1);
    let _later = runtime.add_methods_later(&table, make).unwrap();
    let added = giving(&runtime, &table, &cx, "f", 2);
    assert_eq!(count.load(Ordering::SeqCst), 1, "a change makes them first");
    assert_eq!(call(&runtime, &table, &cx, "f"), Some(2));
    drop(added);
    assert_eq!(call(&runtime, &table, &cx, "f"), Some(1));
}

#[test]
fn threads_that_search_at_once_find_the_first_methods() {
    let (runtime, cx) = runtime();
    for number in 0..20 {
        let table = runtime.method_table();
        let (count, make) = counted(&cx, number);
        let _later = runtime.add_methods_later(&table, make).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(call(&runtime, &table, &cx, "f"), Some(number)));
            }
        });
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

/// Counts its drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_removed_function_is_freed_when_no_thread_can_be_running_it() {
    let (runtime, cx) = runtime();
    let count = Arc::new(AtomicUsize::new(0));
    let table = runtime.method_table();
    let held = Arc::new(Mutex::new(None::<Methods>));
    let (own, dropped) = (held.clone(), Dropped(count.clone()));
    // It removes itself from its table while it runs.
    let entry = MethodEntry::host(move |scope, _| {
        drop(own.lock().unwrap().take());
        Ok(scope.int(dropped.0.load(Ordering::SeqCst) as i64).unwrap())
    });
    *held.lock().unwrap() = Some(runtime.add_methods_to(&table, &cx, [row(&cx, "f", entry)]).unwrap());
    assert_eq!(call(&runtime, &table, &cx, "f"), Some(0));
    assert_eq!((count.load(Ordering::SeqCst), runtime.retired()), (1, 0));
    assert_eq!(call(&runtime, &table, &cx, "f"), None);

    // A thread inside delays the freeing of what is removed meanwhile, and still finds it.
    let dropped = Dropped(count.clone());
    let entry = MethodEntry::host(move |scope, _| {
        Ok(scope.int(10 + dropped.0.load(Ordering::SeqCst) as i64).unwrap())
    });
    let f = runtime.add_methods_to(&table, &cx, [row(&cx, "f", entry)]).unwrap();
    with_attached(&runtime, |thread| {
        let entered = thread.enter();
        drop(f);
        assert_eq!((count.load(Ordering::SeqCst), runtime.retired()), (1, 1));
        assert_eq!(call(&runtime, &table, &cx, "f"), None, "the call enters the newest world");
        drop(entered);
    })
    .unwrap();
    assert_eq!((count.load(Ordering::SeqCst), runtime.retired()), (2, 0));
}

#[test]
fn threads_call_while_others_define_again() {
    let (runtime, cx) = runtime();
    let table = runtime.method_table();
    let count = Arc::new(AtomicUsize::new(0));
    let define = |number: i64| {
        let dropped = Dropped(count.clone());
        let entry = MethodEntry::host(move |scope, _| {
            let _kept = &dropped;
            Ok(scope.int(number).unwrap())
        });
        runtime.add_methods_to(&table, &cx, [row(&cx, "f", entry)]).unwrap()
    };
    const ROUNDS: i64 = 400;
    let first = define(0);
    let last = std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                let mut last = 0;
                while last < ROUNDS {
                    let now = call(&runtime, &table, &cx, "f").expect("there always is a method");
                    assert!(now >= last, "a later call sees no earlier world");
                    last = now;
                }
            });
        }
        let defining = threads.spawn(|| {
            let mut current = first;
            for number in 1..=ROUNDS {
                // The new one exists before the old one is removed.
                let next = define(number);
                drop(std::mem::replace(&mut current, next));
            }
            current
        });
        defining.join().unwrap()
    });
    runtime.free_retired();
    assert_eq!((count.load(Ordering::SeqCst) as i64, runtime.retired()), (ROUNDS, 0));
    drop(last);
}

#[test]
fn one_change_adds_methods_and_hides_others() {
    let (runtime, cx) = runtime();
    let host = |number: i64| MethodEntry::host(move |scope, _| Ok(scope.int(number).unwrap()));
    let new = |name: &str, number: i64| {
        let mut new = NewMethods::default();
        new.add(&cx, row(&cx, name, host(number)));
        new
    };
    let before = runtime.world();
    let (first, mut old) = runtime.change_methods(new("f", 1), &mut [], |_| {});
    let mut told = 0;
    let (second, now) = runtime.change_methods(new("f", 2), &mut old, |world| told = world);
    assert_eq!((first, second, told, now.len()), (before + 1, before + 2, before + 2, 1));
    // A hidden method is found in older worlds as long as it is held.
    let found = |world| in_world(&runtime, &cx, runtime.methods(), world, "f");
    assert_eq!([before, first, second].map(found), [None, Some(1), Some(2)]);
    drop(old);
    assert_eq!([before, first, second].map(found), [None, None, Some(2)]);
    assert_eq!(runtime.world(), second, "dropping what is hidden changes nothing");
    drop(now);
    assert_eq!((found(second), runtime.world()), (None, second + 1));
}

/// Has no code, and counts the requests.
struct Refuses(Arc<AtomicUsize>);

impl EntrySource for Refuses {
    fn make(&self) -> Result<CodeEntry, Box<dyn Error + Send + Sync>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err("there is no code".into())
    }
}

#[test]
fn a_deferred_entry_is_made_by_a_call_and_its_error_is_thrown() {
    let (runtime, cx) = runtime();
    let asked = Arc::new(AtomicUsize::new(0));
    let mut new = NewMethods::default();
    new.add(&cx, row(&cx, "f", MethodEntry::deferred(Refuses(asked.clone()))));
    let (_, _methods) = runtime.change_methods(new, &mut [], |_| {});
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let ty = cx.types.function(cx.names.intern("f"));
    let function = runtime.heap().type_object(&cx, ty).unwrap();
    for times in 1..=2 {
        let thrown = runtime.enter(|scope| {
            let (f, one) = (scope.instance(&function).unwrap(), scope.int(1).unwrap());
            runtime.call(scope, f, &[one]).map(drop).unwrap_err().to_string()
        });
        let thrown = thrown.unwrap();
        assert!(thrown.contains("there is no code"), "{thrown}");
        assert_eq!(asked.load(Ordering::SeqCst), times, "each call asks again");
    }
}

/// Calls a function with 1, in a world.
fn in_world(
    runtime: &Arc<Runtime>,
    cx: &Arc<Context>,
    table: &MethodTable,
    world: u64,
    name: &str,
) -> Option<i64> {
    let function = |name: &str| {
        let ty = cx.types.function(cx.names.intern(name));
        runtime.heap().type_object(cx, ty).unwrap()
    };
    let (invoke, function) = (function("invoke_in_world"), function(name));
    let result = runtime.enter(|scope| {
        let (invoke, function) = (scope.instance(&invoke).unwrap(), scope.instance(&function).unwrap());
        let (world, one) = (scope.int(world as i64).unwrap(), scope.int(1).unwrap());
        let result = runtime.call_in(table, scope, invoke, &[world, function, one]);
        result.ok().map(|root| root.get(scope).unboxed::<i64>().unwrap())
    });
    result.unwrap()
}
