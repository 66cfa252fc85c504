// Runs tests, one process per file; scripts/tests.ts starts it. Without arguments the quick suite, with `--all` every file, with `--rest` those that are not
// in the quick suite, with `--changed` those that the changes since `--base` (default: main) can affect, and with parts of paths the files that have them. The
// longest files start first, and files that mostly wait alternate with files that use the processor, so that all cores are busy until the end. All files
// share one PostgreSQL server, except those that kill theirs. If a file fails, the run fails: nothing is retried, because that would hide races.
// `--slowest` lists the files that use the most CPU time, and `node scripts/tests.ts FILE --repeat 50 --busy` looks for a race: it runs the file 50 times
// beside busy loops.

import { existsSync, globSync, mkdtempSync, readFileSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { Writable } from 'node:stream'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { parseArgs, styleText } from 'node:util'
import { Worker } from 'node:worker_threads'
import { programs } from '../packages/server/src/store/postgres/fixtures/postgres-programs.ts'
import { createInitialData, createTemplate, PostgresServer } from '../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { affectedTests, changedFiles } from './affected-tests.ts'
import { isQuick, LONGEST, TEST_FILES } from './quick-suite.ts'

const root = join(import.meta.dirname, '..')
/** After this time a hanging test fails. The longest file takes a fraction of it. */
const HUNG_SECONDS = 1_200
/** More than the number of cores, because many of the longest files mostly wait: for a lease to expire or a server to start. */
const FILES_AT_ONCE = availableParallelism() + 2
/** Two busy loops for each core, so that a test gets at most a third of the processor. */
const BUSY_LOOPS = availableParallelism() * 2

const { values, positionals } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    rest: { type: 'boolean', default: false },
    changed: { type: 'boolean', default: false },
    base: { type: 'string', default: 'main' },
    slowest: { type: 'boolean', default: false },
    repeat: { type: 'string', default: '1' },
    busy: { type: 'boolean', default: false },
    timeout: { type: 'string', default: String(HUNG_SECONDS) },
  },
  allowPositionals: true,
})
const rank = (file: string): number => (LONGEST.includes(file) ? LONGEST.indexOf(file) : LONGEST.length)
const files = asked(positionals).sort((a, b) => rank(a) - rank(b) || a.localeCompare(b))
if (files.length === 0 && values.changed) {
  console.log('No test is affected.')
  process.exit(0)
}
if (files.length === 0) {
  console.error(`No test file has ${positionals.join(' or ')} in its path. Give a part of the path, for example: e2e/cluster`)
  process.exit(2)
}
const [runs = 1, timeoutSeconds = 1] = [values.repeat, values.timeout].map(Number)
for (const [flag, value] of Object.entries({ repeat: runs, timeout: timeoutSeconds })) {
  if (Number.isInteger(value) && value >= 1) continue
  console.error(`--${flag} must be a whole number of at least 1.`)
  process.exit(2)
}

if (process.channel !== undefined) {
  // The parent was killed: nothing else would end the test files and what they started.
  process.once('disconnect', () => process.kill(-process.pid, 'SIGKILL'))
  process.channel.unref()
}

// All servers of the test files are copies of one database cluster. None is created for another server's tests, which may not start one.
const initialData = process.env['SWITCHYARD_TEST_POSTGRES'] === undefined ? createInitialData() : undefined
if (initialData !== undefined) process.env['SWITCHYARD_TEST_POSTGRES_DATA'] = initialData
const server =
  process.env['SWITCHYARD_TEST_POSTGRES'] === undefined ? await PostgresServer.start({ settings: ['max_connections=500'] }) : null
if (server !== null) {
  process.env['SWITCHYARD_TEST_POSTGRES'] = server.url()
  process.env['SWITCHYARD_TEST_TEMPLATE'] = await createTemplate(server.url())
}

// If the programs had to be copied for the server's user, all test files share one copy.
process.env['SWITCHYARD_TEST_POSTGRES_BIN'] ??= programs()

// Where test files write their CPU time when they exit. Linux counts it, with that of child processes that have ended, in hundredths of a second.
const notes = mkdtempSync(join(tmpdir(), 'switchyard-tests-'))
const CPU_TIMES = join(notes, 'cpu-times')

/**
 * The timeout of node:test ends only a test. The runner would wait for ever for a process that something keeps alive after its tests, such as a
 * service that was not stopped. Not set in the file's worker threads, where it would end only the thread.
 */
const IN_EACH_FILE = `data:text/javascript,${encodeURIComponent(`
import { appendFileSync, readFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
const end = () => {
  console.error('this file was still running after ${timeoutSeconds} s: something keeps its process alive')
  process.exit(1)
}
if (isMainThread) setTimeout(end, ${timeoutSeconds * 1_100}).unref()
// Unlike the default action of the signal, this calls the handlers that end services, servers and browsers.
if (isMainThread) process.once('SIGINT', () => process.exit(130))
if (isMainThread && process.platform === 'linux')
  process.on('exit', () => appendFileSync(${JSON.stringify(CPU_TIMES)}, readFileSync('/proc/self/stat', 'utf8').trim() + ' ' + process.argv[1] + '\\n'))
`)}`

const loops = values.busy ? Array.from({ length: BUSY_LOOPS }, () => new Worker('for (;;);', { eval: true })) : []
const took: [seconds: number, file: string][] = []
const failed: string[] = []
if (runs === 1) failed.push(...(await runFiles(process.stdout)))
else await repeat()
if (values.slowest) printSlowest()
if (failed.length > 0) console.log(styleText('red', `\nfailed: ${[...new Set(failed)].join(', ')}`))
await Promise.all(loops.map((loop) => loop.terminate()))
await server?.dispose()
process.exitCode = failed.length === 0 ? 0 : 1

/** Test files whose path contains one of the given texts, or a suite if none is given. The path of a file selects only that file. */
function asked(parts: readonly string[]): string[] {
  const all = globSync(TEST_FILES, { cwd: root })
  if (values.changed) return affected(all)
  if (parts.length === 0) return values.all ? all : all.filter((file) => isQuick(file) !== values.rest)
  return [
    ...new Set(
      parts.flatMap((part) => {
        const isFile = statSync(resolve(part), { throwIfNoEntry: false })?.isFile() ?? false
        return isFile ? [relative(root, resolve(part))] : all.filter((file) => file.includes(part))
      }),
    ),
  ]
}

/** The tests that the changes since `--base` can affect. */
function affected(all: readonly string[]): string[] {
  const changed = changedFiles(root, values.base)
  const { tests, untraced } = affectedTests(root, changed, all)
  const longer = tests.filter((file) => !isQuick(file)).length
  console.log(
    `${changed.length} changed files affect ${tests.length} of ${all.length} test files, ${longer} of them outside the quick suite.`,
  )
  if (untraced.length > 0) console.log(`No test was found for ${untraced.join(', ')}.`)
  return tests
}

/** Prints a line for each run, and the output of those that failed. */
async function repeat(): Promise<void> {
  let failedRuns = 0
  for (let at = 1; at <= runs; at++) {
    const output: Buffer[] = []
    const started = performance.now()
    const these = await runFiles(new Writable({ write: (chunk: Buffer, _, done) => done(void output.push(chunk)) }))
    const seconds = ((performance.now() - started) / 1_000).toFixed(1)
    if (these.length > 0) process.stdout.write(Buffer.concat(output))
    console.log(`run ${at} of ${runs} ${these.length > 0 ? styleText('red', 'failed') : 'passed'} (${seconds} s)`)
    failedRuns += Math.min(these.length, 1)
    failed.push(...these)
  }
  console.log(styleText('bold', `\n${failedRuns} of ${runs} runs failed`))
}

/** The CPU times are known only on Linux. Those of Chromium are incomplete, because it does not wait for all of its processes. */
function printSlowest(): void {
  const cpu = cpuTimes()
  const column = (seconds: number | undefined): string => (seconds === undefined ? '' : `${seconds.toFixed(1)} s`).padStart(9)
  took.sort(([a, one], [b, other]) => (cpu.get(other) ?? b) - (cpu.get(one) ?? a))
  console.log('\nthe files with the most CPU time, and how long they took:')
  for (const [seconds, file] of took.slice(0, 40)) console.log(`${column(cpu.get(file))}${column(seconds)}  ${file}`)
  if (cpu.size === 0) return
  console.log(`${column([...cpu.values()].reduce((sum, seconds) => sum + seconds, 0))} in all files`)
  if (server !== null) console.log(`${column(cpuSeconds(readFileSync(`/proc/${server.pid}/stat`, 'utf8')))} in the PostgreSQL server`)
}

/** CPU seconds by file; empty if the system is not Linux. */
function cpuTimes(): Map<string, number> {
  const lines = existsSync(CPU_TIMES) ? readFileSync(CPU_TIMES, 'utf8').trim().split('\n') : []
  const all = lines.map((line): [string, number] => [relative(root, line.slice(line.lastIndexOf(' ') + 1)), cpuSeconds(line)])
  // Forked processes of a test file write a line, too, which is already counted.
  return new Map(all.filter(([file]) => files.includes(file)))
}

/** User and system time of a process and of its child processes that have ended, from a line of /proc/PID/stat. */
function cpuSeconds(stat: string): number {
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return ticks.slice(11, 15).reduce((sum, count) => sum + Number(count), 0) / 100
}

/** The files that did not pass, including those that ended without reporting a result. */
async function runFiles(output: NodeJS.WritableStream): Promise<string[]> {
  const passed = new Set<string>()
  const stream = run({
    files: files.map((file) => join(root, file)),
    concurrency: FILES_AT_ONCE,
    timeout: timeoutSeconds * 1_000,
    execArgv: ['--import', IN_EACH_FILE],
  })
  stream.on('test:summary', ({ file, success, duration_ms }) => {
    if (file === undefined) return
    if (success) passed.add(relative(root, file))
    took.push([duration_ms / 1_000, relative(root, file)])
  })
  const reporter = stream.compose(new spec())
  reporter.pipe(output, { end: false })
  await new Promise((resolve) => reporter.once('end', resolve))
  return files.filter((file) => !passed.has(file))
}
