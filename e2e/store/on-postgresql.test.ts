// The service behaves the same on PostgreSQL: runs the test files that depend most on the store again, with SWITCHYARD_TEST_STORE=postgres
// and one server. Any other test file can be run like this by hand. If one fails, its output and the command to run it alone are printed.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { PostgresServer } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { IS_LONG } from '../system/long-tests.ts'

const ROOT = join(import.meta.dirname, '..', '..')
/** The slowest ones only with SWITCHYARD_LONG_TESTS=1. */
const LONG = IS_LONG
  ? [
      'packages/server/src/control/hostile-requests.test.ts',
      'packages/server/src/control/replays/replays.test.ts',
      'e2e/ingest/oauth.test.ts',
    ]
  : []
const FILES = [
  ...LONG,
  'packages/server/src/control/history/history.test.ts',
  'e2e/privacy/deletions.test.ts',
  'e2e/control/login.test.ts',
  'e2e/privacy/privacy.test.ts',
]

/** As in all tests, another server is used if its URL is given. */
let server: PostgresServer | undefined
let url = process.env['SWITCHYARD_TEST_POSTGRES'] ?? ''

before(async () => {
  if (url !== '') return
  server = await PostgresServer.start()
  url = server.url()
})
after(() => server?.dispose())

suite('on PostgreSQL', { concurrency: 2 }, () => {
  for (const file of FILES) {
    test(file, async (t) => {
      // With NODE_TEST_CONTEXT, the run would report its tests to this process, in an unreadable format.
      const { NODE_TEST_CONTEXT: _, ...env } = process.env
      const run = spawn(process.execPath, ['--test', '--test-reporter=spec', '--test-timeout=120000', file], {
        cwd: ROOT,
        env: { ...env, SWITCHYARD_TEST_STORE: 'postgres', SWITCHYARD_TEST_POSTGRES: url },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      t.signal.addEventListener('abort', () => run.kill())
      let output = ''
      for (const stream of [run.stdout, run.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
      const [code] = (await once(run, 'close')) as [number | null]
      const failed = output.slice(Math.max(0, output.indexOf('✖ failing tests')))
      assert.equal(code, 0, `${failed}\nRun it alone: SWITCHYARD_TEST_STORE=postgres node --test ${file}`)
      assert.match(output, /^ℹ pass [1-9]/m, 'some of its tests were run')
    })
  }
})
