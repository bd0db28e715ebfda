//! Operands by their roles, and the statements of a target.

use brolga_ir::base_fn::BaseFn;
use brolga_ir::builtin::Builtin;
use brolga_ir::doors::ALLOWED;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};

use super::body::{Val, Writer};
use super::forms::Form;
use super::targets::Target;
use super::{numbers, shared};

/// What an operand is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Value,
    /// A value of which the verifier sees no type.
    Anything,
    Type,
    Generic,
    MemoryType,
    Length,
    /// A memory, or a reference to one.
    Base,
    Ref,
    /// A value of the element type.
    Element,
    Index,
    Order,
    FailureOrder,
    /// Whether bounds are checked.
    Flag,
    Array,
    Object,
    /// An object of which a field is to change.
    Changed,
    Field,
    /// A value of the field's type.
    Part,
    Function,
    Splat,
    Module,
    Global,
    World,
    Bool,
    Barrier,
    Iterate,
}

/// What the operands of one attack have to do with each other.
struct Subject {
    element: &'static str,
    object: usize,
    field: usize,
}

/// Objects with fields: the type, whether fields can be set, and the names and types of the fields.
const OBJECTS: [(&str, bool, &[(&str, &str)]); 9] = [
    (
        "Mu",
        true,
        &[
            ("a", "Any"),
            ("b", "Int64"),
            ("c", "S24"),
            ("d", "Union{Int8, Nothing}"),
            ("e", "Int64"),
            ("f", "Int8"),
            ("g", "S3"),
        ],
    ),
    (
        "At",
        true,
        &[
            ("a", "Any"),
            ("b", "Int64"),
            ("c", "S12"),
            ("d", "Union{Int8, Nothing}"),
            ("e", "Int128"),
            ("f", "S24"),
            ("g", "Bool"),
        ],
    ),
    ("Self", true, &[("a", "Union{Nothing, Self}"), ("b", "Any")]),
    ("Cell{Union{Int8, Int64}}", true, &[("a", "Union{Int8, Int64}")]),
    ("Cell{T2}", true, &[("a", "T2")]),
    ("T2", false, &[("a", "T1"), ("b", "UU"), ("c", "T1")]),
    ("UU", false, &[("a", "Union{Int8, Int64}"), ("b", "Any")]),
    ("Vector{S24}", true, &[("ref", "MemoryRef{S24}"), ("size", "Tuple{Int64}")]),
    ("MemoryRef{S3}", false, &[("mem", "Memory{S3}")]),
];

const FUNCTIONS: [&str; 11] = [
    "Main.same",
    "Main.second",
    "Main.third",
    "Main.fails",
    "Main.shrinks",
    "Main.grows",
    "Core.tuple",
    "Base.:+",
    "Core.getfield",
    "Core.memoryrefget",
    "Core.typeof",
];

const ORDERS: [&str; 8] = [
    ":not_atomic",
    ":not_atomic",
    ":monotonic",
    ":acquire",
    ":release",
    ":acquire_release",
    ":sequentially_consistent",
    ":unordered",
];

impl Writer<'_> {
    /// One attack on a target, as its form has it.
    pub(super) fn strike(&mut self, target: Target, form: Form) -> Val {
        let subject = self.subject();
        match target {
            Target::Builtin(builtin) => {
                // Native code has no global variables whose names are computed.
                self.is_open |= form != Form::Named && roles(builtin).contains(&Role::Global);
                let args = self.operands(&roles(builtin), builtin.arity(), &subject, form);
                let callee = path("Core", builtin.name());
                self.call(form, builtin, &callee, &args, &subject)
            }
            Target::Intrinsic(intrinsic) => self.intrinsic(intrinsic, form),
            Target::Routine(name) => self.routine(name, &subject, form),
            Target::C(number) => {
                let (name, ty, count) = ALLOWED[number];
                let ty = if ty == brolga_ir::Type::FLOAT32 { "Float32" } else { "Float64" };
                // Of zeros of both signs a C library may return either as the least or the greatest.
                let args: Vec<String> = (0..count).map(|_| self.float(ty).replace("-0.0", "0.0")).collect();
                self.foreign(name, ty, &vec![ty; count], &args)
            }
            Target::Base(function) => {
                let args = self.base_operands(function, &subject);
                self.call_value(form, &function.to_string(), &args)
            }
            Target::Library(name) => {
                let first = [Role::Array, Role::Base, Role::Value, Role::Object][self.rng.below(4)];
                let mut args = vec![self.operand(first, &subject, form)];
                for _ in 0..self.rng.below(3) {
                    let role = [Role::Index, Role::Value, Role::Element, Role::Function][self.rng.below(4)];
                    args.push(self.operand(role, &subject, form));
                }
                self.call_value(form, &path("Base", name), &args)
            }
            Target::New | Target::SplatNew => self.new_object(target, form),
        }
    }

    fn subject(&mut self) -> Subject {
        let element = loop {
            let element = shared::ELEMENTS[self.rng.below(shared::ELEMENTS.len())];
            if self.without.allows(element) || self.rng.chance(1) {
                break element;
            }
        };
        let object = self.rng.below(OBJECTS.len());
        Subject { element, object, field: self.rng.below(OBJECTS[object].2.len()) }
    }

    fn call(&mut self, form: Form, builtin: Builtin, callee: &str, args: &[Val], subject: &Subject) -> Val {
        if form.is_value() {
            return self.call_value(form, callee, args);
        }
        let list = args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
        let ty = match form {
            Form::Named if self.rng.chance(70) => result(builtin, args, subject),
            _ => None,
        };
        self.row(&format!("{callee}({list})"), ty.as_deref().unwrap_or("Any"))
    }

    fn operands(
        &mut self,
        roles: &[Role],
        arity: brolga_ir::intrinsic::Arity,
        subject: &Subject,
        form: Form,
    ) -> Vec<Val> {
        let least = usize::from(arity.min).max(1);
        let most = arity.max.map_or(roles.len() + 2, usize::from);
        if most == 0 {
            return Vec::new();
        }
        let count = match self.rng.chance(75) {
            true => roles.len().min(most).max(usize::from(arity.min)),
            false => self.rng.between(usize::from(arity.min), most.max(least)),
        };
        let mut args = Vec::new();
        for n in 0..count {
            let role = roles.get(n).or(roles.last()).copied().unwrap_or(Role::Value);
            let odd = self.rng.chance(7) && (form.is_value() || role != Role::Flag);
            let mut arg = if odd { self.any() } else { self.operand(role, subject, form) };
            let is_constant = !arg.text.starts_with('%');
            if form == Form::Untyped && !is_constant || odd && !form.is_value() {
                arg = self.row(&format!("Core.compilerbarrier(:type, {})", arg.text), "Any");
            }
            args.push(arg);
        }
        args
    }

    fn operand(&mut self, role: Role, subject: &Subject, form: Form) -> Val {
        let (object, can_set, fields) = OBJECTS[subject.object];
        match role {
            Role::Value => self.any(),
            Role::Anything => {
                let value = self.any().text;
                self.row(&format!("Core.compilerbarrier(:type, {value})"), "Any")
            }
            Role::Type => self.type_operand(subject),
            Role::Generic => Val::new(
                [
                    "Box",
                    "Cell",
                    "Vector",
                    "Memory",
                    "Tuple",
                    "MemoryRef",
                    "Union",
                    "Array",
                    "Val",
                    "Int64",
                    "Pair",
                ][self.rng.below(11)],
                "Type",
            ),
            Role::MemoryType => Val::new(format!("Memory{{{}}}", subject.element), "Type"),
            Role::Length => self.length(subject.element),
            Role::Base => match self.rng.chance(40) {
                true => self.memory(subject.element),
                false => self.reference(subject.element),
            },
            Role::Ref => self.reference(subject.element),
            Role::Element => self.make(subject.element),
            Role::Index => self.index(),
            Role::Order => Val::new(ORDERS[self.rng.below(ORDERS.len())], "Symbol"),
            // The verifier knows which of two constants is the stricter one.
            Role::FailureOrder if form == Form::Named => Val::new(":not_atomic", "Symbol"),
            Role::FailureOrder => Val::new(ORDERS[self.rng.below(ORDERS.len())], "Symbol"),
            Role::Flag => {
                let is_off = self.rng.chance(70) && self.without.allows("unchecked");
                Val::new(if is_off { "UNCHECKED" } else { "true" }, "Bool")
            }
            Role::Array => self.array(subject.element),
            // The verifier refuses to change what is seen to be immutable.
            Role::Changed if form == Form::Named && !can_set => {
                let object = self.object_of(object).text;
                self.row(&format!("Core.compilerbarrier(:type, {object})"), "Any")
            }
            Role::Object => self.object_of(object),
            Role::Changed => {
                // The interpreter takes parts of arrays that do not fit; engines with closed doors refuse all.
                self.is_open |= object.starts_with("Vector");
                self.object_of(object)
            }
            Role::Field => match self.rng.below(10) {
                0..6 => Val::new(format!(":{}", fields[subject.field].0), "Symbol"),
                6..8 => Val::new((subject.field + 1).to_string(), "Int64"),
                8 if form != Form::Named => Val::new(":nosuch", "Symbol"),
                _ => self.index(),
            },
            Role::Part => self.make(fields[subject.field].1),
            Role::Function => Val::new(FUNCTIONS[self.rng.below(FUNCTIONS.len())], "Function"),
            Role::Splat => self.splat(),
            Role::Module => Val::new("Main", "Module"),
            Role::Global => Val::new([":victim", ":number", ":some"][self.rng.below(3)], "Symbol"),
            Role::World => match self.rng.below(4) {
                0 => self.any(),
                1 => Val::new("0x0000000000000000", "UInt64"),
                _ => Val::new("0xffffffffffffffff", "UInt64"),
            },
            Role::Bool => Val::new(["c", "true", "false"][self.rng.below(3)], "Bool"),
            Role::Barrier => Val::new([":type", ":const", ":conditional"][self.rng.below(3)], "Symbol"),
            Role::Iterate => Val::new("Base.iterate", "Function"),
        }
    }

    // ----- values -----

    /// A value of any type.
    pub(super) fn any(&mut self) -> Val {
        const CONSTANTS: [(&str, &str); 25] = [
            ("nothing", "Nothing"),
            ("missing", "Missing"),
            ("1.5", "Float64"),
            ("NaN", "Float64"),
            ("true", "Bool"),
            ("0x07", "UInt8"),
            ("\"text\"", "String"),
            ("\"\"", "String"),
            (":a", "Symbol"),
            ("'θ'", "Char"),
            ("Int8(-128)", "Int8"),
            ("Int64", "Type"),
            ("Any", "Type"),
            ("Union{}", "Type"),
            ("Tuple{}", "Type"),
            ("Union{Int8, S3}", "Type"),
            ("Vector{Any}", "Type"),
            ("Memory{S24}", "Type"),
            ("Main.same", "Function"),
            ("Core.memoryrefnew", "Function"),
            ("Base.add_int", "Function"),
            ("Main", "Module"),
            ("$(QuoteNode((2, 3)))", "Tuple{Int64, Int64}"),
            ("Int128(1)", "Int128"),
            ("x", "Any"),
        ];
        match self.rng.below(10) {
            0..4 if self.pool.len() > self.visible => {
                let at = self.rng.between(self.visible, self.pool.len() - 1);
                self.pool[at].clone()
            }
            4..6 => self.index(),
            6 if !self.giants => {
                let element = self.subject().element;
                self.make(element)
            }
            _ => {
                let (text, ty) = CONSTANTS[self.rng.below(CONSTANTS.len())];
                Val::new(text, ty)
            }
        }
    }

    fn index(&mut self) -> Val {
        match self.rng.below(10) {
            0..2 => Val::new("a", "Int64"),
            2..4 => Val::new("b", "Int64"),
            4..6 => Val::new(numbers::small(&mut self.rng).to_string(), "Int64"),
            _ => Val::new(numbers::extreme(&mut self.rng).to_string(), "Int64"),
        }
    }

    fn length(&mut self, element: &str) -> Val {
        // Memory of that size is refused, unless its elements have none.
        let may_be_huge = self.giants || !shared::is_empty(element) && self.rng.chance(30);
        match self.rng.below(10) {
            0..7 if may_be_huge => Val::new(numbers::extreme(&mut self.rng).to_string(), "Int64"),
            7..9 => Val::new("b", "Int64"),
            _ => Val::new(numbers::small(&mut self.rng).to_string(), "Int64"),
        }
    }

    fn float(&mut self, ty: &str) -> String {
        const FLOATS: [&str; 8] = ["0.0", "-0.0", "1.5", "Inf", "-Inf", "1.0e308", "-2.25", "1.0e-310"];
        let text = FLOATS[self.rng.below(FLOATS.len())];
        match (ty, text) {
            ("Float32", "Inf" | "-Inf") => text.replace("Inf", "Inf32"),
            ("Float32", "1.0e308" | "1.0e-310") => "1.0f38".to_owned(),
            ("Float32", _) => format!("{text}f0"),
            _ => text.to_owned(),
        }
    }

    /// Something to splat.
    fn splat(&mut self) -> Val {
        match self.rng.below(6) {
            0 => self.row(&format!("%new(Lie, {})", numbers::small(&mut Clone::clone(&self.rng))), "Lie"),
            1 => {
                let index = self.index().text;
                self.row(&format!("%new(Lie, {index})"), "Lie")
            }
            2 if !self.giants => {
                let element = self.subject().element;
                self.array(element)
            }
            3 => self.any(),
            _ => {
                let (x, y) = (self.any().text, self.any().text);
                self.row(&format!("Core.tuple({x}, {y})"), "Any")
            }
        }
    }

    fn type_operand(&mut self, subject: &Subject) -> Val {
        let element = subject.element;
        let text = match self.rng.below(9) {
            0 => element.to_owned(),
            1 => format!("Memory{{{element}}}"),
            2 => format!("MemoryRef{{{element}}}"),
            3 => format!("Vector{{{element}}}"),
            4 => format!("Tuple{{{element}, Vararg{{{element}}}}}"),
            5 => format!("Box{{Box{{Box{{{element}}}}}}}"),
            6 => OBJECTS[subject.object].0.to_owned(),
            7 => "Union{}".to_owned(),
            _ => return self.any(),
        };
        Val::new(text, "Type")
    }

    /// Something at hand of exactly this type.
    fn at_hand(&mut self, ty: &str) -> Option<Val> {
        let known: Vec<Val> = self.pool[self.visible..].iter().filter(|val| val.ty == ty).cloned().collect();
        self.rng.pick(&known).cloned().filter(|_| self.rng.chance(70))
    }

    fn memory(&mut self, element: &str) -> Val {
        let ty = format!("Memory{{{element}}}");
        if let Some(known) = self.at_hand(&ty) {
            return known;
        }
        let length = match self.giants {
            true => self.length(element).text,
            false => numbers::small(&mut self.rng).to_string(),
        };
        let memory = self.row(&format!("Core.memorynew({ty}, {length})"), &ty);
        self.pool.push(memory.clone());
        if !self.giants && length != "0" && self.rng.chance(60) {
            let value = self.make(element).text;
            let first =
                self.row(&format!("Core.memoryrefnew({})", memory.text), &format!("MemoryRef{{{element}}}"));
            self.stmt(&format!("Core.memoryrefset!({}, {value}, :not_atomic, true)::Any", first.text));
        }
        memory
    }

    fn reference(&mut self, element: &str) -> Val {
        let ty = format!("MemoryRef{{{element}}}");
        if let Some(known) = self.at_hand(&ty) {
            return known;
        }
        let memory = self.memory(element).text;
        let reference = self.row(&format!("Core.memoryrefnew({memory})"), &ty);
        self.pool.push(reference.clone());
        reference
    }

    fn array(&mut self, element: &str) -> Val {
        let rank = if self.rng.chance(75) { 1 } else { 2 + self.rng.below(2) };
        let ty = match rank {
            1 => format!("Vector{{{element}}}"),
            rank => format!("Array{{{element}, {rank}}}"),
        };
        if let Some(known) = self.at_hand(&ty) {
            return known;
        }
        let dims: Vec<String> = (0..rank)
            .map(|_| match self.giants {
                true => self.length(element).text,
                false => numbers::small(&mut self.rng).min(5).to_string(),
            })
            .collect();
        let array = match rank == 1 && self.rng.chance(50) {
            true => {
                let memory = self.row(
                    &format!("Core.memorynew(Memory{{{element}}}, {})", dims[0]),
                    &format!("Memory{{{element}}}"),
                );
                let first = self
                    .row(&format!("Core.memoryrefnew({})", memory.text), &format!("MemoryRef{{{element}}}"));
                let size = self.row(&format!("Core.tuple({})", dims[0]), "Tuple{Int64}");
                self.row(&format!("%new({ty}, {}, {})", first.text, size.text), &ty)
            }
            false => {
                let mut args = vec![ty.clone()];
                args.extend(dims);
                let mut params = vec!["Any"];
                params.resize(1 + rank, "Int64");
                self.foreign(&format!("jl_alloc_array_{rank}d"), &ty, &params, &args)
            }
        };
        self.pool.push(array.clone());
        array
    }

    /// A value of this type: of an element, field or object.
    fn make(&mut self, ty: &str) -> Val {
        if self.rng.chance(40)
            && let Some(known) = self.at_hand(ty)
        {
            return known;
        }
        if let Some(parts) = ty.strip_prefix("Union{") {
            let members: Vec<&str> = parts.trim_end_matches('}').split(", ").collect();
            let member = members[self.rng.below(members.len())];
            return self.make(member);
        }
        if let Some(element) = ty.strip_prefix("MemoryRef{").and_then(|ty| ty.strip_suffix('}')) {
            return self.reference(element);
        }
        if let Some(element) = ty.strip_prefix("Memory{").and_then(|ty| ty.strip_suffix('}')) {
            return self.memory(element);
        }
        if ty.starts_with("Vector{") {
            let element = &ty[7..ty.len() - 1];
            let args = [ty.to_owned(), numbers::small(&mut self.rng).to_string()];
            let _ = element;
            return self.foreign("jl_alloc_array_1d", ty, &["Any", "Int64"], &args);
        }
        let constant = match ty {
            "Int8" => format!("Int8({})", self.rng.below(256) as i64 - 128),
            "Int32" => format!("Int32({})", self.rng.below(256)),
            "UInt8" => format!("0x{:02x}", self.rng.below(256)),
            "UInt16" => format!("0x{:04x}", self.rng.below(1 << 16)),
            "Int64" => return self.index(),
            "Int128" => format!("Int128({})", numbers::extreme(&mut self.rng)),
            "Float64" => self.float("Float64"),
            "Bool" => "true".to_owned(),
            "Char" => "'θ'".to_owned(),
            "Symbol" => ":sym".to_owned(),
            "String" => "\"string\"".to_owned(),
            "Nothing" => "nothing".to_owned(),
            "Missing" => "missing".to_owned(),
            "Tuple{}" => return self.row("Core.tuple()", "Tuple{}"),
            "Tuple{Int64}" => {
                let length = self.length("Nothing").text;
                return self.row(&format!("Core.tuple({length})"), "Tuple{Int64}");
            }
            "Tuple{Int8, Any}" => {
                let any = self.any().text;
                return self.row(&format!("Core.tuple(Int8(-1), {any})"), "Tuple{Int8, Any}");
            }
            "Tuple{Int128, Int8}" => return self.row("Core.tuple(Int128(-1), Int8(1))", ty),
            "Any" => return self.any(),
            "Abs" => "".to_owned(),
            _ => String::new(),
        };
        if !constant.is_empty() {
            return Val::new(constant, ty);
        }
        let fields: Vec<&str> = match ty {
            "Abs" | "Sub" => vec!["Int64"],
            "S3" => vec!["UInt8"; 3],
            "S12" => vec!["Int32"; 3],
            "S24" => vec!["Any", "Int64", "Int64"],
            "S40" => vec!["Int64", "Any", "S24"],
            "R16" => vec!["Int128", "Any"],
            "UU" => vec!["Union{Int8, Int64}", "Any"],
            "T1" => vec!["S24", "S24"],
            "T2" => vec!["T1", "UU", "T1"],
            "Mu" => vec!["Any", "Int64", "S24", "Union{Int8, Nothing}", "Int64", "Int8", "S3"],
            "At" => vec!["Any", "Int64", "S12", "Union{Int8, Nothing}", "Int128", "S24", "Bool"],
            "Self" => vec!["Union{Nothing, Self}", "Any"],
            _ => match ty.split_once('{') {
                Some(("Box" | "Cell", of)) => vec![of.strip_suffix('}').unwrap_or(of)],
                _ => Vec::new(),
            },
        };
        let name = if ty == "Abs" { "Sub" } else { ty };
        // Fields with references may be left undefined.
        let lacks = match name {
            "Mu" | "Self" => self.rng.chance(15),
            "T2" | "S24" => self.rng.chance(1),
            _ => false,
        };
        let least = if lacks { 0 } else { fields.len() };
        // Whether reading such a part from a place throws is left open.
        self.is_open |= lacks && matches!(name, "T2" | "S24");
        let parts: Vec<String> = fields[..least].iter().map(|field| self.make(field).text).collect();
        let mut list = vec![name.to_owned()];
        list.extend(parts);
        self.row(&format!("%new({})", list.join(", ")), name)
    }

    fn object_of(&mut self, ty: &str) -> Val {
        match self.at_hand(ty) {
            Some(known) => known,
            None => {
                let made = self.make(ty);
                self.pool.push(made.clone());
                made
            }
        }
    }

    /// An object for a program to begin with.
    pub(super) fn object(&mut self) -> Val {
        let element = self.subject().element;
        match self.rng.below(4) {
            0 => self.reference(element),
            1 => self.array(element),
            2 => {
                let object = self.rng.below(OBJECTS.len());
                self.object_of(OBJECTS[object].0)
            }
            _ => {
                let reference = self.reference(element);
                let wide = self.row(&format!("Core.compilerbarrier(:type, {})", reference.text), "Any");
                self.pool.push(wide.clone());
                wide
            }
        }
    }

    // ----- other targets -----

    fn intrinsic(&mut self, intrinsic: Intrinsic, form: Form) -> Val {
        const INTEGERS: [&str; 8] = ["Int64", "Int8", "UInt8", "Int32", "UInt64", "Int128", "Bool", "UInt16"];
        let int = INTEGERS[self.rng.below(INTEGERS.len())];
        let wide = ["Int64", "UInt64", "Int128", "UInt128"][self.rng.below(4)];
        let (mut args, result): (Vec<&str>, String) = match intrinsic.shape() {
            Shape::IntUnary => (vec![int], int.into()),
            Shape::IntBinary | Shape::IntDivide => (vec![int, int], int.into()),
            Shape::Shift => (vec![int, INTEGERS[self.rng.below(6)]], int.into()),
            Shape::IntCompare => (vec![int, int], "Bool".into()),
            Shape::CheckedPair => (vec![int, int], format!("Tuple{{{int}, Bool}}")),
            Shape::FloatUnary => (vec!["Float64"], "Float64".into()),
            Shape::FloatBinary => (vec!["Float64"; 2], "Float64".into()),
            Shape::FloatTernary => (vec!["Float64"; 3], "Float64".into()),
            Shape::FloatCompare => (vec!["Float64"; 2], "Bool".into()),
            Shape::Convert(Convert::SignExtend | Convert::ZeroExtend) => (vec!["Int8"], wide.into()),
            Shape::Convert(Convert::Truncate) => (vec!["Int64"], "Int8".into()),
            Shape::Convert(Convert::Bits) => (vec!["Int64"], "UInt64".into()),
            Shape::Convert(Convert::FloatToSigned | Convert::FloatToUnsigned) => {
                (vec!["Float64"], int.into())
            }
            Shape::Convert(Convert::SignedToFloat | Convert::UnsignedToFloat) => {
                (vec![int], "Float64".into())
            }
            Shape::Convert(Convert::FloatTruncate) => (vec!["Float64"], "Float32".into()),
            Shape::Convert(Convert::FloatExtend) => (vec!["Float32"], "Float64".into()),
            Shape::PtrOffset => (vec!["Ptr{Nothing}", "UInt64"], "Ptr{Nothing}".into()),
            Shape::AtomicFence => (vec!["Order"], "Nothing".into()),
            Shape::Query => (vec!["FloatType"], "Bool".into()),
            _ => (vec!["Any"; usize::from(intrinsic.shape().arity().min)], "Any".into()),
        };
        if form.is_value() && intrinsic.strict() == intrinsic && self.rng.chance(8) {
            let at = self.rng.below(args.len());
            args[at] = "Any";
        }
        let mut vals: Vec<Val> = match intrinsic.strict() == intrinsic {
            true => args.iter().map(|ty| self.number(ty)).collect(),
            // What `_fast` permits is no fault: nothing is said of NaN, infinities and the sign of zero.
            false => {
                args.iter().map(|ty| Val::new(["1.5", "-2.25", "0.5"][self.rng.below(3)], *ty)).collect()
            }
        };
        if intrinsic.takes_type() {
            vals.insert(0, Val::new(result.clone(), "Type"));
        }
        let callee = format!("Base.{}", intrinsic.name());
        if form.is_value() {
            return self.call_value(form, &callee, &vals);
        }
        let list = vals.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
        self.row(&format!("{callee}({list})"), &result)
    }

    fn number(&mut self, ty: &str) -> Val {
        match ty {
            "Order" => Val::new(ORDERS[self.rng.below(ORDERS.len())], "Symbol"),
            "FloatType" => Val::new("Float64", "Type"),
            "Ptr{Nothing}" => Val::new("Ptr{Nothing} @0x0000000000000010", ty),
            "Float32" | "Float64" => Val::new(self.float(ty), ty),
            "Int64" => self.index(),
            "UInt64" => Val::new(format!("0x{:016x}", numbers::extreme(&mut self.rng)), ty),
            "UInt128" => Val::new(format!("0x{:032x}", numbers::extreme(&mut self.rng)), ty),
            _ => self.make(ty),
        }
    }

    /// A call of a C function.
    fn foreign(&mut self, name: &str, result: &str, params: &[&str], args: &[String]) -> Val {
        let quoted: Vec<String> = args
            .iter()
            .map(|arg| match arg.starts_with('%') || ["a", "b", "c", "x"].contains(&arg.as_str()) {
                true => format!(":({arg})"),
                false => arg.clone(),
            })
            .collect();
        let list = if quoted.is_empty() { String::new() } else { format!(", {}", quoted.join(", ")) };
        let row = format!(
            "$(Expr(:foreigncall, :(:{name}), {result}, svec({}), 0, :(:ccall){list}))",
            params.join(", ")
        );
        self.row(&row, result)
    }

    fn routine(&mut self, name: &'static str, subject: &Subject, form: Form) -> Val {
        let element = subject.element;
        let (vector, memory) = (format!("Vector{{{element}}}"), format!("Memory{{{element}}}"));
        let array = |writer: &mut Self| {
            let array = if writer.rng.chance(97) { writer.array(element) } else { writer.any() };
            match form {
                Form::Untyped => {
                    writer.row(&format!("Core.compilerbarrier(:type, {})", array.text), "Any").text
                }
                _ => array.text,
            }
        };
        let (result, params, args): (&str, Vec<&str>, Vec<String>) = match name {
            "jl_alloc_array_1d" => {
                (&vector, vec!["Any", "Int64"], vec![vector.clone(), self.length(element).text])
            }
            "jl_alloc_array_2d" => {
                let dims = [self.length(element).text, self.length(element).text];
                let ty = format!("Matrix{{{element}}}");
                return self.foreign(
                    name,
                    &ty,
                    &["Any", "Int64", "Int64"],
                    &[ty.clone(), dims[0].clone(), dims[1].clone()],
                );
            }
            "jl_alloc_array_3d" => {
                let ty = format!("Array{{{element}, 3}}");
                let mut args = vec![ty.clone()];
                args.extend((0..3).map(|_| self.length(element).text));
                return self.foreign(name, &ty, &["Any", "Int64", "Int64", "Int64"], &args);
            }
            "jl_new_array" => {
                let count = if self.rng.chance(90) { 1 } else { self.rng.below(4) };
                let dims: Vec<String> = (0..count).map(|_| self.length(element).text).collect();
                let dims = self.row(&format!("Core.tuple({})", dims.join(", ")), "Any").text;
                ("Any", vec!["Any", "Any"], vec![vector.clone(), dims])
            }
            "jl_alloc_genericmemory" => (
                &memory,
                vec!["Any", "UInt64"],
                vec![memory.clone(), format!("0x{:016x}", self.count(element))],
            ),
            "jl_array_copy" => ("Any", vec!["Any"], vec![array(self)]),
            "jl_array_grow_end" | "jl_array_grow_beg" | "jl_array_sizehint" => (
                "Nothing",
                vec!["Any", "UInt64"],
                vec![array(self), format!("0x{:016x}", self.count(element))],
            ),
            "jl_array_del_end" | "jl_array_del_beg" => (
                "Nothing",
                vec!["Any", "UInt64"],
                vec![array(self), format!("0x{:016x}", numbers::extreme(&mut self.rng))],
            ),
            "jl_array_grow_at" => {
                let (array, at) = (array(self), self.index().text);
                (
                    "Nothing",
                    vec!["Any", "Int64", "UInt64"],
                    vec![array, at, format!("0x{:016x}", self.count(element))],
                )
            }
            "jl_array_del_at" => {
                let (array, at) = (array(self), self.index().text);
                (
                    "Nothing",
                    vec!["Any", "Int64", "UInt64"],
                    vec![array, at, format!("0x{:016x}", numbers::extreme(&mut self.rng))],
                )
            }
            "jl_genericmemory_copy" => {
                let memory = self.memory(element).text;
                ("Any", vec!["Any"], vec![memory])
            }
            "jl_get_world_counter" => {
                // Its value depends on what has run before.
                let world = self.foreign(name, "UInt64", &[], &[]).text;
                return self.row(&format!("Core.typeof({world})"), "DataType");
            }
            "jl_rethrow" => ("Any", Vec::new(), Vec::new()),
            "jl_rethrow_other" => ("Any", vec!["Any"], vec![self.any().text]),
            "jl_types_equal" => {
                let (x, y) = (self.type_operand(subject).text, self.type_operand(subject).text);
                ("Int32", vec!["Any", "Any"], vec![x, y])
            }
            _ => {
                let args: Vec<String> = (0..self.rng.between(1, 3)).map(|_| self.any().text).collect();
                ("Any", vec!["Any"; args.len()], args)
            }
        };
        self.foreign(name, result, &params, &args)
    }

    /// How many elements to add: as many as there can be, or a few.
    fn count(&mut self, element: &str) -> i64 {
        let may_be_huge = self.giants || !shared::is_empty(element) && self.rng.chance(40);
        if may_be_huge { numbers::extreme(&mut self.rng) } else { numbers::small(&mut self.rng) }
    }

    fn base_operands(&mut self, function: BaseFn, subject: &Subject) -> Vec<Val> {
        let arity = function.arity();
        let most = arity.max.map_or(3, usize::from);
        let count = self.rng.between(usize::from(arity.min), most.max(usize::from(arity.min)));
        let mut args: Vec<Val> = (0..count).map(|_| self.any()).collect();
        if function.takes_symbol() && !args.is_empty() && self.rng.chance(80) {
            args[0] = Val::new(":+", "Symbol");
        }
        if function == BaseFn::ThrowBoundserror && !self.giants && self.rng.chance(50) {
            args[0] = self.array(subject.element);
        }
        args
    }

    /// An instance of a type with more, fewer or other parts than it has.
    fn new_object(&mut self, target: Target, form: Form) -> Val {
        const TYPES: [(&str, &[&str]); 12] = [
            ("S24", &["Any", "Int64", "Int64"]),
            ("UU", &["Union{Int8, Int64}", "Any"]),
            ("Mu", &["Any", "Int64", "S24", "Union{Int8, Nothing}", "Int64", "Int8", "S3"]),
            ("Box{UInt8}", &["UInt8"]),
            ("Box{Any}", &["Any"]),
            ("Self", &["Union{Nothing, Self}", "Any"]),
            ("UnitRange{Int64}", &["Int64", "Int64"]),
            ("StepRange{Int64, Int64}", &["Int64", "Int64", "Int64"]),
            ("Tuple{Int64, S3}", &["Int64", "S3"]),
            ("@NamedTuple{a::Int8, b::S3}", &["Int8", "S3"]),
            ("MemoryRef{S24}", &["Ptr{Nothing}", "Memory{S24}"]),
            ("Vector{S24}", &["MemoryRef{S24}", "Tuple{Int64}"]),
        ];
        // The last two are refused, the one by the verifier, the other as a door.
        let count = if self.rng.chance(5) { TYPES.len() } else { TYPES.len() - 2 };
        let (ty, fields) = TYPES[self.rng.below(count)];
        let mut parts: Vec<Val> = fields.iter().map(|field| self.number(field)).collect();
        if self.rng.chance(40) {
            let at = self.rng.below(parts.len());
            let other = self.any().text;
            parts[at] = self.row(&format!("Core.compilerbarrier(:type, {other})"), "Any");
        }
        if self.rng.chance(8) {
            parts.truncate(self.rng.below(parts.len() + 1));
            self.is_open |= !matches!(ty, "Mu" | "Self");
        }
        if form.is_value() {
            return self.call_value(form, ty, &parts);
        }
        let list = parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(", ");
        match target {
            Target::SplatNew => {
                let tuple = self.row(&format!("Core.tuple({list})"), "Any").text;
                self.row(&format!("%splatnew({ty}, {tuple})"), ty)
            }
            _ if list.is_empty() => self.row(&format!("%new({ty})"), ty),
            _ => self.row(&format!("%new({ty}, {list})"), ty),
        }
    }
}

/// A function of a module as an operand.
fn path(module: &str, name: &str) -> String {
    match name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        true => format!("{module}.{name}"),
        false => format!("{module}.:({name})"),
    }
}

/// The roles of a builtin's operands. One that is not named here gets values of any type.
fn roles(builtin: Builtin) -> Vec<Role> {
    use Role::*;
    match builtin {
        Builtin::Sizeof | Builtin::Nfields | Builtin::Typeof => vec![Value],
        Builtin::Subtype => vec![Type, Type],
        Builtin::Isa | Builtin::Typeassert => vec![Value, Type],
        Builtin::ApplyType => vec![Generic, Type],
        Builtin::Fieldtype => vec![Type, Field, Flag],
        Builtin::Isdefined => vec![Object, Field, Order],
        Builtin::Getfield => vec![Object, Field, Flag],
        Builtin::Setfield | Builtin::Swapfield => vec![Changed, Field, Part, Order],
        Builtin::Modifyfield => vec![Changed, Field, Function, Part, Order],
        Builtin::Replacefield => vec![Changed, Field, Part, Part, Order, FailureOrder],
        Builtin::Setfieldonce => vec![Changed, Field, Part, Order, Order],
        Builtin::Getglobal | Builtin::Isdefinedglobal => vec![Module, Global, Order],
        Builtin::Setglobal | Builtin::Swapglobal => vec![Module, Global, Anything, Order],
        Builtin::Modifyglobal => vec![Module, Global, Function, Value, Order],
        Builtin::Replaceglobal => vec![Module, Global, Anything, Anything, Order, FailureOrder],
        Builtin::Setglobalonce => vec![Module, Global, Anything, Order, Order],
        Builtin::GetBindingType => vec![Module, Global],
        Builtin::Memorynew => vec![MemoryType, Length],
        Builtin::Memoryrefnew => vec![Base, Index, Flag],
        Builtin::Memoryrefget => vec![Ref, Order, Flag],
        Builtin::Memoryrefset | Builtin::Memoryrefswap => vec![Ref, Element, Order, Flag],
        Builtin::Memoryrefmodify => vec![Ref, Function, Element, Order, Flag],
        Builtin::Memoryrefreplace => vec![Ref, Element, Element, Order, FailureOrder, Flag],
        Builtin::Memoryrefsetonce => vec![Ref, Element, Order, Order, Flag],
        Builtin::Memoryrefoffset => vec![Ref],
        Builtin::MemoryrefIsassigned => vec![Ref, Order, Flag],
        Builtin::Arrayref => vec![Flag, Array, Index],
        Builtin::Arrayset => vec![Flag, Array, Element, Index],
        Builtin::Arraylen => vec![Array],
        Builtin::Arraysize => vec![Array, Index],
        Builtin::ApplyIterate => vec![Iterate, Function, Splat],
        Builtin::Invoke => vec![Function, Type, Value],
        Builtin::Invokelatest | Builtin::Applicable | Builtin::ThrowMethoderror => vec![Function, Value],
        Builtin::InvokeInWorld => vec![World, Function, Value],
        Builtin::Ifelse => vec![Bool, Value, Value],
        Builtin::Compilerbarrier => vec![Barrier, Value],
        Builtin::Finalizer => vec![Function, Object],
        _ => vec![Value],
    }
}

/// The type of the result where it follows from the operands.
fn result(builtin: Builtin, args: &[Val], subject: &Subject) -> Option<String> {
    let element = subject.element;
    Some(match builtin {
        Builtin::Memorynew => format!("Memory{{{element}}}"),
        Builtin::Memoryrefnew => format!("MemoryRef{{{element}}}"),
        Builtin::Memoryrefget | Builtin::Memoryrefswap | Builtin::Arrayref => element.to_owned(),
        Builtin::Memoryrefoffset | Builtin::Arraylen | Builtin::Arraysize | Builtin::Nfields => {
            "Int64".to_owned()
        }
        Builtin::MemoryrefIsassigned
        | Builtin::Memoryrefsetonce
        | Builtin::Setfieldonce
        | Builtin::Isdefined
        | Builtin::Isa
        | Builtin::Egal => "Bool".to_owned(),
        Builtin::Getfield | Builtin::Swapfield => {
            let (_, _, fields) = OBJECTS[subject.object];
            let named = args.get(1)?.text.strip_prefix(':')?;
            fields.iter().find(|(name, _)| *name == named)?.1.to_owned()
        }
        _ => return None,
    })
}
