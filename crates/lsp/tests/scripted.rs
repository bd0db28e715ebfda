//! The server, driven by a scripted client over a connection in memory.

mod client;
mod examples;

use brolga_lsp::{EXPLORE, Ended, RUN};
use client::{Client, URI, at, position};
use serde_json::{Value, json};

const PROGRAM: &str = "# check: collatz(7) == 16
struct Point
    x::Int64
    y::Int64
end
global hits::Int64 = 0
# Steps of n until it is 1 (𝒏).
function collatz(n::Int64)::Int64
1 ─      goto #2
2 ┄ %2 = φ (#1 => n, #4 => %9)::Int64
│   %3 = φ (#1 => 0, #4 => %10)::Int64
│   %4 = Base.sle_int(%2, 1)::Bool
└──      goto #4 if not %4
3 ─      return %3
4 ─ %7 = Base.and_int(%2, 1)::Int64
│   %8 = (%7 === 0)::Bool
│   %9 = invoke Main.next(%2::Int64, %8::Bool)::Int64
│   %10 = Base.add_int(%3, 1)::Int64
└──      goto #2
end
function next(n::Int64, even::Bool)::Int64
1 ─ %1 = Base.ashr_int(n, 0x0000000000000001)::Int64
│   %2 = Base.mul_int(n, 3)::Int64
│   %3 = Base.add_int(%2, 1)::Int64
│   %4 = Core.ifelse(even, %1, %3)::Int64
└──      return %4
end
function main()::Nothing
1 ─ %1 = invoke Main.collatz(27::Int64)::Int64
│        invoke Base.println(%1::Int64)::Nothing
└──      return nothing
end
";

/// The ranges of an answer as (line, first unit, last unit).
fn ranges(answer: &Value) -> Vec<(u64, u64, u64)> {
    let number = |value: &Value| value.as_u64().unwrap();
    let range = |place: &Value| {
        let range = &place["range"];
        let (start, end) = (&range["start"], &range["end"]);
        (number(&start["line"]), number(&start["character"]), number(&end["character"]))
    };
    answer.as_array().unwrap().iter().map(range).collect()
}

fn hover(client: &mut Client, at: (u32, u32)) -> String {
    let shown = client.ask_at("textDocument/hover", at).unwrap();
    shown["contents"]["value"].as_str().unwrap_or_default().to_owned()
}

/// The text with the edits of an answer to a rename.
fn renamed(text: &str, answer: &Value) -> String {
    let mut lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    let edits = answer["changes"][URI].as_array().unwrap();
    for (edit, (line, start, end)) in edits.iter().zip(ranges(&answer["changes"][URI])).rev() {
        let new: Vec<u16> = edit["newText"].as_str().unwrap().encode_utf16().collect();
        lines[line as usize].splice(start as usize..end as usize, new);
    }
    lines.iter().map(|line| String::from_utf16(line).unwrap()).collect::<Vec<_>>().join("\n")
}

#[test]
fn diagnostics_follow_the_newest_version() {
    let mut client = Client::with(PROGRAM);
    assert_eq!(client.diagnostics(1), Vec::<Value>::new());
    // A finding of the reader: an undefined operand.
    let (line, character) = position(PROGRAM, "%2, 1)::Bool", 0);
    let wrong = json!({
        "range": { "start": { "line": line, "character": character }, "end": { "line": line, "character": character + 2 } },
        "text": "%99",
    });
    client.change(2, json!([wrong]));
    let found = client.diagnostics(2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["code"], "unknown-name");
    assert_eq!(found[0]["range"]["start"], json!({ "line": line, "character": character }));
    assert_eq!(found[0]["range"]["end"], json!({ "line": line, "character": character + 3 }));
    // A finding of the verifier: a type.
    client.change(3, json!([{ "text": PROGRAM.replace("even::Bool)::Int64", "even::Bool)::Float64") }]));
    let found = client.diagnostics(3);
    assert!(!found.is_empty() && found.iter().all(|found| found["severity"] == 1), "{found:?}");
    // Many versions in quick succession: the last one has diagnostics, and the others may be skipped.
    for version in 4..200 {
        client.change(version, json!([{ "text": PROGRAM }]));
    }
    assert_eq!(client.diagnostics(199), Vec::<Value>::new());
    // A call without a method is a warning.
    client.change(200, json!([{ "text": PROGRAM.replace("Main.next(", "Main.nexte(") }]));
    let found = client.diagnostics(200);
    assert_eq!(found[0]["severity"], 2, "{found:?}");
    client.tell("textDocument/didClose", json!({ "textDocument": { "uri": URI } }));
    assert!(client.ask_at("textDocument/hover", (0, 0)).is_err());
    client.end();
}

#[test]
fn names_lead_to_their_definitions_and_uses() {
    let mut client = Client::with(PROGRAM);
    let definition = |client: &mut Client, part: &str, skip: usize, inside: u32| {
        let (line, character) = position(PROGRAM, part, skip);
        ranges(&client.ask_at("textDocument/definition", (line, character + inside)).unwrap())
    };
    let place = |part: &str, skip: usize, length: u64| {
        let (line, character) = position(PROGRAM, part, skip);
        (u64::from(line), u64::from(character), u64::from(character) + length)
    };
    // A row, a block, a parameter, a function by a call and by a test, and a function that is not defined
    // here.
    assert_eq!(definition(&mut client, "%9)", 0, 1), [place("%9 =", 0, 2)]);
    assert_eq!(definition(&mut client, "#4 =>", 0, 1), [place("4 ─ %7", 0, 1)]);
    assert_eq!(definition(&mut client, "even, %1", 0, 2), [place("even::Bool", 0, 4)]);
    assert_eq!(definition(&mut client, "Main.next", 0, 6), [place("next(n::Int64, even", 0, 4)]);
    assert_eq!(definition(&mut client, "collatz(7)", 0, 0), [place("collatz(n", 0, 7)]);
    assert_eq!(definition(&mut client, "println", 0, 0), []);
    let (line, character) = position(PROGRAM, "%10 =", 0);
    let mut params = at(line, character + 1);
    params["context"] = json!({ "includeDeclaration": false });
    let uses = client.ask("textDocument/references", params.clone()).unwrap();
    assert_eq!(ranges(&uses), [place("%10)", 0, 3)]);
    params["context"] = json!({ "includeDeclaration": true });
    assert_eq!(client.ask("textDocument/references", params).unwrap().as_array().unwrap().len(), 2);
    // There is nothing at this position.
    assert_eq!(client.ask_at("textDocument/definition", (19, 0)).unwrap(), Value::Null);
    client.end();
}

#[test]
fn names_are_completed_by_what_stands_before_them() {
    let mut client = Client::with(PROGRAM);
    // In the middle of an incomplete row.
    let mut version = 1;
    let mut complete = |client: &mut Client, typed: &str| {
        version += 1;
        let text = PROGRAM.replace("│   %8 = (%7 === 0)::Bool", &format!("│   %8 = {typed}"));
        client.change(version, json!([{ "text": text }]));
        let (line, character) = position(&text, typed, 0);
        let end = character + typed.chars().count() as u32;
        let list = client.ask_at("textDocument/completion", (line, end)).unwrap();
        let items = list["items"].as_array().unwrap().clone();
        let start =
            items.first().map(|item| item["textEdit"]["range"]["start"]["character"].as_u64().unwrap());
        let labels: Vec<String> =
            items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect();
        (labels, start.map(|start| start - u64::from(character)))
    };
    let (rows, from) = complete(&mut client, "foo(%1");
    assert_eq!((rows, from), (vec!["%10".to_owned()], Some(4)));
    let (types, from) = complete(&mut client, "bar(n)::Poi");
    assert!(types.contains(&"Point".to_owned()) && from == Some(8), "{types:?}");
    let (types, _) = complete(&mut client, "bar(n)::Int6");
    assert_eq!(types, ["Int64"]);
    let (functions, from) = complete(&mut client, "invoke Main.col");
    assert_eq!((functions, from), (vec!["Main.collatz".to_owned()], Some(7)));
    let (functions, _) = complete(&mut client, "Base.add_i");
    assert_eq!(functions, ["Base.add_int"]);
    assert!(complete(&mut client, "goto #").0.contains(&"#4".to_owned()));
    assert_eq!(complete(&mut client, "nobodyhasthis").0, Vec::<String>::new());
    client.end();
}

#[test]
fn hovers_show_types_uses_and_what_the_optimiser_made() {
    let mut client = Client::with(PROGRAM);
    let row = hover(&mut client, position(PROGRAM, "%7 = Base", 0));
    assert!(row.contains("**Type** `Int64`") && row.contains("used once, by `%8`"), "{row}");
    assert!(row.contains("**Effects** none"), "{row}");
    assert!(row.contains("**Low IR** (`-O2`)") && row.contains("and_int"), "{row}");
    // Without a disassembler, bytes are shown.
    let shifted = hover(&mut client, position(PROGRAM, "%1 = Base.ashr_int", 0));
    assert!(shifted.contains("**Machine code** (`-O2`)"), "{shifted}");
    // The call is inlined, so none of its rows are left.
    let call = hover(&mut client, position(PROGRAM, "invoke Main.next", 0));
    assert!(call.contains("away by") || call.contains("nothing is left"), "{call}");
    let callee = hover(&mut client, position(PROGRAM, "collatz(27", 0));
    assert!(
        callee.contains("collatz(n::Int64)::Int64") && callee.contains("Steps of n until it is 1"),
        "{callee}"
    );
    let param = hover(&mut client, position(PROGRAM, "even, %1", 0));
    assert!(param.contains("even::Bool") && param.contains("used once"), "{param}");
    let block = hover(&mut client, position(PROGRAM, "#2", 0));
    assert!(block.contains("from #1, #4") && block.contains("continues at #3, #4"), "{block}");
    assert!(hover(&mut client, position(PROGRAM, "Point", 0)).contains("y::Int64"));
    assert_eq!(hover(&mut client, (0, 0)), "");
    client.end();
}

#[test]
fn new_names_are_checked_by_the_reader() {
    let mut client = Client::with(PROGRAM);
    let rename = |client: &mut Client, part: &str, inside: u32, new: &str| {
        let (line, character) = position(PROGRAM, part, 0);
        let mut params = at(line, character + inside);
        params["newName"] = json!(new);
        client.ask("textDocument/rename", params)
    };
    let answer = rename(&mut client, "%9 =", 0, "%77").unwrap();
    assert_eq!(renamed(PROGRAM, &answer), PROGRAM.replace("%9", "%77"));
    let answer = rename(&mut client, "even, %1", 0, "gerade").unwrap();
    assert_eq!(renamed(PROGRAM, &answer), PROGRAM.replace("even", "gerade"));
    let answer = rename(&mut client, "Main.next", 5, "step").unwrap();
    assert_eq!(renamed(PROGRAM, &answer), PROGRAM.replace("next(", "step("));
    let answer = rename(&mut client, "collatz(7", 0, "steps").unwrap();
    assert_eq!(renamed(PROGRAM, &answer), PROGRAM.replace("collatz", "steps"));
    for (part, inside, new, reason) in [
        ("%9 =", 0, "%10", "cannot become"),
        ("%9 =", 0, "x", "named by a number"),
        ("even, %1", 0, "n", "cannot become"),
        ("even, %1", 0, "1x", "is not a name"),
        ("Main.next", 5, "main", "is a name already"),
        ("Base.println", 6, "print", "does not define"),
        ("goto #2", 5, "7", "numbered by their order"),
        ("Point", 0, "P", "types are not renamed"),
        ("hits", 0, "h", "globals are not renamed"),
        ("└──", 0, "x", "no name here"),
    ] {
        let (_, said) = rename(&mut client, part, inside, new).expect_err(part);
        assert!(said.contains(reason), "{part} to {new}: {said}");
    }
    let prepared = client.ask_at("textDocument/prepareRename", position(PROGRAM, "%9 =", 0)).unwrap();
    assert_eq!(prepared["placeholder"], "%9");
    client.end();
}

#[test]
fn documents_have_outlines_lenses_and_a_normal_form() {
    let odd = PROGRAM.replace("function next(n::Int64, even", "function next(n ::Int64,   even");
    let mut client = Client::with(&odd);
    let document = json!({ "textDocument": { "uri": URI } });
    let symbols = client.ask("textDocument/documentSymbol", document.clone()).unwrap();
    let names: Vec<&str> = symbols.as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Point", "hits", "collatz", "next", "main"]);
    assert_eq!(symbols[0]["children"][1]["name"], "y");
    assert_eq!(symbols[2]["children"].as_array().unwrap().len(), 4);
    let lenses = client.ask("textDocument/codeLens", document.clone()).unwrap();
    let lenses: Vec<(&str, &str)> = lenses
        .as_array()
        .unwrap()
        .iter()
        .map(|lens| &lens["command"])
        .map(|command| (command["title"].as_str().unwrap(), command["arguments"][1].as_str().unwrap()))
        .collect();
    let explored = ["collatz", "next"].map(|name| ("explore", name));
    assert_eq!(lenses[0], ("run", "collatz(7)"));
    assert_eq!(lenses[1..3], explored);
    assert_eq!(lenses[3..], [("run", "main()"), ("explore", "main")]);
    let mut params = document.clone();
    params["options"] = json!({ "tabSize": 4, "insertSpaces": true });
    let edits = client.ask("textDocument/formatting", params.clone()).unwrap();
    let formatted = edits[0]["newText"].as_str().unwrap().to_owned();
    assert!(formatted.contains("function next(n::Int64, even::Bool)::Int64\n"), "{formatted}");
    client.change(2, json!([{ "text": formatted }]));
    assert_eq!(client.ask("textDocument/formatting", params.clone()).unwrap(), json!([]));
    client.change(
        3,
        json!([{ "text": PROGRAM.replace("└──      goto #2\n", "# inside\n└──      goto #2\n") }]),
    );
    let (_, said) = client.ask("textDocument/formatting", params).unwrap_err();
    assert!(said.contains("comment"), "{said}");
    client.end();
}

#[test]
fn lenses_run_and_explore() {
    let text =
        format!("{PROGRAM}function spin()::Nothing\n1 ─      nothing::Nothing\n2 ┄      goto #2\nend\n");
    let mut client = Client::with(&text);
    let run = |client: &mut Client, call: &str| {
        client.ask("workspace/executeCommand", json!({ "command": RUN, "arguments": [URI, call] })).unwrap()
    };
    assert_eq!(run(&mut client, "collatz(7)")["value"], "16");
    let main = run(&mut client, "main()");
    assert_eq!((&main["value"], &main["output"]), (&json!("nothing"), &json!("111\n")));
    assert!(
        client
            .told
            .iter()
            .any(|(method, said)| { method == "window/showMessage" && said["message"] == "collatz(7) = 16" })
    );
    assert!(run(&mut client, "nobody(1)")["error"].is_string());
    let spun = run(&mut client, "spin()");
    assert!(spun["error"].as_str().unwrap().contains("did not end"), "{spun}");
    let explored = client
        .ask("workspace/executeCommand", json!({ "command": EXPLORE, "arguments": [URI, "main"] }))
        .unwrap();
    let page = std::fs::read_to_string(explored["page"].as_str().unwrap()).unwrap();
    assert!(page.contains("</html>"));
    for arguments in [json!([]), json!([1]), json!([URI]), json!(["not an address", "f()"])] {
        let asked = client.ask("workspace/executeCommand", json!({ "command": RUN, "arguments": arguments }));
        assert!(asked.is_err());
    }
    assert!(client.ask("workspace/executeCommand", json!({ "command": "x", "arguments": [URI] })).is_err());
    client.end();
    assert!(!std::path::Path::new(explored["page"].as_str().unwrap()).exists());
}

#[test]
fn positions_are_units_of_utf16() {
    // A name outside the basic plane takes two units, and a guard one.
    let text = PROGRAM.replace("(n::Int64)", "(𝒏ö::Int64)").replace("=> n,", "=> 𝒏ö,");
    let mut client = Client::with(&text);
    assert_eq!(client.diagnostics(1), Vec::<Value>::new());
    let (line, character) = position(&text, "𝒏ö,", 0);
    // The position after the name still belongs to it.
    let found = ranges(&client.ask_at("textDocument/definition", (line, character + 3)).unwrap());
    let (line, character) = position(&text, "𝒏ö::", 0);
    assert_eq!(found, [(line.into(), character.into(), u64::from(character) + 3)]);
    client.end();
}

#[test]
fn nothing_that_a_client_sends_ends_the_server() {
    let mut client = Client::raw();
    assert_eq!(client.ask("shutdown", Value::Null).unwrap_err().0, -32002);
    client.tell("textDocument/didOpen", json!({ "textDocument": 7 }));
    client.ask("initialize", json!({ "capabilities": {} })).unwrap();
    assert!(client.ask("initialize", json!({ "capabilities": {} })).is_err());
    client.open(PROGRAM);
    for method in [
        "textDocument/hover",
        "textDocument/definition",
        "textDocument/references",
        "textDocument/rename",
        "textDocument/prepareRename",
        "textDocument/formatting",
        "textDocument/documentSymbol",
        "textDocument/codeLens",
        "workspace/executeCommand",
        "no/such",
    ] {
        for params in
            [Value::Null, json!([]), json!({ "textDocument": { "uri": "::" } }), json!({ "position": -1 })]
        {
            assert!(client.ask(method, params).is_err(), "{method}");
        }
    }
    for method in ["textDocument/didChange", "textDocument/didClose", "$/cancelRequest", "no/such"] {
        client.tell(method, json!({ "id": [1], "textDocument": 5 }));
    }
    // Positions and edits outside the text.
    let far = u32::MAX;
    assert!(client.ask_at("textDocument/hover", (far, far)).is_ok());
    let backwards =
        json!({ "start": { "line": far, "character": 9 }, "end": { "line": 2, "character": far } });
    client.change(-5, json!([{ "range": backwards, "text": "𝒏" }]));
    client.change(0, json!([{ "text": "\u{feff}\r\r\n\0(((((" }]));
    assert!(!client.diagnostics(0).is_empty());
    assert!(client.ask_at("textDocument/hover", (1, 0)).is_ok());
    client.change(3, json!([{ "text": PROGRAM }]));
    // A cancelled request is answered, too.
    let (line, character) = position(PROGRAM, "%7 = Base", 0);
    let id = client.begin("textDocument/hover", at(line, character));
    client.tell("$/cancelRequest", json!({ "id": 1_000_000 }));
    let _either = client.answer(&id);
    // A hover about an old version is answered, with an error or with the old result.
    let id = client.begin("textDocument/hover", at(line, character));
    client.change(4, json!([{ "text": "" }]));
    let _either = client.answer(&id);
    assert_eq!(client.leave(), Ended::Abruptly);
}

/// A program with a function of `rows` rows.
fn large(rows: usize) -> String {
    let mut text = "function f(n::Int64)::Int64\n1 ─ %1 = Base.add_int(n, 1)::Int64\n".to_owned();
    for row in 2..=rows {
        let (op, before) = (["add_int", "xor_int", "mul_int"][row % 3], row - 1);
        text.push_str(&format!("│   %{row} = Base.{op}(%{before}, n)::Int64\n"));
    }
    text + &format!("└──      return %{rows}\nend\n")
}

#[test]
fn large_functions_are_served() {
    const ROWS: usize = 20_000;
    let text = large(ROWS);
    let mut client = Client::with(&text);
    assert_eq!(client.diagnostics(1), Vec::<Value>::new());
    let middle = position(&text, "%10000 =", 0);
    let found = client.ask_at("textDocument/definition", (middle.0 + 1, middle.1 + 24)).unwrap();
    assert_eq!(found.as_array().unwrap().len(), 1);
    let mut params = at(0, 11);
    params["context"] = json!({ "includeDeclaration": true });
    assert_eq!(client.ask("textDocument/references", params).unwrap().as_array().unwrap().len(), ROWS + 1);
    let shown = hover(&mut client, middle);
    assert!(shown.contains("**Type** `Int64`"), "{shown}");
    for version in 2..6 {
        let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 0 } });
        client.change(version, json!([{ "range": range, "text": "" }]));
        assert_eq!(client.diagnostics(version), Vec::<Value>::new());
    }
    client.end();
}
