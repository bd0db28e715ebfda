//! Compiling and linking in process.
