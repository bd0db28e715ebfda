//! What code depends on, and which code a change of methods puts out of use.
//!
//! ```text
//!   g(Int64)  ──lookup f(::Int64)──►  f#1              a method more specific than f#1 is added:
//!   h(Int64)  ──instance──►  g(Int64)                  g(Int64) and h(Int64) end with the world before
//! ```
//!
//! A code instance has **edges** to what was believed when it was made:
//!
//! | edge | it holds for as long as |
//! |---|---|
//! | method | the method is visible |
//! | lookup | the same question has the same [`Answer`]: no method, one, several, or an ambiguity |
//! | instance | the other instance, which was inlined or counted upon, is valid |
//!
//! **Answers.** A question is a signature that the operands of a call have, callee first. The answer has each method that
//! takes some such call, but for those that another one keeps every such call from: one that takes them all and is more specific,
//! or has the same signature and came later. It is ambiguous if two of its methods have calls in common and neither is more
//! specific.
//!
//! **Change.** [`Edges::change`] makes a world with methods added and removed. Lookups whose answer is another one now lose their
//! instances, and these lose those that depend on them, breadth first. What may be concerned is found by the callee of the
//! question: an added method by its signature, a removed one by the answers that it is in. (A method that is in no answer for a
//! question is kept from it by another, which keeps the same methods from it.)
//!
//! Which instances end, and in which order, follows from the order in which they were made and from nothing else. Each
//! keeps the reason for its end; [`Edges::chain`] follows the reasons to the change that began it.
//!
//! This crate knows no types: [`Signatures`] answers what has to be known of them.
//!
//! Cost: a change looks at the lookups with the same callee and at those whose callee is not known; of each that is concerned, at
//! the methods of the callee, by pairs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use crate::worlds::WorldRange;

/// What has to be known of the types of calls. A signature is the types of all operands, the callee first.
pub trait Signatures {
    /// A signature.
    type Signature: Clone;

    /// Whether some call has both signatures. What is not known is `true`.
    fn overlap(&self, a: &Self::Signature, b: &Self::Signature) -> bool;

    /// Whether every call that has the signature `a` has the signature `b`.
    fn is_subtype(&self, a: &Self::Signature, b: &Self::Signature) -> bool;

    /// What is the same for signatures with the same callee; `None` if the signature does not say which callee it is.
    fn callee(&self, a: &Self::Signature) -> Option<u64>;

    /// The signature in messages.
    fn show(&self, a: &Self::Signature) -> String;
}

/// A method, by the number that its runtime gives it. Those that came later have greater numbers.
pub type MethodNumber = u64;

/// A code instance, in the order in which they were made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct InstanceId(pub u32);

/// Where the calls of a signature may go.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The methods, by number.
    pub methods: Vec<MethodNumber>,
    /// Whether some call may be ambiguous.
    pub is_ambiguous: bool,
}

/// What a code instance depends on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Edge<S> {
    /// A method that was called without asking.
    Method(MethodNumber),
    /// A question, and the answer that was believed.
    Lookup(S, Answer),
    /// Another instance.
    Instance(InstanceId),
}

/// Why a code instance is not valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reason {
    /// A method that it calls is gone.
    Removed(MethodNumber),
    /// A question has another answer.
    Lookup {
        /// The question.
        question: String,
        /// What was believed.
        before: Answer,
        /// What is true.
        now: Answer,
    },
    /// An instance that it depends on is not valid.
    Instance(InstanceId),
}

/// An instance that has come to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidation {
    /// The instance.
    pub instance: InstanceId,
    /// Its last world.
    pub last_world: u64,
    /// Why.
    pub reason: Reason,
}

/// A method as [`Edges::change`] is told of it.
#[derive(Clone, Debug)]
pub struct NewMethod<S> {
    /// Its number.
    pub number: MethodNumber,
    /// Its signature.
    pub signature: S,
    /// Its name in messages.
    pub name: String,
}

/// See the file's header.
pub struct Edges<T: Signatures> {
    world: u64,
    methods: BTreeMap<MethodNumber, Method<T::Signature>>,
    /// The visible methods by callee.
    by_callee: BTreeMap<Option<u64>, BTreeSet<MethodNumber>>,
    instances: BTreeMap<InstanceId, Instance>,
    next: u32,
    lookups: BTreeMap<u32, Lookup<T::Signature>>,
    next_lookup: u32,
    lookups_by_callee: BTreeMap<Option<u64>, BTreeSet<u32>>,
}

struct Method<S> {
    signature: S,
    name: String,
    worlds: WorldRange,
    users: BTreeSet<InstanceId>,
    /// Lookups in whose answers it is.
    lookups: BTreeSet<u32>,
}

struct Instance {
    name: String,
    worlds: WorldRange,
    users: BTreeSet<InstanceId>,
    methods: Vec<MethodNumber>,
    lookups: Vec<u32>,
    depends: Vec<InstanceId>,
    /// Why it has ended, and in words.
    ended: Option<(Reason, String)>,
}

/// One instance's question.
struct Lookup<S> {
    user: InstanceId,
    question: S,
    answer: Answer,
}

impl<T: Signatures> Default for Edges<T> {
    fn default() -> Self {
        Edges {
            world: 1,
            methods: BTreeMap::new(),
            by_callee: BTreeMap::new(),
            instances: BTreeMap::new(),
            next: 0,
            lookups: BTreeMap::new(),
            next_lookup: 0,
            lookups_by_callee: BTreeMap::new(),
        }
    }
}

impl<T: Signatures> Edges<T> {
    /// The newest world.
    #[must_use]
    pub fn world(&self) -> u64 {
        self.world
    }

    /// The worlds in which a method is visible; none if there is no such method.
    #[must_use]
    pub fn method_worlds(&self, method: MethodNumber) -> WorldRange {
        self.methods.get(&method).map_or(WorldRange::EMPTY, |method| method.worlds)
    }

    /// The worlds for which an instance is valid; none if there is no such instance.
    #[must_use]
    pub fn worlds(&self, instance: InstanceId) -> WorldRange {
        self.instances.get(&instance).map_or(WorldRange::EMPTY, |instance| instance.worlds)
    }

    /// Where the calls of a signature may go in the newest world.
    #[must_use]
    pub fn look_up(&self, types: &T, question: &T::Signature) -> Answer {
        let keys = match types.callee(question) {
            // A method whose callee is not known may be one of this callee.
            Some(callee) => vec![Some(callee), None],
            None => self.by_callee.keys().copied().collect(),
        };
        let numbers: BTreeSet<MethodNumber> =
            keys.iter().filter_map(|key| self.by_callee.get(key)).flatten().copied().collect();
        let matches: Vec<(MethodNumber, &T::Signature)> = numbers
            .iter()
            .filter_map(|number| Some((*number, &self.methods.get(number)?.signature)))
            .filter(|(_, signature)| types.overlap(signature, question))
            .collect();
        // Those that take every such call, which alone can keep others from it.
        let takes_all: Vec<_> =
            matches.iter().filter(|(_, signature)| types.is_subtype(question, signature)).collect();
        let goes_before = |a: &(MethodNumber, &T::Signature), b: &(MethodNumber, &T::Signature)| {
            types.is_subtype(a.1, b.1) && (a.0 > b.0 || !types.is_subtype(b.1, a.1))
        };
        let left: Vec<_> = matches
            .iter()
            .filter(|m| !takes_all.iter().any(|other| other.0 != m.0 && goes_before(other, m)))
            .collect();
        let clash = |(n, a): (usize, &&(MethodNumber, &T::Signature))| {
            left[n + 1..].iter().any(|b| {
                types.overlap(a.1, b.1) && !types.is_subtype(a.1, b.1) && !types.is_subtype(b.1, a.1)
            })
        };
        let is_ambiguous = left.iter().enumerate().any(clash);
        Answer { methods: left.iter().map(|(number, _)| *number).collect(), is_ambiguous }
    }

    /// Takes an instance that was made with these beliefs. If one does not hold any more, the instance is not valid in any world, and
    /// is not taken.
    pub fn add_instance(
        &mut self,
        types: &T,
        name: impl Into<String>,
        edges: impl IntoIterator<Item = Edge<T::Signature>>,
    ) -> Result<InstanceId, Reason> {
        let edges: Vec<Edge<T::Signature>> = edges.into_iter().collect();
        for edge in &edges {
            match edge {
                Edge::Method(number) if !self.method_worlds(*number).is_open() => {
                    return Err(Reason::Removed(*number));
                }
                Edge::Instance(id) if !self.worlds(*id).is_open() => return Err(Reason::Instance(*id)),
                Edge::Lookup(question, before) => {
                    let now = self.look_up(types, question);
                    if now != *before {
                        let question = types.show(question);
                        return Err(Reason::Lookup { question, before: before.clone(), now });
                    }
                }
                _ => {}
            }
        }
        let id = InstanceId(self.next);
        self.next += 1;
        let (mut methods, mut lookups, mut depends) = (Vec::new(), Vec::new(), Vec::new());
        for edge in edges {
            match edge {
                Edge::Method(number) => {
                    if let Some(method) = self.methods.get_mut(&number) {
                        method.users.insert(id);
                        methods.push(number);
                    }
                }
                Edge::Instance(other) => {
                    if let Some(instance) = self.instances.get_mut(&other) {
                        instance.users.insert(id);
                        depends.push(other);
                    }
                }
                Edge::Lookup(question, answer) => {
                    let lookup = self.next_lookup;
                    self.next_lookup += 1;
                    for number in &answer.methods {
                        if let Some(method) = self.methods.get_mut(number) {
                            method.lookups.insert(lookup);
                        }
                    }
                    self.lookups_by_callee.entry(types.callee(&question)).or_default().insert(lookup);
                    self.lookups.insert(lookup, Lookup { user: id, question, answer });
                    lookups.push(lookup);
                }
            }
        }
        let worlds = WorldRange::from(self.world);
        let users = BTreeSet::new();
        let name = name.into();
        self.instances.insert(id, Instance { name, worlds, users, methods, lookups, depends, ended: None });
        Ok(id)
    }

    /// Forgets an instance that nobody will ask for again: its code is gone. Those that depend on it stay as they are.
    pub fn forget_instance(&mut self, types: &T, id: InstanceId) {
        self.cut(types, id);
        if let Some(instance) = self.instances.remove(&id) {
            for user in instance.users {
                if let Some(user) = self.instances.get_mut(&user) {
                    user.depends.retain(|other| *other != id);
                }
            }
        }
    }

    /// Makes a new world, with methods added and removed; gives the instances that end before it, in the order in which they do. Changes of
    /// one world may come one by one; a world that is over is taken for the newest one.
    pub fn change(
        &mut self,
        types: &T,
        world: u64,
        added: impl IntoIterator<Item = NewMethod<T::Signature>>,
        removed: impl IntoIterator<Item = MethodNumber>,
    ) -> Vec<Invalidation> {
        self.world = world.max(self.world);
        let last_world = self.world - 1;
        let mut hit: BTreeMap<InstanceId, Reason> = BTreeMap::new();
        let mut concerned: BTreeSet<u32> = BTreeSet::new();
        for number in removed {
            let Some(method) = self.methods.get_mut(&number).filter(|method| method.worlds.is_open()) else {
                continue;
            };
            method.worlds = method.worlds.up_to(last_world);
            for &user in &method.users {
                hit.entry(user).or_insert(Reason::Removed(number));
            }
            concerned.extend(&method.lookups);
            let key = types.callee(&method.signature);
            if let Some(numbers) = self.by_callee.get_mut(&key) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    self.by_callee.remove(&key);
                }
            }
        }
        for NewMethod { number, signature, name } in added {
            let key = types.callee(&signature);
            let keys: Vec<Option<u64>> = match key {
                Some(_) => vec![key, None],
                None => self.lookups_by_callee.keys().copied().collect(),
            };
            let near = keys.iter().filter_map(|key| self.lookups_by_callee.get(key)).flatten();
            let overlaps =
                |id: &&u32| self.lookups.get(id).is_some_and(|l| types.overlap(&signature, &l.question));
            concerned.extend(near.filter(overlaps));
            self.by_callee.entry(key).or_default().insert(number);
            let worlds = WorldRange::from(self.world);
            let (users, lookups) = (BTreeSet::new(), BTreeSet::new());
            self.methods.insert(number, Method { signature, name, worlds, users, lookups });
        }
        for id in concerned {
            let Some(Lookup { user, question, answer }) = self.lookups.get(&id) else { continue };
            let now = self.look_up(types, question);
            if now != *answer {
                let question = types.show(question);
                let reason = Reason::Lookup { question, before: answer.clone(), now };
                hit.entry(*user).or_insert(reason);
            }
        }
        self.spread(types, hit, last_world)
    }

    /// Ends these instances and all that depend on them.
    fn spread(&mut self, types: &T, hit: BTreeMap<InstanceId, Reason>, last_world: u64) -> Vec<Invalidation> {
        let mut ended = Vec::new();
        let mut pending: VecDeque<(InstanceId, Reason)> = hit.into_iter().collect();
        while let Some((id, reason)) = pending.pop_front() {
            if self.instances.get(&id).is_none_or(|instance| instance.ended.is_some()) {
                continue;
            }
            // Now: methods that nothing depends on any more are forgotten below.
            let shown = self.in_words(&reason);
            let Some(instance) = self.instances.get_mut(&id) else { continue };
            instance.worlds = instance.worlds.up_to(last_world);
            instance.ended = Some((reason.clone(), shown));
            pending.extend(instance.users.iter().map(|&user| (user, Reason::Instance(id))));
            ended.push(Invalidation { instance: id, last_world, reason });
        }
        // What has ended depends on nothing any more.
        for Invalidation { instance, .. } in &ended {
            self.cut(types, *instance);
        }
        ended
    }

    /// Takes the edges of an instance away.
    fn cut(&mut self, types: &T, id: InstanceId) {
        let Some(instance) = self.instances.get_mut(&id) else { return };
        let (methods, lookups) =
            (std::mem::take(&mut instance.methods), std::mem::take(&mut instance.lookups));
        for other in std::mem::take(&mut instance.depends) {
            if let Some(other) = self.instances.get_mut(&other) {
                other.users.remove(&id);
            }
        }
        let mut touched = methods;
        for number in &touched {
            if let Some(method) = self.methods.get_mut(number) {
                method.users.remove(&id);
            }
        }
        for id in lookups {
            let Some(Lookup { question, answer, .. }) = self.lookups.remove(&id) else { continue };
            let key = types.callee(&question);
            if let Some(near) = self.lookups_by_callee.get_mut(&key) {
                near.remove(&id);
                if near.is_empty() {
                    self.lookups_by_callee.remove(&key);
                }
            }
            for number in answer.methods {
                if let Some(method) = self.methods.get_mut(&number) {
                    method.lookups.remove(&id);
                }
                touched.push(number);
            }
        }
        // A method that is gone is known for as long as something depends on it.
        for number in touched {
            let is_over =
                |m: &Method<T::Signature>| !m.worlds.is_open() && m.users.is_empty() && m.lookups.is_empty();
            if self.methods.get(&number).is_some_and(is_over) {
                self.methods.remove(&number);
            }
        }
    }

    /// Why an instance has ended: the instances from it to the one that a change has hit, each with its reason. Empty if it is
    /// valid.
    #[must_use]
    pub fn chain(&self, instance: InstanceId) -> Chain {
        let mut links = Vec::new();
        let mut at = Some(instance);
        // An instance ends after those that it ends by, so this comes to an end.
        while let Some(id) = at {
            let Some(Instance { name, ended: Some((reason, shown)), worlds, .. }) = self.instances.get(&id)
            else {
                break;
            };
            links.push(format!("{name} is valid for {worlds}: {shown}"));
            at = match reason {
                Reason::Instance(other) => Some(*other),
                _ => None,
            };
        }
        Chain { links }
    }

    fn in_words(&self, reason: &Reason) -> String {
        match reason {
            Reason::Removed(number) => format!("method {} was removed", self.method_name(*number)),
            Reason::Lookup { question, before, now } => {
                format!("{question} went to {}, and goes to {}", self.names(before), self.names(now))
            }
            Reason::Instance(_) => "it depends on what follows".to_owned(),
        }
    }

    fn method_name(&self, number: MethodNumber) -> String {
        self.methods.get(&number).map_or_else(|| format!("#{number}"), |method| method.name.clone())
    }

    fn names(&self, answer: &Answer) -> String {
        let names: Vec<String> = answer.methods.iter().map(|&number| self.method_name(number)).collect();
        match (names.is_empty(), answer.is_ambiguous) {
            (true, _) => "no method".to_owned(),
            (_, true) => format!("{}, ambiguously", names.join(" or ")),
            _ => names.join(" or "),
        }
    }
}

/// Reasons from an instance to the change that ended it, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// One sentence for each instance.
    pub links: Vec<String>,
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.links.join("\n"))
    }
}
