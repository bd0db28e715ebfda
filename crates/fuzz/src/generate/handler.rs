//! Try and catch, with a variable that the handler reads.
//!
//! ```text
//! head     %a = ϒ (v)                 the variable before anything can throw
//!          %e = enter #catch
//! body     …                          may throw
//!          %b = ϒ (w)                 the variable changes
//!          …
//!          leave %e ─────────────┐
//! catch    %c = φᶜ (%a, %b)      │
//!          %d = the_exception    │
//!          …                     │
//!          pop_exception %e ─────┤
//! join     φ                  ◄──┘
//! ```

use super::func::FuncGen;
use brolga_ir::{Op, Type};

impl FuncGen<'_> {
    /// A region with a handler around it.
    pub(super) fn try_catch(&mut self, depth: usize) {
        let variable = self.palette.any(self.rng);
        let before = self.value(variable);
        let first = self.emit_hidden(Op::Upsilon, &[before], variable);
        let body = self.func.make_block();
        let (catch, join) = (self.func.make_block(), self.func.make_block());
        let enter = self.emit_void(Op::Enter, &[], &[body, catch], &[Type::TOKEN]);
        let Some(token) = self.func.result(enter) else { return };
        self.block = None;

        let mut stores = vec![first];
        let mut edges = Vec::new();
        let result = self.palette.any(self.rng);
        let scope = self.scope();
        self.handlers += 1;
        self.start(body);
        self.region(depth.min(2));
        if self.block.is_some() {
            let later = self.value(variable);
            stores.push(self.emit_hidden(Op::Upsilon, &[later], variable));
            self.region(1);
        }
        if self.block.is_some() {
            let value = self.value_for(result);
            self.emit_void(Op::Leave, &[token], &[], &[]);
            if let Some(here) = self.block {
                edges.push((here, value));
                self.goto(join);
            }
        }
        self.leave_scope(scope);

        // Until the exception is popped, control must not leave either: `handlers` still counts this one.
        self.start(catch);
        self.emit(Op::PhiC, &stores, variable);
        self.emit_hidden(Op::TheException, &[], Type::ANY);
        // An exception thrown here goes to the outer handler; the exception being handled is not lost.
        self.region(1);
        if self.block.is_some() {
            let value = self.value_for(result);
            self.emit_void(Op::PopException, &[token], &[], &[Type::NOTHING]);
            if let Some(here) = self.block {
                edges.push((here, value));
                self.goto(join);
            }
        }
        self.handlers -= 1;
        self.leave_scope(scope);
        if !edges.is_empty() {
            self.start(join);
            let (_, value) = self.phi(result, &edges);
            self.offer(value);
        }
    }
}
