// The strict parser, compared with the loose one of the package where that one is right, and with the intended conditions where it is not.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Condition, type GroupCondition, generateFql, type Operator, parseFql } from '@segment/destination-subscriptions'
import { readCatalog, readIntegration } from '@switchyard/integrations/catalog'
import fc from 'fast-check'
import expressions from './fixtures/segment-expressions.json' with { type: 'json' }
import { MAX_EXPRESSION, parseSubscribe, subscribeProblem } from './parse-subscribe.ts'

test("every expression of Segment's presets gives the same conditions as the package's parser", () => {
  assert.equal(new Set(expressions.presets).size, 113)
  for (const expression of expressions.presets) assert.deepEqual(parseSubscribe(expression), parseFql(expression), expression)
})

test('so does every default subscription of an action, except for the three that are malformed', () => {
  assert.equal(new Set(expressions.defaults).size, 53)
  const malformed = new Map([
    ['type = "track", event = "Transaction Created"', 'At column 15: expected "and", "or" or the end of the expression, found ","'],
    ['type = "track" and event == "Cart Updated"', 'At column 27: expected a value, found "="'],
    ['type = "track" and event == "Order Completed"', 'At column 27: expected a value, found "="'],
  ])
  for (const expression of expressions.defaults) {
    const expected = malformed.get(expression)
    assert.equal(subscribeProblem(expression), expected === undefined ? null : `is not a valid expression. ${expected}`)
    if (expected === undefined) assert.deepEqual(parseSubscribe(expression), parseFql(expression), expression)
  }
})

test('the catalogue of integrations has valid expressions alone', async () => {
  const integrations = await Promise.all((await readCatalog()).map(({ slug }) => readIntegration(slug)))
  const presets = integrations.flatMap((integration) => integration?.presets.map(({ subscribe }) => subscribe) ?? [])
  const defaults = integrations.flatMap(
    (integration) => integration?.actions.flatMap(({ defaultSubscription }) => defaultSubscription ?? []) ?? [],
  )
  const found = presets.concat(defaults)
  assert.ok(found.length > 900, `only ${found.length} expressions`)
  for (const expression of found) assert.equal(subscribeProblem(expression), null, expression)
})

test("the expressions of the package's own tests give the same conditions", () => {
  const same = [
    'traits.test = true',
    'traits.test = "true"',
    'traits.test = false',
    'properties.foo.bar = "baz"',
    'userId != null',
    'userId = true',
    'userId = false',
    'userId = "u"',
    'name != null',
    'name = null',
    'context.foo = "bar"',
    'type = "track" and (event = "Product Added" or event = "Order Completed")',
    'event = "Product Added" and properties.price >= 100 and properties.premium = "true"',
    '(event = "identify" and traits.logins >= 100) or (event = "Signed Up" and traits.age >= 50)',
    '!contains(event, "Nike")',
    'contains(traits.name, "Nike") and contains(properties.name, "Nike") and contains(context.name, 5)',
    'match(event, "X*") or match(properties.name, "*X") or match(userId, "*")',
    '!match(event, "X*") or !match(traits.name, "*X") or !match(name, "*.com")',
    'properties.name != null and traits.name = null',
    'properties.value != 123 and traits.value = -4.5 and context.value < +3',
    'properties.foo.bar.baz\\ alp.zaz = "hello"',
    'properties.products\\[0\\].id = 1',
    'event = Paid and type = and-so-on',
    '(type = "track")',
    'type = "track" and (event = "a" and event = "b")',
    'event = "it\'s"',
    'properties.total > "100"',
  ]
  for (const expression of same) assert.deepEqual(parseSubscribe(expression), parseFql(expression), expression)
})

const all = (...children: Condition[]): GroupCondition => ({ type: 'group', operator: 'and', children })
const any = (...children: Condition[]): GroupCondition => ({ type: 'group', operator: 'or', children })
const event = (value: string, operator: Operator = '='): Condition => ({ type: 'event', operator, value })
const property = (name: string, operator: Operator, value?: string | number): Condition =>
  value === undefined ? { type: 'event-property', name, operator } : { type: 'event-property', name, operator, value }

test('reads correctly what the parser of the package misreads', () => {
  const rows: [expression: string, conditions: GroupCondition][] = [
    ['event = "a" and event = "b" or event = "c"', any(all(event('a'), event('b')), event('c'))],
    ['event = "a" or event = "b" and event = "c"', any(event('a'), all(event('b'), event('c')))],
    ['event = "a" or event = "b" and event = "c" or event = "d"', any(event('a'), all(event('b'), event('c')), event('d'))],
    ['event = "a" OR event = "b"', any(event('a'), event('b'))],
    ['event = "a" or(event = "b")', any(event('a'), event('b'))],
    ['event = "a" and (event = "b" or (event = "c" and event = "d"))', all(event('a'), any(event('b'), all(event('c'), event('d'))))],
    ['(((event = "a")))', all(event('a'))],
    ['((event = "a" or event = "b") and event = "c")', all(any(event('a'), event('b')), event('c'))],
    ['event = \'a "quoted" name\'', all(event('a "quoted" name'))],
    ["match(event, 'Order*')", all(event('Order', 'starts_with'))],
    ['contains(type, "a")', all({ type: 'event-type', operator: 'contains', value: 'a' })],
    ['event != null', all({ type: 'event', operator: 'exists' })],
    ['type = null', all({ type: 'event-type', operator: 'not_exists' })],
    ['properties.products.0.price>=5', all(property('products.0.price', '>=', 5))],
    ['properties.größe = null', all(property('größe', 'not_exists'))],
    ['event = "a"\r\n\tand event = "b"', all(event('a'), event('b'))],
  ]
  for (const [expression, conditions] of rows) {
    assert.deepEqual(parseSubscribe(expression), conditions, expression)
    assert.notDeepEqual(parseFql(expression), conditions, `the package reads this correctly by now: ${expression}`)
  }
})

test('a malformed expression is refused with its position and what was expected', () => {
  const rows: [expression: string, problem: string][] = [
    ['', 'At column 1: expected a condition, found the end of the expression'],
    ['  ', 'At column 3: expected a condition, found the end of the expression'],
    ['type', 'At column 5: expected a comparison (=, !=, <, <=, > or >=), found the end of the expression'],
    ['type =', 'At column 7: expected a value, found the end of the expression'],
    ['type = "track" and', 'At column 19: expected a condition, found the end of the expression'],
    ['type = "track" and and event = "a"', 'At column 20: expected a condition, found "and"'],
    ['type = "track" event = "a"', 'At column 16: expected "and", "or" or the end of the expression, found "event"'],
    ['(type = "track"', 'At column 16: expected "and", "or" or ")", found the end of the expression'],
    ['type = "track")', 'At column 15: expected "and", "or" or the end of the expression, found ")"'],
    ['()', 'At column 2: expected a condition, found ")"'],
    ['type = "track', 'At column 8: the quote is not closed'],
    ['type * "track"', 'At column 6: unexpected "*"'],
    ['type = "track" && event = "a"', 'At column 16: write "and"'],
    ['not type = "track"', 'At column 1: "not" is not supported; use !=, !contains(…) or !match(…)'],
    ['!(type = "track")', 'At column 1: "!" is only possible before contains(…) and match(…); use != to negate a comparison'],
    ['!type = "track"', 'At column 1: "!" is only possible before contains(…) and match(…); use != to negate a comparison'],
    ['lowercase(event) = "a"', 'At column 1: unknown function "lowercase"; the functions are contains and match'],
    ['contains(event)', 'At column 15: expected ",", found ")"'],
    ['contains(event, )', 'At column 17: expected text in quotes, found ")"'],
    ['contains("event", "a")', 'At column 10: expected a field, found "\\"event\\""'],
    ['contains(event, null)', 'At column 17: expected text in quotes; to test for null, use = null or != null'],
    [`contains(event, "${'a'.repeat(201)}")`, 'At column 17: the text of contains must have at most 200 characters'],
    [
      'match(event, "Order")',
      'At column 14: the pattern of match must start or end with *, as in "Order*"; use = to compare the whole text',
    ],
    [
      'match(event, "*a*")',
      'At column 14: the pattern of match can have only one *, at its start or its end; use contains to search inside a text',
    ],
    ['match(event, Order)', 'At column 14: expected a pattern in quotes, found "Order"'],
    [
      'anonymousId = "a"',
      'At column 1: unknown field "anonymousId"; the fields are type, event, name, userId, properties.…, traits.… and context.…',
    ],
    [
      '__proto__.x = "a"',
      'At column 1: unknown field "__proto__.x"; the fields are type, event, name, userId, properties.…, traits.… and context.…',
    ],
    ['properties = null', 'At column 11: expected "." and a key after "properties"'],
    ['properties.\\[ = null', 'At column 11: expected "." and a key after "properties"'],
    ['properties. = null', 'At column 11: unexpected "." after "properties"'],
    ['properties.a..b = null', 'At column 13: unexpected "." after "properties.a"'],
    ['properties.a\\.b = null', 'At column 13: a key that contains a dot cannot be used'],
    ['properties.products[0] = 1', 'At column 20: write the position in a list after a dot, as in properties.products.0.price'],
    ['event.name = "a"', 'At column 6: "event" is text and has no keys'],
    ['properties.__proto__.x = 1', 'At column 1: the key "__proto__" cannot be used, because every object has it'],
    ['context.page.constructor != null', 'At column 1: the key "constructor" cannot be used, because every object has it'],
    ['properties.a\\[toString\\] != null', 'At column 1: the key "toString" cannot be used, because every object has it'],
    ['type > 5', 'At column 8: ">" compares numbers, and this field is text; use = or !='],
    ['properties.total > many', 'At column 20: expected a number after ">", found "many"'],
    ['properties.total > "many"', 'At column 20: expected a number after ">", found "\\"many\\""'],
    ['properties.total >= true', 'At column 21: expected a number after ">=", found "true"'],
    ['properties.total > 1e5', 'At column 21: unexpected "e" after "1"'],
    ['properties.total = 1.2.3', 'At column 23: unexpected "." after "1.2"'],
    ['properties.total = -', 'At column 20: unexpected "-"'],
    [`properties.total = 1${'0'.repeat(400)}`, 'At column 20: the number is too large'],
    ['userId = 007', 'At column 10: put 007 in quotes: it is compared as text'],
    ['userId = 12345678901234567890', 'At column 10: put 12345678901234567890 in quotes: it is compared as text'],
    ['properties.a != true', 'At column 17: "!= true" is not supported; use "= false", or put true in quotes to compare text'],
    ['properties.a = TRUE', 'At column 16: write true in lower case, or "TRUE" in quotes'],
    ['properties.a = properties.b', 'At column 16: expected a value, found "properties.b"; put text in quotes'],
    ['type = and', 'At column 8: expected a value, found "and"; put text in quotes'],
    ['type = "track"\n  and event', 'Line 2, column 12: expected a comparison (=, !=, <, <=, > or >=), found the end of the expression'],
    ['type = 💥', 'At column 8: unexpected "💥"'],
    ['type = \u0000', 'At column 8: unexpected "\\u0000"'],
    ['type = a\\', 'At column 9: unexpected "\\\\" after "a"'],
    [
      `${'a'.repeat(50)} = 1`,
      `At column 1: unknown field "${'a'.repeat(40)}…"; the fields are type, event, name, userId, properties.…, traits.… and context.…`,
    ],
  ]
  for (const [expression, problem] of rows) assert.equal(subscribeProblem(expression), `is not a valid expression. ${problem}`, expression)
})

test('the depth and the length of an expression are limited', () => {
  const nested = (depth: number): string => `${'('.repeat(depth)}type = "a"${')'.repeat(depth)}`
  assert.equal(subscribeProblem(nested(50)), null)
  assert.equal(subscribeProblem(nested(51)), 'is not a valid expression. At column 51: parentheses are nested more than 50 levels deep')
  assert.equal(subscribeProblem(Array.from({ length: 100 }, () => '(type = a)').join(' or ')), null)
  const long = `event = "${'a'.repeat(MAX_EXPRESSION)}"`
  assert.equal(subscribeProblem(long), 'is not a valid expression. At column 8193: longer than 8192 characters')
})

test('what the package writes for conditions is read back as the same conditions', () => {
  const words = fc.stringMatching(/^[^"*]{1,20}$/)
  const text = fc
    .record(
      {
        type: fc.constantFrom('event-type', 'event', 'name', 'userId'),
        operator: fc.constantFrom('=', '!=', 'contains', 'not_contains'),
        value: words,
      },
      { noNullPrototype: true },
    )
    .map((condition) => condition as Condition)
  const keys = fc.array(
    fc.stringMatching(/^[^.[\]]{1,8}$/).filter((key) => !(key in Object.prototype)),
    { minLength: 1, maxLength: 3 },
  )
  const tests = fc.oneof(
    fc.record({ operator: fc.constantFrom('exists', 'not_exists', 'is_true', 'is_false') }, { noNullPrototype: true }),
    fc.record({ operator: fc.constantFrom('=', '!=', 'starts_with', 'not_starts_with', 'ends_with', 'not_ends_with'), value: words }),
    fc.record({
      operator: fc.constantFrom('number_equals', 'number_not_equals', '<', '<=', '>', '>='),
      value: fc.integer({ min: -1_000_000, max: 1_000_000 }).map((cents) => cents / 100),
    }),
  )
  const nested = fc
    .tuple(fc.constantFrom('event-property', 'event-trait', 'event-context'), keys, tests)
    .map(([type, path, about]) => Object.assign({ type, name: path.join('.') }, about) as Condition)
  const { group } = fc.letrec<{ group: GroupCondition; condition: Condition }>((tie) => ({
    condition: fc.oneof({ depthSize: 'small' }, text, nested, tie('group')),
    group: fc.record(
      {
        type: fc.constant('group' as const),
        operator: fc.constantFrom('and' as const, 'or' as const),
        children: fc.array(tie('condition'), { minLength: 2, maxLength: 4 }),
      },
      { noNullPrototype: true },
    ),
  }))
  fc.assert(fc.property(group, (conditions) => assert.deepEqual(parseSubscribe(generateFql(conditions)), conditions)))
})

test('any text is either parsed or refused with a position', () => {
  const piece = fc.constantFrom(
    'type',
    'properties.a',
    ' ',
    '=',
    '!=',
    '!',
    '(',
    ')',
    'and',
    ' or ',
    '"a"',
    "'",
    '"',
    '5',
    '.',
    '\\',
    ',',
    'match',
    'contains(',
    'null',
    'é',
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.array(piece).map((pieces) => pieces.join('')),
      ),
      (expression) => {
        assert.match(subscribeProblem(expression) ?? 'column 1: none', /column \d+: ./)
      },
    ),
    { numRuns: 500 },
  )
})
