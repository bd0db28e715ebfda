//! Why an object file cannot be used.

/// Why an object file or archive cannot be used. The file is at fault, or needs an unsupported construct.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectFileError {
    /// It is malformed.
    #[error("`{name}` cannot be read: {reason}")]
    Malformed {
        /// The file or member.
        name: String,
        reason: String,
    },
    /// It is well-formed, but uses a construct that cannot be linked here.
    #[error("`{name}` cannot be linked here: {what}")]
    Unsupported {
        /// The file or member.
        name: String,
        /// The kind of construct.
        what: String,
    },
}

pub(super) fn malformed(name: &str, reason: impl std::fmt::Display) -> ObjectFileError {
    ObjectFileError::Malformed { name: name.to_owned(), reason: reason.to_string() }
}

pub(crate) fn unsupported(name: &str, what: impl Into<String>) -> ObjectFileError {
    ObjectFileError::Unsupported { name: name.to_owned(), what: what.into() }
}
