//! Values of programs as bytes: everything that they refer to, with sharing and cycles.
//!
//! ```text
//!   Val ── encode ──► Graph: nodes, which name each other by number │ types ── decode ──► Val
//! ```
//!
//! On both sides the values are the interpreter's ([`Val`]); the run time makes objects of them, and values of objects
//! (`Scope::copy_in`, `Scope::copy_out`). A type is one of a fixed list, or a position in the list of types that comes with the
//! message, in the binary form of the IR, which names and declares them.
//!
//! **Order.** A node without an identity comes after the nodes that it is made of; a cycle contains an object with an identity, which
//! is made blank at first and filled at the end.
//!
//! **Decoding** checks everything: numbers of nodes, types of parts, sizes. A graph of another process makes no value that a program
//! could not make. Cost: linear in the nodes; elements that are plain bits are one node for the whole `Memory`.

use std::collections::BTreeMap;
use std::sync::Arc;

use brolga_interp::{Interp, ObjId, Outcome, Val};
use brolga_ir::show::View;
use brolga_ir::types::{FieldRepr, Repr};
use brolga_ir::{Context, Module, Type, TypeKind, binary};
use serde::{Deserialize, Serialize};

use crate::blob::Blob;

/// Types that need no list.
const COMMON: [Type; 18] = [
    Type::NOTHING,
    Type::ANY,
    Type::BOOL,
    Type::CHAR,
    Type::STRING,
    Type::SYMBOL,
    Type::INT8,
    Type::INT16,
    Type::INT32,
    Type::INT64,
    Type::INT128,
    Type::UINT8,
    Type::UINT16,
    Type::UINT32,
    Type::UINT64,
    Type::UINT128,
    Type::FLOAT32,
    Type::FLOAT64,
];

/// Why values cannot be sent, or a graph is none.
#[derive(thiserror::Error, Debug)]
pub enum GraphError {
    /// It contradicts itself or the program.
    #[error("{0}")]
    Malformed(&'static str),
    /// The interpreter refuses to make or read a value: its memory is full, or a part has another type.
    #[error("{0}")]
    Refused(String),
    /// A value that exists in its process only.
    #[error("{0} cannot be sent to another process")]
    NotSent(&'static str),
}

impl From<Outcome> for GraphError {
    fn from(outcome: Outcome) -> GraphError {
        GraphError::Refused(match outcome {
            Outcome::Error(error) => error.to_string(),
            Outcome::Thrown(_) => "a value is too large, or of another type than its place".to_owned(),
            other => format!("{other:?}"),
        })
    }
}

/// A type in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum WireType {
    /// A position among the types that need no list.
    Common(u8),
    /// A position in the list of the message.
    Listed(u32),
}

/// The types of a message: empty, or a module of the binary form with a list.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct TypeList(Blob);

/// Collects the types of a message.
pub(crate) struct Types<'a> {
    cx: &'a Arc<Context>,
    listed: Vec<Type>,
    known: BTreeMap<Type, u32>,
}

impl<'a> Types<'a> {
    /// No types yet, of a context.
    pub(crate) fn new(cx: &'a Arc<Context>) -> Types<'a> {
        Types { cx, listed: Vec::new(), known: BTreeMap::new() }
    }

    /// The form of a type.
    pub(crate) fn put(&mut self, ty: Type) -> WireType {
        if let Some(at) = COMMON.iter().position(|common| *common == ty) {
            return WireType::Common(at as u8);
        }
        let at = *self.known.entry(ty).or_insert_with(|| {
            self.listed.push(ty);
            (self.listed.len() - 1) as u32
        });
        WireType::Listed(at)
    }

    /// The list.
    pub(crate) fn list(self) -> TypeList {
        match self.listed.is_empty() {
            true => TypeList::default(),
            false => {
                let empty = Module::new(self.cx.clone());
                TypeList(Blob(binary::write_with_types(&empty, &self.listed)))
            }
        }
    }
}

impl TypeList {
    /// The types, in a context.
    pub fn read(&self, cx: &Arc<Context>) -> Result<Vec<Type>, GraphError> {
        let TypeList(Blob(bytes)) = self;
        match bytes.is_empty() {
            true => Ok(Vec::new()),
            false => match binary::read_with_types(bytes, cx.clone()) {
                Ok((_, types)) => Ok(types),
                Err(error) => Err(GraphError::Refused(error.to_string())),
            },
        }
    }
}

impl WireType {
    /// The type, with the types of the message.
    pub fn get(self, listed: &[Type]) -> Result<Type, GraphError> {
        let found = match self {
            WireType::Common(at) => COMMON.get(usize::from(at)),
            WireType::Listed(at) => listed.get(at as usize),
        };
        found.copied().ok_or(GraphError::Malformed("a type is not in the list"))
    }
}

/// A value and everything that it refers to.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Graph {
    types: TypeList,
    nodes: Vec<Node>,
    /// The values, as numbers of nodes.
    values: Vec<u32>,
}

/// A value whose parts are other nodes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Node {
    Bits(WireType, u128),
    Singleton(WireType),
    Symbol(String),
    Type(WireType),
    Module(String),
    String(Blob),
    /// An immutable value.
    Struct(WireType, Vec<Option<u32>>),
    /// A `MemoryRef`: the `Memory`, and the number of elements before the place.
    Reference(u32, i64),
    /// A mutable struct.
    Object(WireType, Vec<Option<u32>>),
    /// The type of the elements, their number, and the elements.
    Memory(WireType, u64, Elements),
    /// The `Memory`, the number of its elements before the first, the extents.
    Array(u32, i64, Vec<i64>),
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Elements {
    /// The bytes of all elements, each of this size.
    Bits(u8, Blob),
    Nodes(Vec<Option<u32>>),
}

impl Graph {
    /// The values, of an interpreter.
    ///
    /// # Errors
    /// A value exists only in its process, or cannot be read.
    pub fn encode(interp: &mut Interp<'_>, values: &[Val]) -> Result<Graph, GraphError> {
        let cx = interp.module().cx.clone();
        let mut encoder = Encoder {
            interp,
            types: Types::new(&cx),
            nodes: Vec::new(),
            objects: BTreeMap::new(),
            structs: BTreeMap::new(),
            kept: Vec::new(),
            open: Vec::new(),
        };
        let mut numbers = Vec::with_capacity(values.len());
        for value in values {
            numbers.push(encoder.put(value.clone())?);
        }
        while let Some((number, value)) = encoder.open.pop() {
            encoder.fill(number, &value)?;
        }
        let nodes = encoder.nodes;
        Ok(Graph { types: encoder.types.list(), nodes, values: numbers })
    }

    /// The values, made in an interpreter with names and types of its module.
    ///
    /// # Errors
    /// The graph is not one that [`Graph::encode`] has made for such a module, or the interpreter has no room.
    pub fn decode(&self, interp: &mut Interp<'_>) -> Result<Vec<Val>, GraphError> {
        let cx = interp.module().cx.clone();
        let listed = self.types.read(&cx)?;
        let mut decoder = Decoder { cx: &cx, interp, listed: &listed, made: vec![None; self.nodes.len()] };
        for (at, node) in self.nodes.iter().enumerate() {
            decoder.made[at] = decoder.blank(node)?;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            if let Node::Array(memory, offset, dims) = node {
                decoder.made[at] = Some(decoder.array(*memory, *offset, dims)?);
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            if decoder.made[at].is_none() {
                decoder.made[at] = Some(decoder.assemble(node)?);
            }
        }
        for (at, node) in self.nodes.iter().enumerate() {
            decoder.fill(at, node)?;
        }
        self.values.iter().map(|&number| decoder.part(number)).collect()
    }
}

// ----- values to nodes -----

enum Task {
    Put(Option<Val>),
    /// After the fields.
    Struct(Val, usize),
    /// After the `Memory`.
    Reference(i64),
}

struct Encoder<'a, 'm, 'c> {
    interp: &'a mut Interp<'m>,
    types: Types<'c>,
    nodes: Vec<Node>,
    objects: BTreeMap<ObjId, u32>,
    /// By the address of the fields, which `kept` keeps.
    structs: BTreeMap<usize, u32>,
    kept: Vec<Val>,
    /// Nodes whose parts follow.
    open: Vec<(u32, Val)>,
}

impl Encoder<'_, '_, '_> {
    fn add(&mut self, node: Node) -> Result<u32, GraphError> {
        let number = u32::try_from(self.nodes.len());
        self.nodes.push(node);
        number.map_err(|_| GraphError::NotSent("a value of 2³² parts"))
    }

    fn put(&mut self, value: Val) -> Result<u32, GraphError> {
        let (mut work, mut done) = (vec![Task::Put(Some(value))], Vec::<Option<u32>>::new());
        while let Some(task) = work.pop() {
            match task {
                Task::Put(None) => done.push(None),
                Task::Put(Some(Val::Struct(data))) => {
                    match self.structs.get(&data.fields().as_ptr().addr()) {
                        Some(&known) => done.push(Some(known)),
                        None => {
                            let fields = data.fields();
                            let parts = fields.iter().rev().cloned().map(Task::Put).collect::<Vec<_>>();
                            work.push(Task::Struct(Val::Struct(data.clone()), fields.len()));
                            work.extend(parts);
                        }
                    }
                }
                Task::Put(Some(value @ Val::MemoryRef { offset, .. })) => {
                    let View::MemoryRef { memory: Some(memory), .. } = self.interp.view(&value)? else {
                        return Err(GraphError::NotSent("a reference to no memory"));
                    };
                    work.push(Task::Reference(offset));
                    work.push(Task::Put(Some(memory)));
                }
                Task::Put(Some(value)) => done.push(Some(self.simple(value)?)),
                Task::Struct(value, count) => {
                    let fields = done.split_off(done.len().saturating_sub(count));
                    let Val::Struct(data) = &value else { continue };
                    let ty = self.types.put(data.ty());
                    let key = data.fields().as_ptr().addr();
                    let number = self.add(Node::Struct(ty, fields))?;
                    self.structs.insert(key, number);
                    self.kept.push(value);
                    done.push(Some(number));
                }
                Task::Reference(offset) => {
                    let memory = done.pop().flatten();
                    let memory = memory.ok_or(GraphError::NotSent("a reference to no memory"))?;
                    done.push(Some(self.add(Node::Reference(memory, offset))?));
                }
            }
        }
        done.pop().flatten().ok_or(GraphError::NotSent("an undefined value"))
    }

    /// A value that is not made of others, or is filled later.
    fn simple(&mut self, value: Val) -> Result<u32, GraphError> {
        let node = match value {
            Val::Bits { ty, bits } => Node::Bits(self.types.put(ty), bits),
            Val::Singleton(ty) => Node::Singleton(self.types.put(ty)),
            Val::Symbol(name) => Node::Symbol(self.text(name)),
            Val::Type(ty) => Node::Type(self.types.put(ty)),
            Val::Module(name) => Node::Module(self.text(name)),
            Val::Token(_) => return Err(GraphError::NotSent("a token")),
            Val::Struct(_) | Val::MemoryRef { .. } => return Err(GraphError::NotSent("a part")),
            Val::Object { ty, id } => return self.object(ty, id, value),
        };
        self.add(node)
    }

    fn text(&self, name: brolga_ir::Name) -> String {
        self.interp.module().cx.names.text(name).to_owned()
    }

    fn object(&mut self, ty: Type, id: ObjId, value: Val) -> Result<u32, GraphError> {
        if let Some(&known) = self.objects.get(&id) {
            return Ok(known);
        }
        if let Some(bytes) = self.interp.string_bytes(&value)? {
            let number = self.add(Node::String(Blob(bytes)))?;
            self.objects.insert(id, number);
            return Ok(number);
        }
        if let Some((memory, offset, dims)) = self.interp.array_parts(&value) {
            let memory = self.simple(memory)?;
            let number = self.add(Node::Array(memory, offset, dims))?;
            self.objects.insert(id, number);
            return Ok(number);
        }
        let node = match (self.interp.memory_length(&value), self.interp.module().cx.types.memory_element(ty))
        {
            (Some(length), Some(elem)) => {
                Node::Memory(self.types.put(elem), length, Elements::Nodes(Vec::new()))
            }
            _ => Node::Object(self.types.put(ty), Vec::new()),
        };
        let number = self.add(node)?;
        self.objects.insert(id, number);
        self.open.push((number, value));
        Ok(number)
    }

    fn fill(&mut self, number: u32, value: &Val) -> Result<(), GraphError> {
        let parts = match self.interp.view(value)? {
            View::Fields(parts) => parts,
            View::Elements { elements, .. } => elements,
            _ => return Ok(()),
        };
        let types = &self.interp.module().cx.types;
        let size = match value {
            Val::Object { ty, .. } => types.memory_element(*ty).and_then(|elem| bits_size(types, elem)),
            _ => None,
        };
        if let Some(size) = size {
            let mut bytes = Vec::with_capacity(parts.len() * usize::from(size));
            for part in &parts {
                let bits = part.as_ref().and_then(Val::as_bits).unwrap_or(0);
                bytes.extend_from_slice(&bits.to_le_bytes()[..usize::from(size)]);
            }
            if let Some(Node::Memory(_, length, elements)) = self.nodes.get_mut(number as usize)
                && *length == parts.len() as u64
            {
                *elements = Elements::Bits(size, Blob(bytes));
                return Ok(());
            }
        }
        let mut numbers = Vec::with_capacity(parts.len());
        for part in parts {
            numbers.push(part.map(|part| self.put(part)).transpose()?);
        }
        match self.nodes.get_mut(number as usize) {
            Some(Node::Object(_, fields)) => *fields = numbers,
            // Elements of size zero exist by their number.
            Some(Node::Memory(_, length, Elements::Nodes(elements))) if numbers.len() as u64 == *length => {
                *elements = numbers;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The bytes of a primitive element, if all elements are the bits of one.
fn bits_size(types: &brolga_ir::Types, elem: Type) -> Option<u8> {
    let size = types.layout(elem).ok()?.size;
    let is_bits = types.primitive(elem).is_some() && types.field_repr(elem) == FieldRepr::Inline;
    u8::try_from(size).ok().filter(|&size| is_bits && (1..=16).contains(&size))
}

// ----- nodes to values -----

struct Decoder<'a, 'm> {
    cx: &'a Arc<Context>,
    interp: &'a mut Interp<'m>,
    listed: &'a [Type],
    made: Vec<Option<Val>>,
}

const MALFORMED_PART: GraphError = GraphError::Malformed("a part has no number, or one that comes later");

impl Decoder<'_, '_> {
    fn part(&self, number: u32) -> Result<Val, GraphError> {
        self.made.get(number as usize).cloned().flatten().ok_or(MALFORMED_PART)
    }

    /// A value that is not made of others, or an object that is filled later.
    fn blank(&mut self, node: &Node) -> Result<Option<Val>, GraphError> {
        let types = &self.cx.types;
        Ok(Some(match node {
            Node::Bits(ty, bits) => {
                let ty = ty.get(self.listed)?;
                let Some(size) = types.primitive(ty).map(|(bits, _)| usize::from(bits).div_ceil(8)) else {
                    return Err(GraphError::Malformed("bits are of a type that has none"));
                };
                let value = Val::bits(types, ty, *bits);
                if value.as_bits() != Some(*bits) || !types.holds(ty, &bits.to_le_bytes()[..size.min(16)]) {
                    return Err(GraphError::Malformed("bits are not a value of their type"));
                }
                value
            }
            Node::Singleton(ty) => {
                let ty = ty.get(self.listed)?;
                // A token and a type as a value have other nodes.
                let is_one = types.repr(ty) == Repr::Ghost && types.field_count(ty).unwrap_or(0) == 0;
                if !is_one || matches!(types.kind(ty), TypeKind::TypeOf(_)) {
                    return Err(GraphError::Malformed("the only value of a type that has others"));
                }
                Val::Singleton(ty)
            }
            Node::Symbol(text) => Val::Symbol(self.cx.names.intern(text)),
            Node::Type(ty) => Val::Type(ty.get(self.listed)?),
            Node::Module(text) => Val::Module(self.cx.names.intern(text)),
            Node::String(Blob(bytes)) => self.interp.string(bytes)?,
            Node::Object(ty, fields) => {
                let ty = ty.get(self.listed)?;
                if types.fields(ty).map(<[_]>::len) != Some(fields.len()) || !types.is_mutable(ty) {
                    return Err(GraphError::Malformed("an object has other fields than its type"));
                }
                self.interp.blank_struct(ty)?
            }
            Node::Memory(elem, length, elements) => {
                let elem = elem.get(self.listed)?;
                let given = match elements {
                    Elements::Bits(size, Blob(bytes)) => {
                        if bits_size(types, elem) != Some(*size) || bytes.len() % usize::from(*size) != 0 {
                            return Err(GraphError::Malformed("elements have another size than their type"));
                        }
                        (bytes.len() / usize::from(*size)) as u64
                    }
                    Elements::Nodes(nodes) => nodes.len() as u64,
                };
                let is_empty = types.layout(elem).is_ok_and(|layout| layout.size == 0);
                if given != *length && !(is_empty && given == 0) {
                    return Err(GraphError::Malformed(
                        "a memory has another number of elements than it says",
                    ));
                }
                self.interp.blank_memory(elem, *length)?
            }
            Node::Struct(..) | Node::Reference(..) | Node::Array(..) => return Ok(None),
        }))
    }

    /// The `Memory` that a node names, and the number of its elements.
    fn memory(&self, number: u32) -> Result<(Val, i64), GraphError> {
        let memory = self.part(number)?;
        let length = self.interp.memory_length(&memory).and_then(|length| i64::try_from(length).ok());
        let length = length.ok_or(GraphError::Malformed("a part is not a memory"))?;
        Ok((memory, length))
    }

    fn array(&mut self, memory: u32, offset: i64, dims: &[i64]) -> Result<Val, GraphError> {
        let (memory, length) = self.memory(memory)?;
        let count = dims.iter().try_fold(1i64, |all, &dim| if dim < 0 { None } else { all.checked_mul(dim) });
        let end = count.and_then(|count| offset.checked_add(count));
        if offset < 0 || dims.is_empty() || end.is_none_or(|end| end > length) {
            return Err(GraphError::Malformed("an array is not within its memory"));
        }
        Ok(self.interp.array_over(&memory, offset, dims)?)
    }

    /// A value without an identity, whose parts are made.
    fn assemble(&mut self, node: &Node) -> Result<Val, GraphError> {
        match node {
            Node::Struct(ty, fields) => {
                let (types, ty) = (&self.cx.types, ty.get(self.listed)?);
                let is_struct = types.is_concrete(ty) && !types.is_mutable(ty) && !fields.is_empty();
                if !is_struct || types.field_count(ty) != Some(fields.len()) {
                    return Err(GraphError::Malformed("a struct has other fields than its type"));
                }
                let mut parts = Vec::with_capacity(fields.len());
                for (at, field) in fields.iter().enumerate() {
                    let wanted = types.field_type(ty, at).ok_or(MALFORMED_PART)?;
                    let part = field.map(|number| self.part(number)).transpose()?;
                    let fits = match &part {
                        Some(part) => types.is_subtype(part.ty(types), wanted),
                        // Only a reference may be undefined.
                        None => types.field_repr(wanted) == FieldRepr::Pointer,
                    };
                    if !fits {
                        return Err(GraphError::Malformed("a field has another type than its struct says"));
                    }
                    parts.push(part);
                }
                Ok(Val::aggregate(ty, parts))
            }
            Node::Reference(memory, offset) => {
                let (memory, length) = self.memory(*memory)?;
                if *offset < 0 || *offset > length {
                    return Err(GraphError::Malformed("a reference is not within its memory"));
                }
                Ok(self.interp.memory_ref_to(&memory, *offset)?)
            }
            _ => Err(MALFORMED_PART),
        }
    }

    fn fill(&mut self, at: usize, node: &Node) -> Result<(), GraphError> {
        let parts = match node {
            Node::Object(_, parts) | Node::Memory(_, _, Elements::Nodes(parts)) => parts,
            Node::Memory(elem, _, Elements::Bits(size, Blob(bytes))) => {
                let (elem, object) = (elem.get(self.listed)?, self.part(at as u32)?);
                for (index, chunk) in bytes.chunks_exact(usize::from(*size)).enumerate() {
                    if !self.cx.types.holds(elem, chunk) {
                        return Err(GraphError::Malformed("bits are not a value of their type"));
                    }
                    let mut bits = [0; 16];
                    bits[..chunk.len()].copy_from_slice(chunk);
                    let value = Val::bits(&self.cx.types, elem, u128::from_le_bytes(bits));
                    self.interp.set_part(&object, index, value)?;
                }
                return Ok(());
            }
            _ => return Ok(()),
        };
        let object = self.part(at as u32)?;
        for (index, part) in parts.iter().enumerate() {
            if let Some(number) = part {
                let part = self.part(*number)?;
                self.interp.set_part(&object, index, part)?;
            }
        }
        Ok(())
    }
}
