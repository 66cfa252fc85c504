// Random JSON Schemas together with values that they allow and values that they do not, as source text for a compiler. Also schemas in which every
// keyword can have any value.

import type { JsonObject } from '@switchyard/protocol'
import fc from 'fast-check'

export interface Described {
  schema: JsonObject
  /** Source texts of values that the schema allows. */
  valid: string[]
  /** Source texts of values that must not compile. */
  wrong: string[]
  /** Those of them that the schema itself would allow: object literals with a property that it does not name. */
  wrongForLiterals: ReadonlySet<string>
}

const NONE: ReadonlySet<string> = new Set()
const simple = (schema: JsonObject, valid: string[], wrong: string[]): Described => ({ schema, valid, wrong, wrongForLiterals: NONE })

const text = fc.string({ unit: 'binary', maxLength: 8 })
/** A JSON value as source text, on one line. */
const source = (value: unknown): string =>
  JSON.stringify(value).replaceAll(/[\u2028\u2029\u0085]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)

const scalar: fc.Arbitrary<Described> = fc.oneof(
  fc.constantFrom(
    simple({ type: 'string', minLength: 0 }, ['""', '"a"'], ['1', 'null', '{}', 'undefined']),
    simple({ type: 'string', format: 'date-time' }, ['"2026-11-14T09:00:00Z"'], ['1', 'true']),
    simple({ type: 'number', minimum: 0 }, ['0', '1.5'], ['"1"', 'true']),
    simple({ type: 'integer' }, ['7'], ['"7"', '[]']),
    simple({ type: 'boolean' }, ['true', 'false'], ['"true"', '0']),
    simple({ type: 'null' }, ['null'], ['0', '""']),
    simple({ type: ['string', 'null'] }, ['null', '"a"'], ['0', 'false']),
    simple({ anyOf: [{ type: 'string' }, { type: 'number' }] }, ['"a"', '2'], ['null', '[]']),
    simple({ type: 'string', oneOf: [{ minLength: 3 }, { maxLength: 2 }] }, ['"abc"'], ['1']),
    simple({ allOf: [{ type: ['string', 'number'] }, { type: ['number', 'boolean'] }] }, ['1'], ['"a"', 'true']),
    simple({ $ref: '#/$defs/sku' }, ['"sku-1"'], ['1', 'null']),
    simple({}, ['null', '"a"', '{ a: [1] }'], []),
  ),
  fc
    .tuple(text, text)
    .filter(([value, other]) => value !== other)
    .map(([value, other]) => simple({ const: value }, [source(value)], [source(other), '1'])),
  fc
    .uniqueArray(
      fc.oneof(
        text,
        fc.integer(),
        fc.constant(null),
        fc.boolean(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((values) => simple({ enum: values }, values.map(source), ['"none of the values of this enum"', '{}'])),
)

/** Not the empty name, which Ajv never reports as missing, nor names of members that every object has, for which Ajv and the compiler have exceptions. */
const key = fc.oneof(fc.constantFrom('a', 'b', 'total', 'odd key', 'class', '*/', '"'), text).filter((name) => name !== '' && !(name in {}))
const literal = (members: readonly (readonly [string, string])[]): string =>
  `{ ${members.map(([name, value]) => `${source(name)}: ${value}`).join(', ')} }`

const SKU: JsonObject = { sku: { type: 'string', description: '*/ @ts-ignore' } }
const UNPLANNED = 'a property that nobody planned'

const { object } = fc.letrec<{ value: Described; object: Described; array: Described; tuple: Described }>((tie) => ({
  value: fc.oneof({ depthSize: 'small', withCrossShrink: true }, scalar, tie('array'), tie('tuple'), tie('object')),
  array: tie('value').map((items) => ({
    schema: { type: 'array', items: items.schema },
    valid: ['[]', `[${items.valid.join(', ')}]`],
    wrong: ['"a"', '{}', ...items.wrong.map((value) => `[${value}]`)],
    wrongForLiterals: new Set(Array.from(items.wrongForLiterals, (value) => `[${value}]`)),
  })),
  tuple: fc.tuple(tie('value'), tie('value'), fc.boolean()).map(([first, second, open]) => ({
    schema: { type: 'array', prefixItems: [first.schema, second.schema], minItems: 1, ...(open ? {} : { items: false }) },
    valid: [
      `[${first.valid[0]}]`,
      `[${first.valid[0]}, ${second.valid[0]}]`,
      ...(open ? [`[${first.valid[0]}, ${second.valid[0]}, 1, "a"]`] : []),
    ],
    wrong: ['[]', ...first.wrong.map((value) => `[${value}]`), ...(open ? [] : [`[${first.valid[0]}, ${second.valid[0]}, 1]`])],
    wrongForLiterals: new Set(Array.from(first.wrongForLiterals, (value) => `[${value}]`)),
  })),
  object: fc
    .tuple(
      fc.uniqueArray(fc.tuple(key, tie('value'), fc.boolean()), { selector: ([name]) => name, minLength: 1, maxLength: 4 }),
      fc.constantFrom(undefined, false, true),
      fc.boolean(),
    )
    .map(([properties, additionalProperties, inAllOf]): Described => {
      const required = properties.filter(([, , isRequired]) => isRequired).map(([name]) => name)
      const members = properties.map(([name, { valid }]) => [name, valid[0] as string] as const)
      const replaced = (name: string, value: string | undefined): string =>
        literal(
          members.flatMap((member): (readonly [string, string])[] =>
            member[0] !== name ? [member] : value === undefined ? [] : [[name, value]],
          ),
        )
      const unplanned = literal([...members, [UNPLANNED, '1']])
      const own = { type: 'object', properties: Object.fromEntries(properties.map(([name, { schema }]) => [name, schema])), required }
      const closed = additionalProperties === undefined ? own : { ...own, additionalProperties }
      const wrongInside = properties.flatMap(([name, { wrong, wrongForLiterals }]) =>
        wrong
          .filter((value) => value !== 'undefined' || required.includes(name))
          .map((value) => ({ text: replaced(name, value), isLiteral: wrongForLiterals.has(value) })),
      )
      return {
        schema: inAllOf ? { type: 'object', allOf: [closed, { minProperties: 0 }] } : closed,
        valid: [
          literal(members),
          literal(members.filter(([name]) => required.includes(name))),
          ...(additionalProperties === true ? [unplanned] : []),
        ],
        wrong: [
          ...required.map((name) => replaced(name, undefined)),
          ...wrongInside.map((inside) => inside.text),
          ...(additionalProperties === true ? [] : [unplanned]),
        ],
        wrongForLiterals: new Set([
          ...wrongInside.filter(({ isLiteral }) => isLiteral).map((inside) => inside.text),
          ...(additionalProperties === undefined ? [unplanned] : []),
        ]),
      }
    }),
}))

export const describedObject: fc.Arbitrary<Described> = object.map(({ schema, valid, wrong, wrongForLiterals }) => ({
  schema: { ...schema, $defs: SKU },
  valid,
  wrong,
  wrongForLiterals,
}))

const KEYWORDS = [
  'type',
  'properties',
  'required',
  'additionalProperties',
  'patternProperties',
  'items',
  'prefixItems',
  'minItems',
  'enum',
  'const',
  '$ref',
  '$defs',
  'allOf',
  'anyOf',
  'oneOf',
  'format',
  'description',
  'title',
  'deprecated',
  'not',
]
const LEAVES = [
  'object',
  'array',
  'string',
  '#',
  '#/properties/a',
  '#/%',
  'https://example.com/schema',
  'date-time',
  '*/',
  '__proto__',
  true,
  false,
  null,
  -1,
  1e21,
  {},
  [],
]

/** Whatever a plan could contain, valid or not. */
export const garbageSchema: fc.Arbitrary<JsonObject> = fc
  .object({
    key: fc.oneof(fc.constantFrom(...KEYWORDS, 'a', '__proto__', 'constructor'), text),
    values: [fc.constantFrom(...LEAVES), text],
    maxDepth: 5,
    maxKeys: 6,
  })
  .map((schema) => schema as JsonObject)
