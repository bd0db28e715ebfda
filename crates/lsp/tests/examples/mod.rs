//! The programs of the repository, intact and damaged: every request has an answer, and no part of the
//! compiler panics.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::client::{Client, URI, at};

/// The examples, by name.
fn examples() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut found: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jlir"))
        .map(|path| (path.display().to_string(), fs::read_to_string(&path).unwrap()))
        .collect();
    found.sort();
    assert!(found.len() > 20);
    found
}

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % end.max(1)
    }
}

fn documented(params: Value) -> Value {
    let mut document = json!({ "textDocument": { "uri": URI } });
    document.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
    document
}

#[test]
fn examples_have_no_findings_and_every_row_has_a_hover() {
    let mut client = Client::new();
    client.open("");
    for (version, (name, text)) in (2..).zip(examples()) {
        client.change(version, json!([{ "text": text }]));
        assert_eq!(client.diagnostics(version), Vec::<Value>::new(), "{name}");
        let rows = text.lines().enumerate().filter(|(_, line)| line.starts_with(['│', '└']));
        for (line, row) in rows.step_by(7) {
            let column = row.chars().take_while(|c| "│└─ ".contains(*c)).count();
            let shown = client.ask_at("textDocument/hover", (line as u32, column as u32)).unwrap();
            let shown = shown["contents"]["value"].as_str().unwrap_or_default();
            assert!(
                shown.starts_with("```jlir") && !shown.contains("bug in Brolga"),
                "{name}:{line}: {shown}"
            );
        }
        let lenses = client.ask("textDocument/codeLens", documented(json!({}))).unwrap();
        assert!(!lenses.as_array().unwrap().is_empty(), "{name}");
    }
    client.end();
}

#[test]
fn damaged_texts_are_answered() {
    let mut client = Client::new();
    client.open("");
    let mut numbers = Numbers(7);
    let (mut version, mut edits) = (1, 0);
    for (name, text) in examples() {
        let lines = text.lines().count();
        let parts =
            ["%1", "#2", "::", "(", "\"", "end\n", "│", "𝒙", "φ (", "$(Expr(", "# types: struct", "\r", ""];
        client.change(version + 1, json!([{ "text": text }]));
        version += 2;
        for _ in 0..6 {
            let line = numbers.below(lines);
            let place =
                |numbers: &mut Numbers, line: usize| json!({ "line": line, "character": numbers.below(30) });
            let range = json!({ "start": place(&mut numbers, line), "end": place(&mut numbers, line + 1) });
            client.change(version, json!([{ "range": range, "text": parts[numbers.below(parts.len())] }]));
            version += 1;
            edits += 1;
            for method in ["textDocument/documentSymbol", "textDocument/codeLens"] {
                assert!(client.ask(method, documented(json!({}))).is_ok(), "{name}");
            }
            let at = at(line as u32, numbers.below(30) as u32);
            let mut asked = at.clone();
            asked["context"] = json!({ "includeDeclaration": true });
            asked["newName"] = json!("%9999");
            for method in ["textDocument/definition", "textDocument/references", "textDocument/hover"] {
                assert!(client.ask(method, asked.clone()).is_ok(), "{name}: {method}");
            }
            // These may be refused, but not because of a bug.
            for method in ["textDocument/rename", "textDocument/prepareRename", "textDocument/formatting"] {
                asked["options"] = json!({ "tabSize": 4, "insertSpaces": true });
                let refused = client.ask(method, asked.clone()).err();
                assert!(refused.is_none_or(|(_, said)| !said.contains("bug in Brolga")), "{name}: {method}");
            }
        }
    }
    let bug = client.told.iter().any(|(_, params)| params.to_string().contains("bug in Brolga"));
    assert!(edits > 100 && !bug);
    client.end();
}
