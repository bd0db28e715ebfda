//! `brolga run FILE`: runs a program's `main()`, or a call, whose value is printed.

use brolga::{Evaluator, Program};

use super::report::{Stop, out};
use super::{Done, How, evaluator, input};

/// Runs a program: its `main()`, or a call whose value is printed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  brolga run examples/fib.jlir\n  brolga run examples/fib.jlir --call 'fib(35)' -O3\n  \
                        brolga run - --interp < examples/fib.jlir"
)]
pub(crate) struct Args {
    /// The program, in the text form or as a dump of Julia's typed IR; `-` reads the standard input
    #[arg(required_unless_present = "image")]
    file: Option<String>,
    /// Run the code of an image that `brolga image build` has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["file", "interp"])]
    image: Option<String>,
    /// Make this call instead of `main()` and print its value as Julia would
    #[arg(long, value_name = "CALL")]
    call: Option<String>,
    #[command(flatten)]
    how: How,
}

pub(crate) fn run(args: &Args) -> Done {
    let engine = args.how.engine()?;
    if let (Some(path), Some(engine)) = (&args.image, &engine) {
        let image = engine.open(path)?;
        return run_by(args, image.program(), || Evaluator::of_image(&image, engine));
    }
    let program = input::program(args.file.as_deref().unwrap_or(input::STDIN))?;
    run_by(args, &program, || evaluator(&program, engine.as_ref(), &args.how))
}

fn run_by<'p>(args: &Args, program: &'p Program, evaluator: impl FnOnce() -> Evaluator<'p>) -> Done {
    let main = program.module().cx.types.function_of("main");
    if args.call.is_none() && program.module().methods(main).is_empty() {
        return Err(Stop::Input(
            "the program has no function `main()`; name a call with `--call`".to_owned(),
        ));
    }
    let call = program.call(args.call.as_deref().unwrap_or("main()"))?;
    let mut evaluator = evaluator();
    let value = evaluator.call(&call);
    let unwritten = evaluator.take_output_error();
    let value = value.map_err(|failure| Stop::failure(program, failure))?;
    if let Some(error) = unwritten {
        return Err(Stop::unwritten(&error));
    }
    if args.call.is_some() { out(value) } else { Ok(()) }
}
