//! Analyses of the function at hand, kept from pass to pass for as long as they hold.
//!
//! A pass declares which facts it needs; they are computed when it starts. It also declares which it breaks; they are dropped when
//! it ends, with all facts that were computed from them:
//!
//! ```text
//! Cfg ─┬─> DomTree ─> Loops         breaking Cfg drops all four; without a cycle there are no loops, and no tree is needed
//!      └─> Liveness                 breaking Uses drops Liveness as well: both follow every operand
//! Uses ───────┘
//! ```
//!
//! A pass that changed nothing breaks nothing. Debug builds compute every fact that a pass claims to keep a second
//! time and compare, so that a wrong `breaks` list is found in its pass.

use brolga_ir::analysis::{Cfg, DomTree, Liveness, Loops, Rpo, Uses};
use brolga_ir::{Func, Value};
use cranelift_entity::EntityRef;

/// An analysis that the pass manager keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fact {
    /// Predecessors, successors and the reverse postorder.
    Cfg,
    /// The dominator tree.
    DomTree,
    /// The loops.
    Loops,
    /// Which values are needed after which block.
    Liveness,
    /// The uses of values.
    Uses,
}

impl Fact {
    /// All facts, each after those that it is computed from.
    pub const ALL: [Fact; 5] = [Fact::Cfg, Fact::DomTree, Fact::Loops, Fact::Liveness, Fact::Uses];

    /// The facts that no longer hold when this one does not, itself included.
    fn dependents(self) -> &'static [Fact] {
        match self {
            Fact::Cfg => &[Fact::Cfg, Fact::DomTree, Fact::Loops, Fact::Liveness],
            Fact::DomTree => &[Fact::DomTree, Fact::Loops],
            Fact::Loops => &[Fact::Loops],
            Fact::Liveness => &[Fact::Liveness],
            Fact::Uses => &[Fact::Uses, Fact::Liveness],
        }
    }
}

/// The analyses that hold.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    cfg: Option<(Cfg, Rpo)>,
    domtree: Option<DomTree>,
    loops: Option<Loops>,
    liveness: Option<Liveness>,
    uses: Option<Uses>,
}

const UNDECLARED: &str = "a pass may read only the facts of its `needs`";

impl Facts {
    /// The control-flow graph.
    pub fn cfg(&self) -> &Cfg {
        &self.cfg.as_ref().expect(UNDECLARED).0
    }

    /// The reachable blocks in reverse postorder; belongs to [`Fact::Cfg`].
    pub fn rpo(&self) -> &Rpo {
        &self.cfg.as_ref().expect(UNDECLARED).1
    }

    /// The dominator tree.
    pub fn domtree(&self) -> &DomTree {
        self.domtree.as_ref().expect(UNDECLARED)
    }

    /// The loops.
    pub fn loops(&self) -> &Loops {
        self.loops.as_ref().expect(UNDECLARED)
    }

    /// Which values are needed after which block.
    pub fn liveness(&self) -> &Liveness {
        self.liveness.as_ref().expect(UNDECLARED)
    }

    /// The uses of values.
    pub fn uses(&self) -> &Uses {
        self.uses.as_ref().expect(UNDECLARED)
    }

    /// Computes the missing facts of `needs`.
    pub(crate) fn provide(&mut self, needs: &[Fact], func: &Func) {
        for &fact in needs {
            match fact {
                Fact::Cfg => {
                    self.need_cfg(func);
                }
                Fact::DomTree => {
                    self.need_domtree(func);
                }
                Fact::Loops => {
                    if self.loops.is_none() {
                        let (cfg, rpo) = self.need_cfg(func);
                        self.loops = Some(if has_cycle(cfg, rpo) {
                            self.need_domtree(func);
                            Loops::compute(self.cfg(), self.rpo(), self.domtree())
                        } else {
                            no_loops()
                        });
                    }
                }
                Fact::Liveness => {
                    if self.liveness.is_none() {
                        let liveness = Liveness::compute(func, &self.need_cfg(func).0);
                        self.liveness = Some(liveness);
                    }
                }
                Fact::Uses => {
                    self.uses.get_or_insert_with(|| Uses::compute(func));
                }
            }
        }
    }

    fn need_cfg(&mut self, func: &Func) -> &(Cfg, Rpo) {
        self.cfg.get_or_insert_with(|| {
            let cfg = Cfg::compute(func);
            let rpo = Rpo::compute(&cfg);
            (cfg, rpo)
        })
    }

    fn need_domtree(&mut self, func: &Func) -> &DomTree {
        if self.domtree.is_none() {
            let tree = DomTree::compute(&self.need_cfg(func).0);
            self.domtree = Some(tree);
        }
        self.domtree.as_ref().expect("just computed")
    }

    /// Drops the facts that no longer hold.
    pub(crate) fn drop_broken(&mut self, breaks: &[Fact]) {
        for fact in breaks.iter().flat_map(|fact| fact.dependents()) {
            match fact {
                Fact::Cfg => self.cfg = None,
                Fact::DomTree => self.domtree = None,
                Fact::Loops => self.loops = None,
                Fact::Liveness => self.liveness = None,
                Fact::Uses => self.uses = None,
            }
        }
    }

    /// The facts that are held and no longer true: what a pass forgot to declare.
    pub(crate) fn stale(&self, func: &Func) -> Vec<Fact> {
        let mut fresh = Facts::default();
        let mut stale = Vec::new();
        for fact in Fact::ALL {
            let held = match fact {
                Fact::Cfg => self.cfg.is_some(),
                Fact::DomTree => self.domtree.is_some(),
                Fact::Loops => self.loops.is_some(),
                Fact::Liveness => self.liveness.is_some(),
                Fact::Uses => self.uses.is_some(),
            };
            if !held {
                continue;
            }
            fresh.provide(&[fact], func);
            let same = match fact {
                Fact::Cfg => self.cfg == fresh.cfg,
                Fact::DomTree => self.domtree == fresh.domtree,
                Fact::Loops => self.loops == fresh.loops,
                Fact::Liveness => self.liveness == fresh.liveness,
                // A constant that was made and not used does no harm.
                Fact::Uses => {
                    (0..func.value_count()).map(Value::new).all(|v| self.uses().of(v) == fresh.uses().of(v))
                }
            };
            if !same {
                stale.push(fact);
            }
        }
        stale
    }
}

/// Whether some edge between reachable blocks leads back.
fn has_cycle(cfg: &Cfg, rpo: &Rpo) -> bool {
    let leads_back = |at: usize, to| rpo.position(to).is_some_and(|to| to as usize <= at);
    rpo.blocks().iter().enumerate().any(|(at, &block)| cfg.succs(block).iter().any(|&to| leads_back(at, to)))
}

/// The loops of a graph without cycles, for which no tree is needed.
fn no_loops() -> Loops {
    let none = Cfg::default();
    Loops::compute(&none, &Rpo::compute(&none), &DomTree::default())
}
