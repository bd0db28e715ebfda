//! Opening and closing dylibs: initialisers run, once, by one thread, while others that open the same dylibs wait for it.
//!
//! | thread | finds | does |
//! |---|---|---|
//! | opens | due | runs them |
//! | opens | another thread is busy with some | waits until that has run or failed, and looks again |
//! | opens | it is busy with them itself, further up | goes on: an initialiser may open what is being opened |
//! | opens | the thread to wait for waits for it, through whatever others | [`Error::Cycle`] |
//! | opens | another thread deinitialises a dylib of them | waits until that is done, and looks again |
//! | closes the last opening | another thread is busy | goes on; who is busy deinitialises in the end |
//!
//! A thread that waits has nothing of its own planned, but for what it is in the middle of. It parks, and runs no tasks: an initialiser must
//! not wait for a task that opens what it initialises. Cost: one step for each initialiser, and two for each opening.

use std::thread::{ThreadId, current};

use rustc_hash::FxHashMap;

use crate::dylib::Dylib;
use crate::error::{Error, Foreign, Name};
use crate::flags::{Link, Sees, Until};
use crate::ids::DylibId;
use crate::lookup::Lookup;
use crate::machine::{Closing, Initialized, Initializers, Opened, Release, Version};
use crate::session::{Live, Session, Target, weak};
use crate::sync::{Condvar, Mutex, lock, wait};

/// Threads that wait for others that are busy with initialisers.
#[derive(Default)]
pub(crate) struct Openings {
    waits: Mutex<Waits>,
    changed: Condvar,
}

#[derive(Default)]
struct Waits {
    /// How often a thread has ended to be busy with something.
    ended: u64,
    /// Who waits, and for whom.
    behind: FxHashMap<ThreadId, ThreadId>,
}

impl Openings {
    fn ended(&self) -> u64 {
        lock(&self.waits).ended
    }

    /// All who wait look again.
    fn end_one(&self) {
        let mut waits = lock(&self.waits);
        waits.ended += 1;
        waits.behind.clear();
        drop(waits);
        self.changed.notify_all();
    }

    /// Waits until something has ended since `ended` was asked for; `false` if `other` waits for this thread.
    fn wait_for(&self, other: ThreadId, ended: u64) -> bool {
        let me = current().id();
        let mut waits = lock(&self.waits);
        if waits.ended != ended {
            return true;
        }
        let mut at = other;
        while let Some(&next) = waits.behind.get(&at) {
            if next == me {
                return false;
            }
            at = next;
        }
        waits.behind.insert(me, other);
        while waits.ended == ended {
            waits = wait(&self.changed, waits);
        }
        true
    }
}

impl<T: Target> Dylib<T> {
    /// Opens the dylib as `dlopen` does: runs the initialisers of what it is linked against and its own, dependences first,
    /// each once, by `run`; to be taken back by [`Dylib::close`]. Those that another thread is running are waited for.
    ///
    /// # Errors
    /// An initialiser cannot be had or reports an error: the opening is taken back, as by [`Dylib::close`], and what was initialised and
    /// nothing else holds open is handed to `deinitialize`. [`Error::Cycle`]: a thread that runs some waits for this one.
    pub fn open(
        &self,
        run: impl FnMut(&Name) -> Result<(), Foreign>,
        mut deinitialize: impl FnMut(DylibId),
    ) -> Result<(), Error> {
        let mut is_counted = false;
        let opened = self.initialize(true, run, &mut is_counted);
        let by = current().id();
        let closing = match &opened {
            Ok(()) => self.session().step(Opened { dylib: self.id(), by }),
            Err(_) if is_counted => self.session().step(Release { dylib: self.id(), by }),
            Err(_) => Ok(Vec::new()),
        };
        // It may be closed by now, and nothing is left to be deinitialised.
        self.deinitialize(closing.unwrap_or_default(), &mut deinitialize);
        opened
    }

    /// Runs initialisers that came since the dylib was opened.
    ///
    /// # Errors
    /// As [`Dylib::open`], but what has run stays.
    pub fn update(&self, run: impl FnMut(&Name) -> Result<(), Foreign>) -> Result<(), Error> {
        self.initialize(false, run, &mut false)
    }

    /// Takes one opening back. What was opened and nothing open reaches any more is handed to `deinitialize`, dependants first; who opens
    /// it meanwhile waits.
    ///
    /// # Errors
    /// The dylib is closed, or was not open.
    pub fn close(&self, mut deinitialize: impl FnMut(DylibId)) -> Result<(), Error> {
        let closing = self.session().step(Release { dylib: self.id(), by: current().id() })?;
        self.deinitialize(closing, &mut deinitialize);
        Ok(())
    }

    fn deinitialize(&self, closing: Vec<Closing<Live<T>>>, deinitialize: &mut dyn FnMut(DylibId)) {
        let (dylibs, left): (Vec<_>, Vec<_>) = closing
            .into_iter()
            .map(|Closing { dylib, versions }| {
                (dylib, Unfinished { session: self.session(), versions, closed: Some(dylib) })
            })
            .unzip();
        for (dylib, left) in dylibs.into_iter().zip(left) {
            deinitialize(dylib);
            drop(left);
        }
    }

    fn initialize(
        &self,
        mut open: bool,
        mut run: impl FnMut(&Name) -> Result<(), Foreign>,
        is_counted: &mut bool,
    ) -> Result<(), Error> {
        let by = current().id();
        loop {
            let ended = self.session().openings().ended();
            let plan = self.session().step(Initializers { dylib: self.id(), open, by })?;
            *is_counted |= std::mem::take(&mut open);
            let mut left = Unfinished {
                session: self.session(),
                versions: plan.run.iter().rev().map(|(_, version)| *version).collect(),
                closed: None,
            };
            // All are started before the first is waited for.
            let lookups: Vec<(Name, Lookup<T>)> = plan
                .run
                .iter()
                .map(|&(label, _)| {
                    let order = vec![Link { dylib: label.dylib, sees: Sees::All }];
                    let lookup = self.session().lookup(order, weak([label.symbol]), Until::Ready);
                    (self.session().name(label), lookup)
                })
                .collect();
            for (name, lookup) in lookups {
                lookup.wait()?;
                run(&name).map_err(|error| Error::Initializer { name, error })?;
                if let Some(version) = left.versions.pop() {
                    self.session().step(Initialized {
                        versions: vec![version],
                        done: true,
                        closed: None,
                        by,
                    });
                    self.session().openings().end_one();
                }
            }
            let Some((label, other)) = plan.behind else { return Ok(()) };
            if !self.session().openings().wait_for(other, ended) {
                return Err(Error::Cycle {
                    symbols: label.into_iter().map(|label| self.session().name(label)).collect(),
                });
            }
        }
    }
}

/// Initialisers that did not run are due again, and a dylib that was deinitialised may be opened, also when one of them panics.
struct Unfinished<'a, T: Target> {
    session: &'a Session<T>,
    versions: Vec<Version<Live<T>>>,
    closed: Option<DylibId>,
}

impl<T: Target> Drop for Unfinished<'_, T> {
    fn drop(&mut self) {
        let versions = std::mem::take(&mut self.versions);
        let closed = self.closed.take();
        if closed.is_some() || !versions.is_empty() {
            let by = current().id();
            self.session.step(Initialized { versions, done: false, closed, by });
            self.session.openings().end_one();
        }
    }
}
