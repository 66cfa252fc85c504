// A service that fails in the middle of an apply, which cannot be provoked from outside. The rest is tested with a real service in
// e2e/command-line/operations.test.ts.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { JsonObject } from '@switchyard/protocol'
import { type Call, CommandProblem, EXIT } from '../line/command.ts'
import { createOutput } from '../line/output.ts'
import type { Api } from '../service/api.ts'
import { apply } from './apply.ts'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-apply-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const list = (properties: object) => ({ items: { properties } })
const SCHEMA = {
  properties: {
    sources: list({ name: {}, enabled: { default: true } }),
    destinations: list({ name: {}, sources: { default: [] }, urls: {} }),
  },
}

function call(file: string, posted: (path: string, body: object) => JsonObject): { call: Call; said: string[] } {
  const path = join(folder, 'switchyard.yaml')
  writeFileSync(path, file)
  const said: string[] = []
  const stream = { write: (text: string) => said.push(text) }
  const api: Partial<Api> = {
    url: 'http://127.0.0.1:1',
    get: async () => SCHEMA,
    async *all() {},
    post: async (to, body = {}) => (to === '/api/configuration/check' ? { problems: [], changedSecrets: [] } : posted(to, body)),
  }
  const made: Call = {
    arguments: [path],
    flag: () => undefined,
    flags: () => [],
    has: () => false,
    json: false,
    ask: null,
    env: {},
    api: api as Api,
    out: createOutput({ stdout: stream, stderr: stream, json: false, colours: false }),
    signal: new AbortController().signal,
  }
  return { call: made, said }
}

test('the error of a failed change lists the changes that were and were not applied', async () => {
  const file =
    'version: 1\nsources:\n  - name: s\ndestinations:\n  - {name: a, sources: [s], urls: [u]}\n  - {name: b, urls: [u]}\n  - {name: c, urls: [u]}\n'
  const bodies: object[] = []
  const { call: given } = call(file, (path, body) => {
    bodies.push(body)
    if ((body as { name: string }).name === 'b') throw new CommandProblem('The store cannot be used now. (store_unavailable)', EXIT.failed)
    return { id: path === '/api/sources' ? 'src_new' : 'dst_new' }
  })
  await assert.rejects(apply.run(given), (error: CommandProblem) => {
    assert.equal(error.exit, EXIT.failed)
    assert.deepEqual(error.message.split('\n'), [
      'create destination b failed: The store cannot be used now. (store_unavailable)',
      'Already done: create source s; create destination a.',
      'Not done: create destination c.',
      'You can apply the same file again: changes that are already done are not repeated.',
    ])
    return true
  })
  assert.deepEqual(bodies[1], { name: 'a', urls: ['u'], sourceIds: ['src_new'] }, 'a source that was just created is referred to by its id')
})
