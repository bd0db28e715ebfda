//! Pages of `brolga explore`: their contents, and a browser that opens and drives them.
//!
//! The session in a browser needs `node` and Chromium (Debian's package `chromium`, or what `BROLGA_CHROMIUM` names). Without them it is skipped with
//! the reason on the standard error. `cargo test --test explore -- --include-ignored` opens the pages of all examples and measures a long function as well. `tests/explore/session.mjs` is the session; it speaks to the browser over a pipe and installs nothing.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brolga::explore::{Options, Source, page};
use brolga::{OptLevel, Program};
use flate2::read::ZlibDecoder;

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn example(name: &str) -> Program {
    let file = format!("examples/{name}.jlir");
    Program::read(&file, &std::fs::read(folder().join(&file)).unwrap()).unwrap()
}

/// A function of so many rows none of which a pass can remove.
fn long_function(rows: usize) -> Program {
    let mut text =
        String::from("function long(n::Int64, m::Int64)::Int64\n1 ─ %1 = Base.add_int(n, m)::Int64\n");
    for row in 2..=rows {
        let (op, other) = [("mul_int", "n"), ("xor_int", "m"), ("add_int", "n")][row % 3];
        text.push_str(&format!("│   %{row} = Base.{op}(%{}, {other})::Int64\n", row - 1));
    }
    text.push_str(&format!("└──      return %{rows}\nend\n"));
    Program::read("long.jlir", text.as_bytes()).unwrap()
}

fn written(name: &str, page: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("explore-{name}.html"));
    std::fs::write(&path, page).unwrap();
    path
}

/// The data of a page, as JSON.
fn data(page: &str) -> String {
    let (_, rest) = page.split_once(r#"id="data">"#).unwrap();
    let packed = STANDARD.decode(rest.split_once("</script>").unwrap().0).unwrap();
    std::io::read_to_string(ZlibDecoder::new(&packed[..])).unwrap()
}

fn with_call(call: &str) -> Options {
    Options { call: Some(call.to_owned()), ..Options::default() }
}

#[test]
fn pages_are_small_and_ask_for_nothing() {
    let page = page(&example("sha256"), &Options::default()).unwrap();
    assert!(page.len() < 400_000, "{} bytes", page.len());
    for word in ["http:", "https:", "<link", "src=", "@import", "url(\"", "@DATA@", "@SCRIPT@"] {
        assert!(!page.contains(word), "the page has `{word}`");
    }
}

#[test]
fn a_page_of_a_thousand_functions_is_three_megabytes_at_most() {
    let body = |f: usize| {
        let rows: String = (2..20)
            .map(|row| {
                let (op, other) = [("mul_int", 1), ("xor_int", row - 1), ("sub_int", row / 2)][(row + f) % 3];
                format!("│   %{row} = Base.{op}(%{}, %{other})::Int64\n", row - 1)
            })
            .collect();
        let call = if f == 0 {
            "Base.add_int(%19, 7)".to_owned()
        } else {
            format!("invoke Main.f{}(%19::Int64)", f / 2)
        };
        format!(
            "function f{f}(x::Int64)::Int64\n1 ─ %1 = Base.add_int(x, {f})::Int64\n{rows}│   %20 = {call}::Int64\n└──      return %20\nend\n"
        )
    };
    let text: String = (0..1000).map(body).collect();
    let page = page(&Program::read("many.jlir", text.as_bytes()).unwrap(), &Options::default()).unwrap();
    assert!(page.len() <= 3_000_000, "{} bytes", page.len());
}

#[test]
fn text_of_a_program_cannot_end_the_data() {
    let text = "function main()::Nothing\n\
        1 ─      invoke Main.println(\"</script><script>alert(1)\"::String)::Nothing\n\
        └──      return nothing\nend\n";
    let page = page(&Program::read("<i>.jlir", text.as_bytes()).unwrap(), &Options::default()).unwrap();
    assert!(!page.contains("</script><script>alert"), "the page contains the string unescaped");
    assert!(page.contains("<title>&lt;i>.jlir"), "the name of the file is escaped");
}

#[test]
fn a_call_is_counted() {
    let page = data(&page(&example("fib"), &with_call("fib(10)")).unwrap());
    assert!(page.contains(r#""call":"fib(10)","outcome":"55""#));
    // 177 calls, of which 89 return their argument.
    assert!(page.contains(r#""counts":[177,177,89,88,"#), "the counts of fib");
}

#[test]
fn a_call_that_fails_is_told() {
    let explore =
        |call: &str, steps| page(&example("fib"), &Options { steps: Some(steps), ..with_call(call) });
    assert!(
        data(&explore("fib(30)", 1000).unwrap()).contains(r#""call":"fib(30)""#),
        "it ends when its steps are used"
    );
    let broken = explore("nothing_there(1)", 1000).unwrap_err().to_string();
    assert!(!broken.is_empty());
}

#[test]
fn each_level_has_a_page_for_each_program_with_objects() {
    for level in OptLevel::ALL {
        let page = data(&page(&example("binary_trees"), &Options { level, ..Options::default() }).unwrap());
        assert!(page.contains("# roots: slot"), "{level:?}: the rows with roots");
    }
}

#[test]
fn an_embedders_source_is_a_column() {
    let source = Source { name: "fib.lang".to_owned(), text: "fib n =\n  if n < 2 …".to_owned() };
    let page = data(&page(&example("fib"), &Options { source: Some(source), ..Options::default() }).unwrap());
    assert!(page.contains(r#""own":{"name":"fib.lang","lines":["fib n =","  if n < 2 …"]}"#));
}

/// A browser, and the reason if there is none.
#[expect(clippy::disallowed_methods, reason = "the browser is chosen from outside")]
fn chromium() -> Result<String, String> {
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|out| out.status.success()) {
        return Err("there is no `node`".to_owned());
    }
    let named = std::env::var("BROLGA_CHROMIUM").ok();
    let known = named.into_iter().chain(["chromium", "chromium-browser", "google-chrome"].map(str::to_owned));
    let runs =
        |name: &String| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success());
    known
        .into_iter()
        .find(runs)
        .ok_or_else(|| "there is no Chromium (Debian: apt-get install chromium)".to_owned())
}

fn session(mode: &str, pages: &[PathBuf]) {
    let chromium = match chromium() {
        Ok(chromium) => chromium,
        Err(reason) => {
            eprintln!("skipped: {reason}");
            return;
        }
    };
    let script = folder().join("tests/explore/session.mjs");
    let out = Command::new("node").arg(script).args([&chromium, mode]).args(pages).output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    print!("{}", String::from_utf8_lossy(&out.stdout));
    if out.status.code() == Some(2) {
        eprintln!("skipped: {said}");
        return;
    }
    assert!(out.status.success(), "{said}");
}

#[test]
#[ignore = "half a minute in a browser"]
fn the_page_of_each_example_opens() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder().join("examples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut pages = Vec::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "jlir")) {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        pages.push(written(&name, &page(&example(&name), &Options::default()).unwrap()));
    }
    assert!(pages.len() > 20);
    session("open", &pages);
}

#[test]
fn a_session_clicks_through_columns_pictures_and_search() {
    let page = page(&example("quicksort"), &with_call("run(200, 3)")).unwrap();
    session("drive", &[written("driven", &page)]);
}

#[test]
#[ignore = "a limit of time, for a machine that has nothing else to do"]
fn a_function_of_5000_rows_scrolls_and_selects_at_once() {
    let page = page(&long_function(5_200), &Options::default()).unwrap();
    session("large", &[written("large", &page)]);
}
