(function) @fold
(type_declaration) @fold
(dump) @fold
