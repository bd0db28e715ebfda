//! Calls with objects from Rust, with types that are checked when a function is looked up.
//!
//! ```text
//!   let longest = unit.func_in::<(Handle, Text, i64), Handle>("longest")?;
//!   runtime.enter(|scope| {
//!       let node = longest.call(scope, (list, "name", 3))?;      list: Root, node: Root
//!   })
//! ```
//!
//! | Rust | Julia | argument | result |
//! |---|---|---|---|
//! | every [`Value`] | see there | itself | itself |
//! | [`Handle`] | every type that is passed as a reference | a [`Root`] | a [`Root`] of the scope's frame |
//! | [`Text`] | `String` | `&str`, copied into the heap | `String`, copied out of it |
//! | [`Vector<T>`] | `Vector{T}` of numbers | `&[T]`, copied into the heap | `Vec<T>`, copied out of it |
//!
//! A handle is a [`Root`], which borrows from the scope that keeps its object: no unrooted object can be passed, and a
//! result is rooted before Rust code gets it. Its type is checked on every call, because a root does not have the type of
//! its object.
//!
//! Not done: tuples with objects in them, whose leaves cannot be distinguished from outside; a [`Handle`] to the tuple as an object
//! serves where the function takes `Any`.
//!
//! An unrooted reference is not an argument:
//!
//! ```compile_fail,E0308
//! # use brolga_jit::{Handle, ScopedFunc};
//! # use brolga_runtime::heap::Scope;
//! fn call(first: &ScopedFunc<(Handle,), i64>, scope: &mut Scope<'_, '_>) {
//!     let text = scope.string(b"a").unwrap();
//!     let bare = text.get(scope);
//!     first.call(scope, (bare,)).unwrap();
//! }
//! ```
//!
//! Nor is one valid across a call:
//!
//! ```compile_fail,E0502
//! # use brolga_jit::{Handle, ScopedFunc};
//! # use brolga_runtime::heap::Scope;
//! fn call(first: &ScopedFunc<(Handle,), i64>, scope: &mut Scope<'_, '_>) {
//!     let text = scope.string(b"a").unwrap();
//!     let bare = text.get(scope);
//!     first.call(scope, (text,)).unwrap();
//!     println!("{:?}", bare.text());
//! }
//! ```
//!
//! A result does not leave the frame that keeps it:
//!
//! ```compile_fail
//! # use brolga_jit::{Handle, ScopedFunc};
//! # use brolga_runtime::heap::Scope;
//! fn call(make: &ScopedFunc<(), Handle>, scope: &mut Scope<'_, '_>) {
//!     let escaped = scope.frame(|scope| make.call(scope, ()).unwrap());
//! }
//! ```
//!
//! References of another heap are not arguments:
//!
//! ```compile_fail
//! # use brolga_jit::{Handle, ScopedFunc};
//! # use brolga_runtime::heap::{Root, Scope};
//! fn call<'f, 'g, 'h>(first: &ScopedFunc<(Handle,), i64>, scope: &mut Scope<'f, 'g>, other: Root<'f, 'h>) {
//!     first.call(scope, (other,)).unwrap();
//! }
//! ```
//!
//! The intended use:
//!
//! ```
//! # use brolga_jit::{CallError, Handle, ScopedFunc};
//! # use brolga_runtime::heap::{Root, Scope};
//! fn call<'f, 'h>(next: &ScopedFunc<(Handle,), Handle>, scope: &mut Scope<'f, 'h>) -> Result<Root<'f, 'h>, CallError> {
//!     let text = scope.string(b"a")?;
//!     let first = next.call(scope, (text,))?;
//!     next.call(scope, (first,))
//! }
//! ```

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use brolga_codegen::sig::{Abi, FunctionType, ValueType};
use brolga_runtime::Limits;
use brolga_runtime::heap::{Bits, Root, Scope};

use crate::call::by_memory::check_types;
use crate::call::func::{CallError, Callable, LookupError, UntypedFunc, Word};
use crate::call::value::{Handle, Value, ValueError};
use crate::cell::IndirectCell;
use crate::unit::Unit;

mod sealed {
    pub trait Sealed {}
}

/// A `String`, as a text of Rust.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// A `Vector{T}`, as a vector of Rust.
#[derive(Clone, Copy, Debug)]
pub struct Vector<T>(PhantomData<T>);

/// The arguments of one call during conversion.
#[doc(hidden)]
#[derive(Debug)]
pub struct Arguments<'a, 'h> {
    words: Vec<Word<'a, 'h>>,
}

/// A Rust type that stands for a Julia type in a call inside a scope.
pub trait Scoped: sealed::Sealed {
    /// The argument.
    type Given<'a, 'h>;
    /// The result.
    type Got<'f, 'h>;

    /// Whether it stands for this Julia type.
    fn stands_for(ty: &ValueType) -> bool;

    /// Appends the words that carry the argument.
    #[doc(hidden)]
    fn give<'a, 'f: 'a, 'h>(
        given: Self::Given<'a, 'h>,
        func: &UntypedFunc,
        scope: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError>;

    /// The result that words carry.
    #[doc(hidden)]
    fn take<'f, 'h>(
        words: &mut dyn Iterator<Item = Word<'f, 'h>>,
        scope: &Scope<'f, 'h>,
    ) -> Result<Self::Got<'f, 'h>, CallError>;
}

impl<V: Value> sealed::Sealed for V {}

impl<V: Value> Scoped for V {
    type Given<'a, 'h> = V;
    type Got<'f, 'h> = V;

    fn stands_for(ty: &ValueType) -> bool {
        // Only typed calls outside of scopes pass values in memory.
        ty.memory.is_none() && <V as Value>::stands_for(ty)
    }

    fn give<'a, 'f: 'a, 'h>(
        given: V,
        func: &UntypedFunc,
        _: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError> {
        let mut leaves = Vec::new();
        given.into_leaves(&mut leaves);
        let kinds = func.signature().params.get(to.words.len()..).unwrap_or_default();
        to.words.extend(leaves.into_iter().zip(kinds).map(|(bits, abi)| match abi {
            Abi::Ptr => Word::Pointer(std::ptr::with_exposed_provenance_mut(bits as usize)),
            _ => Word::Bits(bits),
        }));
        Ok(())
    }

    fn take<'f, 'h>(
        words: &mut dyn Iterator<Item = Word<'f, 'h>>,
        _: &Scope<'f, 'h>,
    ) -> Result<V, CallError> {
        let mut leaves = words.map_while(|word| match word {
            Word::Bits(bits) => Some(bits),
            Word::Object(_) | Word::Pointer(_) | Word::Memory(_) => None,
        });
        Ok(V::from_leaves(&mut leaves)?)
    }
}

fn object<'f, 'h>(words: &mut dyn Iterator<Item = Word<'f, 'h>>) -> Result<Root<'f, 'h>, CallError> {
    match words.next() {
        Some(Word::Object(Some(root))) => Ok(root),
        _ => Err(ValueError::Undefined.into()),
    }
}

impl sealed::Sealed for Handle {}

impl Scoped for Handle {
    type Given<'a, 'h> = Root<'a, 'h>;
    type Got<'f, 'h> = Root<'f, 'h>;

    fn stands_for(ty: &ValueType) -> bool {
        ty.leaves == [Abi::Object] && ty.elements.is_none()
    }

    fn give<'a, 'f: 'a, 'h>(
        given: Root<'a, 'h>,
        _: &UntypedFunc,
        _: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError> {
        to.words.push(Word::Object(Some(given)));
        Ok(())
    }

    fn take<'f, 'h>(
        words: &mut dyn Iterator<Item = Word<'f, 'h>>,
        _: &Scope<'f, 'h>,
    ) -> Result<Root<'f, 'h>, CallError> {
        object(words)
    }
}

impl sealed::Sealed for Text {}

impl Scoped for Text {
    type Given<'a, 'h> = &'a str;
    type Got<'f, 'h> = String;

    fn stands_for(ty: &ValueType) -> bool {
        ty.name == "String"
    }

    fn give<'a, 'f: 'a, 'h>(
        given: &'a str,
        _: &UntypedFunc,
        scope: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError> {
        to.words.push(Word::Object(Some(scope.string(given.as_bytes())?)));
        Ok(())
    }

    fn take<'f, 'h>(
        words: &mut dyn Iterator<Item = Word<'f, 'h>>,
        scope: &Scope<'f, 'h>,
    ) -> Result<String, CallError> {
        let bytes = object(words)?.get(scope).string_bytes().unwrap_or_default().to_vec();
        let not_utf8 = |error: std::string::FromUtf8Error| error.utf8_error().valid_up_to();
        Ok(String::from_utf8(bytes).map_err(|error| ValueError::NotUtf8 { valid: not_utf8(error) })?)
    }
}

impl<T> sealed::Sealed for Vector<T> {}

impl<T: Value + Bits + 'static> Scoped for Vector<T> {
    type Given<'a, 'h> = &'a [T];
    type Got<'f, 'h> = Vec<T>;

    fn stands_for(ty: &ValueType) -> bool {
        let element = ty.name.strip_prefix("Vector{").and_then(|rest| rest.strip_suffix('}'));
        element.is_some_and(|name| <T as Value>::stands_for(&ValueType::scalar(name, Abi::I64)))
    }

    fn give<'a, 'f: 'a, 'h>(
        given: &'a [T],
        func: &UntypedFunc,
        scope: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError> {
        let index = to.words.len();
        let Some(ty) = func.object_type(index) else { return Err(CallError::word(index, true)) };
        let vector = scope.vector_of(ty, given)?;
        to.words.push(Word::Object(Some(vector)));
        Ok(())
    }

    fn take<'f, 'h>(
        words: &mut dyn Iterator<Item = Word<'f, 'h>>,
        scope: &Scope<'f, 'h>,
    ) -> Result<Vec<T>, CallError> {
        Ok(object(words)?.get(scope).copied_bits()?)
    }
}

/// The parameters of a function: a tuple with one [`Scoped`] for each.
pub trait ScopedParams {
    /// How many there are.
    const COUNT: usize;
    /// The arguments.
    type Given<'a, 'h>;

    /// The Rust type of one and whether it stands for a Julia type.
    fn stands_for(index: usize, ty: &ValueType) -> (&'static str, bool);

    /// Appends the words that carry the arguments.
    #[doc(hidden)]
    fn give<'a, 'f: 'a, 'h>(
        given: Self::Given<'a, 'h>,
        func: &UntypedFunc,
        scope: &mut Scope<'f, 'h>,
        to: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError>;
}

macro_rules! params {
    ($($($ty:ident $value:ident),*;)*) => {$(
        impl<$($ty: Scoped),*> ScopedParams for ($($ty,)*) {
            const COUNT: usize = [$(stringify!($ty)),*].len();
            type Given<'a, 'h> = ($($ty::Given<'a, 'h>,)*);

            fn stands_for(index: usize, ty: &ValueType) -> (&'static str, bool) {
                let all: &[(&'static str, fn(&ValueType) -> bool)] =
                    &[$((std::any::type_name::<$ty>(), <$ty as Scoped>::stands_for)),*];
                all.get(index).map_or(("", false), |(name, check)| (name, check(ty)))
            }

            fn give<'a, 'f: 'a, 'h>(
                given: Self::Given<'a, 'h>,
                func: &UntypedFunc,
                scope: &mut Scope<'f, 'h>,
                to: &mut Arguments<'a, 'h>,
            ) -> Result<(), CallError> {
                let ($($value,)*) = given;
                $(<$ty as Scoped>::give($value, func, scope, to)?;)*
                Ok(())
            }
        }
    )*};
}

params! {
    A a;
    A a, B b;
    A a, B b, C c;
    A a, B b, C c, D d;
    A a, B b, C c, D d, E e;
    A a, B b, C c, D d, E e, F f;
    A a, B b, C c, D d, E e, F f, G g;
    A a, B b, C c, D d, E e, F f, G g, H h;
}

impl ScopedParams for () {
    const COUNT: usize = 0;
    type Given<'a, 'h> = ();

    fn stands_for(_: usize, _: &ValueType) -> (&'static str, bool) {
        ("", false)
    }

    fn give<'a, 'f: 'a, 'h>(
        (): (),
        _: &UntypedFunc,
        _: &mut Scope<'f, 'h>,
        _: &mut Arguments<'a, 'h>,
    ) -> Result<(), CallError> {
        Ok(())
    }
}

/// A compiled function with a Rust signature that fits it, objects among its values.
pub struct ScopedFunc<A, R> {
    func: UntypedFunc,
    signature: PhantomData<fn(A) -> R>,
}

impl<A, R> Clone for ScopedFunc<A, R> {
    fn clone(&self) -> Self {
        ScopedFunc::new(self.func.clone())
    }
}

impl<A, R> std::fmt::Debug for ScopedFunc<A, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ScopedFunc").field(&self.func).finish()
    }
}

impl<A, R> ScopedFunc<A, R> {
    pub(crate) fn new(func: UntypedFunc) -> Self {
        ScopedFunc { func, signature: PhantomData }
    }

    /// The same function, which keeps a value as long as it lives, replacing the one kept before.
    #[must_use]
    pub fn keeping(self, kept: Arc<dyn Any + Send + Sync>) -> Self {
        ScopedFunc::new(self.func.keeping(kept))
    }
}

impl<A: ScopedParams, R: Scoped> ScopedFunc<A, R> {
    /// Calls the function. The scope's frame keeps its result and the objects made of the arguments: a loop that calls has
    /// a frame of its own for each iteration.
    pub fn call<'a, 'f: 'a, 'h>(
        &self,
        scope: &mut Scope<'f, 'h>,
        args: A::Given<'a, 'h>,
    ) -> Result<R::Got<'f, 'h>, CallError> {
        let mut given = Arguments { words: Vec::new() };
        A::give(args, &self.func, scope, &mut given)?;
        let got = self.func.call_in(scope, &given.words)?;
        R::take(&mut got.into_iter(), scope)
    }

    /// As [`ScopedFunc::call`], under limits: an end that the program cannot catch ([`Runtime::limited`](brolga_runtime::Runtime::limited)).
    ///
    /// # Errors
    /// Also [`CallError::Ended`]: a limit was reached before the function returned, or before it was called.
    pub fn call_limited<'a, 'f: 'a, 'h>(
        &self,
        limits: &Limits,
        scope: &mut Scope<'f, 'h>,
        args: A::Given<'a, 'h>,
    ) -> Result<R::Got<'f, 'h>, CallError> {
        self.func.callable.runtime().limited(limits, || self.call(scope, args))?
    }
}

impl Unit {
    /// The function of that name, to be called inside a scope with objects among its arguments and results.
    pub fn func_in<A: ScopedParams, R: Scoped>(&self, name: &str) -> Result<ScopedFunc<A, R>, LookupError> {
        let func = self.untyped(name)?;
        let (_, ty) = Callable::new(self, name)?;
        scoped(func, name, &ty)
    }
}

impl IndirectCell {
    /// The function, to be called inside a scope with objects among its arguments and results.
    pub fn func_in<A: ScopedParams, R: Scoped>(&self) -> Result<ScopedFunc<A, R>, LookupError> {
        scoped(self.untyped()?, self.name(), self.ty())
    }
}

/// A function to be called inside a scope, if a Rust signature fits it.
fn scoped<A: ScopedParams, R: Scoped>(
    func: UntypedFunc,
    name: &str,
    ty: &FunctionType,
) -> Result<ScopedFunc<A, R>, LookupError> {
    let result = (std::any::type_name::<R>(), R::stands_for(&ty.result));
    check_types(name, ty, A::COUNT, &A::stands_for, result)?;
    let leaves: usize = ty.params.iter().map(|param| param.leaves.len()).sum();
    let fits =
        (leaves, ty.result.leaves.len()) == (func.signature().params.len(), func.signature().results.len());
    match fits {
        true => Ok(ScopedFunc::new(func)),
        false => Err(LookupError::InMemory { name: name.into() }),
    }
}
