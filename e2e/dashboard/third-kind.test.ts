// A third kind of destination in the dashboard is one folder and one entry: the types of the API get another type of destination, in a copy of the
// sources. Without the entry, the compiler names the registry and nothing else; with it, everything compiles.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'

const repository = join(import.meta.dirname, '..', '..')
const dashboard = join(repository, 'packages', 'dashboard')
const copy = mkdtempSync(join(tmpdir(), 'switchyard-third-kind-'))
after(() => rmSync(copy, { recursive: true, force: true }))

test('a third kind of destination is one folder and one entry in the dashboard', () => {
  cpSync(join(dashboard, 'src'), join(copy, 'src'), { recursive: true, filter: (path) => !path.includes('.test.') })
  symlinkSync(join(repository, 'node_modules'), join(copy, 'node_modules'))
  const { compilerOptions } = JSON.parse(readFileSync(join(dashboard, 'tsconfig.json'), 'utf8')) as { compilerOptions: object }
  const tsconfig = { extends: join(repository, 'tsconfig.json'), compilerOptions, include: ['src'], exclude: ['node_modules'] }
  writeFileSync(join(copy, 'tsconfig.json'), JSON.stringify(tsconfig))

  replace('src/api/types.ts', /^ {2}Destination: .*$/m, (line) => {
    const [, shared] = /\{ type: 'integration'; (.*?)integration: string; /.exec(line) ?? []
    assert.ok(shared, 'the settings that all kinds have')
    return `${line} | { type: 'sink'; ${shared}counter: string; shared?: boolean | undefined }`
  })
  assert.deepEqual([...new Set(errors().map((error) => error.split('(')[0]))], ['src/kinds/kinds.tsx'])

  // They are no sources of this repository, because their types are those of the copy.
  for (const name of ['kind.tsx', 'sink-page.tsx'])
    cpSync(join(import.meta.dirname, 'third-kind', `${name}.txt`), join(copy, 'src/kinds/sink', name))
  replace('src/kinds/kinds.tsx', /^import \{ WEBHOOK \}.*$/m, (line) => `import { SINK } from './sink/kind.tsx'\n${line}`)
  replace('src/kinds/kinds.tsx', / {2}webhook: WEBHOOK,/, (line) => `${line}\n  sink: SINK,`)
  assert.deepEqual(errors(), [])
})

function replace(file: string, pattern: RegExp, by: (found: string) => string): void {
  const text = readFileSync(join(copy, file), 'utf8')
  assert.match(text, pattern)
  writeFileSync(join(copy, file), text.replace(pattern, by))
}

function errors(): string[] {
  try {
    execFileSync(process.execPath, [join(repository, 'node_modules/typescript/lib/tsc.js'), '-p', copy, '--pretty', 'false'], { cwd: copy })
    return []
  } catch (error) {
    return String((error as { stdout: Buffer }).stdout)
      .split('\n')
      .filter((line) => /^\S.*error TS/.test(line))
  }
}
