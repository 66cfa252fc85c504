// A tracking plan from the messages of a source to a check in CI: `switchyard plan learn`, `check`, `diff` and `apply`, and what shows plans.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { asJson, type Result, says, switchyard } from '../system/command-line.ts'
import { type InProcessService, startInProcess } from '../system/in-process.ts'
import { TOKEN } from '../system/service.ts'

let service: InProcessService & { token: string }
let folder: string
let file: string

before(async () => {
  service = Object.assign(await startInProcess(), { token: TOKEN })
  folder = mkdtempSync(join(tmpdir(), 'switchyard-plans-'))
  file = join(folder, 'plan.yaml')
})
after(async () => {
  await service[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

const run = (...args: string[]): Promise<Result> => switchyard(service, 'plan', ...args)

async function newSource(name: string): Promise<(batch: object[]) => Promise<void>> {
  const { writeKeys } = await service.api<{ writeKeys: string[] }>('/sources', { method: 'POST', body: { name } })
  return async (batch) => {
    const authorization = `Basic ${Buffer.from(`${writeKeys[0]}:`).toString('base64')}`
    const headers = { authorization, 'content-type': 'application/json' }
    const { status } = await fetch(`${service.url}/v1/batch`, { method: 'POST', headers, body: JSON.stringify({ batch }) })
    assert.equal(status, 200)
  }
}

const order = (index: number, properties: object = {}): object => ({
  type: 'track',
  event: 'Order Completed',
  userId: `user-${index % 7}`,
  messageId: `order-${index}`,
  properties: {
    total: index / 4,
    currency: ['EUR', 'USD'][index % 2],
    email: `user-${index}@example.com`,
    products: [{ sku: `s${index}` }],
    ...properties,
  },
})

test('a plan is learned, flags nothing that it was learned from, and then flags what differs', async () => {
  const send = await newSource('shop')
  await send(Array.from({ length: 40 }, (_, index) => order(index)))
  assert.match(
    await says(service, 'plan', 'learn', '--source', 'shop', '--out', file),
    /Wrote .*plan\.yaml: 1 rule, learned from 40 messages\./,
  )
  const text = readFileSync(file, 'utf8')
  assert.match(text, /^ {8}currency: \{ type: string, enum: \[ EUR, USD \] \}\n {8}email: \{ type: string, format: email \}$/m)
  assert.ok(!text.includes('user-'))
  assert.equal(await says(service, 'plan', 'learn', '--source', 'shop'), text)

  const again = await run('learn', '--source', 'shop', '--out', file)
  assert.deepEqual([again.code, again.stderr.includes('Use --force to overwrite it')], [2, true])
  assert.deepEqual((await run('learn', '--source', 'shop', '--from', '2100-01-01T00:00:00Z')).code, 4)

  assert.match(await says(service, 'plan', 'check', file), /plan\.yaml would flag 0 of 40 messages\.\n$/)
  assert.equal(await says(service, 'plan', 'diff', file, '--source', 'shop'), 'No differences.\n')

  await send([
    order(40, { currency: 'GBP', products: [{ sku: 1 }, { sku: 2 }] }),
    order(41, { total: '12', coupon: 'x' }),
    { type: 'track', event: 'Order Cancelled', userId: 'u', messageId: 'cancelled' },
  ])
  const checked = await run('check', file, '--from', '1h')
  assert.equal(checked.code, 1)
  assert.match(checked.stdout, /track Order Completed +properties\.products\.\*\.sku +wrong_type +a string +a number +1 +order-40/)
  assert.match(checked.stdout, /track Order Cancelled +event +unplanned_event .* 1 +cancelled\n/)
  assert.match(checked.stdout, /would flag 3 of 43 messages\.\n$/)
  assert.equal((await run('check', file, '--allow', '3')).code, 0)
  const found = await switchyard(service, '--json', 'plan', 'check', file, '--source', 'shop')
  const { messages, flaggedMessages, flagged } = JSON.parse(found.stdout) as {
    messages: number
    flaggedMessages: number
    flagged: object[]
  }
  assert.deepEqual([found.code, messages, flaggedMessages, flagged.length], [1, 43, 3, 5])

  const differences = await run('diff', file, '--source', 'shop')
  assert.equal(differences.code, 5)
  assert.match(differences.stdout, /- track Order Cancelled: rule removed/)
  assert.match(differences.stdout, /track Order Completed\n(.*\n)* {2}- properties\.coupon: removed; it was a string, optional\n/)
})

test('a file with mistakes is refused with the line', async () => {
  const wrong = join(folder, 'wrong.yaml')
  const check = async (text: string): Promise<Result> => {
    writeFileSync(wrong, text)
    return await run('check', wrong, '--source', 'shop')
  }
  const mode = await check('name: a\nrules:\n  - type: page\n    mode: block\n    schema: {}\n')
  assert.deepEqual([mode.code, /wrong\.yaml:4: rules\[0\]\.mode must be one of observe/.test(mode.stderr)], [2, true], mode.stderr)
  const schema = await check('name: a\nrules:\n  - type: page\n    schema:\n      properties:\n        a: { $ref: "http://127.0.0.1/x" }\n')
  assert.deepEqual(
    [schema.code, /wrong\.yaml:6: rules\[0\]\.schema\.properties\.a\.\$ref must be #/.test(schema.stderr)],
    [2, true],
    schema.stderr,
  )
  assert.equal((await run('check', join(folder, 'none.yaml'))).code, 2)
  writeFileSync(wrong, 'name: a\nrules: []\n')
  const sources = await run('check', wrong)
  assert.deepEqual([sources.code, sources.stderr.includes('names no sources')], [2, true])
})

test('a plan is applied, shown as it is in the file, changed, violated and deleted', async () => {
  const send = await newSource('store')
  const path = join(folder, 'store.yaml')
  await send(Array.from({ length: 9 }, (_, index) => order(100 + index)))
  await says(service, 'plan', 'learn', '--source', 'store', '--name', 'orders', '--out', path)
  const planned = await run('diff', path)
  assert.deepEqual([planned.code, planned.stdout.includes('+ attached to the source store')], [5, true], planned.stderr)
  assert.equal(await says(service, 'plan', 'apply', path), 'Created the plan orders: 1 rule, version 1.\n')
  assert.equal(await says(service, 'plan', 'show', 'orders'), readFileSync(path, 'utf8'))
  assert.match(await says(service, 'plan'), /orders +1 +1 +store /)
  assert.equal(await says(service, 'plan', 'diff', path), 'No differences.\n')
  assert.match(await says(service, 'plan', 'apply', path), /^Nothing to change in the plan orders: 1 rule, version 1\.$/m)

  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace('email: { type: string, format: email }', 'email: { type: string, format: email, maxLength: 12 }'),
  )
  assert.match(
    await says(service, 'plan', 'apply', path),
    /^track Order Completed\n {2}~ properties\.email: maxLength added: 12\nChanged the plan orders: 1 rule, version 2\.\n$/,
  )
  writeFileSync(path, readFileSync(path, 'utf8').replace('maxLength: 12', 'maxLen: 12'))
  const refused = await run('apply', path)
  assert.deepEqual([refused.code, /store\.yaml:\d+: rules\[0\]\.schema/.test(refused.stderr)], [2, true], refused.stderr)

  await send([order(200, { total: 'many' })])
  assert.match(
    await says(service, 'plan', 'violations', '--source', 'store'),
    /properties\.total +wrong_type +a number +a string +1 +1 .*order-200/,
  )
  const violations = await asJson<{ violation: { path: string } }[]>(service, 'plan', 'violations', '--plan', 'orders')
  assert.deepEqual(violations.map(({ violation }) => violation.path).sort(), ['properties.email', 'properties.total'])

  assert.match(await says(service, 'plan', 'delete', 'orders', '--yes'), /^Deleted plan pln_/)
  assert.equal((await run('show', 'orders')).code, 4)
})

test('the configuration file brings plans back, and two of them exchange their sources', async () => {
  await newSource('left')
  await newSource('right')
  const schema = { type: 'object', properties: { total: { enum: [1, null, 'no', '012'] } } }
  const post = (name: string, source: string) =>
    service.api('/plans', {
      method: 'POST',
      body: { name, rules: [{ type: 'track', event: 'A: "b" #', mode: 'strip', schema }], sourceIds: [source] },
    })
  const { data } = await service.api<{ data: { id: string; name: string }[] }>('/sources')
  const idOf = (name: string): string => data.find((each) => each.name === name)?.id ?? ''
  await post('exchange 1', idOf('left'))
  await post('exchange 2', idOf('right'))
  const path = join(folder, 'switchyard.yaml')
  const text = await says(service, 'export')
  writeFileSync(path, text)
  assert.equal(await says(service, 'apply', path, '--dry-run'), 'Nothing would change.\n')
  const other: Record<string, string> = { left: 'right', right: 'left' }
  const exchanged = text.replaceAll(/(sources:\n +- )(left|right)$/gm, (_, before: string, name: string) => before + other[name])
  writeFileSync(path, exchanged)
  assert.match(await says(service, 'apply', path), /^Applied 2 changes\.$/m)
  assert.equal(await says(service, 'apply', path), 'Nothing to change.\n')
  const plans = await service.api<{ data: { name: string; sourceIds: string[]; rules: { schema: object }[] }[] }>('/plans')
  assert.deepEqual(
    plans.data.filter(({ name }) => name.startsWith('exchange')).map(({ sourceIds, rules }) => [sourceIds, rules[0]?.schema]),
    [
      [[idOf('right')], schema],
      [[idOf('left')], schema],
    ],
  )
})
