(function) @local.scope
(parameter name: (identifier) @local.definition)
(row result: (ssa) @local.definition)
(identifier) @local.reference
(ssa) @local.reference
