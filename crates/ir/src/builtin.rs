//! The builtins: functions of Julia's implementation that work on types and objects, as one table.
//!
//! ```text
//! row      GetField  "getfield"  between(2, 4)  THROWS | READS
//!          variant   Julia       operands       facts
//! ```
//!
//! **Facts** are coarse properties of all calls of a builtin, for any operand types. They err towards
//! more effects: the effect analysis starts from them and removes facts that do not hold for one call
//! (a field that cannot be undefined, an index that is in bounds).
//!
//! | fact | meaning |
//! |---|---|
//! | throws | may end in an exception |
//! | reads, writes | may observe or change memory that others can see |
//! | allocates | makes an object with its own identity; boxing of a result is decided when the call is lowered |
//! | calls | runs a function of the program, with its effects |
//! | identity | the result is one of the operands, unchanged |
//!
//! **Names.** Text may use an older name of the same function (`ALIASES`); printing uses the current one.
//! The array builtins of Julia before 1.11 (`arrayref` …) take the bounds check as first operand and are
//! kept, because dumps contain them.
//!
//! Not done: builtins that define types or methods, and those on `SimpleVector`s. They have rows so that a reader can
//! name them; [`Builtin::refusal`] returns the reason.

use std::fmt;
use std::ops::Range;

use crate::intrinsic::Arity;

const THROWS: u8 = 1;
const READS: u8 = 2;
const WRITES: u8 = 4;
const ALLOCATES: u8 = 8;
/// Runs code of the program, so it may have any effect.
const CALLS: u8 = 16 | THROWS | READS | WRITES | ALLOCATES;
const CALLS_BIT: u8 = 16;
const DEFINES: u8 = 32;
const SIMPLE_VECTOR: u8 = 64;

/// One row of the table.
struct Row {
    name: &'static str,
    arity: Arity,
    facts: u8,
}

/// The error message of a `setfield!` that claims more elements than the array's memory has. With open doors,
/// an array of known type is not tested.
pub const PARTS_DO_NOT_FIT: &str = "setfield!: an Array has no more elements than its ref can reach";

/// The message thrown where a checked program would make an array larger than its memory.
pub const NEW_PARTS_DO_NOT_FIT: &str = "%new: an Array has no more elements than its ref can reach";

macro_rules! builtins {
    ($($variant:ident $name:literal $arity:expr, $facts:expr;)*) => {
        /// A builtin function; `Display` prints Julia's name.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Builtin {
            $(
                #[doc = concat!("`", $name, "`")]
                $variant,
            )*
        }

        const ROWS: &[Row] = &[$(Row { name: $name, arity: $arity, facts: $facts }),*];

/// The message of a `%splatnew` whose tuple has too many or too few elements.
pub const SPLAT_COUNT: &str = "%splatnew takes a tuple with an element for each field";

        impl Builtin {
            /// Every builtin, in the order of the table.
            pub const ALL: &[Builtin] = &[$(Builtin::$variant),*];

            fn from_present_name(name: &str) -> Option<Builtin> {
                match name {
                    $($name => Some(Builtin::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

builtins! {
    Egal "===" Arity::exactly(2), 0;
    Typeof "typeof" Arity::exactly(1), 0;
    Sizeof "sizeof" Arity::exactly(1), THROWS | READS;
    Subtype "<:" Arity::exactly(2), THROWS;
    Isa "isa" Arity::exactly(2), THROWS;
    Typeassert "typeassert" Arity::exactly(2), THROWS;
    ApplyType "apply_type" Arity::at_least(1), THROWS;
    Fieldtype "fieldtype" Arity::between(2, 3), THROWS;
    Nfields "nfields" Arity::exactly(1), 0;
    Isdefined "isdefined" Arity::between(2, 3), THROWS | READS;

    Tuple "tuple" Arity::at_least(0), 0;
    Svec "svec" Arity::at_least(0), ALLOCATES | SIMPLE_VECTOR;
    Getfield "getfield" Arity::between(2, 4), THROWS | READS;
    Setfield "setfield!" Arity::between(3, 4), THROWS | WRITES;
    Swapfield "swapfield!" Arity::between(3, 4), THROWS | READS | WRITES;
    Modifyfield "modifyfield!" Arity::between(4, 5), CALLS;
    Replacefield "replacefield!" Arity::between(4, 6), THROWS | READS | WRITES;
    Setfieldonce "setfieldonce!" Arity::between(3, 5), THROWS | READS | WRITES;

    Getglobal "getglobal" Arity::between(2, 3), THROWS | READS;
    Setglobal "setglobal!" Arity::between(3, 4), THROWS | WRITES;
    Swapglobal "swapglobal!" Arity::between(3, 4), THROWS | READS | WRITES;
    Modifyglobal "modifyglobal!" Arity::between(4, 5), CALLS;
    Replaceglobal "replaceglobal!" Arity::between(4, 6), THROWS | READS | WRITES;
    Setglobalonce "setglobalonce!" Arity::between(3, 5), THROWS | READS | WRITES;
    Isdefinedglobal "isdefinedglobal" Arity::between(2, 4), THROWS | READS;
    GetBindingType "get_binding_type" Arity::exactly(2), THROWS | READS;

    Memorynew "memorynew" Arity::exactly(2), THROWS | ALLOCATES;
    Memoryrefnew "memoryrefnew" Arity::between(1, 3), THROWS;
    Memoryrefget "memoryrefget" Arity::exactly(3), THROWS | READS;
    Memoryrefset "memoryrefset!" Arity::exactly(4), THROWS | WRITES;
    Memoryrefswap "memoryrefswap!" Arity::exactly(4), THROWS | READS | WRITES;
    Memoryrefmodify "memoryrefmodify!" Arity::exactly(5), CALLS;
    Memoryrefreplace "memoryrefreplace!" Arity::exactly(6), THROWS | READS | WRITES;
    Memoryrefsetonce "memoryrefsetonce!" Arity::exactly(5), THROWS | READS | WRITES;
    Memoryrefoffset "memoryrefoffset" Arity::exactly(1), THROWS;
    MemoryrefIsassigned "memoryref_isassigned" Arity::exactly(3), THROWS | READS;

    Arrayref "arrayref" Arity::at_least(2), THROWS | READS;
    Arrayset "arrayset" Arity::at_least(3), THROWS | WRITES;
    Arraylen "arraylen" Arity::exactly(1), THROWS | READS;
    Arraysize "arraysize" Arity::exactly(2), THROWS | READS;

    ApplyIterate "_apply_iterate" Arity::at_least(2), CALLS;
    Invoke "invoke" Arity::at_least(2), CALLS;
    Invokelatest "invokelatest" Arity::at_least(1), CALLS;
    InvokeInWorld "invoke_in_world" Arity::at_least(2), CALLS;
    Applicable "applicable" Arity::at_least(1), THROWS | READS;
    Throw "throw" Arity::exactly(1), THROWS;
    ThrowMethoderror "throw_methoderror" Arity::at_least(1), THROWS | ALLOCATES;

    Ifelse "ifelse" Arity::exactly(3), THROWS;
    Donotdelete "donotdelete" Arity::at_least(0), READS | WRITES;
    Compilerbarrier "compilerbarrier" Arity::exactly(2), THROWS;
    Blackbox "blackbox" Arity::exactly(1), READS | WRITES;
    Finalizer "finalizer" Arity::between(2, 4), THROWS | READS | WRITES | ALLOCATES;
    CurrentScope "current_scope" Arity::exactly(0), READS;

    Typevar "_typevar" Arity::exactly(3), THROWS | ALLOCATES | DEFINES;
    Structtype "_structtype" Arity::exactly(7), THROWS | ALLOCATES | DEFINES;
    Abstracttype "_abstracttype" Arity::exactly(3), THROWS | ALLOCATES | DEFINES;
    Primitivetype "_primitivetype" Arity::exactly(4), THROWS | ALLOCATES | DEFINES;
    Typebody "_typebody!" Arity::between(2, 3), THROWS | READS | WRITES | DEFINES;
    Setsuper "_setsuper!" Arity::exactly(2), THROWS | READS | WRITES | DEFINES;
    EquivTypedef "_equiv_typedef" Arity::exactly(2), THROWS | READS | DEFINES;
    Expr "_expr" Arity::at_least(1), THROWS | ALLOCATES | DEFINES;
    SvecLen "_svec_len" Arity::exactly(1), THROWS | READS | SIMPLE_VECTOR;
    SvecRef "_svec_ref" Arity::exactly(2), THROWS | READS | SIMPLE_VECTOR;
    ComputeSparams "_compute_sparams" Arity::at_least(1), THROWS | READS | ALLOCATES | SIMPLE_VECTOR;
    OpaqueClosureCall "opaque_closure_call" Arity::at_least(1), CALLS | DEFINES;
    Defaultctors "_defaultctors" Arity::exactly(2), THROWS | READS | WRITES | DEFINES;
    SetBindingType "set_binding_type!" Arity::between(2, 3), THROWS | READS | WRITES | DEFINES;
    IntrinsicCall "intrinsic_call" Arity::at_least(1), CALLS | DEFINES;
}

/// Names that older versions of Julia print for a current builtin.
const ALIASES: &[(&str, Builtin)] = &[
    ("_call_latest", Builtin::Invokelatest),
    ("_call_in_world", Builtin::InvokeInWorld),
    ("_call_in_world_total", Builtin::InvokeInWorld),
    ("const_arrayref", Builtin::Arrayref),
];

impl Builtin {
    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    fn has(self, fact: u8) -> bool {
        self.row().facts & fact != 0
    }

    /// The builtin with this Julia name, current or former.
    pub fn from_name(name: &str) -> Option<Builtin> {
        Builtin::from_present_name(name)
            .or_else(|| ALIASES.iter().find(|(alias, _)| *alias == name).map(|&(_, builtin)| builtin))
    }

    /// Julia's name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The number of operands.
    pub fn arity(self) -> Arity {
        self.row().arity
    }

    /// Whether some call may end in an exception.
    pub fn can_throw(self) -> bool {
        self.has(THROWS)
    }

    /// Whether some call may observe memory.
    pub fn reads_memory(self) -> bool {
        self.has(READS)
    }

    /// Whether some call may change memory.
    pub fn writes_memory(self) -> bool {
        self.has(WRITES)
    }

    /// Whether it makes an object with its own identity, or runs code that may.
    pub fn allocates(self) -> bool {
        self.has(ALLOCATES)
    }

    /// Whether it runs a function of the program.
    pub fn calls(self) -> bool {
        self.has(CALLS_BIT)
    }

    /// Whether the result depends only on the operands and there is no other effect. It may still throw.
    pub fn is_pure(self) -> bool {
        !self.has(READS | WRITES | ALLOCATES | CALLS_BIT)
    }

    /// Whether the first operands are a module and the name of a global variable. For `isdefined` they may
    /// be.
    pub fn is_of_global(self) -> bool {
        matches!(
            self,
            Builtin::Getglobal
                | Builtin::Setglobal
                | Builtin::Swapglobal
                | Builtin::Modifyglobal
                | Builtin::Replaceglobal
                | Builtin::Setglobalonce
                | Builtin::Isdefinedglobal
                | Builtin::GetBindingType
        )
    }

    /// The operands that say whether bounds are checked, in a call with `count` operands. For `getfield` they
    /// may also name a memory order: then they are `Symbol`s.
    ///
    /// The single source of this fact: the verifier, the effects, the passes and lowering use it for calls of
    /// a known builtin. A builtin called as a value is always checked, by the run time. A new builtin has to
    /// be entered before the crate compiles.
    pub fn bounds_operands(self, count: usize) -> Range<usize> {
        let first = match self {
            Builtin::Arrayref | Builtin::Arrayset => 0,
            Builtin::Getfield => return 2..count.max(2),
            Builtin::Memoryrefnew | Builtin::Memoryrefget | Builtin::MemoryrefIsassigned => 2,
            Builtin::Memoryrefset | Builtin::Memoryrefswap => 3,
            Builtin::Memoryrefmodify | Builtin::Memoryrefsetonce => 4,
            Builtin::Memoryrefreplace => 5,
            Builtin::Egal
            | Builtin::Typeof
            | Builtin::Sizeof
            | Builtin::Subtype
            | Builtin::Isa
            | Builtin::Typeassert
            | Builtin::ApplyType
            | Builtin::Fieldtype
            | Builtin::Nfields
            | Builtin::Isdefined
            | Builtin::Tuple
            | Builtin::Svec
            | Builtin::Setfield
            | Builtin::Swapfield
            | Builtin::Modifyfield
            | Builtin::Replacefield
            | Builtin::Setfieldonce
            | Builtin::Getglobal
            | Builtin::Setglobal
            | Builtin::Swapglobal
            | Builtin::Modifyglobal
            | Builtin::Replaceglobal
            | Builtin::Setglobalonce
            | Builtin::Isdefinedglobal
            | Builtin::GetBindingType
            | Builtin::Memorynew
            | Builtin::Memoryrefoffset
            | Builtin::Arraylen
            | Builtin::Arraysize
            | Builtin::ApplyIterate
            | Builtin::Invoke
            | Builtin::Invokelatest
            | Builtin::InvokeInWorld
            | Builtin::Applicable
            | Builtin::Throw
            | Builtin::ThrowMethoderror
            | Builtin::Ifelse
            | Builtin::Donotdelete
            | Builtin::Compilerbarrier
            | Builtin::Blackbox
            | Builtin::Finalizer
            | Builtin::CurrentScope
            | Builtin::Typevar
            | Builtin::Structtype
            | Builtin::Abstracttype
            | Builtin::Primitivetype
            | Builtin::Typebody
            | Builtin::Setsuper
            | Builtin::EquivTypedef
            | Builtin::Expr
            | Builtin::SvecLen
            | Builtin::SvecRef
            | Builtin::ComputeSparams
            | Builtin::OpaqueClosureCall
            | Builtin::Defaultctors
            | Builtin::SetBindingType
            | Builtin::IntrinsicCall => return 0..0,
        };
        first.min(count)..(first + 1).min(count)
    }

    /// Why this builtin is refused wherever it occurs; `None` if it may reach code generation.
    pub fn refusal(self) -> Option<&'static str> {
        if self.has(DEFINES) {
            Some(
                "it defines types, expressions or closures at run time, which compiled code does not do here",
            )
        } else if self.has(SIMPLE_VECTOR) {
            Some("it handles a `SimpleVector`, a type of Julia's own run time that the IR does not have")
        } else {
            None
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intrinsic::Intrinsic;

    #[test]
    fn names_find_their_builtin_and_no_intrinsic() {
        for &builtin in Builtin::ALL {
            assert_eq!(Builtin::from_name(builtin.name()), Some(builtin));
            assert_eq!(Intrinsic::from_name(builtin.name()), None);
        }
        assert_eq!(Builtin::from_name("setfield"), None);
    }

    #[test]
    fn aliases_are_not_present_names() {
        for &(alias, builtin) in ALIASES {
            assert_eq!(Builtin::from_present_name(alias), None);
            assert_eq!(Builtin::from_name(alias), Some(builtin));
        }
    }

    #[test]
    fn builtins_that_call_have_all_effects() {
        for &builtin in Builtin::ALL {
            if builtin.calls() {
                assert!(builtin.can_throw() && builtin.reads_memory() && builtin.writes_memory());
                assert!(builtin.allocates() && !builtin.is_pure());
            }
        }
        assert!(Builtin::Modifyfield.calls() && !Builtin::Swapfield.calls());
    }

    #[test]
    fn an_exclamation_mark_means_writing() {
        for &builtin in Builtin::ALL {
            if builtin.name().ends_with('!') {
                assert!(builtin.writes_memory(), "{builtin}");
            }
        }
    }

    #[test]
    fn the_operand_for_bounds_is_within_the_arity_of_builtins_that_may_throw() {
        for &builtin in Builtin::ALL {
            let all = builtin.bounds_operands(usize::MAX);
            if all.is_empty() {
                continue;
            }
            assert!(builtin.can_throw(), "{builtin}");
            assert!((all.start + 1..8).any(|count| builtin.arity().allows(count)), "{builtin}");
            assert_eq!(builtin.bounds_operands(all.start).len(), 0, "{builtin}");
            assert_eq!(builtin.bounds_operands(all.start + 1).len(), 1, "{builtin}");
        }
        assert_eq!(Builtin::Getfield.bounds_operands(4), 2..4);
        assert_eq!(Builtin::Arrayref.bounds_operands(3), 0..1);
    }

    #[test]
    fn builtins_that_dumps_use_are_accepted() {
        for name in
            ["===", "<:", "_apply_iterate", "arrayref", "memoryrefset!", "sizeof", "donotdelete", "tuple"]
        {
            assert!(Builtin::from_name(name).is_some_and(|builtin| builtin.refusal().is_none()), "{name}");
        }
        for name in ["svec", "_structtype", "opaque_closure_call"] {
            assert!(Builtin::from_name(name).is_some_and(|builtin| builtin.refusal().is_some()), "{name}");
        }
    }
}
