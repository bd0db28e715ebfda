//! The pieces of composite values: structs, tuples, arrays, and library types with their own form.
//!
//! | type | text |
//! |---|---|
//! | `Pair` | `1 => 2`, `1 => (2 => 3)` |
//! | `UnitRange`, `StepRange`, `OneTo` | `1:3`, `1:2:7`, `Base.OneTo(4)` |
//! | `Rational`, `Complex` | `1//2`, `1.0 - 2.0im`, `NaN + Inf*im`, `im` |
//! | `Some`, `CartesianIndex` | `Some(3)`, `CartesianIndex(1, 2)` |
//! | `SubString` | like the string |
//! | `Dict`, `Set` | `Dict("a" => 1)`, `Dict{Any, Int64}(1 => 2)`, `Set([1, 2])`, `Set{Int64}()` |
//!
//! Table elements come in slot order, as in Julia. A value whose parts are not as Julia makes them is written
//! as a plain struct.
//!
//! Not done: ranges of floats (`StepRangeLen`), which compute their ends.

use super::Shown;
use super::item::{Graph, Item, MAX_SHOWN, Row, TypeIn, View, shown, write_text};
use crate::types::{TextForm, Type, TypeKind};
use std::borrow::Cow;

/// The pieces of the text of a value.
pub(super) type Pieces<'t, N> = Vec<Item<'t, N>>;

/// The text of the only value of a type.
pub(super) fn singleton(ty: TypeIn<'_>) -> String {
    let types = ty.types;
    match types.kind(ty.ty) {
        TypeKind::Function(name) => types.names().text(name.name).to_owned(),
        TypeKind::TypeOf(of) => types.display(*of).to_string(),
        TypeKind::Tuple { .. } => "()".to_owned(),
        TypeKind::NamedTuple { .. } => "NamedTuple()".to_owned(),
        _ if ty.ty == Type::NOTHING => "nothing".to_owned(),
        _ if is_missing(ty) => "missing".to_owned(),
        _ => format!("{}()", ty.text()),
    }
}

fn is_missing(ty: TypeIn<'_>) -> bool {
    let Some((decl, _)) = ty.types.nominal_parts(ty.ty) else { return false };
    decl.is_builtin() && ty.types.names().text(ty.types.decl(decl).name) == "Missing"
}

/// The pieces of a value of a type with its own form; `None` for any other, and for parts that Julia would
/// not make.
pub(super) fn form_parts<'t, G: Graph<'t>>(
    graph: &mut G,
    ty: TypeIn<'t>,
    announced: Option<TypeIn<'t>>,
    fields: &[Option<G::Node>],
) -> Result<Option<Pieces<'t, G::Node>>, G::Error> {
    let Some(form) = ty.types.text_form(ty.ty) else { return Ok(None) };
    let val = |field: &Option<G::Node>| Item::Val(field.clone(), None);
    Ok(match (form, fields) {
        (TextForm::Pair, [first, second]) => {
            Some(pair(graph, announced.filter(|of| of.is(ty)), first, second))
        }
        (TextForm::UnitRange, [start, stop]) => Some(vec![val(start), Item::Text(":"), val(stop)]),
        (TextForm::StepRange, [start, step, stop]) => {
            Some(vec![val(start), Item::Text(":"), val(step), Item::Text(":"), val(stop)])
        }
        (TextForm::OneTo, [stop]) => Some(vec![Item::Text("Base.OneTo("), val(stop), Item::Text(")")]),
        (TextForm::Rational, [num, den]) => Some(vec![val(num), Item::Text("//"), val(den)]),
        (TextForm::Some, [value]) => Some(vec![Item::Text("Some("), val(value), Item::Text(")")]),
        (TextForm::Complex, [Some(re), Some(im)]) => Some(complex(graph, re, im)?),
        (TextForm::CartesianIndex, [Some(numbers)]) => match graph.view(numbers, MAX_SHOWN)? {
            View::Fields(numbers) => {
                let mut pieces = vec![Item::Text("CartesianIndex(")];
                for (n, number) in numbers.iter().enumerate() {
                    pieces.extend([Item::Text(if n > 0 { ", " } else { "" }), val(number)]);
                }
                pieces.push(Item::Text(")"));
                Some(pieces)
            }
            _ => None,
        },
        (TextForm::SubString, fields) => {
            let text = sub_string(graph, ty, fields)?;
            text.map(|bytes| {
                let mut text = String::new();
                write_text(&mut text, &bytes);
                vec![Item::Owned(text)]
            })
        }
        (TextForm::Dict, fields) => dict(graph, ty, fields)?,
        (TextForm::Set, [Some(table)]) => set(graph, ty, table)?,
        _ => None,
    })
}

/// A pair, whose parts may have announced types; nested pairs are parenthesised.
fn pair<'t, G: Graph<'t>>(
    graph: &G,
    announced: Option<TypeIn<'t>>,
    first: &Option<G::Node>,
    second: &Option<G::Node>,
) -> Pieces<'t, G::Node> {
    let mut pieces = Vec::with_capacity(7);
    for (n, part) in [first, second].into_iter().enumerate() {
        let is_pair = part.as_ref().is_some_and(|part| {
            let ty = graph.ty(part);
            ty.types.text_form(ty.ty) == Some(TextForm::Pair)
        });
        let of = announced.and_then(|pair| Some(pair.with(*pair.types.nominal_parts(pair.ty)?.1.get(n)?)));
        pieces.push(Item::Text(match (n, is_pair) {
            (0, false) => "",
            (0, true) => "(",
            (_, false) => " => ",
            (_, true) => " => (",
        }));
        pieces.push(Item::Val(part.clone(), of));
        pieces.extend(is_pair.then_some(Item::Text(")")));
    }
    pieces
}

/// A complex number: the sign of the imaginary part separates the parts, and `*` follows one that would not
/// read as a factor.
fn complex<'t, G: Graph<'t>>(
    graph: &mut G,
    re: &G::Node,
    im: &G::Node,
) -> Result<Pieces<'t, G::Node>, G::Error> {
    let ty = graph.ty(im);
    let im_bits = match graph.view(im, 0)? {
        View::Bits(bits) => shown(ty, bits),
        _ => None,
    };
    if let Some(Shown::Bool(im)) = im_bits {
        let re = matches!(graph.view(re, 0)?, View::Bits(1));
        let text = if im && !re { "im".to_owned() } else { format!("Complex({re},{im})") };
        return Ok(vec![Item::Owned(text)]);
    }
    let numerator = match graph.view(im, MAX_SHOWN)? {
        View::Fields(parts) if ty.types.text_form(ty.ty) == Some(TextForm::Rational) => {
            match parts.as_slice() {
                [Some(num), den] => match graph.view(num, 0)? {
                    View::Bits(bits) => shown(graph.ty(num), bits).map(|num| (num, den.clone())),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    };
    let (number, denominator) = match (im_bits, numerator) {
        (Some(number), _) => (number, None),
        (None, Some((number, den))) => (number, Some(den)),
        (None, None) => {
            let pieces = [Item::Text(" + "), Item::Val(Some(im.clone()), None), Item::Text("*im")];
            return Ok([Item::Val(Some(re.clone()), None)].into_iter().chain(pieces).collect());
        }
    };
    let (is_negative, size) = magnitude(number);
    let is_factor = denominator.is_none() && is_finite(number);
    let mut pieces = vec![
        Item::Val(Some(re.clone()), None),
        Item::Text(if is_negative { " - " } else { " + " }),
        Item::Owned(size),
    ];
    if let Some(den) = denominator {
        pieces.extend([Item::Text("//"), Item::Val(den, None)]);
    }
    pieces.push(Item::Text(if is_factor { "im" } else { "*im" }));
    Ok(pieces)
}

/// Whether a number has a minus sign, and its text without one.
fn magnitude(number: Shown<'_>) -> (bool, String) {
    match number {
        Shown::Signed(value) => (value < 0, value.unsigned_abs().to_string()),
        Shown::F16(bits) if bits & 0x7fff <= 0x7c00 => {
            (bits >> 15 != 0, Shown::F16(bits & 0x7fff).to_string())
        }
        Shown::F32(value) if !value.is_nan() => {
            (value.is_sign_negative(), Shown::F32(value.abs()).to_string())
        }
        Shown::F64(value) if !value.is_nan() => {
            (value.is_sign_negative(), Shown::F64(value.abs()).to_string())
        }
        other => (false, other.to_string()),
    }
}

/// Whether a number is written in digits.
fn is_finite(number: Shown<'_>) -> bool {
    match number {
        Shown::F16(bits) => bits & 0x7c00 != 0x7c00,
        Shown::F32(value) => value.is_finite(),
        Shown::F64(value) => value.is_finite(),
        _ => true,
    }
}

/// The bytes of a `SubString` of a string.
pub(super) fn sub_string<'t, G: Graph<'t>>(
    graph: &mut G,
    ty: TypeIn<'t>,
    fields: &[Option<G::Node>],
) -> Result<Option<Cow<'t, [u8]>>, G::Error> {
    if ty.types.text_form(ty.ty) != Some(TextForm::SubString) {
        return Ok(None);
    }
    let [Some(string), Some(offset), Some(length)] = fields else { return Ok(None) };
    let (string, offset, length) = (graph.view(string, 0)?, graph.view(offset, 0)?, graph.view(length, 0)?);
    let (View::Str(bytes), View::Bits(offset), View::Bits(length)) = (string, offset, length) else {
        return Ok(None);
    };
    let range = usize::try_from(offset).ok().zip(usize::try_from(length).ok());
    let range = range.and_then(|(from, length)| Some(from..from.checked_add(length)?));
    Ok(range.and_then(|range| match bytes {
        Cow::Borrowed(bytes) => bytes.get(range).map(Cow::Borrowed),
        Cow::Owned(bytes) => bytes.get(range).map(|part| part.to_vec().into()),
    }))
}

/// The keys and values of a table, in slot order.
struct Entries<N> {
    list: Vec<(Option<N>, Option<N>)>,
    /// Whether the table may have more: the number of slots examined is limited.
    is_cut: bool,
}

/// The entries of a `Dict`. A slot is filled if its byte is 1, until Julia 1.8, or has its highest bit set,
/// since.
fn entries<'t, G: Graph<'t>>(
    graph: &mut G,
    fields: &[Option<G::Node>],
) -> Result<Option<Entries<G::Node>>, G::Error> {
    let [Some(slots), Some(keys), Some(values), ..] = fields else { return Ok(None) };
    let mut elements = |node| match graph.view(node, MAX_SHOWN)? {
        View::Elements { elements, .. } => Ok(elements),
        _ => Ok(Vec::new()),
    };
    let (slots, keys, values) = (elements(slots)?, elements(keys)?, elements(values)?);
    if slots.len() != keys.len() || slots.len() != values.len() {
        return Ok(None);
    }
    let mut entries = Entries { list: Vec::new(), is_cut: slots.len() == MAX_SHOWN };
    for (slot, entry) in slots.into_iter().zip(keys.into_iter().zip(values)) {
        let Some(slot) = slot else { return Ok(None) };
        if let View::Bits(bits) = graph.view(&slot, 0)?
            && (bits == 1 || bits & 0x80 != 0)
        {
            entries.list.push(entry);
        }
    }
    Ok(Some(entries))
}

fn dict<'t, G: Graph<'t>>(
    graph: &mut G,
    ty: TypeIn<'t>,
    fields: &[Option<G::Node>],
) -> Result<Option<Pieces<'t, G::Node>>, G::Error> {
    let Some((_, &[key_ty, value_ty])) = ty.types.nominal_parts(ty.ty) else { return Ok(None) };
    let Some(entries) = entries(graph, fields)? else { return Ok(None) };
    let (key_ty, value_ty) = (ty.with(key_ty), ty.with(value_ty));
    let is_told = !entries.list.is_empty() && is_told_by_its_text(key_ty) && is_told_by_its_text(value_ty);
    let mut pieces = vec![Item::Owned(if is_told { "Dict".to_owned() } else { ty.text() }), Item::Text("(")];
    for (n, (key, value)) in entries.list.into_iter().enumerate() {
        pieces.push(Item::Text(if n > 0 { ", " } else { "" }));
        pieces.extend([Item::Val(key, Some(key_ty)), Item::Text(" => "), Item::Val(value, Some(value_ty))]);
    }
    pieces.extend(entries.is_cut.then_some(Item::Text(", …")));
    pieces.push(Item::Text(")"));
    Ok(Some(pieces))
}

fn set<'t, G: Graph<'t>>(
    graph: &mut G,
    ty: TypeIn<'t>,
    table: &G::Node,
) -> Result<Option<Pieces<'t, G::Node>>, G::Error> {
    let Some((_, &[elem])) = ty.types.nominal_parts(ty.ty) else { return Ok(None) };
    let of = graph.ty(table);
    let View::Fields(fields) = graph.view(table, 0)? else { return Ok(None) };
    if of.types.text_form(of.ty) != Some(TextForm::Dict) {
        return Ok(None);
    }
    let Some(entries) = entries(graph, &fields)? else { return Ok(None) };
    if entries.list.is_empty() && !entries.is_cut {
        return Ok(Some(vec![Item::Owned(ty.text() + "()")]));
    }
    let is_cut = entries.is_cut;
    let elements: Vec<Option<G::Node>> = entries.list.into_iter().map(|(key, _)| key).collect();
    let length = elements.len() as i64;
    let mut pieces = vec![Item::Text("Set(")];
    pieces.extend(element_parts(ty, false, ty.with(elem), &[length], elements));
    pieces.extend(is_cut.then_some(Item::Text(", …")));
    pieces.push(Item::Text(")"));
    Ok(Some(pieces))
}
/// The pieces of a struct, tuple or named tuple.
pub(super) fn field_parts<'t, N>(
    ty: TypeIn<'t>,
    announced: Option<TypeIn<'t>>,
    fields: Vec<Option<N>>,
) -> Vec<Item<'t, N>> {
    let types = ty.types;
    let names = types.names();
    let mut parts = Vec::with_capacity(2 * fields.len() + 2);
    let announced_field = |n: usize| {
        let announced = announced?;
        match announced.types.kind(announced.ty) {
            TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. } => {
                announced.types.field_type(announced.ty, n).map(|ty| announced.with(ty))
            }
            _ => None,
        }
    };
    let labels = match types.kind(ty.ty) {
        TypeKind::NamedTuple { names, .. } => Some(names),
        TypeKind::Tuple { .. } => None,
        _ => {
            parts.push(Item::Owned(ty.text()));
            None
        }
    };
    parts.push(Item::Text("("));
    let is_tuple = matches!(types.kind(ty.ty), TypeKind::Tuple { .. } | TypeKind::NamedTuple { .. });
    let end = if is_tuple && fields.len() == 1 { ",)" } else { ")" };
    for (n, field) in fields.into_iter().enumerate() {
        if n > 0 {
            parts.push(Item::Text(", "));
        }
        if let Some(&label) = labels.and_then(|l| l.get(n)) {
            let mut text = String::new();
            let _ = crate::ident::write_name(&mut text, names.text(label));
            parts.push(Item::Owned(text + " = "));
        }
        parts.push(Item::Val(field, announced_field(n)));
    }
    parts.push(Item::Text(end));
    parts
}

/// The pieces of an array or memory.
pub(super) fn element_parts<'t, N: Clone>(
    ty: TypeIn<'t>,
    is_announced: bool,
    elem: TypeIn<'t>,
    dims: &[i64],
    elements: Vec<Option<N>>,
) -> Vec<Item<'t, N>> {
    let mut parts = Vec::new();
    if dims.len() > 1 && elements.is_empty() {
        let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
        parts.push(Item::Owned(format!("{}(undef, {})", ty.text(), dims.join(", "))));
        return parts;
    }
    if !is_announced && (elements.is_empty() || !is_told_by_its_text(elem)) {
        parts.push(Item::Owned(elem.text()));
    }
    parts.push(Item::Text(if dims.is_empty() { "fill(" } else { "[" }));
    let said = dims.iter().fold(1, |n: usize, &d| n.saturating_mul(usize::try_from(d).unwrap_or(0)));
    let is_cut = said > MAX_SHOWN && elements.len() == MAX_SHOWN;
    // Elements that do not match the extents are written in a row.
    if dims.len() <= 1 || said != elements.len() {
        parts.push(Item::Row(Row { elements: elements.into_iter(), elem, has_begun: false, is_cut }));
    } else {
        let extent = |n: usize| dims.get(n).and_then(|&d| usize::try_from(d).ok()).unwrap_or(1);
        let (rows, columns) = (extent(0), extent(1));
        let page_size = rows.saturating_mul(columns).max(1);
        for (page, elements) in elements.chunks(page_size).enumerate() {
            if page > 0 {
                // The number of semicolons is the highest dimension that just ended.
                let mut size = 1;
                let ended = dims[2..].iter().take_while(|&&d| {
                    size = i64::saturating_mul(size, d);
                    page as i64 % size.max(1) == 0
                });
                parts.push(Item::Owned(";".repeat(3 + ended.count()) + " "));
            }
            for row in 0..rows {
                if row > 0 {
                    parts.push(Item::Text("; "));
                }
                for column in 0..columns {
                    if column > 0 {
                        parts.push(Item::Text(" "));
                    }
                    let element = elements.get(column * rows + row).cloned().flatten();
                    parts.push(Item::Val(element, Some(elem)));
                }
            }
        }
    }
    parts.push(Item::Text(if dims.is_empty() { ")" } else { "]" }));
    parts
}

/// Whether the text of an element shows its type, so that an array needs no prefix.
fn is_told_by_its_text(elem: TypeIn<'_>) -> bool {
    let types = elem.types;
    let mut work = vec![elem.ty];
    while let Some(ty) = work.pop() {
        let told = matches!(ty, Type::INT64 | Type::FLOAT64 | Type::CHAR | Type::STRING | Type::SYMBOL)
            || types.is_singleton(ty);
        if told {
            continue;
        }
        match (types.tuple_elements(ty), types.array_parts(ty), types.text_form(ty)) {
            (Some(elems), ..) => work.extend(elems),
            (None, Some((elem, _)), _) => work.push(elem),
            (None, None, Some(TextForm::Pair | TextForm::Dict)) => {
                work.extend(types.nominal_parts(ty).into_iter().flat_map(|(_, params)| params));
            }
            (None, None, _) => return false,
        }
    }
    true
}
