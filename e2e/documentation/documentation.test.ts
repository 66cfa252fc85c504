// The documentation is correct: the steps of the quick starts work with a real service, numbers are those of the code and of the benchmarks'
// tables, and links lead to existing pages.

import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { MAX_BATCH_BYTES, MAX_BATCH_MESSAGES, MAX_MESSAGE_BYTES } from '@switchyard/protocol'
import type { Fields } from '../../packages/server/src/api/schema.ts'
import { SETTINGS } from '../../packages/server/src/config.ts'
import { NEW_DESTINATION, newDestinationFields } from '../../packages/server/src/control/destinations/destination-settings.ts'
import { FAILURES_TO_OPEN, FIRST_PROBE_MS, MAX_PROBE_MS, RAMP_START } from '../../packages/server/src/delivery/lanes/breaker.ts'
import { RESPONSE_START_BYTES } from '../../packages/server/src/delivery/link/outcome.ts'
import { MAX_RESPONSE_BYTES } from '../../packages/server/src/delivery/sender/http/attempt.ts'
import { retryOf } from '../../packages/server/src/destinations/settings/retry-settings.ts'
import { MAX_WEBHOOK_BATCH } from '../../packages/server/src/destinations/webhook/shaping/request-settings.ts'
import { verdictOfStatus } from '../../packages/server/src/destinations/webhook/verdict.ts'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { startService } from '../system/service.ts'
import { blocksOf, brokenLinksOf, headingsOf, proseOf, Reader, ROOT, relativeLinksOf } from './documentation.ts'

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

suite('the steps of the quick starts work', { concurrency: 3, skip: SQLITE_ONLY }, () => {
  test('for senders: everything that is sent is stored', async () => {
    await using service = await startService({ token: null })
    await using reader = await Reader.withService(service)
    await reader.follow('docs/guide/quick-start-sender.md')
    for (const id of ['order-1', 'order-2', 'order-3', 'worker-1']) await service.api(`/messages/${id}`)
    // From curl one, and one of two in its batch; two from send.mjs; one each from errors, worker, handler and page.
    assert.equal((await service.stats()).accepted, 8)
  })

  test('for operators: from the first start to a valid backup', async () => {
    await using service = await startService({ token: null })
    await using reader = await Reader.withService(service)
    await reader.follow('docs/guide/quick-start-operator.md')
  })

  test('for receivers: signatures, duplicates and failures', async () => {
    await using service = await startService({ token: null })
    await using reader = await Reader.withService(service)
    await reader.follow('docs/guide/quick-start-receiver.md')
  })
})

test('a failed command, a line that was not printed and a remaining placeholder are reported', async () => {
  await using reader = Reader.alone()
  await assert.rejects(reader.read('```sh\nfalse\n```\n'), /ended with 1/)
  await assert.rejects(reader.read('```sh exits:1\ntrue\n```\n'), /ended with 0/)
  await assert.rejects(reader.read('```sh\necho one\n```\n\n```text\ntwo\n```\n'), /two/)
  await assert.rejects(reader.read('```sh\necho …\n```\n'), /placeholder/)
  await assert.rejects(reader.read('```js\nexport {}\n```\n'), /name of a file/)
  await assert.rejects(reader.read('```sh elsewhere:e2e/nothing.test.ts\ntrue\n```\n'), /is not there/)
  await reader.read('```sh\nexport A=1\n```\n\n```sh\necho "one $A"; echo two; echo three\n```\n\n```text\none …\nthree\n```\n')
})

/** The rows of the page's table, by the third column. */
function numbersOf(page: string): [name: string, value: string][] {
  const [, table = ''] = /^## Limits and defaults\n([\s\S]*)/m.exec(page) ?? []
  return [...table.matchAll(/^\| [^|]+ \| ([^|]+) \| `([^`]+)` \|$/gm)].map(([, value = '', name = '']) => [name, value])
}

/** The value of a constant that is not exported: the product with which it is defined. */
function constantIn(file: string, name: string): number {
  const source = textOf(`packages/server/src/${file}`)
  const [, product] = new RegExp(`^(?:export )?const ${name} = ([\\w *]+)$`, 'm').exec(source) ?? []
  assert.ok(product !== undefined, `${file} has no ${name}`)
  return product
    .split('*')
    .map((factor) => (/^[A-Z]/.test(factor.trim()) ? constantIn(file, factor.trim()) : Number(factor.trim().replaceAll('_', ''))))
    .reduce((all, factor) => all * factor)
}

interface Bounds {
  minimum?: number
  maximum?: number
  maxItems?: number
}

test('docs/guide/delivery.md contains the numbers of the code, and no others', () => {
  const page = textOf('docs/guide/delivery.md')
  const given = NEW_DESTINATION.parse({ name: 'x', urls: ['http://example.com/'] }, '')
  const webhook = newDestinationFields('webhook')
  const bounds = (field: string): Bounds => (webhook as Fields)[field]?.toJsonSchema() ?? {}
  const retry = retryOf(given)
  const { properties: retryBounds } = webhook.retry.toJsonSchema() as { properties: Record<string, Required<Bounds>> }
  const bound = (field: string): Required<Bounds> => retryBounds[field] as Required<Bounds>
  const seconds = (ms: number): string => `${ms / 1_000} s`
  const hours = (ms: number): string => `${ms / 3_600_000} hours`
  const kb = (bytes: number): string => `${bytes / 1_024} KB`
  const count = (value: number | undefined): string => (value ?? Number.NaN).toLocaleString('en')
  assert.deepEqual(numbersOf(page), [
    ['timeoutMs', seconds(given.timeoutMs)],
    ['timeoutMs', `${bounds('timeoutMs').minimum} ms`],
    ['retry.windowMs', hours(retry.retryWindowMs)],
    ['retry.windowMs', `${bound('windowMs').minimum / 1_000} s to ${bound('windowMs').maximum / 86_400_000} days`],
    ['retry.initialMs', seconds(retry.retry.initialMs)],
    ['retry.initialMs', `${bound('initialMs').minimum} ms to ${bound('initialMs').maximum / 3_600_000} hour`],
    ['retry.maxMs', `${retry.retry.maxMs / 60_000} minutes`],
    ['retry.maxMs', `up to ${hours(bound('maxMs').maximum)}`],
    ['retry.factor', count(retry.retry.factor)],
    ['retry.factor', `${bound('factor').minimum} to ${bound('factor').maximum}`],
    ['urls', count(bounds('urls').maxItems)],
    ['FAILURES_TO_OPEN', count(FAILURES_TO_OPEN)],
    ['FIRST_PROBE_MS', seconds(FIRST_PROBE_MS)],
    ['MAX_PROBE_MS', seconds(MAX_PROBE_MS)],
    ['RAMP_START', count(RAMP_START)],
    ['maxInFlight', count(given.maxInFlight)],
    ['maxInFlight', count(bounds('maxInFlight').maximum)],
    ['SLOTS', count(constantIn('delivery/delivery.ts', 'SLOTS'))],
    ['batch.size', count(MAX_WEBHOOK_BATCH)],
    ['batch.bytes', `${count(given.batch.bytes)} bytes`],
    ['batch.lingerMs', `${count(given.batch.lingerMs)} ms`],
    ['MAX_RESPONSE_BYTES', kb(MAX_RESPONSE_BYTES)],
    ['RESPONSE_START_BYTES', kb(RESPONSE_START_BYTES)],
    ['HISTORICAL_MS', hours(constantIn('routing/route-messages.ts', 'HISTORICAL_MS'))],
    ['DEDUP_MS', hours(constantIn('store/sqlite/store.ts', 'DEDUP_MS'))],
    ['SWITCHYARD_RETENTION_DAYS', `${SETTINGS.retentionDays.fallback} days`],
  ])
  // Numbers in the text: half of a delay is random, probes double, one URL, one request, HTTP/1.1.
  const derived = [retry.retry.initialMs / 2_000, FIRST_PROBE_MS / 500, given.batch.size, 1.1].map(String)
  const said = new Set([...numbersOf(page).flatMap(([, value]) => value.split(' ')), ...derived])
  const prose = proseOf(page.slice(0, page.indexOf('## Limits and defaults')))
  const others = [...prose.matchAll(/(?<![\w/.-])\d[\d,.]*(?<=\d)(?!\w)/g)].map(([number]) => number)
  assert.deepEqual(
    others.filter((number) => !said.has(number) && !/^[1-5]\d\d$/.test(number)),
    [],
    'numbers that are neither in the table nor statuses',
  )
  const row = (name: string): number[] =>
    [...(new RegExp(`^\\| \\*\\*${name}\\*\\* \\| ([^|]*) \\|`, 'm').exec(page)?.[1] ?? '').matchAll(/\b[1-5]\d\d\b/g)].map(Number)
  const [, exceptions = ''] = /any 5xx except ([^;]*);/.exec(page) ?? []
  const excepted = new Set((exceptions.match(/\d{3}/g) ?? []).map(Number))
  for (let status = 200; status < 600; status++) {
    const told =
      status < 300
        ? 'success'
        : excepted.has(status)
          ? 'permanent'
          : status >= 500 || row('Temporary').includes(status)
            ? 'temporary'
            : 'permanent'
    assert.equal(told, verdictOfStatus(status), String(status))
  }
  for (const status of [...row('Permanent'), 301, 404]) assert.equal(verdictOfStatus(status), 'permanent')
})

test('docs/operations/sizing.md has the numbers that BENCHMARKS.md has, and limits of the code', () => {
  const page = textOf('docs/operations/sizing.md')
  const printed = textOf('BENCHMARKS.md')
  const measured = [...page.matchAll(/\d[\d,]*\.?\d* \([\d,.]+–[\d,.]+\)/g)].map(([number]) => number)
  assert.ok(measured.length >= 4)
  for (const number of [...measured, '225.7', '0.32', '3,038', '0.25', '0.77', '311 MB', '315–353', '1,052 (909–1,130)', '73 (67–90)'])
    assert.ok(printed.includes(number), `${number} is in no table`)
  for (const number of ['0.25 ms', '0.77 ms', '73 µs', '311 MB', '225.7 MB', '1,052 ms', '0.32', '3,038'])
    assert.ok(page.includes(number), `${number} is not on the page`)
  for (const limit of [
    `${MAX_MESSAGE_BYTES / 1_024} KB`,
    `${MAX_BATCH_BYTES / 1_024} KB, ${MAX_BATCH_MESSAGES.toLocaleString('en')} messages`,
    constantIn('delivery/delivery.ts', 'SLOTS').toLocaleString('en'),
    `${constantIn('delivery/delivery.ts', 'MEMORY_BYTES') / 1_024 / 1_024} MB in all`,
  ])
    assert.ok(page.includes(`| ${limit}`), limit)
})

test('docs/operations/deployment.md has the limits of hosts that the code has', () => {
  const page = textOf('docs/operations/deployment.md')
  const file = 'delivery/link/host-channel.ts'
  assert.ok(page.includes(`memory exceeds ${constantIn(file, 'MAX_RSS_BYTES') / 1_024 / 1_024} MB`))
  assert.ok(page.includes(`JavaScript heap exceeds ${constantIn(file, 'MAX_HEAP_MB')} MB`))
  const silentMs = constantIn('delivery/supervision/hosts.ts', 'SILENT_CHECKS') * constantIn('delivery/supervision/senders.ts', 'CHECK_MS')
  assert.ok(page.includes(`does not answer for ${silentMs / 1_000} s`))
})

test('statements about other products in the comparison have a source and a date', () => {
  const page = textOf('docs/guide/comparison.md')
  assert.match(page, /^As of [A-Z][a-z]+ 20\d\d/m)
  const sections = page.split(/^## /m).slice(4)
  assert.ok(sections.length >= 6)
  for (const section of sections) {
    const [title = ''] = section.split('\n')
    assert.match(section, /\]\(https:\/\//, `${title}: no source`)
    assert.match(section, /[Bb]etter (there|on your own)/, `${title}: nothing that it is better at?`)
  }
})

test('commands use the file ./switchyard of the clone, because no program named switchyard is on the PATH', () => {
  for (const page of globSync('docs/{guide,operations,reference,integrations}/**/*.md', { cwd: ROOT }))
    for (const { language, text, line } of blocksOf(textOf(page)))
      if (language === 'sh') assert.doesNotMatch(text, /(?:^|[ ;(|])(?<!docker exec .*)switchyard [a-z]/m, `${page}:${line}`)
})

test('every link of the documentation leads to an existing file and heading', () => {
  const files = globSync(['*.md', 'docs/**/*.md', 'packages/*/README.md', 'examples/README.md', 'bench/*/README.md'], {
    cwd: ROOT,
    exclude: (name) => name.includes('node_modules'),
  })
  assert.ok(files.length > 40, files.join())
  const links = files.flatMap((file) => relativeLinksOf(textOf(file)))
  assert.ok(links.length > 200, String(links.length))
  assert.deepEqual(
    files.flatMap((file) => brokenLinksOf(file)),
    [],
  )
})

test('blocks, headings and links are parsed as they are rendered', () => {
  const page =
    '# A `b` & C!\n\n## Twice\n\n## Twice\n\n```sh start\n# not a heading\n[no](link.md)\n```\n\n[a](x.md#y) `[b](z.md)` [c](https://example.com)\n'
  assert.deepEqual([...headingsOf(page)], ['a-b--c', 'twice', 'twice-1'])
  assert.deepEqual(relativeLinksOf(page), ['x.md#y'])
  assert.deepEqual(blocksOf(page), [{ language: 'sh', words: ['start'], text: '# not a heading\n[no](link.md)\n', line: 7 }])
  assert.throws(() => blocksOf('```sh\n'), /not closed/)
})
