//! The tables of names and types that programs compiled together share.
//!
//! ```text
//!   names and types, numbered once ◄── view: Context ◄── program          a program keeps its names and types
//!                                  ◄── view: Context ◄── program
//! ```
//!
//! A context is a view. Views of the same tables assign a name or type the same number, so programs of
//! different views work together without any translation. A name or type that is neither builtin nor declared
//! is freed with the last view that has interned or read it ([`views`](crate::views)). The first declaration
//! of a name lives as long as any view; further ones, made by [homonyms](crate::names), are freed with the
//! last view that has read one of their types.
//!
//! A context is cheap: the builtin names and types are a constant of the library, computed once and shared by
//! all contexts, so a new context only adds empty tables.
//!
//! Cost: 2 KiB and less than a microsecond. The tables allocate when the first name or type is added.

use crate::meter::Meter;
use crate::names::{FixedNames, NameScope, Names};
use crate::types::{FixedTypes, Types};
use std::sync::{Arc, LazyLock};

/// A view of names and types that programs share. Names and types that the view has seen live as long as the
/// view; any number of threads may use it at the same time.
///
/// Programs that work together share one context or [views](Context::view) of it. A program in its own view
/// frees its names and types when it is dropped.
///
/// ```
/// use brolga_ir::{Context, Type};
/// let cx = Context::new();
/// let pair = cx.types.tuple(&[Type::INT64, Type::BOOL]).unwrap();
/// assert_eq!(cx.types.display(pair).to_string(), "Tuple{Int64, Bool}");
/// // A view has the same numbers for the same names and types.
/// let view = cx.view();
/// assert_eq!(view.types.tuple(&[Type::INT64, Type::BOOL]), Ok(pair));
/// assert!(cx.is_same(&view));
/// ```
#[derive(Debug)]
pub struct Context {
    /// Interned texts.
    pub names: Arc<Names>,
    /// Interned types.
    pub types: Types,
}

/// The builtin names and types.
static FIXED: LazyLock<(Arc<FixedNames>, Arc<FixedTypes>)> = LazyLock::new(|| {
    let types = Types::builtin();
    (Arc::new(types.names().freeze()), Arc::new(types.freeze()))
});

impl Context {
    /// A context with the builtin types.
    pub fn new() -> Arc<Context> {
        Context::metered(&Arc::default())
    }

    /// Like [`Context::new`]. What the context allocates beyond the builtin types is charged to a meter until
    /// it is dropped.
    pub fn metered(meter: &Arc<Meter>) -> Arc<Context> {
        let (names, types) = &*FIXED;
        let names = Arc::new(Names::with_fixed(names.clone(), meter));
        Arc::new(Context { types: Types::with_fixed(names.clone(), types.clone(), meter), names })
    }

    /// Another view of the same names and types, initially empty. Its programs are in the same scope.
    #[must_use]
    pub fn view(&self) -> Arc<Context> {
        self.view_with(self.names.scope().cloned(), &Arc::default())
    }

    /// Like [`Context::view`], for programs in another scope: function names and declared types interned
    /// through it refer to that scope.
    #[must_use]
    pub fn view_in(&self, scope: Arc<dyn NameScope>) -> Arc<Context> {
        self.view_with(Some(scope), &Arc::default())
    }

    /// Like [`Context::view`]. What the view holds is charged to a meter until it is dropped.
    #[must_use]
    pub fn metered_view(&self, meter: &Arc<Meter>) -> Arc<Context> {
        self.view_with(self.names.scope().cloned(), meter)
    }

    /// Whether the view charges what it holds to a meter.
    pub fn is_metered_by(&self, meter: &Arc<Meter>) -> bool {
        self.types.is_metered_by(meter)
    }

    fn view_with(&self, scope: Option<Arc<dyn NameScope>>, meter: &Arc<Meter>) -> Arc<Context> {
        let names = Arc::new(self.names.another(scope, meter));
        Arc::new(Context { types: self.types.another(names.clone(), meter), names })
    }

    /// Whether both are views of the same names and types, so that numbers mean the same in both.
    pub fn is_same(&self, other: &Context) -> bool {
        self.types.is_same(&other.types)
    }

    /// The approximate size in bytes of the names and types that the view holds.
    pub fn bytes(&self) -> usize {
        self.names.bytes() + self.types.bytes()
    }

    /// The number of views of the same names and types.
    pub fn views(&self) -> usize {
        self.types.views()
    }

    /// An address that identifies the names and types: all views share it, and no other context has it while
    /// one of them lives.
    pub fn address(&self) -> usize {
        self.types.address()
    }
}

#[cfg(test)]
mod tests {
    use super::Context;
    use crate::func::{CalleeData, Func, Signature};
    use crate::function_name::FunctionName;
    use crate::op::Level;
    use crate::types::{DeclKind, FieldDecl, Type};
    use std::sync::Arc;

    /// Entries of two contexts may have the same numbers; neither context sees the other's.
    #[test]
    fn contexts_share_the_builtin_types_and_nothing_else() {
        let (a, b) = (Context::new(), Context::new());
        let (f, g) = (a.types.function_of("of_a"), b.types.function_of("of_b"));
        assert_eq!(f, g, "the first type beyond the builtin ones");
        assert_eq!(a.types.display(f).to_string(), "typeof(of_a)");
        assert_eq!(b.types.display(g).to_string(), "typeof(of_b)");
        assert_eq!((a.names.find("of_b"), b.names.find("of_a")), (None, None));
        assert_eq!(a.names.find("Int64"), b.names.find("Int64"));
        let kind = |cx: &Context| cx.types.kind(Type::INT64) as *const _;
        assert_eq!(kind(&a), kind(&b), "one entry for all");
    }

    /// Views share numbers, and a type lives, with all that it names, as long as a view that has seen it.
    #[test]
    fn views_share_numbers_and_what_they_have_seen() {
        let (a, elsewhere) = (Context::new(), Context::new());
        let b = a.view();
        assert!(a.is_same(&b) && !a.is_same(&elsewhere));
        assert_eq!((a.address(), a.views()), (b.address(), 2));
        let f = b.types.function_of("A.f");
        assert_eq!(a.types.function_of("A.f"), f);
        let name = b.names.intern("of_b");
        let tuple = b.types.tuple(&[b.types.function_of("g"), b.types.sym(name)]).unwrap();
        let lost = b.types.function_of("lost");
        let c = a.view();
        assert_eq!(c.types.display(tuple).to_string(), "Tuple{typeof(g), :of_b}");
        drop(b);
        assert_eq!((c.names.text(name), c.types.has(lost)), ("of_b", false));
        assert_eq!(c.types.display(tuple).to_string(), "Tuple{typeof(g), :of_b}");
        assert_ne!(c.types.function_of("lost"), lost);
        assert_eq!(a.types.display(f).to_string(), "typeof(A.f)");
    }

    /// What a view holds is charged to its meter, each entry once, until the view is dropped.
    #[test]
    fn a_view_charges_what_it_holds() {
        let (meter, cx) = (Arc::default(), Context::new());
        let view = cx.metered_view(&meter);
        let made = |n: i64| view.types.tuple(&[view.types.int(n)]).unwrap();
        let empty = meter.bytes();
        let first = made(0);
        let one = meter.bytes();
        assert!(one > empty && first == made(0) && meter.bytes() == one, "{empty} {one}");
        for n in 1..100 {
            let ty = made(n);
            assert!(view.types.layout(ty).is_err());
        }
        let hundred = meter.bytes() - empty;
        assert_eq!(meter.bytes(), view.bytes());
        assert!((50 * (one - empty)..200 * (one - empty)).contains(&hundred), "{one} {hundred}");
        view.names.intern(&"long".repeat(1000));
        assert!(meter.bytes() > hundred + 4000);
        drop(view);
        assert_eq!(meter.bytes(), 0);
    }

    /// A declaration keeps its body, although no view has looked at what that names; cycles are freed with
    /// the context.
    #[test]
    fn declarations_belong_to_all_views() {
        let a = Context::new();
        let b = a.view();
        let node = b.types.declare(b.names.intern("Node"), &[]).unwrap();
        let ty = b.types.nominal(node, &[]).unwrap();
        let next = b.types.union(&[Type::NOTHING, ty]).unwrap();
        let fields = Box::new([FieldDecl::new(b.names.intern("next"), next)]);
        b.types.define(node, Type::ANY, DeclKind::Struct { mutable: true, fields }).unwrap();
        let names = Arc::downgrade(&b.names);
        drop(b);
        assert!(names.upgrade().is_none());
        let node = a.types.find_decl(a.names.find("Node").unwrap()).unwrap();
        let ty = a.types.nominal(node, &[]).unwrap();
        let field = &a.types.fields(ty).unwrap()[0];
        assert_eq!(
            (a.names.text(field.name), a.types.display(field.ty).to_string()),
            ("next", "Union{Nothing, Node}".into())
        );
        assert_eq!(a.types.layout(ty).unwrap().fields.len(), 1);
    }

    /// A later declaration is freed with the last view that has read one of its types, together with all that
    /// its body names, cycles included; until then each view sees all of it.
    #[test]
    fn later_declarations_end_with_their_views() {
        let a = Context::new();
        let declare = |cx: &Context, name, fields: &[(&str, Type)]| {
            let decl = cx.types.declare(name, &[]).unwrap();
            let field = |&(name, ty): &(&str, Type)| FieldDecl::new(cx.names.intern(name), ty);
            let fields = fields.iter().map(field).collect();
            cx.types.define(decl, Type::ANY, DeclKind::Struct { mutable: true, fields }).map(|()| decl)
        };
        let first = declare(&a, a.names.intern("Node"), &[]).unwrap();
        for _ in 0..3000 {
            let b = a.view();
            let (node, leaf) = (b.names.homonym("Node", 1), b.names.homonym("Leaf", 1));
            let decl = b.types.declare(node, &[]).unwrap();
            let ty = b.types.nominal(decl, &[]).unwrap();
            let of = b.types.nominal(declare(&b, leaf, &[("of", ty)]).unwrap(), &[]).unwrap();
            let leaves = b.types.vector(of).unwrap();
            let list = b.types.vector(ty).unwrap();
            assert_eq!(declare(&b, node, &[("leaves", leaves), ("list", list)]), Ok(decl));
            assert!(declare(&b, node, &[]).is_err());
            let (c, d) = (a.view(), a.view());
            // `c` has only looked at a type that names it.
            assert!(c.types.has(list));
            drop(b);
            let (found, _) = c.types.nominal_parts(c.types.array_parts(list).unwrap().0).unwrap();
            assert_eq!((found, found == first), (decl, false));
            let texts: Vec<String> = c
                .types
                .fields(ty)
                .unwrap()
                .iter()
                .map(|field| c.types.display(field.ty).to_string())
                .collect();
            assert_eq!(texts, ["Vector{Leaf}", "Vector{Node}"]);
            assert!(d.types.find_own(d.names.homonym("Node", 1)) == Some(decl));
            drop(c);
            assert_eq!(d.types.fields(ty).map(<[_]>::len), Some(2));
            drop(d);
            assert_eq!(a.types.find_own(a.names.homonym("Node", 1)), None);
            assert!(!a.types.has(ty));
        }
        assert!(a.bytes() < 100_000, "{}", a.bytes());
    }

    /// The function of a homonym keeps its identity as long as a view has its type.
    #[test]
    fn the_name_of_a_homonym_lives_with_its_type() {
        let a = Context::new();
        let b = a.view();
        let name = FunctionName { module: b.names.intern("Main"), name: b.names.homonym("kind", 1) };
        let ty = b.types.function_named(name);
        let c = a.view();
        assert!(c.types.has(ty));
        drop(b);
        assert_eq!(c.types.function_named(FunctionName { name: c.names.homonym("kind", 1), ..name }), ty);
        assert_eq!(c.types.display(ty).to_string(), "typeof(kind)");
    }

    /// A function passed from one view to another is held with all that it names.
    #[test]
    fn a_function_is_held_by_the_view_that_takes_it() {
        let a = Context::new();
        let b = a.view();
        let ty = b.types.tuple(&[b.types.function_of("deep")]).unwrap();
        let mut func = Func::new(b.names.intern("fresh"), Level::High, Signature::default());
        func.add_callee(CalleeData::Method {
            function: b.types.function_of("callee"),
            args: [ty].into(),
            result: Type::ANY,
        });
        let c = a.view();
        assert!(c.hold(&func));
        drop(b);
        assert!(c.hold(&func) && !Context::new().hold(&func));
        assert_eq!(c.types.display(ty).to_string(), "Tuple{typeof(deep)}");
    }

    /// Queries about builtin types are answered from the shared table and add nothing to a context.
    #[test]
    fn the_builtin_types_are_settled() {
        let cx = Context::new();
        let first = cx.types.function_of("first").index();
        for decl in cx.types.decls().filter(|decl| decl.is_builtin()) {
            if let Ok(ty) = cx.types.nominal(decl, &[])
                && cx.types.decl(decl).params.is_empty()
            {
                let _ = (cx.types.layout(ty), cx.types.fields(ty), cx.types.supertype(ty));
            }
        }
        assert_eq!(cx.types.function_of("second").index(), first + 1);
    }
}
