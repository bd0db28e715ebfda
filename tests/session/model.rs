//! Definitions of all kinds are added, replaced and removed, in an order that a seed decides; a map has the expected result of every call.
//!
//! | step | expectation |
//! |---|---|
//! | define | refused if the name is there, with everything as before |
//! | redefine | replaces the present definition, under its own tracker |
//! | remove a name, a tracker | removes the present definitions, and only those |
//! | call | by a new look-up: the newest definition, of any kind and type, or none |
//! | call through another | a program that calls it is read, defined in place of the last, and called |
//! | call by a handle | of a function behind a slot: the newest of its type since then, as long as no other type came between |

use std::collections::BTreeMap;

use brolga::options::LinkerKind;
use brolga::session::{Dependants, Dylib, OnDrop, Tracker};
use brolga::{Options, Output, Session, TypedFunc, Workers};

const NAMES: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Int,
    Float,
}

/// The map's knowledge about a name that is there.
#[derive(Clone, Copy, Debug)]
struct Known {
    ty: Type,
    value: i64,
    /// The number of its tracker; 0 is the dylib.
    tracker: usize,
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }
}

struct World {
    session: Session,
    main: Dylib,
    random: Random,
    known: BTreeMap<usize, Known>,
    trackers: BTreeMap<usize, Tracker>,
    next_tracker: usize,
    /// Handles of functions behind slots, for as long as the name keeps its type.
    handles: BTreeMap<usize, TypedFunc<(i64,), i64>>,
    steps: Vec<String>,
}

fn source(name: usize, ty: Type, value: i64) -> String {
    let (result, op) = match ty {
        Type::Int => ("Int64", format!("Base.add_int(x, {value})::Int64")),
        Type::Float => ("Float64", "Base.sitofp(Float64, x)::Float64".to_owned()),
    };
    format!("function f{name}(x::Int64)::{result}\n1 ─ %1 = {op}\n└──      return %1\nend\n")
}

impl World {
    fn new(seed: u64) -> World {
        let linker = if seed.is_multiple_of(4) { LinkerKind::Cranelift } else { LinkerKind::Loader };
        let workers = if seed.is_multiple_of(3) { Workers::Pool(1) } else { Workers::Caller };
        let options = crate::doors::open(Options::new()).output(Output::Capture).linker(linker);
        let session = Session::new(options, workers).unwrap_or_else(|error| panic!("{error}"));
        let main = session.create_dylib("main").unwrap();
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        World {
            session,
            main,
            random,
            known: BTreeMap::new(),
            trackers: BTreeMap::new(),
            next_tracker: 1,
            handles: BTreeMap::new(),
            steps: Vec::new(),
        }
    }

    fn define(&mut self, replace: bool) {
        let (name, value) = (self.random.below(NAMES), self.random.below(1000) as i64);
        let ty = if self.random.below(4) == 0 { Type::Float } else { Type::Int };
        let (kind, tracker) = (self.random.below(4), self.random.below(3));
        let tracker = match tracker {
            0 => {
                self.next_tracker += 1;
                let tracker = self.main.create_tracker(OnDrop::Keep).unwrap();
                self.trackers.insert(self.next_tracker, tracker);
                self.next_tracker
            }
            1 => self.trackers.keys().next_back().copied().unwrap_or(0),
            _ => 0,
        };
        self.steps.push(format!("define f{name} {ty:?} {value} kind {kind} tracker {tracker} {replace}"));
        let read = self.main.read("f.jlir", source(name, ty, value).as_bytes()).unwrap();
        let read = match kind {
            0 => read,
            1 => read.lazy(),
            2 => read.replaceable(),
            _ => read.tiered(2),
        };
        let main = &self.main;
        let main =
            self.trackers.get(&tracker).map_or_else(|| main.clone(), |tracker| main.tracked_by(tracker));
        let defined = if replace { main.redefine(read).map(drop) } else { main.define(read) };
        let there = self.known.get(&name).copied();
        match (&defined, there) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) if replace => {}
            (Err(_), Some(_)) if !replace => return,
            (_, there) => panic!("{defined:?} when {there:?} is there\n{}", self.steps.join("\n")),
        }
        self.known.insert(name, Known { ty, value, tracker });
        if there.is_none_or(|there| there.ty != ty) {
            self.handles.remove(&name);
        }
    }

    fn remove(&mut self) {
        let name = self.random.below(NAMES);
        self.steps.push(format!("remove f{name}"));
        let removed = self.main.remove(&[&format!("f{name}")]);
        assert_eq!(
            removed.is_ok(),
            self.known.remove(&name).is_some(),
            "{removed:?}\n{}",
            self.steps.join("\n")
        );
        self.handles.remove(&name);
    }

    fn remove_tracker(&mut self) {
        let Some(number) = self.trackers.keys().nth(self.random.below(self.trackers.len().max(1))).copied()
        else {
            return;
        };
        self.steps.push(format!("remove tracker {number}"));
        let tracker = self.trackers.remove(&number).unwrap();
        tracker.remove(Dependants::Keep).unwrap();
        let gone: Vec<usize> =
            self.known.iter().filter(|(_, known)| known.tracker == number).map(|(name, _)| *name).collect();
        for name in gone {
            self.known.remove(&name);
            self.handles.remove(&name);
        }
    }

    fn call(&mut self) {
        let name = self.random.below(NAMES);
        self.steps.push(format!("call f{name}"));
        let said = || self.steps.join("\n");
        let text = format!("f{name}");
        match self.known.get(&name) {
            None => {
                let there = self.main.function(&text).is_ok();
                assert!(!there, "{}", said());
            }
            Some(Known { ty: Type::Float, .. }) => {
                let f = self.main.func::<(i64,), f64>(&text).unwrap_or_else(|e| panic!("{e}\n{}", said()));
                assert_eq!(f.call((3,)), Ok(3.0), "{}", said());
            }
            Some(Known { ty: Type::Int, value, .. }) => {
                let f = self.main.func::<(i64,), i64>(&text).unwrap_or_else(|e| panic!("{e}\n{}", said()));
                assert_eq!(f.call((3,)), Ok(value + 3), "{}", said());
                self.session.optimize_hot();
            }
        }
    }

    /// Another function that calls it.
    fn call_through(&mut self) {
        let name = self.random.below(NAMES);
        let Some(Known { ty: Type::Int, value, .. }) = self.known.get(&name).copied() else { return };
        let is_lazy = self.random.below(2) == 0;
        self.steps.push(format!("call f{name} through top, {is_lazy}"));
        let top = super::calls("top", &format!("f{name}"));
        let read = self.main.read("top.jlir", top.as_bytes()).unwrap();
        self.main.redefine(if is_lazy { read.lazy() } else { read }).unwrap();
        let top = self.main.func::<(i64,), i64>("top");
        let top = top.unwrap_or_else(|error| panic!("{error}\n{}", self.steps.join("\n")));
        assert_eq!(top.call((3,)), Ok(value + 4), "{}", self.steps.join("\n"));
    }

    /// A handle that was taken some steps ago, or is taken now.
    fn call_by_handle(&mut self) {
        let name = self.random.below(NAMES);
        let Some(Known { ty: Type::Int, value, .. }) = self.known.get(&name).copied() else { return };
        self.steps.push(format!("call f{name} by a handle"));
        match self.handles.get(&name) {
            Some(handle) => assert_eq!(handle.call((1,)), Ok(value + 1), "{}", self.steps.join("\n")),
            None => {
                let before = self.session.stats().compiled_functions;
                let handle = self.main.func::<(i64,), i64>(&format!("f{name}")).unwrap();
                // Looking has compiled it, or it was compiled: it does not lie behind a slot, for all that can be seen.
                let compiled = self.session.stats().compiled_functions;
                assert_eq!(handle.call((1,)), Ok(value + 1), "{}", self.steps.join("\n"));
                if compiled == before && self.session.stats().compiled_functions > before {
                    self.handles.insert(name, handle);
                }
            }
        }
    }
}

#[test]
fn every_call_gives_what_a_map_says() {
    for seed in 1..=24 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            match world.random.below(12) {
                0 | 1 => world.define(false),
                2..=4 => world.define(true),
                5 => world.remove(),
                6 => world.remove_tracker(),
                7 | 8 => world.call_through(),
                9 => world.call_by_handle(),
                _ => world.call(),
            }
        }
        assert_eq!(world.session.linking().check(), Ok(()));
        let World { session, main, handles, trackers, .. } = world;
        drop((handles, trackers));
        main.clear(Dependants::Deny).unwrap();
        assert_eq!((session.stats().placed, session.stats().symbols), (0, 0), "seed {seed}");
    }
}
