//! `brolga-executor`: an executor in a process of its own, started by a controller.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match brolga_executor::serve_controller() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("brolga-executor: {error}");
            ExitCode::from(2)
        }
    }
}
