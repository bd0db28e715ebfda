//! Errors, in kinds that are never mixed; [`Error::fault`] says which.
//!
//! | kind | variants | whose fault |
//! |---|---|---|
//! | broken input | [`Error::Broken`], [`Error::NotNative`], [`Error::Lookup`], [`Error::ForeignFunction`], [`Error::Changed`], [`Error::Closed`], [`Error::Export`], [`Error::NoEntry`], [`Error::Target`] | the program's, or its caller's |
//! | the world | [`Error::Engine`], [`Error::Globals`], [`Error::Executable`] | the machine's: no memory, no linker |
//! | our bug | [`Error::Optimise`], [`Error::Roots`] | Brolga's; the message names pass, function and step |
//! | any kind | [`Error::Build`], [`Error::Object`], [`Error::Image`] | depends on the inner error: a missing C symbol is the program's fault |

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

/// An error of an engine or of building a program.
#[derive(thiserror::Error, Debug)]
pub enum Error {
    /// The input cannot be used. The findings have positions and reasons.
    #[error(transparent)]
    Broken(#[from] Box<Broken>),
    /// The request requires open doors, and they are closed ([`Options::doors`](crate::Options::doors)).
    #[error("{what} takes the door `{}`, which is closed: {}", .door.name(), .door.reason())]
    Closed {
        /// The call or option.
        what: &'static str,
        /// The door.
        door: Door,
    },
    /// The input is too large for source positions.
    #[error(transparent)]
    TooLarge(#[from] brolga_ir::diag::SourceTooLarge),
    /// The program is valid, but uses a feature that native code does not support yet. The interpreter supports it.
    #[error(transparent)]
    NotNative(#[from] LowerErrors),
    /// There is no such function, or its type differs.
    #[error(transparent)]
    Lookup(#[from] brolga_jit::LookupError),
    /// A function id that the program does not have. The caller's mistake.
    #[error("{id} is not a function of the program, which has {count}")]
    ForeignFunction {
        /// The id.
        id: FuncId,
        /// The number of functions of the program; its ids are below this.
        count: usize,
    },
    /// A function that a program calls has changed since the program was read: in its session it has been replaced by another one
    /// of a different type.
    #[error("`{function}` is {found}, and its callers were verified with {expected}")]
    Changed {
        /// The function.
        function: String,
        /// The type that its callers were verified with.
        expected: String,
        /// The type that it has.
        found: String,
    },
    /// There is no code generator for this machine, or no memory for code.
    #[error(transparent)]
    Engine(#[from] brolga_jit::JitError),
    /// The code could not be generated or linked. A symbol that the program names may not exist; any other cause is a bug of ours.
    #[error(transparent)]
    Build(brolga_jit::BuildError),
    /// No object file could be written. The machine's fault, or a bug of ours.
    #[error(transparent)]
    Object(#[from] brolga_aot::ObjectError),
    /// An image cannot be built or opened: the program has something that images cannot hold, or a file is not a loadable image.
    #[error(transparent)]
    Image(#[from] brolga_aot::image::ImageError),
    /// An executable cannot be built: no linker was found, or it failed.
    #[error(transparent)]
    Executable(#[from] brolga_aot::executable::ExecutableError),
    /// A text is not a valid list of targets.
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
    /// An image is to be trimmed to the reach of a missing function, or of no function.
    #[error("{}", no_entry(.name))]
    NoEntry {
        /// The name; `None` if no function was named.
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
    /// The heap has no memory for the first values of global variables. The machine's fault.
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
    /// The findings as text, with the source lines they refer to.
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

/// Code generation that ran out of time or memory becomes the same error as for passes.
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
    /// Whether the time limit for compiling was exceeded.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self, Error::Optimise(OptError::Stopped))
    }

    /// Whether there is no room for code now, but may be later.
    pub(crate) fn is_shortage(&self) -> bool {
        matches!(self, Error::Build(BuildError::Link(error)) if error.is_shortage())
    }
}

/// The message for a missing entry.
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
