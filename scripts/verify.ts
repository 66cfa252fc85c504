// Runs the checks that a change must pass, fastest first. `npm test` runs the quick ones, and `npm run test:all` all of them; with `--rest` only those that
// `npm test` leaves out. `npm run verify -- tests` (or another step's name) runs one step; `--fix` fixes format and lint errors instead.

import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { join } from 'node:path'
import { styleText } from 'node:util'

const root = join(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)
type Step = [name: string, command: string, args: string[]]

const quick: Step[] = [
  ['format', bin('biome'), ['check', '--error-on-warnings']],
  ['types', bin('tsc'), []],
  ['types of the dashboard', bin('tsc'), ['-p', 'packages/dashboard']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings']],
  ['build of the dashboard', process.execPath, ['scripts/build-dashboard.ts']],
  ['tests', process.execPath, ['scripts/tests.ts']],
]
/** What the quick checks leave out. */
const rest: Step[] = [
  ['build', process.execPath, ['scripts/build.ts']],
  ['build of the documentation', process.execPath, ['scripts/build-docs.ts']],
  ['rest of the tests', process.execPath, ['scripts/tests.ts', '--rest']],
]
const fixes: Step[] = [
  ['lint', bin('oxlint'), ['--type-aware', '--fix']],
  ['format', bin('biome'), ['check', '--write']],
]

const wanted = process.argv.slice(2)
const names = wanted.filter((word) => !word.startsWith('--'))
const isNamed = names.length > 0
const plan = wanted.includes('--fix')
  ? fixes
  : wanted.includes('--rest')
    ? rest
    : wanted.includes('--all') || isNamed
      ? [...quick, ...rest]
      : quick
const unknown = names.filter((name) => !plan.some(([step]) => step === name))
if (unknown.length > 0) {
  console.error(`Unknown step: ${unknown.join(', ')}. The steps are ${plan.map(([name]) => name).join(', ')}.`)
  process.exit(2)
}

// The steps may have to stop what they started. Until they have ended, this process waits, so that the terminal's prompt comes last.
const running = new Set<ChildProcess>()
let interruptedBy: NodeJS.Signals | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interruptedBy ??= signal
    for (const child of running) child.kill(signal)
  })
}

const asked = plan.filter(([name]) => !isNamed || names.includes(name))
// The tests run alone, with the whole machine. The steps before them run two at a time; their output is printed when they end.
for (let at = 0; at < asked.length; ) {
  const isAlone = plan === fixes || isTests(asked[at])
  const together = isAlone ? asked.slice(at, at + 1) : asked.slice(at, at + 2).filter((step) => !isTests(step))
  const codes = await Promise.all(together.map((step) => run(step, isAlone)))
  if (interruptedBy !== undefined) process.exit(128 + constants.signals[interruptedBy])
  const failed = codes.find((code) => code !== 0)
  if (failed !== undefined) process.exit(failed)
  at += together.length
}

function isTests(step: Step | undefined): boolean {
  return step?.[2][0] === 'scripts/tests.ts'
}

/** Returns the exit code. */
async function run([name, command, args]: Step, isAlone: boolean): Promise<number> {
  if (isAlone) console.log(styleText('bold', `\n▶ ${name}`))
  const started = performance.now()
  const child = spawn(command, args, { cwd: root, stdio: isAlone ? 'inherit' : ['ignore', 'pipe', 'pipe'] })
  running.add(child)
  let told = ''
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', (text: string) => (told += text))
  const code = await new Promise<number>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (status) => resolve(status ?? 1))
  })
  running.delete(child)
  if (interruptedBy !== undefined) return 1
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (!isAlone) console.log(`${styleText('bold', `\n▶ ${name}`)}\n${told.trimEnd()}`)
  if (code === 0) console.log(styleText('green', `✔ ${name} (${seconds} s)`))
  else
    console.error(
      styleText('red', `✖ ${name} failed after ${seconds} s. Run it alone: npm run verify -- ${name.includes(' ') ? `'${name}'` : name}`),
    )
  return code
}
