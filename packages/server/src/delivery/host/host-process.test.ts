// What code in a host can see and do: nothing of the service.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { runInHost } from '../fixtures/run-in-host.ts'
import { hostProcesses } from '../fixtures/test-hosts.ts'

test('a host sees no environment variables, no files except code, and can neither write, start programs or threads, load addons, nor signal others', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-host-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const files = ['switchyard.db', 'switchyard.db.key'].map((name) => join(folder, name))
  for (const file of files) writeFileSync(file, 'secret of the service')
  process.env['SWITCHYARD_SECRET_KEY'] = 'secret of the service'
  t.after(() => void delete process.env['SWITCHYARD_SECRET_KEY'])
  const run = runInHost(t)
  assert.deepEqual(await run('return process.env'), {})
  assert.equal(await run('return process.argv.join().includes("secret")'), false)
  for (const file of [...files, '/etc/passwd', `/proc/${process.pid}/environ`, process.cwd()]) {
    assert.equal(await run(`return String((await load('node:fs')).readFileSync('${file}'))`), 'error ERR_ACCESS_DENIED', file)
  }
  const refused: [string, string][] = [
    [`(await load('node:fs')).writeFileSync('${folder}/new', '')`, 'ERR_ACCESS_DENIED'],
    [`(await load('node:fs')).readdirSync('${folder}')`, 'ERR_ACCESS_DENIED'],
    [`(await load('node:child_process')).execSync('true')`, 'ERR_ACCESS_DENIED'],
    [`new (await load('node:worker_threads')).Worker('', { eval: true })`, 'ERR_ACCESS_DENIED'],
    [`new (await load('node:wasi')).WASI({ version: 'preview1' })`, 'ERR_ACCESS_DENIED'],
    [`process.dlopen({ exports: {} }, '${folder}/addon.node')`, 'ERR_DLOPEN_DISABLED'],
    [`process.binding('tcp_wrap')`, 'ERR_ACCESS_DENIED'],
    [`(await load('node:inspector')).open(0)`, 'ERR_ACCESS_DENIED'],
    [`process.kill(process.ppid, 0)`, 'process.kill() is not allowed in an integration'],
    [`process.send('forged')`, 'process.send is not a function'],
  ]
  for (const [code, error] of refused) assert.equal(await run(code), `error ${error}`, code)
})

test('a host ignores signals that are meant for the service, and an unhandled rejection does not end it', async (t) => {
  const run = runInHost(t)
  await run('return 1')
  const [pid] = hostProcesses().values()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) process.kill(pid as number, signal)
  assert.equal(await run(`void Promise.reject(new Error('rejected on purpose')); await new Promise(setImmediate); return 2`), 2)
})

test('when the service is killed, its hosts end', async (t) => {
  const program = fileURLToPath(new URL('../fixtures/service-with-host.ts', import.meta.url))
  const service = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => service.kill('SIGKILL'))
  const [line] = (await once(service.stdout, 'data')) as [Buffer]
  const host = Number(String(line))
  assert.deepEqual([...hostProcesses(service.pid).values()], [host])
  service.kill('SIGKILL')
  await once(service, 'exit')
  while (isAlive(host)) await new Promise((resolve) => setTimeout(resolve, 10))
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
