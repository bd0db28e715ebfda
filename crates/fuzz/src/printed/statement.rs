//! Statements and operands.

use super::{Around, Dump, Version};

/// The arguments of the function.
const ARGUMENTS: [&str; 6] = ["x", "y", "a", "s", "v", "b"];

const GLOBALS: &[&str] = &[
    "Main.counter",
    "Main.table",
    "Main.nothing",
    "Base.nothing",
    "Main.missing_variable",
    "Base.Order.Forward",
    "Main.:+",
    "Base.:(==)",
    "Main.Foo",
    "Base.sin",
    "Core.Int64",
    "Main.:(var\"#f#1\")",
    "Main.var\"odd name\"",
    "Base.Sort.DEFAULT_STABLE",
];

const INFIX: &[&str] = &[
    "+", "-", "*", "/", "÷", "%", "^", "//", "\\", "<<", ">>", ">>>", "==", "!=", "<", "<=", ">", ">=",
    "===", "!==", "≤", "≥", "≈", "∈", "∉", "in", "isa", "<:", ">:", "&", "|", "⊻", "=>", "|>", "<|", "∘",
    "∪", "∩", "⊆", "×", "⋅", ":", "..", "→", "$", "++", ".+", ".==",
];

const INTRINSICS: &[(&str, usize)] = &[
    ("add_int", 2),
    ("sub_int", 2),
    ("mul_int", 2),
    ("neg_int", 1),
    ("and_int", 2),
    ("not_int", 1),
    ("slt_int", 2),
    ("shl_int", 2),
    ("add_float", 2),
    ("lt_float", 2),
    ("muladd_float", 3),
    ("fma_float", 3),
    ("sqrt_llvm", 1),
    ("ctpop_int", 1),
    ("checked_sadd_int", 2),
    ("checked_sdiv_int", 2),
    ("flipsign_int", 2),
    ("fpiseq", 2),
    ("have_fma", 1),
    ("bswap_int", 1),
    ("copysign_float", 2),
    ("min_float", 2),
    ("rint_llvm", 1),
    ("abs_float", 1),
    ("pointerref", 3),
    ("pointerset", 4),
    ("add_ptr", 2),
    ("atomic_fence", 1),
    ("atomic_pointerref", 2),
    ("llvmcall", 4),
    ("cglobal", 2),
    ("sqrt_llvm_fast", 1),
    ("add_float_fast", 2),
    ("fptosi", 2),
    ("sitofp", 2),
    ("bitcast", 2),
    ("sext_int", 2),
    ("zext_int", 2),
    ("trunc_int", 2),
    ("fpext", 2),
];

/// Intrinsics whose first operand is a type.
const CONVERSIONS: &[&str] = &[
    "fptosi",
    "fptoui",
    "sitofp",
    "uitofp",
    "bitcast",
    "sext_int",
    "zext_int",
    "trunc_int",
    "fpext",
    "fptrunc",
];

const BUILTINS: &[(&str, usize)] = &[
    ("getfield", 2),
    ("getfield", 3),
    ("setfield!", 3),
    ("tuple", 3),
    ("isa", 2),
    ("typeassert", 2),
    ("ifelse", 3),
    ("typeof", 1),
    ("isdefined", 2),
    ("sizeof", 1),
    ("nfields", 1),
    ("fieldtype", 2),
    ("apply_type", 2),
    ("svec", 2),
    ("_apply_iterate", 3),
    ("applicable", 2),
    ("invokelatest", 2),
    ("swapfield!", 3),
    ("modifyfield!", 4),
    ("replacefield!", 4),
    ("setfieldonce!", 3),
    ("getglobal", 2),
    ("setglobal!", 3),
    ("memorynew", 2),
    ("memoryrefnew", 1),
    ("memoryrefnew", 3),
    ("memoryrefget", 3),
    ("memoryrefset!", 4),
    ("memoryrefoffset", 1),
    ("memoryref_isassigned", 3),
    ("memoryrefswap!", 4),
    ("compilerbarrier", 2),
    ("donotdelete", 2),
    ("finalizer", 2),
    ("current_scope", 0),
    ("_typevar", 3),
    ("_structtype", 7),
    ("_abstracttype", 3),
    ("_setsuper!", 2),
    ("_typebody!", 2),
    ("_equiv_typedef", 2),
    ("_defaultctors", 2),
    ("_svec_ref", 2),
    ("_svec_len", 1),
    ("_compute_sparams", 2),
    ("get_binding_type", 2),
    ("isdefinedglobal", 2),
    ("_expr", 2),
    ("<:", 2),
    ("===", 2),
    ("invoke_in_world", 3),
    ("_call_latest", 2),
    ("arrayref", 3),
    ("arrayset", 4),
    ("arraysize", 2),
    ("swapglobal!", 3),
    ("replaceglobal!", 4),
    ("modifyglobal!", 4),
    ("setglobalonce!", 3),
    ("memoryrefreplace!", 6),
    ("memoryrefmodify!", 5),
    ("memoryrefsetonce!", 5),
];

impl Dump<'_> {
    /// A statement, and whether it has a value that later rows may reference.
    pub(super) fn statement(&mut self, block: usize) -> (String, bool) {
        let text = match self.rng.below(20) {
            0..=2 => self.named_call("intrinsic ", INTRINSICS),
            3..=5 => self.named_call("  builtin ", BUILTINS),
            6 | 7 => self.dynamic_call(),
            8 | 9 => self.operator(),
            10 | 11 => self.invoke(),
            12 => self.creation(),
            13 => return (self.phi(block), true),
            14 => return (self.pi(), true),
            15..=17 => return self.head(),
            18 => self.plain_operand(),
            _ => self.quoted_value(),
        };
        let ty = self.annotation();
        // A statement of type `Union{}` would make the following rows unreachable.
        let ty = if ty == "Union{}" { "Any".to_owned() } else { ty };
        (format!("{text}::{ty}"), true)
    }

    fn label(&self, label: &'static str) -> &'static str {
        match self.version {
            Version::Unlabelled => "",
            Version::Labelled => label,
        }
    }

    /// An operand of a row.
    pub(super) fn operand(&mut self) -> String {
        match self.rng.below(10) {
            0..=2 => self.ssa().unwrap_or_else(|| self.argument()),
            3 | 4 => self.argument(),
            5 => self.one_of(GLOBALS).to_owned(),
            6 => self.quoted_value(),
            7 => self.one_of(&["#self#", "@_3", "_2", "_4"]).to_owned(),
            _ => self.value(),
        }
    }

    /// An operand that can be a row itself.
    pub(super) fn plain_operand(&mut self) -> String {
        match self.rng.below(5) {
            0 => self.one_of(GLOBALS).to_owned(),
            1 => self.one_of(&["1", "0x01", "1.5", "nothing", "true", "\"abc\"", ":x", "'c'"]).to_owned(),
            2 => self.argument(),
            _ => self.ssa().unwrap_or_else(|| self.argument()),
        }
    }

    /// An operand inside `$(Expr(…))`, where the printer quotes.
    fn quoted(&mut self) -> String {
        match self.rng.below(9) {
            0 | 1 => match self.ssa() {
                Some(row) if self.rng.chance(50) => format!(":({row})"),
                Some(row) => format!("Core.SSAValue({})", &row[1..]),
                None => "Core.Argument(2)".to_owned(),
            },
            2 => format!(":({})", self.argument()),
            3 => format!("Core.Argument({})", self.rng.between(1, 7)),
            4 => format!(":({})", self.one_of(GLOBALS)),
            5 => format!(":({})", self.quoted_value()),
            6 => format!(":({})", self.one_of(&[":x", ":sequentially_consistent", ":+"])),
            _ => self.value(),
        }
    }

    fn ssa(&mut self) -> Option<String> {
        let with_values: Vec<usize> =
            self.rows.iter().enumerate().filter(|(_, has)| **has).map(|(at, _)| at + 1).collect();
        self.rng.pick(&with_values).map(|row| format!("%{row}"))
    }

    fn argument(&mut self) -> String {
        let number = self.rng.below(ARGUMENTS.len());
        match self.around {
            Around::Gutters => format!("_{}", number + 2),
            _ => ARGUMENTS[number].to_owned(),
        }
    }

    pub(super) fn condition(&mut self) -> String {
        match self.rng.below(5) {
            0 => "true".to_owned(),
            1 => self.plain_operand(),
            2 => "Main.counter".to_owned(),
            _ => self.argument(),
        }
    }

    /// `Base.add_int(…)`, `(Core.Intrinsics.add_int)(…)`, `(getfield)(…)`.
    fn named_call(&mut self, label: &'static str, names: &[(&'static str, usize)]) -> String {
        let &(name, count) = self.rng.pick(names).unwrap_or(&("tuple", 1));
        let mut args = self.list(count, Self::operand);
        if CONVERSIONS.contains(&name) {
            let to = if self.rng.chance(80) { self.ty() } else { self.argument() };
            args = format!("{to}, {}", self.operand());
        }
        let is_operator = !name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let name = if is_operator { format!("({name})") } else { name.to_owned() };
        let (label, is_intrinsic) = (self.label(label), label.starts_with("intrinsic"));
        let callee = match self.rng.below(4) {
            0 if is_intrinsic => format!("(Core.Intrinsics.{name})"),
            0 if is_operator => name,
            0 => format!("({name})"),
            1 => format!("Core.{}{name}", if is_operator { ":" } else { "" }),
            _ => format!("Base.{}{name}", if is_operator { ":" } else { "" }),
        };
        format!("{label}{callee}({args})")
    }

    /// A call that the printer could not resolve.
    fn dynamic_call(&mut self) -> String {
        let label = *self.rng.pick(&["  dynamic ", "dynamic builtin "]).unwrap_or(&"");
        let label = self.label(label);
        let callee = match self.rng.below(12) {
            0 => format!("({})", self.ssa().unwrap_or_else(|| "a".to_owned())),
            1 => format!("({})", self.argument()),
            2 => format!("({})", self.ty()),
            3 => "Main.Foo".to_owned(),
            4 => "(Main.var\"#f#1\"())".to_owned(),
            5 => "(sin)".to_owned(),
            6 => "Core.kwcall".to_owned(),
            7 => "Base.:(var\"#sort#3\")".to_owned(),
            8 => "Main.:(f!)".to_owned(),
            9 => "Base.:(:)".to_owned(),
            10 => "(+)".to_owned(),
            _ => self
                .one_of(&[
                    "Main.f",
                    "Base.getindex",
                    "Base.Broadcast.materialize",
                    "Base.setindex!",
                    "Base.string",
                ])
                .to_owned(),
        };
        let count = self.rng.below(4);
        let args = self.list(count, Self::operand);
        format!("{label}{callee}({args})")
    }

    /// `(a + b)`, `(a + b + c)`, `(a:b:c)`, `!a`, `(*)(a)`.
    fn operator(&mut self) -> String {
        let label = self.label("  dynamic ");
        let op = self.one_of(INFIX);
        let simple =
            |dump: &mut Self| dump.ssa().filter(|_| dump.rng.chance(50)).unwrap_or_else(|| dump.argument());
        let (first, second, third) = (simple(self), simple(self), simple(self));
        match self.rng.below(8) {
            0 => format!("{label}({first} + {second} + {third})"),
            1 => format!("{label}({first}:{second}:{third})"),
            2 => format!("{label}{}{first}", self.one_of(&["!", "-", "+", "~", "√"])),
            3 => format!("{label}(*)({first})"),
            _ if op == ":" => format!("{label}({first}:{second})"),
            _ => format!("{label}({first} {op} {second})"),
        }
    }

    fn invoke(&mut self) -> String {
        let callee = match self.rng.below(9) {
            0 => format!("({}::{})", self.argument(), self.ty()),
            1 => "(Main.f::typeof(f))".to_owned(),
            2 => "Core.kwcall".to_owned(),
            3 => "Base.:(var\"#sort#3\")".to_owned(),
            4 => "Base.BoundsError".to_owned(),
            5 => "Main.Foo".to_owned(),
            6 => "(Main.var\"#f#1\"())".to_owned(),
            7 => "Base.:+".to_owned(),
            _ => self
                .one_of(&["Main.f", "Base._throw_argerror", "Base.Sort.sort!", "Base.Math.log"])
                .to_owned(),
        };
        let label = match (self.version, self.rng.below(4)) {
            (Version::Labelled, 0) => "dynamic invoke ",
            (Version::Labelled, _) => "   invoke ",
            (Version::Unlabelled, _) => "invoke ",
        };
        let count = self.rng.below(4);
        let args = self.list(count, |dump| format!("{}::{}", dump.operand(), dump.ty()));
        format!("{label}{callee}({args})")
    }

    fn creation(&mut self) -> String {
        let word = if self.rng.chance(75) { "new" } else { "splatnew" };
        let ty = match self.rng.below(8) {
            0 => "#ctor-self#".to_owned(),
            1 => self.argument(),
            2 => self.ssa().unwrap_or_else(|| "Main.Foo".to_owned()),
            3 => "Main.:(var\"#f#1\")".to_owned(),
            4 => "Main.Foo".to_owned(),
            _ => self.ty(),
        };
        let count = if word == "new" { self.rng.below(4) } else { 1 };
        let mut args = self.list(count, Self::operand);
        if count > 0 {
            args.insert_str(0, ", ");
        }
        format!("%{word}({ty}{args})")
    }

    fn phi(&mut self, block: usize) -> String {
        let edges = if block == 1 { String::new() } else { format!("#{} => {}", block - 1, self.operand()) };
        format!("φ ({edges})::{}", self.ty())
    }

    fn pi(&mut self) -> String {
        format!("π ({}, {})", self.operand(), self.ty())
    }

    /// `$(Expr(:head, …))`, and whether it has a value.
    fn head(&mut self) -> (String, bool) {
        let ty = |dump: &mut Self| dump.ty();
        let text = match self.rng.below(22) {
            0 => "$(Expr(:boundscheck, true))::Bool".to_owned(),
            1 => format!("$(Expr(:gc_preserve_begin, {}))", self.quoted()),
            2 => return (format!("$(Expr(:meta, {}))", self.one_of(&[":inline", ":noinline", ":propagate_inbounds", ":nkw, 1", ":purity, 0x0001"])), false),
            3 => return (format!("$(Expr(:loopinfo, Symbol(\"julia.simdloop\"), {}))::Nothing", self.one_of(&["nothing", "Symbol(\"julia.ivdep\")"])), false),
            4 => return (format!("$(Expr(:inbounds, {}))::Nothing", self.one_of(&["true", ":pop", "false"])), false),
            5 => return (format!("$(Expr(:{}))::Nothing", self.one_of(&["aliasscope", "popaliasscope", "code_coverage_effect", "latestworld"])), false),
            6 => format!("$(Expr(:static_parameter, {}))::{}", self.rng.between(1, 3), ty(self)),
            7 => format!("$(Expr(:throw_undef_if_not, {}, {}))::Any", self.one_of(&[":x", "Symbol(\"##getfield##\")"]), self.one_of(&["true", "false", ":(b)"])),
            8 => format!("$(Expr(:isdefined, {}))::Bool", self.one_of(&[":(Main.x)", ":x", ":(%1)"])),
            9 => format!("$(Expr(:copyast, :($(QuoteNode({})))))::Expr", self.one_of(&[":(a + b)", ":(f(x; y = 1))", ":(quote\n    x\nend)"])),
            10 => format!("$(Expr(:cfunction, Ptr{{Nothing}}, :({}), Int32, svec(Int32), :(:ccall)))::Ptr{{Nothing}}", self.one_of(&["$(QuoteNode(:(Main.f)))", "Main.f", "%1"])),
            11 => format!("$(Expr(:method, {}))::Any", self.one_of(&[":f", ":(Main.f)", ":f, :(%1), CodeInfo(1)"])),
            12 => return (format!("$(Expr(:{}, :x))::Any", self.one_of(&["global", "const", "globaldecl", "thunk"])), true),
            13 => "$(Expr(:new_opaque_closure, Tuple{Int64}, Int64, Int64, true, :($(QuoteNode(1))), :(x)))::Core.OpaqueClosure{Tuple{Int64}, Int64}".to_owned(),
            14 => format!("$(Expr(:opaque_closure_method, nothing, 1, false, :none, {}))::Any", self.quoted()),
            15 => {
                let instance = self.one_of(&[
                    "MethodInstance for +(::Int64, ::Int64)", "CodeInstance for MethodInstance for +(::Int64, ::Int64)", "CodeInstance for +(::Int64, ::Int64)",
                ]);
                let callee = self.one_of(&["modifyfield!", ":(Core.modifyfield!)", ":(Base.modifyfield!)"]);
                let list = self.list(4, Self::quoted);
                format!("$(Expr(:invoke_modify, {instance}, {callee}, {list}, :(:monotonic)))::{}", ty(self))
            }
            _ => self.foreign_call(),
        };
        (text, true)
    }

    fn foreign_call(&mut self) -> String {
        let name = self.one_of(&[
            ":(:jl_gc)",
            ":((:getpid,))",
            ":((:cos, \"libm\"))",
            ":((:cos, Base.Math.libm))",
            ":(Core.tuple(:cos, \"libm\"))",
            "\"llvm.ctpop.i64\"",
            ":($(QuoteNode(:jl_x)))",
            ":(%1)",
            ":(:jl_string_ptr)",
            ":(:memmove)",
            ":(:jl_object_id)",
            ":(:unknown_function)",
        ]);
        let convention = self.one_of(&[
            ":(:ccall)",
            ":($(QuoteNode(:ccall)))",
            ":($(QuoteNode((:ccall, 0x0000, false))))",
            ":(:stdcall)",
            ":(:llvmcall)",
        ]);
        let count = self.rng.below(4);
        let types = self.list(count, Self::ty);
        let result = self.ty();
        let roots = self.rng.below(2);
        let mut args = self.list(count + roots, Self::quoted);
        if !args.is_empty() {
            args.insert_str(0, ", ");
        }
        format!(
            "$(Expr(:foreigncall, {name}, {result}, svec({types}), 0, {convention}{args}))::{}",
            self.ty()
        )
    }
}
