//! Calls of objects: methods, builtins, operators, constructors.
//!
//! The kind of the callee determines the call, in this order, which is also the interpreter's:
//!
//! | callee | call |
//! |---|---|
//! | has a method for these arguments | the method's entry |
//! | the name of a builtin or intrinsic | that operation on objects |
//! | the name of a function of [`BaseFn`] | its action |
//! | the name of an operator on numbers | its value |
//! | a type | its constructor: conversion of a number, or the fields in order |
//! | anything else | `MethodError` |
//!
//! Builtins that only call something else run in a loop here, so that a chain of them uses no stack; the loop
//! polls. Builtins that change the world do so until the call returns.
//!
//! A host function leaves the stack of exceptions unchanged, or with the one that it throws; a panic in it is
//! an `ErrorException`, as is an `Err` without an exception raised in this call. It is called with at least
//! as much stack as compiled code would be.

use std::sync::Arc;

use brolga_ir::Context;
use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::function_name::bare_name;
use brolga_ir::intrinsic::Intrinsic;
use brolga_ir::show::INVOKE_MISFIT;
use brolga_ir::types::{Type, TypeKind};

use crate::fence::fenced;
use crate::heap::{Object, ObjectKind, Root, Scope, TypeDesc};
use crate::instance::Runtime;
use crate::pending::ExceptionKind;
use crate::thread::Thread;

use super::dispatch::{Declared, InWorld};
use super::entry::CodeEntry;
use super::methods::{Ambiguous, HostFn, Method, MethodEntry};
use super::names::function_name;
use super::place::{Held, Row, STRETCH};
use super::relations::as_type;
use super::throw::Raised;

/// The maximum number of arguments that the containers of a call may have together.
const MOST_ELEMENTS: usize = 1 << 20;

/// The outcome of an operation.
pub(crate) type Done<'f, 'h> = Result<Root<'f, 'h>, Raised>;

/// The world of a call, if not its caller's.
enum World {
    Latest,
    At(u64),
}

/// The operands of a call, and its world.
type Next<'f, 'h> = (Vec<Root<'f, 'h>>, Option<World>);

/// A call, or the first of a chain of them.
enum Applied<'f, 'h> {
    Result(Root<'f, 'h>),
    Next(Vec<Root<'f, 'h>>, Option<World>),
}

/// The context of operations on objects.
pub(crate) struct Ops<'a, 'f, 'h> {
    pub(crate) scope: &'a mut Scope<'f, 'h>,
    pub(crate) thread: &'a Thread,
    pub(crate) runtime: &'a Runtime,
}

/// Calls compiled code. Null: an exception is pending, possibly one from a callback that C made and that the
/// code did not ask for.
///
/// # Safety
///
/// `args` points to `count` words that hold objects and are root slots.
pub(crate) unsafe fn call_code(
    thread: &Thread,
    entry: &CodeEntry,
    args: *const Object,
    count: usize,
) -> *mut u8 {
    let activation = thread.begin();
    // SAFETY: the creator of the entry guarantees this (`CodeEntry::new`) while its owner is held, which the
    // entry does. An `Object` has the layout of a pointer. The thread is the running one.
    let result =
        unsafe { (entry.call)(entry.address, std::ptr::from_ref(thread).cast(), args.cast(), count as i64) };
    if activation.carries() { std::ptr::null_mut() } else { result }
}

impl<'f, 'h> Ops<'_, 'f, 'h> {
    pub(crate) fn object(&self, root: Root<'f, 'h>) -> Object {
        root.get(self.scope).object
    }

    /// Handles requests to the thread in a long operation: `Err` is the exception of an interrupt, or of a
    /// limited call that has ended. A safepoint.
    pub(crate) fn poll(&mut self) -> Result<(), Raised> {
        match self.thread.safepoint() {
            true => Err(Raised::pending(self.scope)),
            false => Ok(()),
        }
    }

    /// Like [`Ops::poll`], in the middle of a change: interrupts are deferred, so that a program which
    /// catches one finds the change complete.
    pub(crate) fn poll_within(&mut self) -> Result<(), Raised> {
        self.scope.safepoint();
        match self.thread.is_ending() {
            true => Err(self.scope.raise_kind(ExceptionKind::InterruptException)),
            false => Ok(()),
        }
    }

    /// Calls `body` with a new frame for roots.
    pub(crate) fn in_frame<R>(&mut self, body: impl for<'b, 'g> FnOnce(&mut Ops<'b, 'g, 'h>) -> R) -> R {
        let (thread, runtime) = (self.thread, self.runtime);
        self.scope.frame(|scope| body(&mut Ops { scope, thread, runtime }))
    }

    pub(crate) fn objects(&self, roots: &[Root<'f, 'h>]) -> Vec<Object> {
        roots.iter().map(|&root| self.object(root)).collect()
    }

    /// Throws `ErrorException` with this text: an operation is malformed or not supported, or a host function
    /// broke its contract.
    pub(crate) fn unsupported(&mut self, text: &str) -> Raised {
        self.scope.throw_error(text)
    }

    pub(crate) fn message(&mut self, kind: ExceptionKind, text: &str) -> Raised {
        self.scope.raise_message(kind, text)
    }

    pub(crate) fn base(&self) -> Arc<Context> {
        self.runtime.heap().types().base().clone()
    }

    pub(crate) fn is_a(&self, object: Object, ty: &TypeDesc) -> bool {
        self.runtime.heap().is_a(Some(self.thread.isa_cache()), object, ty)
    }

    /// A type given as an object.
    pub(crate) fn type_operand(&mut self, op: &str, root: Root<'f, 'h>) -> Result<&'h TypeDesc, Raised> {
        match as_type(self.object(root)) {
            Some(of) => Ok(of),
            None => {
                let base = self.base();
                let ty = base.types.supertype(Type::DATATYPE);
                let expected = self.scope.desc_of(&base, ty)?;
                Err(self.scope.raise_type_error(op, &expected, root))
            }
        }
    }

    /// The value of an `Int64`.
    pub(crate) fn int64(&self, root: Root<'f, 'h>) -> Option<i64> {
        let object = self.object(root);
        (object.desc().ty() == Some(Type::INT64)).then(|| object.word_at(0).cast_signed())
    }

    /// The value of a `Bool`.
    pub(crate) fn bool(&self, root: Root<'f, 'h>) -> Option<bool> {
        let object = self.object(root);
        if object.desc().ty() != Some(Type::BOOL) {
            return None;
        }
        let mut byte = [0];
        object.read_bits(0, &mut byte);
        Some(byte[0] & 1 != 0)
    }

    pub(crate) fn flag_operand(&mut self, op: &str, root: Root<'f, 'h>) -> Result<bool, Raised> {
        match self.bool(root) {
            Some(flag) => Ok(flag),
            None => Err(self.fixed_type_error(op, Type::BOOL, root)),
        }
    }

    /// The text of a symbol.
    pub(crate) fn symbol_text(&self, root: Root<'f, 'h>) -> Option<String> {
        self.symbol_bytes(root).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// The text of a symbol, in place.
    pub(crate) fn symbol_bytes(&self, root: Root<'f, 'h>) -> Option<&'h [u8]> {
        let object = self.object(root);
        let is_symbol = matches!(object.desc().kind(), ObjectKind::Symbol);
        is_symbol.then(|| object.string()).flatten()
    }

    /// The `TypeError` for a value that should have one of the fixed types.
    pub(crate) fn fixed_type_error(&mut self, op: &str, ty: Type, got: Root<'f, 'h>) -> Raised {
        let base = self.base();
        match self.scope.desc_of(&base, ty) {
            Ok(expected) => self.scope.raise_type_error(op, &expected, got),
            Err(raised) => raised,
        }
    }

    /// The name of the type of an object: the result of `typeof`.
    pub(crate) fn type_text(&self, root: Root<'f, 'h>) -> String {
        self.object(root).desc().name().to_owned()
    }

    /// Calls `callee` with `args`.
    pub(crate) fn apply(&mut self, callee: Root<'f, 'h>, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let mut all = vec![callee];
        all.extend_from_slice(args);
        self.apply_all(all)
    }

    /// Calls the first object with the others.
    pub(crate) fn apply_all(&mut self, all: Vec<Root<'f, 'h>>) -> Done<'f, 'h> {
        self.apply_looking(all, true)
    }

    /// Applies the builtin whose function is the first object to the others. No method is searched for: a
    /// method with that name belongs to another function.
    pub(crate) fn apply_builtin(&mut self, all: Vec<Root<'f, 'h>>) -> Done<'f, 'h> {
        self.apply_looking(all, false)
    }

    /// Calls the first object with the others. `looks`: whether a method is searched for in the first call;
    /// calls made by builtins always search.
    fn apply_looking(&mut self, all: Vec<Root<'f, 'h>>, looks: bool) -> Done<'f, 'h> {
        if !self.thread.has_stack() {
            return Err(self.scope.raise_kind(ExceptionKind::StackOverflowError));
        }
        match self.apply_once(&all, looks)? {
            Applied::Result(result) => Ok(result),
            Applied::Next(next, world) => {
                let next = self.objects(&next);
                self.apply_chain(next, world)
            }
        }
    }

    /// Makes the calls of a chain of builtins that only call something else. It may be endless: a vector may
    /// contain itself and be splatted.
    fn apply_chain(&mut self, mut all: Vec<Object>, mut entered: Option<World>) -> Done<'f, 'h> {
        // The world of an `invokelatest` or `invoke_in_world` in the chain.
        let mut world: Option<InWorld<'_>> = None;
        loop {
            if let Some(entered) = entered {
                // The earlier world is left first, so that leaving the new one restores the caller's.
                drop(world.take());
                let dispatch = self.thread.dispatch();
                world = Some(match entered {
                    World::Latest => dispatch.latest(),
                    World::At(world) => dispatch.at(world),
                });
            }
            // The roots of a link are dropped with it. What leaves the frame is rooted again before the next
            // safepoint.
            let next = self.in_frame(|ops| {
                let all: Vec<_> = all.iter().map(|&object| ops.scope.add_root(object)).collect();
                ops.poll()?;
                Ok(match ops.apply_once(&all, true)? {
                    Applied::Result(result) => Err(ops.object(result)),
                    Applied::Next(next, entered) => Ok((ops.objects(&next), entered)),
                })
            })?;
            match next {
                Ok(next) => (all, entered) = next,
                Err(result) => return Ok(self.scope.add_root(result)),
            }
        }
    }

    /// Calls the first object with the others, up to the next call that a builtin makes.
    fn apply_once(&mut self, all: &[Root<'f, 'h>], looks: bool) -> Result<Applied<'f, 'h>, Raised> {
        let objects = self.objects(all);
        let Some(&callee) = objects.first() else { return Err(self.unsupported("a call of nothing")) };
        let found = if looks { self.find_method(&objects) } else { Ok(None) };
        match found {
            Ok(Some(method)) => return self.enter(method.entry(), all).map(Applied::Result),
            Ok(None) => {}
            Err(_) => return Err(self.scope.raise_ambiguous(all[0], &all[1..])),
        }
        if let Some(of) = as_type(callee) {
            return match self.construct(of, &all[1..])? {
                Some(made) => Ok(Applied::Result(made)),
                None => Err(self.scope.raise_method_error(all[0], &all[1..])),
            };
        }
        let Some(builtin) = callee.desc().builtin() else { return self.named(all).map(Applied::Result) };
        match self.next_call(builtin, all)? {
            Some((next, entered)) => Ok(Applied::Next(next, entered)),
            None => self.builtin(builtin, &all[1..]).map(Applied::Result),
        }
    }

    /// Calls a library function that is not a builtin.
    fn named(&mut self, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let Some(name) = all.first().and_then(|&callee| function_name(self.object(callee).desc())) else {
            return Err(self.scope.raise_method_error(all[0], &all[1..]));
        };
        let bare = bare_name(&name);
        if let Some(intrinsic) = Intrinsic::from_name(bare) {
            return self.intrinsic_function(intrinsic, &all[1..]);
        }
        if let Some(function) = BaseFn::from_name(&name) {
            return self.base_fn(function, all);
        }
        match self.operator(bare, &all[1..])? {
            Some(value) => Ok(value),
            None => Err(self.scope.raise_method_error(all[0], &all[1..])),
        }
    }

    /// The method of a call of the objects in the thread's world.
    fn find_method(&self, objects: &[Object]) -> Result<Option<Arc<Method>>, Ambiguous> {
        self.thread.dispatch().find(self.runtime.heap(), self.thread.isa_cache(), objects)
    }

    /// The call that a builtin makes, if it does nothing else, and that call's world; `None` for other
    /// builtins.
    fn next_call(&mut self, builtin: Builtin, all: &[Root<'f, 'h>]) -> Result<Option<Next<'f, 'h>>, Raised> {
        if !builtin.arity().allows(all.len() - 1) {
            return Ok(None);
        }
        Ok(match (builtin, all) {
            (Builtin::Invokelatest, [_, rest @ ..]) => Some((rest.to_vec(), Some(World::Latest))),
            (Builtin::InvokeInWorld, [_, world, rest @ ..]) => {
                let Some(world) = self.world_number(*world) else {
                    return Err(self.fixed_type_error("invoke_in_world", Type::UINT64, *world));
                };
                Some((rest.to_vec(), Some(World::At(world))))
            }
            (Builtin::ApplyIterate, [_, _, rest @ ..]) => Some((self.flattened(rest)?, None)),
            _ => None,
        })
    }

    /// A callee and the elements of all the containers after it.
    pub(crate) fn flattened(&mut self, all: &[Root<'f, 'h>]) -> Result<Vec<Root<'f, 'h>>, Raised> {
        let Some((&callee, containers)) = all.split_first() else { return Ok(Vec::new()) };
        let mut next = vec![callee];
        for &container in containers {
            self.collect(container, &mut next)?;
        }
        Ok(next)
    }

    /// A world given as a `UInt64`, or as a non-negative `Int64`.
    fn world_number(&self, root: Root<'f, 'h>) -> Option<u64> {
        let object = self.object(root);
        match object.desc().ty()? {
            Type::UINT64 => Some(object.word_at(0)),
            Type::INT64 => u64::try_from(object.word_at(0).cast_signed()).ok(),
            _ => None,
        }
    }

    /// The elements produced by iterating over a container.
    pub(crate) fn collect(
        &mut self,
        container: Root<'f, 'h>,
        into: &mut Vec<Root<'f, 'h>>,
    ) -> Result<(), Raised> {
        // Including the callee.
        let room = (MOST_ELEMENTS + 1).saturating_sub(into.len());
        let object = self.object(container);
        if let Some(elements) = self.tuple_elements(container)? {
            if elements.len() > room {
                return Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError));
            }
            into.extend(elements);
            return Ok(());
        }
        let Some(row) = Row::of(object) else {
            let text =
                format!("iterating over a `{}`: only tuples and arrays are known", self.type_text(container));
            return Err(self.unsupported(&text));
        };
        if row.length > room {
            return Err(self.scope.raise_kind(ExceptionKind::OutOfMemoryError));
        }
        // The `Memory` is rooted separately: another thread may store a different `Memory` into the array.
        let memory = self.scope.add_root(row.memory);
        for index in 0..row.length {
            if index % STRETCH == STRETCH - 1 {
                self.poll()?;
            }
            let row = Row { memory: self.object(memory), ..row };
            let held = row.place(index).map_or(Held::Undefined, |place| place.held());
            match self.scope.box_held(held)? {
                Some(element) => into.push(element),
                None => return Err(self.scope.raise_kind(ExceptionKind::UndefRefError)),
            }
        }
        Ok(())
    }

    /// Calls a method.
    fn enter(&mut self, entry: &MethodEntry, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        match entry {
            MethodEntry::Code(entry) => self.enter_code(entry, all),
            MethodEntry::Deferred(deferred) => {
                let stack = self.thread.stack_left();
                match self.scope.blocking(|| deferred.make(stack)) {
                    Ok(entry) => self.enter_code(entry, all),
                    Err(text) => Err(self.message(ExceptionKind::CompileError, &text)),
                }
            }
            MethodEntry::Host(host) => self.call_host(host, all),
        }
    }

    fn enter_code(&mut self, entry: &CodeEntry, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let objects = self.objects(all);
        let thread = self.thread;
        // The roots keep the objects alive.
        let result = self.scope.call_out(|| {
            // SAFETY: the words belong to a linked frame.
            let call = |words, count| unsafe { call_code(thread, entry, words, count) };
            thread.mutator().with_words(&objects, call)
        });
        match std::ptr::NonNull::new(result) {
            // SAFETY: compiled code returns an object of its heap (`CodeEntry::new`), and there is no
            // safepoint in between.
            Some(object) => Ok(self.scope.add_root(unsafe { Object::from_pointer(object) })),
            None => Err(Raised::pending(self.scope)),
        }
    }

    fn call_host(&mut self, host: &Arc<HostFn>, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        if !self.thread.has_stack() {
            return Err(self.scope.raise_kind(ExceptionKind::StackOverflowError));
        }
        let depth = self.thread.exception_depth();
        let scope = &mut *self.scope;
        let activation = self.thread.begin();
        match fenced(|| host(scope, all)) {
            // It called C, which called compiled code back: the exception from there continues here.
            Ok(_) if activation.carries() && self.thread.keep_last_exception(depth) => {
                Err(Raised::pending(self.scope))
            }
            Ok(Ok(result)) => {
                // The exceptions that inner activations raised have been handled.
                self.thread.pop_exceptions(depth);
                Ok(result)
            }
            // A `Raised` may come from an earlier call: only an exception raised in this one is thrown.
            Ok(Err(_)) => match self.thread.keep_last_exception(depth) {
                true => Err(Raised::pending(self.scope)),
                false => {
                    let text = "a host function returned an exception that it did not raise";
                    Err(self.unsupported(text))
                }
            },
            Err(text) => {
                self.thread.pop_exceptions(depth);
                Err(self.unsupported(&format!("a function of the host panicked: {text}")))
            }
        }
    }

    /// `invoke(f, Tuple{…}, args…)`
    pub(crate) fn invoke(&mut self, args: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let [callee, signature, rest @ ..] = args else {
            return Err(self.unsupported("invoke without a signature"));
        };
        let (given, signature) = (*signature, self.type_operand("invoke", *signature)?);
        let cx = signature.context();
        let TypeKind::Tuple { elems, vararg } = cx.types.kind(signature.ty().unwrap_or(Type::ANY)) else {
            let base = self.base();
            let wanted = base.types.types_of_tuples();
            let wanted = self.made(&base, wanted)?;
            let expected = self.scope.desc_of(&base, wanted)?;
            return Err(self.scope.raise_type_error("invoke", &expected, given));
        };
        let found = match self.thread.dispatch().declared(self.object(*callee), signature.tag()) {
            Some(known) => Some(known),
            None => self.find_declared(*callee, signature)?,
        };
        let (heap, objects) = (self.runtime.heap(), self.objects(rest));
        // Compiled code trusts objects to have its declared types.
        let fits = match &found {
            Some((_, descs)) => {
                descs.len() == objects.len()
                    && objects.iter().zip(&**descs).all(|(&arg, desc)| self.is_a(arg, desc))
            }
            None => {
                let mut declared = elems.iter().chain(vararg.iter().cycle());
                (elems.len() == objects.len() || (elems.len() < objects.len() && vararg.is_some()))
                    && objects.iter().all(|&arg| declared.next().is_some_and(|&ty| heap.is_of(arg, cx, ty)))
            }
        };
        if !fits {
            let rest = self.scope.tuple(rest)?;
            return Err(self.scope.raise_type_error(INVOKE_MISFIT, signature, rest));
        }
        let mut all = vec![*callee];
        all.extend_from_slice(rest);
        match found {
            Some((method, _)) if method.fits(heap, self.thread.isa_cache(), &objects) => {
                self.enter(method.entry(), &all)
            }
            Some(_) => Err(self.scope.raise_method_error(*callee, rest)),
            // Base has methods without a body in any text.
            None => self.apply_builtin(all),
        }
    }

    /// The method selected by an `invoke` with this signature, and the types in the signature.
    fn find_declared(
        &mut self,
        callee: Root<'f, 'h>,
        signature: &TypeDesc,
    ) -> Result<Option<Declared>, Raised> {
        let (cx, ty) = (signature.context().clone(), signature.ty().unwrap_or(Type::ANY));
        let Some(types) = cx.types.tuple_elements(ty) else { return Ok(None) };
        let descs = types.iter().map(|&ty| self.scope.desc_of(&cx, ty)).collect::<Result<Arc<[_]>, _>>()?;
        let (heap, dispatch, callee) = (self.runtime.heap(), self.thread.dispatch(), self.object(callee));
        let found = dispatch.table().find_declared(heap, dispatch.world(), callee, &descs);
        Ok(found.map(|method| {
            dispatch.remember_declared(callee, signature.tag(), &method, &descs);
            (method, descs)
        }))
    }

    /// Whether a call would find a method.
    pub(crate) fn applicable(&mut self, all: &[Root<'f, 'h>]) -> Done<'f, 'h> {
        let found = self.find_method(&self.objects(all));
        self.scope.bool(matches!(found, Ok(Some(_))))
    }
}
