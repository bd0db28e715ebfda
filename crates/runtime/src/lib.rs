//! The run time.
