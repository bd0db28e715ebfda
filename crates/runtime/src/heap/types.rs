//! The run-time types of one heap, made when they are first asked for.
//!
//! Types whose ids are the same in every context are the same here, whichever context asks; others belong to their context,
//! which is kept alive so that its address names it.
//!
//! Small integers are boxed once: `Int64` from -512 to 511. Their boxes are permanent objects.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brolga_ir::Context;
use brolga_ir::types::{Layout, LayoutError, Type};

use super::desc::{Maker, ObjectKind, TypeRef};
use super::object::{Object, TAG_BITS, TAG_PERMANENT};

/// The smallest integer that has a permanent box.
const SMALLEST: i64 = -512;
/// How many have one.
const SMALL_INTS: usize = 1024;

/// A permanent box of an `Int64`.
#[derive(Debug)]
#[repr(C)]
struct SmallInt {
    tag: u64,
    value: i64,
}

/// All run-time types of one heap.
#[derive(Debug)]
pub(crate) struct RuntimeTypes {
    maker: Maker,
    string: TypeRef,
    symbol: TypeRef,
    weak: TypeRef,
    datatype: TypeRef,
    int64: TypeRef,
    by_type: Mutex<ByType>,
    small_ints: Box<[SmallInt]>,
}

#[derive(Default, Debug)]
struct ByType {
    types: BTreeMap<(usize, Type), TypeRef>,
    contexts: BTreeMap<usize, Arc<Context>>,
}

impl RuntimeTypes {
    pub(crate) fn new() -> RuntimeTypes {
        let maker = Maker { owner: Arc::new(()) };
        let fixed = |ty, name, kind| maker.fixed(ty, name, kind);
        let datatype = TypeRef::new(fixed(Type::DATATYPE, "DataType", ObjectKind::DataType), None);
        let make = |desc| TypeRef::new(desc, Some(datatype.tag()));
        let word = Layout { size: 8, align: 8, fields: Box::new([]), pointers: Box::new([]) };
        let int64 = make(fixed(Type::INT64, "Int64", ObjectKind::Struct(word)));
        let tag = int64.tag() | TAG_PERMANENT;
        let small_ints = (SMALLEST..).take(SMALL_INTS).map(|value| SmallInt { tag, value }).collect();
        RuntimeTypes {
            string: make(fixed(Type::STRING, "String", ObjectKind::String)),
            symbol: make(fixed(Type::SYMBOL, "Symbol", ObjectKind::Symbol)),
            weak: make(maker.weak()),
            int64,
            datatype,
            by_type: Mutex::default(),
            small_ints,
            maker,
        }
    }

    pub(crate) fn owner(&self) -> &Arc<()> {
        &self.maker.owner
    }

    pub(crate) fn string(&self) -> &TypeRef {
        &self.string
    }

    pub(crate) fn symbol(&self) -> &TypeRef {
        &self.symbol
    }

    pub(crate) fn weak(&self) -> &TypeRef {
        &self.weak
    }

    pub(crate) fn int64(&self) -> &TypeRef {
        &self.int64
    }

    /// The run-time form of a concrete type.
    pub(crate) fn describe(&self, cx: &Arc<Context>, ty: Type) -> Result<TypeRef, LayoutError> {
        match ty {
            Type::STRING => return Ok(self.string.clone()),
            Type::SYMBOL => return Ok(self.symbol.clone()),
            Type::DATATYPE => return Ok(self.datatype.clone()),
            Type::INT64 => return Ok(self.int64.clone()),
            _ => {}
        }
        let fixed = ty.index() <= Type::TOKEN.index();
        let context = if fixed { 0 } else { Arc::as_ptr(cx).addr() };
        if let Some(found) = self.lock().types.get(&(context, ty)) {
            return Ok(found.clone());
        }
        // Not under the lock: an array asks for its `Memory`. Of two threads that describe a type, one is second.
        let made = self.maker.describe(&cx.types, ty, |memory| self.describe(cx, memory))?;
        let mut known = self.lock();
        if !fixed {
            known.contexts.entry(context).or_insert_with(|| cx.clone());
        }
        let made = || TypeRef::new(made, Some(self.datatype.tag()));
        Ok(known.types.entry((context, ty)).or_insert_with(made).clone())
    }

    fn lock(&self) -> MutexGuard<'_, ByType> {
        // A panic under this lock cannot leave the maps half changed.
        self.by_type.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The permanent box of a small integer.
    pub(crate) fn small_int(&self, value: i64) -> Option<Object> {
        let index = usize::try_from(value.checked_sub(SMALLEST)?).ok()?;
        let boxed = NonNull::from(&self.small_ints.get(index)?.value);
        // SAFETY: a permanent object: a tag word in front of an integer, which live as long as the heap.
        Some(unsafe {
            Object::from_pointer(NonNull::from(&*self.small_ints).cast::<u8>().with_addr(boxed.addr()))
        })
    }

    /// An object that is always there.
    pub(crate) fn nothing(&self) -> Object {
        // SAFETY: a type is a permanent object, which lives as long as the heap.
        unsafe { Object::from_pointer(NonNull::from(&*self.datatype).cast()) }
    }

    /// Whether a tag is that of one of these types. Looks at all of them.
    pub(crate) fn has_tag(&self, tag: u64) -> bool {
        let fixed = [&self.string, &self.symbol, &self.weak, &self.datatype, &self.int64];
        let known = self.lock();
        fixed.into_iter().chain(known.types.values()).any(|desc| desc.tag() == tag & !TAG_BITS)
    }
}
