//! Run-time types, which the tags of objects refer to.
//!
//! A [`TypeDesc`] tells the collector where the pointers of an object are, and other code the object's type.
//! It is made from the layout in `ir`'s type table and lives as long as something uses the type
//! (`census.rs`). It is itself a permanent object, of type `DataType` (`UnionAll` for a parametric type
//! without parameters), so that `typeof` is the tag without its low bits:
//!
//! ```text
//!   record │ pad │ tag of DataType │ TypeDesc … │ pad │ own tag │ instance
//!                                  │                            └─ the only object of a type without bits
//!                                  └─ the address in tags of objects of this type, a multiple of 16
//! ```
//!
//! Types without instances (abstract types, unions) also have a description, because they are values.
//!
//! The layout of objects after their tags:
//!
//! | type | layout | pointers |
//! |---|---|---|
//! | structs, boxes | the type's layout | its pointer map |
//! | `String` | length, bytes, a zero byte | none |
//! | `Memory{T}` | length, address of the elements, elements; followed, for unions of bits, by one selector byte each | of each element |
//! | `Array{T, N}` | address of the first element, `Memory`, N dimensions | the `Memory` |
//! | `WeakRef` | the referent | none that keeps it alive |
//!
//! Elements of size zero have no address: then the first word of an `Array` is an element index into the
//! `Memory`, from 0.

use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

use brolga_ir::Context;
use brolga_ir::builtin::Builtin;
use brolga_ir::meter::{Charge, Meter};
use brolga_ir::types::{Field, FieldRepr, Layout, LayoutError, Type, TypeKind};

use super::field_table::FieldTable;
use super::layout::{ARRAY_DIMS, ARRAY_MEMORY, MEMORY_ELEMENTS, STRING_BYTES, TAG_BITS, TAG_PERMANENT};

/// How the collector scans an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scan {
    /// It holds no pointers.
    Nothing,
    /// Word `i` is a pointer if bit `i` is set.
    Words(u64),
    /// Pointers at these offsets.
    Offsets(Arc<[u32]>),
    /// A `Memory`: its length is the number of elements, `stride` bytes apart, each with pointers at these
    /// offsets.
    Elements { stride: u32, offsets: Arc<[u32]> },
}

/// The kind of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// Fields at fixed offsets; also a boxed value of a primitive type, which has none.
    Struct(Layout),
    /// A `String`.
    String,
    /// A `Symbol`: laid out as a string, always permanent.
    Symbol,
    /// A `Module`: laid out as its name, always permanent.
    Module,
    /// A `Memory`.
    Memory(Element),
    /// An `Array` with `dims` dimensions.
    Array {
        dims: u32,
        /// The type of its `Memory`.
        memory: TypeRef,
    },
    /// A weak reference.
    Weak,
    /// A type: a [`TypeDesc`].
    DataType,
    /// No object has exactly this type, or the run time does not lay it out.
    NoInstances,
}

/// The elements of a `Memory`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    pub ty: Type,
    pub repr: FieldRepr,
    /// The distance between elements, without the selectors of a union.
    pub stride: u32,
    pub align: u32,
    /// Offsets of the pointers inside.
    pub pointers: Arc<[u32]>,
}

impl Element {
    /// Whether elements take no memory: they are all alike, and there may be any number of them. A union of
    /// such types has selectors, which take memory.
    pub fn is_empty(&self) -> bool {
        self.stride == 0 && !matches!(self.repr, FieldRepr::BitsUnion { .. })
    }
}

/// A run-time type.
#[repr(C, align(16))]
pub struct TypeDesc {
    scan: Scan,
    size: usize,
    align: usize,
    kind: ObjectKind,
    mutable: bool,
    ty: Option<Type>,
    cx: Arc<Context>,
    name: Box<str>,
    fields: OnceLock<FieldTable>,
    /// By field: the type of inline values, if one was boxed.
    parts: OnceLock<Box<[OnceLock<TypeRef>]>>,
    builtin: OnceLock<Option<Builtin>>,
    owner: Arc<()>,
    charge: Charge,
}

/// Approximate overhead of a description in the heap's maps: two rows, for the context in which it was
/// requested and for the one it belongs to.
const MAP_ROWS: usize = 96;

impl std::fmt::Debug for TypeDesc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TypeDesc").field(&self.name).finish()
    }
}

/// A type as a permanent object.
#[derive(Debug)]
#[repr(C, align(16))]
struct Record {
    pad: u64,
    tag: u64,
    desc: TypeDesc,
    instance_pad: u64,
    instance_tag: u64,
    instance: u64,
}

/// A run-time type of one heap.
#[derive(Clone, Debug)]
pub struct TypeRef(Arc<Record>);

impl PartialEq for TypeRef {
    fn eq(&self, other: &TypeRef) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TypeRef {}

impl std::ops::Deref for TypeRef {
    type Target = TypeDesc;

    fn deref(&self) -> &TypeDesc {
        &self.0.desc
    }
}

impl TypeRef {
    /// The number of references to the record.
    pub(crate) fn holders(&self) -> usize {
        Arc::strong_count(&self.0)
    }

    /// The address range of the record, which contains the type and its instance as objects.
    pub(crate) fn addresses(&self) -> std::ops::Range<usize> {
        let start = Arc::as_ptr(&self.0).addr();
        start..start + size_of::<Record>()
    }

    /// Makes the record of `desc`, an object whose type has the tag `datatype`; `None` for the type of types
    /// itself.
    pub(crate) fn new(desc: TypeDesc, datatype: Option<u64>) -> TypeRef {
        let record = Arc::new_cyclic(|own: &std::sync::Weak<Record>| {
            let own = (own.as_ptr().addr() + offset_of!(Record, desc)) as u64;
            let tag = datatype.unwrap_or(own) | TAG_PERMANENT;
            Record { pad: 0, tag, desc, instance_pad: 0, instance_tag: own | TAG_PERMANENT, instance: 0 }
        });
        // `TypeDesc::object` uses this provenance to reach the words around the description.
        Arc::as_ptr(&record).expose_provenance();
        TypeRef(record)
    }
}

impl TypeDesc {
    /// The tag word of a new object of this type. Without its low bits it is the type's address.
    pub fn tag(&self) -> u64 {
        std::ptr::from_ref(self).expose_provenance() as u64 & !TAG_BITS
    }

    /// The offset of the only instance of the type from its description; `None` if the type has more than
    /// one. The instance of `Type{T}` is `T`, which only the table of types can find.
    pub(super) fn instance_offset(&self) -> Option<usize> {
        let has_one = matches!(&self.kind, ObjectKind::Struct(layout) if layout.size == 0 && !self.mutable);
        has_one.then(|| offset_of!(Record, instance) - offset_of!(Record, desc))
    }

    /// The kind of the objects.
    pub fn kind(&self) -> &ObjectKind {
        &self.kind
    }

    /// The type in the IR, numbered in [`TypeDesc::context`]; `None` for weak references.
    pub fn ty(&self) -> Option<Type> {
        self.ty
    }

    /// The context of the type and of its fields' types.
    pub fn context(&self) -> &Arc<Context> {
        &self.cx
    }

    /// Whether objects have an identity, so that an object is `===` only to itself.
    pub fn is_mutable(&self) -> bool {
        self.mutable
    }

    /// Whether objects can have exactly this type.
    pub fn has_instances(&self) -> bool {
        self.kind != ObjectKind::NoInstances
    }

    /// The type's name, as the IR prints it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The size of an object in bytes, without its tag; for an object with a length, the size of the part
    /// before the elements.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The alignment of an object: 8 or 16.
    pub fn align(&self) -> usize {
        self.align
    }

    /// Whether objects hold no pointers.
    pub fn is_bits(&self) -> bool {
        self.scan == Scan::Nothing
    }

    /// The run-time form of the type of a field's inline values, from `make` the first time.
    pub(crate) fn part(&self, field: usize, make: impl FnOnce() -> Option<TypeRef>) -> Option<&TypeRef> {
        let parts = || self.field_table().rows().iter().map(|_| OnceLock::new()).collect();
        let part = self.parts.get_or_init(parts).get(field)?;
        match part.get() {
            Some(known) => Some(known),
            None => make().map(|made| part.get_or_init(|| made)),
        }
    }

    /// The fields of a struct, tuple or named tuple; empty for other types.
    pub(crate) fn field_table(&self) -> &FieldTable {
        self.fields.get_or_init(|| match (&self.kind, self.ty) {
            (ObjectKind::Struct(layout), Some(ty)) => {
                let table = FieldTable::new(&self.cx, ty, layout);
                self.charge.grow(table.bytes());
                table
            }
            _ => FieldTable::default(),
        })
    }

    /// The builtin whose function has this type.
    pub(crate) fn builtin(&self) -> Option<Builtin> {
        *self.builtin.get_or_init(|| {
            let TypeKind::Function(name) = self.cx.types.kind(self.ty?) else { return None };
            Builtin::from_name(name.bare(&self.cx.names))
        })
    }

    /// The approximate size of the description in tables, in bytes.
    pub(super) fn table_bytes(&self) -> usize {
        self.charge.bytes()
    }

    pub(crate) fn scan(&self) -> &Scan {
        &self.scan
    }

    pub(crate) fn owner(&self) -> &Arc<()> {
        &self.owner
    }

    /// The size of an object whose length word is `length()`; the largest number if there is no such object.
    pub(crate) fn size_with_length(&self, length: impl FnOnce() -> u64) -> usize {
        let sized = |unit: usize, extra: usize| {
            let length = usize::try_from(length()).ok()?;
            length.checked_mul(unit)?.checked_add(self.size)?.checked_add(extra)
        };
        match &self.kind {
            ObjectKind::String | ObjectKind::Symbol | ObjectKind::Module => sized(1, 1),
            ObjectKind::Memory(element) => {
                let selector = usize::from(matches!(element.repr, FieldRepr::BitsUnion { .. }));
                sized(element.stride as usize + selector, 0)
            }
            _ => Some(self.size),
        }
        .unwrap_or(usize::MAX)
    }
}

/// Makes descriptions for one heap.
#[derive(Debug)]
pub(crate) struct Maker {
    pub(crate) owner: Arc<()>,
    /// Descriptions are charged here.
    pub(crate) meter: Arc<Meter>,
}

impl Maker {
    fn desc(
        &self,
        cx: &Arc<Context>,
        ty: Option<Type>,
        kind: ObjectKind,
        size: usize,
        scan: Scan,
    ) -> TypeDesc {
        let align = match &kind {
            ObjectKind::Struct(layout) => layout.align as usize,
            ObjectKind::Memory(element) => element.align as usize,
            _ => 8,
        };
        let align = if align > 8 { 16 } else { 8 };
        let name: Box<str> = ty.map_or("WeakRef".into(), |ty| cx.types.display(ty).to_string().into());
        let fields = match &kind {
            ObjectKind::Struct(layout) => layout.fields.len(),
            _ => 0,
        };
        let bytes = size_of::<Record>() + MAP_ROWS + name.len() + fields * size_of::<Field>();
        let mutable = match kind {
            ObjectKind::Struct(_) => ty.is_some_and(|ty| cx.types.is_mutable(ty)),
            _ => true,
        };
        TypeDesc {
            scan,
            size,
            align,
            kind,
            mutable,
            ty,
            cx: cx.clone(),
            name,
            fields: OnceLock::new(),
            parts: OnceLock::new(),
            builtin: OnceLock::new(),
            owner: self.owner.clone(),
            charge: Charge::new(&self.meter, bytes),
        }
    }

    /// A type without pointers that every context has.
    pub(crate) fn fixed(&self, cx: &Arc<Context>, ty: Type, kind: ObjectKind) -> TypeDesc {
        let size = match &kind {
            ObjectKind::Struct(layout) => layout.size as usize,
            ObjectKind::DataType => size_of::<TypeDesc>(),
            _ => STRING_BYTES,
        };
        self.desc(cx, Some(ty), kind, size, Scan::Nothing)
    }

    pub(crate) fn weak(&self, cx: &Arc<Context>) -> TypeDesc {
        self.desc(cx, None, ObjectKind::Weak, 8, Scan::Nothing)
    }

    /// The run-time form of a type other than the fixed ones. `memory` describes the type of an array's
    /// `Memory`.
    pub(crate) fn describe(
        &self,
        cx: &Arc<Context>,
        ty: Type,
        memory: impl FnOnce(Type) -> Result<TypeRef, LayoutError>,
    ) -> Result<TypeDesc, LayoutError> {
        let types = &cx.types;
        let make = |kind, size, scan| Ok(self.desc(cx, Some(ty), kind, size, scan));
        if ty.as_low().is_some() || ty == Type::TOKEN {
            return Err(LayoutError::NotConcrete(ty));
        }
        if !types.is_concrete(ty) || matches!(types.kind(ty), TypeKind::TypeOf(_)) {
            return make(ObjectKind::NoInstances, 0, Scan::Nothing);
        }
        if let Some(element) = types.memory_element(ty) {
            let element = describe_element(cx, element)?;
            let scan = match &*element.pointers {
                [] => Scan::Nothing,
                _ => Scan::Elements { stride: element.stride, offsets: element.pointers.clone() },
            };
            return make(ObjectKind::Memory(element), MEMORY_ELEMENTS, scan);
        }
        if let Some((element, dims)) = types.array_parts(ty) {
            let memory = memory(types.memory(element).map_err(|_| LayoutError::Unbounded(ty))?)?;
            let size = ARRAY_DIMS + 8 * dims as usize;
            return make(ObjectKind::Array { dims, memory }, size, Scan::Words(1 << (ARRAY_MEMORY / 8)));
        }
        match types.layout(ty).cloned() {
            Ok(layout) => {
                let (size, scan) = (layout.size as usize, scan_of(&layout));
                make(ObjectKind::Struct(layout), size, scan)
            }
            Err(LayoutError::Opaque(_)) => make(ObjectKind::NoInstances, 0, Scan::Nothing),
            Err(error) => Err(error),
        }
    }
}

/// The layout of the elements of a `Memory`.
fn describe_element(cx: &Context, ty: Type) -> Result<Element, LayoutError> {
    let types = &cx.types;
    let repr = types.field_repr(ty);
    let (stride, align, pointers): (u32, u32, Arc<[u32]>) = match repr {
        FieldRepr::Pointer => (8, 8, [0].into()),
        FieldRepr::Inline => {
            let layout = types.layout(ty)?;
            (layout.size, layout.align, layout.pointers.clone())
        }
        FieldRepr::BitsUnion { .. } => {
            let (size, align) = types.union_extent(types.members(&ty)).ok_or(LayoutError::NotConcrete(ty))?;
            (size.next_multiple_of(align), align, [].into())
        }
    };
    Ok(Element { ty, repr, stride, align, pointers })
}

fn scan_of(layout: &Layout) -> Scan {
    match &*layout.pointers {
        [] => Scan::Nothing,
        pointers if layout.size <= 512 => Scan::Words(pointers.iter().fold(0, |mask, p| mask | 1 << (p / 8))),
        _ => Scan::Offsets(layout.pointers.clone()),
    }
}
