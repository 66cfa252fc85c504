import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import * as webhook from './index.ts'
import { DEFAULTS } from './verify-options.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

test('the README lists exactly the rejection codes, with their statuses and messages', () => {
  const rows = [...readme.matchAll(/^\| `([a-z_]+)` \| (\d{3}) \| (.+) \|$/gm)].map(([, code, status, message]) => [
    code,
    [Number(status), message],
  ])
  assert.deepEqual(rows, Object.entries(webhook.REFUSALS))
})

test('the README imports only what is exported', () => {
  const imports = [...readme.matchAll(/import \{([^}]+)\} from '@switchyard\/webhook'/g)]
  const names = imports.flatMap(([, list]) => (list ?? '').split(',').map((name) => name.trim()))
  assert.ok(names.length > 5)
  for (const name of names) assert.ok(Object.hasOwn(webhook, name), name)
})

test('the defaults in the README are those of the code', () => {
  for (const [name, value] of Object.entries(DEFAULTS)) assert.ok(readme.includes(`\n| \`${name}\` | ${value} |`), name)
})
