// `npm pack` in a package's folder creates the published package, and leaves the repository unchanged. Runs in a copy of the repository, because
// packing replaces the manifest for a moment, and other tests read it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { IS_LONG } from '../system/long-tests.ts'

const repository = join(import.meta.dirname, '..', '..')
const work = mkdtempSync(join(tmpdir(), 'switchyard-pack-'))
const copy = join(work, 'repository')
const LEFT_OUT = new Set(['node_modules', 'dist', '.git', 'LICENSE', 'package.json.source'])

before(() => {
  mkdirSync(copy)
  // With their modification times: scripts/run.mjs compares that of the lockfile to find out whether the installation is up to date.
  for (const name of ['package.json', 'package-lock.json', '.npmrc', 'tsconfig.json'])
    cpSync(join(repository, name), join(copy, name), { preserveTimestamps: true })
  for (const name of ['packages', 'scripts', 'examples', 'e2e']) {
    cpSync(join(repository, name), join(copy, name), { recursive: true, filter: (path) => !LEFT_OUT.has(path.split('/').at(-1) ?? '') })
  }
  cpSync(join(repository, 'LICENSE'), join(copy, 'LICENSE'))
  for (const folder of ['', 'packages/server']) symlinkSync(join(repository, folder, 'node_modules'), join(copy, folder, 'node_modules'))
})

after(() => rmSync(work, { recursive: true, force: true }))

// All are packed by the same code, so only one is tested, or all with SWITCHYARD_LONG_TESTS=1.
for (const name of IS_LONG ? ['protocol', 'webhook', 'node'] : ['node']) {
  test(`npm pack in packages/${name} creates a package that works, and restores the manifest`, () => {
    const home = join(copy, 'packages', name)
    const manifest = readFileSync(join(home, 'package.json'), 'utf8')
    const project = join(work, name)
    mkdirSync(project)
    writeFileSync(join(project, 'package.json'), '{"private":true}')
    execFileSync('npm', ['pack', '--silent', '--pack-destination', project], { cwd: home, stdio: ['ignore', 'ignore', 'inherit'] })
    assert.equal(readFileSync(join(home, 'package.json'), 'utf8'), manifest)
    assert.deepEqual(
      readdirSync(home).filter((file) => LEFT_OUT.has(file)),
      ['dist'],
    )

    const tarball = readdirSync(project).find((file) => file.endsWith('.tgz')) ?? assert.fail('no tarball')
    execFileSync('npm', ['install', '--offline', '--no-audit', '--no-fund', '--silent', `./${tarball}`], { cwd: project })
    const esm = `import * as it from '@switchyard/${name}'; console.log(Object.keys(it).length)`
    const cjs = `console.log(Object.keys(require('@switchyard/${name}')).length)`
    for (const [type, program] of [
      ['module', esm],
      ['commonjs', cjs],
    ]) {
      const printed = execFileSync(process.execPath, [`--input-type=${type}`, '-e', program as string], { cwd: project }).toString()
      assert.ok(Number(printed) > 3, printed)
    }
  })
}
