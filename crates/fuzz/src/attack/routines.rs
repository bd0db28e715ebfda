//! Attacks on everything except builtins: intrinsics, routines, functions of Base, and `%new`.

use brolga_ir::base_fn::BaseFn;
use brolga_ir::intrinsic::{Convert, Intrinsic, Shape};

use super::body::{Val, Writer};
use super::forms::Form;
use super::operands::{ORDERS, Subject};
use super::targets::Target;
use super::{numbers, shared};

impl Writer<'_> {
    pub(super) fn intrinsic(&mut self, intrinsic: Intrinsic, form: Form) -> Val {
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
            // `_fast` leaves NaN, infinities and the sign of zero unspecified.
            false => {
                args.iter().map(|ty| Val::new(["1.5", "-2.25", "0.5"][self.rng.below(3)], *ty)).collect()
            }
        };
        if intrinsic.takes_type() {
            vals.insert(0, Val::new(result.clone(), "Type"));
        }
        let callee = format!("Base.{}", intrinsic.name());
        // Native code has no fence that is selected at run time.
        self.is_open |= form.is_value() && !intrinsic.is_pure();
        if form.is_value() {
            return self.call_value(form, &callee, &vals);
        }
        let list = vals.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
        self.row(&format!("{callee}({list})"), &result)
    }

    pub(super) fn number(&mut self, ty: &str) -> Val {
        match ty {
            "Order" => Val::new(ORDERS[self.rng.below(ORDERS.len())], "Symbol"),
            "FloatType" => Val::new("Float64", "Type"),
            "Ptr{Nothing}" => Val::new("Ptr{Nothing} @0x0000000000000010", ty),
            "Float32" | "Float64" => Val::new(self.float(ty), ty),
            "Int64" => self.index(),
            "UInt64" => Val::new(format!("0x{:016x}", self.extreme()), ty),
            "UInt128" => Val::new(format!("0x{:032x}", self.extreme()), ty),
            _ => self.make(ty),
        }
    }

    /// A call of a C function.
    pub(super) fn foreign(&mut self, name: &str, result: &str, params: &[&str], args: &[String]) -> Val {
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

    pub(super) fn routine(&mut self, name: &'static str, subject: &Subject, form: Form) -> Val {
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
            "jl_array_del_end" | "jl_array_del_beg" => {
                ("Nothing", vec!["Any", "UInt64"], vec![array(self), format!("0x{:016x}", self.extreme())])
            }
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
                    vec![array, at, format!("0x{:016x}", self.extreme())],
                )
            }
            "jl_genericmemory_copy" => {
                let memory = self.memory(element).text;
                ("Any", vec!["Any"], vec![memory])
            }
            "jl_get_world_counter" => {
                // Its value depends on earlier programs.
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

    /// The number of elements to add: the maximum, or a few.
    pub(super) fn count(&mut self, element: &str) -> i64 {
        let may_be_huge = self.giants || !shared::is_empty(element) && self.rng.chance(40);
        if may_be_huge { self.extreme() } else { numbers::small(&mut self.rng) }
    }

    pub(super) fn base_operands(&mut self, function: BaseFn, subject: &Subject) -> Vec<Val> {
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

    /// An instance of a type with more, fewer or other fields than the type has.
    pub(super) fn new_object(&mut self, target: Target, form: Form) -> Val {
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
        // The last two are refused: one by the verifier, the other as a door.
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
