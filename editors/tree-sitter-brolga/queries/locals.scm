(function) @local.scope
(parameter name: (identifier) @local.definition)
(row result: (ssa) @local.definition)
(expression (identifier) @local.reference)
(expression (ssa) @local.reference)
