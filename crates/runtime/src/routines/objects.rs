//! Object routines called by compiled code.
//!
//! | routine | safepoint | result |
//! |---|---|---|
//! | `brolga_throw(thread, exception)` | no | throws an object |
//! | `brolga_current_exception(thread)` | yes | the exception being handled, as an object |
//! | `brolga_throw_type_assert(thread, asks, expected, got)` | yes | `TypeError` in the name of `asks` |
//! | `brolga_throw_bounds_of(thread, of, index)` | yes | `BoundsError(of, index)` |
//! | `brolga_throw_bounds_in(thread, of, index)` | yes | `BoundsError(of, (index,))` |
//! | `brolga_throw_error`, `brolga_throw_argument(thread, string)` | yes | `ErrorException`, `ArgumentError` |
//! | `brolga_isa(thread, object, type)` | no | 1 if the object has the type |
//! | `brolga_subtype(thread, type, type)` | no | 1 if the first is a subtype of the second |
//! | `brolga_egal(thread, object, object)` | no | 1 if they are `===`; null equals only null |
//! | `brolga_object_id(thread, object)` | no | its hash (`objectid`) |
//! | `brolga_print_any(thread, object)` | no | writes to the output as Julia's `print` does |
//! | `brolga_get_field(thread, object, field)` | yes | `getfield` by a name or number; null when an exception is pending |
//! | `brolga_tuple_length(thread, tuple)` | no | the number of its elements |
//! | `brolga_tuple_element(thread, tuple, number)` | yes | the element; null when an exception is pending |
//! | `brolga_apply(thread, args, n)` | yes | calls the first object with the others |
//! | `brolga_apply_latest(thread, args, n)` | yes | the same in the newest world |
//! | `brolga_apply_builtin(thread, args, n)` | yes | calls the builtin whose function is the first object |
//! | `brolga_apply_iterate(thread, args, n)` | yes | calls the second object with the elements of the following objects |
//! | `brolga_tuple(thread, args, n)` | yes | a tuple of the objects |
//! | `brolga_julia_call(thread, args, n)` | yes | calls the function of Julia's run time that the first object, a symbol, names |
//! | `brolga_array_grow_end(thread, vector, count)`, `brolga_array_del_end`, `brolga_array_del_beg` | yes | appends or removes elements; returns the vector |
//! | `brolga_refuel(thread)` | yes | `nothing`; null if the call has used up its fuel, and ends |
//! | `brolga_carried_exception(thread)` | yes | `nothing`; null if an exception is pending for the C function that has returned |
//! | `brolga_static_parameter(thread, args, n)` | yes | variable number `args[1]` of the `where` type `args[0]`, for the arguments `args[2..]` |
//! | `brolga_static_defined(thread, args, n)` | yes | whether it has a value |
//!
//! Those that return an object return null when an exception is pending.
//!
//! **Contract with compiled code.** As in `heap.rs`. Objects are not null. A routine roots its own arguments
//! if it needs them across a safepoint.

use std::ptr::NonNull;
use std::sync::Arc;

use brolga_ir::builtin::Builtin;
use brolga_ir::types::FieldRepr;

use crate::heap::{
    Object, ObjectKind, OutOfMemory, Root, Scope, TypeDesc, desc_of_tag, drop_first_in_place, grow_in_place,
    grow_plain, shrink_in_place, with_scope,
};
use crate::instance::Runtime;
use crate::pending::{Detail, ExceptionKind};
use crate::records::{StringRef, SymbolRef};
use crate::thread::Thread;

use super::heap::with_heap;

use crate::objects::call::{Ops, call_code};
use crate::objects::deferred::DeferredEntry;
use crate::objects::entry::CodeEntry;
use crate::objects::identity::object_id;
use crate::objects::methods::MethodEntry;
use crate::objects::place::copy;
use crate::objects::quick_builtins::{Quick, element_of, field_of, is_bool, position, quick_builtin};
use crate::objects::relations::{as_type, egal};
use crate::objects::show::print_object;
use crate::objects::throw::Raised;

/// An object passed by compiled code.
fn object(pointer: NonNull<u8>) -> Object {
    // SAFETY: compiled code passes live objects (module header). Callers here hold the result until their
    // first safepoint.
    unsafe { Object::from_pointer(pointer) }
}

/// A type passed by compiled code, by its address.
fn desc<'a>(address: u64) -> &'a TypeDesc {
    // SAFETY: compiled code passes addresses of types of the thread's heap, which outlives the call.
    unsafe { desc_of_tag(address) }
}

/// Objects passed by compiled code in an array.
fn objects<'a>(args: *const Object, count: i64) -> &'a [Object] {
    let count = usize::try_from(count).unwrap_or(0);
    if count == 0 {
        return &[];
    }
    // SAFETY: compiled code passes an array of `count` live objects, none of them null, which it keeps
    // unchanged for the whole call.
    unsafe { std::slice::from_raw_parts(args, count) }
}

/// Calls `body` in a scope on the thread's heap. Null: an exception is pending.
fn in_scope(
    thread: &Thread,
    body: impl for<'f, 'h> FnOnce(&mut Scope<'f, 'h>, &Runtime) -> Result<Root<'f, 'h>, Raised>,
) -> *mut u8 {
    let done = thread.runtime().and_then(|runtime| {
        // Code without objects runs outside the heap, but may still throw.
        let _entry = thread.enter_own_heap(&runtime);
        with_scope(runtime.heap(), thread.mutator(), |scope| {
            match body(scope, &runtime) {
                // Compiled code roots its result, and no safepoint precedes that.
                Ok(made) => made.get(scope).object.pointer().as_ptr(),
                Err(_) => {
                    thread.trace_raised();
                    std::ptr::null_mut()
                }
            }
        })
    });
    done.unwrap_or_else(|| {
        // Compiled code runs while a scope is in use on the same thread, whose references no root would keep
        // alive.
        thread.throw(ExceptionKind::ConcurrencyViolationError, Detail::None);
        std::ptr::null_mut()
    })
}

/// Calls `body` with objects passed by compiled code in an array. Null: an exception is pending.
fn with_args(
    thread: &Thread,
    args: &[Object],
    body: impl for<'a, 'f, 'h> FnOnce(&mut Ops<'a, 'f, 'h>, Vec<Root<'f, 'h>>) -> Result<Root<'f, 'h>, Raised>,
) -> *mut u8 {
    in_scope(thread, |scope, runtime| {
        let roots = args.iter().map(|&arg| scope.add_root(arg)).collect();
        body(&mut Ops { scope, thread, runtime }, roots)
    })
}

/// A value as an object. A safepoint.
fn boxed(thread: &Thread, quick: Quick) -> *mut u8 {
    if let Quick::Object(object) = quick {
        return object.pointer().as_ptr();
    }
    with_heap(thread, |heap| {
        let types = heap.types();
        let (desc, bits) = match quick {
            Quick::Object(object) => return Ok(object),
            Quick::Int64(value) => match types.small_int(value) {
                Some(small) => return Ok(small),
                None => (types.int64(), value.cast_unsigned()),
            },
            Quick::Float64(bits) => (types.float64(), bits),
            Quick::Bool(value) => return types.boxed_bool(value).ok_or(OutOfMemory { requested: 1 }),
        };
        let made = heap.allocate(thread.mutator(), desc, size_of::<u64>())?;
        made.set_word_at(0, bits);
        Ok(made)
    })
}

pub(crate) extern "C" fn brolga_get_field(thread: &Thread, of: NonNull<u8>, field: NonNull<u8>) -> *mut u8 {
    let (of, field) = (object(of), object(field));
    if let Some(quick) = field_of(of, field) {
        return boxed(thread, quick);
    }
    // Everything else, and every error.
    in_scope(thread, |scope, runtime| {
        let operands = [of, field].map(|operand| scope.add_root(operand));
        Ops { scope, thread, runtime }.field_builtin(Builtin::Getfield, &operands)
    })
}

pub(crate) extern "C" fn brolga_tuple_length(_thread: &Thread, of: NonNull<u8>) -> i64 {
    object(of).desc().field_table().rows().len() as i64
}

pub(crate) extern "C" fn brolga_tuple_element(thread: &Thread, of: NonNull<u8>, number: i64) -> *mut u8 {
    let index = number.checked_sub(1).and_then(|index| usize::try_from(index).ok());
    if let Some(index) = index {
        if let Some(quick) = element_of(object(of), index) {
            return boxed(thread, quick);
        }
        let made = thread
            .mutator()
            .with_words(&[object(of)], |words, count| boxed_part(thread, words, count as i64, (0, index)));
        if let Some(made) = made {
            return made;
        }
    }
    // Every error.
    in_scope(thread, |scope, runtime| {
        let of = scope.add_root(object(of));
        let number = scope.box_int(number)?;
        Ops { scope, thread, runtime }.field_builtin(Builtin::Getfield, &[of, number])
    })
}

pub(crate) extern "C" fn brolga_apply(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    apply(thread, args, count)
}

pub(crate) extern "C" fn brolga_apply_latest(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    let _world = thread.dispatch().latest();
    apply(thread, args, count)
}

/// The most elements of a call that is made without a scope.
const FEW_ELEMENTS: usize = 16;

/// Calls the second object with the elements of the following ones, if these are tuples of few common elements; `None` for all else.
fn apply_to_elements(thread: &Thread, args: *const Object, count: i64) -> Option<*mut u8> {
    let &[_, callee, ref containers @ ..] = objects(args, count) else { return None };
    let lengths = containers.iter().map(|container| {
        let table = container.desc().field_table();
        table.is_tuple().then_some(table.rows().len())
    });
    let lengths = lengths.collect::<Option<Vec<usize>>>()?;
    if lengths.iter().sum::<usize>() > FEW_ELEMENTS {
        return None;
    }
    // Boxing is a safepoint: what is boxed is rooted, and containers are read again, because compiled code's words follow what moves.
    let locals = &thread.mutator().locals;
    let before = locals.borrow().len();
    locals.borrow_mut().push(Some(callee));
    let pushed = push_elements(thread, args, count, &lengths);
    let all: Vec<Object> = locals.borrow_mut().drain(before..).flatten().collect();
    match pushed? {
        Ok(()) => Some(thread.mutator().with_words(&all, |words, count| apply(thread, words, count as i64))),
        Err(NoMemory) => Some(std::ptr::null_mut()),
    }
}

/// There was no memory for an object; the exception is pending.
struct NoMemory;

/// Roots the elements of the objects after the second one, which are tuples of these lengths. `None`: one is not a common value.
fn push_elements(
    thread: &Thread,
    args: *const Object,
    count: i64,
    lengths: &[usize],
) -> Option<Result<(), NoMemory>> {
    for (n, &length) in lengths.iter().enumerate() {
        for index in 0..length {
            let made = match element_of(*objects(args, count).get(n + 2)?, index) {
                Some(element) => boxed(thread, element),
                None => boxed_part(thread, args, count, (n + 2, index))?,
            };
            let Some(made) = NonNull::new(made) else { return Some(Err(NoMemory)) };
            thread.mutator().locals.borrow_mut().push(Some(object(made)));
        }
    }
    Some(Ok(()))
}

/// The result of `getfield` of a tuple, if the element is inline in it and immutable.
fn boxed_element(thread: &Thread, args: *const Object, count: i64) -> Option<*mut u8> {
    let (callee, of, field) = match *objects(args, count) {
        [callee, of, field] => (callee, of, field),
        [callee, of, field, flag] if is_bool(flag) => (callee, of, field),
        _ => return None,
    };
    let is_read = callee.desc().builtin() == Some(Builtin::Getfield) && of.desc().field_table().is_tuple();
    let index = is_read.then(|| position(field)).flatten()?;
    boxed_part(thread, args, count, (1, index))
}

/// An immutable value that is inline in a tuple as an object: field `index` of operand `n`. `None`: it is not one.
fn boxed_part(
    thread: &Thread,
    args: *const Object,
    count: i64,
    (n, index): (usize, usize),
) -> Option<*mut u8> {
    let tuple = || objects(args, count).get(n).copied();
    let runtime = thread.runtime()?;
    let of = tuple()?.desc();
    let row = of.field_table().rows().get(index).filter(|row| row.repr == FieldRepr::Inline)?;
    let desc = of.part(index, || runtime.heap().type_object(of.context(), row.ty).ok())?;
    let ObjectKind::Struct(layout) = desc.kind() else { return None };
    if let Some(instance) = runtime.heap().types().instance(desc) {
        return Some(instance.pointer().as_ptr());
    }
    let made = with_heap(thread, |heap| heap.allocate(thread.mutator(), desc, desc.size()));
    if let Some(made) = NonNull::new(made) {
        copy(layout, (object(made), 0), (tuple()?, row.offset));
    }
    Some(made)
}

fn apply(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    // The search reads only tags and types: no safepoint, so the objects stay.
    let find = |runtime: Arc<Runtime>| {
        thread.dispatch().find(runtime.heap(), thread.isa_cache(), objects(args, count))
    };
    let found = thread.runtime().map(find);
    if let Some(Ok(Some(method))) = &found {
        let entry = match method.entry() {
            MethodEntry::Code(entry) => Some(entry),
            MethodEntry::Deferred(deferred) => match first_call(thread, deferred) {
                Ok(entry) => Some(entry),
                Err(text) => {
                    thread.throw_refusal(&text);
                    return std::ptr::null_mut();
                }
            },
            MethodEntry::Host(_) => None,
        };
        if let Some(entry) = entry {
            let count = objects(args, count).len();
            // SAFETY: compiled code passes words of its frame, where a collection finds them.
            return unsafe { call_code(thread, entry, args, count) };
        }
    }
    let all = objects(args, count);
    if let (Some(Ok(None)), &[_, a, b]) = (found, all)
        && let Some((ty, bits)) = thread.dispatch().operator(all).and_then(|operator| {
            let usual = operator.value(a, b).map(|(ty, bits)| (ty, u128::from(bits)));
            usual.or_else(|| operator.of_numbers(a, b))
        })
    {
        return in_scope(thread, |scope, runtime| {
            let base = runtime.heap().types().base().clone();
            scope.box_bits(&base, ty, bits)
        });
    }
    with_args(thread, all, |ops, all| ops.apply_all(all))
}

/// The code of a deferred entry. The operands of the call are words of a frame, which a collection keeps
/// alive and may update.
fn first_call<'d>(thread: &Thread, deferred: &'d DeferredEntry) -> Result<&'d CodeEntry, String> {
    if let Some(made) = deferred.ready() {
        return Ok(made);
    }
    let stack = thread.stack_left();
    thread.blocking(|| deferred.make(stack)).unwrap_or_else(|error| Err(error.to_string()))
}

pub(crate) extern "C" fn brolga_apply_builtin(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    let all = objects(args, count);
    if let Some(quick) = quick_builtin(all) {
        return boxed(thread, quick);
    }
    let element = boxed_element(thread, args, count);
    element.unwrap_or_else(|| with_args(thread, all, |ops, all| ops.apply_builtin(all)))
}

pub(crate) extern "C" fn brolga_apply_iterate(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    if let Some(result) = apply_to_elements(thread, args, count) {
        return result;
    }
    with_args(thread, objects(args, count), |ops, all| {
        let Some((_, rest)) = all.split_first() else { return ops.scope.nothing() };
        let next = ops.flattened(rest)?;
        ops.apply_all(next)
    })
}

pub(crate) extern "C" fn brolga_tuple(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    with_args(thread, objects(args, count), |ops, all| ops.scope.tuple(&all))
}

pub(crate) extern "C" fn brolga_julia_call(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    with_args(thread, objects(args, count), |ops, all| {
        let name = all.first().and_then(|&name| ops.symbol_bytes(name)).unwrap_or_default();
        ops.julia_call(str::from_utf8(name).unwrap_or_default(), all.get(1..).unwrap_or_default())
    })
}

pub(crate) extern "C" fn brolga_array_grow_end(thread: &Thread, vector: NonNull<u8>, count: i64) -> *mut u8 {
    if grow_in_place(object(vector), count) {
        return vector.as_ptr();
    }
    let grow = |runtime: Arc<Runtime>| grow_plain(runtime.heap(), thread.mutator(), object(vector), count);
    if let Some(grown) = thread.runtime().and_then(grow) {
        return grown.pointer().as_ptr();
    }
    resize(thread, "jl_array_grow_end", vector, (i64::MAX, count), true)
}

pub(crate) extern "C" fn brolga_array_del_end(thread: &Thread, vector: NonNull<u8>, count: i64) -> *mut u8 {
    if shrink_in_place(object(vector), count) {
        return vector.as_ptr();
    }
    resize(thread, "jl_array_del_end", vector, (i64::MAX, count), false)
}

pub(crate) extern "C" fn brolga_array_del_beg(thread: &Thread, vector: NonNull<u8>, count: i64) -> *mut u8 {
    if drop_first_in_place(object(vector), count) {
        return vector.as_ptr();
    }
    resize(thread, "jl_array_del_beg", vector, (0, count), false)
}

/// Inserts or removes `count` elements at a position.
fn resize(thread: &Thread, op: &str, vector: NonNull<u8>, (at, count): (i64, i64), grow: bool) -> *mut u8 {
    in_scope(thread, |scope, runtime| {
        let vector = scope.add_root(object(vector));
        Ops { scope, thread, runtime }.change_length(op, vector, at, count, grow)?;
        Ok(vector)
    })
}

pub(crate) extern "C" fn brolga_static_parameter(
    thread: &Thread,
    args: *const Object,
    count: i64,
) -> *mut u8 {
    with_args(thread, objects(args, count), |ops, all| ops.static_parameter(&all))
}

pub(crate) extern "C" fn brolga_static_defined(thread: &Thread, args: *const Object, count: i64) -> *mut u8 {
    with_args(thread, objects(args, count), |ops, all| ops.static_defined(&all))
}

pub(crate) extern "C" fn brolga_carried_exception(thread: &Thread) -> *mut u8 {
    if thread.stop_carrying() {
        return std::ptr::null_mut();
    }
    in_scope(thread, |scope, _| scope.nothing())
}

pub(crate) extern "C" fn brolga_refuel(thread: &Thread) -> *mut u8 {
    if !thread.refuel() {
        return std::ptr::null_mut();
    }
    in_scope(thread, |scope, _| scope.nothing())
}

/// Throws an exception whose only field is a string.
fn throw_message(thread: &Thread, kind: ExceptionKind, message: NonNull<u8>) {
    let message = object(message);
    if let Some(constant) = StringRef::of(message) {
        // A constant needs no object until it is requested.
        thread.throw(kind, Detail::Message(constant));
        return;
    }
    in_scope(thread, |scope, _| {
        let message = scope.add_root(message);
        Err(scope.raise_fields(kind, &[Some(message)]))
    });
}

pub(crate) extern "C" fn brolga_throw_error(thread: &Thread, message: NonNull<u8>) {
    throw_message(thread, ExceptionKind::ErrorException, message);
}

pub(crate) extern "C" fn brolga_throw_argument(thread: &Thread, message: NonNull<u8>) {
    throw_message(thread, ExceptionKind::ArgumentError, message);
}

pub(crate) extern "C" fn brolga_throw(thread: &Thread, exception: NonNull<u8>) {
    thread.throw_object(object(exception));
}

pub(crate) extern "C" fn brolga_current_exception(thread: &Thread) -> *mut u8 {
    in_scope(thread, |scope, _| match scope.current_exception() {
        Some(exception) => Ok(exception),
        None => scope.nothing(),
    })
}

pub(crate) extern "C" fn brolga_throw_type_assert(
    thread: &Thread,
    asks: SymbolRef,
    expected: u64,
    got: NonNull<u8>,
) {
    in_scope(thread, |scope, _| {
        let got = scope.add_root(object(got));
        Err(scope.raise_type_error(&asks.name(), desc(expected), got))
    });
}

pub(crate) extern "C" fn brolga_throw_bounds_of(thread: &Thread, of: NonNull<u8>, index: i64) {
    in_scope(thread, |scope, _| {
        let of = scope.add_root(object(of));
        let index = scope.box_int(index)?;
        Err(scope.raise_bounds(of, index))
    });
}

pub(crate) extern "C" fn brolga_throw_bounds_in(thread: &Thread, of: NonNull<u8>, index: i64) {
    in_scope(thread, |scope, _| {
        let of = scope.add_root(object(of));
        let index = scope.box_int(index)?;
        let indices = scope.tuple(&[index])?;
        Err(scope.raise_bounds(of, indices))
    });
}

pub(crate) extern "C" fn brolga_isa(thread: &Thread, value: NonNull<u8>, ty: u64) -> u32 {
    let (value, ty) = (object(value), desc(ty));
    let is = match thread.isa_cache().known(value.desc(), ty) {
        // A type may have a type that its tag does not show.
        Some(known) if known || as_type(value).is_none() => known,
        _ => thread.runtime().is_some_and(|r| r.heap().is_a(Some(thread.isa_cache()), value, ty)),
    };
    is.into()
}

pub(crate) extern "C" fn brolga_subtype(thread: &Thread, a: NonNull<u8>, b: NonNull<u8>) -> u32 {
    let is = match (as_type(object(a)), as_type(object(b))) {
        (Some(a), Some(b)) => thread.isa_cache().known(a, b).unwrap_or_else(|| {
            thread.runtime().is_some_and(|r| thread.isa_cache().is_subtype(r.heap(), a, b))
        }),
        _ => false,
    };
    is.into()
}

pub(crate) extern "C" fn brolga_egal(_thread: &Thread, a: *mut u8, b: *mut u8) -> u32 {
    let same = match (NonNull::new(a), NonNull::new(b)) {
        (Some(a), Some(b)) => egal(object(a), object(b)),
        (a, b) => a == b,
    };
    same.into()
}

pub(crate) extern "C" fn brolga_object_id(thread: &Thread, of: NonNull<u8>) -> u64 {
    let of = object(of);
    match SymbolRef::of(of) {
        Some(symbol) => symbol.id(),
        None => object_id(of, thread.runtime().is_some_and(|runtime| runtime.heap().abi().moving)),
    }
}

pub(crate) extern "C" fn brolga_print_any(thread: &Thread, value: NonNull<u8>) {
    if let Some(runtime) = thread.runtime() {
        thread.print(&print_object(runtime.heap(), &|| thread.is_ending(), object(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{HeapOptions, Stress};
    use crate::instance::RuntimeOptions;
    use crate::objects::entry::ThreadPointer;
    use crate::objects::methods::MethodRow;
    use crate::output::Output;
    use crate::thread::with_attached;
    use brolga_ir::Context;
    use brolga_ir::types::Type;
    use std::sync::Arc;

    fn runtime() -> Arc<Runtime> {
        let heap = HeapOptions { stress: Stress::EverySafepoint, poison: true, ..HeapOptions::default() };
        Runtime::new(RuntimeOptions { heap, output: Output::Capture, ..RuntimeOptions::default() })
    }

    fn pointer(address: usize) -> NonNull<u8> {
        NonNull::new(std::ptr::with_exposed_provenance_mut(address)).unwrap()
    }

    #[test]
    fn a_caught_exception_becomes_an_object_once() {
        let (runtime, cx) = (runtime(), Context::new());
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            thread.throw(ExceptionKind::BoundsError, Detail::Index(9));
            let first = brolga_current_exception(thread);
            assert_eq!(brolga_current_exception(thread), first);
            let decl = cx.types.find_decl(cx.names.intern("BoundsError")).unwrap();
            let ty = cx.types.nominal(decl, &[]).unwrap();
            let ty = runtime.type_address(&cx, ty).unwrap() as u64;
            let first = NonNull::new(first).unwrap();
            assert_eq!(brolga_isa(thread, first, ty), 1);
            // A rethrown object is the same object.
            thread.rethrow();
            assert_eq!(NonNull::new(brolga_current_exception(thread)), Some(first));
            let shown = thread.take_exception(0).to_string();
            assert_eq!(shown, "BoundsError: attempt to access index [9]");
            // Exceptions without fields need no memory.
            thread.throw(ExceptionKind::DivideError, Detail::None);
            let divide = brolga_current_exception(thread);
            thread.pop_exceptions(0);
            thread.throw(ExceptionKind::DivideError, Detail::None);
            assert_eq!(brolga_current_exception(thread), divide);
        })
        .unwrap();
    }

    #[test]
    fn failed_assertions_say_what_they_got() {
        let (runtime, cx) = (runtime(), Context::new());
        let expected = runtime.type_address(&cx, Type::STRING).unwrap() as u64;
        let one = pointer(runtime.boxed_address(&cx, Type::INT64, 1).unwrap());
        let text = pointer(runtime.string(b"abc").address());
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            assert_eq!(brolga_isa(thread, one, expected), 0);
            assert_eq!(brolga_isa(thread, text, expected), 1);
            let ty = cx.types.type_of(Type::STRING).unwrap();
            let ty = runtime.type_address(&cx, ty).unwrap() as u64;
            for _ in 0..2 {
                assert_eq!(brolga_isa(thread, one, expected), 0);
                assert_eq!(brolga_isa(thread, pointer(expected as usize), ty), 1);
                assert_eq!(brolga_isa(thread, text, ty), 0);
            }
            brolga_throw_type_assert(thread, runtime.symbol("asks"), expected, one);
            let shown = thread.take_exception(0).to_string();
            assert_eq!(shown, "TypeError: in asks, expected String, got a value of type Int64");
            brolga_throw_bounds_of(thread, text, 4);
            assert_eq!(
                thread.take_exception(0).to_string(),
                "BoundsError: attempt to access String at index [4]"
            );
            brolga_throw(thread, one);
            assert_eq!(thread.take_exception(0).to_string(), "1");
            brolga_print_any(thread, text);
            brolga_print_any(thread, one);
        })
        .unwrap();
        assert_eq!(runtime.sink().take_captured(), b"abc1");
    }

    #[test]
    fn relations_hold_for_types_as_objects() {
        let (runtime, cx) = (runtime(), Context::new());
        let number = cx.types.find_decl(cx.names.intern("Number")).unwrap();
        let number = cx.types.nominal(number, &[]).unwrap();
        let ty = |ty| pointer(runtime.type_address(&cx, ty).unwrap());
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            // Twice, for the cache.
            for _ in 0..2 {
                assert_eq!(brolga_subtype(thread, ty(Type::INT8), ty(number)), 1);
                assert_eq!(brolga_subtype(thread, ty(number), ty(Type::INT8)), 0);
            }
            let egal = |a: NonNull<u8>, b: NonNull<u8>| brolga_egal(thread, a.as_ptr(), b.as_ptr());
            assert_eq!(egal(ty(number), ty(number)), 1);
            assert_eq!(egal(ty(number), ty(Type::INT8)), 0);
            let null = std::ptr::null_mut();
            assert_eq!(brolga_egal(thread, null, ty(number).as_ptr()), 0);
            assert_eq!(brolga_egal(thread, null, null), 1);
        })
        .unwrap();
    }

    /// A stand-in for compiled code: returns its second argument, or throws it if it is a string.
    extern "C" fn second_or_throw(thread: &Thread, args: *const *mut u8, count: i64) -> *mut u8 {
        assert_eq!(count, 3);
        // SAFETY: the caller passes as many words as it states.
        let second = NonNull::new(unsafe { args.add(1).read() }).unwrap();
        match object(second).string() {
            Some(_) => {
                brolga_throw(thread, second);
                std::ptr::null_mut()
            }
            None => second.as_ptr(),
        }
    }

    type Entry = extern "C" fn(&Thread, *const *mut u8, i64) -> *mut u8;

    unsafe extern "C" fn call(
        entry: usize,
        thread: ThreadPointer,
        args: *const *mut u8,
        count: i64,
    ) -> *mut u8 {
        // SAFETY: entries of this test are such functions, and the thread is the running one.
        unsafe {
            let entry: Entry = std::mem::transmute(std::ptr::with_exposed_provenance::<()>(entry));
            entry(&*thread.cast(), args, count)
        }
    }

    #[test]
    fn compiled_entries_are_called_and_remembered() {
        let (runtime, cx) = (runtime(), Context::new());
        let f = cx.types.function(cx.names.intern("f"));
        // SAFETY: `call` matches the entry, and neither is ever freed.
        let entry = unsafe { CodeEntry::new(second_or_throw as *const () as usize, call, Arc::new(())) };
        let row = MethodRow::new(f, vec![Type::ANY, Type::INT64], "f(Any, Int64)", MethodEntry::Code(entry));
        let methods = runtime.add_methods(&cx, [row]).unwrap();
        let f = object(pointer(runtime.instance_address(&cx, f).unwrap()));
        let latest = cx.types.function(cx.names.intern("invokelatest"));
        let latest = object(pointer(runtime.instance_address(&cx, latest).unwrap()));
        let in_world = cx.types.function(cx.names.intern("invoke_in_world"));
        let in_world = object(pointer(runtime.instance_address(&cx, in_world).unwrap()));
        let one = object(pointer(runtime.boxed_address(&cx, Type::INT64, 1 << 40).unwrap()));
        let half = object(pointer(runtime.boxed_address(&cx, Type::FLOAT64, 1 << 61).unwrap()));
        let text = object(pointer(runtime.string(b"thrown").address()));
        with_attached(&runtime, |thread| {
            let _entry = thread.enter_own_heap(&runtime);
            let entered = thread.enter();
            let world = thread.enter_world(runtime.methods());
            let apply = |all: &[Object]| {
                let result = brolga_apply(thread, all.as_ptr(), all.len() as i64);
                match NonNull::new(result) {
                    Some(result) => Ok(object(result)),
                    None => Err(thread.take_exception(0).to_string()),
                }
            };
            for _ in 0..2 {
                assert_eq!(apply(&[f, half, one]), Ok(half));
                assert_eq!(apply(&[latest, f, half, one]), Ok(half));
                assert_eq!(apply(&[f, text, one]), Err("\"thrown\"".into()));
                assert_eq!(apply(&[latest, f, text, one]), Err("\"thrown\"".into()));
                let missing = "MethodError: no method matching f(::Int64, ::Float64)";
                assert_eq!(apply(&[f, one, half]), Err(missing.into()));
            }
            // Another call may have its line.
            assert_eq!(apply(&[f, half, one]), Ok(half));
            assert!(thread.dispatch().has_line(&[f, half, one]));
            assert!(!thread.dispatch().has_line(&[f, one, half]), "no method");
            drop(methods);
            // Running code stays in its world, whose code also stays.
            assert_eq!((apply(&[f, half, one]), runtime.retired()), (Ok(half), 1));
            let missing = Err("MethodError: no method matching f(::Float64, ::Int64)".to_owned());
            assert_eq!(apply(&[latest, f, half, one]), missing);
            let in_world = |world: u64| {
                let world = runtime.boxed_address(&cx, Type::UINT64, world.into()).unwrap();
                apply(&[in_world, object(pointer(world)), f, half, one])
            };
            assert_eq!((in_world(2), in_world(3)), (Ok(half), missing.clone()));
            assert_eq!(apply(&[f, half, one]), Ok(half), "back in its world");
            drop((world, entered));
            assert_eq!(runtime.retired(), 0);
            let _entered = thread.enter();
            let _world = thread.enter_world(runtime.methods());
            assert!(!thread.dispatch().has_line(&[f, half, one]));
            assert_eq!(apply(&[f, half, one]), missing);
        })
        .unwrap();
    }

    #[test]
    fn functions_of_julias_run_time_work_on_objects() {
        let (runtime, cx) = (runtime(), Context::new());
        let vector = cx.types.vector(Type::INT64).unwrap();
        let vector = object(pointer(runtime.type_address(&cx, vector).unwrap()));
        let int = |n: i64| {
            object(pointer(runtime.boxed_address(&cx, Type::INT64, u128::from(n.cast_unsigned())).unwrap()))
        };
        with_attached(&runtime, |thread| {
            let entry = thread.enter_own_heap(&runtime);
            let call = |name: &str, args: &[Object]| {
                let mut all = vec![runtime.symbol(name).object()];
                all.extend(args);
                let result = brolga_julia_call(thread, all.as_ptr(), all.len() as i64);
                NonNull::new(result).map(object).ok_or_else(|| thread.take_exception(0).to_string())
            };
            // As compiled code would: the array stays in a root.
            let array = call("jl_alloc_array_1d", &[vector, int(3)]).unwrap();
            thread.mutator().locals.borrow_mut().push(Some(array));
            let shown = || String::from_utf8(print_object(runtime.heap(), &|| false, array).into()).unwrap();
            for n in 0..3 {
                let apply = |name: &str, args: &[Object]| {
                    let f = cx.types.function(cx.names.intern(name));
                    let mut all = vec![object(pointer(runtime.instance_address(&cx, f).unwrap()))];
                    all.extend(args);
                    assert!(!brolga_apply(thread, all.as_ptr(), all.len() as i64).is_null());
                };
                let yes = object(pointer(runtime.boxed_address(&cx, Type::BOOL, 1).unwrap()));
                apply("arrayset", &[yes, array, int(n + 1), int(n + 1)]);
            }
            let steps = [
                ("jl_array_grow_end", vec![1], "[1, 2, 3, 0]"),
                ("jl_array_grow_beg", vec![2], "[0, 0, 1, 2, 3, 0]"),
                ("jl_array_grow_at", vec![3, 2], "[0, 0, 1, 0, 0, 2, 3, 0]"),
                ("jl_array_del_at", vec![1, 3], "[0, 0, 2, 3, 0]"),
                ("jl_array_del_beg", vec![2], "[2, 3, 0]"),
                ("jl_array_del_end", vec![1], "[2, 3]"),
            ];
            for (name, args, expected) in steps {
                let mut all = vec![array];
                all.extend(args.into_iter().map(int));
                call(name, &all).unwrap();
                assert_eq!(shown(), expected, "{name}");
            }
            assert_eq!(
                call("jl_array_del_end", &[array, int(5)]),
                Err("BoundsError: attempt to access 2-element Vector{Int64} at index [-2]".into())
            );
            let text = object(pointer(runtime.string(b"text\0more").address()));
            let address = call("jl_string_ptr", &[text]).unwrap();
            thread.mutator().locals.borrow_mut().push(Some(address));
            let copied = call("jl_pchar_to_string", &[address, int(6)]).unwrap();
            assert_eq!(copied.string(), Some(&b"text\0m"[..]));
            let copied = call("jl_cstr_to_string", &[address]).unwrap();
            assert_eq!(copied.string(), Some(&b"text"[..]));
            let null = "ArgumentError: cannot convert NULL to string";
            assert_eq!(call("jl_cstr_to_string", &[int(0)]), Err(null.into()));
            assert_eq!(call("jl_pchar_to_string", &[int(0), int(1)]), Err(null.into()));
            assert_eq!(call("jl_pchar_to_string", &[int(0), int(0)]).unwrap().string(), Some(&b""[..]));
            let zeros = call("jl_alloc_string", &[int(3)]).unwrap();
            assert_eq!(zeros.string(), Some(&[0; 3][..]));
            assert_eq!(call("jl_alloc_string", &[int(-1)]), Err("OutOfMemoryError()".into()));
            assert!(call("jl_none", &[]).is_err());
            thread.mutator().locals.borrow_mut().clear();
            drop(entry);
        })
        .unwrap();
    }

    #[test]
    fn messages_may_be_strings_of_the_heap() {
        let runtime = runtime();
        with_attached(&runtime, |thread| {
            let made = runtime.enter(|scope| {
                let text = scope.string(b"made").unwrap();
                brolga_throw_error(thread, text.get(scope).object.pointer());
            });
            made.unwrap();
            // The scope is in use, so no exception object could be made.
            assert_eq!(thread.take_exception(0).kind, ExceptionKind::ConcurrencyViolationError);
            let _entry = thread.enter_own_heap(&runtime);
            let name = runtime.symbol("jl_alloc_string").object();
            let args = [name, runtime.heap().types().small_int(2).unwrap()];
            let text = NonNull::new(brolga_julia_call(thread, args.as_ptr(), 2)).unwrap();
            brolga_throw_argument(thread, text);
            assert_eq!(thread.take_exception(0).to_string(), "ArgumentError: \0\0");
            brolga_throw_error(thread, pointer(runtime.string(b"constant").address()));
            assert_eq!(thread.take_exception(0).to_string(), "constant");
        })
        .unwrap();
    }
}
