//! Runs the text tests in `tests/filetests/`: each file is a command, its input, and its expected output.
//!
//!     $ brolga opt --passes=dce -          the command; `-` reads the section `input`
//!     The sum has no use, so it goes.      a description, any number of lines
//!     ==== input                           standard input (optional)
//!     ==== file a.jlir                     a file in the folder where the command runs (any number)
//!     ==== stdout                          its output; a missing section means none
//!     ==== stderr
//!     ==== status 1                        a missing section means 0
//!
//! `BLESS=1 cargo test --test filetests` writes the present output of the commands into the files; read the difference before
//! committing it. A duration in the output (`1.25 ms`) is written as `<time>`, a percentage as `<share>`. `tests/filetests/readme.txt` shows all of this by
//! being a test. Not supported: expected text with a line that starts with `==== `.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod support;

use support::root;

/// One parsed test file.
struct Case {
    args: Vec<String>,
    /// The lines up to the first expectation, unchanged.
    given: String,
    input: String,
    files: Vec<(String, String)>,
    expected: Outcome,
}

/// The outcome of a command, actual or expected.
#[derive(Default, PartialEq, Eq)]
struct Outcome {
    stdout: String,
    stderr: String,
    status: i32,
}

impl Case {
    fn parse(text: &str) -> Result<Case, String> {
        let mut sections = text.split("\n==== ");
        let head = sections.next().unwrap_or("");
        let command = head.lines().next().unwrap_or("");
        let args = command.strip_prefix("$ brolga").ok_or("the first line is not `$ brolga …`")?;
        let args = split_words(args)?;
        let (mut input, mut files) = (String::new(), Vec::new());
        let mut given = head.trim_end().to_owned() + "\n";
        let mut expected = Outcome::default();
        for section in sections {
            let (title, body) = section.split_once('\n').unwrap_or((section, ""));
            // The split took the newline that ends the section's last line.
            let body =
                if body.is_empty() { String::new() } else { body.trim_end_matches('\n').to_owned() + "\n" };
            if title == "input" || title.starts_with("file ") {
                let _ = write!(given, "==== {title}\n{body}");
            }
            match title.split_once(' ').unwrap_or((title, "")) {
                ("input", "") => input = body,
                ("file", name) => files.push((name.to_owned(), body)),
                ("stdout", "") => expected.stdout = body,
                ("stderr", "") => expected.stderr = body,
                ("status", number) => {
                    expected.status = number.parse().map_err(|_| "`==== status` takes a number")?
                }
                _ => return Err(format!("there is no section `{title}`")),
            }
        }
        Ok(Case { args, given, input, files, expected })
    }

    fn run(&self, folder: &Path) -> std::io::Result<Outcome> {
        fs::create_dir_all(folder)?;
        for (name, text) in &self.files {
            fs::write(folder.join(name), text)?;
        }
        let mut child = Command::new(env!("CARGO_BIN_EXE_brolga"))
            .args(&self.args)
            .current_dir(folder)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // A command that does not read its input may end first: the pipe is then closed, which is fine.
        let _ = child.stdin.take().expect("a piped input").write_all(self.input.as_bytes());
        let output = child.wait_with_output()?;
        fs::remove_dir_all(folder)?;
        Ok(Outcome {
            stdout: normal(&output.stdout),
            stderr: normal(&output.stderr),
            status: output.status.code().unwrap_or(-1),
        })
    }

    /// The file's text with `outcome` as its expectation.
    fn blessed(&self, outcome: &Outcome) -> String {
        let mut text = self.given.clone();
        for (title, body) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
            if !body.is_empty() {
                let _ = write!(text, "==== {title}\n{body}");
            }
        }
        if outcome.status != 0 {
            let _ = writeln!(text, "==== status {}", outcome.status);
        }
        text
    }
}

/// Words of a command line; single quotes keep blanks.
fn split_words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    if line.matches('\'').count() % 2 == 1 { Err("a quote is not closed".to_owned()) } else { Ok(words) }
}

/// Output normalised for a test: durations replaced, trailing blank lines dropped, a line end after the last line.
fn normal(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let lines: Vec<String> = text.trim_end_matches('\n').lines().map(without_durations).collect();
    if text.is_empty() { String::new() } else { lines.join("\n") + "\n" }
}

/// `line` with each number before a unit of time replaced, blanks before it included: columns shift with its length.
fn without_durations(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after_number = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let number_end = rest.len() - after_number.len();
        let unit = ["ns", "µs", "ms", "s", "%"].iter().find(|unit| {
            let tail = after_number.strip_prefix(' ').and_then(|tail| tail.strip_prefix(**unit));
            tail.is_some_and(|tail| !tail.starts_with(char::is_alphanumeric))
        });
        match unit {
            Some(unit) => {
                let before = rest[..start].trim_end();
                let gap = if before.len() < start { " " } else { "" };
                let name = if *unit == "%" { "<share>" } else { "<time>" };
                let _ = write!(out, "{before}{gap}{name}");
                rest = &after_number[1 + unit.len()..];
            }
            None => {
                out.push_str(&rest[..number_end]);
                rest = after_number;
            }
        }
    }
    out + rest
}

fn test_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![root().join("tests/filetests")];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("the folder of tests") {
            let path = entry.expect("a readable folder").path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The lines that differ, as a reader of a test failure wants them.
fn difference(expected: &str, got: &str) -> String {
    let (expected, got): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), got.lines().collect());
    let same_head = expected.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let rest = expected.len().min(got.len()) - same_head;
    let same_tail =
        expected.iter().rev().zip(got.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let mut text = String::new();
    for line in &expected[same_head..expected.len() - same_tail] {
        let _ = writeln!(text, "    - {line}");
    }
    for line in &got[same_head..got.len() - same_tail] {
        let _ = writeln!(text, "    + {line}");
    }
    text
}

#[test]
#[expect(clippy::disallowed_methods, reason = "`BLESS` is how a developer talks to the harness")]
fn filetests() {
    let bless = std::env::var("BLESS").is_ok_and(|value| value == "1");
    let files = test_files();
    assert!(!files.is_empty(), "there are no tests");
    let mut failures = Vec::new();
    for (index, path) in files.iter().enumerate() {
        let name = path.strip_prefix(root()).expect("inside the repository").display();
        let text = fs::read_to_string(path).expect("a text file");
        let case = match Case::parse(&text) {
            Ok(case) => case,
            Err(error) => {
                failures.push(format!("{name}: {error}"));
                continue;
            }
        };
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("filetest-{}-{index}", std::process::id()));
        let outcome =
            case.run(&folder).unwrap_or_else(|error| panic!("{name}: cannot run the command: {error}"));
        if outcome == case.expected {
            continue;
        }
        if bless {
            fs::write(path, case.blessed(&outcome)).expect("a writable test");
            continue;
        }
        let mut failure = format!("{name}:\n");
        for (title, expected, got) in [
            ("stdout", &case.expected.stdout, &outcome.stdout),
            ("stderr", &case.expected.stderr, &outcome.stderr),
        ] {
            if expected != got {
                let _ = write!(failure, "  {title}\n{}", difference(expected, got));
            }
        }
        if case.expected.status != outcome.status {
            let _ = writeln!(failure, "  status {}, expected {}", outcome.status, case.expected.status);
        }
        failures.push(failure);
    }
    assert!(
        failures.is_empty(),
        "\n{}\n{} of {} files fail; `BLESS=1 cargo test --test filetests` accepts what the commands print now\n",
        failures.join("\n"),
        failures.len(),
        files.len(),
    );
}

#[test]
fn a_blessed_file_passes() {
    let text =
        "$ brolga opt 'a b' -\nWhy.\n==== input\n\nx\n==== file f\ny\n==== stdout\nold\n==== status 7\n";
    let case = Case::parse(text).expect("a well-formed case");
    assert_eq!(case.args, ["opt", "a b", "-"]);
    assert_eq!(case.files, [("f".to_owned(), "y\n".to_owned())]);
    assert_eq!((case.expected.stdout.as_str(), case.expected.status), ("old\n", 7));
    let outcome = Outcome { stdout: "new\n".to_owned(), stderr: "e\n".to_owned(), status: 1 };
    let again = Case::parse(&case.blessed(&outcome)).expect("what was blessed can be read");
    assert!(again.expected == outcome, "the blessed expectation is the outcome");
    assert_eq!((again.given, again.input), (case.given, case.input), "blessing keeps what is given");
    assert!(Case::parse("$ brolga x\n==== stdin\n").is_err(), "an unknown section is refused");
}

#[test]
fn durations_are_replaced() {
    assert_eq!(without_durations("dce     12.5 µs  3 removed"), "dce <time>  3 removed");
    assert_eq!(without_durations("dce  1 ns   7 %   3"), "dce <time> <share>   3");
    assert_eq!(without_durations("2 symbols, 7 sets, 1 s"), "2 symbols, 7 sets, <time>");
}
