//! Control-flow graphs for the tests of the analyses: written down, random, and large.

use crate::Context;
use crate::constant::Const;
use crate::entity::Block;
use crate::func::{Func, Signature};
use crate::op::{Level, Op};
use crate::types::Type;

/// A function whose block `i` ends in a jump to the listed blocks: zero, one or two of them.
pub(crate) fn func_of(edges: &[&[usize]]) -> Func {
    let cx = Context::new();
    let mut func = Func::new(cx.names.intern("graph"), Level::Low, Signature::default());
    let blocks: Vec<Block> = edges.iter().map(|_| func.make_block()).collect();
    let flag = func.constant(Const::Bits { ty: Type::I8, bits: 1 });
    for (&block, targets) in blocks.iter().zip(edges) {
        func.append_block(block);
        let targets: Vec<Block> = targets.iter().map(|&t| blocks[t]).collect();
        let end = match targets.len() {
            0 => func.make_inst(Op::Return, &[], &[], &[]),
            1 => func.make_inst(Op::Goto, &[], &targets, &[]),
            _ => func.make_inst(Op::Branch, &[flag], &targets[..2], &[]),
        };
        func.append_inst(end, block);
    }
    func
}

/// A small deterministic random number generator.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize % bound
    }
}

/// A graph of up to `max` blocks: arbitrary edges, or mostly forward and nearby ones as in real programs.
pub(crate) fn random_graph(seed: u64, max: usize) -> Func {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    let count = 1 + random.below(max);
    let wild = random.below(2) == 0;
    let edges: Vec<Vec<usize>> = (0..count)
        .map(|i| {
            (0..random.below(3))
                .map(|_| {
                    if wild || random.below(5) == 0 {
                        random.below(count)
                    } else {
                        (i + 1 + random.below(3)) % count
                    }
                })
                // The entry has no predecessors.
                .filter(|&t| t != 0)
                .collect()
        })
        .collect();
    func_of(&edges.iter().map(|e| &e[..]).collect::<Vec<_>>())
}

/// Large graphs of the shapes that are known to be hard: a chain, nested loops, a ladder, one block with many
/// predecessors, a long irreducible band.
pub(crate) fn large_graphs(count: usize) -> Vec<(&'static str, Func)> {
    let make = |edges: &dyn Fn(usize) -> Vec<usize>| {
        let lists: Vec<Vec<usize>> = (0..count).map(edges).collect();
        func_of(&lists.iter().map(|e| &e[..]).collect::<Vec<_>>())
    };
    let last = count - 1;
    let half = count / 2;
    vec![
        ("chain", make(&|i| if i < last { vec![i + 1] } else { vec![] })),
        // Block i below the middle opens a loop that block `last - i` closes.
        (
            "nest",
            make(&|i| match i {
                _ if i == last => vec![],
                _ if i < half => vec![i + 1],
                _ => vec![last - i, i + 1].into_iter().filter(|&t| t != 0).collect(),
            }),
        ),
        ("ladder", make(&|i| if i + 2 <= last { vec![i + 2, i + 1] } else { vec![] })),
        ("fan", make(&|i| if i < last { vec![i + 1, last] } else { vec![] })),
        (
            "band",
            make(&|i| match i {
                0 => vec![half, 1],
                _ if i == last => vec![i - 1],
                1 => vec![2],
                _ => vec![i + 1, i - 1],
            }),
        ),
    ]
}
