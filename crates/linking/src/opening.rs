//! Opening and closing dylibs: each initialiser runs once, on one thread, while others that open the same
//! dylibs wait for it.
//!
//! | thread | finds | action |
//! |---|---|---|
//! | opens | due | runs them |
//! | opens | another thread is busy with some | waits until they have run or failed, and retries |
//! | opens | it is busy with them itself, further up | continues: an initialiser may open what is being opened |
//! | opens | the other thread waits for this one, through any threads, lookups and tasks | [`Error::Cycle`] |
//! | opens | another thread deinitialises one of the dylibs | waits until that is done, and retries |
//! | closes the last opening | another thread is busy | continues; the busy thread deinitialises eventually |
//!
//! A waiting thread has nothing planned except the initialiser that it is running. It parks, and runs no
//! tasks. If it is inside a task, the thread that it waits for may need that task: of the two, the one that
//! begins to wait last gets the error, from its opening or from its lookup (`machine/waits.rs`). The end of
//! the session waits for openings and closings, and accepts no new ones. Cost: one step for each initialiser,
//! and four for each opening.

use std::thread::current;

use crate::dispatch;
use crate::dylib::Dylib;
use crate::error::{Error, Foreign, Name};
use crate::flags::{Link, Sees, Until};
use crate::ids::DylibId;
use crate::lookup::Lookup;
use crate::machine::{Closing, Initialized, Initializers, Opened, Plan, Release, Version};
use crate::session::{Live, Session, weak};
use crate::target::Target;

impl<T: Target> Dylib<T> {
    /// Opens the dylib as `dlopen` does: runs the initialisers of what it is linked against and its own,
    /// dependences first, each once, by `run`; [`Dylib::close`] undoes it. Waits for those that another
    /// thread is running.
    ///
    /// # Errors
    /// An initialiser is not available or reports an error: the opening is undone, as by [`Dylib::close`],
    /// and what was initialised and nothing else holds open is passed to `deinitialize`. [`Error::Cycle`]: a
    /// thread that runs some waits for this one, or for a task that it is executing.
    pub fn open(
        &self,
        run: impl FnMut(&Name) -> Result<(), Foreign>,
        deinitialize: impl FnMut(DylibId),
    ) -> Result<(), Error> {
        self.session().undertake(|| self.open_or_take_back(run, deinitialize))?
    }

    fn open_or_take_back(
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
        // By now it may be closed, with nothing left to deinitialise.
        self.deinitialize(closing.unwrap_or_default(), &mut deinitialize);
        opened
    }

    /// Runs initialisers added since the dylib was opened.
    ///
    /// # Errors
    /// As for [`Dylib::open`], but initialisers that have run stay in effect.
    pub fn update(&self, run: impl FnMut(&Name) -> Result<(), Foreign>) -> Result<(), Error> {
        self.session().undertake(|| self.initialize(false, run, &mut false))?
    }

    /// Undoes one opening. Dylibs that were opened and that no open dylib reaches any more are passed to
    /// `deinitialize`, dependants first; a thread that opens one meanwhile waits.
    ///
    /// # Errors
    /// The dylib is closed, or was not open; or the session is ending, which deinitialises it.
    pub fn close(&self, mut deinitialize: impl FnMut(DylibId)) -> Result<(), Error> {
        self.session().undertake(|| {
            let closing = self.session().step(Release { dylib: self.id(), by: current().id() })?;
            self.deinitialize(closing, &mut deinitialize);
            Ok(())
        })?
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
            let before = self.session().openings().news();
            let doers = dispatch::doers(self.session().address());
            let plan = self.session().step(Initializers { dylib: self.id(), open, by, doers })?;
            *is_counted |= std::mem::take(&mut open);
            let (planned, more) = match plan {
                Plan::Run { run, more } => (run, more),
                Plan::Wait => {
                    // The thread that ends the session does not wait for threads that wait for it.
                    self.session().openings().look_again();
                    self.session().openings().wait_until(|news| news.ended != before.ended);
                    continue;
                }
                Plan::Never(label) => {
                    let symbols = label.into_iter().map(|label| self.session().name(label)).collect();
                    return Err(Error::Cycle { symbols });
                }
                Plan::Done => return Ok(()),
            };
            let mut left = Unfinished {
                session: self.session(),
                versions: planned.iter().rev().map(|(_, version)| *version).collect(),
                closed: None,
            };
            // All are started before the first is waited for.
            let lookups: Vec<(Name, Lookup<T>)> = planned
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
            if !more {
                return Ok(());
            }
        }
    }
}

/// Marks initialisers that did not run as due again, and allows a deinitialised dylib to be opened, even
/// after a panic.
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
