//! The flags of an instruction and the kinds of memory that it reads and writes, as sets.

use std::ops::BitOr;

/// A set of kinds of memory. Two accesses to different kinds never overlap; a [`Regions::RAW`] access through
/// a high-level `Ptr` may also reach objects and then includes their kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Regions(u16);

impl Regions {
    /// No kind.
    pub const NONE: Regions = Regions(0);
    /// Memory of C, reached by `Ptr`.
    pub const RAW: Regions = Regions(1);
    /// Stack slots whose address stays in the function.
    pub const SLOT: Regions = Regions(2);
    /// Fields of mutable objects.
    pub const FIELDS: Regions = Regions(4);
    /// Elements of arrays and `Memory`.
    pub const ELEMENTS: Regions = Regions(8);
    /// Global variables.
    pub const GLOBALS: Regions = Regions(16);
    /// The state of the task: handlers, the current exception, values that ϒ stored.
    pub const TASK: Regions = Regions(32);
    /// The world outside the process: what is printed.
    pub const OUTSIDE: Regions = Regions(64);
    /// Headers of arrays.
    pub const HEADERS: Regions = Regions(128);
    pub const ALL: Regions = Regions(255);
    /// Memory that a `Ptr` may point to: C's, and the insides of objects.
    pub const POINTABLE: Regions = Regions(1 | 4 | 8);
    /// Memory that an address in low IR may point to: the same, and stack slots.
    pub const ADDRESSABLE: Regions = Regions(1 | 2 | 4 | 8);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether both sets have a kind in common.
    pub fn overlaps(self, other: Regions) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether `other` is a subset.
    pub fn contains(self, other: Regions) -> bool {
        other.0 & !self.0 == 0
    }
}

impl BitOr for Regions {
    type Output = Regions;

    fn bitor(self, other: Regions) -> Regions {
        Regions(self.0 | other.0)
    }
}

/// The effects of an instruction; see the module `effects`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Effects {
    /// Equal operands have equal results.
    pub consistent: bool,
    /// It leaves no observable trace.
    pub effect_free: bool,
    /// It never ends in an exception.
    pub nothrow: bool,
    /// It ends.
    pub terminates: bool,
    /// It does not touch the task's own state.
    pub notaskstate: bool,
    /// It touches no memory that others can reach.
    pub inaccessiblememonly: bool,
    /// Its behaviour is defined for all operands.
    pub noub: bool,
    /// A collection may happen during it.
    pub may_safepoint: bool,
    /// It never moves.
    pub pinned: bool,
    /// Nothing that touches memory or may be a safepoint moves across it.
    pub fence: bool,
    /// The kinds of changeable memory that it reads.
    pub reads: Regions,
    /// The kinds of memory that it writes.
    pub writes: Regions,
}

impl Effects {
    /// All flags and regions as a number; different effects have different numbers.
    pub fn bits(&self) -> u64 {
        // Destructures all fields, so that a new one is not forgotten.
        let Effects {
            consistent: a,
            effect_free: b,
            nothrow: c,
            terminates: d,
            notaskstate: e,
            inaccessiblememonly: f,
            noub: g,
            may_safepoint: h,
            pinned: i,
            fence: j,
            reads,
            writes,
        } = *self;
        let flags =
            [a, b, c, d, e, f, g, h, i, j].into_iter().fold(0, |bits, flag| bits << 1 | u64::from(flag));
        flags << 32 | u64::from(reads.0) << 16 | u64::from(writes.0)
    }

    /// Computes its results from its operands and does nothing else: `add_int`.
    pub const PURE: Effects = Effects {
        consistent: true,
        effect_free: true,
        nothrow: true,
        terminates: true,
        notaskstate: true,
        inaccessiblememonly: true,
        noub: true,
        may_safepoint: false,
        pinned: false,
        fence: false,
        reads: Regions::NONE,
        writes: Regions::NONE,
    };

    /// May do anything: a call.
    pub const ANY: Effects = Effects {
        consistent: false,
        effect_free: false,
        nothrow: false,
        terminates: false,
        notaskstate: false,
        inaccessiblememonly: false,
        noub: false,
        may_safepoint: true,
        pinned: false,
        fence: false,
        reads: Regions::ALL,
        writes: Regions::ALL,
    };

    /// Whether it may be deleted if its results are not used. Example: an unused `getfield` of a field that
    /// is certainly defined. Counter-example: an unused `checked_sdiv_int` by an unknown value, which may
    /// throw.
    pub fn is_removable(&self) -> bool {
        self.effect_free && self.nothrow && self.terminates
    }

    /// Whether it may be executed where it was not executed before, if its operands are available and no
    /// memory that it reads is written between the two places. Example: `add_int`, out of a loop that may run
    /// zero times. Counter-example: `pointerref`, whose address may be valid only under the condition that
    /// guards it.
    pub fn may_be_hoisted(&self) -> bool {
        self.is_removable() && self.noub && !self.pinned && !self.fence
    }

    /// Whether an instruction with equal operation, operands and result types may reuse the result of one
    /// that dominates it. Example: two equal `checked_sdiv_int`; the first has thrown if there was cause.
    /// Counter-example: two `%new` of a mutable type, which are two objects.
    pub fn may_be_shared(&self) -> bool {
        self.consistent && self.effect_free && self.terminates && !self.pinned && !self.fence
    }

    /// Whether exchanging two neighbours, neither of which uses the other's results, may change what a program does.
    /// Example: `setfield!` and a call. Counter-example: two loads.
    pub fn interferes(&self, other: &Effects) -> bool {
        let memory = |a: &Effects, b: &Effects| a.writes.overlaps(b.reads | b.writes);
        // Effects after an instruction that does not return must not be visible.
        let order = |a: &Effects, b: &Effects| {
            let returns = a.nothrow && a.terminates;
            let unseen = b.is_removable() && b.noub;
            !returns && !unseen
        };
        let fence = |a: &Effects, b: &Effects| {
            a.fence && (b.fence || b.may_safepoint || !b.effect_free || !(b.reads | b.writes).is_empty())
        };
        self.pinned
            || other.pinned
            || memory(self, other)
            || memory(other, self)
            || order(self, other)
            || order(other, self)
            || fence(self, other)
            || fence(other, self)
    }

    /// The effects of executing both in sequence.
    pub fn merge(self, other: Effects) -> Effects {
        Effects {
            consistent: self.consistent && other.consistent,
            effect_free: self.effect_free && other.effect_free,
            nothrow: self.nothrow && other.nothrow,
            terminates: self.terminates && other.terminates,
            notaskstate: self.notaskstate && other.notaskstate,
            inaccessiblememonly: self.inaccessiblememonly && other.inaccessiblememonly,
            noub: self.noub && other.noub,
            may_safepoint: self.may_safepoint || other.may_safepoint,
            pinned: self.pinned || other.pinned,
            fence: self.fence || other.fence,
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
        }
    }

    pub(super) fn reading(self, regions: Regions) -> Effects {
        Effects { reads: self.reads | regions, consistent: false, ..self }.with_memory_flags()
    }

    pub(super) fn writing(self, regions: Regions) -> Effects {
        Effects { writes: self.writes | regions, effect_free: false, ..self }.with_memory_flags()
    }

    fn with_memory_flags(self) -> Effects {
        let all = self.reads | self.writes;
        Effects {
            notaskstate: self.notaskstate && !all.overlaps(Regions::TASK),
            inaccessiblememonly: self.inaccessiblememonly && (Regions::SLOT | Regions::TASK).contains(all),
            ..self
        }
    }

    /// Adds that it may throw, and may allocate the exception object.
    pub(super) fn throwing(self, throws: bool) -> Effects {
        if throws { Effects { nothrow: false, may_safepoint: true, ..self } } else { self }
    }

    pub(super) fn allocating(self, allocates: bool) -> Effects {
        if allocates { Effects { may_safepoint: true, ..self } } else { self }
    }

    pub(super) fn unchecked(self, unchecked: bool) -> Effects {
        Effects { noub: self.noub && !unchecked, ..self }
    }
}
