//! The waits-for graph: a unit is ready when it and everything that it transitively needs are emitted.
//!
//! ```text
//!    emitted, waiting        emitted, waiting         not emitted
//!   ┌───────────────┐  edge ┌───────────────┐  edge  ┌───────────┐      One edge of each waiting node is its current edge.
//!   │ node a        ├──────►│ b ⇄ c         ├═══════►│ d         │      Current edges make a forest whose roots are
//!   │ (one of five) │       │ (contracted)  │current │ (a leaf)  │      exactly the nodes that are not emitted.
//!   └───────────────┘       └───────────────┘        └───────────┘
//! ```
//!
//! **Invariant.** A waiting node is below exactly one node that is not emitted, its witness: one is enough to
//! show that the waiting node is not ready. (ORC keeps all such leaves with every waiting node; the total
//! size of those sets is quadratic, and depends on the order of emissions.)
//!
//! **Emission** of `n` turns a root into an inner node, which must settle. Settling takes an edge of `n`:
//!
//! | the edge leads to | then |
//! |---|---|
//! | a port that no longer exists | its unit is already ready: drop the edge |
//! | the node itself | drop the edge |
//! | a node with another root | it becomes the current edge; `n` is settled |
//! | a node whose root is `n` itself | a cycle: all nodes on the path are contracted into one, with the rest of their edges |
//! | (no edge left) | `n` is ready, with all contracted nodes; nodes whose current edge leads to it settle again |
//!
//! **Failure** of a node propagates along reversed edges; it reaches exactly the waiting nodes that
//! transitively need it.
//!
//! **Ports.** Edges lead to ports, one for each symbol, which belong to a node and may move to another while
//! it is not emitted: when a responsibility is split, the right dependants follow each part.
//!
//! **Cost.** An edge becomes current at most once and is dropped once; a node is contracted at most once.
//! Finding a root, linking and cutting are logarithmic ([`super::forest`]). So all emissions together take
//! O((nodes + edges) · log nodes) in any order, and all failures O(edges).

use smallvec::{SmallVec, smallvec};

use super::forest::Forest;
use crate::ids::{Key, SessionId, Slab};

/// A node: symbols emitted together.
pub(crate) type Node<E> = Key<NodeData<E>>;
/// The target of edges.
pub(crate) type Port<E> = Key<PortData<E>>;

pub(crate) struct NodeData<E> {
    state: State<E>,
    ports: SmallVec<[Port<E>; 1]>,
}

enum State<E> {
    Unemitted,
    Waiting(Waiting<E>),
    /// Contracted; the named node, or the one that contains it, has the data.
    Inside(Node<E>),
}

/// One emitted node, or several that were contracted.
struct Waiting<E> {
    members: SmallVec<[Node<E>; 1]>,
    /// Edges not examined yet.
    edges: SmallVec<[Port<E>; 1]>,
    /// `None` while the node settles.
    current: Option<Port<E>>,
    /// The member that is the root of the members' tree in the forest.
    head: Node<E>,
}

pub(crate) struct PortData<E> {
    node: Node<E>,
    entry: E,
    /// Waiting nodes with an edge to this port; some may no longer exist.
    dependants: SmallVec<[Node<E>; 1]>,
}

/// A failed node: the entries of its ports, and the index in the list of the node that made it fail.
pub(crate) struct Failed<E> {
    pub(crate) entries: Vec<E>,
    pub(crate) because: Option<usize>,
}

/// See the file's header. `E` is the entry of a port.
pub(crate) struct Graph<E> {
    nodes: Slab<NodeData<E>>,
    ports: Slab<PortData<E>>,
    forest: Forest,
}

impl<E> Graph<E> {
    /// An empty graph of a session.
    pub(crate) fn new(session: SessionId) -> Self {
        Graph { nodes: Slab::new(session), ports: Slab::new(session), forest: Forest::default() }
    }
}

impl<E: Copy> Graph<E> {
    /// A node that is not emitted.
    pub(crate) fn node(&mut self) -> Node<E> {
        let node = self.nodes.insert(NodeData { state: State::Unemitted, ports: SmallVec::new() });
        self.forest.reach(node.index());
        node
    }

    /// A port of `node`, which is not emitted.
    pub(crate) fn port(&mut self, node: Node<E>, entry: E) -> Port<E> {
        let port = self.ports.insert(PortData { node, entry, dependants: SmallVec::new() });
        if let Some(data) = self.nodes.get_mut(node) {
            data.ports.push(port);
        }
        port
    }

    /// Moves `ports` from `from` to `to`; neither is emitted.
    pub(crate) fn hand_over(&mut self, ports: &[Port<E>], from: Node<E>, to: Node<E>) {
        let moved: rustc_hash::FxHashSet<Port<E>> = ports.iter().copied().collect();
        if let Some(data) = self.nodes.get_mut(from) {
            data.ports.retain(|port| !moved.contains(port));
        }
        if let Some(data) = self.nodes.get_mut(to) {
            data.ports.extend_from_slice(ports);
        }
        for &port in ports {
            let Some(data) = self.ports.get_mut(port) else { continue };
            data.node = to;
            for dependant in data.dependants.clone() {
                if let Some((_, waiting)) = self.waiting(dependant)
                    && waiting.current == Some(port)
                {
                    let head = waiting.head.index();
                    self.forest.cut(head);
                    self.forest.link(head, to.index());
                }
            }
        }
    }

    /// Removes ports of `node`, which is not emitted and has no dependants through them.
    pub(crate) fn forget(&mut self, ports: &[Port<E>], node: Node<E>) {
        if let Some(data) = self.nodes.get_mut(node) {
            data.ports.retain(|port| !ports.contains(port));
        }
        for port in ports {
            self.ports.remove(*port);
        }
    }

    /// Whether a waiting node depends on `port`.
    pub(crate) fn is_needed(&self, port: Port<E>) -> bool {
        self.ports
            .get(port)
            .is_some_and(|data| data.dependants.iter().any(|dependant| self.nodes.contains(*dependant)))
    }

    /// The entries of the waiting nodes with an edge to `port`.
    pub(crate) fn dependants(&self, port: Port<E>) -> impl Iterator<Item = E> + '_ {
        let nodes = self.ports.get(port).into_iter().flat_map(|data| &data.dependants);
        let ports = nodes.filter_map(|&node| self.nodes.get(node)).flat_map(|data| &data.ports);
        ports.filter_map(|&port| Some(self.ports.get(port)?.entry))
    }

    /// The node that `port` belongs to.
    pub(crate) fn node_of(&self, port: Port<E>) -> Option<Node<E>> {
        self.ports.get(port).map(|data| data.node)
    }

    /// The entries that `port` waits for: the entries of a node that is not emitted, possibly its own.
    pub(crate) fn witness(&mut self, port: Port<E>) -> Vec<E> {
        let Some(node) = self.ports.get(port).map(|data| data.node) else { return Vec::new() };
        let root = self.forest.root(node.index());
        self.nodes
            .at(root)
            .map(|data| data.ports.iter().filter_map(|port| Some(self.ports.get(*port)?.entry)).collect())
            .unwrap_or_default()
    }

    /// Emits `node`, which needs `needs`; appends what becomes ready to `ready`.
    pub(crate) fn emit(&mut self, node: Node<E>, needs: SmallVec<[Port<E>; 1]>, ready: &mut Vec<E>) {
        for &port in &needs {
            if let Some(data) = self.ports.get_mut(port) {
                super::push_swept(&mut data.dependants, node, |known| self.nodes.contains(known));
            }
        }
        let Some(data) = self.nodes.get_mut(node) else { return };
        data.state =
            State::Waiting(Waiting { members: smallvec![node], edges: needs, current: None, head: node });
        let mut settling: Vec<Node<E>> = vec![node];
        while let Some(next) = settling.pop() {
            self.settle(next, &mut settling, ready);
        }
    }

    /// Finds a current edge for the waiting node `settling`, or makes it ready.
    fn settle(&mut self, settling: Node<E>, more: &mut Vec<Node<E>>, ready: &mut Vec<E>) {
        let Some((mut here, waiting)) = self.waiting(settling) else { return };
        if waiting.current.is_some() {
            return;
        }
        let head = waiting.head;
        loop {
            let Some((_, waiting)) = self.waiting(here) else { return };
            let Some(port) = waiting.edges.pop() else { return self.ready(here, more, ready) };
            let Some(target) = self.ports.get(port).map(|data| data.node) else { continue };
            let outer = self.outer(target);
            if outer == here {
                continue;
            }
            // A node that is not emitted is a root; asking the forest would only be slower.
            let is_leaf = self.nodes.get(outer).is_some_and(|data| matches!(data.state, State::Unemitted));
            if is_leaf || self.forest.root(target.index()) != head.index() {
                self.forest.link(head.index(), target.index());
                if let Some((_, waiting)) = self.waiting(here) {
                    waiting.current = Some(port);
                }
                return;
            }
            // Every node on the path from the target to `here` has a current edge: only roots have none.
            let mut at = outer;
            while at != here {
                let Some((_, waiting)) = self.waiting(at) else { break };
                let Some(current) = waiting.current.take() else { break };
                let Some(next) = self.ports.get(current).map(|data| data.node) else { break };
                let next = self.outer(next);
                let met = next == here;
                here = self.contract(at, here, head);
                at = if met { here } else { next };
            }
        }
    }

    /// Contracts two waiting nodes into one of them, with head `head`; returns which.
    fn contract(&mut self, a: Node<E>, b: Node<E>, head: Node<E>) -> Node<E> {
        let size =
            |graph: &mut Self, node| graph.waiting(node).map_or(0, |(_, w)| w.members.len() + w.edges.len());
        let (small, large) = if size(self, a) < size(self, b) { (a, b) } else { (b, a) };
        let Some(data) = self.nodes.get_mut(small) else { return large };
        let State::Waiting(mut from) = std::mem::replace(&mut data.state, State::Inside(large)) else {
            return large;
        };
        if let Some((_, into)) = self.waiting(large) {
            into.members.append(&mut from.members);
            into.edges.append(&mut from.edges);
            into.head = head;
        }
        large
    }

    /// Makes everything contracted into `node` ready.
    fn ready(&mut self, node: Node<E>, more: &mut Vec<Node<E>>, ready: &mut Vec<E>) {
        let members = self.waiting(node).map(|(_, w)| std::mem::take(&mut w.members)).unwrap_or_default();
        for &member in &members {
            let ports = self.nodes.get_mut(member).map(|data| std::mem::take(&mut data.ports));
            self.forest.reach_up(member.index());
            for port in ports.into_iter().flatten() {
                let Some(data) = self.ports.remove(port) else { continue };
                ready.push(data.entry);
                for dependant in data.dependants {
                    let Some((outer, waiting)) = self.waiting(dependant) else { continue };
                    if outer != node && waiting.current == Some(port) {
                        waiting.current = None;
                        let head = waiting.head.index();
                        self.forest.cut_child(head);
                        more.push(outer);
                    }
                }
            }
        }
        let alone = members.len() == 1;
        for member in members {
            if !alone {
                self.forest.cut(member.index());
            }
            self.nodes.remove(member);
        }
    }

    /// Removes `nodes` and every waiting node that transitively needs one of them. Causes come before their
    /// effects.
    pub(crate) fn fail(&mut self, nodes: &[Node<E>]) -> Vec<Failed<E>> {
        let mut queue: Vec<(Node<E>, Option<usize>)> = nodes.iter().map(|node| (*node, None)).collect();
        let mut reached: rustc_hash::FxHashSet<Node<E>> = nodes.iter().copied().collect();
        let mut failed = Vec::with_capacity(nodes.len());
        let mut at = 0;
        while let Some(&(node, because)) = queue.get(at) {
            let ports = self.nodes.get(node).map(|data| data.ports.as_slice()).unwrap_or_default();
            let mut entries = Vec::with_capacity(ports.len());
            for data in ports.iter().filter_map(|port| self.ports.get(*port)) {
                entries.push(data.entry);
                for &dependant in &data.dependants {
                    if self.nodes.contains(dependant) && reached.insert(dependant) {
                        queue.push((dependant, Some(at)));
                    }
                }
            }
            failed.push(Failed { entries, because });
            at += 1;
        }
        // A contracted node is reached with all its members, and everything below a reached node needs it: so
        // no remaining node refers to a removed one.
        for &(node, _) in &queue {
            if self.nodes.contains(node) {
                self.forest.cut(node.index());
            }
        }
        for (node, _) in queue {
            for port in self.nodes.remove(node).map(|data| data.ports).into_iter().flatten() {
                self.ports.remove(port);
            }
        }
        failed
    }

    /// The node that `node` was contracted into.
    fn outer(&mut self, node: Node<E>) -> Node<E> {
        let mut outer = node;
        while let Some(NodeData { state: State::Inside(next), .. }) = self.nodes.get(outer) {
            outer = *next;
        }
        let mut at = node;
        while let Some(NodeData { state: State::Inside(next), .. }) = self.nodes.get_mut(at) {
            at = std::mem::replace(next, outer);
        }
        outer
    }

    /// The node that `node` was contracted into, with its data, if it is waiting.
    fn waiting(&mut self, node: Node<E>) -> Option<(Node<E>, &mut Waiting<E>)> {
        let outer = self.outer(node);
        match &mut self.nodes.get_mut(outer)?.state {
            State::Waiting(waiting) => Some((outer, waiting)),
            State::Unemitted | State::Inside(_) => None,
        }
    }

    /// Checks the invariant of the file's header.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        let all: Vec<Node<E>> = self.nodes.iter().map(|(node, _)| node).collect();
        for node in all {
            let root = self.forest.root(node.index());
            let root_is_leaf = self.nodes.at(root).is_some_and(|data| matches!(data.state, State::Unemitted));
            if !root_is_leaf {
                return Err(format!("node {node:?} hangs below {root}, which is emitted"));
            }
            let waiting = self.waiting(node).map(|(_, waiting)| (waiting.current, waiting.head));
            if let Some((current, head)) = waiting {
                let target = current.and_then(|port| self.ports.get(port)).map(|data| data.node);
                let Some(target) = target else {
                    return Err(format!("node {node:?} waits without a current edge"));
                };
                if self.outer(target) == self.outer(head) {
                    return Err(format!("node {node:?} waits for itself"));
                }
            } else if root != node.index() {
                return Err(format!("node {node:?} is not emitted and hangs below {root}"));
            }
        }
        Ok(())
    }

    /// The number of nodes that are not ready.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }
}
