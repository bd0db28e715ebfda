//! Errors, with the symbols concerned and the whole chain of causes.
//!
//! ```text
//!   Error::Failed ─► Failure{main: [f]} ─cause─► Failure{main: [g]} ─cause─► Failure{lib: [h]} ─cause─► "no memory"
//! ```
//!
//! Errors own the names that they print, so they outlive the session. A chain may be as long as the program
//! is deep: dropping and printing it never recurse. A [`Failure`] that the session makes for a hundred
//! symbols is one value shared by all of them.

use std::fmt;
use std::sync::Arc;

use crate::ids::SessionId;

/// A symbol by its text, as carried by errors.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Name {
    /// The dylib's name.
    pub dylib: Arc<str>,
    /// The symbol's name.
    pub symbol: Arc<str>,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of `{}`", self.symbol, self.dylib)
    }
}

/// Names in a sentence.
struct List<'a>(&'a [Name]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{name}")?;
        }
        Ok(())
    }
}

/// An error from a user of the session.
pub type Foreign = Arc<dyn std::error::Error + Send + Sync>;

/// Why symbols failed.
#[derive(Clone)]
#[non_exhaustive]
pub enum Cause {
    /// The materializer reported it.
    Reported(Foreign),
    /// The materializer dropped the responsibility, or its task, without an error.
    Abandoned,
    /// The code that materialized them panicked; with the message, if it was text and the panic ended the
    /// task.
    Panicked(Option<Arc<str>>),
    /// Their tracker was removed.
    Removed,
    /// Their dylib was closed, or the session ended.
    Closed,
    /// A dependence failed.
    Needs(Arc<Failure>),
    /// The session refused a step of the materialization.
    Refused(Box<Error>),
}

impl Cause {
    /// The cause for `error`: a failure reported by a lookup stays a link of the chain.
    pub fn of(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Cause {
        match error.into().downcast::<Error>() {
            Ok(own) => Cause::from(*own),
            Err(foreign) => Cause::Reported(Arc::from(foreign)),
        }
    }

    /// Whether the root cause may be temporary.
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Cause::Needs(failure) => failure.passes,
            Cause::Refused(error) => error.passes(),
            _ => false,
        }
    }

    fn take_need(&mut self) -> Option<Arc<Failure>> {
        match std::mem::replace(self, Cause::Abandoned) {
            Cause::Needs(next) => Some(next),
            Cause::Refused(error) => match *error {
                Error::Failed(next) => Some(next),
                _ => None,
            },
            _ => None,
        }
    }
}

impl From<Error> for Cause {
    fn from(error: Error) -> Cause {
        match error {
            Error::Failed(failure) => Cause::Needs(failure),
            other => Cause::Refused(Box::new(other)),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Reported(error) => write!(f, "{error}"),
            Cause::Abandoned => f.write_str("the responsibility for them was dropped"),
            Cause::Panicked(None) => f.write_str("their materialization panicked"),
            Cause::Panicked(Some(message)) => write!(f, "their materialization panicked: {message}"),
            Cause::Removed => f.write_str("they were removed"),
            Cause::Closed => f.write_str("their dylib was closed"),
            Cause::Needs(failure) => write!(f, "they need {}", List(&failure.symbols)),
            Cause::Refused(error) => write!(f, "{error}"),
        }
    }
}

/// Symbols that failed together, with the cause.
pub struct Failure {
    symbols: Vec<Name>,
    cause: Cause,
    passes: bool,
}

impl Failure {
    /// `passes`: whether the root cause may be temporary.
    pub(crate) fn new(mut symbols: Vec<Name>, cause: Cause, passes: bool) -> Arc<Failure> {
        symbols.sort();
        Arc::new(Failure { symbols, cause, passes })
    }

    /// The symbols, sorted.
    #[must_use]
    pub fn symbols(&self) -> &[Name] {
        &self.symbols
    }

    /// Why they failed.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// This failure, the failure that caused it, and so on to the root.
    pub fn chain(&self) -> impl Iterator<Item = &Failure> {
        std::iter::successors(Some(self), |failure| match &failure.cause {
            Cause::Needs(next) => Some(next),
            Cause::Refused(error) => match &**error {
                Error::Failed(next) => Some(next),
                _ => None,
            },
            _ => None,
        })
    }

    /// Whether the root cause may be temporary
    /// ([`Responsibility::fail_for_now`](crate::Responsibility::fail_for_now)).
    #[must_use]
    pub fn passes(&self) -> bool {
        self.passes
    }

    /// The cause at the end of the chain.
    #[must_use]
    pub fn root(&self) -> &Cause {
        self.chain().last().map_or(&self.cause, |failure| &failure.cause)
    }
}

impl Drop for Failure {
    fn drop(&mut self) {
        let mut next = self.cause.take_need();
        while let Some(failure) = next {
            next = Arc::into_inner(failure).and_then(|mut failure| failure.cause.take_need());
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", List(&self.symbols), self.cause)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}; root: {}", self.root())
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            // Their text is part of this error's own.
            Cause::Reported(error) => error.source(),
            Cause::Refused(error) => error.source(),
            Cause::Needs(failure) => Some(&**failure),
            Cause::Abandoned | Cause::Panicked(_) | Cause::Removed | Cause::Closed => None,
        }
    }
}

/// Why an operation of the session was not performed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A lookup required undefined symbols; the caller's mistake, or a missing library.
    #[error("not found: {}", List(symbols))]
    NotFound {
        /// All missing symbols.
        symbols: Vec<Name>,
    },
    /// Symbols are already defined; nothing was defined.
    #[error("defined twice: {}", List(symbols))]
    Duplicate { symbols: Vec<Name> },
    /// Symbols are being materialized, so they can be neither removed nor replaced now; nothing was changed.
    #[error("being materialized: {}", List(symbols))]
    Busy { symbols: Vec<Name> },
    /// Symbols could not be materialized.
    #[error(transparent)]
    Failed(Arc<Failure>),
    /// The definitions concerned were removed in the meantime.
    #[error("the definitions were removed")]
    Removed,
    #[error("dylib `{dylib}` is closed")]
    DylibClosed {
        /// Its name.
        dylib: Arc<str>,
    },
    /// A dylib with this name exists.
    #[error("there is a dylib `{dylib}` already")]
    DuplicateDylib {
        /// The name.
        dylib: Arc<str>,
    },
    /// An identifier was passed to a session other than its own; nothing was done.
    #[error("a {what} of {of} was handed to {here}")]
    OtherSession {
        /// The kind of entity that it identifies.
        what: &'static str,
        /// The session that it belongs to.
        of: SessionId,
        /// The session that it was passed to.
        here: SessionId,
    },
    /// An identifier of something that no longer exists.
    #[error("no such {what} in this session")]
    Unknown {
        /// The kind of entity that it should identify.
        what: &'static str,
    },
    /// The waiting call under limits has ended. The work that it waited for may continue.
    #[error("the call that waited for them has ended")]
    CallEnded,
    /// The session is ending or has ended.
    #[error("the session has ended")]
    SessionEnded,
    /// Other code uses the code, and the policy is to refuse; nothing was removed.
    #[error("{} used by {}", List(symbols), List(dependants))]
    InUse {
        /// The symbols to remove.
        symbols: Vec<Name>,
        /// Their users.
        dependants: Vec<Name>,
    },
    /// A request to a responsibility names symbols that do not belong to it, or that are past this step.
    #[error("no responsibility, in this state, for {}", List(symbols))]
    NotResponsible { symbols: Vec<Name> },
    /// Symbols were emitted before they had addresses.
    #[error("emitted without address: {}", List(symbols))]
    Unresolved { symbols: Vec<Name> },
    /// Symbols were emitted with dependences that can no longer be met.
    #[error("{} need {}, which cannot be had", List(symbols), List(on))]
    Unsatisfied {
        /// The emitted symbols.
        symbols: Vec<Name>,
        /// The dependences that are missing, failed, or replaced by another version.
        on: Vec<Name>,
    },
    /// A cycle of aliases.
    #[error("aliases in a cycle: {}", List(symbols))]
    AliasCycle { symbols: Vec<Name> },
    /// A definition generator reported an error.
    #[error("a definition generator failed: {0}")]
    Generator(Foreign),
    /// A definition generator dropped its request, or was removed, before it answered.
    #[error("a definition generator did not answer")]
    GeneratorAbandoned,
    /// A definition generator panicked.
    #[error("a definition generator panicked{}{}", if message.is_some() { ": " } else { "" }, message.as_deref().unwrap_or(""))]
    GeneratorPanicked {
        /// The panic's message, if it was text and the panic ended the task.
        message: Option<Arc<str>>,
    },
    /// Trackers of different dylibs.
    #[error("the trackers belong to different dylibs")]
    DifferentDylibs,
    /// A materializer waits, on a thread or to continue, for something that needs its own symbols.
    #[error("needed while they are made: {}", List(symbols))]
    Cycle {
        /// The symbols to materialize.
        symbols: Vec<Name>,
    },
    /// A thread waits for something that only it could do: its dispatcher runs tasks on this thread alone,
    /// and none is left.
    #[error("waiting for what no task is left to do")]
    Stalled,
    /// An initialiser reported an error.
    #[error("initialiser {name} failed: {error}")]
    Initializer {
        name: Name,
        /// The reported error.
        error: Foreign,
    },
}

impl Error {
    /// Whether it is a failure whose cause may be temporary
    /// ([`Responsibility::fail_for_now`](crate::Responsibility::fail_for_now)).
    #[must_use]
    pub fn passes(&self) -> bool {
        match self {
            Error::Failed(failure) => failure.passes,
            Error::CallEnded => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::{Cause, Error, Failure, Name};

    #[test]
    fn a_long_chain_is_walked_printed_and_dropped_without_recursion() {
        let name = |i: usize| Name { dylib: "d".into(), symbol: i.to_string().into() };
        let mut failure = Failure::new(vec![name(0)], Cause::of("no memory"), false);
        for i in 1..200_000 {
            let cause = if i % 2 == 0 { Cause::Needs(failure) } else { Cause::of(Error::Failed(failure)) };
            failure = Failure::new(vec![name(i)], cause, false);
        }
        assert_eq!(failure.chain().count(), 200_000);
        assert_eq!(failure.root().to_string(), "no memory");
        assert!(format!("{failure:?}").contains("no memory"));
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the root")]
    struct Root;

    #[derive(Debug, thiserror::Error)]
    #[error("the report")]
    struct Report(#[source] Root);

    #[test]
    fn each_link_of_a_chain_is_said_once() {
        let reported = Failure::new(Vec::new(), Cause::of(Report(Root)), false);
        let error = Error::Failed(Failure::new(Vec::new(), Cause::Needs(reported), false));
        let mut texts = vec![error.to_string()];
        let mut next = error.source();
        while let Some(cause) = next {
            texts.push(cause.to_string());
            next = cause.source();
        }
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].contains("need") && texts[1].contains("the report"), "{texts:?}");
        assert_eq!(texts[2], "the root");
    }
}
