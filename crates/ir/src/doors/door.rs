//! Doors: name, danger and obligation. Separate from the list of doors, because violations name one.

/// A kind of unchecked operation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Door {
    /// Memory is read or written through a `Ptr`.
    Pointer,
    /// A C function is called.
    Foreign,
    /// C receives the address of a function of the program.
    Callback,
    /// A function is written in low IR.
    LowIr,
    /// Bounds are not checked anywhere. An option, not a statement.
    Bounds,
    /// Foreign machine code is loaded, or an address in it is named: C symbols, libraries, archives, images.
    /// A call by the embedder, not a statement.
    NativeCode,
}

impl Door {
    pub const ALL: [Door; 6] =
        [Door::Pointer, Door::Foreign, Door::Callback, Door::LowIr, Door::Bounds, Door::NativeCode];

    /// The name in messages: the code of the finding without `door-`.
    pub fn name(self) -> &'static str {
        self.code().trim_start_matches("door-")
    }

    /// The code of a finding.
    pub fn code(self) -> &'static str {
        match self {
            Door::Pointer => "door-pointer",
            Door::Foreign => "door-foreign",
            Door::Callback => "door-callback",
            Door::LowIr => "door-low-ir",
            Door::Bounds => "door-bounds",
            Door::NativeCode => "door-native-code",
        }
    }

    /// The danger, as a sentence about the statement.
    pub fn reason(self) -> &'static str {
        match self {
            Door::Pointer => "memory is read or written through a `Ptr`, whose target is not checked",
            Door::Foreign => {
                "a C function is called, or one with other types than those it is allowed with, and nothing says what it does"
            }
            Door::Callback => {
                "C gets the address of a function, and nothing says with which arguments and on which thread it calls it"
            }
            Door::LowIr => "the function is low IR: loads, stores and calls that nothing checks",
            Door::Bounds => "bounds are checked nowhere, and nothing says that the indices are in range",
            Door::NativeCode => {
                "code or an address from elsewhere is taken without a check, and nothing says what it does"
            }
        }
    }

    /// The obligation of a program that uses the door.
    pub fn obligation(self) -> &'static str {
        match self {
            Door::Pointer => {
                "the address is valid for the access, aligned as claimed, of that type, and no thread writes there meanwhile"
            }
            Door::Foreign => {
                "the function exists with the stated signature, keeps to it, does not unwind, and its arguments are what it expects"
            }
            Door::Callback => {
                "the function is called with the stated signature, on an attached thread, while the unit that took its address is there"
            }
            Door::LowIr => {
                "accesses are to memory that is there, in the region that they name; references are to live objects of the types that callers and callees expect"
            }
            Door::Bounds => "every index is in range",
            Door::NativeCode => {
                "the code is what its symbols say, keeps to the signatures that programs state, does not unwind, and stays while it can be called"
            }
        }
    }
}
