//! Calls of a function value, in each form.

use super::body::{Val, Writer};
use super::forms::Form;

impl Writer<'_> {
    /// A call of a function value.
    pub(super) fn call_value(&mut self, form: Form, callee: &str, args: &[Val]) -> Val {
        let list = args.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
        let and_list = if list.is_empty() { String::new() } else { format!(", {list}") };
        let function = match form {
            Form::Named | Form::Untyped => callee.to_owned(),
            Form::Barrier => self.row(&format!("Core.compilerbarrier(:type, {callee})"), "Any").text,
            Form::Iterate => {
                let callee = match self.rng.chance(50) {
                    true => self.row(&format!("Core.compilerbarrier(:type, {callee})"), "Any").text,
                    false => callee.to_owned(),
                };
                let at = self.rng.below(args.len() + 1);
                let tuples = [&args[..at], &args[at..]].map(|part| {
                    let list = part.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(", ");
                    self.row(&format!("Core.tuple({list})"), "Any").text
                });
                return self.row(
                    &format!("Core._apply_iterate(Base.iterate, {callee}, {})", tuples.join(", ")),
                    "Any",
                );
            }
            Form::Latest => {
                let name = if self.rng.chance(50) { "invokelatest" } else { "_call_latest" };
                return self.row(&format!("Core.{name}({callee}{and_list})"), "Any");
            }
            Form::World => {
                let world = match self.rng.chance(50) {
                    true => "0xffffffffffffffff".to_owned(),
                    false => {
                        let call =
                            "$(Expr(:foreigncall, :(:jl_get_world_counter), UInt64, svec(), 0, :(:ccall)))";
                        self.row(call, "UInt64").text
                    }
                };
                return self.row(&format!("Core.invoke_in_world({world}, {callee}{and_list})"), "Any");
            }
            Form::Phi => self.either("c", callee, "Main.dropped").text,
            Form::Field => {
                let hold = self.row(&format!("%new(Hold, {callee}, 1)"), "Hold");
                self.row(&format!("Core.getfield({}, :a)", hold.text), "Any").text
            }
            Form::Element => {
                let memory = self.row("Core.memorynew(Memory{Any}, 1)", "Memory{Any}").text;
                let first = self.row(&format!("Core.memoryrefnew({memory})"), "MemoryRef{Any}").text;
                self.stmt(&format!("Core.memoryrefset!({first}, {callee}, :not_atomic, true)::Any"));
                self.row(&format!("Core.memoryrefget({first}, :not_atomic, true)"), "Any").text
            }
            Form::Global => {
                self.stmt(&format!("Core.setglobal!(Main, :victim, {callee})::Any"));
                self.row("Main.victim", "Any").text
            }
            Form::Returned => self.row(&format!("Main.same({callee})"), "Any").text,
            Form::Nested => {
                let call = ["Core.invokelatest", "Core._apply_iterate", "Core.ifelse"][self.rng.below(3)];
                match call {
                    "Core.ifelse" => self.row(&format!("Core.ifelse(c, {callee}, Main.dropped)"), "Any").text,
                    _ => {
                        let outer = self.row(&format!("Core.compilerbarrier(:type, {call})"), "Any").text;
                        if call == "Core.invokelatest" {
                            return self.row(&format!("({outer})({callee}{and_list})"), "Any");
                        }
                        let tuple = self.row(&format!("Core.tuple({list})"), "Any").text;
                        return self.row(&format!("({outer})(Base.iterate, {callee}, {tuple})"), "Any");
                    }
                }
            }
        };
        let callee = if form.is_value() { format!("({function})") } else { function };
        self.row(&format!("{callee}({list})"), "Any")
    }
}
