// Measures what it costs to judge a message by a tracking plan: CPU time per message, for a rule with eight properties.
// The rounds of all cases take turns, and the median is printed, so that other load on the machine affects all cases alike.
// Run: npm run bench:plans

import { createPlanJudge, type JsonObject, type PlanRule } from '@switchyard/protocol'
import { createSchemaCompiler } from '../../packages/server/src/plans/plan-schema-compiler.ts'

const ROUNDS = 15
const MESSAGES_PER_ROUND = 200_000

const schema: JsonObject = {
  type: 'object',
  properties: {
    orderId: { type: 'string', minLength: 1 },
    total: { type: 'number', minimum: 0 },
    currency: { enum: ['EUR', 'USD', 'GBP', 'JPY'] },
    coupon: { type: ['string', 'null'] },
    items: { type: 'integer' },
    email: { type: 'string', format: 'email' },
    orderedAt: { type: 'string', format: 'date-time' },
    returning: { type: 'boolean' },
  },
  required: ['orderId', 'total', 'currency'],
  additionalProperties: false,
}
const rules: PlanRule[] = [
  { type: 'track', event: 'Order Completed', mode: 'observe', schema },
  { type: 'track', event: 'Order Refunded', mode: 'strip', schema: { ...schema, additionalProperties: undefined } },
  ...Array.from({ length: 200 }, (_, at): PlanRule => ({ type: 'track', event: `Event ${at}`, mode: 'observe', schema })),
]
const properties = {
  orderId: 'o-17',
  total: 12.5,
  currency: 'EUR',
  coupon: null,
  items: 3,
  email: 'alice@example.com',
  orderedAt: '2026-11-14T09:00:00.000Z',
  returning: true,
}

const CASES: [title: string, event: string, properties: JsonObject][] = [
  ['no rule for the event', 'Cart Viewed', properties],
  ['as planned', 'Order Completed', properties],
  ['as planned, mode strip', 'Order Refunded', properties],
  ['a property of the wrong type', 'Order Completed', { ...properties, total: '12.5' }],
  ['a property to strip', 'Order Refunded', { ...properties, gift: true }],
]

const { judge, faults } = createPlanJudge({ unplanned: 'allow', rules }, createSchemaCompiler)

function round(messages: readonly JsonObject[]): number {
  const before = process.cpuUsage()
  for (let at = 0; at < MESSAGES_PER_ROUND; at++) judge(messages[at % messages.length] as JsonObject)
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1_000) / MESSAGES_PER_ROUND
}

const cases = CASES.map(([title, event, given]) => {
  // Parsed from JSON, as in ingest.
  const message = JSON.stringify({ type: 'track', event, userId: 'u', properties: given })
  return { title, messages: Array.from({ length: 100 }, () => JSON.parse(message) as JsonObject), ns: [] as number[] }
})
for (const { messages } of cases) round(messages)
for (let at = 0; at < ROUNDS; at++) for (const { messages, ns } of cases) ns.push(round(messages))
if (faults.length > 0) throw new Error(`a rule could not be applied: ${JSON.stringify(faults)}`)
console.log(`CPU time of judging one message, median (min–max) of ${ROUNDS} rounds:`)
for (const { title, ns } of cases) {
  ns.sort((a, b) => a - b)
  console.log(`  ${ns[ROUNDS >> 1]?.toFixed(0)} ns (${ns[0]?.toFixed(0)}–${ns.at(-1)?.toFixed(0)})  ${title}`)
}
