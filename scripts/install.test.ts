// Taking turns while installing, with an npm that always fails, so that nothing is downloaded. e2e/installation/installation.test.ts installs packages.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'

const FAILED = /^Installing .*\nnpm ci failed: see the output above\. .*\n$/s

/** `preload`: what happens to the file system of the installer, as a CommonJS module. */
function createProject(t: TestContext, preload: string) {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-install-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const [scripts, work, bin] = ['scripts', 'dist/install', 'bin'].map((name) => join(folder, name)) as [string, string, string]
  for (const each of [scripts, work, bin]) mkdirSync(each, { recursive: true })
  for (const name of ['run.mjs', 'install.mjs']) copyFileSync(join(import.meta.dirname, name), join(scripts, name))
  for (const name of ['package.json', '.npmrc']) writeFileSync(join(folder, name), name === '.npmrc' ? '' : '{}')
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify({ packages: { '': {} } }))
  writeFileSync(join(bin, 'npm'), '#!/bin/sh\nexit 1\n')
  chmodSync(join(bin, 'npm'), 0o755)
  writeFileSync(join(folder, 'preload.cjs'), `const fs = require('node:fs')\n${preload}\nrequire('node:module').syncBuiltinESMExports()\n`)
  const start = () => {
    const child = spawn(process.execPath, ['--require', join(folder, 'preload.cjs'), join(scripts, 'run.mjs'), 'scripts/verify.ts'], {
      env: { PATH: `${bin}:${process.env['PATH']}` },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    let printed = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
    return { child, printed: () => printed, ended: once(child, 'close').then(([code]) => ({ code: code as number, printed })) }
  }
  return { start, lock: join(work, 'lock') }
}

test('on a file system without hard links, installers take turns, and an empty lock that was left behind is no obstacle', async (t) => {
  const { start, lock } = createProject(
    t,
    "fs.linkSync = () => { throw Object.assign(new Error('EPERM: not permitted, link'), { code: 'EPERM' }) }",
  )
  writeFileSync(lock, '')
  for (const { code, printed } of await Promise.all([start().ended, start().ended])) {
    assert.equal(code, 1, printed)
    assert.match(printed.replace(/^Process \d+ is installing .*\n/, ''), FAILED)
  }
  assert.ok(!existsSync(lock))
})

test('a lock that another installer takes while this one removes a stale lock is kept', async (t) => {
  // The last process that is certain to have ended is one that this test has started.
  const ended = spawn(process.execPath, ['--version'], { stdio: 'ignore' })
  await once(ended, 'close')
  const taken = `
    for (const name of ['rmSync', 'renameSync']) {
      const before = fs[name]
      fs[name] = (path, ...rest) => {
        if (String(path).endsWith('lock') && fs.readFileSync(path, 'utf8') === '${ended.pid}') fs.writeFileSync(path, '${process.pid}')
        return before(path, ...rest)
      }
    }`
  const { start, lock } = createProject(t, taken)
  writeFileSync(lock, String(ended.pid))
  const run = start()
  while (!run.printed().includes(`Process ${process.pid} is installing`)) {
    assert.equal(run.child.exitCode, null, run.printed())
    await Promise.race([once(run.child.stderr, 'data'), run.ended])
  }
  assert.equal(readFileSync(lock, 'utf8'), String(process.pid))
  rmSync(lock)
  const { code, printed } = await run.ended
  assert.equal(code, 1, printed)
  assert.match(printed.replace(/^Process \d+ is installing .*\n/, ''), FAILED)
})
