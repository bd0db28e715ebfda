//! Expressions: operators by the types of their operands, accesses with their checks, calls.

use super::Lower;
use super::rows::Value;
use super::syntax::Expr;

/// The element type of an array type.
pub(super) fn element_of(array: &str) -> String {
    let inner = array.split_once('{').map(|(_, rest)| &rest[..rest.len() - 1]);
    inner.unwrap_or_else(|| panic!("{array} is no array")).to_owned()
}

fn is_float(ty: &str) -> bool {
    ty.starts_with("Float")
}

fn is_unsigned(ty: &str) -> bool {
    ty.starts_with("UInt") || ty == "Bool" || ty == "Char"
}

fn bits(ty: &str) -> u32 {
    match ty {
        "Bool" => 8,
        "Char" => 32,
        _ => ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(64),
    }
}

fn is_number(ty: &str) -> bool {
    matches!(
        ty,
        "Int8"
            | "Int16"
            | "Int32"
            | "Int64"
            | "UInt8"
            | "UInt16"
            | "UInt32"
            | "UInt64"
            | "Float32"
            | "Float64"
    )
}

impl Lower<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Value {
        match expr {
            Expr::Literal(text, ty) => Value::new(text, ty),
            Expr::Name(name) => {
                self.env.get(name).unwrap_or_else(|| panic!("`{name}` has no value here")).clone()
            }
            Expr::Unary(operator, operand) => {
                if operator == "-"
                    && let Expr::Literal(text, ty) = operand.as_ref()
                {
                    return Value::new(&format!("-{text}"), ty);
                }
                let v = self.expr(operand);
                let name = match (operator.as_str(), is_float(&v.ty)) {
                    ("-", true) => "neg_float",
                    ("-", false) => "neg_int",
                    _ => "not_int",
                };
                self.rows.row(&format!("Base.{name}({})", v.text), &v.ty)
            }
            Expr::Binary(operator, ..) if operator == "&&" || operator == "||" => {
                let (yes, no) = (Value::new("true", "Bool"), Value::new("false", "Bool"));
                self.choice(expr, |_| yes, |_| no)
            }
            Expr::Binary(operator, a, b) => {
                if operator == "%"
                    && let Expr::Name(ty) = b.as_ref()
                    && is_number(ty)
                {
                    let v = self.expr(a);
                    return self.wrapped(&v, ty);
                }
                let (a, b) = (self.expr(a), self.expr(b));
                self.binary(operator, a, b)
            }
            Expr::Index(array, indices) => {
                let array = self.expr(array);
                let (element, reference) = self.reference(&array, indices);
                self.rows.row(&format!("Base.memoryrefget({}, :not_atomic, false)", reference.text), &element)
            }
            Expr::Field(object, field) => {
                let object = self.expr(object);
                let ty = self.field_type(&object.ty, field);
                self.rows.row(&format!("Base.getfield({}, :{field})", object.text), &ty)
            }
            Expr::Call(name, args) => self.call(name, args),
            Expr::Choice(cond, yes, no) => self.choice(cond, |l| l.expr(yes), |l| l.expr(no)),
        }
    }

    fn choice(
        &mut self,
        cond: &Expr,
        yes: impl FnOnce(&mut Self) -> Value,
        no: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let before = self.env.clone();
        let other = self.rows.create();
        self.branch(cond, other);
        let a = yes(self);
        let from_a = self.rows.current();
        self.rows.leave();
        self.env = before;
        self.rows.start(other);
        let b = no(self);
        let from_b = self.rows.current();
        self.rows.leave();
        let join = self.rows.create();
        self.rows.jump(from_a, join);
        self.rows.jump(from_b, join);
        self.rows.start(join);
        self.rows.phi(vec![(from_a, a.text), (from_b, b.text)], &a.ty)
    }

    /// Branches to `no` unless the condition holds, and continues in a new block.
    pub(super) fn branch(&mut self, cond: &Expr, no: usize) {
        match cond {
            Expr::Binary(operator, a, b) if operator == "&&" => {
                self.branch(a, no);
                self.branch(b, no);
            }
            Expr::Binary(operator, a, b) if operator == "||" => {
                let (second, inside) = (self.rows.create(), self.rows.create());
                let before = self.env.clone();
                self.branch(a, second);
                self.rows.goto(inside);
                self.env = before;
                self.rows.start(second);
                self.branch(b, no);
                self.rows.goto(inside);
                self.rows.start(inside);
            }
            _ => {
                let value = self.expr(cond);
                self.rows.unless(&value.text, no);
                // `x !== nothing` says which type `x` has.
                if let Expr::Binary(operator, a, b) = cond
                    && operator == "!=="
                    && let (Expr::Name(name), Expr::Literal(nothing, _)) = (a.as_ref(), b.as_ref())
                    && nothing == "nothing"
                {
                    let value = self.env[name].clone();
                    let inner = element_of(&value.ty);
                    let ty = inner.split(", ").find(|t| *t != "Nothing").unwrap_or(&inner);
                    let known = self.rows.bare(&format!("π ({}, {ty})", value.text));
                    self.env.insert(name.clone(), Value::new(&known, ty));
                }
            }
        }
    }

    fn binary(&mut self, operator: &str, a: Value, b: Value) -> Value {
        let (x, y) = (&a.text, &b.text);
        if matches!(operator, "===" | "!==") {
            let same = self.rows.row(&format!("({x} === {y})"), "Bool");
            return if operator == "===" {
                same
            } else {
                self.rows.row(&format!("Base.not_int({})", same.text), "Bool")
            };
        }
        if matches!(operator, "<<" | ">>" | ">>>") {
            return self.shift(operator, &a, &b);
        }
        assert_eq!(a.ty, b.ty, "`{x} {operator} {y}` has operands of two types");
        let (float, unsigned) = (is_float(&a.ty), is_unsigned(&a.ty));
        if operator == "/" && !float {
            let (a, b) = (self.converted(&a, "Float64"), self.converted(&b, "Float64"));
            return self.binary("/", a, b);
        }
        let comparison = |name: &str, x: &str, y: &str| {
            let suffix = if float { "_float" } else { "_int" };
            let sign = match (float, unsigned) {
                (true, _) => "",
                (false, true) => "u",
                (false, false) => "s",
            };
            format!("Base.{sign}{name}{suffix}({x}, {y})")
        };
        let text = match operator {
            "<" => comparison("lt", x, y),
            "<=" => comparison("le", x, y),
            ">" => comparison("lt", y, x),
            ">=" => comparison("le", y, x),
            "==" if float => format!("Base.eq_float({x}, {y})"),
            "!=" if float => format!("Base.ne_float({x}, {y})"),
            "==" | "!=" => format!("({x} === {y})"),
            _ => {
                let name = match (operator, float, unsigned) {
                    ("+", true, _) => "add_float",
                    ("-", true, _) => "sub_float",
                    ("*", true, _) => "mul_float",
                    ("/", true, _) => "div_float",
                    ("+", ..) => "add_int",
                    ("-", ..) => "sub_int",
                    ("*", ..) => "mul_int",
                    ("÷", _, false) => "checked_sdiv_int",
                    ("÷", ..) => "checked_udiv_int",
                    ("%", _, false) => "checked_srem_int",
                    ("%", ..) => "checked_urem_int",
                    ("&", ..) => "and_int",
                    ("|", ..) => "or_int",
                    ("⊻", ..) => "xor_int",
                    other => panic!("no operator {other:?}"),
                };
                return self.rows.row(&format!("Base.{name}({x}, {y})"), &a.ty);
            }
        };
        let result = self.rows.row(&text, "Bool");
        if operator == "!=" && !float {
            return self.rows.row(&format!("Base.not_int({})", result.text), "Bool");
        }
        result
    }

    /// A shift by a number that may be negative goes the other way then.
    fn shift(&mut self, operator: &str, a: &Value, by: &Value) -> Value {
        let right = if operator == ">>" && !is_unsigned(&a.ty) { "ashr_int" } else { "lshr_int" };
        let (one, other) = if operator == "<<" { ("shl_int", right) } else { (right, "shl_int") };
        if let Ok(count) = by.text.parse::<u64>() {
            return self.rows.row(&format!("Base.{one}({}, 0x{count:016x})", a.text), &a.ty);
        }
        if is_unsigned(&by.ty) {
            return self.rows.row(&format!("Base.{one}({}, {})", a.text, by.text), &a.ty);
        }
        let forward = self.rows.row(&format!("Base.sle_int(0, {})", by.text), "Bool");
        let count = self.rows.row(&format!("Base.bitcast(UInt64, {})", by.text), "UInt64");
        let there = self.rows.row(&format!("Base.{one}({}, {})", a.text, count.text), &a.ty);
        let negative = self.rows.row(&format!("Base.neg_int({})", by.text), "Int64");
        let count = self.rows.row(&format!("Base.bitcast(UInt64, {})", negative.text), "UInt64");
        let back = self.rows.row(&format!("Base.{other}({}, {})", a.text, count.text), &a.ty);
        self.rows.row(&format!("Core.ifelse({}, {}, {})", forward.text, there.text, back.text), &a.ty)
    }

    /// `value % ty`.
    fn wrapped(&mut self, value: &Value, ty: &str) -> Value {
        let name = match bits(ty).cmp(&bits(&value.ty)) {
            std::cmp::Ordering::Less => "trunc_int",
            std::cmp::Ordering::Equal => "bitcast",
            std::cmp::Ordering::Greater if is_unsigned(&value.ty) => "zext_int",
            std::cmp::Ordering::Greater => "sext_int",
        };
        self.rows.row(&format!("Base.{name}({ty}, {})", value.text), ty)
    }

    fn converted(&mut self, value: &Value, ty: &str) -> Value {
        let name = match (is_float(&value.ty), is_float(ty)) {
            (false, false) => return self.wrapped(value, ty),
            (true, false) => "fptosi",
            (true, true) if bits(ty) < bits(&value.ty) => "fptrunc",
            (true, true) => "fpext",
            (false, true) if is_unsigned(&value.ty) => "uitofp",
            (false, true) => "sitofp",
        };
        self.rows.row(&format!("Base.{name}({ty}, {})", value.text), ty)
    }

    pub(super) fn field_type(&self, ty: &str, field: &str) -> String {
        let found = self.program.structs.iter().find(|s| s.name == ty);
        let found = found.unwrap_or_else(|| panic!("{ty} has no declaration"));
        let field = found.fields.iter().find(|(n, _)| n == field);
        field.unwrap_or_else(|| panic!("{ty} has no such field")).1.clone()
    }

    pub(super) fn length(&mut self, array: &Value) -> Value {
        if array.ty.starts_with("Memory") {
            return self.rows.row(&format!("Base.getfield({}, :length)", array.text), "Int64");
        }
        let size = self.rows.row(&format!("Base.getfield({}, :size)", array.text), "Tuple{Int64}");
        self.rows.row(&format!("Base.getfield({}, 1, true)", size.text), "Int64")
    }

    /// The reference to an element, checked unless it is `@inbounds`.
    pub(super) fn reference(&mut self, array: &Value, indices: &[Expr]) -> (String, Value) {
        let indices: Vec<Value> = indices.iter().map(|i| self.expr(i)).collect();
        if let [index] = &indices[..] {
            return self.reference_at(array, index);
        }
        // A matrix: columns are contiguous.
        let element = element_of(&array.ty);
        let element = element.split(", ").next().unwrap_or("").to_owned();
        let size = self.rows.row(&format!("Base.getfield({}, :size)", array.text), "Tuple{Int64, Int64}");
        let high = self.rows.row(&format!("Base.getfield({}, 1, true)", size.text), "Int64");
        if !self.inbounds {
            let wide = self.rows.row(&format!("Base.getfield({}, 2, true)", size.text), "Int64");
            let a = self.in_range(&indices[0], &high);
            let b = self.in_range(&indices[1], &wide);
            let inside = self.rows.row(&format!("Base.and_int({}, {})", a.text, b.text), "Bool");
            let index = format!("Core.tuple({}, {})", indices[0].text, indices[1].text);
            self.throw_unless(&inside, array, &index, "Tuple{Int64, Int64}");
        }
        let column = self.rows.row(&format!("Base.sub_int({}, 1)", indices[1].text), "Int64");
        let start = self.rows.row(&format!("Base.mul_int({}, {})", high.text, column.text), "Int64");
        let index = self.rows.row(&format!("Base.add_int({}, {})", start.text, indices[0].text), "Int64");
        let from = self
            .rows
            .row(&format!("Base.getfield({}, :ref)", array.text), &format!("MemoryRef{{{element}}}"));
        let text = format!("Base.memoryrefnew({}, {}, false)", from.text, index.text);
        let reference = self.rows.row(&text, &format!("MemoryRef{{{element}}}"));
        (element, reference)
    }

    fn in_range(&mut self, index: &Value, length: &Value) -> Value {
        let offset = self.rows.row(&format!("Base.sub_int({}, 1)", index.text), "Int64");
        let offset = self.rows.row(&format!("Base.bitcast(UInt64, {})", offset.text), "UInt64");
        let limit = self.rows.row(&format!("Base.bitcast(UInt64, {})", length.text), "UInt64");
        self.rows.row(&format!("Base.ult_int({}, {})", offset.text, limit.text), "Bool")
    }

    fn throw_unless(&mut self, inside: &Value, array: &Value, index: &str, index_type: &str) {
        let (out, access) = (self.rows.create(), self.rows.create());
        self.rows.unless(&inside.text, out);
        self.rows.goto(access);
        self.rows.start(out);
        let index = self.rows.row(index, index_type);
        let text = format!(
            "invoke Base.throw_boundserror({}::{}, {}::{index_type})",
            array.text, array.ty, index.text
        );
        self.rows.row(&text, "Union{}");
        self.rows.end("unreachable");
        self.rows.start(access);
    }

    pub(super) fn reference_at(&mut self, array: &Value, index: &Value) -> (String, Value) {
        let element = element_of(&array.ty);
        let ty = format!("MemoryRef{{{element}}}");
        if array.ty.starts_with("Memory{") {
            let from = self.rows.row(&format!("Core.memoryrefnew({})", array.text), &ty);
            let check = !self.inbounds;
            let text = format!("Core.memoryrefnew({}, {}, {check})", from.text, index.text);
            return (element, self.rows.row(&text, &ty));
        }
        if !self.inbounds {
            let length = self.length(array);
            let inside = self.in_range(index, &length);
            self.throw_unless(&inside, array, &format!("Core.tuple({})", index.text), "Tuple{Int64}");
        }
        let from = self.rows.row(&format!("Base.getfield({}, :ref)", array.text), &ty);
        let text = format!("Base.memoryrefnew({}, {}, false)", from.text, index.text);
        (element, self.rows.row(&text, &ty))
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> Value {
        if let Some((container, _)) = name.split_once('{') {
            let sizes: Vec<Value> = args.iter().skip(1).map(|a| self.expr(a)).collect();
            return self.array(container, name, &sizes);
        }
        let args: Vec<Value> = args
            .iter()
            .map(|a| match a {
                Expr::Name(ty) if is_number(ty) => Value::new(ty, "Type"),
                other => self.expr(other),
            })
            .collect();
        let of = |n: usize| args[n].text.as_str();
        let ty = args.first().map_or("", |a| a.ty.as_str());
        match (name, args.len()) {
            ("length", 1) => return self.length(&args[0]),
            ("sqrt", 1) => {
                let negative = self.rows.row(&format!("Base.lt_float({}, 0.0)", of(0)), "Bool");
                let fine = self.rows.create();
                self.rows.unless(&negative.text, fine);
                let text =
                    format!("invoke Base.throw_complex_domainerror(:sqrt::Symbol, {}::Float64)", of(0));
                self.rows.row(&text, "Union{}");
                self.rows.end("unreachable");
                self.rows.start(fine);
                return self.rows.row(&format!("Base.sqrt_llvm({})", of(0)), "Float64");
            }
            ("abs", 1) if is_float(ty) => return self.rows.row(&format!("Base.abs_float({})", of(0)), ty),
            ("abs", 1) => return self.rows.row(&format!("Base.flipsign_int({0}, {0})", of(0)), ty),
            ("min" | "max", 2) if !is_float(ty) => {
                let (a, b) = if name == "min" { (of(0), of(1)) } else { (of(1), of(0)) };
                let less = self.binary("<", Value::new(a, ty), Value::new(b, ty));
                return self.rows.row(&format!("Core.ifelse({}, {}, {})", less.text, of(0), of(1)), ty);
            }
            ("ifelse", 3) => {
                let text = format!("Core.ifelse({}, {}, {})", of(0), of(1), of(2));
                return self.rows.row(&text, &args[1].ty);
            }
            ("count_ones" | "trailing_zeros" | "leading_zeros", 1) => {
                let row = match name {
                    "count_ones" => "ctpop_int",
                    "trailing_zeros" => "cttz_int",
                    _ => "ctlz_int",
                };
                let bits = self.rows.row(&format!("Base.{row}({})", of(0)), ty);
                return self.wrapped(&bits, "Int64");
            }
            ("reinterpret", 2) => {
                return self.rows.row(&format!("Base.bitcast({}, {})", of(0), of(1)), of(0));
            }
            ("unsafe_trunc", 2) => return self.converted(&args[1], of(0)),
            ("ncodeunits", 1) => return self.rows.row(&format!("Core.sizeof({})", of(0)), "Int64"),
            ("codeunit", 2) => return self.codeunit(&args[0], &args[1]),
            _ if is_number(name) => return self.converted(&args[0], name),
            _ => {}
        }
        if let Some(of) = self.program.structs.iter().find(|s| s.name == name) {
            let fields: Vec<&str> = args.iter().map(|a| a.text.as_str()).collect();
            assert_eq!(fields.len(), of.fields.len(), "{name} has other fields");
            return self.rows.row(&format!("%new({name}, {})", fields.join(", ")), name);
        }
        let object = self.env.get(name).cloned();
        let wanted = object.as_ref().map_or(name, |o| o.ty.as_str());
        let callee = self.program.functions.iter().find(|f| f.name == wanted);
        let callee = callee.unwrap_or_else(|| panic!("no function {wanted}"));
        assert_eq!(callee.params.len(), args.len(), "{name} takes other arguments");
        let typed: Vec<String> =
            args.iter().zip(&callee.params).map(|(a, (_, ty))| format!("{}::{ty}", a.text)).collect();
        let function = object.map_or_else(|| format!("Main.{name}"), |o| o.text);
        let result = callee.result.clone();
        self.rows.row(&format!("invoke {function}({})", typed.join(", ")), &result)
    }

    fn array(&mut self, container: &str, name: &str, sizes: &[Value]) -> Value {
        let element = element_of(name);
        if container == "Memory" {
            return self.rows.row(&format!("Core.memorynew({name}, {})", sizes[0].text), name);
        }
        let mut total = sizes[0].clone();
        if let [high, wide] = sizes {
            total = self.rows.row(&format!("Base.mul_int({}, {})", high.text, wide.text), "Int64");
        }
        let memory = format!("Memory{{{element}}}");
        let memory = self.rows.row(&format!("Core.memorynew({memory}, {})", total.text), &memory);
        let reference =
            self.rows.row(&format!("Core.memoryrefnew({})", memory.text), &format!("MemoryRef{{{element}}}"));
        let texts: Vec<&str> = sizes.iter().map(|s| s.text.as_str()).collect();
        let types = vec!["Int64"; sizes.len()].join(", ");
        let size = self.rows.row(&format!("Core.tuple({})", texts.join(", ")), &format!("Tuple{{{types}}}"));
        self.rows.row(&format!("%new({name}, {}, {})", reference.text, size.text), name)
    }

    fn codeunit(&mut self, string: &Value, index: &Value) -> Value {
        if !self.inbounds {
            let length = self.rows.row(&format!("Core.sizeof({})", string.text), "Int64");
            let inside = self.in_range(index, &length);
            self.throw_unless(&inside, string, &format!("Base.add_int({}, 0)", index.text), "Int64");
        }
        let kept = self.rows.bare(&format!("$(Expr(:gc_preserve_begin, :({})))", string.text));
        let text = format!(
            "$(Expr(:foreigncall, :(:jl_string_ptr), Ptr{{UInt8}}, svec(Any), 0, :(:ccall), :({})))",
            string.text
        );
        let pointer = self.rows.row(&text, "Ptr{UInt8}");
        let unit = self.rows.row(&format!("Base.pointerref({}, {}, 1)", pointer.text, index.text), "UInt8");
        self.rows.bare(&format!("$(Expr(:gc_preserve_end, :({kept})))"));
        unit
    }
}
