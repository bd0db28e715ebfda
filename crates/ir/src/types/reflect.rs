//! The fields of a `DataType`, by their names in all supported versions of Julia.
//!
//! | field | value |
//! |---|---|
//! | `isbitstype`, `isconcretetype`, `isdispatchtuple`, `mutable`, `abstract` | a `Bool` |
//! | `flags` | the same as bits of a `UInt16`: 2 concrete, 4 dispatch tuple, 8 bits type |
//! | `size` | the bytes of a value, an `Int32` |
//! | `super` | the supertype |
//! | `names` | the names of the fields, as a tuple of symbols (a `SimpleVector` in Julia) |
//!
//! Not done: `name`, `parameters`, `types`, `layout`, `hash`, `instance`.

use crate::names::Name;

use super::{DeclKind, FieldRepr, Type, TypeKind, Types};

/// The value of a field of a `DataType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeField {
    /// A number of a primitive type, by its bits.
    Number(Type, u64),
    Type(Type),
    /// The names of the fields ([`Types::field_names`]).
    Names,
}

/// How Julia prints values of library types that do not look like structs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TextForm {
    /// `first => second`.
    Pair,
    /// `start:stop`.
    UnitRange,
    /// `start:step:stop`.
    StepRange,
    /// `Base.OneTo(stop)`.
    OneTo,
    /// `num//den`.
    Rational,
    /// `re + im*im`.
    Complex,
    /// `Some(value)`.
    Some,
    /// `CartesianIndex(1, 2)`.
    CartesianIndex,
    /// Like the part of the string.
    SubString,
    /// `Dict(key => value)`.
    Dict,
    /// `Set([element])`.
    Set,
}

impl Types {
    /// Whether the type is a struct declared by a program and not by Julia's library. Methods determine how
    /// its values are shown, and a program may not contain all of them.
    pub fn has_own_text(&self, ty: Type) -> bool {
        let declared = self.nominal_parts(ty).is_some_and(|(decl, _)| !decl.is_builtin());
        declared && self.field_count(ty).is_some() && self.text_form(ty).is_none()
    }

    /// The form of the values of a type of Julia's library. A type declared by a program has it if its name
    /// and fields match the library's.
    pub fn text_form(&self, ty: Type) -> Option<TextForm> {
        let (decl, _) = self.nominal_parts(ty)?;
        let name = self.names().text(self.decl(decl).name);
        if decl.is_builtin() {
            return Some(match name {
                "Pair" => TextForm::Pair,
                "UnitRange" => TextForm::UnitRange,
                "StepRange" => TextForm::StepRange,
                "OneTo" => TextForm::OneTo,
                "Rational" => TextForm::Rational,
                "Complex" => TextForm::Complex,
                "Some" => TextForm::Some,
                _ => return None,
            });
        }
        let (form, wanted): (_, &[&str]) = match name {
            "CartesianIndex" => (TextForm::CartesianIndex, &["I"]),
            "SubString" => (TextForm::SubString, &["string", "offset", "ncodeunits"]),
            "Dict" => (TextForm::Dict, &["slots", "keys", "vals", "ndel", "count"]),
            "Set" => (TextForm::Set, &["dict"]),
            _ => return None,
        };
        let mut fields = self.fields(ty)?.iter().map(|field| self.names().text(field.name));
        wanted.iter().all(|&name| fields.next() == Some(name)).then_some(form)
    }

    /// The names of the fields of a struct or named tuple.
    pub fn field_names(&self, ty: Type) -> Option<Vec<Name>> {
        match self.kind(ty) {
            TypeKind::NamedTuple { names, .. } => Some(names.to_vec()),
            _ => Some(self.fields(ty)?.iter().map(|field| field.name).collect()),
        }
    }

    /// A field of a type as an object; `None` if it has no field with this name.
    pub fn type_field(&self, ty: Type, name: &str) -> Option<TypeField> {
        if matches!(self.kind(ty), TypeKind::Union(_) | TypeKind::Generic(_) | TypeKind::UnionAll { .. }) {
            return None;
        }
        let is_bits = || {
            let inline = self.is_concrete(ty) && self.field_repr(ty) == FieldRepr::Inline;
            inline && self.layout(ty).is_ok_and(|layout| layout.is_bits())
        };
        let is_dispatch_tuple = || {
            self.tuple_elements(ty)
                .is_some_and(|elements| elements.iter().all(|&element| self.is_concrete(element)))
        };
        let truth = |value: bool| TypeField::Number(Type::BOOL, value.into());
        Some(match name {
            "isbitstype" => truth(is_bits()),
            "isconcretetype" => truth(self.is_concrete(ty)),
            "isdispatchtuple" => truth(is_dispatch_tuple()),
            "mutable" => truth(self.is_mutable(ty)),
            "abstract" => truth(ty == Type::ANY || matches!(self.nominal_kind(ty), Some(DeclKind::Abstract))),
            "flags" => {
                let bits = [(self.is_concrete(ty), 2), (is_dispatch_tuple(), 4), (is_bits(), 8)];
                let flags = bits.iter().filter(|(is, _)| *is).map(|(_, bit)| bit).sum();
                TypeField::Number(Type::UINT16, flags)
            }
            "size" => {
                let layout = self.layout(ty).ok().filter(|_| self.is_concrete(ty));
                TypeField::Number(Type::INT32, layout.map_or(0, |layout| layout.size.into()))
            }
            "super" => TypeField::Type(self.supertype(ty)),
            "names" => self.field_names(ty).map(|_| TypeField::Names)?,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;

    #[test]
    fn fields_of_types_say_what_values_are() {
        let cx = Context::new();
        let types = &cx.types;
        let vector = types.array(Type::FLOAT64, 1).unwrap();
        let pair = types.tuple(&[Type::INT64, Type::BOOL]).unwrap();
        let wide = types.tuple(&[Type::ANY]).unwrap();
        let truth = |ty, name| types.type_field(ty, name) == Some(TypeField::Number(Type::BOOL, 1));
        for (ty, bits, concrete, mutable) in [
            (Type::INT64, true, true, false),
            (pair, true, true, false),
            (vector, false, true, true),
            (Type::STRING, false, true, true),
            (Type::ANY, false, false, false),
            (wide, false, false, false),
        ] {
            let shown = types.display(ty);
            assert_eq!(truth(ty, "isbitstype"), bits, "{shown}");
            assert_eq!(truth(ty, "isconcretetype"), concrete, "{shown}");
            assert_eq!(truth(ty, "mutable"), mutable, "{shown}");
        }
        assert!(
            truth(pair, "isdispatchtuple") && !truth(wide, "isdispatchtuple") && truth(Type::ANY, "abstract")
        );
        assert_eq!(types.type_field(pair, "flags"), Some(TypeField::Number(Type::UINT16, 14)));
        assert_eq!(types.type_field(pair, "size"), Some(TypeField::Number(Type::INT32, 16)));
        assert_eq!(
            types.type_field(Type::INT64, "super"),
            Some(TypeField::Type(types.supertype(Type::INT64)))
        );
        assert_eq!(types.type_field(Type::INT64, "parameters"), None);
    }
}
