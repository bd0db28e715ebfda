//! `brolga image build FILE -o app.so`: a program compiled ahead of time, into a file that `brolga run --image` opens.

use brolga::{CpuTarget, image};

use super::report::Stop;
use super::{Done, Level, input, roots};

/// Programs compiled ahead of time.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Build(Build),
}

/// Compiles all functions of a program into an image.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  brolga image build examples/fib.jlir -o fib.so\n  brolga run --image fib.so --call 'fib(35)'"
)]
struct Build {
    /// The program; `-` reads the standard input
    file: String,
    /// Where to write the image. An image that is there stays whole until the new one is
    #[arg(short, long, value_name = "FILE")]
    output: String,
    /// The processors that it is for: `native`, `generic`, `x86-64-v2`, `x86-64-v3` or `x86-64-v4`
    #[arg(long, value_name = "TARGET", default_value = "native", value_parser = target)]
    target: CpuTarget,
    /// How the roots of objects are found while functions run: `linked` frames, or tables for each call (`maps`)
    #[arg(long, value_name = "HOW", value_parser = roots)]
    roots: Option<brolga::Roots>,
    #[command(flatten)]
    level: Level,
}

fn target(name: &str) -> Result<CpuTarget, String> {
    CpuTarget::from_name(name).ok_or_else(|| {
        let names = CpuTarget::ALL.map(CpuTarget::name);
        format!("the targets are {}", names.join(", "))
    })
}

pub(crate) fn run(args: &Args) -> Done {
    let Command::Build(build) = &args.command;
    let program = input::program(&build.file)?;
    let options = brolga::Options::new().opt_level(build.level.level).cpu_target(build.target);
    let options = options.roots(build.roots.unwrap_or_default());
    let bytes = image::build(&program, &options).map_err(|error| match error {
        brolga::Error::NotNative(reasons) => Stop::not_native(&program, &[reasons]),
        error => error.into(),
    })?;
    Ok(image::write(&build.output, &bytes)?)
}
