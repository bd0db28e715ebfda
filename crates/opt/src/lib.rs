//! Passes and pipelines.
#![forbid(unsafe_code)]
