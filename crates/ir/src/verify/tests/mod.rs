//! One malformed function for every rule, with the expected message, and well-formed neighbours.

mod shape;
mod types;

use super::*;
use crate::cursor::Cursor;
use crate::diag::Diagnostic;
use crate::func::{Param, Signature};
use crate::op::Op;
use std::sync::Arc;

/// A function under construction.
struct Bench {
    cx: Arc<Context>,
    func: Func,
    module: Option<Module>,
}

impl Bench {
    fn over(cx: Arc<Context>, level: Level, params: &[Type], result: &[Type]) -> Bench {
        let name = cx.names.intern("f");
        let object = (level == Level::High).then(|| cx.types.function(name));
        let params = object.into_iter().chain(params.iter().copied()).map(|ty| Param { name: None, ty });
        let sig = Signature {
            params: params.collect(),
            results: result.to_vec(),
            vararg: false,
            ..Signature::default()
        };
        let mut func = Func::new(name, level, sig);
        Cursor::new(&mut func).append_block();
        Bench { cx, func, module: None }
    }

    fn high(params: &[Type], result: Type) -> Bench {
        Bench::over(Context::new(), Level::High, params, &[result])
    }

    fn low(params: &[Type], results: &[Type]) -> Bench {
        Bench::over(Context::new(), Level::Low, params, results)
    }

    /// Argument `n`, from 1.
    fn arg(&self, n: usize) -> Value {
        self.func.params()[n - usize::from(self.func.level == Level::Low)]
    }

    fn blocks<const N: usize>(&mut self) -> [Block; N] {
        let mut all: Vec<Block> = self.func.blocks().collect();
        while all.len() < N {
            all.push(Cursor::new(&mut self.func).append_block());
        }
        all.try_into().unwrap()
    }

    fn last(&mut self) -> Cursor<'_> {
        let block = self.func.last_block().unwrap();
        self.bottom(block)
    }

    fn bottom(&mut self, block: Block) -> Cursor<'_> {
        let mut at = Cursor::new(&mut self.func);
        at.at_bottom(block);
        at
    }

    fn op(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.last().ins_value(op, args, ty)
    }

    fn effect(&mut self, op: Op, args: &[Value]) -> Inst {
        self.last().ins(op, args, &[])
    }

    fn int(&mut self, ty: Type, value: u128) -> Value {
        self.func.bits(&self.cx.types, ty, value)
    }

    fn sym(&mut self, text: &str) -> Value {
        let name = self.cx.names.intern(text);
        self.func.constant(Const::Symbol(name))
    }

    fn nothing(&mut self) -> Value {
        self.func.constant(Const::Singleton(Type::NOTHING))
    }

    fn ret(&mut self, value: Value) -> Inst {
        self.last().ret(&[value])
    }

    fn run(&self) -> Vec<Violation> {
        match &self.module {
            Some(module) => verify_func_in(module, &self.func),
            None => verify_func(&self.cx, &self.func),
        }
        .err()
        .unwrap_or_default()
    }

    fn says(&self) -> Vec<String> {
        let found = self.run();
        let (source, shown) = point_into_printout(&self.cx, &self.func, &found);
        let explain = |d: &Diagnostic| {
            assert!(d.at.end as usize <= source.text().len());
            let notes: String = d.notes.iter().map(|n| format!("; {n}")).collect();
            format!("{}: {}{notes}", d.code, d.message)
        };
        shown.iter().map(explain).collect()
    }

    #[track_caller]
    fn expect(&self, lines: &[&str]) {
        assert_eq!(self.says(), lines);
    }
}
