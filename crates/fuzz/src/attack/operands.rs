//! Operands by role, and the statements of a target.

use brolga_ir::builtin::Builtin;
use brolga_ir::doors::ALLOWED;

use super::body::{Val, Writer};
use super::forms::Form;
use super::shared;
use super::targets::Target;

/// The role of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Role {
    Value,
    /// A value whose type the verifier cannot see.
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
    /// An object with a field to be modified.
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

/// The relation between the operands of one attack.
pub(super) struct Subject {
    pub(super) element: &'static str,
    pub(super) object: usize,
    field: usize,
}

/// A type, whether its fields can be set, and their names and types.
type Object = (&'static str, bool, &'static [(&'static str, &'static str)]);

/// Objects with fields.
pub(super) const OBJECTS: [Object; 9] = [
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

pub(super) const ORDERS: [&str; 8] = [
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
    /// An attack on a target in this form.
    pub(super) fn strike(&mut self, target: Target, form: Form) -> Val {
        let subject = self.subject();
        match target {
            Target::Builtin(builtin) => {
                // Native code has no global variables with computed names.
                self.is_open |= form != Form::Named && roles(builtin).contains(&Role::Global);
                let args = self.operands(&roles(builtin), builtin.arity(), &subject, form);
                let callee = path("Core", builtin.name());
                let result = self.call(form, builtin, &callee, &args, &subject);
                self.use_as(&result, result_type(builtin, &args, &subject));
                result
            }
            Target::Intrinsic(intrinsic) => self.intrinsic(intrinsic, form),
            Target::Routine(name) => self.routine(name, &subject, form),
            Target::C(number) => {
                let (name, ty, count) = ALLOWED[number];
                let ty = if ty == brolga_ir::Type::FLOAT32 { "Float32" } else { "Float64" };
                // Of zeros with different signs, a C library may return either as the minimum or the maximum.
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

    pub(super) fn subject(&mut self) -> Subject {
        let element = match self.focus.filter(|_| self.rng.chance(50)) {
            Some(focus) => focus,
            None => self.element(),
        };
        let object = self.rng.below(OBJECTS.len());
        Subject { element, object, field: self.rng.below(OBJECTS[object].2.len()) }
    }

    /// An element type that is not excluded.
    fn element(&mut self) -> &'static str {
        let allowed = shared::ELEMENTS.iter().filter(|element| self.without.allows(element));
        let allowed: Vec<&str> = allowed.copied().collect();
        self.rng.pick(&allowed).copied().unwrap_or("Any")
    }

    fn call(&mut self, form: Form, builtin: Builtin, callee: &str, args: &[Val], subject: &Subject) -> Val {
        if form.is_value() {
            return self.call_value(form, callee, args);
        }
        let list = args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
        let ty = match form {
            Form::Named if self.rng.chance(70) => result_type(builtin, args, subject),
            _ => None,
        };
        self.row(&format!("{callee}({list})"), ty.as_deref().unwrap_or("Any"))
    }

    /// Makes a result available under its expected type, so that later attacks use it.
    fn use_as(&mut self, result: &Val, ty: Option<String>) {
        let is_part =
            |ty: &String| ty.starts_with("Memory") || OBJECTS.iter().any(|(object, ..)| object == ty);
        if let Some(ty) = ty.filter(is_part)
            && self.rng.chance(60)
        {
            let known = match result.ty == ty {
                true => result.clone(),
                false => self.row(&format!("Core.typeassert({}, {ty})", result.text), &ty),
            };
            self.pool.push(known);
        }
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
            let odd = self.rng.chance(7) && (form.is_value() || role != Role::Flag) && role != Role::World;
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
            // The verifier detects the stricter of two constants.
            Role::FailureOrder if form == Form::Named => Val::new(":not_atomic", "Symbol"),
            Role::FailureOrder => Val::new(ORDERS[self.rng.below(ORDERS.len())], "Symbol"),
            Role::Flag => {
                let is_off = self.rng.chance(70) && self.without.allows("unchecked");
                Val::new(if is_off { "false" } else { "true" }, "Bool")
            }
            Role::Array => self.array(subject.element),
            // The verifier refuses modifications of objects known to be immutable.
            Role::Changed if form == Form::Named && !can_set => {
                let object = self.object_of(object).text;
                self.row(&format!("Core.compilerbarrier(:type, {object})"), "Any")
            }
            Role::Object => self.object_of(object),
            Role::Changed => {
                // The interpreter accepts unsuitable parts of arrays; engines with closed doors refuse all.
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
                // The current world's number depends on earlier programs.
                0 => Val::new(["-1", "\"text\"", "nothing", "0"][self.rng.below(4)], "Any"),
                1 => Val::new("0x0000000000000000", "UInt64"),
                _ => Val::new("0xffffffffffffffff", "UInt64"),
            },
            Role::Bool => Val::new(["c", "true", "false"][self.rng.below(3)], "Bool"),
            Role::Barrier => Val::new([":type", ":const", ":conditional"][self.rng.below(3)], "Symbol"),
            Role::Iterate => Val::new("Base.iterate", "Function"),
        }
    }
}

/// A function of a module, as an operand.
fn path(module: &str, name: &str) -> String {
    match name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        true => format!("{module}.{name}"),
        false => format!("{module}.:({name})"),
    }
}

/// The roles of a builtin's operands. A builtin that is not listed gets values of any type.
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

/// The type of the result, if it follows from the operands.
fn result_type(builtin: Builtin, args: &[Val], subject: &Subject) -> Option<String> {
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
