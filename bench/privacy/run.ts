// Measures what privacy rules cost in ingest: CPU time per message of parsing and checking a batch of 100 messages, without HTTP and storing.
// The rounds of all cases take turns, and the median is printed, so that other load on the machine affects all cases alike.
// Run: npm run bench:privacy

import { parseBody, parseRequest } from '../../packages/server/src/ingest/parsing/parse-request.ts'
import { createPrivacy } from '../../packages/server/src/ingest/privacy/privacy.ts'
import type { PrivacyRule } from '../../packages/server/src/store/store.ts'

const BATCH = 100
const ROUNDS = 15
const BATCHES_PER_ROUND = 200

const CASES: [title: string, privacy: PrivacyRule[]][] = [
  ['no rules', []],
  ['a rule that matches nothing', [{ path: 'properties.email', action: 'hash' }]],
  ['drop', [{ path: 'context.ip', action: 'drop' }]],
  ['mask', [{ path: 'traits.name', action: 'mask' }]],
  ['hash', [{ path: 'traits.email', action: 'hash' }]],
  [
    'hash and drop',
    [
      { path: 'traits.email', action: 'hash' },
      { path: 'context.ip', action: 'drop' },
    ],
  ],
]

const bytes = Buffer.from(
  JSON.stringify({
    batch: Array.from({ length: BATCH }, (_, at) => ({
      type: 'identify',
      userId: `u-${at}`,
      messageId: `m-${at}`,
      traits: { email: `alice-${at}@example.com`, plan: 'pro', name: 'Alice', total: 12.5, about: 'x'.repeat(150) },
      context: {
        ip: '192.0.2.7',
        library: { name: 'x', version: '1.0.0' },
        page: { url: 'https://shop.example/orders', title: 'A page with a title' },
      },
      timestamp: '2026-11-14T09:00:00.000Z',
    })),
  }),
)
const privacy = createPrivacy('a secret')

function round(rules: PrivacyRule[]): number {
  const source = { id: 'src', privacy: rules }
  const before = process.cpuUsage()
  for (let batch = 0; batch < BATCHES_PER_ROUND; batch++) {
    const body = parseBody(bytes)
    if (!body.ok || !parseRequest('batch', body, null, () => '', privacy.of(source)?.() ?? null).ok)
      throw new Error('the batch was rejected')
  }
  const { user, system } = process.cpuUsage(before)
  return (user + system) / (BATCHES_PER_ROUND * BATCH)
}

const cases = CASES.map(([title, rules]) => ({ title, rules, us: [] as number[] }))
for (const { rules } of cases) round(rules)
for (let at = 0; at < ROUNDS; at++) for (const { rules, us } of cases) us.push(round(rules))
console.log(
  `CPU time of ingest per message of ${Math.round(bytes.length / BATCH)} bytes, without HTTP and storing, median (min–max) of ${ROUNDS} rounds:`,
)
for (const { title, us } of cases) {
  us.sort((a, b) => a - b)
  console.log(`  ${us[ROUNDS >> 1]?.toFixed(1)} µs (${us[0]?.toFixed(1)}–${us.at(-1)?.toFixed(1)})  ${title}`)
}
