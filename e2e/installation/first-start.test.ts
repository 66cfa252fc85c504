// What new users and operators see: the start message, the settings, the log, and the errors if the service cannot start.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { SETTINGS } from '../../packages/server/src/config.ts'
import { SQLITE_ONLY } from '../../packages/server/src/store/fixtures/test-store.ts'
import { startReceiver } from '../system/receiver.ts'
import { runService, startService, track } from '../system/service.ts'

const run = promisify(execFile)

suite('a start', { concurrency: 2 }, () => {
  test('the lines that the first start prints work when pasted: a call is accepted, and its webhook arrives', async () => {
    await using receiver = await startReceiver()
    await using service = await startService({ token: null })
    assert.match(service.token, /^sy_/)
    const [, create = ''] = await service.printed(/^ *(curl \S+\/api\/destinations .*)$/m)
    const [, send = ''] = await service.printed(/^ *(curl \S+\/v1\/track .*)$/m)
    // Only the URL of the receiver is replaced.
    const created = await paste(create.replace('http://127.0.0.1:9000/', receiver.url))
    assert.deepEqual((JSON.parse(created) as { urls: string[] }).urls, [receiver.url])
    assert.deepEqual(JSON.parse(await paste(send)), { success: true })
    await receiver.until(() => receiver.arrivals.length === 1)
    const [arrival] = receiver.arrivals
    assert.equal(arrival?.headers['content-type'], 'application/json')
    assert.equal(arrival?.headers['user-agent'], 'Switchyard/1.0')
    assert.partialDeepStrictEqual(arrival?.messages[0], { version: 1, type: 'track', userId: 'user-1', event: 'Order Completed' })
    await service.settled(1)
  })

  test('the admin token is shown at the first start and never again, and still works', async () => {
    await using first = await startService({ token: null })
    const { token, writeKey, sourceId } = first
    const { stdout } = await first.stop()
    const times = stdout.includes('Dashboard') ? 3 : 2
    assert.equal(
      stdout.split(token).length - 1,
      times,
      'as itself, in the link that logs in if there is a dashboard, and in the line to paste',
    )
    const second = await first.restart()
    await second.printed(/^ *curl \S+\/api\/destinations .*$/m)
    assert.equal(second.stdout().includes(token), false)
    assert.doesNotMatch(second.stdout(), /sy_/)
    assert.deepEqual([second.writeKey, second.sourceId], [writeKey, sourceId])
    const call = (bearer: string): Promise<Response> =>
      fetch(`${second.url}/api/sources`, { headers: { authorization: `Bearer ${bearer}` } })
    assert.equal((await call(token)).status, 200)
    assert.equal((await call(`${token}x`)).status, 401)
  })

  test('no file and no log contains a secret in plain text, and only its owner can read the key', {
    skip: SQLITE_ONLY,
  }, async () => {
    await using receiver = await startReceiver(() => ({ status: 500, body: 'no' }))
    const secrets = {
      sharedSecret: 'shared-secret-in-plain',
      signing: Buffer.from('signing-secret-in-plain!').toString('base64'),
      header: 'Bearer header-in-plain',
      query: 'query-in-plain',
    }
    await using service = await startService({ token: null, log: 'trace' })
    await service.destination({
      urls: [`${receiver.url}hook?token=${secrets.query}`],
      sharedSecret: secrets.sharedSecret,
      signingSecrets: [`whsec_${secrets.signing}`],
      headers: { authorization: secrets.header },
    })
    assert.equal((await service.send([track('m-1')])).status, 200)
    await service.logged(({ status }) => status === 500)
    await fetch(`${service.url}/api/nowhere?token=x`, { headers: { authorization: `Bearer ${service.token}` } })
    const { stderr } = await service.stop()

    const files = readdirSync(service.folder)
    assert.ok(files.includes('switchyard.db') && files.includes('switchyard.db.key'), files.join())
    assert.equal(statSync(`${service.file}.key`).mode & 0o777, 0o600)
    const key = readFileSync(`${service.file}.key`, 'utf8').trim()
    assert.ok(key.length >= 40)
    for (const [name, secret] of Object.entries({ ...secrets, key, token: service.token })) {
      assert.equal(stderr.includes(secret), false, `${name} is in the log`)
      // The API shows URLs and headers, but not secrets that sign or decrypt.
      if (name === 'header' || name === 'query') continue
      for (const file of files.filter((file) => !file.endsWith('.key')))
        assert.equal(readFileSync(join(service.folder, file)).includes(secret), false, `${name} is in ${file}`)
    }
  })

  test('each line of the log is JSON, and a timeout is logged as an error with that word', async () => {
    await using receiver = await startReceiver(() => ({ hang: true }))
    await using service = await startService({ log: 'trace' })
    const destinationId = await service.destination({ urls: [receiver.url], timeoutMs: 200 })
    assert.equal((await service.send([track('late')])).status, 200)
    const line = await service.logged(({ reason }) => reason === 'timeout')
    assert.equal(line.level, 'error')
    assert.match(line.msg, /timeout/)
    assert.partialDeepStrictEqual(line, { destinationId, messageId: 'late', attempt: 1, url: receiver.url })
    await fetch(`${service.url}/v1/batch`, { method: 'POST', body: '{"broken\n' })
    await service.stop()
    for (const { level, time, msg } of service.log()) {
      assert.ok(['trace', 'debug', 'info', 'warn', 'error', 'fatal'].includes(level), level)
      assert.ok(!Number.isNaN(Date.parse(time)), time)
      assert.equal(typeof msg, 'string')
    }
  })

  test('serve --help names every setting, --version the version', async () => {
    const [help, version] = await Promise.all([runService({ args: ['serve', '--help'] }).ended, runService({ args: ['--version'] }).ended])
    assert.deepEqual([help.code, help.stderr], [0, ''])
    // Commands are shown with the path of the program.
    const told = help.stdout.replaceAll(/\s+/g, ' ').replaceAll(/[^\s`]+\/switchyard /g, 'switchyard ')
    for (const { variable, description } of Object.values(SETTINGS)) {
      const flag = `--${variable.slice('SWITCHYARD_'.length).toLowerCase().replaceAll('_', '-')}`
      for (const text of [variable, flag, description]) assert.ok(told.includes(text), text)
    }
    assert.deepEqual([version.code, version.stderr], [0, ''])
    assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/)
  })

  test('all invalid settings are reported at once, with exit code 2, and nothing is started', async () => {
    const { code, stdout, stderr } = await runService({
      env: { SWITCHYARD_PORT: 'eighty', SWITCHYARD_LOG: 'loud', SWITCHYARD_STORE: 'mysql://user:password-in-plain@host/db' },
      args: ['--retention-days', '0', '--prot', '8080'],
    }).ended
    assert.deepEqual([code, stdout], [2, ''])
    for (const text of [
      'SWITCHYARD_PORT',
      'eighty',
      'SWITCHYARD_LOG',
      'loud',
      'SWITCHYARD_STORE',
      '--retention-days',
      'Did you mean --port?',
      '--help',
    ])
      assert.ok(stderr.includes(text), `${text}\n${stderr}`)
    assert.doesNotMatch(stderr, /password-in-plain/)
    assert.doesNotMatch(stderr, /^\s+at /m)
  })
})

suite('if the service cannot start, it prints one clear sentence and exits with code 1', { concurrency: 2 }, () => {
  const CASES: [title: string, prepare: (folder: string) => Record<string, string>, sentence: RegExp][] = [
    ['a folder that is a file', (folder) => store(write(folder, 'file', ''), 'sub', 'switchyard.db'), /file.*sub|sub.*file/],
    ['a file that is a folder', (folder) => store(directory(folder, 'switchyard.db')), /switchyard\.db/],
    [
      'a file that is not a database',
      (folder) => store(write(folder, 'switchyard.db', 'x'.repeat(10_000))),
      /switchyard\.db.*not a database/,
    ],
    [
      'a key file that is empty',
      (folder) => store(write(folder, 'switchyard.db.key', '').replace(/\.key$/, '')),
      /switchyard\.db\.key.*empty/,
    ],
    [
      'an address that is not of this machine',
      (folder) => ({ ...store(folder, 'x.db'), SWITCHYARD_HOST: '192.0.2.1' }),
      /192\.0\.2\.1 is not an address of this machine/,
    ],
    [
      'PostgreSQL without the key that all nodes share',
      () => ({ SWITCHYARD_STORE: 'postgres://user:password-in-plain@127.0.0.1/x' }),
      /SWITCHYARD_SECRET_KEY is required.*openssl rand/,
    ],
  ]
  for (const [title, prepare, sentence] of CASES) {
    test(title, async () => {
      const folder = mkdtempSync(join(tmpdir(), 'switchyard-e2e-'))
      try {
        assertRefused(await runService({ env: { SWITCHYARD_PORT: '0', ...prepare(folder) } }).ended, sentence)
      } finally {
        rmSync(folder, { recursive: true })
      }
    })
  }

  test('a port that is already in use', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-e2e-'))
    const server = createServer()
    try {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as AddressInfo
      const ended = await runService({ env: { ...store(folder, 'switchyard.db'), SWITCHYARD_PORT: String(port) } }).ended
      assertRefused(ended, new RegExp(`Port ${port} on 127\\.0\\.0\\.1 is already in use`))
      // The first successful start shows the admin token.
      await using service = await startService({ token: null, folder })
      assert.match(service.token, /^sy_/)
    } finally {
      server.close()
      rmSync(folder, { recursive: true })
    }
  })

  test('the wrong key for the encrypted secrets', { skip: SQLITE_ONLY }, async () => {
    await using service = await startService()
    await service.destination({ urls: ['http://127.0.0.1:9/'], sharedSecret: 'sealed' })
    await service.stop()
    const env = { ...store(service.file), SWITCHYARD_PORT: '0' }
    assertRefused(
      await runService({ env: { ...env, SWITCHYARD_SECRET_KEY: 'another key than the stored one' } }).ended,
      /but the key in use is/,
    )
    assertRefused(
      await runService({ env: { ...env, SWITCHYARD_SECRET_KEY: 'short' } }).ended,
      /SWITCHYARD_SECRET_KEY has 5 characters, and needs at least 16\..*switchyard rotate-key/,
    )
    // If the key is lost, no new one is created.
    rmSync(`${service.file}.key`)
    assertRefused(await runService({ env }).ended, /switchyard\.db\.key/)
    assert.equal(existsSync(`${service.file}.key`), false)
  })
})

function assertRefused({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }, sentence: RegExp): void {
  assert.equal(code, 1, stderr)
  assert.equal(stdout, '')
  assert.match(stderr, sentence)
  assert.equal(stderr.trimEnd().split('\n').length, 1, stderr)
  assert.doesNotMatch(stderr, /password-in-plain|node:internal/)
}

function store(...path: string[]): Record<string, string> {
  return { SWITCHYARD_STORE: `sqlite:${join(...path)}`, SWITCHYARD_LOG: 'error' }
}

function write(folder: string, name: string, text: string): string {
  writeFileSync(join(folder, name), text)
  return join(folder, name)
}

function directory(folder: string, name: string): string {
  mkdirSync(join(folder, name))
  return join(folder, name)
}

/** Runs a command as it is printed. If there is no curl, makes the request that curl would make. */
async function paste(line: string): Promise<string> {
  try {
    return (await run('sh', ['-c', line.replace(/^curl /, 'curl -sS ')], { timeout: 30_000 })).stdout
  } catch (error) {
    // The shell's exit code for an unknown command.
    if ((error as { code?: unknown }).code !== 127) throw error
  }
  const [, url = '', rest = ''] = /^curl (\S+) (.*)$/.exec(line) ?? []
  const [, body = ''] = / -d '([^']*)'$/.exec(` ${rest}`) ?? []
  const [, bearer] = /-H 'Authorization: ([^']*)'/.exec(rest) ?? []
  const [, user = ''] = /-u (\S+)/.exec(rest) ?? []
  const headers = { authorization: bearer ?? `Basic ${btoa(user)}`, 'content-type': 'application/x-www-form-urlencoded' }
  return (await fetch(url, { method: 'POST', headers, body })).text()
}
