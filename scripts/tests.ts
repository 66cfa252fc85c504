// Every test, a process per file. Files that take longest begin first, those that wait in turn with those that work, so that the cores
// are busy to the end; and all of them share one PostgreSQL server, but for those that kill theirs. What fails among others is run again
// alone. `node scripts/tests.ts e2e/cluster` runs what lies there, `--slowest` lists what took longest.

import { globSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { parseArgs, styleText } from 'node:util'
import { createTemplate, PostgresServer } from '../packages/server/src/store/postgres/fixtures/postgres-server.ts'

const root = join(import.meta.dirname, '..')
/** A test that waits for what never comes fails, and does not hold up whoever runs it. The longest file takes a fraction of this. */
const HUNG_MS = 300_000
/** More than there are cores: many of the longest files wait most of their time, for a lease to end or a server to start. */
const FILES_AT_ONCE = availableParallelism() + 2
/** More than these is not unsteadiness. */
const MOST_ASKED_AGAIN = 5
const TEST_FILES = ['packages/*/{src,test}/**/*.test.ts', 'scripts/**/*.test.ts', 'examples/**/*.test.ts', 'e2e/**/*.test.ts']
/** What takes longest, first. The order of the others hardly matters. */
const FIRST = [
  'packages/server/src/store/postgres/postgres.test.ts',
  'e2e/cluster/cut-network.test.ts',
  'e2e/dashboard/views.test.ts',
  'e2e/cluster/killed-nodes.test.ts',
  'packages/server/src/store/sqlite/sqlite.test.ts',
  'e2e/cluster/killed-server.test.ts',
  'e2e/dashboard/loading.test.ts',
  'e2e/cluster/frozen-node.test.ts',
  'e2e/command-line-operations.test.ts',
  'e2e/cluster/dead-destination.test.ts',
  'e2e/dashboard/hostile-text.test.ts',
  'e2e/cluster/rolling-restart.test.ts',
  'e2e/command-line.test.ts',
  'e2e/on-postgresql.test.ts',
  'e2e/packages.test.ts',
  'packages/server/src/store-migration/move-store.test.ts',
]

const { values, positionals } = parseArgs({ options: { slowest: { type: 'boolean', default: false } }, allowPositionals: true })
const rank = (file: string): number => (FIRST.includes(file) ? FIRST.indexOf(file) : FIRST.length)
const files = globSync(TEST_FILES, { cwd: root })
  .filter((file) => positionals.length === 0 || positionals.some((part) => file.includes(part)))
  .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
if (files.length === 0) {
  console.error(`no test file has ${positionals.join(' or ')} in its path`)
  process.exit(2)
}

const server =
  process.env['SWITCHYARD_TEST_POSTGRES'] === undefined ? await PostgresServer.start({ settings: ['max_connections=500'] }) : null
if (server !== null) {
  process.env['SWITCHYARD_TEST_POSTGRES'] = server.url()
  process.env['SWITCHYARD_TEST_TEMPLATE'] = await createTemplate(server.url())
}

// Compiling the service takes as long as many a file's tests: each process leaves what it compiled to the next.
process.env['NODE_COMPILE_CACHE'] ??= join(tmpdir(), 'switchyard-e2e-compiled')

const took: [seconds: number, file: string][] = []
const failed = await runFiles(files, FILES_AT_ONCE)
if (values.slowest) {
  console.log('\nthe slowest files:')
  for (const [seconds, file] of took.sort(([a], [b]) => b - a).slice(0, 40)) console.log(`${seconds.toFixed(1).padStart(7)} s  ${file}`)
}
let isGood = failed.length === 0
// Some tests hold the service to seconds, beside others that take all of the processor: what fails among them is asked again alone.
// What is broken fails again; what passes is named, because it is unsteady, and that is to be mended.
if (failed.length > 0 && failed.length <= MOST_ASKED_AGAIN && failed.length < files.length) {
  console.log(styleText('bold', `\nonce more, one at a time: ${failed.join(', ')}\n`))
  const again = await runFiles(failed, 1)
  isGood = again.length === 0
  const unsteady = failed.filter((file) => !again.includes(file))
  if (unsteady.length > 0) console.log(styleText('yellow', `\nunsteady, failed among others and passed alone: ${unsteady.join(', ')}`))
}
await server?.dispose()
process.exitCode = isGood ? 0 : 1

/** Those that did not pass: also what ended before it could say anything. */
async function runFiles(these: readonly string[], concurrency: number): Promise<string[]> {
  const passed = new Set<string>()
  const stream = run({ files: these.map((file) => join(root, file)), concurrency, timeout: HUNG_MS })
  stream.on('test:summary', ({ file, success, duration_ms }) => {
    if (file === undefined) return
    if (success) passed.add(relative(root, file))
    took.push([duration_ms / 1_000, relative(root, file)])
  })
  const reporter = stream.compose(new spec())
  reporter.pipe(process.stdout, { end: false })
  await new Promise((resolve) => reporter.once('end', resolve))
  return these.filter((file) => !passed.has(file))
}
