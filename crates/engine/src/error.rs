//! Errors, in kinds that are never mixed; [`Error::fault`] says which.
//!
//! | kind | variants | whose fault |
//! |---|---|---|
//! | broken input | [`Error::Broken`], [`Error::NotNative`], [`Error::Lookup`], [`Error::ForeignFunction`], [`Error::Changed`], [`Error::Closed`], [`Error::Export`], [`Error::NoEntry`], [`Error::Target`] | the program's, or its caller's |
//! | the world | [`Error::Engine`], [`Error::Globals`], [`Error::Executable`] | the machine's: no memory, no linker |
//! | our bug | [`Error::Optimise`], [`Error::Roots`] | Brolga's; the message names pass, function and step |
//! | any kind | [`Error::Build`], [`Error::Object`], [`Error::Image`] | by the error inside: a missing C symbol is the program's fault |

use std::fmt;

use brolga_aot::ObjectError;
use brolga_aot::image::ImageError;
use brolga_codegen::compile::CompileError;
use brolga_codegen::generate::GenerateError;
use brolga_codegen::translate::TranslateError;
use brolga_ir::FuncId;
use brolga_ir::diag::{Diagnostics, SourceFile, Style};
use brolga_ir::doors::Door;
use brolga_jit::{BuildError, EntryError, LinkError, LookupError};
use brolga_opt::OptError;
use brolga_opt::lower::LowerErrors;

/// Why something was not done.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The input cannot be used. The findings say where and why.
    #[error(transparent)]
    Broken(#[from] Box<Broken>),
    /// It takes open doors, and they are closed ([`Options::doors`](crate::Options::doors)).
    #[error("{what} takes the door `{}`, which is closed: {}", .door.name(), .door.reason())]
    Closed {
        /// The call or option.
        what: &'static str,
        /// The door.
        door: Door,
    },
    /// The input is larger than places in it can be counted.
    #[error(transparent)]
    TooLarge(#[from] brolga_ir::diag::SourceTooLarge),
    /// The program is right, but it asks for what native code does not do yet. The interpreter does it.
    #[error(transparent)]
    NotNative(#[from] LowerErrors),
    /// There is no such function, or its type is another.
    #[error(transparent)]
    Lookup(#[from] brolga_jit::LookupError),
    /// A function id that the program does not have. The caller's mistake.
    #[error("{id} is no function of the program, which has {count}")]
    ForeignFunction {
        /// The id.
        id: FuncId,
        /// How many functions the program has; its ids are below this.
        count: usize,
    },
    /// A function that a program calls is not what it was when the program was read: in its session another one has come in
    /// its place.
    #[error("`{function}` is {found}, and its callers were verified with {expected}")]
    Changed {
        /// The function.
        function: String,
        /// The type that its callers know.
        expected: String,
        /// The type that it has.
        found: String,
    },
    /// There is no code generator for this machine, or no memory for code.
    #[error(transparent)]
    Engine(#[from] brolga_jit::JitError),
    /// The code could not be generated or linked. A symbol that the program names may not exist; all else is a bug of ours.
    #[error(transparent)]
    Build(brolga_jit::BuildError),
    /// No object file could be written. The machine's fault, or a bug of ours.
    #[error(transparent)]
    Object(#[from] brolga_aot::ObjectError),
    /// There is no image: the program has what images do not hold, or a file is not one that can be loaded.
    #[error(transparent)]
    Image(#[from] brolga_aot::image::ImageError),
    /// There is no executable: no linker was found, or it failed.
    #[error(transparent)]
    Executable(#[from] brolga_aot::executable::ExecutableError),
    /// A text names no targets.
    #[error(transparent)]
    Target(#[from] brolga_codegen::target::TargetError),
    /// A function cannot be exported to C.
    #[error("`{function}` cannot be exported: {reason}")]
    Export {
        /// The function, or the library.
        function: String,
        /// The reason.
        reason: String,
    },
    /// An image is to hold what a function reaches that there is not, or what none reaches.
    #[error("{}", no_entry(.name))]
    NoEntry {
        /// The name; none if no function was named.
        name: Option<String>,
    },
    /// The roots of a function could not be placed. A bug of ours.
    #[error("the roots of `{function}` cannot be placed: {reason}")]
    Roots {
        /// The function.
        function: String,
        /// The fault.
        reason: brolga_gcroots::Error,
    },
    /// The first values of global variables could not be made in the heap. The machine's fault: there is no memory.
    #[error("the global variables have no values: {0}")]
    Globals(Box<dyn std::error::Error + Send + Sync>),
    /// A pass failed. A bug of ours, unless the options name a pass that does not exist.
    #[error(transparent)]
    Optimise(#[from] OptError),
}

/// An input with the findings that make it unusable.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The input.
    pub source: SourceFile,
    /// The findings.
    pub findings: Diagnostics,
}

impl Broken {
    /// The findings as text, with the lines of the source that they speak of.
    pub fn render(&self, style: &Style) -> String {
        self.findings.render(&self.source, style)
    }
}

/// Whose fault an error is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The program's: it is broken, too large, or names something missing.
    Program,
    /// The caller's: there is no such pass, function or option.
    Caller,
    /// The machine's: there is no memory, or no code generator for it.
    World,
    /// Brolga's: a defect.
    Brolga,
}

/// Code generation that ran out of time or memory is the same error as passes that did.
impl From<BuildError> for Error {
    fn from(error: BuildError) -> Error {
        match error {
            BuildError::Generate(GenerateError::Compile(CompileError::Stopped { .. })) => {
                OptError::Stopped.into()
            }
            BuildError::Generate(GenerateError::Compile(CompileError::TooMuchMemory {
                name,
                bytes,
                limit,
            })) => OptError::TooMuchMemory { symbol: name, bytes, limit }.into(),
            error => Error::Build(error),
        }
    }
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Broken(_) | Error::TooLarge(_) | Error::NotNative(_) => Fault::Program,
            Error::Lookup(LookupError::Entry { source: EntryError::Link(LinkError::Memory(_)), .. }) => {
                Fault::World
            }
            Error::Lookup(LookupError::Entry { .. }) => Fault::Brolga,
            Error::Lookup(_)
            | Error::ForeignFunction { .. }
            | Error::Changed { .. }
            | Error::Closed { .. }
            | Error::Export { .. }
            | Error::NoEntry { .. }
            | Error::Target(_) => Fault::Caller,
            Error::Optimise(OptError::TooLarge { .. } | OptError::TooMuchMemory { .. }) => Fault::Program,
            Error::Optimise(
                OptError::UnknownPass { .. } | OptError::WrongLevel { .. } | OptError::Stopped,
            ) => Fault::Caller,
            Error::Optimise(_) | Error::Roots { .. } => Fault::Brolga,
            Error::Engine(_) | Error::Globals(_) | Error::Executable(_) => Fault::World,
            Error::Build(error) => fault_of_build(error),
            Error::Image(error) => match error {
                ImageError::Reference { .. } | ImageError::TooLarge { .. } => Fault::Program,
                ImageError::Malformed { .. } => Fault::Brolga,
                ImageError::Settings { .. } | ImageError::Needs { .. } => Fault::Caller,
                ImageError::File { .. }
                | ImageError::NotAnImage { .. }
                | ImageError::Version { .. }
                | ImageError::Damaged { .. }
                | ImageError::Abi { .. }
                | ImageError::Machine { .. }
                | ImageError::Targets { .. }
                | ImageError::Module(_)
                | ImageError::Unsupported { .. } => Fault::World,
            },
            Error::Object(error) => match error {
                ObjectError::Name { .. } | ObjectError::NeedsRuntime { .. } => Fault::Program,
                ObjectError::Format { .. } => Fault::World,
                ObjectError::Duplicate { .. } | ObjectError::Malformed { .. } => Fault::Brolga,
            },
        }
    }
}

impl Error {
    /// Whether the time for compiling was over.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self, Error::Optimise(OptError::Stopped))
    }

    /// Whether there is no room for code, and there may be later.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, Error::Build(BuildError::Link(error)) if error.is_shortage())
    }
}

/// The message for an entry that is not there.
fn no_entry(name: &Option<String>) -> String {
    match name {
        Some(name) => format!(
            "the image is to be cut down to what `{name}` reaches, and the program has no such function"
        ),
        None => "the image is to be cut down to what some functions reach, and none is named".to_owned(),
    }
}

fn fault_of_build(error: &BuildError) -> Fault {
    match error {
        BuildError::Generate(GenerateError::Translate(
            TranslateError::Foreign { .. } | TranslateError::Unsupported { .. },
        ))
        | BuildError::Generate(GenerateError::Compile(CompileError::TooLarge { .. }))
        | BuildError::Link(LinkError::Unresolved { .. }) => Fault::Program,
        BuildError::Link(LinkError::Memory(_)) => Fault::World,
        BuildError::Generate(_)
        | BuildError::Link(_)
        | BuildError::Signature { .. }
        | BuildError::Cells { .. } => Fault::Brolga,
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(&Style::PLAIN).trim_end())
    }
}

impl std::error::Error for Broken {}
