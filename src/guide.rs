//! The snippets of the guide (`docs/guide`) as doc tests: each page documents an otherwise unused item. `tests/tidy.rs` checks that no
//! page is missing.

macro_rules! pages {
    ($($page:literal $item:ident,)*) => {$(
        #[doc = include_str!(concat!("../docs/guide/src/", $page))]
        struct $item;
    )*};
}

pages! {
    "introduction.md" Introduction,
    "columns.md" Columns,
    "host.md" Host,
    "strings.md" Strings,
    "exceptions.md" Exceptions,
    "heap.md" Heap,
    "sessions.md" Sessions,
    "doors.md" ProgramsOfOthers,
    "limits.md" Limits,
    "threats.md" ThreatModel,
    "executor.md" Executor,
    "images.md" Images,
    "c.md" FromC,
    "tools.md" Tools,
}
