//! The call by which a process starts a program: `main()`, or `main` with the arguments of the process.
//!
//! | methods of `main` | arguments | call |
//! |---|---|---|
//! | `main(Vector{String})` alone | any | `main(String["a", "b"])` |
//! | both | some | `main(String["a", "b"])` |
//! | both, or not `main(Vector{String})` | none | `main()` |
//! | not `main(Vector{String})` | some | [`UntakenArguments`] |
//!
//! The arguments do not include the name of the program, as in Julia's `ARGS`. They are bytes: those that are not UTF-8 stay as they are.

use brolga_ir::show::Shown;

/// The name by which a process starts a program.
const MAIN: &str = "main";
const PLAIN: &str = "main()";
const TAKES_ARGUMENTS: &str = "main(Vector{String})";

/// Arguments were given to a program without a method `main(Vector{String})`.
#[derive(thiserror::Error, Clone, PartialEq, Eq, Debug)]
#[error("the program takes no arguments: it has no method `{TAKES_ARGUMENTS}`")]
pub struct UntakenArguments;

/// The text of the call that starts a program with these arguments. `symbols` are the symbols of its methods of `main`, such as `main(Int64)`.
/// `None` if it has no method of `main`.
///
/// # Errors
/// There are arguments, and no method takes them.
pub fn main_call<'a>(
    symbols: impl IntoIterator<Item = &'a str>,
    args: &[Vec<u8>],
) -> Result<Option<String>, UntakenArguments> {
    let (mut is_there, mut is_plain, mut takes) = (false, false, false);
    for symbol in symbols.into_iter().filter(|symbol| symbol.split('(').next() == Some(MAIN)) {
        is_there = true;
        is_plain |= symbol == PLAIN;
        takes |= symbol == TAKES_ARGUMENTS;
    }
    match () {
        () if takes && !(is_plain && args.is_empty()) => {
            let args: Vec<String> = args.iter().map(|arg| Shown::Str(arg).to_string()).collect();
            Ok(Some(format!("main(String[{}])", args.join(", "))))
        }
        () if !args.is_empty() => Err(UntakenArguments),
        () => Ok(is_there.then(|| PLAIN.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_to_the_method_that_takes_them() {
        let call = |symbols: &[&str], args: &[&[u8]]| {
            let args: Vec<Vec<u8>> = args.iter().map(|arg| arg.to_vec()).collect();
            main_call(symbols.iter().copied(), &args)
        };
        let (plain, takes) = ("main()", "main(Vector{String})");
        let text = |text: &str| Ok(Some(text.to_owned()));
        assert_eq!(call(&[plain], &[]), text("main()"));
        assert_eq!(call(&[plain], &[b"a"]), Err(UntakenArguments));
        assert_eq!(call(&[takes], &[]), text("main(String[])"));
        assert_eq!(call(&[takes], &[b"a b", b"$\"\xff"]), text(r#"main(String["a b", "\$\"\xff"])"#));
        assert_eq!(call(&[takes, plain], &[]), text("main()"));
        assert_eq!(call(&[takes, plain], &[b""]), text(r#"main(String[""])"#));
        assert_eq!(call(&["mainly()", "f()"], &[]), Ok(None));
        // Dispatch decides about methods of other types.
        assert_eq!(call(&["main(Vararg{Any})"], &[]), text("main()"));
    }
}
