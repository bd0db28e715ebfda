//! Words that make a comment or document read translated, and what to write instead.
//!
//! ```text
//!   comment block ──► words with lines; code spans and code fences removed ──► phrases of CLASSES ──► findings
//! ```
//!
//! A phrase matches consecutive words of one sentence, ignoring case; `…` stands for up to [`GAP`] words, and a phrase that
//! starts with `.` matches only at the beginning of a sentence. A match that overlaps one of the class's exceptions is no
//! finding.

/// The folders whose comments are checked.
pub(crate) const SWEPT: [&str; 23] = [
    "crates/aot",
    "crates/cache",
    "crates/capi",
    "crates/cli",
    "crates/codegen",
    "crates/derive",
    "crates/engine",
    "crates/executor",
    "crates/explore",
    "crates/files",
    "crates/fuzz",
    "crates/gcroots",
    "crates/instances",
    "crates/interp",
    "crates/ir",
    "crates/jit",
    "crates/linking",
    "crates/lsp",
    "crates/observe",
    "crates/opt",
    "crates/repl",
    "crates/runtime",
    "src",
];

/// The number of words that `…` matches at most.
const GAP: usize = 6;

/// Phrases with a common replacement.
struct Class {
    refused: &'static [&'static str],
    /// Phrases that contain a refused one, and are fine.
    except: &'static [&'static str],
    instead: &'static str,
}

const CLASSES: &[Class] = &[
    Class { refused: &["behind"], except: &[], instead: "after, past, through" },
    Class { refused: &["in front"], except: &[], instead: "before" },
    Class {
        refused: &["stand", "stands", "stood"],
        except: &["stand for", "stands for", "stood for"],
        instead: "is, is in",
    },
    Class { refused: &["lie", "lies", "lying", "comes to lie"], except: &[], instead: "is, is in, is at" },
    Class {
        refused: &["give", "gives", "gave"],
        except: &["give way", "gives way", "gave way"],
        instead: "returns, yields, has, results in",
    },
    Class {
        refused: &["is no", "are no", "was no", "were no"],
        except: &[
            "there is no",
            "there are no",
            "there was no",
            "there were no",
            "is no longer",
            "are no longer",
            "is no deeper",
        ],
        instead: "is not a",
    },
    Class {
        refused: &["that of", "those of"],
        except: &["that of course"],
        instead: "a possessive, or the noun again",
    },
    Class {
        refused: &[
            "ways",
            "every way",
            "each way",
            "both ways",
            "one way",
            "which way",
            "a way in",
            "a way out",
        ],
        except: &[],
        instead: "edge, path, direction",
    },
    Class { refused: &["so many", "so much"], except: &[], instead: "`n`, this many" },
    Class {
        refused: &[". of each", ". of which", ". of those", ". of these", ". of several", ". of fewer"],
        except: &[],
        instead: "a sentence with its subject first",
    },
    Class {
        refused: &["nothing follows", "by so much"],
        except: &[],
        instead: "no conclusion, by this number",
    },
    Class { refused: &["let … go", "lets … go"], except: &[], instead: "sets, directs, releases" },
    Class {
        refused: &["is told", "are told", "be told", "is asked", "are asked", "be asked"],
        except: &[],
        instead: "receives, is called, is requested",
    },
    Class {
        refused: &["know", "knows", "wants to", "wants a", "wants the", "want to"],
        except: &[],
        instead: "has, can tell, determines, needs",
    },
    Class {
        refused: &[
            "a round",
            "one round",
            "the round",
            "first round",
            "next round",
            "last round",
            "rounds of",
        ],
        except: &["a round trip", "one round trip", "a round number", "rounds of xor-shift"],
        instead: "iteration, pass",
    },
    Class { refused: &["for ever"], except: &[], instead: "forever" },
];

/// A word of a comment, in lower case and without punctuation, and its line; `.` ends a sentence.
type Word = (usize, String);

/// The findings in the comments of a Rust file, each with its line, from 1. `code` is the text without comments and strings.
pub(crate) fn translated(text: &str, code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block = Vec::new();
    let mut is_code = None;
    for (index, (line, code)) in text.lines().zip(code.lines()).enumerate() {
        let Some(comment) = comment(line, code) else {
            is_code = None;
            found.extend(findings(&std::mem::take(&mut block)));
            continue;
        };
        if let Some(language) = comment.strip_prefix("```") {
            is_code = if is_code.is_some() { None } else { Some(language != "text") };
            found.extend(findings(&std::mem::take(&mut block)));
        } else if comment.is_empty() || comment.starts_with('|') {
            found.extend(findings(&std::mem::take(&mut block)));
        }
        if is_code != Some(true) {
            block.push((index + 1, comment));
        }
    }
    found.extend(findings(&block));
    found
}

/// The findings in a Markdown text outside of fenced blocks, each with its line, from 1. Paragraphs, list items, headings and rows of
/// tables are separate.
pub(crate) fn translated_markdown(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().map(str::trim).enumerate() {
        let is_fence = line.starts_with("```");
        let is_alone = line.starts_with(['|', '#']);
        let is_item =
            line.starts_with("- ") || line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        if is_fence || is_alone || is_item || line.is_empty() {
            found.extend(findings(&std::mem::take(&mut block)));
        }
        is_fenced ^= is_fence;
        if !is_fence && !is_fenced && !line.is_empty() {
            block.push((index + 1, line));
        }
        if is_alone {
            found.extend(findings(&std::mem::take(&mut block)));
        }
    }
    found.extend(findings(&block));
    found
}

/// The findings in the string literals of a Rust file, of those with several words. `shipped` is `code` without what only tests compile.
pub(crate) fn translated_messages(text: &str, code: &str, shipped: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, (line, (code, shipped))) in text.lines().zip(code.lines().zip(shipped.lines())).enumerate() {
        let is_test = shipped.trim().is_empty() && !code.trim().is_empty();
        let end = comment_start(line, code).unwrap_or(line.len());
        let escaped = line[..end].replace("\\\"", "'");
        // Between quotes is every second piece.
        for literal in escaped.split('"').skip(1).step_by(2) {
            let is_message = literal.contains(' ') && !literal.starts_with('%');
            // A message may continue a sentence.
            let literal = format!("it {literal}");
            let found_here = (is_message && !is_test).then(|| findings(&[(index + 1, &literal)]));
            found.extend(found_here.into_iter().flatten());
        }
    }
    found
}

/// The text of a line's comment; `None` without one.
fn comment<'a>(line: &'a str, code: &str) -> Option<&'a str> {
    let at = comment_start(line, code)?;
    Some(line[at..].trim_start_matches('/').trim_start_matches('!').trim())
}

fn comment_start(line: &str, code: &str) -> Option<usize> {
    line.match_indices("//").map(|(at, _)| at).find(|&at| {
        (at == 0 || line[..at].ends_with(' ')) && code.get(at..).is_none_or(|rest| rest.trim().is_empty())
    })
}

/// The findings in consecutive lines of one paragraph.
fn findings(block: &[(usize, &str)]) -> Vec<(usize, String)> {
    let words = words(block);
    let mut found = Vec::new();
    for class in CLASSES {
        let fine: Vec<_> = class.except.iter().flat_map(|phrase| matches(&words, phrase)).collect();
        for phrase in class.refused {
            for at in matches(&words, phrase) {
                if !fine.iter().any(|fine| fine.start < at.end && at.start < fine.end) {
                    let line = words[at.start].0;
                    found.push((line, format!("`{phrase}` reads translated; write {}", class.instead)));
                }
            }
        }
    }
    found
}

/// The words of a paragraph outside code spans.
fn words(block: &[(usize, &str)]) -> Vec<Word> {
    let mut words = vec![(block.first().map_or(0, |(line, _)| *line), ".".to_owned())];
    let mut is_span = false;
    for (line, text) in block {
        for (part, piece) in text.split('`').enumerate() {
            is_span ^= part > 0;
            if is_span {
                continue;
            }
            for word in piece.split_whitespace() {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
                if !bare.is_empty() {
                    words.push((*line, bare));
                }
                if word.ends_with(['.', ':', '*', '►']) {
                    words.push((*line, ".".to_owned()));
                }
                // No phrase crosses the cells of a table.
                if word == "|" {
                    words.push((*line, "|".to_owned()));
                }
            }
        }
        // An inline span does not cross lines in practice; an odd backtick must not hide the rest.
        is_span = false;
    }
    words
}

/// The ranges of words that a phrase matches.
fn matches(words: &[Word], phrase: &str) -> Vec<std::ops::Range<usize>> {
    let phrase: Vec<&str> = phrase.split(' ').collect();
    (0..words.len()).filter_map(|at| Some(at..match_end(&words[at..], &phrase)? + at)).collect()
}

/// The number of words that a phrase matches at the beginning of `words`.
fn match_end(words: &[Word], phrase: &[&str]) -> Option<usize> {
    let [first, rest @ ..] = phrase else { return Some(0) };
    if *first == "…" {
        let sentence = words.iter().take(GAP + 1).take_while(|(_, word)| word != ".").count();
        return (0..=sentence.min(GAP)).find_map(|gap| Some(gap + match_end(&words[gap..], rest)?));
    }
    let (_, word) = words.first()?;
    (word == first).then(|| match_end(&words[1..], rest))?.map(|end| end + 1)
}
