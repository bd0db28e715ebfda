//! The `brolga` command: sub-commands over the library of the same name.

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}
