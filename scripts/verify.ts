// Everything that must hold before a change lands, in the order that fails fastest. `npm test` and `npm run verify` run
// it whole; `npm run verify -- tests` (or another step's name) runs one step; `--fix` mends format and lint instead.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { styleText } from 'node:util'

const root = join(import.meta.dirname, '..')
const bin = (name: string): string => join(root, 'node_modules', '.bin', name)
type Step = [name: string, command: string, args: string[]]

const checks: Step[] = [
  ['format', bin('biome'), ['check', '--error-on-warnings']],
  ['types', bin('tsc'), []],
  ['types of the dashboard', bin('tsc'), ['-p', 'packages/dashboard']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings']],
  ['build', process.execPath, ['scripts/build.ts']],
  ['build of the dashboard', process.execPath, ['scripts/build-dashboard.ts']],
  ['build of the documentation', process.execPath, ['scripts/build-docs.ts']],
  ['tests', process.execPath, ['scripts/tests.ts']],
]
const fixes: Step[] = [
  ['lint', bin('oxlint'), ['--type-aware', '--fix']],
  ['format', bin('biome'), ['check', '--write']],
]

const wanted = process.argv.slice(2)
const plan = wanted.includes('--fix') ? fixes : checks
const names = wanted.filter((word) => word !== '--fix')
const unknown = names.filter((name) => !plan.some(([step]) => step === name))
if (unknown.length > 0) {
  console.error(`no such step: ${unknown.join(', ')}. The steps are ${plan.map(([name]) => name).join(', ')}.`)
  process.exit(2)
}

for (const [name, command, args] of plan) {
  if (names.length > 0 && !names.includes(name)) continue
  console.log(styleText('bold', `\n▶ ${name}`))
  const started = performance.now()
  const { status } = spawnSync(command, args, { cwd: root, stdio: 'inherit' })
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  if (status !== 0) {
    console.error(styleText('red', `✖ ${name} failed after ${seconds} s. Run it alone: npm run verify -- ${name}`))
    process.exit(status ?? 1)
  }
  console.log(styleText('green', `✔ ${name} (${seconds} s)`))
}
