// Runs the demo as a separate process: the printed links work, the three destinations behave as described, and however the demo ends, no
// process, open port or folder is left behind.

import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { opener } from '../../scripts/demo/open-browser.ts'
import { parseOptions } from '../../scripts/demo/options.ts'
import { Shop } from '../../scripts/demo/shop.ts'
import { callControl, type LedgerRow } from '../system/service.ts'
import { eventually, Signals } from '../system/signals.ts'

const run = promisify(execFile)
const DEMO = join(import.meta.dirname, '..', '..', 'scripts', 'demo', 'demo.ts')
/** Shared with the other tests that start services: compiling takes half of the start time. */
const NODE_COMPILE_CACHE = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'switchyard-e2e-compiled')
const TITLES = ['Warehouse', 'CRM', 'Old reporting']

interface Demo extends AsyncDisposable {
  child: ChildProcess
  /** The TMPDIR of this demo; all its temporary files are in it. */
  temporary: string
  stdout: () => string
  printed(pattern: RegExp): Promise<RegExpExecArray>
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }>
}

let scratch = ''
before(() => {
  scratch = mkdtempSync(join(tmpdir(), 'switchyard-e2e-demo-'))
})
after(() => rmSync(scratch, { recursive: true, force: true }))

let count = 0
function start(args: string[], env: Record<string, string> = {}): Demo {
  const temporary = join(scratch, String(++count))
  mkdirSync(temporary)
  const child = spawn(process.execPath, [DEMO, '--no-open', ...args], {
    env: { ...process.env, NODE_COMPILE_CACHE, TMPDIR: temporary, SWITCHYARD_PORT: 'not for the demo', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const signals = new Signals()
  let stdout = ''
  let stderr = ''
  let isOver = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    signals.notify()
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended: Demo['ended'] = new Promise((resolve) => {
    child.on('close', (code, signal) => {
      isOver = true
      resolve({ code, signal, stdout, stderr })
      signals.notify()
    })
  })
  return {
    child,
    temporary,
    stdout: () => stdout,
    async printed(pattern) {
      await signals.until(
        () => {
          if (isOver && !pattern.test(stdout)) throw new Error(`it ended before ${pattern}\n${stdout}${stderr}`)
          return pattern.test(stdout)
        },
        { what: String(pattern), state: () => stdout + stderr },
      )
      return pattern.exec(stdout) as RegExpExecArray
    },
    ended,
    async [Symbol.asyncDispose]() {
      if (!isOver) child.kill('SIGKILL')
      await ended
    },
  }
}

async function addressOf(demo: Demo): Promise<{ url: string; token: string }> {
  const [, url = '', token = ''] = await demo.printed(/(http:\/\/127\.0\.0\.1:\d+)\/\?period=1h#token=(sy_\S+)/)
  return { url, token }
}

interface Destination {
  id: string
  name: string
  urls: string[]
  hasSharedSecret: boolean
  batch: { size: number }
  filter: { types: { deny: string[] } }
}

interface Health {
  destinationId: string
  breaker: string
  pending: number
}

async function destinationsOf({ url, token }: { url: string; token: string }): Promise<Map<string, Destination>> {
  const { data } = await callControl<{ data: Destination[] }>(url, token, '/destinations')
  return new Map(data.map((destination) => [destination.name, destination]))
}

function isRefused(url: string): Promise<boolean> {
  const { port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.on('error', () => resolve(true))
  })
}

async function assertNothingLeft(demo: Demo, urls: readonly string[]): Promise<void> {
  assert.deepEqual(readdirSync(demo.temporary), [])
  for (const url of urls) assert.ok(await isRefused(url), `${url} is still open`)
}

suite('npm run demo', { concurrency: 2, timeout: 180_000 }, () => {
  test('shows a healthy, a flaky and a dead destination at the printed address, prints a final report and leaves nothing behind', async () => {
    await using demo = start(['--duration', '5s', '--rate', '50'])
    const address = await addressOf(demo)
    const { url, token } = address
    await demo.printed(/\/switchyard trace (\S+)/)

    const login = await fetch(`${url}/api/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token }),
    })
    assert.equal(login.status, 200)
    assert.match(await (await fetch(url)).text(), /<div id="root">/)

    const destinations = await destinationsOf(address)
    assert.deepEqual([...destinations.keys()].sort(), [...TITLES].sort())
    const [good, flaky, dead] = TITLES.map((name) => destinations.get(name) as Destination) as [Destination, Destination, Destination]
    assert.deepEqual([good.hasSharedSecret, good.batch.size > 1, flaky.filter.types.deny], [true, true, ['page', 'screen']])
    const [, order = ''] = await demo.printed(/\/switchyard trace (\S+)/)
    const message = await eventually(
      () => callControl<{ deliveries: { destinationId: string; state: string }[] }>(url, token, `/messages/${order}`),
      ({ deliveries }) => deliveries.some(({ destinationId, state }) => destinationId === good.id && state === 'delivered'),
    )
    assert.equal(message.deliveries.length, 3)
    const health = await eventually(
      async () => (await callControl<{ data: Health[] }>(url, token, '/destinations/health')).data,
      (rows) => rows.some(({ destinationId, breaker }) => destinationId === dead.id && breaker !== 'closed'),
      { what: 'the circuit breaker of the dead destination opens' },
    )
    assert.equal(health.find(({ destinationId }) => destinationId === good.id)?.breaker, 'closed')
    const rowOf = (rows: LedgerRow[], id: string): LedgerRow => rows.find(({ destinationId }) => destinationId === id) as LedgerRow
    const ledger = await eventually(
      async () => (await callControl<{ data: LedgerRow[] }>(url, token, '/ledger')).data,
      (rows) => rowOf(rows, good.id).delivered > 300,
      { what: 'the healthy destination receives the imported history' },
    )
    const owed = (id: string): LedgerRow => rowOf(ledger, id)
    assert.deepEqual([owed(dead.id).delivered, owed(dead.id).pending > 0], [0, true])
    assert.ok(owed(flaky.id).owed < owed(good.id).owed, 'its filter excludes some messages')
    const { data: rejections } = await callControl<{ data: unknown[] }>(url, token, '/rejections')
    assert.ok(rejections.length > 0)

    const { code, stdout, stderr } = await demo.ended
    assert.deepEqual([code, stderr], [0, ''], stdout)
    assert.match(stdout, /✔ owed = delivered \+ pending/)
    assert.match(stdout, /✔ No acknowledged message was lost: .*[\d,]+ messages/)
    assert.match(stdout, /^ {2}Old reporting +[\d,]+ +0 +[1-9]/m)
    assert.doesNotMatch(stdout, /✘|!/)
    await assertNothingLeft(demo, [url, good.urls[0] as string, flaky.urls[0] as string])
  })

  test('SIGTERM ends the demo like Ctrl-C: with the final report, exit code 0, and nothing left behind', async () => {
    await using demo = start(['--rate', '50'])
    const { url } = await addressOf(demo)
    await demo.printed(/sent /)
    demo.child.kill('SIGTERM')
    const { code, stdout } = await demo.ended
    assert.equal(code, 0, stdout)
    assert.match(stdout, /✔ No acknowledged message was lost/)
    await assertNothingLeft(demo, [url])
  })

  test('after SIGKILL, the service stops and the temporary folder is deleted', async () => {
    await using demo = start([])
    const { url } = await addressOf(demo)
    demo.child.kill('SIGKILL')
    await demo.ended
    await eventually(
      () => isRefused(url),
      (refused) => refused,
      { what: 'the service stops' },
    )
    await eventually(
      () => Promise.resolve(readdirSync(demo.temporary)),
      (names) => names.length === 0,
      { what: 'the temporary folder is deleted' },
    )
  })

  test('reports that the service died, and leaves nothing behind', async () => {
    await using demo = start([])
    const { url } = await addressOf(demo)
    process.kill(await serviceOf(demo), 'SIGKILL')
    const { code, stderr } = await demo.ended
    assert.equal(code, 1)
    assert.match(stderr, /^The service stopped unexpectedly \(signal SIGKILL\)\./)
    await assertNothingLeft(demo, [url])
  })

  test('--keep keeps the data, also if the terminal is closed, and rejects a folder that is not empty', async () => {
    const folder = join(scratch, 'kept')
    {
      await using demo = start(['--keep', folder])
      const { url } = await addressOf(demo)
      demo.child.kill('SIGHUP')
      const { code, stdout } = await demo.ended
      assert.equal(code, 0, stdout)
      assert.match(stdout, /npm start -- --store sqlite:\S+kept\/switchyard\.db/)
      assert.ok(existsSync(join(folder, 'switchyard.db')))
      await assertNothingLeft(demo, [url])
    }
    await using again = start(['--keep', folder])
    const { code, stderr } = await again.ended
    assert.deepEqual([code, stderr], [1, `${folder} is not empty. Choose an empty or new folder for --keep.\n`])
  })

  test('a port in use, a folder that cannot be created and an invalid option are reported without a stack trace', async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const file = join(scratch, 'a-file')
    writeFileSync(file, '')
    try {
      await using taken = start(['--port', String(port)])
      await using nowhere = start([], { TMPDIR: file })
      await using wrong = start(['--rate', 'fast'])
      const ends = await Promise.all([taken.ended, nowhere.ended, wrong.ended])
      assert.deepEqual(
        ends.map(({ code, stdout }) => [code, stdout]),
        [
          [1, ''],
          [1, ''],
          [2, ''],
        ],
      )
      const [first, second, third] = ends.map(({ stderr }) => stderr)
      assert.match(
        first as string,
        new RegExp(
          `^The service could not start\\. Port ${port} on 127\\.0\\.0\\.1 is already in use\\. .*--port \\d+\\. Without --port, the demo uses a free port\\.\\n$`,
        ),
      )
      assert.match(second as string, /^Cannot store data in .* \(ENOTDIR\)\. Set TMPDIR .*\n$/)
      assert.match(third as string, /^--rate must be a number from 1 to 500\. .*\n$/)
      await assertNothingLeft(taken, [])
    } finally {
      server.close()
    }
  })
})

test('the shop gives the same calls for the same seed, makes all six kinds of calls, and uses only reserved host names', () => {
  const calls = (seed: number) => {
    const shop = new Shop(seed)
    return Array.from({ length: 1_000 }, () => shop.next())
  }
  assert.deepEqual(calls(1), calls(1))
  assert.notDeepEqual(calls(1), calls(2))
  assert.deepEqual([...new Set(calls(1).map(({ type }) => type))].sort(), ['alias', 'group', 'identify', 'page', 'screen', 'track'])
  const text = JSON.stringify(calls(3))
  for (const [, host = ''] of text.matchAll(/(?:https:\/\/|@)([\w.-]+)/g)) assert.match(host, /\.example$/)
})

test('options that npm consumed are reported', () => {
  assert.deepEqual(parseOptions(['--rate', '5', '--duration', '2m', '--no-open'], {}), {
    options: { rate: 5, durationMs: 120_000, port: 0, keep: null, open: false },
  })
  assert.match((parseOptions([], { npm_config_rate: '5' }) as { problem: string }).problem, /npm run demo -- --rate/)
})

test('a browser is opened only if somebody would see it', () => {
  assert.deepEqual(opener({ DISPLAY: ':0' }, 'linux'), ['xdg-open'])
  assert.deepEqual(opener({}, 'darwin'), ['open'])
  assert.equal(opener({}, 'linux'), null)
  assert.equal(opener({ DISPLAY: ':0', CI: '1' }, 'linux'), null)
  assert.equal(opener({ SSH_CONNECTION: 'a b' }, 'darwin'), null)
})

/** The process id of the service, a child of the demo process. */
async function serviceOf(demo: Demo): Promise<number> {
  const { stdout } = await run('ps', ['-A', '-o', 'pid=,ppid='])
  const pids = stdout.split('\n').map((line) => line.trim().split(/\s+/).map(Number) as [pid: number, parent: number])
  return (pids.find(([, parent]) => parent === demo.child.pid) as [number, number])[0]
}
