//! The forms of a call: by name, or through a value known only at run time.

/// How a target is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Form {
    /// By name, with operands of exact types.
    Named,
    /// By name, with operands of unknown type.
    Untyped,
    /// A value that is opaque to passes.
    Barrier,
    /// Called with the elements of tuples.
    Iterate,
    /// In the newest world.
    Latest,
    /// In a given world.
    World,
    /// The function is selected by a φ of two edges.
    Phi,
    /// A field of a struct.
    Field,
    /// An element of a memory.
    Element,
    /// The value of a global.
    Global,
    /// The result of a function that is not inlined.
    Returned,
    /// An operand of a call through a value.
    Nested,
}

impl Form {
    pub const ALL: [Form; 12] = [
        Form::Named,
        Form::Untyped,
        Form::Barrier,
        Form::Iterate,
        Form::Latest,
        Form::World,
        Form::Phi,
        Form::Field,
        Form::Element,
        Form::Global,
        Form::Returned,
        Form::Nested,
    ];

    /// The name that excludes it.
    pub fn name(self) -> &'static str {
        match self {
            Form::Named => "named",
            Form::Untyped => "untyped",
            Form::Barrier => "barrier",
            Form::Iterate => "iterate",
            Form::Latest => "latest",
            Form::World => "world",
            Form::Phi => "phi",
            Form::Field => "field",
            Form::Element => "element",
            Form::Global => "global",
            Form::Returned => "returned",
            Form::Nested => "nested",
        }
    }

    /// Whether the callee is known only at run time.
    pub fn is_value(self) -> bool {
        !matches!(self, Form::Named | Form::Untyped)
    }
}
