//! Interning, declarations, instantiation.
//!
//! A nominal type is declared in two steps, so that types may refer to each other and to themselves:
//! [`Types::declare`] sets the name and the parameters, [`Types::define`] the supertype and the fields, in
//! which parameter *i* is [`TypeKind::Param`]`(i)`. An instance such as `Pair{Int64, Bool}` is interned by
//! [`Types::nominal`]; its field types are substituted on first use.
//!
//! Nesting is limited to [`MAX_DEPTH`], so that every walk over a type may recurse, and the number of types
//! in the written form of one type to [`MAX_WEIGHT`], so that every such walk ends soon: `Tuple{T, T}` nested
//! a hundred times is small as a graph and endless as a text. A deeper or heavier type is refused only here,
//! where it would be made.

use super::builtin::{self, decl};
use super::declaration::{
    DeclBody, DeclData, DeclKind, FieldDecl, MAX_DEPTH, MAX_WEIGHT, MAX_WIDTH, PrimitiveRepr, TypeError,
};
use super::kind::{Decl, LowType, Type, TypeKind};
use super::storage::{Layout, LayoutError};
use crate::append::AppendVec;
use crate::constant::Const;
use crate::function_name::{BASE, FunctionName, MAIN};
use crate::meter::Meter;
use crate::names::{Name, Names};
use crate::views::{Held, Store, View, Weighed};
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard};

mod later;

use later::{DeclEntry, LATER, Part, named_by};

/// The types of a context, as seen by one of its views; see [the module](crate::types).
#[derive(Debug)]
pub struct Types {
    names: Arc<Names>,
    /// The builtin types and declarations, which have the first numbers.
    fixed: Arc<FixedTypes>,
    entries: View<Entry>,
    /// Computed facts about the types that the view holds. They name types, which are also held.
    facts: Held<Facts>,
    declared: Arc<Declared>,
    /// Further declarations of names that already have one, with numbers from [`LATER`] on.
    later: View<DeclEntry>,
    /// The module `Main`.
    main: Name,
    /// The module `Base`.
    base: Name,
}

/// The types that every context has, with all computed facts about them. Immutable.
#[derive(Debug, Default)]
pub(crate) struct FixedTypes {
    entries: Vec<Arc<Entry>>,
    facts: Vec<Arc<Facts>>,
    decls: Vec<DeclEntry>,
    index: Index,
}

#[derive(Debug, Default)]
struct Index {
    types: FxHashMap<TypeKind, Type>,
    decls: FxHashMap<Name, Decl>,
}

/// The first declarations of names, which all views of a context share and which are never freed: they may
/// refer to each other in cycles.
#[derive(Debug, Default)]
struct Declared {
    decls: AppendVec<DeclEntry>,
    index: RwLock<FxHashMap<Name, Decl>>,
}

#[derive(Debug)]
struct Entry {
    kind: TypeKind,
    extent: Extent,
    /// Keeps the types and names of the kind alive.
    parts: Box<[Part]>,
    /// Whether it names a later declaration: a view that holds the type also holds everything reachable from
    /// that ([`Types::hold`]).
    has_later: bool,
}

/// The facts about a type that are computed on demand.
#[derive(Debug, Default)]
struct Facts {
    fields: OnceLock<Option<Box<[FieldDecl]>>>,
    layout: OnceLock<Result<Layout, LayoutError>>,
}

impl Weighed for Entry {
    fn bytes(&self) -> usize {
        let listed = match &self.kind {
            TypeKind::Nominal { params: list, .. }
            | TypeKind::Union(list)
            | TypeKind::Values(list)
            | TypeKind::Tuple { elems: list, .. } => size_of_val(&**list),
            TypeKind::NamedTuple { names, .. } => size_of_val(&**names),
            TypeKind::UnionAll { bounds, .. } => size_of_val(&**bounds),
            _ => 0,
        };
        // Including the allocator's overhead for each piece.
        size_of::<Entry>() + listed + size_of_val(&*self.parts) + 64
    }
}

impl Weighed for Facts {
    /// Without the lists, which are charged when they are computed.
    fn bytes(&self) -> usize {
        size_of::<Facts>() + 32
    }
}

/// The size of the written form of a type.
#[derive(Clone, Copy, Debug)]
struct Extent {
    depth: u16,
    weight: u32,
}

impl Extent {
    const LEAF: Extent = Extent { depth: 1, weight: 1 };
}

/// The position of a declaration in the tree of supertypes; `above` computes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Above {
    /// The number of declarations from here up to `Any`.
    pub(super) depth: u32,
    /// The declaration right above.
    pub(super) parent: Option<Decl>,
    /// A declaration further up.
    pub(super) jump: Option<Decl>,
}

impl Types {
    /// A table with only these types. Their names are among the fixed ones of `names`.
    pub(crate) fn with_fixed(names: Arc<Names>, fixed: Arc<FixedTypes>, meter: &Arc<Meter>) -> Self {
        let numbers = fixed.entries.len() as u32..u32::MAX;
        let entries = View::of(Arc::new(Store::with_numbers(numbers)), meter);
        let later = View::of(Arc::new(Store::with_numbers(LATER..u32::MAX)), meter);
        Types::with(names, fixed, (entries, Held::new(meter)), (Arc::default(), later))
    }

    /// Another view of the same types, initially empty, which charges them to a meter.
    pub(crate) fn another(&self, names: Arc<Names>, meter: &Arc<Meter>) -> Self {
        let held = (self.entries.another(meter), Held::new(meter));
        let declared = (self.declared.clone(), self.later.another(meter));
        Types::with(names, self.fixed.clone(), held, declared)
    }

    fn with(
        names: Arc<Names>,
        fixed: Arc<FixedTypes>,
        (entries, facts): (View<Entry>, Held<Facts>),
        (declared, later): (Arc<Declared>, View<DeclEntry>),
    ) -> Self {
        let (main, base) = (names.intern(MAIN), names.intern(BASE));
        Self { names, fixed, entries, facts, declared, later, main, base }
    }

    /// Charges the lists of facts about a type when they are computed.
    pub(super) fn charge_facts(&self, ty: Type, bytes: usize) {
        if ty.index() >= self.fixed.facts.len() {
            self.facts.charge().grow(bytes);
        }
    }

    /// Whether both are views of the same types.
    pub(crate) fn is_same(&self, other: &Types) -> bool {
        Arc::ptr_eq(&self.declared, &other.declared)
    }

    /// Whether the view charges what it holds to a meter.
    pub(crate) fn is_metered_by(&self, meter: &Arc<Meter>) -> bool {
        self.facts.charge().is_to(meter)
    }

    /// The approximate size in bytes of the types that the view holds.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.bytes() + self.facts.charge().bytes()
    }

    /// The number of views of the same types.
    pub(crate) fn views(&self) -> usize {
        Arc::strong_count(&self.declared)
    }

    /// An address shared by all views of the same types, and by no other types while one of the views lives.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.declared).addr()
    }

    /// Computes the cached facts of each type. This may add types, which are then processed as well.
    pub(super) fn settle(&self) {
        for decl in self.decls() {
            let _named = self.nominal(decl, &[]);
        }
        for at in 0.. {
            let ty = Type(at);
            if !self.has(ty) {
                break;
            }
            let (_fields, _layout, _above) = (self.fields(ty), self.layout(ty), self.supertype(ty));
        }
        for decl in self.decls() {
            let _place = self.is_declared_below(decl, decl::NUMBER);
        }
    }

    /// The types of a table without fixed ones, to be the fixed types of other tables.
    pub(crate) fn freeze(self) -> FixedTypes {
        let Types { entries, facts, declared, .. } = self;
        let entries: Vec<Arc<Entry>> = (0..).map_while(|at| entries.hold(at).cloned()).collect();
        let types = entries.iter().zip(0..).map(|(entry, at)| (entry.kind.clone(), Type(at))).collect();
        let facts = (0..entries.len() as u32).map(|at| facts.get(at).cloned().unwrap_or_default()).collect();
        // They have no other view.
        let Declared { decls, index } = Arc::into_inner(declared).unwrap_or_default();
        let index = Index { types, decls: index.into_inner().unwrap_or_else(PoisonError::into_inner) };
        FixedTypes { entries, facts, decls: decls.into_values().collect(), index }
    }

    fn entry(&self, ty: Type) -> Option<&Entry> {
        match self.fixed.entries.get(ty.0 as usize) {
            Some(entry) => Some(entry),
            None => self.hold(ty).map(|entry| &**entry),
        }
    }

    /// The computed facts about a type.
    fn facts(&self, ty: Type) -> Option<&Facts> {
        let found = match self.fixed.facts.get(ty.0 as usize) {
            None => self.facts.get(ty.0),
            fixed => fixed,
        };
        match found {
            Some(facts) => Some(facts),
            None => {
                self.entry(ty)?;
                Some(self.facts.insert(ty.0, Arc::default()))
            }
        }
    }

    /// References to types and names, for an entry that names them. Fixed ones need none, and a run of one
    /// type needs one: long tuples have such runs.
    fn parts(
        &self,
        types: impl IntoIterator<Item = Type>,
        names: impl IntoIterator<Item = Name>,
    ) -> Box<[Part]> {
        let mut last = None;
        let types = types.into_iter().filter(|&ty| last.replace(ty) != Some(ty));
        let own = |ty: &Type| ty.index() >= self.fixed.entries.len();
        let types = types.filter(own).filter_map(|ty| Some(Part::Type(self.hold(ty)?.clone())));
        types.chain(names.into_iter().filter_map(|name| Some(Part::Name(self.names.hold(name)?)))).collect()
    }

    /// The types and names of a kind.
    fn parts_of(&self, kind: &TypeKind) -> Box<[Part]> {
        let function;
        let names = match kind {
            TypeKind::NamedTuple { names, .. } => names,
            TypeKind::Function(named) => {
                function = [named.module, named.name];
                &function[..]
            }
            TypeKind::Sym(name) => std::slice::from_ref(name),
            _ => &[],
        };
        let (types, decl) = named_by(kind);
        let later = decl.filter(|decl| decl.0 >= LATER).and_then(|decl| self.hold_later(decl));
        let parts = self.parts(types, names.iter().copied()).into_iter();
        parts.chain(later.map(|entry| Part::Later(entry.clone()))).collect()
    }

    fn decl_entry(&self, decl: Decl) -> Option<&DeclEntry> {
        if decl.0 >= LATER {
            return self.hold_later(decl).map(|entry| &**entry);
        }
        match decl.0.checked_sub(self.fixed.decls.len() as u32) {
            None => self.fixed.decls.get(decl.0 as usize),
            Some(at) => self.declared.decls.get(at),
        }
    }

    /// The names used for printing types.
    pub fn names(&self) -> &Names {
        &self.names
    }

    // ----- reading -----

    /// The structure of a type. A foreign id without a meaning here reads as `Union{}`.
    pub fn kind(&self, ty: Type) -> &TypeKind {
        self.entry(ty).map_or(&TypeKind::Bottom, |entry| &entry.kind)
    }

    /// Whether a type belongs to this context. A foreign one may pass by chance: types are numbers.
    pub fn has(&self, ty: Type) -> bool {
        self.entry(ty).is_some()
    }

    /// The name, the module and the parameters of a declaration.
    pub fn decl(&self, decl: Decl) -> &DeclData {
        static UNKNOWN: OnceLock<DeclData> = OnceLock::new();
        match self.decl_entry(decl) {
            Some(entry) => &entry.data,
            // Only a foreign id gets here; it reads as a declaration without parameters.
            None => UNKNOWN.get_or_init(|| {
                let unknown = Names::default().intern("?");
                DeclData { name: unknown, module: unknown, params: Box::new([]) }
            }),
        }
    }

    /// The supertype and kind of a declaration; `None` between [`declare`](Types::declare) and
    /// [`define`](Types::define).
    pub fn body(&self, decl: Decl) -> Option<&DeclBody> {
        Some(&self.decl_entry(decl)?.body.get()?.0)
    }

    /// The cell for the position of a declaration in the tree of supertypes.
    pub(super) fn above_cell(&self, decl: Decl) -> Option<&OnceLock<Above>> {
        Some(&self.decl_entry(decl)?.above)
    }

    /// The declaration that an unqualified name means: a declared one, or else a builtin.
    pub fn find_decl(&self, name: Name) -> Option<Decl> {
        self.find_own(name).or_else(|| self.find_builtin(name))
    }

    /// The builtin declaration with this name, whatever else is declared: `Core.name`.
    pub fn find_builtin(&self, name: Name) -> Option<Decl> {
        self.fixed.index.decls.get(&name).copied()
    }

    /// The non-builtin declaration with this name: `Main.name`.
    pub fn find_own(&self, name: Name) -> Option<Decl> {
        if self.names.count(name) == 0 {
            return self.decl_index().get(&name).copied();
        }
        let found = self.later.find_key(FxBuildHasher.hash_one(name), |entry| entry.data.name == name)?;
        self.hold_later(Decl(found)).map(|_| Decl(found))
    }

    fn decl_index(&self) -> RwLockReadGuard<'_, FxHashMap<Name, Decl>> {
        self.declared.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// All declarations, in order.
    pub fn decls(&self) -> impl Iterator<Item = Decl> + use<> {
        let own = self.decl_index().len();
        (0..(self.fixed.decls.len() + own) as u32).map(Decl)
    }

    /// Whether a declaration is builtin.
    pub fn is_builtin(&self, decl: Decl) -> bool {
        (decl.0 as usize) < builtin::count()
    }

    /// The declaration and parameters of a nominal type.
    pub fn nominal_parts(&self, ty: Type) -> Option<(Decl, &[Type])> {
        match self.kind(ty) {
            TypeKind::Nominal { decl, params } => Some((*decl, params)),
            _ => None,
        }
    }

    /// The kind of a nominal type's declaration.
    pub fn nominal_kind(&self, ty: Type) -> Option<&DeclKind> {
        Some(&self.body(self.nominal_parts(ty)?.0)?.kind)
    }

    /// The width and meaning of a primitive type.
    pub fn primitive(&self, ty: Type) -> Option<(u16, PrimitiveRepr)> {
        match self.nominal_kind(ty)? {
            DeclKind::Primitive { bits, repr } => Some((*bits, *repr)),
            _ => None,
        }
    }

    /// The `T` of `Ptr{T}`.
    pub fn pointee(&self, ty: Type) -> Option<Type> {
        self.sole_param(ty, decl::PTR)
    }

    /// The `T` of `Memory{T}`.
    pub fn memory_element(&self, ty: Type) -> Option<Type> {
        self.sole_param(ty, decl::MEMORY)
    }

    /// The `T` of `MemoryRef{T}`.
    pub fn memory_ref_element(&self, ty: Type) -> Option<Type> {
        self.sole_param(ty, decl::MEMORY_REF)
    }

    /// The names of the fields of an array, a `Memory` or a `MemoryRef`, in order.
    pub fn laid_out_fields(&self, ty: Type) -> Option<[&'static str; 2]> {
        match self.nominal_parts(ty)?.0 {
            decl::ARRAY => Some(["ref", "size"]),
            decl::MEMORY => Some(["length", "ptr"]),
            decl::MEMORY_REF => Some(["ptr_or_offset", "mem"]),
            _ => None,
        }
    }

    fn sole_param(&self, ty: Type, wanted: Decl) -> Option<Type> {
        match self.nominal_parts(ty)? {
            (decl, &[param]) if decl == wanted => Some(param),
            _ => None,
        }
    }

    /// The `T` and `N` of `Array{T, N}`.
    pub fn array_parts(&self, ty: Type) -> Option<(Type, u32)> {
        match self.nominal_parts(ty)? {
            (decl::ARRAY, &[elem, dims]) => match *self.kind(dims) {
                TypeKind::Int(n) => Some((elem, u32::try_from(n).ok()?)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The elements of a tuple or named tuple with a fixed length.
    pub fn tuple_elements(&self, ty: Type) -> Option<&[Type]> {
        match self.kind(ty) {
            TypeKind::Tuple { elems, vararg: None } => Some(elems),
            TypeKind::NamedTuple { tuple, .. } => self.tuple_elements(*tuple),
            _ => None,
        }
    }

    /// The members of a union; any other type is its own only member, and `Union{}` has none.
    pub fn members<'a>(&'a self, ty: &'a Type) -> &'a [Type] {
        match self.kind(*ty) {
            TypeKind::Union(members) => members,
            TypeKind::Bottom => &[],
            _ => std::slice::from_ref(ty),
        }
    }

    /// The fields of a struct type with its parameters substituted. `None` if it is not a defined struct
    /// type, or if a field's type cannot be made (too deep).
    pub fn fields(&self, ty: Type) -> Option<&[FieldDecl]> {
        let (decl, params) = self.nominal_parts(ty)?;
        // While the declaration is incomplete nothing may be cached.
        let DeclKind::Struct { fields, .. } = &self.body(decl)?.kind else { return None };
        self.facts(ty)?
            .fields
            .get_or_init(|| {
                self.charge_facts(ty, size_of_val(&**fields));
                fields
                    .iter()
                    .map(|f| Some(FieldDecl { ty: self.substitute(f.ty, params).ok()?, ..f.clone() }))
                    .collect()
            })
            .as_deref()
    }

    /// The number of fields accessible by `getfield`, for struct, tuple and named tuple types.
    pub fn field_count(&self, ty: Type) -> Option<usize> {
        match self.tuple_elements(ty) {
            Some(elems) => Some(elems.len()),
            None => Some(self.fields(ty)?.len()),
        }
    }

    /// The type of field `index` (from 0) of a struct, tuple or named tuple type.
    pub fn field_type(&self, ty: Type, index: usize) -> Option<Type> {
        match self.kind(ty) {
            TypeKind::Tuple { elems, vararg } => elems.get(index).copied().or(*vararg),
            TypeKind::NamedTuple { tuple, .. } => self.field_type(*tuple, index),
            _ => Some(self.fields(ty)?.get(index)?.ty),
        }
    }

    /// The position (from 0) of a named field of a struct or named tuple type.
    pub fn field_index(&self, ty: Type, name: Name) -> Option<usize> {
        match self.kind(ty) {
            TypeKind::NamedTuple { names, .. } => names.iter().position(|&n| n == name),
            _ => self.fields(ty)?.iter().position(|f| f.name == name),
        }
    }

    /// The direct supertype. `Any` is its own supertype.
    pub fn supertype(&self, ty: Type) -> Type {
        match self.kind(ty) {
            TypeKind::Nominal { decl, params } => {
                self.body(*decl).and_then(|b| self.substitute(b.supertype, params).ok()).unwrap_or(Type::ANY)
            }
            TypeKind::Function(_) => {
                self.intern_raw(TypeKind::Nominal { decl: decl::FUNCTION, params: [].into() })
            }
            _ => Type::ANY,
        }
    }

    pub(super) fn layout_cell(&self, ty: Type) -> Option<&OnceLock<Result<Layout, LayoutError>>> {
        Some(&self.facts(ty)?.layout)
    }

    // ----- making -----

    /// `Ptr{pointee}`.
    pub fn ptr(&self, pointee: Type) -> Result<Type, TypeError> {
        self.nominal(decl::PTR, &[pointee])
    }

    /// `Vector{elem}`.
    pub fn vector(&self, elem: Type) -> Result<Type, TypeError> {
        self.array(elem, 1)
    }

    /// `Array{elem, dims}`.
    pub fn array(&self, elem: Type, dims: u32) -> Result<Type, TypeError> {
        let dims = self.int(i64::from(dims));
        self.nominal(decl::ARRAY, &[elem, dims])
    }

    /// `Memory{elem}`.
    pub fn memory(&self, elem: Type) -> Result<Type, TypeError> {
        self.nominal(decl::MEMORY, &[elem])
    }

    /// `MemoryRef{elem}`.
    pub fn memory_ref(&self, elem: Type) -> Result<Type, TypeError> {
        self.nominal(decl::MEMORY_REF, &[elem])
    }

    /// `Type{of}`.
    pub fn type_of(&self, of: Type) -> Result<Type, TypeError> {
        self.intern(TypeKind::TypeOf(of))
    }

    /// `typeof(name)`, the type of a function of `Main`.
    pub fn function(&self, name: Name) -> Type {
        self.function_named(FunctionName { module: self.main, name })
    }

    /// The type of the function that a text names, such as `f`, `A.g` or `Base.max`; see
    /// [`FunctionName::parse`].
    pub fn function_of(&self, text: &str) -> Type {
        self.function_named(FunctionName::parse(&self.names, text))
    }

    /// `typeof(Base.name)`, the type of a function of the library.
    pub fn base_function(&self, name: &str) -> Type {
        self.function_named(FunctionName { module: self.base, name: self.names.intern(name) })
    }

    /// The type of a function by its module and name.
    pub fn function_named(&self, name: FunctionName) -> Type {
        self.intern_raw(TypeKind::Function(name))
    }

    /// An integer as a type parameter.
    pub fn int(&self, value: i64) -> Type {
        self.intern_raw(TypeKind::Int(value))
    }

    /// A symbol as a type parameter.
    pub fn sym(&self, value: Name) -> Type {
        self.intern_raw(TypeKind::Sym(value))
    }

    /// A value of a primitive type as a type parameter; an `Int64` is the same as by [`Types::int`]. The
    /// singleton of a type without fields has the bits 0.
    pub fn bits_value(&self, ty: Type, bits: u128) -> Type {
        match ty {
            Type::INT64 => self.int(bits as i64),
            _ => self.intern_raw(TypeKind::Bits { ty, bits }),
        }
    }

    /// Whether a type parameter is a value, not a type.
    pub fn is_value(&self, param: Type) -> bool {
        matches!(
            self.kind(param),
            TypeKind::Int(_) | TypeKind::Sym(_) | TypeKind::Bits { .. } | TypeKind::Values(_)
        )
    }

    /// A tuple of values as a type parameter, from its elements as parameters.
    pub fn tuple_value(&self, elems: &[Type]) -> Result<Type, TypeError> {
        self.intern(TypeKind::Values(elems.into()))
    }

    /// The type and the elements of a type parameter that is a tuple.
    pub fn value_elements(&self, param: Type) -> Option<(Type, &[Type])> {
        let TypeKind::Values(elems) = self.kind(param) else { return None };
        Some((self.static_type(param), elems))
    }

    /// A type parameter as a constant: its value, or the type itself. A tuple has its [elements](Types::value_elements).
    pub fn param_constant(&self, param: Type) -> Const {
        match *self.kind(param) {
            TypeKind::Int(number) => {
                Const::Bits { ty: Type::INT64, bits: u128::from(number.cast_unsigned()) }
            }
            TypeKind::Sym(name) => Const::Symbol(name),
            TypeKind::Bits { ty, .. } if self.is_singleton(ty) => Const::Singleton(ty),
            TypeKind::Bits { ty, bits } => Const::Bits { ty, bits },
            _ => self.type_constant(param),
        }
    }

    /// `NTuple{count, elem}`: a tuple if `count` is a number; any number of elements if it is unknown.
    pub fn ntuple(&self, count: Type, elem: Type) -> Result<Type, TypeError> {
        match *self.kind(count) {
            TypeKind::Int(count) => match usize::try_from(count) {
                Ok(count) if count <= MAX_WIDTH => self.tuple(&vec![elem; count]),
                Ok(count) => Err(TypeError::TooWide { count }),
                Err(_) => Err(TypeError::NegativeLength { count }),
            },
            TypeKind::Param(_) => self.intern(TypeKind::NTuple { count, elem }),
            _ => self.tuple_vararg(&[], elem),
        }
    }

    /// Parameter `index` of the declaration being defined.
    pub fn param(&self, index: u32) -> Type {
        self.intern_raw(TypeKind::Param(index))
    }

    /// `Tuple{elems...}`.
    pub fn tuple(&self, elems: &[Type]) -> Result<Type, TypeError> {
        self.intern(TypeKind::Tuple { elems: elems.into(), vararg: None })
    }

    /// `Tuple{elems..., Vararg{rest}}`.
    pub fn tuple_vararg(&self, elems: &[Type], rest: Type) -> Result<Type, TypeError> {
        self.intern(TypeKind::Tuple { elems: elems.into(), vararg: Some(rest) })
    }

    /// The named tuple type with these names over a plain tuple type.
    pub fn named_tuple(&self, names: &[Name], tuple: Type) -> Result<Type, TypeError> {
        match self.kind(tuple) {
            TypeKind::Tuple { elems, vararg: None } if elems.len() == names.len() => {}
            _ => return Err(TypeError::NamedTupleShape),
        }
        if let Some(field) = duplicate(names) {
            return Err(TypeError::DuplicateField { field });
        }
        self.intern(TypeKind::NamedTuple { names: names.into(), tuple })
    }

    /// The union of `members` in normal form; a single member is itself, none is `Union{}`.
    pub fn union(&self, members: &[Type]) -> Result<Type, TypeError> {
        let members = self.normal_members(members)?;
        match members[..] {
            [] => Ok(Type::BOTTOM),
            [only] => Ok(only),
            _ => self.intern(TypeKind::Union(members.into())),
        }
    }

    /// An instance of a declared type. Without parameters, a parametric declaration yields its generic form.
    pub fn nominal(&self, decl: Decl, params: &[Type]) -> Result<Type, TypeError> {
        let data = self.decl(decl);
        if params.len() == data.params.len() {
            self.intern(TypeKind::Nominal { decl, params: params.into() })
        } else if params.is_empty() {
            self.intern(TypeKind::Generic(decl))
        } else {
            Err(TypeError::ParameterCount {
                decl: data.name,
                expected: data.params.len(),
                given: params.len(),
            })
        }
    }

    /// The first half of a declaration. Declaring a name again with the same parameters returns the same
    /// declaration. A builtin's name may be declared: unqualified it then means the declared type, and the
    /// builtin is `Core.name`. Names that are part of the syntax of types ([`TypeError::Reserved`]) cannot be
    /// declared.
    pub fn declare(&self, name: Name, params: &[Name]) -> Result<Decl, TypeError> {
        if self.is_reserved(name) {
            return Err(TypeError::Reserved { name });
        }
        if params.len() > MAX_WIDTH {
            return Err(TypeError::TooWide { count: params.len() });
        }
        if let Some(field) = duplicate(params) {
            return Err(TypeError::DuplicateField { field });
        }
        let module = self.names.intern("");
        if self.names.count(name) > 0 {
            return self.declare_later(DeclData { name, module, params: params.into() });
        }
        let mut index = self.declared.index.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&decl) = index.get(&name) {
            let same = *self.decl(decl).params == *params;
            return if same { Ok(decl) } else { Err(TypeError::Redeclared { name }) };
        }
        let at = index.len() as u32;
        let decl = Decl(self.fixed.decls.len() as u32 + at);
        let data = DeclData { name, module, params: params.into() };
        self.declared.decls.push(at, self.decl_entry_of(data));
        index.insert(name, decl);
        Ok(decl)
    }

    /// Whether the name is part of the syntax of types, so that it cannot mean anything else: `Int64`,
    /// `Array`, `Union`.
    fn is_reserved(&self, name: Name) -> bool {
        const WORDS: [&str; 9] =
            ["Any", "Union", "Tuple", "NTuple", "Vararg", "NamedTuple", "Vector", "Matrix", "Type"];
        WORDS.contains(&self.names.text(name))
            || self.find_builtin(name).is_some_and(|decl| decl <= decl::NUMBER)
    }

    /// The second half of a declaration. Defining it again with the same body changes nothing.
    pub fn define(&self, decl: Decl, supertype: Type, kind: DeclKind) -> Result<(), TypeError> {
        let name = self.decl(decl).name;
        match &kind {
            DeclKind::Primitive { bits, .. } if !(8..=128).contains(bits) || bits % 8 != 0 => {
                return Err(TypeError::PrimitiveWidth { name, bits: *bits });
            }
            DeclKind::Struct { fields, .. } => {
                if fields.len() > MAX_WIDTH {
                    return Err(TypeError::TooWide { count: fields.len() });
                }
                let names: Vec<Name> = fields.iter().map(|f| f.name).collect();
                if let Some(field) = duplicate(&names) {
                    return Err(TypeError::DuplicateField { field });
                }
                if !fields.iter().all(|field| self.has(field.ty)) {
                    return Err(TypeError::Foreign);
                }
                if let Some(low) = fields.iter().find(|f| f.ty.as_low().is_some() || f.ty == Type::TOKEN) {
                    return Err(TypeError::MixedLevels { inner: low.ty });
                }
            }
            _ => {}
        }
        self.check_supertype(decl, supertype)?;
        let Some(entry) = self.decl_entry(decl) else { return Err(TypeError::Foreign) };
        let body = DeclBody { supertype, kind };
        let fields = match &body.kind {
            DeclKind::Struct { fields, .. } => &**fields,
            _ => &[],
        };
        let types = if decl.0 < LATER { body.types() } else { Vec::new() };
        let mut parts = self.parts(types, fields.iter().map(|field| field.name)).into_vec();
        if parts.iter().any(Part::has_later) {
            self.add_all_parts(&mut parts);
        }
        let parts = parts.into_boxed_slice();
        if entry.body.get_or_init(|| (body.clone(), parts)).0 == body {
            Ok(())
        } else {
            Err(TypeError::Redeclared { name })
        }
    }

    /// A declaration without a body.
    fn decl_entry_of(&self, data: DeclData) -> DeclEntry {
        let names = self.parts([], [data.name, data.module].into_iter().chain(data.params.iter().copied()));
        DeclEntry { data, names, body: OnceLock::new(), above: OnceLock::new(), worlds: OnceLock::new() }
    }

    fn check_supertype(&self, decl: Decl, supertype: Type) -> Result<(), TypeError> {
        let name = self.decl(decl).name;
        if supertype == Type::ANY {
            return Ok(());
        }
        let TypeKind::Nominal { decl: above, .. } = *self.kind(supertype) else {
            return Err(TypeError::SupertypeNotAbstract { name, supertype });
        };
        if above == decl {
            return Err(TypeError::SupertypeCycle { name });
        }
        // A defined type has only defined supertypes, so a cycle never closes.
        match self.body(above) {
            Some(body) if body.kind == DeclKind::Abstract => Ok(()),
            _ => Err(TypeError::SupertypeNotAbstract { name, supertype }),
        }
    }

    /// `ty` with parameter *i* replaced by `params[i]`.
    pub fn substitute(&self, ty: Type, params: &[Type]) -> Result<Type, TypeError> {
        let many =
            |list: &[Type]| list.iter().map(|&t| self.substitute(t, params)).collect::<Result<Vec<_>, _>>();
        Ok(match self.kind(ty) {
            TypeKind::Param(index) => params.get(*index as usize).copied().unwrap_or(Type::ANY),
            TypeKind::Nominal { params: own, .. } if own.is_empty() => ty,
            TypeKind::Nominal { decl, params: own } => self.nominal(*decl, &many(own)?)?,
            TypeKind::Tuple { elems, vararg } => {
                let elems = many(elems)?;
                match vararg {
                    Some(rest) => self.tuple_vararg(&elems, self.substitute(*rest, params)?)?,
                    None => self.tuple(&elems)?,
                }
            }
            TypeKind::NamedTuple { names, tuple } => {
                self.named_tuple(names, self.substitute(*tuple, params)?)?
            }
            TypeKind::Union(members) => self.union(&many(members)?)?,
            TypeKind::TypeOf(of) => self.type_of(self.substitute(*of, params)?)?,
            TypeKind::NTuple { count, elem } => {
                self.ntuple(self.substitute(*count, params)?, self.substitute(*elem, params)?)?
            }
            // It has its own parameters.
            TypeKind::UnionAll { .. }
            | TypeKind::Bottom
            | TypeKind::Any
            | TypeKind::Generic(_)
            | TypeKind::Function(_)
            | TypeKind::Int(_)
            | TypeKind::Sym(_)
            | TypeKind::Bits { .. }
            | TypeKind::Values(_)
            | TypeKind::Low(_)
            | TypeKind::Token => ty,
        })
    }

    /// The type of this kind, if some view has it.
    pub fn known(&self, kind: &TypeKind) -> Option<Type> {
        let fixed = self.fixed.index.types.get(kind).copied();
        let of_views = || {
            let found = self.entries.find_key(FxBuildHasher.hash_one(kind), |entry| entry.kind == *kind);
            found.map(Type).filter(|&ty| self.hold(ty).is_some())
        };
        fixed.or_else(of_views)
    }

    /// The type of a kind that running code may construct: a nominal type, a tuple, a union in any form, an
    /// integer or a symbol. Others are [`TypeError::Foreign`].
    pub fn of_kind(&self, kind: TypeKind) -> Result<Type, TypeError> {
        match kind {
            TypeKind::Nominal { decl, params } => self.nominal(decl, &params),
            TypeKind::Tuple { elems, vararg: None } => self.tuple(&elems),
            TypeKind::Union(members) => self.union(&members),
            TypeKind::Int(value) => Ok(self.int(value)),
            TypeKind::Sym(name) => Ok(self.sym(name)),
            _ => Err(TypeError::Foreign),
        }
    }

    pub(super) fn intern(&self, kind: TypeKind) -> Result<Type, TypeError> {
        let all_bounds: Vec<Type>;
        let parts: &[Type] = match &kind {
            &TypeKind::Nominal { decl, .. } | &TypeKind::Generic(decl) if self.decl_entry(decl).is_none() => {
                return Err(TypeError::Foreign);
            }
            TypeKind::Nominal { params, .. } => params,
            TypeKind::Tuple { elems, .. } => elems,
            TypeKind::Union(members) => members,
            TypeKind::Values(elems) => elems,
            TypeKind::UnionAll { bounds, .. } => {
                all_bounds = bounds.iter().flat_map(|&(lower, upper)| [lower, upper]).collect();
                &all_bounds
            }
            _ => &[],
        };
        if parts.len() > MAX_WIDTH {
            return Err(TypeError::TooWide { count: parts.len() });
        }
        let single = match &kind {
            TypeKind::Tuple { vararg, .. } => *vararg,
            TypeKind::NamedTuple { tuple, .. } => Some(*tuple),
            TypeKind::TypeOf(of) => Some(*of),
            TypeKind::NTuple { elem, .. } => Some(*elem),
            TypeKind::UnionAll { body, .. } => Some(*body),
            _ => None,
        };
        let mut extent = Extent::LEAF;
        for part in parts.iter().copied().chain(single) {
            if part.as_low().is_some() || part == Type::TOKEN {
                return Err(TypeError::MixedLevels { inner: part });
            }
            let inner = self.entry(part).ok_or(TypeError::Foreign)?.extent;
            extent.depth = extent.depth.max(inner.depth + 1);
            extent.weight = extent.weight.saturating_add(inner.weight);
        }
        if extent.depth > MAX_DEPTH {
            return Err(TypeError::TooDeep);
        }
        if extent.weight > MAX_WEIGHT {
            return Err(TypeError::TooHeavy);
        }
        Ok(self.intern_at(kind, extent))
    }

    /// Interns a kind that has no parts or whose parts are known to be shallow.
    pub(super) fn intern_raw(&self, kind: TypeKind) -> Type {
        self.intern_at(kind, Extent::LEAF)
    }

    pub(super) fn intern_fixed(&self, kind: TypeKind) {
        self.intern_at(kind, Extent::LEAF);
    }

    fn intern_at(&self, kind: TypeKind, extent: Extent) -> Type {
        if let Some(&ty) = self.fixed.index.types.get(&kind) {
            return ty;
        }
        let make = || {
            let parts = self.parts_of(&kind);
            let has_later = parts.iter().any(Part::has_later);
            Arc::new(Entry { kind: kind.clone(), extent, parts, has_later })
        };
        Type(self.entries.intern(FxBuildHasher.hash_one(&kind), |entry| entry.kind == kind, make))
    }

    pub(super) fn install_name(&self, decl: Decl, name: &str, module: &str, params: &[&str]) {
        let data = DeclData {
            name: self.names.intern(name),
            module: self.names.intern(module),
            params: params.iter().map(|p| self.names.intern(p)).collect(),
        };
        let mut index = self.declared.index.write().unwrap_or_else(PoisonError::into_inner);
        index.insert(data.name, decl);
        self.declared.decls.push(decl.0, self.decl_entry_of(data));
    }

    pub(super) fn install_body(&self, decl: Decl, supertype: Type, kind: DeclKind) {
        if let Some(entry) = self.decl_entry(decl) {
            entry.body.get_or_init(|| (DeclBody { supertype, kind }, Box::default()));
        }
    }

    // // ----- questions that need only the declaration -----

    /// Whether values can have exactly this type.
    pub fn is_concrete(&self, ty: Type) -> bool {
        let is_param = |&ty: &Type| matches!(self.kind(ty), TypeKind::Param(_));
        match self.kind(ty) {
            TypeKind::Nominal { decl, params } => {
                let kind = self.body(*decl).map(|b| &b.kind);
                !matches!(kind, None | Some(DeclKind::Abstract)) && !params.iter().any(is_param)
            }
            TypeKind::Tuple { elems, vararg } => {
                // Long tuples have runs of one type. A type in a tuple counts as its object's type.
                let mut runs = elems.chunk_by(|a, b| a == b);
                let is_exact =
                    |elem| self.is_concrete(elem) && !matches!(self.kind(elem), TypeKind::TypeOf(_));
                vararg.is_none() && runs.all(|run| is_exact(run[0]))
            }
            // Like a struct with these parameters: its fields may have any type.
            TypeKind::NamedTuple { tuple, .. } => {
                !self.tuple_elements(*tuple).is_some_and(|e| e.iter().any(is_param))
            }
            TypeKind::Function(_) | TypeKind::TypeOf(_) | TypeKind::Low(_) => true,
            _ => false,
        }
    }

    /// Whether values of the type have an identity: mutable structs, arrays, strings, symbols.
    pub fn is_mutable(&self, ty: Type) -> bool {
        match self.nominal_kind(ty) {
            Some(DeclKind::Struct { mutable, .. }) => *mutable,
            Some(DeclKind::Opaque) => self.memory_ref_element(ty).is_none(),
            _ => false,
        }
    }

    /// Whether the type has exactly one value, which needs no storage.
    pub fn is_singleton(&self, ty: Type) -> bool {
        match self.kind(ty) {
            TypeKind::Function(_) | TypeKind::TypeOf(_) => true,
            TypeKind::Tuple { elems, vararg: None } => elems.is_empty(),
            TypeKind::NamedTuple { names, .. } => names.is_empty(),
            TypeKind::Nominal { .. } => {
                matches!(self.nominal_kind(ty), Some(DeclKind::Struct { mutable: false, fields }) if fields.is_empty())
            }
            _ => false,
        }
    }

    /// The low type of a primitive type's register form; `None` for types that are not primitive or whose
    /// width matches no register (24 bits, say).
    pub fn primitive_low(&self, ty: Type) -> Option<LowType> {
        if self.pointee(ty).is_some() {
            return Some(LowType::Ptr(super::PtrClass::Raw));
        }
        match self.primitive(ty)? {
            (16, PrimitiveRepr::Float) => Some(LowType::F16),
            (32, PrimitiveRepr::Float) => Some(LowType::F32),
            (64, PrimitiveRepr::Float) => Some(LowType::F64),
            (bits, _) => LowType::int(u32::from(bits)),
        }
    }
}

fn duplicate(names: &[Name]) -> Option<Name> {
    let mut seen = rustc_hash::FxHashSet::default();
    names.iter().copied().find(|&n| !seen.insert(n))
}
