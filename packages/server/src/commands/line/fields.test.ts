import assert from 'node:assert/strict'
import test from 'node:test'
import { boolean, integer, number, object, oneOf, optional, withDefault } from '../../api/schema.ts'
import type { Call } from './command.ts'
import { bodyFrom, flagsFor } from './fields.ts'

const WAIT = integer({ min: 0, max: 3_600_000, description: 'How long to wait.' })
const SETTINGS = object({
  mode: oneOf(['a', 'b'], { description: 'The mode.' }),
  requireOAuth: withDefault(boolean({ description: 'Whether OAuth is required.' }), false),
  retry: optional(
    object({ waitMs: withDefault(WAIT, 5_000), factor: number({ min: 1, max: 10, description: 'The factor.' }), codes: object({}) }),
  ),
  size: integer({ min: 1, max: 1_000, description: 'The size.' }),
})

test('simple fields are flags, also those inside objects; durations are written with a unit', () => {
  assert.deepEqual(flagsFor(SETTINGS), {
    mode: { placeholder: 'MODE', description: 'The mode.', values: ['a', 'b'] },
    'require-oauth': { placeholder: null, description: 'Whether OAuth is required.' },
    'retry-wait': { placeholder: 'DURATION', description: 'How long to wait. From 0s to 1h.', defaultText: '5s' },
    'retry-factor': { placeholder: 'NUMBER', description: 'The factor. From 1 to 10.' },
    size: { placeholder: 'NUMBER', description: 'The size. From 1 to 1000.' },
  })
})

test('the flags that were given make the request', () => {
  const body = (given: Record<string, string>): object =>
    bodyFrom({ has: (flag: string) => flag in given, flag: (flag: string) => given[flag] } as unknown as Call, SETTINGS)
  assert.deepEqual(body({}), {})
  assert.deepEqual(body({ 'require-oauth': '', 'retry-wait': '2m', size: '7' }), {
    requireOAuth: true,
    retry: { waitMs: 120_000 },
    size: 7,
  })
  assert.deepEqual(body({ mode: 'b', 'retry-factor': '1.5' }), { mode: 'b', retry: { factor: 1.5 } })
  assert.throws(() => body({ 'retry-wait': '2' }), /--retry-wait must be a duration/)
  assert.throws(() => body({ size: 'x' }), /--size must be a whole number/)
})
