//! Layout: how values of a type are stored in memory, and how they are passed between instructions.
//!
//! Fields follow the platform's C rules: each at the next offset that its alignment allows, the size rounded up to
//! the largest alignment. Pointers are 64 bits wide on every supported target.
//!
//! ```text
//! struct Rec; a::Int8; b::Int32; c::Union{Nothing, Int16}; d::Any; end
//!
//! 0  1        4        8     10     11     16       24
//! │a │ (pad)  │ b      │ c   │ sel  │ (pad) │ d      │        size 24, align 8, pointers [16]
//! ```
//!
//! The storage of a field depends on its type:
//!
//! | field type | stored as |
//! |---|---|
//! | immutable and concrete | the value itself, inline |
//! | union of at most 127 pointer-free concrete types | the largest member, then one selector byte |
//! | anything else | a pointer to an object; null while undefined |
//!
//! An immutable type cannot contain itself inline: a field is a pointer if the struct can be reached from the
//! field's type through inline fields. This rule considers the whole cycle, so the result does not depend on
//! which layout is computed first.
//!
//! A selector is the index of the member in the union's printing order, from 0.

use super::declaration::DeclKind;
use super::kind::{Type, TypeKind};
use super::storage::{Field, FieldRepr, Layout, LayoutError, Repr};
use super::table::Types;
use std::fmt;
use std::sync::Arc;

/// The largest union that is stored unboxed.
pub(super) const MAX_UNION: usize = 127;
/// The largest value that has a layout, in bytes: half of the largest stack slot, to leave room for a
/// selector and padding.
pub(super) const MAX_SIZE: u32 = 1 << 19;
/// The largest number of different types that a value may contain inline. Printed programs stay below 20; the bound
/// limits recursion over fields and the search for cycles.
pub(super) const MAX_INLINE: usize = 256;
/// The largest number of pointers that a value may contain. Pointer lists are flat, and each line of a tower
/// of two-field structs doubles them; the bound keeps such lists below 128 KiB. The widest tuple uses a
/// quarter of it. each line of text; the bound keeps the lists of such a tower below 128 KiB. The widest
/// tuple has a quarter of it.
pub(super) const MAX_POINTERS: usize = 1 << 14;
/// The size and alignment of a pointer.
const POINTER: u32 = 8;

impl LayoutError {
    /// The error as a sentence.
    pub fn display<'a>(&'a self, types: &'a Types) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            let (ty, why) = self.parts();
            write!(f, "`{}` {why}", types.display(ty))
        })
    }

    /// The type and the problem.
    fn parts(&self) -> (Type, &'static str) {
        match *self {
            LayoutError::NotConcrete(ty) => (ty, "is not a concrete type, so it has no layout"),
            LayoutError::Undefined(ty) => (ty, "is declared but not defined"),
            LayoutError::Opaque(ty) => (ty, "is laid out by the run time"),
            LayoutError::TooLarge(ty) => (ty, "is larger than the limit of 512 KiB"),
            LayoutError::Unbounded(ty) => (ty, "contains ever larger instances of itself"),
            LayoutError::TooNested(ty) => (ty, "contains more than 256 types without a pointer"),
            LayoutError::TooManyPointers(ty) => (ty, "contains more than 16384 pointers"),
        }
    }
}

/// The error as a sentence that names the type by number. [`LayoutError::display`] prints the type's name.
impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ty, why) = self.parts();
        write!(f, "`{ty:?}` {why}")
    }
}

impl std::error::Error for LayoutError {}

impl Types {
    /// Whether `bytes` are a valid value of a type in memory: each `Bool` is 0 or 1, and each selector of a union names a
    /// member. References are not checked, and for a type without a layout all bytes are valid.
    ///
    /// Cost: linear in the bytes and in adjacent fields without size. Recursion follows the nesting of types,
    /// which the type table bounds.
    pub fn holds(&self, ty: Type, bytes: &[u8]) -> bool {
        // A tower of structs without size has few bytes and 2ⁿ fields.
        if bytes.is_empty() {
            return true;
        }
        if ty == Type::BOOL {
            return bytes[0] <= 1;
        }
        if let TypeKind::Union(_) = self.kind(ty) {
            // Stored as in a field: the payload, then the selector.
            return bytes.last().is_none_or(|&which| self.member_holds(ty, which, bytes));
        }
        let Ok(layout) = self.layout(ty) else { return true };
        layout.fields.iter().all(|field| {
            let end = field.offset.saturating_add(field.size);
            let Some(bytes) = bytes.get(field.offset as usize..end as usize) else { return true };
            match field.repr {
                FieldRepr::Inline => self.holds(field.ty, bytes),
                FieldRepr::BitsUnion { selector } => {
                    let which = bytes.get(selector as usize);
                    which.is_none_or(|&which| self.member_holds(field.ty, which, bytes))
                }
                FieldRepr::Pointer => true,
            }
        })
    }

    /// Whether `bytes` are a valid value of the union member with selector `which`.
    pub fn member_holds(&self, union: Type, which: u8, bytes: &[u8]) -> bool {
        self.members(&union).get(usize::from(which)).is_some_and(|&member| self.holds(member, bytes))
    }

    /// The layout of a concrete type: of its value if it is immutable, of its object's fields if mutable.
    pub fn layout(&self, ty: Type) -> Result<&Layout, LayoutError> {
        let Some(cell) = self.layout_cell(ty) else { return Err(LayoutError::NotConcrete(ty)) };
        if let Some(done) = cell.get() {
            return done.as_ref().map_err(|&e| e);
        }
        match self.compute_layout(ty) {
            // Not cached: the type may be defined later.
            Err(error @ LayoutError::Undefined(_)) => Err(error),
            answer => {
                let computed = cell.get_or_init(|| {
                    if let Ok(layout) = &answer {
                        self.charge_facts(ty, size_of_val(&*layout.fields) + size_of_val(&*layout.pointers));
                    }
                    answer
                });
                computed.as_ref().map_err(|&e| e)
            }
        }
    }

    /// Size and alignment of an object of a concrete type, without its tag. Among the types laid out by the
    /// run time, only `Array` has objects of a fixed size: address, `Memory`, dimensions.
    pub fn object_extent(&self, ty: Type) -> Result<(u32, u32), LayoutError> {
        match self.array_parts(ty) {
            Some((_, dims)) => match dims.checked_add(2).and_then(|words| words.checked_mul(POINTER)) {
                Some(size) if size <= MAX_SIZE => Ok((size, POINTER)),
                _ => Err(LayoutError::TooLarge(ty)),
            },
            None => self.layout(ty).map(|layout| (layout.size, layout.align)),
        }
    }

    /// The form in which values of `ty` are passed.
    pub fn repr(&self, ty: Type) -> Repr {
        if ty == Type::BOTTOM {
            return Repr::Never;
        }
        if ty == Type::TOKEN {
            return Repr::Token;
        }
        if let Some(low) = ty.as_low() {
            return Repr::Scalar(low);
        }
        if self.is_singleton(ty) {
            return Repr::Ghost;
        }
        if self.primitive(ty).is_some() {
            return self.primitive_low(ty).map_or(Repr::OddPrimitive, Repr::Scalar);
        }
        match self.field_repr(ty) {
            FieldRepr::Inline => Repr::Aggregate,
            FieldRepr::BitsUnion { .. } => Repr::BitsUnion,
            FieldRepr::Pointer => Repr::Boxed,
        }
    }

    /// Whether every value of the type contains a `MemoryRef`, whose readers dereference it without a check. All other parts of
    /// immutable values are valid when zero: numbers, or references that read as undefined.
    pub fn always_refers_to_memory(&self, ty: Type) -> bool {
        let mut work = vec![ty];
        let mut seen = rustc_hash::FxHashSet::default();
        while let Some(ty) = work.pop() {
            if self.memory_ref_element(ty).is_some() {
                return true;
            }
            if seen.insert(ty)
                && self.repr(ty) == Repr::Aggregate
                && let Ok(layout) = self.layout(ty)
            {
                let inline = layout.fields.iter().filter(|field| field.repr == FieldRepr::Inline);
                work.extend(inline.map(|field| field.ty));
            }
        }
        false
    }

    /// The storage of an array element or a field of this type, ignoring cycles.
    pub fn field_repr(&self, ty: Type) -> FieldRepr {
        if let TypeKind::Union(members) = self.kind(ty) {
            return match self.union_extent(members) {
                Some((size, _)) => FieldRepr::BitsUnion { selector: size },
                None => FieldRepr::Pointer,
            };
        }
        if self.is_inline_candidate(ty) && self.layout(ty).is_ok() {
            FieldRepr::Inline
        } else {
            FieldRepr::Pointer
        }
    }

    /// The offset of the reference that is null while a field of a mutable object, or an element, is
    /// undefined; `None` if it is always defined. As in Julia, an inline value is undefined while its first
    /// reference is null. Inline fields of an immutable value are always defined.
    pub fn first_reference(&self, ty: Type, repr: FieldRepr) -> Option<u32> {
        match repr {
            FieldRepr::Pointer => Some(0),
            FieldRepr::Inline => self.layout(ty).ok()?.pointers.first().copied(),
            FieldRepr::BitsUnion { .. } => None,
        }
    }

    /// Size and alignment of the data of a union that can be stored unboxed.
    pub fn union_extent(&self, members: &[Type]) -> Option<(u32, u32)> {
        if members.len() > MAX_UNION {
            return None;
        }
        members.iter().try_fold((0, 1), |(size, align), &member| {
            if !self.is_inline_candidate(member) {
                return None;
            }
            let layout = self.layout(member).ok().filter(|l| l.is_bits())?;
            Some((layout.size.max(size), layout.align.max(align)))
        })
    }

    /// Whether values of the type have no identity, so that they can be stored inline.
    fn is_inline_candidate(&self, ty: Type) -> bool {
        self.is_concrete(ty)
            && !self.is_mutable(ty)
            && !matches!(self.nominal_kind(ty), Some(DeclKind::Opaque) if self.memory_ref_element(ty).is_none())
    }

    fn compute_layout(&self, ty: Type) -> Result<Layout, LayoutError> {
        let elements: Vec<Type> = match self.kind(ty) {
            TypeKind::Low(low) => return Ok(plain(low.bytes())),
            TypeKind::Function(_) | TypeKind::TypeOf(_) => Vec::new(),
            TypeKind::Tuple { vararg: None, .. } | TypeKind::NamedTuple { .. } if self.is_concrete(ty) => {
                self.tuple_elements(ty).unwrap_or_default().to_vec()
            }
            TypeKind::Nominal { decl, .. } => match self.body(*decl).map(|b| &b.kind) {
                None => return Err(LayoutError::Undefined(ty)),
                Some(DeclKind::Abstract) => return Err(LayoutError::NotConcrete(ty)),
                Some(DeclKind::Primitive { bits, .. }) => {
                    let bytes = u32::from(*bits) / 8;
                    let align = bytes.next_power_of_two();
                    return Ok(Layout { size: bytes.next_multiple_of(align), align, ..plain(bytes) });
                }
                Some(DeclKind::Opaque) => {
                    let Some(elem) = self.memory_ref_element(ty) else { return Err(LayoutError::Opaque(ty)) };
                    return self.memory_ref_layout(ty, elem);
                }
                Some(DeclKind::Struct { .. }) => {
                    self.fields(ty).ok_or(LayoutError::Unbounded(ty))?.iter().map(|f| f.ty).collect()
                }
            },
            _ => return Err(LayoutError::NotConcrete(ty)),
        };
        if self.search_inline(ty, |_| false).is_none() {
            return Err(LayoutError::TooNested(ty));
        }
        let mut layout = Layout { size: 0, align: 1, fields: Box::new([]), pointers: Arc::default() };
        let mut fields = Vec::with_capacity(elements.len());
        let mut pointers = Vec::new();
        // A tuple may have many elements of few types, and `field_extent` searches inside each type.
        let mut extents = rustc_hash::FxHashMap::default();
        for elem in elements {
            let (repr, size, align) = match extents.get(&elem) {
                Some(&known) => known,
                None => {
                    let found = self.field_extent(ty, elem)?;
                    extents.insert(elem, found);
                    found
                }
            };
            let offset = layout.size.next_multiple_of(align);
            layout.size =
                offset.checked_add(size).filter(|&s| s <= MAX_SIZE).ok_or(LayoutError::TooLarge(ty))?;
            match repr {
                FieldRepr::Pointer => pointers.push(offset),
                FieldRepr::Inline => pointers.extend(self.layout(elem)?.pointers.iter().map(|p| p + offset)),
                FieldRepr::BitsUnion { .. } => {}
            }
            if pointers.len() > MAX_POINTERS {
                return Err(LayoutError::TooManyPointers(ty));
            }
            layout.align = layout.align.max(align);
            fields.push(Field { ty: elem, offset, size, repr });
        }
        layout.size = layout.size.next_multiple_of(layout.align);
        layout.fields = fields.into();
        layout.pointers = pointers.into();
        Ok(layout)
    }

    /// A `MemoryRef` is the address of an element (or its index, for elements without size) and its `Memory`.
    fn memory_ref_layout(&self, ty: Type, elem: Type) -> Result<Layout, LayoutError> {
        let memory = self.memory(elem).map_err(|_| LayoutError::Unbounded(ty))?;
        let address = self.ptr(Type::NOTHING).map_err(|_| LayoutError::Unbounded(ty))?;
        let fields = [
            Field { ty: address, offset: 0, size: POINTER, repr: FieldRepr::Inline },
            Field { ty: memory, offset: POINTER, size: POINTER, repr: FieldRepr::Pointer },
        ];
        Ok(Layout { size: 2 * POINTER, align: POINTER, fields: fields.into(), pointers: [POINTER].into() })
    }

    /// The storage, size and alignment of a field of type `elem` in the type `owner`.
    fn field_extent(&self, owner: Type, elem: Type) -> Result<(FieldRepr, u32, u32), LayoutError> {
        if let TypeKind::Union(members) = self.kind(elem) {
            // A member that contains `owner` inline would make the layout infinite.
            if !members.iter().any(|&m| self.reaches(m, owner))
                && let Some((size, align)) = self.union_extent(members)
            {
                return Ok((FieldRepr::BitsUnion { selector: size }, size + 1, align));
            }
            return Ok((FieldRepr::Pointer, POINTER, POINTER));
        }
        if !self.is_inline_candidate(elem) || self.reaches(elem, owner) {
            return Ok((FieldRepr::Pointer, POINTER, POINTER));
        }
        let layout = self.layout(elem)?;
        Ok((FieldRepr::Inline, layout.size, layout.align))
    }

    /// Whether `target` is `from` or contained in it inline.
    fn reaches(&self, from: Type, target: Type) -> bool {
        self.search_inline(from, |ty| ty == target) == Some(true)
    }

    /// Whether `from` or a type that it contains inline satisfies `wanted`; `None` if it contains more than
    /// [`MAX_INLINE`].
    fn search_inline(&self, from: Type, wanted: impl Fn(Type) -> bool) -> Option<bool> {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut inline = 0;
        let mut work = vec![from];
        while let Some(ty) = work.pop() {
            if wanted(ty) {
                return Some(true);
            }
            if !seen.insert(ty) {
                continue;
            }
            if let TypeKind::Union(members) = self.kind(ty) {
                work.extend(members.iter().filter(|m| !seen.contains(m)));
            }
            if !self.is_inline_candidate(ty) {
                continue;
            }
            inline += 1;
            if inline > MAX_INLINE {
                return None;
            }
            match self.tuple_elements(ty) {
                Some(elems) => work.extend(elems),
                None => work.extend(self.fields(ty).unwrap_or_default().iter().map(|f| f.ty)),
            }
        }
        Some(false)
    }
}

fn plain(bytes: u32) -> Layout {
    Layout { size: bytes, align: bytes, fields: Box::new([]), pointers: Arc::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context;
    use crate::types::FieldDecl;
    use crate::types::LowType;

    fn declare(cx: &Context, name: &str, mutable: bool, fields: &[(&str, Type)]) -> Type {
        let decl = cx.types.declare(cx.names.intern(name), &[]).unwrap();
        let fields = fields.iter().map(|&(n, t)| FieldDecl::new(cx.names.intern(n), t)).collect();
        cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable, fields }).unwrap();
        cx.types.nominal(decl, &[]).unwrap()
    }

    /// Takes minutes unless the search inside an element's type runs once for each type, not once for each element.
    #[test]
    fn nested_long_tuples_cost_linear_time() {
        let cx = Context::new();
        let mut ty = declare(&cx, "Empty", false, &[]);
        for name in ["A", "B", "C", "D", "E", "F", "G", "H"] {
            let tuple = cx.types.tuple(&vec![ty; 4000]).unwrap();
            ty = declare(&cx, name, false, &[("all", tuple)]);
            let layout = cx.types.layout(tuple).unwrap();
            assert_eq!((layout.size, layout.fields.len()), (0, 4000));
        }
    }

    #[test]
    fn the_picture_in_the_header() {
        let cx = Context::new();
        let union = cx.types.union(&[Type::NOTHING, Type::INT16]).unwrap();
        let fields = [("a", Type::INT8), ("b", Type::INT32), ("c", union), ("d", Type::ANY)];
        let rec = declare(&cx, "Rec", false, &fields);
        let layout = cx.types.layout(rec).unwrap();
        assert_eq!((layout.size, layout.align), (24, 8));
        assert_eq!(layout.fields.iter().map(|f| f.offset).collect::<Vec<_>>(), [0, 4, 8, 16]);
        assert_eq!(layout.fields[2].repr, FieldRepr::BitsUnion { selector: 2 });
        assert_eq!(&*layout.pointers, [16]);
        assert_eq!(cx.types.repr(rec), Repr::Aggregate);
    }

    #[test]
    fn representations() {
        let cx = Context::new();
        let t = &cx.types;
        assert_eq!(t.repr(Type::NOTHING), Repr::Ghost);
        assert_eq!(t.repr(Type::BOOL), Repr::Scalar(LowType::I8));
        assert_eq!(t.repr(Type::STRING), Repr::Boxed);
        assert_eq!(t.repr(Type::ANY), Repr::Boxed);
        assert_eq!(
            t.repr(t.ptr(Type::INT8).unwrap()),
            Repr::Scalar(LowType::Ptr(crate::types::PtrClass::Raw))
        );
        assert_eq!(t.repr(t.union(&[Type::INT64, Type::FLOAT64]).unwrap()), Repr::BitsUnion);
        assert_eq!(t.repr(t.union(&[Type::INT64, Type::STRING]).unwrap()), Repr::Boxed);
        assert_eq!(t.repr(t.vector(Type::INT64).unwrap()), Repr::Boxed);
        assert_eq!(t.repr(t.memory_ref(Type::INT64).unwrap()), Repr::Aggregate);
        let int128 = t.tuple(&[Type::INT8, Type::INT128]).unwrap();
        assert_eq!(t.layout(int128).unwrap().fields[1].offset, 16);
    }

    #[test]
    fn immutables_that_contain_each_other_are_stored_by_pointer() {
        let cx = Context::new();
        let t = &cx.types;
        let n = |s: &str| cx.names.intern(s);
        let (a, b) = (t.declare(n("A"), &[]).unwrap(), t.declare(n("B"), &[]).unwrap());
        let (ta, tb) = (t.nominal(a, &[]).unwrap(), t.nominal(b, &[]).unwrap());
        assert!(matches!(t.layout(ta), Err(LayoutError::Undefined(_))));
        let body = |x| DeclKind::Struct { mutable: false, fields: [FieldDecl::new(n("x"), x)].into() };
        t.define(a, Type::ANY, body(tb)).unwrap();
        t.define(b, Type::ANY, body(ta)).unwrap();
        assert_eq!(t.layout(tb).unwrap().fields[0].repr, FieldRepr::Pointer);
        assert_eq!(t.layout(ta).unwrap().fields[0].repr, FieldRepr::Pointer);
    }

    #[test]
    fn objects_have_an_extent_where_values_have_none() {
        let cx = Context::new();
        let t = &cx.types;
        let matrix = t.array(Type::INT8, 2).unwrap();
        assert_eq!(t.object_extent(matrix), Ok((32, 8)));
        assert_eq!(t.object_extent(Type::INT128), Ok((16, 16)));
        let memory = t.memory(Type::INT8).unwrap();
        assert_eq!(t.object_extent(memory), Err(LayoutError::Opaque(memory)));
    }

    #[test]
    fn growing_types_end_in_an_error() {
        let cx = Context::new();
        let t = &cx.types;
        let n = |s: &str| cx.names.intern(s);
        let grow = t.declare(n("Grow"), &[n("T")]).unwrap();
        let inner = t.nominal(grow, &[t.param(0)]).unwrap();
        let next = t.nominal(grow, &[inner]).unwrap();
        let fields = [FieldDecl::new(n("x"), next)].into();
        t.define(grow, Type::ANY, DeclKind::Struct { mutable: false, fields }).unwrap();
        let ty = t.nominal(grow, &[Type::INT64]).unwrap();
        assert!(matches!(t.layout(ty), Err(LayoutError::Unbounded(_))));
        assert_eq!(t.repr(ty), Repr::Boxed);
    }

    /// Each struct of the tower has two of the previous one, so its pointer list is twice as long.
    #[test]
    fn pointers_inside_are_bounded() {
        let cx = Context::new();
        let t = &cx.types;
        let mut tower = vec![declare(&cx, "T0", false, &[("a", Type::ANY), ("b", Type::ANY)])];
        for n in 1..40 {
            let last = tower[n - 1];
            tower.push(declare(&cx, &format!("T{n}"), false, &[("a", last), ("b", last)]));
        }
        assert_eq!(t.layout(tower[13]).map(|layout| layout.pointers.len()), Ok(MAX_POINTERS));
        assert_eq!(t.repr(tower[13]), Repr::Aggregate);
        for &ty in &tower[14..] {
            assert_eq!(t.layout(ty), Err(LayoutError::TooManyPointers(tower[14])));
            assert_eq!(t.repr(ty), Repr::Boxed);
        }
        let wide = t.tuple(&[tower[10]; 8]).unwrap();
        assert_eq!(t.layout(wide).map(|layout| layout.pointers.len()), Ok(MAX_POINTERS));
        let wider = t.tuple(&[tower[10]; 9]).unwrap();
        assert_eq!(t.layout(wider), Err(LayoutError::TooManyPointers(wider)));
        assert!(
            t.layout(t.tuple(&[t.vector(wider).unwrap(); 2]).unwrap()).is_ok(),
            "an array is one pointer"
        );
        assert!(!t.always_refers_to_memory(tower[13]));
    }

    /// It has too many leaves to walk, but no bytes.
    #[test]
    fn towers_without_size_are_walked_by_their_types() {
        let cx = Context::new();
        let mut ty = declare(&cx, "T0", false, &[]);
        for n in 1..200 {
            ty = declare(&cx, &format!("T{n}"), false, &[("a", ty), ("b", ty)]);
        }
        assert_eq!(cx.types.layout(ty).map(|layout| layout.size), Ok(0));
        assert!(cx.types.holds(ty, &[]) && !cx.types.always_refers_to_memory(ty));
    }

    #[test]
    fn long_chains_of_structs_end_in_an_error() {
        let cx = Context::new();
        let mut ty = Type::INT64;
        for n in 0..20_000 {
            ty = declare(&cx, &format!("S{n}"), false, &[("x", ty)]);
        }
        assert_eq!(cx.types.layout(ty), Err(LayoutError::TooNested(ty)));
        assert_eq!(cx.types.repr(ty), Repr::Boxed);
        let short = cx.types.find_decl(cx.names.intern("S200")).unwrap();
        let short = cx.types.nominal(short, &[]).unwrap();
        assert_eq!(cx.types.layout(short).map(|l| l.size), Ok(8));
    }
}
