//! The end of a call as text, and the part of it that is compared.

use std::fmt;

/// How a call ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// With a value.
    Value(String),
    /// With an exception.
    Thrown(String),
    /// It could not continue, or its value has no text.
    Undecided(String),
    /// Compiled code does not support it, as docs/ir.md states.
    LeftOut,
    /// The deadline was exceeded.
    Late,
}

impl Ended {
    /// Whether another engine has to end the same way.
    pub(super) fn is_decided(&self) -> bool {
        matches!(self, Ended::Value(_) | Ended::Thrown(_))
    }

    /// The same, or `LeftOut` if native code does not support the operation.
    pub(super) fn or_left_out(self) -> Ended {
        match &self {
            Ended::Value(text) | Ended::Thrown(text) if LEFT_OUT.iter().any(|part| text.contains(part)) => {
                Ended::LeftOut
            }
            _ => self,
        }
    }

    fn agrees(&self, other: &Ended) -> bool {
        match (self, other) {
            (Ended::Value(a), Ended::Value(b)) | (Ended::Thrown(a), Ended::Thrown(b)) => {
                a == b || comparable(a) == comparable(b)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Value(text) => f.write_str(text),
            Ended::Thrown(text) => write!(f, "throws {text}"),
            Ended::Undecided(text) => write!(f, "cannot go on: {text}"),
            Ended::LeftOut => f.write_str("does what native code does not do"),
            Ended::Late => f.write_str("does not end in time"),
        }
    }
}

/// The end of a call, and the output printed before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ending {
    pub(super) how: Ended,
    pub(super) printed: Vec<u8>,
}

impl Ending {
    pub(super) fn undecided(why: &str) -> Ending {
        Ending { how: Ended::Undecided(why.to_owned()), printed: Vec::new() }
    }

    /// Whether another engine did the same.
    pub(super) fn agrees(&self, other: &Ending) -> bool {
        let text = |ending: &Ending| comparable(&String::from_utf8_lossy(&ending.printed));
        self.how.agrees(&other.how) && (self.printed == other.printed || text(self) == text(other))
    }

    /// The texts of both, without most of their common part.
    pub(super) fn different(&self, other: &Ending) -> [String; 2] {
        const AROUND: usize = 120;
        let [one, other] = [self, other].map(|ending| comparable(&ending.to_string()));
        let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
        [one, other].map(|text| {
            let dots = if same > AROUND { "…" } else { "" };
            let shown: String = text.chars().skip(same.saturating_sub(AROUND)).take(2 * AROUND).collect();
            format!("{dots}{shown}")
        })
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.how.fmt(f)?;
        match &self.printed[..] {
            [] => Ok(()),
            printed => write!(f, ", prints {:?}", String::from_utf8_lossy(printed)),
        }
    }
}

/// The run time's messages for operations that native code does not support.
const LEFT_OUT: [&str; 3] = [
    "by a name that is known at run time only",
    "as a function that is known at run time only",
    "CompileError",
];

/// A text without addresses, and without the messages of `ErrorException`s: messages about unsuitable
/// operands are not compared.
fn comparable(text: &str) -> String {
    let mut text = without_messages(text);
    let mut from = 0;
    while let Some(at) = text[from..].find("@0x").map(|at| from + at + 3) {
        let end = text[at..].find(|c: char| !c.is_ascii_hexdigit()).map_or(text.len(), |end| at + end);
        text.replace_range(at..end, "");
        from = at;
    }
    text
}

fn without_messages(text: &str) -> String {
    const NAME: &str = "ErrorException(";
    let (mut left, mut kept) = (text, String::new());
    while let Some(at) = left.find(NAME) {
        let (before, rest) = left.split_at(at + NAME.len());
        kept.push_str(before);
        // Inside a string, the quotes are escaped one or more times.
        let quote = rest.find('"').filter(|&at| rest[..at].bytes().all(|byte| byte == b'\\'));
        let end = quote.and_then(|quote| {
            let close = format!("{})", &rest[..=quote]);
            rest[quote + 1..].find(&close).map(|end| quote + 1 + end + close.len() - 1)
        });
        left = match end {
            Some(end) => {
                kept.push('_');
                &rest[end..]
            }
            None => rest,
        };
    }
    kept + left
}

#[cfg(test)]
mod tests {
    use super::comparable;

    #[test]
    fn messages_and_addresses_are_left_out_and_all_else_is_compared() {
        let text = r#"(ErrorException("a "b" c"), BoundsError("ErrorException("d")", 1), Ptr @0x00ff)"#;
        let without = r#"(ErrorException(_), BoundsError("ErrorException(_)", 1), Ptr @0x)"#;
        assert_eq!(comparable(text), without);
        for whole in ["ErrorException(#undef)", "ArgumentError(\"a\")", "ErrorException(\"a"] {
            assert_eq!(comparable(whole), whole);
        }
    }
}
