//! Exceptions as Julia's `showerror` writes them, for the messages of uncaught ones.
//!
//! | exception | text |
//! |---|---|
//! | `DivideError()` | `DivideError: integer division error` |
//! | `BoundsError([1, 2], 5)` | `BoundsError: attempt to access 2-element Vector{Int64} at index [5]` |
//! | `ErrorException("no")` | `no` |
//! | `InterruptException()` | `InterruptException: the program was interrupted`, where Julia stops after the colon |
//! | `StackOverflowError()` | `StackOverflowError: the stack is used up`, likewise |
//! | `MethodError(f, (1, "a"), …)` | `MethodError: no method matching f(::Int64, ::String)` |
//! | the same with [`AMBIGUOUS_WORLD`] | `MethodError: f(::Int64, ::String) is ambiguous` |
//! | any other object | its text by `show` |

use super::compose::{print, show};
use super::forms::singleton;
use super::item::{Graph, MAX_SHOWN, TypeIn, View};
use crate::types::{Type, TypeKind, decl};

/// The world in a `MethodError` of a call to which several methods apply, none of them the most specific.
/// Julia looks them up again when it writes the text; here the exception records it, so the text stays true
/// when methods are added. The greatest number is the world of a `MethodError` that a program makes without
/// one, and no program has as many worlds as the number below it.
pub const AMBIGUOUS_WORLD: u64 = u64::MAX - 1;

/// The context of the `TypeError` of an `invoke` whose arguments do not match its signature.
pub const INVOKE_MISFIT: &str = "invoke: argument type error";

/// The text of an exception of Base that consists of its name and at most one text, its first field; `None`
/// for any other.
pub fn show_plain_error(name: &str, message: Option<&str>) -> Option<String> {
    Some(match (name, message) {
        ("DivideError", _) => format!("{name}: integer division error"),
        ("UndefRefError", _) => format!("{name}: access to undefined reference"),
        ("StackOverflowError", _) => format!("{name}: the stack is used up"),
        ("InterruptException", _) => format!("{name}: the program was interrupted"),
        ("ErrorException", Some(message)) => message.to_owned(),
        (
            "ArgumentError"
            | "DimensionMismatch"
            | "AssertionError"
            | "OverflowError"
            | "CompileError"
            | "ConcurrencyViolationError",
            Some(message),
        ) => format!("{name}: {message}"),
        _ => return None,
    })
}

/// The text of an uncaught exception.
pub fn show_error<'t, G: Graph<'t>>(graph: &mut G, node: &G::Node) -> Result<String, G::Error> {
    let ty = graph.ty(node);
    if !is_builtin_exception(ty) {
        return show(graph, node);
    }
    let name = ty.text();
    let fields = match graph.view(node, MAX_SHOWN)? {
        View::Fields(fields) => fields,
        _ => Vec::new(),
    };
    let mut text = Texts { graph, fields };
    if let Some(plain) = show_plain_error(&name, None) {
        return Ok(plain);
    }
    // The name alone determines whether the exception consists of one text.
    if show_plain_error(&name, Some("")).is_some() {
        let message = text.printed(0)?;
        return Ok(show_plain_error(&name, Some(&message)).unwrap_or(message));
    }
    Ok(match name.as_str() {
        "DomainError" => {
            let (val, why) = (text.shown(0)?, text.printed(1)?);
            if why.is_empty() { format!("{name} with {val}") } else { format!("{name} with {val}:\n{why}") }
        }
        "BoundsError" => name + &text.bounds()?,
        "InexactError" => format!("{name}: {}{}", text.printed(0)?, text.inexact()?),
        "UndefVarError" => format!("{name}: `{}` not defined", text.printed(0)?),
        "TypeError" => format!("{name}: {}", text.type_error()?),
        "MethodError" => {
            let (is_ambiguous, call) = (text.is_ambiguous()?, text.method_error()?);
            if is_ambiguous {
                format!("{name}: {call} is ambiguous")
            } else {
                format!("{name}: no method matching {call}")
            }
        }
        "FieldError" => format!("{name}: type {} has no field `{}`", text.shown(0)?, text.printed(1)?),
        "KeyError" => format!("{name}: key {} not found", text.shown(0)?),
        _ => show(text.graph, node)?,
    })
}

fn is_builtin_exception(ty: TypeIn<'_>) -> bool {
    let builtin = ty.types.nominal_parts(ty.ty).is_some_and(|(decl, _)| decl.is_builtin());
    builtin && ty.types.nominal_parts(ty.types.supertype(ty.ty)).is_some_and(|(d, _)| d == decl::EXCEPTION)
}

/// The fields of an exception.
struct Texts<'g, G, N> {
    graph: &'g mut G,
    fields: Vec<Option<N>>,
}

impl<'t, G: Graph<'t>> Texts<'_, G, G::Node> {
    fn field(&self, index: usize) -> Option<G::Node> {
        self.fields.get(index).cloned().flatten()
    }

    fn shown(&mut self, index: usize) -> Result<String, G::Error> {
        match self.field(index) {
            Some(node) => show(self.graph, &node),
            None => Ok("#undef".to_owned()),
        }
    }

    fn printed(&mut self, index: usize) -> Result<String, G::Error> {
        match self.field(index) {
            Some(node) => Ok(String::from_utf8_lossy(&print(self.graph, &node)?).into_owned()),
            None => Ok("#undef".to_owned()),
        }
    }

    /// The accessed object and index.
    fn bounds(&mut self) -> Result<String, G::Error> {
        let (of, at) = (self.field(0), self.field(1));
        let what = match of {
            Some(of) => format!(" {}", self.summary(&of)?),
            None if at.is_none() => return Ok(String::new()),
            None => String::new(),
        };
        let Some(at) = at else { return Ok(format!(": attempt to access{what}")) };
        let place = if what.is_empty() { "" } else { " at" };
        let index = match self.graph.view(&at, MAX_SHOWN)? {
            View::Fields(parts) => {
                let parts = parts.iter().flatten().map(|part| show(self.graph, part));
                parts.collect::<Result<Vec<_>, _>>()?.join(", ")
            }
            _ => show(self.graph, &at)?,
        };
        Ok(format!(": attempt to access{what}{place} index [{index}]"))
    }

    /// The text of Julia's `summary`: the shape of an array, the type of anything else.
    fn summary(&mut self, node: &G::Node) -> Result<String, G::Error> {
        let ty = self.type_of(node)?;
        let View::Elements { dims, .. } = self.graph.view(node, 0)? else { return Ok(ty) };
        Ok(match dims[..] {
            [] => format!("0-dimensional {ty}"),
            [length] => format!("{length}-element {ty}"),
            _ => {
                let dims: Vec<String> = dims.iter().map(i64::to_string).collect();
                format!("{} {ty}", dims.join("×"))
            }
        })
    }

    /// The name of a value's type.
    fn type_of(&mut self, node: &G::Node) -> Result<String, G::Error> {
        Ok(match self.graph.view(node, MAX_SHOWN)? {
            View::Type(of) => {
                let kind = of.types.type_of_type(of.ty);
                of.types.display(kind).to_string()
            }
            _ => self.graph.ty(node).text(),
        })
    }

    /// The parts of a tuple field.
    fn tuple(&mut self, index: usize) -> Result<Vec<Option<G::Node>>, G::Error> {
        let Some(node) = self.field(index) else { return Ok(Vec::new()) };
        Ok(match self.graph.view(&node, MAX_SHOWN)? {
            View::Fields(parts) => parts,
            _ => Vec::new(),
        })
    }

    /// The target type of a conversion, unless it is the function's name, and the value.
    fn inexact(&mut self) -> Result<String, G::Error> {
        if self.field(1).is_none() {
            return Ok(String::new());
        }
        let func = self.printed(0)?;
        let mut texts = Vec::new();
        for (n, part) in self.tuple(1)?.into_iter().flatten().enumerate() {
            let text = show(self.graph, &part)?;
            if n > 0 || text != func {
                texts.push(text);
            }
        }
        Ok(format!("({})", texts.join(", ")))
    }

    fn type_error(&mut self) -> Result<String, G::Error> {
        if self.field(2).is_none() && self.field(3).is_none() {
            return Ok(format!("in {}", self.printed(0)?));
        }
        let expected = match self.field(2) {
            Some(node) => match self.graph.view(&node, MAX_SHOWN)? {
                View::Type(of) => Some(of),
                _ => None,
            },
            None => None,
        };
        let got = match self.field(3) {
            Some(node) => match self.graph.view(&node, MAX_SHOWN)? {
                View::Type(of) => format!("Type{{{}}}", of.text()),
                _ => format!("a value of type {}", self.type_of(&node)?),
            },
            None => "#undef".to_owned(),
        };
        if expected.is_some_and(|of| of.ty == Type::BOOL) {
            let got = got.strip_prefix("a value of type ").unwrap_or(&got);
            return Ok(format!("non-boolean ({got}) used in boolean context"));
        }
        let (func, context) = (self.printed(0)?, self.printed(1)?);
        let context = if context.is_empty() { context } else { format!(", in {context}") };
        let expected = expected.map_or("#undef".to_owned(), TypeIn::text);
        Ok(format!("in {func}{context}, expected {expected}, got {got}"))
    }

    fn is_ambiguous(&mut self) -> Result<bool, G::Error> {
        let Some(world) = self.field(2) else { return Ok(false) };
        Ok(matches!(self.graph.view(&world, 0)?, View::Bits(bits) if bits == u128::from(AMBIGUOUS_WORLD)))
    }

    /// The callee with the types of its arguments.
    fn method_error(&mut self) -> Result<String, G::Error> {
        let callee = match self.field(0) {
            Some(node) => {
                let ty = self.graph.ty(&node);
                match (self.graph.view(&node, MAX_SHOWN)?, ty.types.kind(ty.ty)) {
                    (View::Type(of), _) => of.text(),
                    (View::Singleton, TypeKind::Function(_)) => singleton(ty),
                    _ => format!("(::{})", ty.text()),
                }
            }
            None => "#undef".to_owned(),
        };
        let types =
            self.tuple(1)?.into_iter().flatten().map(|part| match self.graph.view(&part, MAX_SHOWN)? {
                View::Type(of) => Ok(format!("::Type{{{}}}", of.text())),
                _ => Ok(format!("::{}", self.graph.ty(&part).text())),
            });
        let types = types.collect::<Result<Vec<_>, _>>()?.join(", ");
        Ok(format!("{callee}({types})"))
    }
}
