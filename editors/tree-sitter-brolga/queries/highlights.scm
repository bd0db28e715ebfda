; Highlights by the names that editors share.

(comment) @comment
(block_comment) @comment
(decoration) @comment
[ "check" "throws" "signature" "types" "globals" ] @keyword.directive

[ "function" "low" "end" "struct" "mutable" "abstract" "primitive" "type" "global" "threadlocal" "const" "@atomic" "CodeInfo" "where" ] @keyword
[ "goto" "if" "not" "else" "return" "enter" "with" "scope" "weights" ] @keyword.control
(unreachable) @keyword.control
[ "invoke" "dynamic" "φ" "φᶜ" "π" "ϒ" "%new" "%splatnew" "isa" "in" ] @keyword.operator
(label) @keyword.operator
(hint) @keyword.modifier

(block_header) @label
(guard) @punctuation.special
(block_reference) @label
(ssa) @variable
(parameter name: (identifier) @variable.parameter)
(callee name: (_) @function)
(call function: (identifier) @function.call)
(call function: (path (identifier) @function.call))
(type_declaration name: (_) @type)
(field name: (_) @property)
(global_declaration name: (_) @variable)
(annotation type: (identifier) @type)
(annotation type: (curly) @type)
(parameter type: (identifier) @type)
(signature result: (identifier) @type)
(phi type: (identifier) @type)

(number) @number
(weights) @number
(string) @string
(character) @character
(symbol) @string.special.symbol
(constant) @constant.builtin
(undef) @constant.builtin
(operator) @operator
[ "=" "=>" "==" "<:" "::" "..." "$" ] @operator
[ "(" ")" "[" "]" "{" "}" ] @punctuation.bracket
[ "," ";" ] @punctuation.delimiter
