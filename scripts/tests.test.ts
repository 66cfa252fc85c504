// The test runner, on test files that fail on purpose.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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

async function runTests(...args: string[]): Promise<{ code: number | null; output: string }> {
  // These files use no database, so none is started for them.
  const env: NodeJS.ProcessEnv = { ...process.env, SWITCHYARD_TEST_POSTGRES: 'postgres://127.0.0.1:1/unused', NO_COLOR: '1' }
  delete env['NODE_TEST_CONTEXT']
  const child = spawn(process.execPath, [join(import.meta.dirname, 'tests.ts'), ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
  return { code, output }
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
