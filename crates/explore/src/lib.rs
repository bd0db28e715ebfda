//! All stages of a program from source to machine code, as a page for a browser.
//!
//! ```text
//! Program ─► rows numbered ─► passes, lowering, roots, code ─► stages of each function ─► JSON ─► zlib ─┐
//!                 │                                                               ▲                        └─► one HTML file
//!                 └─► a call, counted by the interpreter ─► executions of each row ┘
//! ```
//!
//! | file | content |
//! |---|---|
//! | `watch` | compiles, and records the result of each pass; links between rows |
//! | `rows` | a function as rows, so that the results of two passes can be compared |
//! | `assembly` | machine code as text |
//! | `machine` | CLIF, listing and bytes as rows |
//! | `data` | the data of the page as compact JSON |
//! | `fates` | the results of each row of one function, for editors |
//! | `options` | options of the page |
//! | `page.html`, `page.css`, `page.js` | the page; it makes no network requests |
//! | `views.js` | columns: stages decoded, statements as HTML |
//! | `pictures.js`, `layout.js` | control flow, dominators, loops and calls as pictures |
//!
//! The page depends only on the program and the options, except for times, which are measured.
//!
//! Cost: compiling the program in one thread, and printing each function after each pass that changed it.
//!
//! Not done: samples of native code (the counts of a call are the interpreter's, exact for the rows as they
//! were read); code of the single-pass generator, in place of which Cranelift's is shown.
#![forbid(unsafe_code)]

mod assembly;
mod data;
mod fates;
mod json;
mod machine;
mod options;
mod rows;
mod watch;

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brolga_engine::{Error, Evaluator, Program};
use flate2::Compression;
use flate2::write::ZlibEncoder;

pub use assembly::assembly;
pub use fates::{Fate, Fates, MAX_CODE_ROWS, fates};
pub use machine::instructions;
pub use options::{DEFAULT_STEPS, Options, Source};

use data::Profile;

/// The page of a program. A function without a native form is shown up to the stage that it reaches, with the
/// reason.
pub fn page(program: &Program, options: &Options) -> Result<String, Error> {
    let profile = match &options.call {
        Some(text) => Some(profile(program, text, options.steps.unwrap_or(DEFAULT_STEPS))?),
        None => None,
    };
    let mut module = program.module().clone();
    let places = watch::number_rows(&mut module);
    let ids = module.funcs().map(|(id, _)| id);
    let shown = ids.filter(|&id| options.shows(&module[id].symbol(&module.cx))).collect::<Vec<_>>();
    let logs = watch::watch(&module, &shown, options.level, &options.passes)?;
    let mut json = String::new();
    data::of(program, &module, &places, &logs, profile.as_ref(), options).write(&mut json);
    Ok(filled(program.source().name(), &packed(&json)))
}

/// Makes a call and counts executions.
fn profile(program: &Program, text: &str, steps: u64) -> Result<Profile, Error> {
    let call = program.call(text)?;
    let counted = Evaluator::interpreted(program).call_counting(&call, steps);
    let outcome = counted.value.unwrap_or_else(|failure| failure.to_string());
    Ok(Profile { call: text.to_owned(), outcome, counts: counted.blocks })
}

/// The data as text that the page unpacks: compressed to about a sixth, in base 64.
fn packed(json: &str) -> String {
    let mut stream = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writing to a vector cannot fail.
    let written = stream.write_all(json.as_bytes()).and_then(|()| stream.finish());
    STANDARD.encode(written.unwrap_or_default())
}

/// The page with its style, script and data filled in.
fn filled(title: &str, data: &str) -> String {
    let escaped = title.replace('&', "&amp;").replace('<', "&lt;");
    let mut page = String::with_capacity(data.len() + (64 << 10));
    let mut rest = include_str!("page.html");
    // Each mark occurs once, and inserted text is not scanned again.
    let parts = [
        ("@TITLE@", escaped.as_str()),
        ("@STYLE@", include_str!("page.css")),
        ("@DATA@", data),
        ("@LAYOUT@", include_str!("layout.js")),
        ("@PICTURES@", include_str!("pictures.js")),
        ("@VIEWS@", include_str!("views.js")),
        ("@LIVE@", include_str!("live.js")),
        ("@SCRIPT@", include_str!("page.js")),
    ];
    for (mark, part) in parts {
        if let Some((before, behind)) = rest.split_once(mark) {
            page.push_str(before);
            page.push_str(part);
            rest = behind;
        }
    }
    page.push_str(rest);
    page
}
