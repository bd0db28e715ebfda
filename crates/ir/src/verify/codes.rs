//! The stable name of every rule, for documents and tests.

use super::{
    CallRule, ConstantRule, ExceptionRule, LevelRule, LowRule, Rule, SsaRule, StructureRule, TypeRule,
    Violation,
};

impl Violation {
    /// The stable name of the broken rule, such as `ssa-dominance`.
    pub fn code(&self) -> &'static str {
        match &self.rule {
            Rule::Structure(rule) => structure_code(rule),
            Rule::Level(rule) => level_code(rule),
            Rule::Constant(rule) => constant_code(rule),
            Rule::Ssa(rule) => ssa_code(rule),
            Rule::Type(rule) => type_code(rule),
            Rule::Low(rule) => low_code(rule),
            Rule::Exception(rule) => exception_code(rule),
            Rule::Call(rule) => call_code(rule),
            Rule::Door(door) => door.code(),
        }
    }
}

fn structure_code(rule: &StructureRule) -> &'static str {
    match rule {
        StructureRule::Id { .. } => "structure-id",
        StructureRule::NoBlocks => "structure-empty",
        StructureRule::NoTerminator => "structure-terminator",
        StructureRule::AfterTerminator { .. } => "structure-after-terminator",
        StructureRule::TargetCount { .. } => "structure-target-count",
        StructureRule::TargetNotPlaced { .. } => "structure-target",
        StructureRule::EntryEntered { .. } => "structure-entry",
        StructureRule::PhiNotAtHead { .. } => "structure-phi",
        StructureRule::HandlerEntered { .. } => "structure-handler",
        StructureRule::NotUnreachable => "structure-never-returns",
        StructureRule::OperandCount { .. } => "structure-operand-count",
        StructureRule::ResultCount { .. } => "structure-result-count",
    }
}

fn level_code(rule: &LevelRule) -> &'static str {
    match rule {
        LevelRule::Operation { .. } => "level-operation",
        LevelRule::ValueType { .. } => "level-type",
        LevelRule::SignatureType { .. } => "level-signature",
        LevelRule::ResultCount { .. } => "level-result",
        LevelRule::NoFunctionObject => "level-function-object",
        LevelRule::Vararg { .. } => "level-vararg",
        LevelRule::Statics { .. } => "level-statics",
    }
}

fn constant_code(rule: &ConstantRule) -> &'static str {
    match rule {
        ConstantRule::Bits { .. } => "constant-bits",
        ConstantRule::Singleton { .. } => "constant-singleton",
        ConstantRule::Type { .. } => "constant-type",
        ConstantRule::Aggregate { .. } => "constant-aggregate",
        ConstantRule::Field { .. } => "constant-field",
        ConstantRule::Size { .. } => "constant-size",
        ConstantRule::Data { .. } => "constant-data",
    }
}

fn ssa_code(rule: &SsaRule) -> &'static str {
    match rule {
        SsaRule::NotDominated { .. } => "ssa-dominance",
        SsaRule::NotPlaced { .. } => "ssa-not-placed",
        SsaRule::NotPredecessor { .. } => "ssa-phi-edge",
        SsaRule::EdgeTwice { .. } => "ssa-phi-twice",
        SsaRule::EdgeNotDominated { .. } => "ssa-phi-dominance",
        SsaRule::NotUpsilon { .. } => "ssa-phic",
        SsaRule::PhiCNotInHandler => "ssa-phic-place",
        SsaRule::UpsilonUsed { .. } => "ssa-upsilon",
        SsaRule::Token => "ssa-token",
        SsaRule::NotPreserve => "ssa-preserve",
    }
}

fn type_code(rule: &TypeRule) -> &'static str {
    match rule {
        TypeRule::Operand { .. } => "type-operand",
        TypeRule::Result { .. } => "type-result",
        TypeRule::Unequal { .. } => "type-unequal",
        TypeRule::Scalar(_) => "type-scalar",
        TypeRule::NoField { .. } => "type-field",
        TypeRule::Immutable { .. } => "type-immutable",
        TypeRule::New { .. } => "type-new",
        TypeRule::FieldCount { .. } => "type-field-count",
        TypeRule::ReturnCount { .. } => "type-return",
        TypeRule::Order { .. } => "type-order",
        TypeRule::FailureOrder { .. } => "type-failure-order",
        TypeRule::StaticParameter { .. } => "type-static-parameter",
    }
}

fn low_code(rule: &LowRule) -> &'static str {
    match rule {
        LowRule::Address { .. } => "low-address",
        LowRule::MemoryClass { .. } => "low-memory-class",
        LowRule::ConstantWritten => "low-constant",
        LowRule::Align { .. } => "low-align",
        LowRule::OutsideSlot { .. } => "low-slot",
        LowRule::SlotSize { .. } => "low-slot-size",
        LowRule::Order { .. } => "low-order",
        LowRule::Atomic { .. } => "low-atomic",
        LowRule::Class { .. } => "low-class",
        LowRule::CellOfThreads { .. } => "low-thread-local",
        LowRule::ReturnClass { .. } => "low-return-class",
        LowRule::ObjectType { .. } => "low-object-type",
        LowRule::TrackedSlot { .. } => "low-tracked-slot",
        LowRule::NoLanes { .. } => "low-lanes",
        LowRule::Lane { .. } => "low-lane",
    }
}

fn exception_code(rule: &ExceptionRule) -> &'static str {
    match rule {
        ExceptionRule::Join { .. } => "exception-join",
        ExceptionRule::Leave { .. } => "exception-leave",
        ExceptionRule::NotEnter { .. } => "exception-token",
        ExceptionRule::ReturnInside { .. } => "exception-return",
        ExceptionRule::PopOutside { .. } => "exception-pop",
        ExceptionRule::NoException => "exception-none",
    }
}

fn call_code(rule: &CallRule) -> &'static str {
    match rule {
        CallRule::Refused { .. } => "call-refused",
        CallRule::UnknownMethod { .. } => "call-unknown",
        CallRule::UnknownForeign { .. } => "call-foreign",
        CallRule::OperandCount { .. } => "call-arity",
        CallRule::SymbolSignature { .. } => "call-symbol",
        CallRule::NotMethod | CallRule::NotSymbol => "call-callee",
        CallRule::UnknownGlobal { .. } => "call-global",
    }
}
