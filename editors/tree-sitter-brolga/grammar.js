// The text of Brolga's IR (docs/ir.md) as trees for editors.
//
//   # check: f(1) == 2                    check
//   function f(n::Int64)::Int64           function ─┬─ signature
//   1 ─ %1 = Base.add_int(n, 1)::Int64              └─ block ── row ── statement
//   └──      return %1
//   end
//
// Guards say where rows begin, so line ends have no meaning here and statements may continue on further lines. Taken more liberally than
// by the reader: types, values and names are one kind of expression, and all operators bind alike.
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

    check: $ => seq(alias(token(prec(2, '# check:')), 'check'), field('call', $._expression), '==', field('value', $._expression)),
    throws: $ => seq(alias(token(prec(2, '# throws:')), 'throws'), field('call', $._expression), field('type', choice($._name, $.path))),
    header: $ => prec.right(choice(
      seq(alias(token(prec(2, '# signature:')), 'signature'), $.signature),
      seq(alias(token(prec(2, '# types:')), 'types'), choice('none', repeat1(seq($.type_declaration, optional(';'))))),
      seq(alias(token(prec(2, '# globals:')), 'globals'), choice('none', repeat1(seq($.global_declaration, optional(choice(';', ',')))))),
    )),

    type_declaration: $ => choice(
      seq(optional('mutable'), 'struct', $._type_head, optional(';'), repeat(seq($.field, optional(';'))), 'end'),
      seq('abstract', 'type', $._type_head, 'end'),
      seq('primitive', 'type', $._type_head, field('bits', $.number), 'end'),
    ),
    _type_head: $ => seq(
      field('name', $._name),
      optional($.type_parameters),
      optional(seq('<:', field('supertype', $._expression))),
    ),
    type_parameters: $ => seq(token.immediate('{'), separated($._expression), '}'),
    field: $ => seq(
      repeat(choice('const', '@atomic')),
      field('name', $._name),
      optional(seq('::', field('type', $._expression))),
    ),

    global_declaration: $ => prec.right(seq(
      choice('global', 'const', seq('global', 'threadlocal'), seq('global', 'const'), seq('const', 'global')),
      field('name', $._name),
      optional(seq('::', field('type', $._expression))),
      optional(seq('=', field('value', $._expression))),
    )),

    function: $ => seq(optional('low'), 'function', $.signature, repeat($.block), 'end'),
    dump: $ => choice(
      prec.right(seq('CodeInfo', '(', repeat($.block), ')', optional(seq('=>', field('result', $._expression))))),
      prec.right(seq(repeat1($.block), optional(seq('=>', field('result', $._expression))))),
    ),

    signature: $ => prec.right(seq(
      $.callee,
      $.parameters,
      optional(seq('::', field('result', $._expression))),
      repeat(seq('where', choice($._expression, seq('{', separated($._parameter_item), '}')))),
      optional($.hint),
    )),
    callee: $ => choice(
      field('name', choice($._name, alias($._callee_path, $.path), $.operator)),
      seq('(', optional($._name), '::', field('type', $._expression), ')'),
    ),
    _callee_path: $ => seq(
      $._name,
      repeat1(seq(
        token.immediate('.'),
        $._member,
      )),
    ),
    parameters: $ => seq('(', separated($.parameter), ')'),
    parameter: $ => choice(
      seq(field('name', $._name), optional(seq('::', field('type', $._expression))), optional('...')),
      seq('::', field('type', $._expression), optional('...')),
    ),
    _parameter_item: $ => choice($._expression, $.assignment),
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
    _type: $ => seq('::', field('type', $._expression)),

    call_statement: $ => seq(optional($.label), $._expression),
    label: _ => choice('intrinsic', 'builtin', 'dynamic', seq('dynamic', 'builtin'), 'unknown'),
    invoke: $ => seq(optional('dynamic'), 'invoke', $._expression),
    phi: $ => seq(choice('φ', 'φᶜ'), '(', separated(choice($.edge, $._expression)), ')', optional($._type)),
    edge: $ => prec(2, seq($.block_reference, '=>', $._expression)),
    pi: $ => seq('π', '(', $._expression, ',', $._expression, ')', optional($._type)),
    upsilon: $ => seq('ϒ', '(', optional($._expression), ')', optional($._type)),
    new: $ => seq(choice('%new', '%splatnew'), '(', separated($._expression), ')', optional($._type)),
    goto: $ => seq(
      'goto',
      $.block_reference,
      optional(seq(
        'if', 'not', field('condition', $._expression),
        optional(seq('else', $.block_reference)),
        optional(seq('weights', $.weights)),
      )),
    ),
    weights: _ => token(/\d+[ \t]*:[ \t]*\d+/),
    enter: $ => prec.right(seq(
      'enter',
      optional($.block_reference),
      optional(seq('with', 'scope', $._expression)),
      optional(seq('else', $.block_reference)),
    )),
    return: $ => prec.right(seq('return', optional($._expression))),
    unreachable: _ => 'unreachable',

    _expression: $ => choice(
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
      $._head,
      token.immediate('.'),
      $._member,
    )),
    // Expressions behind which brackets and dots may stand.
    _head: $ => choice($._name, $.path, $.tuple, $.call, $.curly, $.index, $.ssa, $.interpolation),
    _member: $ => choice(
      $._name,
      seq(token.immediate(':'), choice($.operator, '==', '<:')),
      seq(token.immediate(':('), choice($.operator, '==', '<:'), ')'),
    ),
    call: $ => prec.left(5, seq(field('function', $._head), $.arguments)),
    arguments: $ => seq(token.immediate('('), separated($._argument), ')'),
    _argument: $ => choice($._expression, $.assignment, $.operator),
    assignment: $ => seq(field('left', $._expression), '=', field('right', $._expression)),
    curly: $ => prec.left(5, seq($._head, token.immediate('{'), separated(choice($._expression, $.assignment)), '}')),
    index: $ => prec.left(5, seq($._head, token.immediate('['), separated(repeat1($._expression)), ']')),
    array: $ => seq('[', separated(repeat1($._expression)), ']'),
    tuple: $ => seq('(', separated($._argument), ')'),
    binary: $ => prec.left(1, seq($._expression, field('operator', choice($.operator, '=>', '==', '<:', 'isa', 'in', 'where', ':')), $._expression)),
    unary: $ => prec(3, seq(field('operator', $.operator), $._expression)),
    annotation: $ => choice(
      prec.left(4, seq($._expression, '::', field('type', $._expression))),
      prec.left(4, seq('::', field('type', $._expression))),
    ),
    splat: $ => prec.left(5, seq($._expression, '...')),
    pointer: $ => prec.left(5, seq($._expression, token(/@0x[0-9a-fA-F]+/))),
    slot: $ => prec.left(6, choice(seq($._name, token.immediate(/@_\d+/)), token(/@_\d+/))),
    macro: $ => seq(token(/@[A-Za-z]\w*/), token.immediate('{'), separated($._expression), '}'),
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
    operator: _ => token(choice(
      /[+\-*\/\\^%&|~!<>÷≤≥≠∈∉⊻∘√⊆]/,
      '===', '!==', '!=', '<=', '>=', '<<', '>>', '>>>', '//', '&&', '||', '|>', '->', '-->', '++', '>:',
    )),
  },
});
