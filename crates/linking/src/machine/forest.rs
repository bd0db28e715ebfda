//! Rooted trees that can be linked and cut: finds the root of a node.
//!
//! Every tree is cut into vertical paths, each kept in a splay tree by depth (`left` is nearer to the root); `up` is the
//! parent in the splay tree, or, at its top, the tree-parent of the path's first node. `access` makes the path from a
//! node to its root one splay tree. After D. Sleator and R. Tarjan, "Self-adjusting binary search trees" (1985), without
//! re-rooting, which is not needed here.
//!
//! Nodes are small numbers; a fresh or cut-off node is its own root. Cost: amortised logarithmic for every operation.

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Spot {
    up: u32,
    left: u32,
    right: u32,
}

/// See the file's header.
#[derive(Default)]
pub(crate) struct Forest {
    spots: Vec<Spot>,
}

impl Forest {
    /// Grows the tables to include `node`.
    pub(crate) fn reach(&mut self, node: usize) {
        if self.spots.len() <= node {
            self.spots.resize(node + 1, Spot { up: NONE, left: NONE, right: NONE });
        }
    }

    /// The root of the tree of `node`.
    pub(crate) fn root(&mut self, node: usize) -> usize {
        let mut top = id(node);
        self.access(top);
        while self.spots[top as usize].left != NONE {
            top = self.spots[top as usize].left;
        }
        self.splay(top);
        top as usize
    }

    /// Attaches the tree with root `root` below `parent`, which is in another tree.
    pub(crate) fn link(&mut self, root: usize, parent: usize) {
        self.access(id(root));
        debug_assert_eq!(self.spots[root].left, NONE, "only a root is linked");
        self.spots[root].up = id(parent);
    }

    /// Cuts `node`, with its subtree, from its parent; does nothing for a root.
    pub(crate) fn cut(&mut self, node: usize) {
        self.access(id(node));
        let above = std::mem::replace(&mut self.spots[node].left, NONE);
        if above != NONE {
            self.spots[above as usize].up = NONE;
        }
    }

    /// Cuts `child` from its parent, on which [`Forest::reach_up`] was the last call except for calls of
    /// this.
    pub(crate) fn cut_child(&mut self, child: usize) {
        self.splay(id(child));
        debug_assert_eq!(self.spots[child].left, NONE, "its path begins with it");
        self.spots[child].up = NONE;
    }

    /// Makes the path from `node` to its root one splay tree with `node` on top; paths of its children end below it.
    pub(crate) fn reach_up(&mut self, node: usize) {
        self.access(id(node));
    }

    fn access(&mut self, node: u32) {
        let (mut below, mut at) = (NONE, node);
        while at != NONE {
            self.splay(at);
            self.spots[at as usize].right = below;
            below = at;
            at = self.spots[at as usize].up;
        }
        self.splay(node);
    }

    fn splay(&mut self, node: u32) {
        while let Some(parent) = self.splay_parent(node) {
            if let Some(grand) = self.splay_parent(parent) {
                let straight = self.is_left(node, parent) == self.is_left(parent, grand);
                self.rotate(if straight { parent } else { node });
            }
            self.rotate(node);
        }
    }

    fn splay_parent(&self, node: u32) -> Option<u32> {
        let parent = self.spots[node as usize].up;
        let spot = self.spots.get(parent as usize)?;
        (spot.left == node || spot.right == node).then_some(parent)
    }

    fn is_left(&self, node: u32, parent: u32) -> bool {
        self.spots[parent as usize].left == node
    }

    /// Swaps `node` with its parent in the splay tree.
    fn rotate(&mut self, node: u32) {
        let Some(parent) = self.splay_parent(node) else { return };
        let grand = self.splay_parent(parent);
        let above = self.spots[parent as usize].up;
        let inner = if self.is_left(node, parent) {
            let inner = std::mem::replace(&mut self.spots[node as usize].right, parent);
            self.spots[parent as usize].left = inner;
            inner
        } else {
            let inner = std::mem::replace(&mut self.spots[node as usize].left, parent);
            self.spots[parent as usize].right = inner;
            inner
        };
        if inner != NONE {
            self.spots[inner as usize].up = parent;
        }
        if let Some(grand) = grand {
            let spot = &mut self.spots[grand as usize];
            if spot.left == parent {
                spot.left = node;
            } else {
                spot.right = node;
            }
        }
        self.spots[node as usize].up = above;
        self.spots[parent as usize].up = node;
    }
}

fn id(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::Forest;

    /// Parents in a plain array: a walk finds the root.
    #[test]
    fn random_links_and_cuts_agree_with_walking() {
        const NODES: usize = 60;
        let mut forest = Forest::default();
        forest.reach(NODES - 1);
        let mut parent: Vec<Option<usize>> = vec![None; NODES];
        let root = |parent: &[Option<usize>], mut node: usize| {
            while let Some(next) = parent[node] {
                node = next;
            }
            node
        };
        let mut seed = 1u64;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let (a, b) = (random(NODES), random(NODES));
            match random(3) {
                0 if parent[a].is_none() && root(&parent, b) != a => {
                    parent[a] = Some(b);
                    forest.link(a, b);
                }
                1 => {
                    parent[a] = None;
                    forest.cut(a);
                }
                _ => {}
            }
            assert_eq!(forest.root(b), root(&parent, b));
        }
    }
}
