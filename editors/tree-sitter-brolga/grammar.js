// The text of Brolga's IR (docs/ir.md) as trees for editors.
//
//   # check: f(1) == 2                    check
//   function f(n::Int64)::Int64           function ─┬─ signature
//   1 ─ %1 = Base.add_int(n, 1)::Int64              └─ block ── row ── statement
//   └──      return %1
//   end
//
// Guards say where rows begin, so line ends have no meaning here and statements may continue on further lines. Taken more liberally than
// by the reader: what is a type, a value or a name is one kind of expression, and all operators bind alike.
//
// Not done: the gutters and rails of debug information in Julia's dumps.

/// A list with separators, perhaps with one behind the last item.
function separated(rule) {
  return optional(seq(rule, repeat(seq(choice(',', ';'), rule)), optional(choice(',', ';'))));
}

const NAME = /[\p{L}\p{Nl}\p{So}_∇∂∞∅∫∑∏⊤⊥∀∃][\p{L}\p{N}\p{M}\p{So}_!′″‴⁗]*/u;

module.exports = grammar({
  name: 'brolga',

  word: $ => $.identifier,

  extras: $ => [/\s/, '\u{feff}', $.comment, $.block_comment],

  conflicts: $ => [
    [$.expression, $.callee],
  ],

  rules: {
    source_file: $ => repeat($._item),

    _item: $ => choice(
      $.check,
      $.throws,
      $.header,
      $.type_declaration,
      $.global_declaration,
      $.function,
      $.dump,
      $.decoration,
    ),

    // Comments have a blank or nothing behind the sign: `#2` is a block.
    comment: _ => token(choice(/#[ \t][^\n]*/, /#\r?\n/)),
    block_comment: _ => token(/#=([^=]|=+[^=#])*=+#/),
    decoration: _ => token(choice(/julia>[^\n]*/, /\d+-element [^\n]*:/)),

    check: $ => seq(alias(token(prec(2, '# check:')), 'check'), field('call', $.expression), '==', field('value', $.expression)),
    throws: $ => seq(alias(token(prec(2, '# throws:')), 'throws'), field('call', $.expression), field('type', $.expression)),
    header: $ => choice(
      seq(alias(token(prec(2, '# signature:')), 'signature'), $.signature),
      seq(alias(token(prec(2, '# types:')), 'types'), choice('none', repeat1(seq($.type_declaration, optional(';'))))),
      seq(alias(token(prec(2, '# globals:')), 'globals'), choice('none', repeat1(seq($.global_declaration, optional(choice(';', ',')))))),
    ),

    type_declaration: $ => choice(
      seq(optional('mutable'), 'struct', $._type_head, repeat(seq($.field, optional(';'))), 'end'),
      seq('abstract', 'type', $._type_head, 'end'),
      seq('primitive', 'type', $._type_head, field('bits', $.number), 'end'),
    ),
    _type_head: $ => seq(
      field('name', $._name),
      optional($.type_parameters),
      optional(seq('<:', field('supertype', $.expression))),
    ),
    type_parameters: $ => seq(token.immediate('{'), separated($.expression), '}'),
    field: $ => seq(
      repeat(choice('const', '@atomic')),
      field('name', $._name),
      optional(seq('::', field('type', $.expression))),
    ),

    global_declaration: $ => prec.right(seq(
      choice('global', 'const', seq('global', 'const'), seq('const', 'global')),
      field('name', $._name),
      optional(seq('::', field('type', $.expression))),
      optional(seq('=', field('value', $.expression))),
    )),

    function: $ => seq(optional('low'), 'function', $.signature, repeat($.block), 'end'),
    dump: $ => choice(
      prec.right(seq('CodeInfo', '(', repeat($.block), ')', optional(seq('=>', field('result', $.expression))))),
      prec.right(seq(repeat1($.block), optional(seq('=>', field('result', $.expression))))),
    ),

    signature: $ => prec.right(seq(
      $.callee,
      $.parameters,
      optional(seq('::', field('result', $.expression))),
      repeat(seq('where', choice($.expression, seq('{', separated($._parameter_item), '}')))),
      optional($.hint),
    )),
    callee: $ => choice(
      field('name', choice($._name, $.path, $.operator)),
      seq('(', optional($._name), '::', field('type', $.expression), ')'),
    ),
    parameters: $ => seq('(', separated($.parameter), ')'),
    parameter: $ => choice(
      seq(field('name', $._name), optional(seq('::', field('type', $.expression))), optional('...')),
      seq('::', field('type', $.expression), optional('...')),
    ),
    _parameter_item: $ => choice($.expression, $.assignment),
    hint: _ => choice('inline', 'noinline'),

    block: $ => prec.right(seq($.block_header, optional($._row), repeat(seq($.guard, optional($._row))))),
    // The number and the line belong together: a statement may end with a number.
    block_header: _ => token(prec(1, /\d+[ \t]+[─┄]+/)),
    guard: _ => token(choice('│', /└─+/)),

    _row: $ => alias($._statement_with_hint, $.row),
    _statement_with_hint: $ => seq(
      optional(seq(field('result', $.ssa), '=')),
      $._statement,
      optional($.hint),
    ),
    _statement: $ => choice(
      $.invoke,
      $.phi,
      $.pi,
      $.upsilon,
      $.new,
      $.goto,
      $.enter,
      $.return,
      $.unreachable,
      $.call_statement,
    ),
    _type: $ => seq('::', field('type', $.expression)),

    call_statement: $ => seq(optional($.label), $.expression),
    label: _ => choice('intrinsic', 'builtin', 'dynamic', seq('dynamic', 'builtin'), 'unknown'),
    invoke: $ => seq(optional('dynamic'), 'invoke', $.expression),
    phi: $ => seq(choice('φ', 'φᶜ'), '(', separated(choice($.edge, $.expression)), ')', optional($._type)),
    edge: $ => prec(2, seq($.block_reference, '=>', $.expression)),
    pi: $ => seq('π', '(', $.expression, ',', $.expression, ')', optional($._type)),
    upsilon: $ => seq('ϒ', '(', optional($.expression), ')', optional($._type)),
    new: $ => seq(choice('%new', '%splatnew'), '(', separated($.expression), ')', optional($._type)),
    goto: $ => seq(
      'goto',
      $.block_reference,
      optional(seq(
        'if', 'not', field('condition', $.expression),
        optional(seq('else', $.block_reference)),
        optional(seq('odds', $.odds)),
      )),
    ),
    odds: _ => token(/\d+[ \t]*:[ \t]*\d+/),
    enter: $ => prec.right(seq(
      'enter',
      optional($.block_reference),
      optional(seq('with', 'scope', $.expression)),
      optional(seq('else', $.block_reference)),
    )),
    return: $ => prec.right(seq('return', optional($.expression))),
    unreachable: _ => 'unreachable',

    expression: $ => choice(
      $._name,
      $.path,
      $.ssa,
      $.block_reference,
      $.undef,
      $.number,
      $.string,
      $.character,
      $.constant,
      $.symbol,
      $.quote,
      $.interpolation,
      $.call,
      $.curly,
      $.index,
      $.array,
      $.tuple,
      $.binary,
      $.unary,
      $.annotation,
      $.splat,
      $.macro,
      $.pointer,
      $.slot,
      $.parenthesized_operator,
    ),

    path: $ => prec.left(5, seq(
      $.expression,
      token.immediate('.'),
      choice($._name, seq(token.immediate(':'), $.operator), seq(token.immediate(':('), $.operator, ')')),
    )),
    call: $ => prec.left(5, seq(field('function', $.expression), $.arguments)),
    arguments: $ => seq(token.immediate('('), separated($._argument), ')'),
    _argument: $ => choice($.expression, $.assignment, $.operator),
    assignment: $ => seq(field('left', $.expression), '=', field('right', $.expression)),
    curly: $ => prec.left(5, seq($.expression, token.immediate('{'), separated(choice($.expression, $.assignment)), '}')),
    index: $ => prec.left(5, seq($.expression, token.immediate('['), separated(repeat1($.expression)), ']')),
    array: $ => seq('[', separated(repeat1($.expression)), ']'),
    tuple: $ => seq('(', separated($._argument), ')'),
    binary: $ => prec.left(1, seq($.expression, field('operator', choice($.operator, '=>', '==', '<:', 'isa', 'in', 'where', ':')), $.expression)),
    unary: $ => prec(3, seq(field('operator', $.operator), $.expression)),
    annotation: $ => choice(
      prec.left(4, seq($.expression, '::', field('type', $.expression))),
      prec(4, seq('::', field('type', $.expression))),
    ),
    splat: $ => prec.left(5, seq($.expression, '...')),
    pointer: $ => prec.left(5, seq($.expression, token(/@0x[0-9a-fA-F]+/))),
    slot: $ => prec.left(6, choice(seq($._name, token.immediate(/@_\d+/)), token(/@_\d+/))),
    macro: $ => seq(token(/@[A-Za-z]\w*/), token.immediate('{'), separated($.expression), '}'),
    quote: $ => seq(':(', separated(choice($._argument, '::', ':')), ')'),
    interpolation: $ => seq('$', choice(seq('(', separated($._argument), ')'), $._name, $.ssa)),
    parenthesized_operator: $ => prec(-1, $.operator),

    _name: $ => choice($.identifier, $.quoted_name, $.hash_name),
    identifier: _ => NAME,
    quoted_name: _ => token(/var"([^"\\]|\\.)*"/),
    hash_name: _ => token(/#[^\s\d#=()"',;:{}\[\]]*#[^\s()"',;:{}\[\].=]*|#\d+#[^\s()"',;:{}\[\].=]*/),

    ssa: _ => token(/%\d+(\.\d+)?/),
    block_reference: _ => token(/#\d+/),
    undef: _ => '#undef',
    number: _ => token(choice(
      /0[xX][0-9a-fA-F_]+/, /0b[01_]+/, /0o[0-7_]+/,
      /\d[\d_]*(\.\d+)?([eEf][+-]?\d+)?/,
    )),
    constant: _ => choice('true', 'false', 'nothing', 'missing', 'NaN', 'NaN32', 'NaN16', 'Inf', 'Inf32', 'Inf16'),
    string: _ => token(/"([^"\\]|\\(.|\n))*"/),
    character: _ => token(/'(\\[^']+|\\'|[^'\\])'/),
    symbol: _ => token(choice(/:[\p{L}_][\p{L}\p{N}_!]*/u, /:[+\-*\/\\^%&|~!<>=]+/)),
    operator: _ => token(prec(-1, choice(
      /[+\-*\/\\^%&|~!<>÷≤≥≠∈∉⊻∘√⊆]/,
      '===', '!==', '!=', '<=', '>=', '<<', '>>', '>>>', '//', '&&', '||', '|>', '->', '-->', '++', '>:',
    ))),
  },
});
