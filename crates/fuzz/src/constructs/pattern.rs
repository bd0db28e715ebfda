//! Parts of functions that can be combined into patterns.

use super::{Body, call_c, function, handler, identity, looping};

/// A few statements that use the parameter `x`, or the latest value of their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
    /// A sum with the latest integer.
    Sum,
    /// A checked sum with the latest integer.
    CheckedSum,
    /// A product with the parameter.
    Product,
    /// A division, which may throw.
    Division,
    /// A call of a function of the program.
    Call,
    CallOfC,
    /// A call on the latest object that is resolved at run time.
    Dynamic,
    Object,
    /// A load of a field of the latest object.
    Load,
    /// A store to a field of the latest object.
    Store,
    /// A condition with two branches that join.
    If,
    /// A loop with a sum in it.
    Loop,
    /// A call under a handler.
    Handler,
    /// A separate block.
    Block,
    /// A type test.
    Test,
    /// A tuple, and a read of an element.
    Tuple,
}

impl Piece {
    pub const ALL: &[Piece] = &[
        Piece::Sum,
        Piece::CheckedSum,
        Piece::Product,
        Piece::Division,
        Piece::Call,
        Piece::CallOfC,
        Piece::Dynamic,
        Piece::Object,
        Piece::Load,
        Piece::Store,
        Piece::If,
        Piece::Loop,
        Piece::Handler,
        Piece::Block,
        Piece::Test,
        Piece::Tuple,
    ];

    fn add(self, b: &mut Body, int: &mut String, object: &str) {
        let value = match self {
            Piece::Sum => b.value(&format!("Base.add_int({int}, x)::Int64")),
            Piece::CheckedSum => {
                let both = b.value(&format!("Base.checked_sadd_int({int}, x)::Tuple{{Int64, Bool}}"));
                b.value(&format!("Base.getfield({both}, 1)::Int64"))
            }
            Piece::Product => b.value(&format!("Base.mul_int({int}, x)::Int64")),
            Piece::Division => b.value(&format!("Base.checked_sdiv_int({int}, x)::Int64")),
            Piece::Call => b.value(&format!("invoke Main.g({int}::Int64)::Int64")),
            Piece::CallOfC => call_c(b),
            Piece::Dynamic => {
                let any = b.value(&format!("dynamic Main.h({object})::Any"));
                b.value(&format!("Core.typeassert({any}, Int64)::Int64"))
            }
            Piece::Object => {
                let made = b.value(&format!("%new(Main.S, {int})::Main.S"));
                b.value(&format!("Base.getfield({made}, :a)::Int64"))
            }
            Piece::Load => b.value(&format!("Base.getfield({object}, :a)::Int64")),
            Piece::Store => return drop(b.value(&format!("Base.setfield!({object}, :a, {int})::Int64"))),
            Piece::If => {
                let is = b.value(&format!("Base.slt_int({int}, x)::Bool"));
                let label = b.label;
                b.line(&format!("goto #{} if not {is}", label + 2));
                b.block();
                let sum = b.value(&format!("Base.add_int({int}, 3)::Int64"));
                b.line(&format!("goto #{}", label + 2));
                b.block();
                b.value(&format!("φ (#{label} => {int}, #{} => {sum})::Int64", label + 1))
            }
            Piece::Loop => {
                return looping(b, |b| drop(b.value(&format!("Base.add_int({int}, x)::Int64"))));
            }
            Piece::Handler => return handler(b, |b| drop(call_c(b))),
            Piece::Block => {
                b.line(&format!("goto #{}", b.label + 1));
                return b.block();
            }
            Piece::Test => return drop(b.value(&format!("({object} isa Main.S)::Bool"))),
            Piece::Tuple => {
                let made = b.value(&format!("Core.tuple({int}, x)::Tuple{{Int64, Int64}}"));
                b.value(&format!("Base.getfield({made}, 2)::Int64"))
            }
        };
        *int = value;
    }
}

/// A program that has these pieces `n` times, in one function or in `n` functions.
pub fn pattern(pieces: &[Piece], n: usize, is_apart: bool) -> String {
    let body = |times: usize| {
        move |b: &mut Body| {
            let object = b.value("%new(Main.S, x)::Main.S");
            let mut int = "x".to_owned();
            (0..times).for_each(|_| pieces.iter().for_each(|piece| piece.add(b, &mut int, &object)));
            b.ret(&int);
        }
    };
    let functions = match is_apart {
        true => (0..n).map(|i| function(&format!("f{i}"), "x::Int64", body(1))).collect(),
        false => function("f", "x::Int64", body(n)),
    };
    "mutable struct S\n    a::Int64\nend\n".to_owned()
        + &identity("g")
        + &function("h", "s::Main.S", |b| b.ret("1"))
        + &functions
}
