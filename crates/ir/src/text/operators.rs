//! Julia's infix and prefix operators: how tightly they bind, and to which side.
//!
//! | level | operators |
//! |---|---|
//! | 1 | `=`, `+=` and the other assignments, `~` (right) |
//! | 2 | `=>` (right) |
//! | 3 | `-->`, `→` and the other arrows (right) |
//! | 4, 5 | `||`, `&&` (right) |
//! | 6 | comparisons, `<:`, `>:`, `isa`, `in` |
//! | 7, 8 | `<|` (right), `|>` |
//! | 9 | `:`, `..`, `…` |
//! | 10, 11 | sums, products |
//! | 12, 13, 14 | `//`, shifts, `^`, `↑` (right) |
//! | 15, 16 | `::`, `where` |
//!
//! `->` takes its left operand like `::` and its right one like `=`. A leading dot changes nothing, nor do
//! suffixes (`+₁`, `×′`). Operators that are not listed have no level, so the parser refuses them by name.
//!
//! The symbols of a level are in code point order. The parser adds `$`, a sum. Not done: `? :`.

/// The level of a whole expression, lower than the level of any operator.
pub(super) const WHOLE: u8 = 0;
const ASSIGNMENT: u8 = 1;
const ARROW: u8 = 3;
pub(super) const COMPARISON: u8 = 6;
const PIPE_LEFT: u8 = 7;
pub(super) const RANGE: u8 = 9;
pub(super) const SUM: u8 = 10;
const PRODUCT: u8 = 11;
pub(super) const POWER: u8 = 14;
pub(super) const ANNOTATION: u8 = 15;
pub(super) const WHERE: u8 = 16;

/// The symbols outside ASCII, by level.
const SYMBOLS: [(u8, &str); 7] = [
    (ASSIGNMENT, "≔≕⩴"),
    (
        ARROW,
        "←→↔↚↛↜↝↞↠↢↣↤↦↩↪↫↬↮↶↷↺↻↼↽⇀⇁⇄⇆⇇⇉⇋⇌⇍⇎⇏⇐⇒⇔⇚⇛⇜⇝⇠⇢⇴⇶⇷⇸⇹⇺⇻⇼⇽⇾⇿⟵⟶⟷⟹⟺⟻⟼⟽⟾⟿⤀⤁⤂⤃⤄⤅⤆⤇⤌⤍⤎⤏⤐⤑⤔⤕⤖⤗⤘\
         ⤝⤞⤟⤠⥄⥅⥆⥇⥈⥊⥋⥎⥐⥒⥓⥖⥗⥚⥛⥞⥟⥢⥤⥦⥧⥨⥩⥪⥫⥬⥭⥰⥷⥺⧴⬰⬱⬲⬳⬴⬵⬶⬷⬸⬹⬺⬻⬼⬽⬾⬿⭀⭁⭂⭃⭄⭇⭈⭉⭊⭋⭌￩￫",
    ),
    (
        COMPARISON,
        "∈∉∊∋∌∍∝∥∦∷∺∻∽∾≁≂≃≄≅≆≇≈≉≊≋≌≍≎≐≑≒≓≖≗≘≙≚≛≜≝≞≟≠≡≢≣≤≥≦≧≨≩≪≫≬≭≮≯≰≱≲≳≴≵≶≷≸≹≺≻≼≽≾≿⊀⊁⊂⊃⊄⊅⊆⊇⊈⊉⊊⊋⊏⊐⊑⊒⊜⊢⊣\
         ⊩⊬⊮⊰⊱⊲⊳⊴⊵⊶⊷⋍⋐⋑⋕⋖⋗⋘⋙⋚⋛⋜⋝⋞⋟⋠⋡⋢⋣⋤⋥⋦⋧⋨⋩⋪⋫⋬⋭⋲⋳⋴⋵⋶⋷⋸⋹⋺⋻⋼⋽⋾⋿⟂⟈⟉⟒⦷⧀⧁⧡⧣⧤⧥⩦⩧⩪⩫⩬⩭⩮⩯⩰⩱⩲⩳⩵⩶⩷⩸⩹⩺⩻\
         ⩼⩽⩾⩿⪀⪁⪂⪃⪄⪅⪆⪇⪈⪉⪊⪋⪌⪍⪎⪏⪐⪑⪒⪓⪔⪕⪖⪗⪘⪙⪚⪛⪜⪝⪞⪟⪠⪡⪢⪣⪤⪥⪦⪧⪨⪩⪪⪫⪬⪭⪮⪯⪰⪱⪲⪳⪴⪵⪶⪷⪸⪹⪺⪻⪼⪽⪾⪿⫀⫁⫂⫃⫄⫅⫆⫇⫈⫉⫊⫋⫌⫍\
         ⫎⫏⫐⫑⫒⫓⫔⫕⫖⫗⫘⫙⫪⫫⫷⫸⫹⫺",
    ),
    (RANGE, "…⁝⋮⋯⋰⋱"),
    (SUM, "¦±−∓∔∨∪∸≏⊎⊔⊕⊖⊞⊟⊻⊽⋎⋓⟇⧺⧻⨈⨢⨣⨤⨥⨦⨧⨨⨩⨪⨫⨬⨭⨮⨹⨺⩁⩂⩅⩊⩌⩏⩐⩒⩔⩖⩗⩛⩝⩡⩢⩣"),
    (PRODUCT, "·×÷\u{387}⅋∗∘∙∤∧∩≀⊍⊓⊗⊘⊙⊚⊛⊠⊡⊼⋄⋅⋆⋇⋉⋊⋋⋌⋏⋒⌿▷⟑⟕⟖⟗⦸⦼⦾⦿⧶⧷⨇⨝⨟⨰⨱⨲⨳⨴⨵⨶⨷⨸⨻⨼⨽⩀⩃⩄⩋⩍⩎⩑⩓⩕⩘⩚⩜⩞⩟⩠⫛"),
    (POWER, "↑↓⇵⟰⟱⤈⤉⤊⤋⤒⤓⥉⥌⥍⥏⥑⥔⥕⥘⥙⥜⥝⥠⥡⥣⥥⥮⥯￪￬"),
];

/// How an infix operator binds: its level towards the expression before it, and the lowest level of the
/// expression after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Infix {
    pub left: u8,
    pub right: u8,
}

impl Infix {
    /// The binding of a left-associative operator.
    pub(super) const fn left(level: u8) -> Infix {
        Infix { left: level, right: level + 1 }
    }
}

/// How `op` binds between two operands; `None` if it is not infix.
pub(super) fn infix(op: &str) -> Option<Infix> {
    if op == "->" {
        return Some(Infix { left: ANNOTATION, right: ASSIGNMENT });
    }
    let level = level_of(op)?;
    let is_right = level < COMPARISON || matches!(level, PIPE_LEFT | POWER);
    Some(Infix { left: level, right: if is_right { level } else { level + 1 } })
}

fn level_of(op: &str) -> Option<u8> {
    if op == ".." {
        return Some(RANGE);
    }
    let op = op.strip_prefix('.').unwrap_or(op);
    Some(match op.trim_end_matches(is_suffix) {
        "=" | "+=" | "-=" | "*=" | "/=" | "//=" | "\\=" | "^=" | "÷=" | "%=" | "<<=" | ">>=" | ">>>="
        | "|=" | "&=" | "⊻=" | "~" => ASSIGNMENT,
        "=>" => 2,
        "-->" | "<--" | "<-->" => ARROW,
        "||" => 4,
        "&&" => 5,
        "<" | ">" | "<=" | ">=" | "==" | "===" | "!=" | "!==" | "<:" | ">:" => COMPARISON,
        "<|" => PIPE_LEFT,
        "|>" => 8,
        "+" | "-" | "|" | "++" => SUM,
        "*" | "/" | "\\" | "%" | "&" => PRODUCT,
        "//" => 12,
        "<<" | ">>" | ">>>" => 13,
        "^" => POWER,
        other => {
            let mut chars = other.chars();
            let (symbol, None) = (chars.next()?, chars.next()) else { return None };
            SYMBOLS.iter().find(|(_, symbols)| symbols.contains(symbol))?.0
        }
    })
}

/// Whether `op` may precede its only operand.
pub(super) fn is_prefix(op: &str) -> bool {
    let op = op.strip_prefix('.').unwrap_or(op);
    let plain = op.trim_end_matches(is_suffix);
    matches!(plain, "+" | "-" | "−" | "!" | "~" | "&" | "<:" | ">:" | "¬" | "√" | "∛" | "∜" | "⋆" | "±" | "∓")
}

/// Whether `c` may follow an operator as part of it: a prime, a superscript or subscript character, a mark.
pub(super) fn is_suffix(c: char) -> bool {
    matches!(c, '²' | '³' | '¹' | '\u{2032}'..='\u{2037}' | '\u{2057}' | '\u{2c7c}' | '\u{2c7d}' | '\u{a71b}'..='\u{a71d}')
        || matches!(c as u32, 0x2b0..=0x2e4 | 0x300..=0x36f | 0x1d2c..=0x1d6a | 0x1d9b..=0x1dff)
        || matches!(c as u32, 0x2070..=0x209f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f)
}

/// The symbols of all levels.
#[cfg(test)]
pub(super) fn symbols() -> impl Iterator<Item = char> {
    SYMBOLS.iter().flat_map(|(_, symbols)| symbols.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_have_one_level_and_stand_in_order() {
        let mut all: Vec<char> = symbols().collect();
        assert!(SYMBOLS.iter().all(|(_, symbols)| symbols.chars().is_sorted()));
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn dots_and_suffixes_change_nothing() {
        for (op, level) in [("+", SUM), (".+", SUM), ("+₁", SUM), (".×′", PRODUCT), ("→ₐ", ARROW)] {
            assert_eq!(level_of(op), Some(level), "{op}");
        }
        for op in ["--", "!", "√", "⊦", "∘∘", "?", "", "."] {
            assert_eq!(infix(op), None, "{op}");
        }
    }
}
