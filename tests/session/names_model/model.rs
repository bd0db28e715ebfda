//! What `docs/sessions.md` says about a sequence of operations, in plain maps: no types, no code, no worlds.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::Kind;

use super::steps::{Arg, Body, DYLIBS, Function, How, Item, NAMES, Passed, Program, SIGN, Step, Type};

/// The library, which is the last one in all link orders.
const LIBRARY: usize = DYLIBS;

/// A dylib, a name, the type of the parameter.
type Key = (usize, usize, Type);

/// The result of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Done,
    Refused,
    Values(Vec<i64>),
    MethodError,
    NotDefined,
    /// It depends on what has been compiled, as the page says; the operation is left out.
    Unspecified,
}

/// A function: the number of the name's homonym.
#[derive(Default, Clone)]
struct Homonym {
    owner: Option<usize>,
    /// Whether its owner has hidden methods of it alone.
    is_hidden: bool,
    users: BTreeSet<usize>,
}

struct Reexport {
    dylib: usize,
    from: usize,
    passed: Passed,
    tracker: Option<usize>,
}

/// Where a static call goes.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// To this method, as long as it is not removed: the second is the number of its life.
    Method(Key, u64),
    /// It was missing: the call is decided when it is reached.
    Late,
}

struct Definition {
    homonym: usize,
    /// The method that it is an alias of, and the number of its life.
    alias_of: Option<(Key, u64)>,
    is_hidden: bool,
    body: Body,
    salt: i64,
    /// What the names of the body mean.
    meaning: BTreeMap<usize, usize>,
    target: Target,
    cell: Option<usize>,
    /// How many fields `P` has for it.
    fields: usize,
    tracker: Option<usize>,
    life: u64,
    /// When it was defined last.
    since: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    Int,
    Float,
    Function(usize, usize),
}

#[derive(Clone, Copy)]
struct Variable {
    first: i64,
    cell: usize,
    tracker: Option<usize>,
}

/// A type that a dylib has declared.
struct Declared {
    dylib: usize,
    number: usize,
    tracker: Option<usize>,
}

#[derive(Default)]
pub(super) struct Model {
    /// The link orders, of the library as well.
    orders: [Vec<usize>; DYLIBS + 1],
    reexports: Vec<Reexport>,
    homonyms: [Vec<Homonym>; NAMES.len()],
    definitions: BTreeMap<Key, Definition>,
    /// The variables of the dylibs.
    variables: BTreeMap<(usize, usize), Variable>,
    cells: Vec<i64>,
    /// The types `P`, by how many fields they have.
    types: Vec<usize>,
    /// Which of these `P` means in the dylibs that have declared it, in the order of the first declarations.
    declared: Vec<Declared>,
    /// Whether no dylib means the first one any more.
    is_first_former: bool,
    clock: u64,
}

/// How deep calls may be; deeper ones may be endless.
const DEPTH: usize = 30;

impl Model {
    pub(super) fn new() -> Model {
        let mut model = Model::default();
        (0..DYLIBS).for_each(|dylib| model.orders[dylib] = vec![dylib, LIBRARY]);
        model.orders[LIBRARY].push(LIBRARY);
        let function = Function { name: SIGN, ty: Type::Int, body: Body::Constant, salt: 1 };
        let kind = Kind::Eager;
        let library = Program {
            functions: vec![function],
            globals: Vec::new(),
            fields: None,
            kind,
            is_late: false,
            is_hidden: false,
            tracker: None,
        };
        model.define(LIBRARY, &library, false);
        model
    }

    /// Where a name is looked for along these dylibs: each is followed by what it re-exports, and searched once.
    fn along(&self, links: &[usize], item: Item) -> Vec<usize> {
        fn visit(model: &Model, dylib: usize, item: Item, found: &mut Vec<usize>) {
            if !found.contains(&dylib) {
                found.push(dylib);
                let of = model.reexports.iter().filter(|one| one.dylib == dylib && one.passed.has(item));
                of.for_each(|one| visit(model, one.from, item, found));
            }
        }
        let mut found = Vec::new();
        links.iter().for_each(|&dylib| visit(self, dylib, item, &mut found));
        found
    }

    /// Where a dylib looks for a name.
    fn order(&self, dylib: usize, item: Item) -> Vec<usize> {
        self.along(&self.orders[dylib], item)
    }

    /// Where it looks for the owner of a name: in itself first, whatever its link order is.
    fn owners(&self, dylib: usize, item: Item) -> Vec<usize> {
        let others = self.orders[dylib].iter().copied().filter(|other| *other != dylib);
        let links: Vec<usize> = std::iter::once(dylib).chain(others).collect();
        self.along(&links, item)
    }

    fn sees(&self, dylib: usize, other: usize, name: usize) -> bool {
        self.order(dylib, Item::Function(name)).contains(&other)
    }

    /// Which function a name means in a program of a dylib that has a method of it, or has none.
    fn meaning(&self, dylib: usize, name: usize, is_defined: bool) -> usize {
        let all = &self.homonyms[name];
        let owned = |owner: &usize| {
            let is = |one: &Homonym| one.owner == Some(*owner) && (*owner == dylib || !one.is_hidden);
            all.iter().position(is)
        };
        if let Some(found) = self.owners(dylib, Item::Function(name)).iter().find_map(owned) {
            return found;
        }
        let free = |is: &dyn Fn(&Homonym) -> bool| all.iter().position(|one| one.owner.is_none() && is(one));
        let related = |user: &usize| self.sees(*user, dylib, name) || self.sees(dylib, *user, name);
        let found = free(&|one| one.users.contains(&dylib))
            .or_else(|| free(&|one| one.users.iter().all(related)))
            .unwrap_or(all.len());
        // Whoever has mentioned the function without seeing its owner does not share it.
        let is_shared = |one: &Homonym| one.users.iter().any(|user| !self.sees(*user, dylib, name));
        if is_defined && all.get(found).is_some_and(is_shared) { all.len() } else { found }
    }

    fn note(&mut self, dylib: usize, name: usize, homonym: usize, is_defined: bool, is_hidden: bool) {
        let all = &mut self.homonyms[name];
        if homonym == all.len() {
            all.push(Homonym::default());
        }
        all[homonym].users.insert(dylib);
        if is_defined && name != SIGN {
            let one = &mut all[homonym];
            one.is_hidden = is_hidden && (one.owner.is_none() || one.is_hidden);
        }
        if is_defined {
            all[homonym].owner.get_or_insert(dylib);
        }
    }

    /// The method that a static call means in a program: its own ones, by name and type, come first.
    fn target(
        &self,
        dylib: usize,
        own: &[(usize, Type)],
        name: usize,
        homonym: usize,
        of: Type,
    ) -> Option<Key> {
        let fits: &[Type] = match of {
            Type::Int => &[Type::Int, Type::Any],
            Type::Float => &[Type::Float, Type::Any],
            Type::Any => &[Type::Any],
        };
        fits.iter().find_map(|&ty| {
            if own.contains(&(name, ty)) {
                return Some((dylib, name, ty));
            }
            let is = |key: &Key| {
                let found = self.definitions.get(key);
                found.is_some_and(|found| found.homonym == homonym && (key.0 == dylib || !found.is_hidden))
            };
            self.order(dylib, Item::Function(name)).into_iter().map(|at| (at, name, ty)).find(is)
        })
    }

    fn define(&mut self, dylib: usize, program: &Program, replace: bool) -> Answer {
        let own: Vec<(usize, Type)> = program.functions.iter().map(|one| (one.name, one.ty)).collect();
        if !replace && own.iter().any(|&(name, ty)| self.definitions.contains_key(&(dylib, name, ty))) {
            return Answer::Refused;
        }
        let is_alias = |key: Key| self.definitions.get(&key).is_some_and(|one| one.alias_of.is_some());
        if own.iter().any(|&(name, ty)| is_alias((dylib, name, ty))) {
            return Answer::Refused;
        }
        let mut used: BTreeSet<usize> = own.iter().map(|(name, _)| *name).collect();
        let defined = used.clone();
        for function in &program.functions {
            if let Body::Call(callee, _, arg) = function.body {
                used.insert(callee);
                used.extend(if let Arg::Function(name) = arg { Some(name) } else { None });
            }
        }
        let meaning: BTreeMap<usize, usize> =
            used.iter().map(|&name| (name, self.meaning(dylib, name, defined.contains(&name)))).collect();
        // Static calls.
        let mut targets = Vec::new();
        for function in &program.functions {
            let target = match function.body {
                Body::Call(callee, How::Static | How::Noinline, arg) => {
                    let of = match arg {
                        Arg::Int => Type::Int,
                        Arg::Float => Type::Float,
                        Arg::Hidden | Arg::Function(_) => Type::Any,
                        Arg::Param => function.ty,
                    };
                    self.target(dylib, &own, callee, meaning[&callee], of)
                }
                _ => None,
            };
            if let (Body::Call(_, How::Static | How::Noinline, _), None, false) =
                (function.body, target, program.is_late)
            {
                return Answer::Refused;
            }
            targets.push(target);
        }
        let sizes = program.functions.iter().any(|function| function.body == Body::Size);
        if sizes && program.fields.is_none() && self.fields(dylib).is_none() {
            return Answer::Refused;
        }
        // Variables.
        let find = |model: &Model, variable: usize| {
            let order = model.order(dylib, Item::Variable(variable)).into_iter();
            order.filter_map(|at| model.variables.get(&(at, variable)).copied()).next()
        };
        for function in &program.functions {
            if let Body::Read(variable) | Body::Set(variable) = function.body
                && !program.globals.iter().any(|(declared, _)| *declared == variable)
                && find(self, variable).is_none()
            {
                return Answer::Refused;
            }
        }
        let mut declared = BTreeMap::new();
        for &(variable, first) in &program.globals {
            let known = find(self, variable).filter(|known| known.first == first);
            let known = known.unwrap_or_else(|| {
                self.cells.push(first);
                let new = Variable { first, cell: self.cells.len() - 1, tracker: program.tracker };
                self.variables.insert((dylib, variable), new);
                new
            });
            declared.insert(variable, known.cell);
        }
        if let Some(fields) = program.fields {
            self.declare(dylib, fields, program.tracker);
        }
        let fields = self.fields(dylib).unwrap_or(0);
        for (&name, &homonym) in &meaning {
            self.note(dylib, name, homonym, defined.contains(&name), program.is_hidden);
        }
        let mut lives = BTreeMap::new();
        for &(name, ty) in &own {
            self.clock += 1;
            let before = self.definitions.get(&(dylib, name, ty));
            let before = before.filter(|before| before.homonym == meaning[&name]);
            lives.insert((dylib, name, ty), before.map_or(self.clock, |before| before.life));
        }
        for (function, target) in program.functions.iter().zip(targets) {
            let key = (dylib, function.name, function.ty);
            let life = |key: Key| lives.get(&key).copied().unwrap_or_else(|| self.definitions[&key].life);
            let target = target.map_or(Target::Late, |key| Target::Method(key, life(key)));
            let cell = match function.body {
                Body::Read(variable) | Body::Set(variable) => {
                    declared.get(&variable).copied().or_else(|| find(self, variable).map(|known| known.cell))
                }
                _ => None,
            };
            let definition = Definition {
                homonym: meaning[&function.name],
                alias_of: None,
                is_hidden: program.is_hidden,
                body: function.body,
                salt: function.salt,
                meaning: meaning.clone(),
                target,
                cell,
                fields,
                tracker: program.tracker,
                life: lives[&key],
                since: self.clock,
            };
            self.definitions.insert(key, definition);
        }
        Answer::Done
    }

    /// How many fields `P` has in a dylib.
    fn fields(&self, dylib: usize) -> Option<usize> {
        let declared = |at: &usize| self.declared.iter().find(|declared| declared.dylib == *at);
        let meant = self.owners(dylib, Item::Type).iter().find_map(declared);
        meant.map(|meant| self.types[meant.number])
    }

    /// A program of a dylib declares `P` with so many fields.
    fn declare(&mut self, dylib: usize, fields: usize, tracker: Option<usize>) {
        if self.fields(dylib) == Some(fields) {
            return;
        }
        let first = (!self.is_first_former && !self.types.is_empty()).then_some(0);
        let mut candidates = first.into_iter().chain(self.declared.iter().map(|declared| declared.number));
        let number = candidates.find(|&number| self.types[number] == fields).unwrap_or_else(|| {
            self.types.push(fields);
            self.types.len() - 1
        });
        let new = Declared { dylib, number, tracker };
        match self.declared.iter().position(|declared| declared.dylib == dylib) {
            Some(own) => {
                let before = std::mem::replace(&mut self.declared[own], new);
                let is_former = self.declared.iter().all(|declared| declared.number != 0);
                self.is_first_former |= before.number == 0 && is_former;
            }
            None => self.declared.push(new),
        }
    }

    /// Makes `name` an alias of what another dylib sees of a function.
    fn alias(
        &mut self,
        dylib: usize,
        name: usize,
        (from, original): (usize, usize),
        tracker: Option<usize>,
    ) -> Answer {
        let of = self.meaning(from, original, false);
        let visible = |ty: Type| {
            let is = |key: &Key| {
                let found = self.definitions.get(key);
                found.is_some_and(|found| found.homonym == of && (key.0 == from || !found.is_hidden))
            };
            let order = self.order(from, Item::Function(original)).into_iter();
            order.map(|at| (at, original, ty)).find(is)
        };
        let methods: Vec<Key> = [Type::Int, Type::Float, Type::Any].into_iter().filter_map(visible).collect();
        let is_there = |key: &Key| self.definitions.contains_key(&(dylib, name, key.2));
        if methods.is_empty() || methods.iter().any(is_there) {
            return Answer::Refused;
        }
        let homonym = self.meaning(dylib, name, true);
        self.note(dylib, name, homonym, true, false);
        for key in methods {
            self.clock += 1;
            let alias = Definition {
                homonym,
                alias_of: Some((key, self.definitions[&key].life)),
                is_hidden: false,
                body: Body::Constant,
                salt: 0,
                meaning: BTreeMap::new(),
                target: Target::Late,
                cell: None,
                fields: 0,
                tracker,
                life: self.clock,
                since: self.clock,
            };
            self.definitions.insert((dylib, name, key.2), alias);
        }
        Answer::Done
    }

    /// Says whether something was removed.
    fn remove(&mut self, is_gone: impl Fn(&Key, &Definition) -> bool) -> bool {
        let before = self.definitions.len();
        self.definitions.retain(|key, one| !is_gone(key, one));
        self.definitions.len() < before
    }

    /// The method to which a dynamic call goes.
    fn dispatch(&self, name: usize, homonym: usize, value: Value) -> Option<Key> {
        let fits: &[Type] = match value {
            Value::Int => &[Type::Int, Type::Any],
            Value::Float => &[Type::Float, Type::Any],
            Value::Function(..) => &[Type::Any],
        };
        fits.iter().find_map(|&ty| {
            let all = self.definitions.iter();
            let all = all.filter(|((_, of, at), one)| (*of, *at, one.homonym) == (name, ty, homonym));
            all.max_by_key(|(key, one)| (key.0 != LIBRARY, one.since)).map(|(key, _)| *key)
        })
    }

    fn call(&mut self, key: Key, value: Value, depth: usize) -> Result<i64, Answer> {
        if depth > DEPTH {
            return Err(Answer::Unspecified);
        }
        let definition = &self.definitions[&key];
        if let Some((original, life)) = definition.alias_of {
            return match self.definitions.get(&original) {
                Some(found) if found.life == life => self.call(original, value, depth + 1),
                _ => Err(Answer::Unspecified),
            };
        }
        let Definition { salt, body, target, .. } = *definition;
        let called = |arg| match arg {
            Arg::Int | Arg::Hidden => Value::Int,
            Arg::Float => Value::Float,
            Arg::Function(name) => Value::Function(name, definition.meaning[&name]),
            Arg::Param => value,
        };
        let (callee, arg) = match body {
            Body::Constant => return Ok(salt),
            Body::Size => return Ok(8 * definition.fields as i64 + salt),
            Body::Read(_) => return Ok(self.cells[definition.cell.unwrap()] + salt),
            Body::Set(_) => {
                let cell = definition.cell.unwrap();
                self.cells[cell] = salt;
                return Ok(salt);
            }
            Body::CallParam(arg) => match value {
                Value::Function(name, homonym) => (self.dispatch(name, homonym, called(arg)), called(arg)),
                _ => return Err(Answer::MethodError),
            },
            Body::Call(name, how, arg) => {
                let callee = match (how, target) {
                    (How::Static | How::Noinline, Target::Method(key, life)) => {
                        // Linked callers keep what was removed, others miss it.
                        if self.definitions.get(&key).is_none_or(|found| found.life != life) {
                            return Err(Answer::Unspecified);
                        }
                        Some(key)
                    }
                    _ => self.dispatch(name, definition.meaning[&name], called(arg)),
                };
                (callee, called(arg))
            }
        };
        let callee = callee.ok_or(Answer::MethodError)?;
        Ok(self.call(callee, arg, depth + 1)?.wrapping_add(salt))
    }

    /// What a call from Rust finds: the first dylib in the link order that has the symbol.
    fn look_up(&self, dylib: usize, name: usize, ty: Type) -> Option<Key> {
        let is_there =
            |key: &Key| self.definitions.get(key).is_some_and(|found| key.0 == dylib || !found.is_hidden);
        self.order(dylib, Item::Function(name)).into_iter().map(|at| (at, name, ty)).find(is_there)
    }

    pub(super) fn step(&mut self, step: &Step) -> Answer {
        match *step {
            Step::Link { from, to } => {
                if !self.orders[from].contains(&to) {
                    let last = self.orders[from].len() - 1;
                    self.orders[from].insert(last, to);
                }
                Answer::Done
            }
            Step::First { dylib, first } => {
                let order = &mut self.orders[dylib];
                if let Some(at) = order.iter().position(|linked| *linked == first) {
                    order[..=at].rotate_right(1);
                }
                Answer::Done
            }
            Step::Reexport { dylib, from, ref passed, tracker } => {
                self.reexports.push(Reexport { dylib, from, passed: passed.clone(), tracker });
                Answer::Done
            }
            Step::EndReexport { dylib, from } => {
                let before = self.reexports.len();
                self.reexports.retain(|one| (one.dylib, one.from) != (dylib, from));
                if self.reexports.len() < before { Answer::Done } else { Answer::Refused }
            }
            Step::Alias { dylib, name, from, original, tracker } => {
                self.alias(dylib, name, (from, original), tracker)
            }
            Step::Define { dylib, ref program, replace } => self.define(dylib, program, replace),
            Step::Host { dylib, name, is_float, salt, replace } => {
                let ty = if is_float { Type::Float } else { Type::Int };
                let function = Function { name, ty, body: Body::Constant, salt };
                let kind = Kind::Eager;
                let program = Program {
                    functions: vec![function],
                    globals: Vec::new(),
                    fields: None,
                    kind,
                    is_late: false,
                    is_hidden: false,
                    tracker: None,
                };
                self.define(dylib, &program, replace)
            }
            Step::Remove { dylib, name, ty } => match self.remove(|key, _| *key == (dylib, name, ty)) {
                true => Answer::Done,
                false => Answer::Refused,
            },
            Step::RemoveTracker { dylib, tracker } => {
                self.remove(|key, one| key.0 == dylib && one.tracker == Some(tracker));
                self.variables.retain(|key, one| key.0 != dylib || one.tracker != Some(tracker));
                self.declared.retain(|one| one.dylib != dylib || one.tracker != Some(tracker));
                self.reexports.retain(|one| one.dylib != dylib || one.tracker != Some(tracker));
                Answer::Done
            }
            Step::Clear { dylib } => {
                self.remove(|key, _| key.0 == dylib);
                self.variables.retain(|key, _| key.0 != dylib);
                self.declared.retain(|declared| declared.dylib != dylib);
                self.reexports.retain(|one| one.dylib != dylib);
                Answer::Done
            }
            Step::Call { dylib, name, ty, times } => {
                let Some(key) = self.look_up(dylib, name, ty) else { return Answer::NotDefined };
                let value = if ty == Type::Float { Value::Float } else { Value::Int };
                let before = self.cells.clone();
                let called: Result<Vec<i64>, Answer> = (0..times).map(|_| self.call(key, value, 0)).collect();
                match called {
                    Ok(values) => Answer::Values(values),
                    Err(Answer::Unspecified) => {
                        self.cells = before;
                        Answer::Unspecified
                    }
                    Err(error) => error,
                }
            }
        }
    }
}
