//! Worlds: what a call sees of methods that come and go, and when code and functions are freed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use brolga_instances::Edge;
use brolga_ir::Context;
use brolga_ir::types::Type;
use brolga_runtime::objects::{
    CodeEdges, Ended, MethodChange, MethodEntry, MethodObserver, MethodRow, MethodTable, Methods,
};
use brolga_runtime::{Runtime, RuntimeOptions, with_attached};

fn runtime() -> (Arc<Runtime>, Arc<Context>) {
    (Runtime::new(RuntimeOptions::default()), Context::new())
}

fn row(cx: &Arc<Context>, name: &str, entry: MethodEntry) -> MethodRow {
    let function = cx.types.function(cx.names.intern(name));
    MethodRow { function, args: vec![Type::ANY], rest: None, name: name.into(), entry }
}

/// A method that gives a number.
fn giving(runtime: &Runtime, table: &MethodTable, cx: &Arc<Context>, name: &str, number: i64) -> Methods {
    let entry = MethodEntry::host(move |scope, _| Ok(scope.int(number).unwrap()));
    runtime.add_methods_to(table, cx, None, [row(cx, name, entry)]).unwrap()
}

/// What `name(1)` gives; `None` if no method is found.
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
    // A program's own method counts, also when the other one came later.
    let _f0 = giving(&runtime, base, &cx, "f", 4);
    assert_eq!([&one, &two, base].map(|table| call(&runtime, table, &cx, "f")), [Some(1), Some(2), Some(4)]);
    drop(f2);
    assert_eq!(call(&runtime, &two, &cx, "f"), Some(4));
}

#[test]
fn each_change_makes_a_world_and_observers_hear_of_it_before() {
    /// A table, a world, and the names of what was added and removed.
    type Heard = (u64, u64, Vec<String>, Vec<String>);
    struct Log(Mutex<Vec<Heard>>, OnceLock<Weak<Runtime>>);
    impl MethodObserver for Log {
        fn changed(&self, change: &MethodChange<'_>) {
            let runtime = self.1.get().and_then(Weak::upgrade).unwrap();
            let is_first = self.0.lock().unwrap().len() < 2;
            let newest = change.world - u64::from(!is_first);
            assert_eq!(runtime.world(), newest, "nobody can enter a new world yet");
            let names = |notes: &[_]| {
                notes.iter().map(|n: &brolga_runtime::objects::MethodNote| n.name.clone()).collect()
            };
            self.0.lock().unwrap().push((
                change.table,
                change.world,
                names(change.added),
                names(change.removed),
            ));
        }
    }
    let (runtime, cx) = runtime();
    let log = Arc::new(Log(Mutex::default(), OnceLock::new()));
    log.1.set(Arc::downgrade(&runtime)).unwrap();
    let f = giving(&runtime, runtime.methods(), &cx, "f", 1);
    let table = runtime.method_table();
    let observer: Arc<dyn MethodObserver> = log.clone();
    runtime.observe_methods(&table, &observer);
    drop(observer);
    let first = runtime.world() - 1;
    let elsewhere = giving(&runtime, &runtime.method_table(), &cx, "h", 1);
    let g = giving(&runtime, &table, &cx, "g", 1);
    assert_eq!((f.world(), g.world(), runtime.world()), (first + 1, first + 3, first + 3));
    assert!(f.notes()[0].id < g.notes()[0].id);
    let nothing = runtime.add_methods(&cx, []).unwrap();
    drop((nothing, elsewhere, f));
    assert_eq!(runtime.world(), first + 5);
    let base = runtime.methods().id();
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let expected = [
        (base, first + 1, names(&["f"]), vec![]),
        (table.id(), first + 1, vec![], vec![]),
        (table.id(), first + 3, names(&["g"]), vec![]),
        (base, first + 5, vec![], names(&["f"])),
    ];
    assert_eq!(*log.0.lock().unwrap(), expected);
    // One that is gone is not told.
    drop(log);
    drop(g);
}

/// Counts when it is dropped.
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
    // It takes itself out of its table while it runs.
    let entry = MethodEntry::host(move |scope, _| {
        drop(own.lock().unwrap().take());
        Ok(scope.int(dropped.0.load(Ordering::SeqCst) as i64).unwrap())
    });
    *held.lock().unwrap() = Some(runtime.add_methods_to(&table, &cx, None, [row(&cx, "f", entry)]).unwrap());
    assert_eq!(call(&runtime, &table, &cx, "f"), Some(0));
    assert_eq!((count.load(Ordering::SeqCst), runtime.retired()), (1, 0));
    assert_eq!(call(&runtime, &table, &cx, "f"), None);

    // A thread that is inside holds up what is removed meanwhile, and what it finds is still what it found.
    let dropped = Dropped(count.clone());
    let entry = MethodEntry::host(move |scope, _| {
        Ok(scope.int(10 + dropped.0.load(Ordering::SeqCst) as i64).unwrap())
    });
    let f = runtime.add_methods_to(&table, &cx, None, [row(&cx, "f", entry)]).unwrap();
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
        runtime.add_methods_to(&table, &cx, None, [row(&cx, "f", entry)]).unwrap()
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
                // The new one is there before the old one goes.
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
fn code_ends_with_the_world_in_which_its_beliefs_held() {
    let (runtime, cx) = runtime();
    let table = runtime.method_table();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let _base = giving(&runtime, runtime.methods(), &cx, "f", 0);
    let edges =
        CodeEdges::new(&runtime, &table, move |ended: &[Ended]| log.lock().unwrap().extend(ended.to_vec()));
    let f = cx.types.function(cx.names.intern("f"));
    let question = |types: &[Type]| edges.signature(&cx, types, None).unwrap();
    let asks = |types: &[Type]| {
        let question = question(types);
        let answer = edges.look_up(&question);
        Edge::Lookup(question, answer)
    };
    let (int, text) = ([f, Type::INT64], [f, Type::STRING]);
    let caller = edges.add_instance("caller(Int64)", [asks(&int)]).unwrap();
    let outer = edges.add_instance("outer()", [Edge::Instance(caller)]).unwrap();
    let other = edges.add_instance("other(String)", [asks(&text)]).unwrap();
    let pair = edges.add_instance("pair()", [asks(&[f, Type::INT64, Type::INT64])]).unwrap();
    let stale = asks(&int);
    let first = edges.worlds(caller).first();
    assert_eq!(first, Some(runtime.world()));

    // A method for integers ends those that called `f` with one, and nothing else.
    let entry = MethodEntry::host(|scope, _| Ok(scope.int(1).unwrap()));
    let function = f;
    let row = MethodRow { function, args: vec![Type::INT64], rest: None, name: "f(Int64)".into(), entry };
    let added = runtime.add_methods_to(&table, &cx, None, [row]).unwrap();
    let ended: Vec<_> = heard.lock().unwrap().drain(..).map(|end| (end.instance, end.last_world)).collect();
    assert_eq!(ended, [(caller, added.world() - 1), (outer, added.world() - 1)]);
    assert!(edges.worlds(other).is_open() && edges.worlds(pair).is_open());
    assert_eq!(
        edges.chain(outer).to_string(),
        "outer() is valid for worlds 2 to 2: it depends on what follows\n\
         caller(Int64) is valid for worlds 2 to 2: typeof(f)(::Int64) went to f, and goes to f(Int64)"
    );
    assert!(edges.add_instance("late(Int64)", [stale]).is_err(), "made with the old answer");

    // Removal ends what called it; one that takes any number of arguments ends what found none.
    let again = edges.add_instance("again(Int64)", [asks(&int)]).unwrap();
    drop(added);
    let row = MethodRow {
        function,
        args: vec![],
        rest: Some(Type::ANY),
        name: "f(Any...)".into(),
        entry: MethodEntry::host(|scope, _| Ok(scope.int(2).unwrap())),
    };
    let _added = runtime.add_methods_to(&table, &cx, None, [row]).unwrap();
    let ended: Vec<_> = heard.lock().unwrap().drain(..).map(|end| end.instance).collect();
    assert_eq!(ended, [again, pair]);
    assert!(edges.worlds(other).is_open(), "the method for one argument is the more specific one");
}

#[test]
fn methods_may_be_visible_since_an_earlier_world() {
    let (runtime, cx) = runtime();
    let table = runtime.method_table();
    let _f = giving(&runtime, &table, &cx, "f", 1);
    let known = runtime.world();
    let _g = giving(&runtime, &table, &cx, "g", 2);
    let entry = MethodEntry::host(|scope, _| Ok(scope.int(3).unwrap()));
    let _late = runtime.add_methods_to(&table, &cx, Some(known), [row(&cx, "late", entry)]).unwrap();
    let in_world = |world: u64, name: &str| {
        let function = |name: &str| {
            let ty = cx.types.function(cx.names.intern(name));
            runtime.heap().type_object(&cx, ty).unwrap()
        };
        let (invoke, function) = (function("invoke_in_world"), function(name));
        runtime
            .enter(|scope| {
                let (invoke, function) =
                    (scope.instance(&invoke).unwrap(), scope.instance(&function).unwrap());
                let (world, one) = (scope.int(world as i64).unwrap(), scope.int(1).unwrap());
                let result = runtime.call_in(&table, scope, invoke, &[world, function, one]);
                result.ok().map(|root| root.get(scope).unboxed::<i64>().unwrap())
            })
            .unwrap()
    };
    let found = |world| ["f", "g", "late"].map(|name| in_world(world, name));
    assert_eq!(found(known - 1), [None, None, None]);
    assert_eq!(found(known), [Some(1), None, Some(3)]);
    assert_eq!(found(runtime.world()), [Some(1), Some(2), Some(3)]);
}
