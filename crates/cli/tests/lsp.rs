//! The language server over pipes to the command, as editors start it. Its answers are tested in `crates/lsp/tests`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

fn server() -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_brolga"));
    command.args(["lsp", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("the command starts")
}

fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
}

fn receive(output: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        match line.trim_end().strip_prefix("Content-Length: ") {
            Some(bytes) => length = bytes.parse().ok(),
            None if line == "\r\n" => break,
            None => {}
        }
    }
    let mut content = vec![0; length.expect("a length")];
    output.read_exact(&mut content).unwrap();
    Some(serde_json::from_slice(&content).expect("JSON"))
}

/// The next message for which this holds.
fn wait(output: &mut BufReader<ChildStdout>, wanted: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = receive(output).expect("the server is there");
        if wanted(&message) {
            return message;
        }
    }
}

#[test]
fn an_editor_is_served_over_pipes() {
    let mut server = server();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let text = "function main()::Nothing\n1 ─      invoke Base.println(\"─\"::String)::Nothing\n└──      return 1\nend\n";
    let uri = "file:///tmp/main.jlir";
    let opened = json!({ "uri": uri, "languageId": "jlir", "version": 1, "text": text });
    let document = json!({ "uri": uri, "version": 2 });
    let mended = json!([{ "text": text.replace("return 1", "return nothing") }]);
    let run = json!({ "command": "brolga.run", "arguments": [uri, "main()"] });
    let mut bytes = Vec::new();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "capabilities": {} } }),
        json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }),
        json!("no message"),
        json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": opened } }),
        json!({ "jsonrpc": "2.0", "id": "a", "method": "textDocument/codeLens", "params": { "textDocument": { "uri": uri } } }),
    ] {
        bytes.extend(frame(&message));
    }
    // One byte after the other: frames may come in any pieces.
    for byte in bytes {
        input.write_all(&[byte]).unwrap();
    }
    let begun = wait(&mut output, |message| message["id"] == 1);
    assert_eq!(begun["result"]["capabilities"]["positionEncoding"], "utf-16");
    let wrong = wait(&mut output, |message| message["method"] == "textDocument/publishDiagnostics");
    assert_eq!(wrong["params"]["diagnostics"].as_array().unwrap().len(), 1, "{wrong}");
    let lenses = wait(&mut output, |message| message["id"] == "a");
    assert_eq!(lenses["result"].as_array().unwrap().len(), 2);
    let changed = json!({ "textDocument": document, "contentChanges": mended });
    for message in [
        json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": changed }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "workspace/executeCommand", "params": run }),
    ] {
        input.write_all(&frame(&message)).unwrap();
    }
    // The program's output is not part of the protocol's stream.
    let ran = wait(&mut output, |message| message["id"] == 2);
    assert_eq!(ran["result"], json!({ "value": "nothing", "error": null, "output": "─\n" }));
    input.write_all(&frame(&json!({ "jsonrpc": "2.0", "id": 3, "method": "shutdown" }))).unwrap();
    wait(&mut output, |message| message["id"] == 3);
    input.write_all(&frame(&json!({ "jsonrpc": "2.0", "method": "exit" }))).unwrap();
    assert!(server.wait().unwrap().success());
    assert_eq!(receive(&mut output), None);
}

#[test]
fn a_broken_stream_ends_the_server() {
    for bytes in [&b"Content-Length: 18446744073709551615\r\n\r\n"[..], b"hello\r\n", b""] {
        let mut server = server();
        server.stdin.take().unwrap().write_all(bytes).unwrap();
        assert_eq!(server.wait().unwrap().code(), Some(1));
    }
}
