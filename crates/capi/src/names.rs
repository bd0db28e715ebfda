//! Names in messages: functions of C where the library names functions of Rust, which a reader of the header does not have.

/// Functions that messages of the library name, with what C calls instead.
const NAMES: [(&str, &str); 14] = [
    ("Doors::open", "brolga_options_allow_doors"),
    ("Dylib::add_archive", "brolga_dylib_add_archive"),
    ("Dylib::add_library", "brolga_dylib_add_library"),
    ("Dylib::add_object", "brolga_dylib_add_object"),
    ("Dylib::add_process_symbols", "brolga_dylib_add_process_symbols"),
    ("Dylib::c_symbol", "brolga_dylib_c_symbol"),
    ("Dylib::define_c_symbol", "brolga_dylib_define_c_symbol"),
    ("Dylib::promise_c_symbols", "brolga_dylib_promise_c_symbols"),
    ("Dylib::redefine_c_symbol", "brolga_dylib_redefine_c_symbol"),
    ("Options::compile_memory", "brolga_options_set_compile_memory"),
    ("Options::doors", "brolga_options_allow_doors"),
    ("Options::fuel", "brolga_options_set_fuel"),
    ("Options::heap_limit", "brolga_options_set_heap_limit"),
    ("Options::output_limit", "brolga_runtime_take_output"),
];

/// A message for C.
pub(crate) fn in_c(message: &str) -> String {
    let mut text = message.to_owned();
    for (rust, c) in NAMES {
        let rust = format!("`{rust}`");
        if text.contains(&rust) {
            text = text.replace(&rust, &format!("`{c}`"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{NAMES, in_c};

    /// Functions that C does not have, so that it does not meet their messages.
    const OF_RUST: [&str; 6] = [
        "Dylib::define_code",
        "Options::check_bounds(CheckBounds::No)",
        "Runtime::retire",
        "Session::call_order",
        "Session::create_loader",
        "Options::cpu_targets",
    ];

    /// The names between backquotes in texts of a source file.
    fn named(source: &str) -> Vec<String> {
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let own = source.split("#[cfg(test)]").next().unwrap_or("");
        let texts = own.lines().filter(is_code).flat_map(|line| line.split('`').skip(1).step_by(2));
        let owners =
            ["Options::", "Doors::", "Dylib::", "Session::", "Engine::", "Runtime::", "Definitions::"];
        texts.filter(|name| owners.iter().any(|owner| name.starts_with(owner))).map(str::to_owned).collect()
    }

    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.extend(named(&fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }

    #[test]
    fn functions_in_messages_have_names_for_c() {
        assert_eq!(
            in_c("by `Options::fuel` and `Doors::open`"),
            "by `brolga_options_set_fuel` and `brolga_options_allow_doors`"
        );
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for name in ["ir", "interp", "opt", "codegen", "jit", "aot", "runtime", "linking", "engine", "cache"]
        {
            walk(&crates.join(name).join("src"), &mut found);
        }
        found.retain(|name| !OF_RUST.contains(&name.as_str()));
        found.retain(|name| !NAMES.iter().any(|(rust, _)| rust == name));
        assert!(found.is_empty(), "in messages: {found:?}");
    }
}
