//! Objects as Scheme writes them.

use brolga::build::Type;
use brolga::heap::Obj;

/// How deep lists are shown, and how far.
const MAX_DEPTH: usize = 50;
const MAX_ITEMS: usize = 1000;

/// The text of an object; as `write` shows it, with quotes, or as `display` does.
pub(crate) fn show(object: Obj<'_, '_>, quotes: bool) -> String {
    let mut text = String::new();
    show_into(object, quotes, MAX_DEPTH, &mut text);
    text
}

fn show_into(object: Obj<'_, '_>, quotes: bool, depth: usize, text: &mut String) {
    let name = object.desc().name();
    match object.ty() {
        Some(Type::INT64) => *text += &object.unboxed::<i64>().unwrap_or_default().to_string(),
        Some(Type::FLOAT64) => {
            let float = object.unboxed::<f64>().unwrap_or_default();
            *text += &if float.fract() == 0.0 { format!("{float:.1}") } else { float.to_string() };
        }
        Some(Type::BOOL) => *text += if object.unboxed::<u8>() == Ok(1) { "#t" } else { "#f" },
        Some(Type::STRING) if quotes => *text += &format!("{:?}", object.text().unwrap_or_default()),
        Some(Type::STRING | Type::SYMBOL) => *text += object.text().unwrap_or_default(),
        _ if name.ends_with("Nil") => *text += "()",
        _ if name.ends_with("Cons") => show_list(object, quotes, depth, text),
        _ if name.starts_with("typeof(") || name.contains('#') => *text += "#<procedure>",
        _ => *text += &format!("#<{name}>"),
    }
}

fn show_list(list: Obj<'_, '_>, quotes: bool, depth: usize, text: &mut String) {
    if depth == 0 {
        *text += "(…)";
        return;
    }
    *text += "(";
    let mut rest = list;
    for items in 0.. {
        if let Ok(Some(item)) = rest.field(0) {
            show_into(item, quotes, depth - 1, text);
        }
        let Ok(Some(next)) = rest.field(1) else { break };
        let name = next.desc().name();
        if name.ends_with("Nil") {
            break;
        }
        if !name.ends_with("Cons") {
            *text += " . ";
            show_into(next, quotes, depth - 1, text);
            break;
        }
        *text += " ";
        if items == MAX_ITEMS {
            *text += "…";
            break;
        }
        rest = next;
    }
    *text += ")";
}

/// Whether two objects look the same: what `equal?` asks.
pub(crate) fn is_equal(a: Obj<'_, '_>, b: Obj<'_, '_>) -> bool {
    a.ty() == b.ty() && show(a, true) == show(b, true)
}
