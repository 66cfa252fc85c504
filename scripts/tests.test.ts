// The test runner, on test files that fail on purpose.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-runner-'))
after(() => rmSync(folder, { recursive: true }))

/** A test file whose Nth run fails, and only that run. */
function fileThatFailsIn(name: string, failing: number): string {
  const counts = JSON.stringify(join(folder, `${name}.runs`))
  const file = join(folder, `${name}.test.ts`)
  writeFileSync(
    file,
    `import { appendFileSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
test('${name}', () => {
  appendFileSync(${counts}, 'x')
  if (readFileSync(${counts}).length === ${failing}) throw new Error('this was run ${failing} of ${name}')
})
`,
  )
  return file
}

interface Running {
  child: ChildProcess
  /** Resolves with what has been printed as soon as it matches. */
  printed(pattern: RegExp): Promise<RegExpExecArray>
  ended: Promise<{ code: number | null; output: string }>
}

function startTests(...args: string[]): Running {
  // These files use no database, so none is started for them.
  const env: NodeJS.ProcessEnv = {
    ...process.env,
    TMPDIR: folder,
    SWITCHYARD_TEST_POSTGRES: 'postgres://127.0.0.1:1/unused',
    NO_COLOR: '1',
  }
  for (const name of ['NODE_TEST_CONTEXT', 'SWITCHYARD_TEST_MEMORY']) delete env[name]
  const child = spawn(process.execPath, [join(import.meta.dirname, 'tests.ts'), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => child.once('close', (code) => resolve({ code, output })))
  return {
    child,
    ended,
    async printed(pattern) {
      for (;;) {
        const found = pattern.exec(output)
        if (found !== null) return found
        assert.equal(child.exitCode, null, `the run ended before it printed ${pattern}:\n${output}`)
        await Promise.race([once(child.stdout, 'data'), ended])
      }
    },
  }
}

function runTests(...args: string[]): Promise<{ code: number | null; output: string }> {
  return startTests(...args).ended
}

test('a file that fails once among others fails the run, although it would pass a second time', async () => {
  const flaky = fileThatFailsIn('flaky', 1)
  const { code, output } = await runTests(flaky, fileThatFailsIn('steady', 0))
  assert.equal(code, 1, output)
  assert.match(output, /failed: \S*flaky\.test\.ts\n$/)
  assert.equal((await runTests(flaky)).code, 0, 'the second run of the file passes')
})

test('--repeat runs a file many times, shows the output of the runs that failed and counts them', async () => {
  const { code, output } = await runTests(fileThatFailsIn('rare', 2), '--repeat', '3', '--busy')
  assert.equal(code, 1, output)
  assert.match(output, /run 1 of 3 passed[^]*this was run 2 of rare[^]*run 2 of 3 failed[^]*run 3 of 3 passed/)
  assert.match(output, /1 of 3 runs failed/)
})

test('a file whose process does not end after its tests fails, and does not block the run', async () => {
  const file = join(folder, 'leaking.test.ts')
  writeFileSync(file, `import { test } from 'node:test'\ntest('leaking', () => void setInterval(() => {}, 1_000))\n`)
  const { code, output } = await runTests(file, '--timeout', '1')
  assert.equal(code, 1, output)
  assert.match(output, /still running after 1 s[^]*failed: \S*leaking\.test\.ts\n$/)
})

test('a run in which everything passes exits with 0; no matching file and an invalid --repeat are errors', async () => {
  const steady = fileThatFailsIn('passing', 0)
  assert.equal((await runTests(steady, '--repeat', '2')).code, 0)
  for (const args of [['no-such-file'], [steady, '--repeat', 'often'], [steady, '--timeout', '0']])
    assert.equal((await runTests(...args)).code, 2, args.join(' '))
})

for (const signal of ['SIGINT', 'SIGKILL'] as const) {
  test(`${signal} while a test waits: no process is left, not even one that ignores signals${signal === 'SIGINT' ? ', and no folder' : ''}`, async () => {
    const file = join(folder, `waiting-${signal}.test.ts`)
    writeFileSync(
      file,
      `import { spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
test('waiting', async () => {
  const made = mkdtempSync(join(tmpdir(), 'switchyard-waiting-'))
  const ignoring = "process.on('SIGINT', () => {}); process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1_000)"
  const child = spawn(process.execPath, ['-e', ignoring], { stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.once('data', () => console.log('process ' + child.pid + ' in ' + made + ' end'))
  await new Promise((resolve) => child.once('exit', resolve))
})
`,
    )
    const running = startTests(file)
    const [, pid = '', made = ''] = await running.printed(/process (\d+) in (.*) end/)
    assert.ok(isAlive(Number(pid)) && existsSync(made))
    running.child.kill(signal)
    // The output ends when the last process that inherited it has ended.
    const { code, output } = await running.ended
    assert.equal(code, signal === 'SIGINT' ? 130 : null, output)
    while (isAlive(Number(pid))) await new Promise((resolve) => setTimeout(resolve, 20))
    assert.equal(existsSync(made), signal === 'SIGKILL')
  })
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // In a container whose first process does not reap others, one that was killed stays as a zombie.
    return process.platform !== 'linux' || !/^\d+ \(.*\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
