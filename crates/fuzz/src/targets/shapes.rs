//! Patterns of statements, repeated n times and 4 n times: if the cost is more than five times as high, an
//! algorithm does not scale.
//!
//! ```text
//!   choices ─► pieces in sequence: loop, check, call, object, …               the pattern
//!              n of them in one function, or in n functions                 the program
//! ```
//!
//! [`constructs`](crate::constructs) has each construct on its own, where a pass may find nothing to do; here
//! they are combined. The caller defines the cost: allocated bytes, or processor time.

use brolga_engine::{Engine, Program};
use brolga_opt::OptLevel;

use super::{Fault, doors};
use crate::constructs::{self, Piece};

/// The maximum ratio of costs for four times the size.
const MOST: u64 = 5;
/// The maximum number of pieces per pattern.
const PIECES: usize = 6;

/// A pattern selected by an input.
#[derive(Clone, PartialEq, Debug)]
pub struct Pattern {
    pieces: Vec<Piece>,
    /// Whether each piece is in a separate function.
    is_apart: bool,
    level: OptLevel,
}

impl Pattern {
    /// The pattern encoded by bytes: the first selects the kind of repetition, each other one a piece.
    pub fn new(bytes: &[u8]) -> Pattern {
        let (first, rest) = bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest));
        let piece = |byte: &u8| Piece::ALL[usize::from(*byte) % Piece::ALL.len()];
        let mut pieces: Vec<Piece> = rest.iter().take(PIECES).map(piece).collect();
        if pieces.is_empty() {
            pieces.push(Piece::Sum);
        }
        let level = if first & 2 == 0 { OptLevel::O2 } else { OptLevel::O0 };
        Pattern { pieces, is_apart: first & 1 == 1, level }
    }

    /// The program with `n` repetitions.
    pub fn text(&self, n: usize) -> String {
        constructs::pattern(&self.pieces, n, self.is_apart)
    }

    /// The cost of reading and compiling it, measured by a counter that only grows; `None` if it cannot be
    /// compiled.
    fn cost(&self, n: usize, counter: &dyn Fn() -> u64) -> Option<u64> {
        let text = self.text(n);
        let engine = Engine::new(doors::open().opt_level(self.level)).ok()?;
        let begin = counter();
        let unit = engine.compile(&Program::read("pattern.jlir", text.as_bytes()).ok()?).ok()?;
        let end = counter();
        drop(unit);
        Some(end - begin)
    }
}

/// Compares the cost of a pattern with its cost at four times the size. Costs below `least` count as `least`,
/// because they are noise. Where a limit is exceeded, compilation may switch to another algorithm, and the
/// cost jumps once; so it is a fault only if the next size is as steep.
///
/// # Errors
/// The cost grows by more than `MOST`, twice; or the pattern is refused.
pub fn shapes(bytes: &[u8], n: usize, least: u64, counter: &dyn Fn() -> u64) -> Result<(), Fault> {
    let pattern = Pattern::new(bytes);
    let cost = |n: usize| {
        let least_of = (0..2).filter_map(|_| pattern.cost(n, counter)).min();
        least_of.ok_or_else(|| Fault(format!("{n} times {pattern:?} cannot be compiled")))
    };
    let (small, large) = (cost(n)?, cost(4 * n)?);
    let is_steep = |small: u64, large: u64| large > MOST * small.max(least);
    if !is_steep(small, large) {
        return Ok(());
    }
    let larger = cost(16 * n)?;
    match is_steep(large, larger) {
        true => Err(Fault(format!(
            "{pattern:?} costs {small}, {large}, {larger} for {n}, 4 and 16 times as many"
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Every piece is valid, on its own and with others.
    #[test]
    fn patterns_are_programs() {
        let mut rng = Rng::new(1);
        let alone = (0..Piece::ALL.len() as u8).map(|piece| vec![0, piece]);
        let mixed: Vec<Vec<u8>> = (0..40).map(|_| (0..7).map(|_| rng.next_u64() as u8).collect()).collect();
        for bytes in alone.chain(mixed) {
            let pattern = Pattern::new(&bytes);
            let text = pattern.text(3);
            let program = Program::read("pattern.jlir", text.as_bytes());
            let program = program.unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
            let engine = Engine::new(doors::open().opt_level(pattern.level)).unwrap();
            engine.compile(&program).unwrap_or_else(|error| panic!("{pattern:?}: {error}"));
        }
    }
}
