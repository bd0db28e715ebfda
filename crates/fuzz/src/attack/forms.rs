//! The forms of a call: named, or as a value that is found at run time.

/// How a target is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum Form {
    /// Named, with operands of exact types.
    Named,
    /// Named, with operands of which nothing is known.
    Untyped,
    /// A value that passes know nothing of.
    Barrier,
    /// Called with the elements of tuples.
    Iterate,
    /// In the newest world.
    Latest,
    /// In a world that is given.
    World,
    /// The function of one of two edges.
    Phi,
    /// A field of a struct.
    Field,
    /// An element of a memory.
    Element,
    /// The value of a global.
    Global,
    /// What a function returns that is not inlined.
    Returned,
    /// An operand of a call by value.
    Nested,
}

impl Form {
    /// All forms.
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

    /// The name by which it is left out.
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

    /// Whether the callee is found at run time.
    pub fn is_value(self) -> bool {
        !matches!(self, Form::Named | Form::Untyped)
    }
}
