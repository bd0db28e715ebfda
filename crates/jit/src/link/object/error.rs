//! Why an object file cannot be used.

/// Why an object file or archive cannot be used. The file is at fault, or asks for what is not done here.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
pub enum ObjectFileError {
    /// It is not what it should be.
    #[error("`{name}` cannot be read: {reason}")]
    Malformed {
        /// The file or member.
        name: String,
        /// The reason.
        reason: String,
    },
    /// It is right, but uses something that cannot be linked here.
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
