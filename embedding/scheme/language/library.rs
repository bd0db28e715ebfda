//! The library of programs: functions in the IR, functions of the host, and functions in Scheme.

use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use brolga::build::Type;
use brolga::heap::{Root, Scope};
use brolga::session::{Dylib, Raised, Signature};

use super::Repl;
use super::show::{is_equal, show};

/// Functions in Scheme, read when the prompt is made.
pub(crate) const SCHEME: &str = "
(define (not x) (if x #f #t))
(define (cadr x) (car (cdr x)))
(define (cddr x) (cdr (cdr x)))
(define (caddr x) (car (cddr x)))
(define (length items) (let loop ((items items) (n 0)) (if (null? items) n (loop (cdr items) (+ n 1)))))
(define (reverse items) (let loop ((items items) (out '())) (if (null? items) out (loop (cdr items) (cons (car items) out)))))
(define (append a b) (if (null? a) b (cons (car a) (append (cdr a) b))))
(define (map f items) (if (null? items) '() (cons (f (car items)) (map f (cdr items)))))
(define (for-each f items) (let loop ((items items)) (unless (null? items) (f (car items)) (loop (cdr items)))))
(define (filter keep? items)
  (cond ((null? items) '()) ((keep? (car items)) (cons (car items) (filter keep? (cdr items)))) (else (filter keep? (cdr items)))))
(define (fold f start items) (let loop ((items items) (sum start)) (if (null? items) sum (loop (cdr items) (f sum (car items))))))
(define (list-ref items n) (if (= n 0) (car items) (list-ref (cdr items) (- n 1))))
(define (zero? n) (= n 0))
(define (even? n) (= (remainder n 2) 0))
(define (odd? n) (not (even? n)))
(define (abs n) (if (< n 0) (- n) n))
(define (max a b) (if (< a b) b a))
(define (min a b) (if (< a b) a b))
";

/// Structures, tests and what looks into objects.
const OBJECTS: &str = "
struct Nil
end
mutable struct Cons
    car::Any
    cdr::Any
end
function var\"@nil\"()::Any
1 ─ %1 = %new(Nil)::Nil
└──      return %1
end
function var\"@cons\"(a::Any, b::Any)::Any
1 ─ %1 = %new(Cons, a, b)::Cons
└──      return %1
end
function var\"@eq?\"(a::Any, b::Any)::Any
1 ─ %1 = (a === b)::Bool
└──      return %1
end
function var\"@display\"(x::Any)::Any
1 ─      invoke Main.var\"host write\"(x::Any)::Any
└──      return nothing
end
function var\"@newline\"()::Any
1 ─      invoke Main.var\"host write\"(\"\\n\"::Any)::Any
└──      return nothing
end
function var\"@error\"(text::Any, x::Any)::Any
1 ─ %1 = invoke Main.var\"host fail\"(text::Any, x::Any)::Any
└──      return %1
end
";

/// The library in the IR.
pub(crate) fn ir() -> String {
    let mut text = OBJECTS.to_owned();
    for field in ["car", "cdr"] {
        let _ = write!(
            text,
            "function var\"@{field}\"(p::Any)::Any
1 ─ %1 = (p isa Cons)::Bool
└──      goto #3 if not %1
2 ─ %3 = π (p, Cons)
│   %4 = Base.getfield(%3, :{field})::Any
└──      return %4
3 ─ %6 = invoke Main.var\"host fail\"(\"{field}: no pair:\"::Any, p::Any)::Any
└──      return %6
end
function var\"@set-{field}!\"(p::Any, value::Any)::Any
1 ─ %1 = (p isa Cons)::Bool
└──      goto #3 if not %1
2 ─ %3 = π (p, Cons)
│        Base.setfield!(%3, :{field}, value)::Any
└──      return nothing
3 ─ %6 = invoke Main.var\"host fail\"(\"set-{field}!: no pair:\"::Any, p::Any)::Any
└──      return %6
end
"
        );
    }
    let tests = [
        ("null?", "Nil"),
        ("pair?", "Cons"),
        ("integer?", "Int64"),
        ("number?", "Number"),
        ("string?", "String"),
        ("symbol?", "Symbol"),
        ("boolean?", "Bool"),
        ("procedure?", "Function"),
    ];
    for (name, ty) in tests {
        let _ = write!(
            text,
            "function var\"@{name}\"(x::Any)::Any\n1 ─ %1 = (x isa {ty})::Bool\n└──      return %1\nend\n"
        );
    }
    // Integers here, all other numbers by Base's operators.
    let numbers = [
        ("+", "add_int", "Int64", "+"),
        ("-", "sub_int", "Int64", "-"),
        ("*", "mul_int", "Int64", "*"),
        ("<", "slt_int", "Bool", "<"),
        ("<=", "sle_int", "Bool", "<="),
        ("=", "eq_int", "Bool", "=="),
        ("quotient", "checked_sdiv_int", "Int64", "div"),
        ("remainder", "checked_srem_int", "Int64", "rem"),
    ];
    for (name, op, result, other) in numbers {
        let _ = write!(
            text,
            "function var\"@{name}\"(a::Any, b::Any)::Any
1 ─ %1 = (a isa Int64)::Bool
└──      goto #4 if not %1
2 ─ %3 = (b isa Int64)::Bool
└──      goto #4 if not %3
3 ─ %5 = π (a, Int64)
│   %6 = π (b, Int64)
│   %7 = Base.{op}(%5, %6)::{result}
└──      return %7
4 ┄ %9 = dynamic Base.var\"{other}\"(a, b)::Any
└──      return %9
end
"
        );
    }
    for (name, swapped) in [(">", "<"), (">=", "<=")] {
        let _ = write!(
            text,
            "function var\"@{name}\"(a::Any, b::Any)::Any\n1 ─ %1 = invoke Main.var\"@{swapped}\"(b::Any, a::Any)::Any\n└──      return %1\nend\n"
        );
    }
    text
}

/// The names of the library's functions.
pub(crate) fn names() -> Vec<String> {
    let host = ["equal?", "string-append", "string-length", "number->string", "symbol->string", "eval"];
    let text = ir();
    let name = |line: &str| Some(line.strip_prefix("function var\"@")?.split_once('"')?.0.to_owned());
    text.lines().filter_map(name).chain(host.map(ToOwned::to_owned)).collect()
}

/// Output of compiled code that is not shown yet.
pub(crate) type Output = Arc<Mutex<String>>;

/// Functions of the host. Their first argument is the function object.
pub(crate) fn host(dylib: &Dylib, output: &Output, repl: Weak<Repl>) -> Result<(), brolga::SessionError> {
    let any = |name: &str, params: usize| Signature::new(name, &vec![Type::ANY; params], Type::ANY);
    let sink = output.clone();
    dylib.define_host(&any("host write", 1), move |scope, args| {
        let text = show(args[1].get(scope), false);
        sink.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
        Ok(args[1])
    })?;
    dylib.define_host(&any("host fail", 2), |scope, args| {
        let text = format!("{} {}", show(args[1].get(scope), false), show(args[2].get(scope), true));
        Err(scope.throw_error(&text))
    })?;
    dylib.define_host(&any("@equal?", 2), |scope, args| {
        let is_equal = is_equal(args[1].get(scope), args[2].get(scope));
        scope.bool(is_equal)
    })?;
    dylib.define_host(&any("@string-append", 2), |scope, args| {
        let text = text(scope, args, 1)? + &text(scope, args, 2)?;
        string(scope, &text)
    })?;
    dylib.define_host(&any("@string-length", 1), |scope, args| {
        let length = text(scope, args, 1)?.chars().count();
        scope.int(length as i64).map_err(|error| scope.throw_error(&error.to_string()))
    })?;
    dylib.define_host(&any("@number->string", 1), |scope, args| {
        let text = show(args[1].get(scope), true);
        string(scope, &text)
    })?;
    dylib.define_host(&any("@symbol->string", 1), |scope, args| {
        let text = show(args[1].get(scope), false);
        string(scope, &text)
    })?;
    // Definitions in the middle of a call: running frames keep their world.
    dylib.define_host(&any("@eval", 1), move |scope, args| {
        let text = text(scope, args, 1)?;
        let done = scope.blocking(|| match repl.upgrade() {
            Some(repl) => repl.forms(&text),
            None => vec![Err("the prompt is gone".into())],
        });
        let mut shown = String::new();
        for form in done {
            shown = form.map_err(|error| scope.throw_error(&error))?;
        }
        string(scope, &shown)
    })
}

fn text<'f, 'h>(scope: &mut Scope<'f, 'h>, args: &[Root<'f, 'h>], n: usize) -> Result<String, Raised> {
    let found = args[n].get(scope).text().map(ToOwned::to_owned);
    found.ok_or_else(|| {
        let shown = show(args[n].get(scope), true);
        scope.throw_error(&format!("no string: {shown}"))
    })
}

fn string<'f, 'h>(scope: &mut Scope<'f, 'h>, text: &str) -> Result<Root<'f, 'h>, Raised> {
    scope.string(text.as_bytes()).map_err(|error| scope.throw_error(&error.to_string()))
}
