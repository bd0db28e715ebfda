//! Translates the `leave` of Julia up to 1.10 into the later form.
//!
//! ```text
//!            up to 1.10                           since 1.11
//! 2 ── %2 = $(Expr(:enter, #5))                %2 = enter #5
//! 3 ── …                                       …
//! └─── $(Expr(:leave, 1))                      $(Expr(:leave, :(%2)))
//! 5 ── …    reached by a throw                 …
//! └─── $(Expr(:leave, 1))                      (nothing: the throw left the handler)
//! ```
//!
//! The old form counts handlers, and a throw does not remove the handler that it reaches. So every block has
//! a stack of the `enter`s that are not left yet; an entry is *spent* in the code that its own throw reached.
//! A `leave n` becomes a `leave` of the entries among the innermost *n* that are not spent.
//!
//! Stacks are shared lists of interned nodes, so two stacks are equal if their heads are.

use rustc_hash::FxHashMap;

use super::super::ast::{ExprKind, Function, Literal, Stmt};
use super::Resolver;
use super::error::ResolveError;

/// A row: the index of its block, and its index in the block.
pub(super) type At = (usize, usize);

/// The head of a stack; 0 is the empty one.
type Stack = u32;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    below: Stack,
    enter: At,
    spent: bool,
}

#[derive(Default)]
struct Stacks {
    entries: Vec<Entry>,
    ids: FxHashMap<Entry, Stack>,
}

impl Stacks {
    fn push(&mut self, entry: Entry) -> Stack {
        let next = self.entries.len() as Stack + 1;
        *self.ids.entry(entry).or_insert_with(|| {
            self.entries.push(entry);
            next
        })
    }

    fn top(&self, stack: Stack) -> Option<Entry> {
        self.entries.get((stack as usize).checked_sub(1)?).copied()
    }
}

/// The catch block of an `enter` of either form.
fn catch_block(stmt: &Stmt<'_>) -> Option<u32> {
    match stmt {
        Stmt::Enter { target, .. } => target.map(|t| t.block),
        Stmt::Expr(expr) => match &expr.kind {
            ExprKind::Head(head, args) if head == "enter" => match args.first().map(|a| &a.kind) {
                Some(ExprKind::BlockRef(block)) => Some(*block),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// The number of handlers that an old `leave` removes.
fn leave_count(stmt: &Stmt<'_>) -> Option<u128> {
    let Stmt::Expr(expr) = stmt else { return None };
    match &expr.kind {
        ExprKind::Head(head, args) if head == "leave" => match args[..] {
            [ref arg] => match arg.kind {
                ExprKind::Literal(Literal::Int { negative: false, magnitude }) => Some(magnitude.get()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

impl<'a> Resolver<'a> {
    /// For each old `leave` the rows of the `enter`s to leave, innermost first.
    pub(super) fn old_leaves(&mut self, function: &Function<'a>) -> FxHashMap<At, Vec<At>> {
        let mut left = FxHashMap::default();
        let rows = || function.blocks.iter().flat_map(|b| &b.rows);
        if !rows().any(|row| leave_count(&row.stmt).is_some()) {
            return left;
        }
        let mut index_of = FxHashMap::default();
        for (index, block) in function.blocks.iter().enumerate() {
            index_of.entry(block.number).or_insert(index);
        }
        let mut stacks = Stacks::default();
        let mut at_entry: Vec<Option<Stack>> = vec![None; function.blocks.len()];
        let mut differing = vec![false; function.blocks.len()];
        let mut work = vec![(0, 0)];
        while let Some((block, stack)) = work.pop() {
            match at_entry.get(block) {
                None => continue,
                Some(Some(known)) => {
                    if *known != stack && !std::mem::replace(&mut differing[block], true) {
                        let ast = &function.blocks[block];
                        self.fail::<()>(ResolveError::HandlersDiffer { block: ast.number }, ast.span);
                    }
                    continue;
                }
                Some(None) => at_entry[block] = Some(stack),
            }
            let mut stack = stack;
            let mut falls = true;
            let jump = |number: u32| index_of.get(&number).copied();
            for (index, row) in function.blocks[block].rows.iter().enumerate() {
                let here = (block, index);
                match &row.stmt {
                    Stmt::Goto(target) => {
                        work.extend(jump(target.block).map(|to| (to, stack)));
                        falls = false;
                    }
                    Stmt::GotoIfNot { target, otherwise, .. } => {
                        work.extend(jump(target.block).map(|to| (to, stack)));
                        work.extend(otherwise.and_then(|t| jump(t.block)).map(|to| (to, stack)));
                        falls = otherwise.is_none();
                    }
                    Stmt::Return(_) | Stmt::Unreachable => falls = false,
                    stmt => {
                        if let Some(catch) = catch_block(stmt) {
                            let entry = Entry { below: stack, enter: here, spent: true };
                            let caught = stacks.push(entry);
                            work.extend(jump(catch).map(|to| (to, caught)));
                            stack = stacks.push(Entry { spent: false, ..entry });
                        } else if let Some(count) = leave_count(stmt) {
                            let mut enters = Vec::new();
                            for _ in 0..count {
                                let Some(top) = stacks.top(stack) else {
                                    self.fail::<()>(ResolveError::NoHandler, row.span);
                                    break;
                                };
                                if !top.spent {
                                    enters.push(top.enter);
                                }
                                stack = top.below;
                            }
                            left.insert(here, enters);
                        }
                    }
                }
            }
            if falls {
                work.push((block + 1, stack));
            }
        }
        left
    }
}
