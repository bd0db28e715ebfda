//! Errors of a session.

use std::fmt;
use std::sync::Arc;

/// The failure of a request to a session. A failure in code other than the requested code is in the chain of
/// [`source`](std::error::Error::source)s, down to its root.
#[derive(thiserror::Error, Clone, Debug)]
#[non_exhaustive]
pub enum SessionError {
    /// The session's tables refuse the request, or a looked-up symbol failed; contains the symbols.
    #[error(transparent)]
    Link(#[from] brolga_linking::Error),
    /// A program cannot be used or built.
    #[error(transparent)]
    Program(Arc<crate::Error>),
    /// A function could not be compiled at its first call.
    #[error(transparent)]
    Cell(#[from] brolga_jit::CellError),
    /// C cannot call the function.
    #[error(transparent)]
    CEntry(Arc<brolga_jit::CEntryError>),
    /// A function has a name that is reserved in sessions: for the body or the initialiser of another function.
    #[error("`{name}` is not a name for a function of a session")]
    Reserved {
        /// The name.
        name: String,
    },
    /// The name is an alias, and cannot be redefined.
    #[error("`{name}` is an alias: remove it, and define it then")]
    IsAlias {
        /// The symbol.
        name: String,
    },
    /// A dylib re-exports nothing of another one.
    #[error("nothing of `{dylib}` is re-exported here")]
    NotReexported {
        /// The other dylib.
        dylib: String,
    },
    /// The embedder's transform of programs failed.
    #[error("the program cannot be transformed: {0}")]
    Transform(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// A source failed when a missing function was requested from it.
    #[error("`{name}` is missing, and the source that was asked for it failed: {error}")]
    Source {
        /// The function.
        name: String,
        /// The source's error.
        #[source]
        error: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A promise of functions failed.
    #[error(transparent)]
    Promise(Arc<dyn std::error::Error + Send + Sync>),
    /// The program made for a promise does not have this function with these types.
    #[error("`{promised}` was promised, and the program has {}", OfName(.made))]
    Unkept {
        /// The promised function, with its types.
        promised: String,
        /// The program's functions of that name.
        made: Vec<String>,
    },
    /// A host function has a parameter or result that has no object representation.
    #[error("a function of the host cannot be defined: {reason}")]
    Host {
        /// Why.
        reason: String,
    },
    /// A shared library cannot be opened.
    #[error(transparent)]
    Library(Arc<brolga_runtime::ForeignError>),
    /// An object file or archive cannot be read or linked.
    #[error(transparent)]
    Archive(#[from] brolga_jit::ObjectFileError),
    /// The embedder's machine code cannot be linked.
    #[error(transparent)]
    Code(Arc<brolga_jit::LinkError>),
    /// An object file defines nothing visible to others, so nothing would ever link it.
    #[error("the object files define no symbol that is visible to others")]
    NothingDefined,
    /// The function exists, but its type differs.
    #[error(transparent)]
    Type(Arc<brolga_jit::LookupError>),
    /// The function cannot be recompiled, because a function that it has inlined has another type now.
    #[error(
        "`{function}` cannot be recompiled: a function that it has inlined has another type now; define it again for that type"
    )]
    Unfit {
        /// The function.
        function: String,
    },
    /// Several methods have this bare name.
    #[error("`{name}` may be any of `{}`", .methods.join("`, `"))]
    Ambiguous {
        /// The name.
        name: String,
        /// The symbols of the methods.
        methods: Vec<String>,
    },
    /// The thread is inside a scope of the session's runtime, where it must not wait: collections would wait for it. Lend the scope
    /// ([`Scope::blocking`](brolga_runtime::heap::Scope::blocking)).
    #[error("this thread is inside a scope of the session's runtime, and must not wait there")]
    InScope,
    /// The symbol is not a function of a program, and Rust cannot call it.
    #[error("`{name}` is not a function of a program")]
    NotFunction {
        /// The symbol.
        name: String,
    },
    /// The symbol is not a C symbol: it has no address that C could use.
    #[error("`{name}` is not a symbol of C")]
    NotC {
        /// The symbol.
        name: String,
    },
    /// A function run by opening or closing a dylib threw, or has arguments.
    #[error("`{function}` did not run: {reason}")]
    Initializer {
        /// The function.
        function: String,
        /// The exception, or the reason why it cannot be called.
        reason: String,
    },
    /// The opening of a dylib was rolled back, and finalisers threw during the rollback.
    #[error("{}; when that was taken back, {}", Why(.why.as_deref()), Thrown(.thrown))]
    TakenBack {
        /// The reason for the rollback; `None` if an initialiser closed the dylib.
        #[source]
        why: Option<Box<SessionError>>,
        /// The exceptions.
        thrown: Vec<SessionError>,
    },
}

/// The functions of a name, as part of a sentence.
struct OfName<'a>(&'a [String]);

impl fmt::Display for OfName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => f.write_str("no function of this name"),
            made => write!(f, "`{}`", made.join("`, `")),
        }
    }
}

/// The reason why an opening was rolled back.
struct Why<'a>(Option<&'a SessionError>);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(error) => write!(f, "{error}"),
            None => f.write_str("the dylib was closed while it was opened"),
        }
    }
}

/// The exceptions of finalisers, as part of a sentence.
struct Thrown<'a>(&'a [SessionError]);

impl fmt::Display for Thrown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let between = if index > 0 { ", " } else { "" };
            write!(f, "{between}{error}")?;
        }
        Ok(())
    }
}

impl From<crate::Error> for SessionError {
    fn from(error: crate::Error) -> SessionError {
        SessionError::Program(Arc::new(error))
    }
}

impl From<brolga_jit::NoCell> for SessionError {
    fn from(error: brolga_jit::NoCell) -> SessionError {
        crate::Error::from(brolga_jit::BuildError::from(error)).into()
    }
}

impl From<brolga_jit::LookupError> for SessionError {
    fn from(error: brolga_jit::LookupError) -> SessionError {
        SessionError::Type(Arc::new(error))
    }
}

impl SessionError {
    /// The causes of a failed symbol from the nearest to the root, one line each; empty for other errors.
    pub fn causes(&self) -> Vec<String> {
        let link = match self {
            SessionError::Link(error) => Some(error),
            SessionError::TakenBack { why: Some(error), .. } => return error.causes(),
            SessionError::Cell(brolga_jit::CellError::Failed { cause, .. }) => cause.downcast_ref(),
            _ => None,
        };
        match link {
            Some(brolga_linking::Error::Failed(failure)) => {
                failure.chain().map(ToString::to_string).collect()
            }
            _ => Vec::new(),
        }
    }
}
