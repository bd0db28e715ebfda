(function (signature (callee name: (_) @name))) @definition.function
(type_declaration name: (_) @name) @definition.class
(call function: (_) @name) @reference.call
