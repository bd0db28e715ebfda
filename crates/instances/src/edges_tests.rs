//! [`Edges`] against a model that believes nothing: after each change it asks every question again.
//!
//! Types are sets of a few atoms, so that every question about them can be answered by hand.

use std::collections::BTreeSet;

use crate::edges::{Answer, Edge, Edges, InstanceId, Invalidation, NewMethod, Reason, Signatures};
use crate::worlds::WorldRange;

/// A callee, and for each argument the atoms that it may be, as bits.
type Signature = (Option<u64>, Vec<u8>);

struct Sets;

impl Signatures for Sets {
    type Signature = Signature;

    fn overlap(&self, a: &Signature, b: &Signature) -> bool {
        let callees = a.0.is_none() || b.0.is_none() || a.0 == b.0;
        callees && a.1.len() == b.1.len() && a.1.iter().zip(&b.1).all(|(x, y)| x & y != 0)
    }

    fn is_subtype(&self, a: &Signature, b: &Signature) -> bool {
        let callees = b.0.is_none() || a.0 == b.0;
        callees && a.1.len() == b.1.len() && a.1.iter().zip(&b.1).all(|(x, y)| x & !y == 0)
    }

    fn callee(&self, a: &Signature) -> Option<u64> {
        a.0
    }

    fn show(&self, a: &Signature) -> String {
        let callee = a.0.map_or("?".to_owned(), |callee| format!("f{callee}"));
        let args: Vec<String> = a.1.iter().map(|set| format!("{set:b}")).collect();
        format!("{callee}({})", args.join(", "))
    }
}

fn method(number: u64, signature: Signature) -> NewMethod<Signature> {
    NewMethod { number, name: format!("m{number}"), signature }
}

fn one(number: u64) -> Answer {
    Answer { methods: vec![number], is_ambiguous: false }
}

/// A generator of numbers; its results depend on the seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn signature(&mut self, is_question: bool) -> Signature {
        let callee = (self.below(8) > 0 || !is_question).then(|| self.below(3));
        let args = 1 + self.below(2);
        let set = |random: &mut Random| match random.below(3) {
            0 if is_question => 1 << random.below(3),
            _ => 1 + random.below(7) as u8,
        };
        (callee, (0..args).map(|_| set(self)).collect())
    }
}

/// The answer by trying every call of atoms: which methods some call goes to.
fn calls(methods: &[(u64, Signature)], question: &Signature) -> Answer {
    let mut answer = Answer::default();
    let mut reached = BTreeSet::new();
    for callee in (0..3).filter(|callee| question.0.is_none_or(|asked| asked == *callee)) {
        for number in 0..3u32.pow(question.1.len() as u32) {
            let atoms: Vec<u8> =
                (0..question.1.len()).map(|n| 1 << (number / 3u32.pow(n as u32) % 3)).collect();
            let call = (Some(callee), atoms);
            if !Sets.is_subtype(&call, question) {
                continue;
            }
            let fits: Vec<_> = methods.iter().filter(|(_, m)| Sets.is_subtype(&call, m)).collect();
            let before = |a: &&(u64, Signature), b: &(u64, Signature)| match a.1 == b.1 {
                true => a.0 >= b.0,
                false => Sets.is_subtype(&a.1, &b.1),
            };
            match fits.iter().find(|a| fits.iter().all(|b| before(a, b))) {
                Some(best) => {
                    reached.insert(best.0);
                }
                None if fits.is_empty() => {}
                None => answer.is_ambiguous = true,
            }
        }
    }
    answer.methods = reached.into_iter().collect();
    answer
}

#[test]
fn answers_name_all_that_calls_reach_and_are_exact_for_one_call() {
    let mut random = Random(0x1234_5678_9abc_def1);
    for _ in 0..400 {
        let mut edges = Edges::<Sets>::default();
        let methods: Vec<(u64, Signature)> =
            (1..=1 + random.below(6)).map(|number| (number, random.signature(false))).collect();
        edges.change(
            &Sets,
            edges.world() + 1,
            methods.iter().map(|(number, s)| method(*number, s.clone())),
            [],
        );
        for _ in 0..20 {
            let question = random.signature(true);
            let (answer, exact) = (edges.look_up(&Sets, &question), calls(&methods, &question));
            let has = |number: &u64| answer.methods.contains(number);
            assert!(exact.methods.iter().all(has), "{methods:?} {question:?} {answer:?} {exact:?}");
            assert!(answer.is_ambiguous || !exact.is_ambiguous, "{methods:?} {question:?}");
            if question.0.is_some() && question.1.iter().all(|set| set.count_ones() == 1) {
                assert_eq!(answer.is_ambiguous, exact.is_ambiguous, "{methods:?} {question:?}");
                if !exact.is_ambiguous {
                    assert_eq!(answer, exact, "{methods:?} {question:?}");
                }
            }
        }
    }
}

/// What the model remembers of an instance.
struct Known {
    edges: Vec<Edge<Signature>>,
    worlds: WorldRange,
}

#[test]
fn what_a_change_ends_is_what_asking_everything_again_finds() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen = [0; 3];
    for _ in 0..150 {
        let mut edges = Edges::<Sets>::default();
        let (mut methods, mut next): (Vec<(u64, Signature)>, u64) = (Vec::new(), 1);
        let mut known: Vec<Known> = Vec::new();
        for _ in 0..60 {
            if random.below(3) > 0 {
                // An instance that believes what is true, or not quite.
                let mut list = Vec::new();
                for _ in 0..=random.below(3) {
                    list.push(match random.below(4) {
                        0 if !known.is_empty() => {
                            Edge::Instance(InstanceId(random.below(known.len() as u64) as u32))
                        }
                        1 if !methods.is_empty() => {
                            Edge::Method(methods[random.below(methods.len() as u64) as usize].0)
                        }
                        _ => {
                            let question = random.signature(true);
                            let answer = match random.below(12) {
                                0 => one(next + 7),
                                _ => edges.look_up(&Sets, &question),
                            };
                            Edge::Lookup(question, answer)
                        }
                    });
                }
                let holds = list.iter().all(|edge| match edge {
                    Edge::Method(number) => methods.iter().any(|(other, _)| other == number),
                    Edge::Lookup(question, answer) => edges.look_up(&Sets, question) == *answer,
                    Edge::Instance(id) => known[id.0 as usize].worlds.is_open(),
                });
                let made = edges.add_instance(&Sets, format!("i{}", known.len()), list.clone());
                assert_eq!(made.is_ok(), holds);
                if let Ok(id) = made {
                    assert_eq!(id, InstanceId(known.len() as u32));
                    known.push(Known { edges: list, worlds: WorldRange::from(edges.world()) });
                } else {
                    seen[0] += 1;
                }
                continue;
            }
            let world = edges.world();
            let mut removed = Vec::new();
            if !methods.is_empty() && random.below(2) == 0 {
                removed.push(methods.remove(random.below(methods.len() as u64) as usize).0);
            }
            let mut added = Vec::new();
            for _ in 0..random.below(3) {
                // Often one that is there already, defined again.
                let signature = match methods.is_empty() || random.below(3) > 0 {
                    true => random.signature(false),
                    false => methods[random.below(methods.len() as u64) as usize].1.clone(),
                };
                methods.push((next, signature.clone()));
                added.push(method(next, signature));
                next += 1;
            }
            let ended = edges.change(&Sets, edges.world() + 1, added, removed.clone());
            // The model: ask again, until nothing more ends.
            let mut expected: BTreeSet<u32> = BTreeSet::new();
            loop {
                let is_over = |id: u32| {
                    known[id as usize].edges.iter().any(|edge| match edge {
                        Edge::Method(number) => !methods.iter().any(|(other, _)| other == number),
                        Edge::Lookup(question, answer) => edges.look_up(&Sets, question) != *answer,
                        Edge::Instance(other) => expected.contains(&other.0),
                    })
                };
                let candidates = 0..known.len() as u32;
                let open = candidates.filter(|&id| known[id as usize].worlds.is_open());
                let more: Vec<u32> = open.filter(|id| !expected.contains(id) && is_over(*id)).collect();
                if more.is_empty() {
                    break;
                }
                expected.extend(more);
            }
            let found: BTreeSet<u32> = ended.iter().map(|end| end.instance.0).collect();
            assert_eq!((&found, ended.len()), (&expected, expected.len()));
            for Invalidation { instance, last_world, reason } in &ended {
                assert_eq!(*last_world, world);
                let known = &mut known[instance.0 as usize];
                known.worlds = known.worlds.up_to(world);
                match reason {
                    Reason::Removed(number) => assert!(removed.contains(number)),
                    Reason::Lookup { now, before, .. } => assert_ne!(now, before),
                    Reason::Instance(other) => {
                        seen[1] += 1;
                        assert!(found.contains(&other.0));
                        let place = |id| ended.iter().position(|end| end.instance == id);
                        assert!(place(*other) < place(*instance), "the cause comes first");
                    }
                }
                let chain = edges.chain(*instance);
                assert!(!chain.links.is_empty() && chain.links.len() <= ended.len());
                seen[2] += 1;
            }
            for (id, known) in known.iter().enumerate() {
                assert_eq!(edges.worlds(InstanceId(id as u32)), known.worlds);
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn reasons_lead_to_the_change() {
    let mut edges = Edges::<Sets>::default();
    let any = (Some(0), vec![0b111]);
    edges.change(&Sets, edges.world() + 1, [method(1, any.clone())], []);
    let question = (Some(0), vec![0b001]);
    let answer = edges.look_up(&Sets, &question);
    assert_eq!(answer, one(1));
    let g = edges.add_instance(&Sets, "g", [Edge::Lookup(question.clone(), answer)]).unwrap();
    let h = edges.add_instance(&Sets, "h", [Edge::Instance(g)]).unwrap();
    let other = (Some(0), vec![0b010]);
    let elsewhere = edges.look_up(&Sets, &other);
    let k = edges.add_instance(&Sets, "k", [Edge::Lookup(other, elsewhere)]).unwrap();
    let ended = edges.change(&Sets, edges.world() + 1, [method(2, (Some(0), vec![0b101]))], []);
    assert_eq!(ended.iter().map(|end| end.instance).collect::<Vec<_>>(), [g, h]);
    assert_eq!((edges.worlds(h), edges.worlds(k)), (WorldRange::new(2, 2), WorldRange::from(2)));
    assert_eq!(
        edges.chain(h).to_string(),
        "h is valid for worlds 2 to 2: it depends on what follows\n\
         g is valid for worlds 2 to 2: f0(1) went to m1, and goes to m2"
    );
    assert!(edges.chain(k).links.is_empty());
    // A method that makes the call ambiguous, and one that nobody called before.
    let asks = |edges: &Edges<Sets>, s: Signature| Edge::Lookup(s.clone(), edges.look_up(&Sets, &s));
    let pair = (Some(1), vec![0b001, 0b001]);
    let list = [asks(&edges, pair.clone())];
    let none = edges.add_instance(&Sets, "none", list).unwrap();
    let ended = edges.change(&Sets, edges.world() + 1, [method(3, (Some(1), vec![0b001, 0b011]))], []);
    assert_eq!(ended[0].instance, none);
    let list = [asks(&edges, pair)];
    let best = edges.add_instance(&Sets, "best", list).unwrap();
    let ended = edges.change(&Sets, edges.world() + 1, [method(4, (Some(1), vec![0b011, 0b001]))], []);
    assert_eq!(ended[0].instance, best);
    assert_eq!(
        edges.chain(best).to_string(),
        "best is valid for worlds 4 to 4: f1(1, 1) went to m3, and goes to m3 or m4, ambiguously"
    );
    // What is forgotten is not asked for again, and its dependants stay.
    let list = [asks(&edges, (Some(0), vec![0b001]))];
    let gone = edges.add_instance(&Sets, "gone", list).unwrap();
    let user = edges.add_instance(&Sets, "user", [Edge::Instance(gone)]).unwrap();
    edges.forget_instance(&Sets, gone);
    assert!(edges.change(&Sets, 9, [], [2]).is_empty());
    assert!(edges.worlds(user).is_open() && edges.worlds(gone).is_empty());
    // A method that is gone is called by its name.
    let last = edges.add_instance(&Sets, "last", [Edge::Method(1)]).unwrap();
    edges.change(&Sets, edges.world() + 1, [], [1]);
    assert_eq!(edges.chain(last).to_string(), "last is valid for worlds 9 to 9: method m1 was removed");
}
