// The measured size is compared with that of the message which is really merged and serialized.

import assert from 'node:assert/strict'
import test from 'node:test'
import { type JsonObject, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import fc from 'fast-check'
import { parseBody, parseRequest } from '../ingest/parsing/parse-request.ts'
import { tooLargeMerged } from './merged-size.ts'
import { merged } from './outbound-message.ts'

function parse(request: JsonObject): ReturnType<typeof parseRequest> {
  const body = parseBody(Buffer.from(JSON.stringify(request)))
  assert.ok(body.ok)
  return parseRequest('batch', body, null, () => 'made')
}

const track = (at: number, fields: JsonObject = {}): JsonObject => ({
  type: 'track',
  userId: 'u',
  event: 'e',
  messageId: `m${at}`,
  ...fields,
})

test('a message has exactly the size that it has when it is merged', () => {
  const key = fc.constantFrom('a', 'b', 'é', '__proto__', '0', 'app')
  const object = fc.array(fc.tuple(key, fc.jsonValue()), { maxLength: 5 }).map((entries) => {
    return JSON.parse(`{${entries.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')}}`) as JsonObject
  })
  const own = fc.option(object, { nil: undefined })
  const shared = fc.option(object, { nil: null })
  const property = fc.property(own, own, shared, shared, (context, integrations, batchContext, batchIntegrations) => {
    const item = JSON.parse(JSON.stringify({ type: 'track', context, integrations })) as JsonObject
    const whole = {
      type: 'track',
      context: merged(withKeys(batchContext), context),
      integrations: merged(withKeys(batchIntegrations), integrations),
    }
    const bytes = Buffer.byteLength(JSON.stringify(whole))
    const of = (maxBytes: number): ReadonlySet<number> | null =>
      tooLargeMerged(
        [item],
        [Buffer.byteLength(JSON.stringify(item))],
        { context: batchContext, integrations: batchIntegrations },
        maxBytes,
      )
    assert.equal(of(bytes), null)
    assert.deepEqual(of(bytes - 1), new Set([0]))
  })
  fc.assert(property, { numRuns: 500 })
})

/** An empty object of the batch adds nothing to measure. */
function withKeys(shared: JsonObject | null): JsonObject | null {
  return shared === null || Object.keys(shared).length === 0 ? null : shared
}

test('a small request with a large context for all its messages is refused', () => {
  const batch = Array.from({ length: 900 }, (_, at) => track(at))
  const result = parse({ batch, context: { app: 'x'.repeat(400_000) } })
  assert.ok(result.ok)
  assert.deepEqual([result.items.length, result.rejected.length], [0, 900])
  assert.deepEqual([...result.rejections.keys()], ['message_too_large'])
  assert.match(result.rejected[0]?.message ?? '', /^A message may be at most 32 KB .* context and integrations of the batch count/)
})

test('the limit applies to each message as merged: what fits is accepted', () => {
  const context = { app: 'x'.repeat(20_000), os: 'y' }
  const large = 'z'.repeat(12_700)
  const result = parse({
    batch: [track(0), track(1, { properties: { large } }), track(2, { properties: { large }, context: { app: null } })],
    context,
    integrations: { All: true },
  })
  assert.ok(result.ok)
  assert.deepEqual([result.messageIds, result.rejected.map(({ index, code }) => [index, code])], [['m0', 'm2'], [[1, 'message_too_large']]])
  const few = parse({ batch: [track(0)], context: { app: 'x'.repeat(MAX_MESSAGE_BYTES - 200) } })
  assert.ok(few.ok && few.rejected.length === 0)
})
