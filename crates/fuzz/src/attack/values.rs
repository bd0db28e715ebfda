//! Values of each type: unusual ones and available ones.

use super::body::{Val, Writer};
use super::operands::{OBJECTS, Subject};
use super::{numbers, shared};

impl Writer<'_> {
    /// A number that wraps around as an index into the object made last.
    pub(super) fn extreme(&mut self) -> i64 {
        let stride = self.focus.map(shared::stride);
        numbers::extreme(&mut self.rng, stride)
    }

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

    pub(super) fn index(&mut self) -> Val {
        match self.rng.below(10) {
            0..2 => Val::new("a", "Int64"),
            2..4 => Val::new("b", "Int64"),
            4..6 => Val::new(numbers::small(&mut self.rng).to_string(), "Int64"),
            _ => Val::new(self.extreme().to_string(), "Int64"),
        }
    }

    pub(super) fn length(&mut self, element: &str) -> Val {
        // Memory of that size is refused, unless its elements have size 0.
        let may_be_huge = self.giants || !shared::is_empty(element) && self.rng.chance(30);
        match self.rng.below(10) {
            0..7 if may_be_huge => Val::new(self.extreme().to_string(), "Int64"),
            7..9 => Val::new("b", "Int64"),
            _ => Val::new(numbers::small(&mut self.rng).to_string(), "Int64"),
        }
    }

    pub(super) fn float(&mut self, ty: &str) -> String {
        const FLOATS: [&str; 8] = ["0.0", "-0.0", "1.5", "Inf", "-Inf", "1.0e308", "-2.25", "1.0e-310"];
        let text = FLOATS[self.rng.below(FLOATS.len())];
        match (ty, text) {
            ("Float32", "Inf" | "-Inf") => text.replace("Inf", "Inf32"),
            ("Float32", "1.0e308" | "1.0e-310") => "1.0f38".to_owned(),
            ("Float32", _) => format!("{text}f0"),
            _ => text.to_owned(),
        }
    }

    /// A value to splat.
    pub(super) fn splat(&mut self) -> Val {
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

    pub(super) fn type_operand(&mut self, subject: &Subject) -> Val {
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

    /// An available value of exactly this type.
    pub(super) fn at_hand(&mut self, ty: &str) -> Option<Val> {
        let known: Vec<Val> = self.pool[self.visible..].iter().filter(|val| val.ty == ty).cloned().collect();
        self.rng.pick(&known).cloned().filter(|_| self.rng.chance(70))
    }

    pub(super) fn memory(&mut self, element: &str) -> Val {
        let ty = format!("Memory{{{element}}}");
        self.focus = shared::known(element);
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

    pub(super) fn reference(&mut self, element: &str) -> Val {
        let ty = format!("MemoryRef{{{element}}}");
        self.focus = shared::known(element);
        if let Some(known) = self.at_hand(&ty) {
            return known;
        }
        let memory = self.memory(element).text;
        let reference = self.row(&format!("Core.memoryrefnew({memory})"), &ty);
        self.pool.push(reference.clone());
        reference
    }

    pub(super) fn array(&mut self, element: &str) -> Val {
        let rank = if self.rng.chance(75) { 1 } else { 2 + self.rng.below(2) };
        let ty = match rank {
            1 => format!("Vector{{{element}}}"),
            rank => format!("Array{{{element}, {rank}}}"),
        };
        self.focus = shared::known(element);
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

    /// A value of this type, which is the type of an element, field or object.
    pub(super) fn make(&mut self, ty: &str) -> Val {
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
            "Int128" => format!("Int128({})", self.extreme()),
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
        // Whether reading such a field from a location throws is unspecified.
        self.is_open |= lacks && matches!(name, "T2" | "S24");
        let parts: Vec<String> = fields[..least].iter().map(|field| self.make(field).text).collect();
        let mut list = vec![name.to_owned()];
        list.extend(parts);
        self.row(&format!("%new({})", list.join(", ")), name)
    }

    pub(super) fn object_of(&mut self, ty: &str) -> Val {
        match self.at_hand(ty) {
            Some(known) => known,
            None => {
                let made = self.make(ty);
                self.pool.push(made.clone());
                made
            }
        }
    }

    /// An object at the start of a program.
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
}
