//! The snippets of the README and the guide (`docs/guide`) as doc tests: each page documents an otherwise unused item. `tests/tidy.rs`
//! checks that no page is missing.

#[doc = include_str!("../README.md")]
struct Readme;

macro_rules! pages {
    ($($page:literal $item:ident,)*) => {$(
        #[doc = include_str!(concat!("../docs/guide/src/", $page))]
        struct $item;
    )*};
}

pages! {
    "start.md" Start,
    "front-end.md" FrontEnd,
    "rust.md" TalkingToRust,
    "change.md" ProgramsThatChange,
    "others.md" ProgramsOfOthers,
    "executor.md" Executor,
    "start-fast.md" StartFast,
    "dynamic.md" DynamicLanguages,
    "tune.md" Tune,
    "see.md" See,
    "c.md" FromC,
    "stability.md" Stability,
    "faq.md" Faq,
    "glossary.md" Glossary,
    "from-cranelift-jit.md" FromCraneliftJit,
    "from-orc.md" FromOrc,
    "options.md" OptionsTable,
    "errors.md" ErrorCodes,
    "reference.md" Reference,
}
