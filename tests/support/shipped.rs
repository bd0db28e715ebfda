//! What of a file ships: its code without the items that only tests compile.
//!
//! ```text
//!  #[cfg(test)]  #[other]  pub(crate) mod tests ;          to the `;`
//!  #[cfg(all(test, unix))]  fn f(x: [u8; 3]) { … }         to the `}` that closes the item's body
//!  #[cfg(test)]  const A: B = B { … } ;                    after an `=` and in a `use`, braces end nothing
//!  { #[cfg(test)]  field: Map<A, B> , }                    to the `,`, or before the brace of the surrounding item
//! ```

use super::{blank, is_ident_char};

/// The parts of a file.
pub(crate) struct Shipped {
    /// The code with what only tests compile blanked.
    pub(crate) code: String,
    /// The modules in other files that only tests compile.
    pub(crate) test_modules: Vec<String>,
}

/// Takes what only tests compile out of `code`, whose comments and literals are blank.
pub(crate) fn shipped(code: &str) -> Shipped {
    let mut shipped = Shipped { code: String::with_capacity(code.len()), test_modules: Vec::new() };
    let mut rest = code;
    while let Some((at, end)) = next_covered(rest) {
        let item = &rest[at..end];
        if !item.starts_with("#!") {
            shipped.test_modules.extend(module_elsewhere(item));
        }
        shipped.code.push_str(&rest[..at]);
        shipped.code.push_str(&blank(item));
        rest = &rest[end..];
    }
    shipped.code.push_str(rest);
    shipped
}

/// Where the first attribute that restricts something to tests starts, and where what it covers ends.
fn next_covered(code: &str) -> Option<(usize, usize)> {
    code.match_indices('#').find_map(|(at, _)| {
        let (predicate, end) = cfg_at(code, at)?;
        let is_inner = code[at + 1..].starts_with('!');
        needs_test(predicate).then(|| (at, if is_inner { code.len() } else { item_end(code, end) }))
    })
}

/// The predicate of the `cfg` attribute at `at`, and where the attribute ends.
fn cfg_at(code: &str, at: usize) -> Option<(&str, usize)> {
    let end = attribute_end(code, at)?;
    let inside = code[at..end].trim_start_matches(['#', '!', '[']).trim_end_matches(']').trim();
    let predicate = inside.strip_prefix("cfg")?.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((predicate, end))
}

/// Where the attribute ends whose `#` is at `at`.
fn attribute_end(code: &str, at: usize) -> Option<usize> {
    let open = at + code[at..].find('[')?;
    if !matches!(code[at..open].trim_end(), "#" | "#!") {
        return None;
    }
    let mut depth = 0usize;
    code[open..].char_indices().find_map(|(offset, c)| {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(open + offset + 1)
    })
}

/// Whether a `cfg` predicate can hold in builds for tests only: `test`, or an `all` with such a part.
fn needs_test(predicate: &str) -> bool {
    let predicate = predicate.trim();
    match predicate.strip_prefix("all").map(str::trim_start) {
        Some(parts) => {
            let parts = parts.trim_start_matches('(').trim_end().strip_suffix(')').unwrap_or(parts);
            top_level_parts(parts).into_iter().any(needs_test)
        }
        None => predicate == "test",
    }
}

/// Splits at the commas outside of parentheses.
fn top_level_parts(list: &str) -> Vec<&str> {
    let mut depth = 0usize;
    let is_comma = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    };
    list.split(is_comma).collect()
}

/// Where the item, member or statement ends whose attributes end at `from`.
fn item_end(code: &str, from: usize) -> usize {
    let mut start = code.len() - code[from..].trim_start().len();
    while let Some(end) = code[start..].starts_with('#').then(|| attribute_end(code, start)).flatten() {
        start = code.len() - code[end..].trim_start().len();
    }
    let (mut brackets, mut angles) = (0usize, 0usize);
    // Braces belong to a value or to a `use` list, and an item that ends at a `;` follows.
    let mut ends_at_semicolon = false;
    let mut before = ' ';
    let mut word = start;
    for (offset, c) in code[start..].char_indices() {
        let at = start + offset;
        let is_top = brackets == 0 && angles == 0;
        if !is_ident_char(c) {
            ends_at_semicolon |= is_top && &code[word..at] == "use";
            word = at + c.len_utf8();
        }
        match c {
            '(' | '[' | '{' => brackets += 1,
            ')' | ']' | '}' if brackets == 0 => return at,
            ')' | ']' | '}' => {
                brackets -= 1;
                if c == '}' && brackets == 0 && angles == 0 && !ends_at_semicolon {
                    return at + 1;
                }
            }
            ';' if brackets == 0 => return at + 1,
            ',' if is_top => return at + 1,
            '<' if brackets == 0 => angles += 1,
            '>' if brackets == 0 && !matches!(before, '-' | '=') => angles = angles.saturating_sub(1),
            '=' if is_top => {
                let after = code[at + 1..].chars().next();
                ends_at_semicolon |=
                    !matches!(after, Some('>' | '=')) && !matches!(before, '=' | '!' | '<' | '>');
            }
            _ => {}
        }
        before = c;
    }
    code.len()
}

/// The name of a module in another file, if that is what `item` declares.
fn module_elsewhere(item: &str) -> Option<String> {
    let declaration = item.trim_end().strip_suffix(';')?;
    let (head, name) = declaration.trim_end().rsplit_once(char::is_whitespace)?;
    head.trim_end().ends_with("mod").then(|| name.to_owned())
}
