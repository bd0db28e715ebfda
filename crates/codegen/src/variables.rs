//! Where the variables of a source are in compiled code, for debuggers.
//!
//! ```text
//!   Func::value_names ──► label n on each value of Cranelift's IR ──► ranges of code and places of label n ──► Variable, by name
//! ```
//!
//! Optimised code shows a variable where the computation keeps a value of it; elsewhere it is optimised out. Code of the
//! first tier and of `O0` stores each variable in the frame at its assignment, so it is always shown, except for an assigned
//! constant.
//!
//! Cost: nothing for a function without named values. One with named values is not compiled in a single pass, which does not record places.

use std::collections::BTreeMap;

use brolga_ir::{Context, Func, Name, Type};
use cranelift_codegen::ValueLabelsRanges;
use cranelift_codegen::isa::TargetIsa;

use crate::compiled::{Shown, Variable, VariablePlace};

/// The places of one label.
type Places = Vec<(u32, u32, VariablePlace)>;

/// The places of labels, by label.
pub(crate) fn places(ranges: &ValueLabelsRanges, isa: &dyn TargetIsa) -> BTreeMap<u32, Places> {
    use cranelift_codegen::LabelValueLoc;
    let mut found = BTreeMap::new();
    // The order of the table does not matter: labels are sorted.
    for (label, ranges) in ranges {
        let places: Places = ranges
            .iter()
            .filter_map(|range| {
                let place = match range.loc {
                    LabelValueLoc::Reg(reg) => {
                        VariablePlace::Register(isa.map_regalloc_reg_to_dwarf(reg).ok()?)
                    }
                    LabelValueLoc::CFAOffset(offset) => VariablePlace::Frame(offset),
                };
                Some((range.start, range.end, place))
            })
            .collect();
        found.insert(label.as_u32(), places);
    }
    found
}

/// The variables of a function, by name. Where two values of a variable are kept at once, the one that was named later counts.
pub(crate) fn variables(cx: &Context, func: &Func, mut places: BTreeMap<u32, Places>) -> Vec<Variable> {
    let mut found: BTreeMap<&str, Variable> = BTreeMap::new();
    for (label, name) in func.value_names().iter().enumerate().rev() {
        let Some(places) = u32::try_from(label).ok().and_then(|label| places.remove(&label)) else {
            continue;
        };
        let text = cx.names.text(name.name);
        let variable = found.entry(text).or_insert_with(|| Variable {
            name: text.to_owned(),
            ty: cx.types.display(name.ty).to_string(),
            shown: shown(name.ty),
            places: Vec::new(),
        });
        for (start, end, place) in places {
            add(&mut variable.places, start, end, place);
        }
    }
    found.into_values().filter(|variable| !variable.places.is_empty()).collect()
}

/// The variables that a function keeps in its frame, by name, with the numbers of their stack slots and distances in them.
pub(crate) fn kept(
    cx: &Context,
    func: &Func,
    homes: &[(Name, u32)],
    slots: &BTreeMap<u32, i64>,
    bytes: usize,
) -> Vec<Variable> {
    let variable = |(name, slot): &(Name, u32)| {
        let named = func.value_names().iter().find(|known| known.name == *name)?;
        let text = cx.names.text(*name);
        let variable = Variable {
            name: text.to_owned(),
            ty: cx.types.display(named.ty).to_string(),
            shown: shown(named.ty),
            places: vec![(0, bytes as u32, VariablePlace::Frame(*slots.get(slot)?))],
        };
        Some((text, variable))
    };
    homes.iter().filter_map(variable).collect::<BTreeMap<&str, Variable>>().into_values().collect()
}

/// Adds the parts of a range that no existing range covers.
fn add(places: &mut Places, start: u32, end: u32, place: VariablePlace) {
    let mut from = start;
    let known: Places = places.clone();
    for (known_start, known_end, _) in known {
        if known_end <= from || known_start >= end {
            continue;
        }
        if from < known_start {
            places.push((from, known_start, place));
        }
        from = from.max(known_end);
    }
    if from < end {
        places.push((from, end, place));
    }
    places.sort_unstable();
}

fn shown(ty: Type) -> Shown {
    match ty {
        Type::INT8 => Shown::Signed(1),
        Type::INT16 => Shown::Signed(2),
        Type::INT32 => Shown::Signed(4),
        Type::INT64 => Shown::Signed(8),
        Type::UINT8 => Shown::Unsigned(1),
        Type::UINT16 => Shown::Unsigned(2),
        Type::UINT32 | Type::CHAR => Shown::Unsigned(4),
        Type::UINT64 => Shown::Unsigned(8),
        Type::FLOAT32 => Shown::Float(4),
        Type::FLOAT64 => Shown::Float(8),
        Type::BOOL => Shown::Bool,
        _ => Shown::Address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_added_where_none_is() {
        let (one, other) = (VariablePlace::Register(1), VariablePlace::Frame(-8));
        let mut places = vec![(4, 8, one), (12, 16, one)];
        add(&mut places, 2, 20, other);
        assert_eq!(places, [(2, 4, other), (4, 8, one), (8, 12, other), (12, 16, one), (16, 20, other)]);
        add(&mut places, 5, 7, other);
        assert_eq!(places.len(), 5);
    }
}
