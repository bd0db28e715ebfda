//! JSON for the page: strings, numbers, arrays, objects.

use std::fmt::Write;

/// A value that is written as JSON.
pub(crate) enum Json {
    /// `null`.
    Null,
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object; the keys are plain words.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// A string.
    pub(crate) fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    /// An array of numbers.
    pub(crate) fn numbers<T: Into<i64>>(numbers: impl IntoIterator<Item = T>) -> Json {
        Json::List(numbers.into_iter().map(|number| Json::Number(number.into())).collect())
    }

    /// An array of strings.
    pub(crate) fn texts(texts: impl IntoIterator<Item = String>) -> Json {
        Json::List(texts.into_iter().map(Json::Text).collect())
    }

    /// A number that is a count or a time, clamped to the maximum.
    pub(crate) fn count(count: u64) -> Json {
        // JavaScript's numbers are exact up to this limit.
        Json::Number(count.min((1 << 53) - 1) as i64)
    }

    /// Appends the value to a text.
    pub(crate) fn write(&self, out: &mut String) {
        match self {
            Json::Null => out.push_str("null"),
            Json::Number(number) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "{number}");
            }
            Json::Text(text) => quote(text, out),
            Json::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Json::Object(fields) => {
                out.push('{');
                for (index, (key, value)) in fields.iter().enumerate() {
                    let _ = write!(out, "{}\"{key}\":", if index > 0 { "," } else { "" });
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::Json;

    #[test]
    fn strings_are_escaped() {
        let mut out = String::new();
        let list = vec![Json::text("a\"</b>\\\n\u{1}é"), Json::Number(-3), Json::Null];
        Json::Object(vec![("k", Json::List(list))]).write(&mut out);
        assert_eq!(out, r#"{"k":["a\"</b>\\\n\u0001é",-3,null]}"#);
    }
}
