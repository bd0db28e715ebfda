//! A session as text: its dylibs, their symbols, and the states of the symbols.
//!
//! ```text
//!   dylib `main`: main, facade
//!       re-exports `area` of `shapes`
//!       area(Int64)      ready, used by `top(Int64)` of `main`
//!       slow(Int64)      materializing, waits for `slow(Int64)` of `main`
//! ```

use std::fmt::Write as _;
use std::sync::Arc;

use brolga_linking::{Name, Observed, Progress, SymbolFacts};

use super::declared::REEXPORT;
use super::dylib::Dylib;
use super::error::SessionError;
use super::linking;
use super::sources::SOURCE;
use super::sync::lock;
use super::{Exports, Inner, Session};

impl Session {
    /// Sets `reporter` to be called with each failure that no look-up was waiting for when it happened: of work that was [started](super::Definitions::start), of dependants of failed symbols. Later
    /// look-ups get the failure too. It is called without a lock, on the thread where the failure happens, and replaces the previous reporter.
    pub fn report_failures(&self, reporter: impl Fn(&SessionError) + Send + Sync + 'static) {
        let former = lock(&self.inner.reporter).replace(Arc::new(reporter));
        drop(former);
    }

    /// Sets `observer` to be called with the symbol events from now on: defined, started, resolved, emitted (with the symbols it waits for), ready, failed, removed. It receives the events of one step of the
    /// session in order, without a lock, on the thread that made the step; the numbers of events order the events of several threads. It replaces the previous observer. While
    /// there is none, nothing is recorded.
    pub fn observe(&self, observer: impl Fn(&[Observed]) + Send + Sync + 'static) {
        let former = lock(&self.inner.observer).replace(Arc::new(observer));
        drop(former);
        self.linking().observe(true);
    }

    /// Returns a text with all dylibs, their links, re-exports and symbols, the state of each symbol, what it waits for and its users. For human readers: the format may change.
    pub fn dump(&self) -> String {
        let mut linkings: Vec<linking::Dylib<super::Native>> =
            lock(&self.inner.homes).values().map(|home| home.linking.clone()).collect();
        linkings.sort_by_key(linking::Dylib::id);
        let mut text = String::new();
        for linking in linkings {
            // Writing to a string cannot fail. Closed dylibs have nothing.
            let _ = Dylib::new(self.clone(), linking).dump_to(&mut text);
        }
        text
    }
}

/// See [`Session::observe`].
pub(super) type Observer = Arc<dyn Fn(&[Observed]) + Send + Sync>;

impl Inner {
    /// Passes events to the observer.
    pub(super) fn show(&self, events: &[Observed]) {
        let observer = lock(&self.observer).clone();
        if let Some(observer) = observer {
            observer(events);
        }
    }

    /// Reports a failure that no lookup waits for.
    pub(super) fn report(&self, error: &SessionError) {
        let reporter = lock(&self.reporter).clone();
        if let Some(reporter) = reporter {
            reporter(error);
        }
    }
}

impl Dylib {
    /// A snapshot of its symbols in the order of their names: functions by their types (`fib(Int64)`), C symbols, and declarations, whose symbols end in `#global`, `#type`, `#reexport` and `#source`. Bodies of
    /// functions are omitted.
    ///
    /// # Errors
    /// The dylib is closed.
    pub fn symbols(&self) -> Result<Vec<SymbolFacts>, SessionError> {
        let mut all = self.linking.symbols()?;
        all.retain(|facts| !facts.symbol.is_part());
        Ok(all)
    }

    fn dump_to(&self, text: &mut String) -> Result<(), SessionError> {
        let symbols = self.symbols()?;
        let links: Vec<String> = self.links()?.iter().map(|link| format!("`{}`", link.name())).collect();
        let _ = writeln!(text, "dylib `{}`: {}", self.name(), links.join(", "));
        for (from, exports) in self.session.inner.owners.reexported(self.linking.id()) {
            let from = self.session.home(from).map_or_else(|| "?".to_owned(), |home| home.name().to_owned());
            let names = |names: &std::collections::BTreeSet<String>| {
                names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            };
            let _ = match &*exports {
                Exports::All => writeln!(text, "    re-exports all of `{from}`"),
                Exports::Only(only) => writeln!(text, "    re-exports {} of `{from}`", names(only)),
                Exports::Except(but) => writeln!(text, "    re-exports all of `{from}` but {}", names(but)),
            };
        }
        let is_shown = |facts: &SymbolFacts| ![REEXPORT, SOURCE].iter().any(|end| facts.text.ends_with(end));
        for facts in symbols.into_iter().filter(is_shown) {
            let progress = match facts.progress {
                Progress::Defined => "defined",
                Progress::Materializing => "materializing",
                Progress::Resolved => "resolved",
                Progress::Emitted => "emitted",
                Progress::Ready => "ready",
                Progress::Failed => "failed",
            };
            let _ = write!(text, "    {:<40} {progress}", facts.text);
            let mut list = |what: &str, names: &[Name]| {
                if !names.is_empty() {
                    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
                    let _ = write!(text, ", {what} {}", names.join(", "));
                }
            };
            list("waits for", &facts.waits_for);
            list("used by", &facts.users);
            text.push('\n');
        }
        Ok(())
    }
}
