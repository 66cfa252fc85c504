// SWITCHYARD_PROCESSES: several processes of the service under one supervisor, on one port and one PostgreSQL database.

import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { createDatabase, type TestDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { STOPPED_WITHIN_MS } from '../system/long-tests.ts'
import { SECRET_KEY } from '../system/nodes-in-process.ts'
import { startReceiver } from '../system/receiver.ts'
import { type Sender, startSender } from '../system/sender.ts'
import { runService, type Service, startService, track } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

const PROCESSES = 2

/** Keeps the PostgreSQL server that the tests share running: it stops when the last database is dropped. */
let held: TestDatabase
before(async () => {
  held = await createDatabase()
})
after(() => held.drop())

interface Several extends AsyncDisposable {
  service: Service
  env: Record<string, string>
}

/** Resolves when all processes listen. */
async function startSeveral({ log = 'info' } = {}): Promise<Several> {
  const database = await createDatabase()
  const env = { SWITCHYARD_STORE: database.url, SWITCHYARD_SECRET_KEY: SECRET_KEY, SWITCHYARD_PROCESSES: String(PROCESSES) }
  const service = await startService({ env, log })
  const dispose = async (): Promise<void> => {
    await service[Symbol.asyncDispose]()
    await database.drop()
  }
  try {
    await complete(service)
  } catch (error) {
    await dispose()
    throw error
  }
  return { service, env, [Symbol.asyncDispose]: dispose }
}

async function complete(service: Service, nth = 1): Promise<void> {
  await service.logged(() => service.log().filter(({ msg }) => msg === 'all processes are listening').length >= nth, {
    what: `all processes listen, ${nth} times`,
  })
}

/** The process ids of the latest process of each index. */
function pidsOf(service: Service): Map<number, number> {
  const started = service.log().filter(({ msg }) => msg === 'started a process')
  return new Map(started.map((line) => [line['child'] as number, line['pid'] as number]))
}

/** Uses a new connection for each call, so that calls reach all processes in turn. */
function callAlone(service: Service, path: string, init: { method?: string; body?: string } = {}): Promise<Response> {
  const authorization = path.startsWith('/v1/') ? `Basic ${btoa(`${service.writeKey}:`)}` : `Bearer ${service.token}`
  return fetch(`${service.url}${path}`, { ...init, headers: { authorization, connection: 'close' } })
}

/** Creates a destination, and waits until every process knows it: a change takes a moment to reach the others. */
async function createDestination(service: Service, url: string): Promise<void> {
  const id = await service.destination({ urls: [url] })
  let inARow = 0
  await eventually(
    async () => (await callAlone(service, `/api/destinations/${id}`)).ok,
    // Connections go to the processes in turn, but the tests' other connections may come in between.
    (isKnown) => (inARow = isKnown ? inARow + 1 : 0) >= 3 * PROCESSES,
    { what: 'every process knows the destination' },
  )
}

async function sendAlone(service: Service, messageId: string): Promise<void> {
  const response = await callAlone(service, '/v1/batch', { method: 'POST', body: JSON.stringify({ batch: [track(messageId)] }) })
  assert.equal(response.status, 200, await response.text())
}

/** Like a client, sends again what was not acknowledged. */
async function retrying<T>(sender: Sender, work: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => sender.resume(), 100)
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}

suite('several processes on one port', { concurrency: 2 }, () => {
  test('one start message, a node for each process, metrics and live view of all, and every log line names its process', async () => {
    await using receiver = await startReceiver()
    await using several = await startSeveral({ log: 'debug' })
    const { service } = several
    assert.equal(service.stdout().match(/Switchyard listens on/g)?.length, 1)
    assert.ok(service.log().every((line) => typeof line['process'] === 'number'))

    // A process learns of the others with its heartbeat.
    const current = new Set<string>()
    await eventually(
      async () => {
        const { data } = (await (await callAlone(service, '/api/nodes')).json()) as { data: { name: string; current: boolean }[] }
        if (data.length === PROCESSES) current.add(data.find((node) => node.current)?.name ?? '')
        return new Set([...current].map((name) => name.split('#')[1]))
      },
      (indexes) => indexes.has('1') && indexes.has('2'),
      { what: 'each process lists both as nodes' },
    )
    for (let nth = 0; nth < PROCESSES; nth++) assert.equal((await callAlone(service, '/readyz')).status, 200)

    await createDestination(service, receiver.url)
    let sent = 0
    const send = (): Promise<void> => sendAlone(service, `m-${++sent}`)
    const delivering = (): Set<unknown> =>
      new Set(service.log().flatMap((line) => (line.msg === 'the attempt succeeded' ? [line['process']] : [])))
    await eventually(send, () => delivering().size === PROCESSES, { what: 'both processes deliver' })
    await service.settled()
    // Every attempt is one line of the log, whatever its result.
    const attempts = (): number => service.log().filter((line) => line['attempt'] !== undefined).length
    const counted = async (): Promise<[sum: number, metrics: string]> => {
      const metrics = await (await callAlone(service, '/metrics')).text()
      const counts = metrics.matchAll(/^switchyard_attempt_duration_seconds_count\{.*\} (\d+)$/gm)
      return [Array.from(counts, ([, count]) => Number(count)).reduce((sum, count) => sum + count, 0), metrics]
    }
    await eventually(counted, ([sum]) => sum === attempts(), { what: 'the metrics count the attempts of both processes' })
    for (let nth = 0; nth < 4; nth++) {
      const [sum, metrics] = await counted()
      assert.equal(sum, attempts())
      assert.match(metrics, /^switchyard_processes\{state="answered"\} 2$/m)
      assert.match(metrics, /^switchyard_processes\{state="missing"\} 0$/m)
      assert.match(metrics, /^process_resident_memory_bytes\{process="2"\} \d+$/m)
      assert.equal(metrics.match(/^switchyard_deliveries_delivered_total\{/gm)?.length, 1)
    }

    const live = await openLive(service)
    try {
      // A listener sees the attempts of both processes, whichever it is connected to.
      const attemptedBy = (id: string): unknown =>
        service.log().find((line) => line['messageId'] === id && line.msg === 'the attempt succeeded')?.['process']
      await eventually(
        async () => {
          await send()
          return new Set([...live.seen].map(attemptedBy))
        },
        (by) => by.has(1) && by.has(2),
        { what: 'the live view shows the attempts of both processes' },
      )
    } finally {
      live.close()
    }
  })

  test('kill -9 of one process under load: it is replaced, requests continue, and nothing acknowledged is lost', async () => {
    await using receiver = await startReceiver()
    await using several = await startSeveral()
    const { service } = several
    await createDestination(service, receiver.url)
    using sender = startSender(() => service, { parallel: 8 })
    await retrying(sender, async () => {
      await sender.until(() => sender.acknowledged.size >= 300)
      const pid = pidsOf(service).get(1) as number
      process.kill(pid, 'SIGKILL')
      const before = sender.acknowledged.size
      // The other process continues meanwhile.
      await sender.until(() => sender.acknowledged.size >= before + 300)
      await complete(service, 2)
      assert.notEqual(pidsOf(service).get(1), pid)
      const ended = service.log().find(({ msg }) => /ended unexpectedly and is replaced/.test(msg))
      assert.deepEqual([ended?.['child'], ended?.['signal']], [1, 'SIGKILL'])
      await sender.finish()
    })
    const [ledger] = await service.settled(undefined, { deadlineMs: 90_000 })
    assert.equal(ledger?.delivered, ledger?.owed)
    for (const id of sender.acknowledged) assert.ok(receiver.byMessageId.has(id), id)
    assert.deepEqual(await service.ledger({ recount: true }), [ledger])
    // The first process has been replaced by one that serves.
    assert.equal((await callAlone(service, '/readyz')).status, 200)
    assert.equal((await callAlone(service, '/readyz')).status, 200)
  })

  test('SIGTERM under load: all processes end within 10 s with exit code 0, and nothing acknowledged is lost', async () => {
    await using receiver = await startReceiver()
    await using several = await startSeveral()
    const first = several.service
    await createDestination(first, receiver.url)
    let service = first
    using sender = startSender(() => service, { parallel: 8 })
    await sender.until(() => sender.acknowledged.size >= 300)
    await receiver.until(() => receiver.arrivals.length >= 50)
    first.kill('SIGTERM')
    const { code, signal, ms, stderr } = await first.ended
    assert.deepEqual([code, signal], [0, null], stderr)
    assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)
    // Of the supervisor alone: on a busy machine, attempts of the processes may time out.
    assert.deepEqual(
      first.log().filter(({ level, ...line }) => level !== 'info' && line['process'] === 0),
      [],
    )
    for (const pid of pidsOf(first).values()) assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })

    service = await first.restart()
    await retrying(sender, () => sender.finish())
    const [ledger] = await service.settled(sender.sent.size)
    assert.equal(ledger?.delivered, sender.sent.size)
    assert.equal(receiver.byMessageId.size, sender.sent.size)
  })

  test('a port that is in use and a wrong password are reported once, and the service exits with 1', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const { port } = taken.address() as { port: number }
    const database = await createDatabase()
    const env = { SWITCHYARD_STORE: database.url, SWITCHYARD_SECRET_KEY: SECRET_KEY, SWITCHYARD_PROCESSES: '4' }
    try {
      const busy = await runService({ env: { ...env, SWITCHYARD_PORT: String(port) } }).ended
      assert.deepEqual([busy.code, busy.stdout], [1, ''])
      assert.equal(busy.stderr.match(new RegExp(`Port ${port} on 127.0.0.1 is already in use`, 'g'))?.length, 1, busy.stderr)

      const wrongPassword = database.url.replace(/:[^:@/]+@/, ':SECRET-wrong@')
      const refused = await runService({ env: { ...env, SWITCHYARD_STORE: wrongPassword, SWITCHYARD_PORT: '0' } }).ended
      assert.deepEqual([refused.code, refused.stdout], [1, ''])
      assert.equal(refused.stderr.match(/Cannot use the store at .*authentication failed/g)?.length, 1, refused.stderr)
      assert.doesNotMatch(refused.stderr, /SECRET-wrong/)
      // A port that is in use is found before a process is started.
      assert.doesNotMatch(busy.stderr, /started a process/)
      assert.equal(refused.stderr.match(/started a process/g)?.length, 1, refused.stderr)
    } finally {
      await database.drop()
      taken.close()
    }
  })

  test('SIGTERM while the first process waits for its database: exit code 0', async () => {
    const waiting = runService({
      env: {
        SWITCHYARD_STORE: 'postgres://me:SECRET@127.0.0.1:9/x',
        SWITCHYARD_SECRET_KEY: SECRET_KEY,
        SWITCHYARD_PROCESSES: '2',
        SWITCHYARD_PORT: '0',
      },
    })
    await waiting.signals.until(() => waiting.stderr().includes('retrying for up to 60 s'))
    waiting.kill('SIGTERM')
    const { code, ms, stderr } = await waiting.ended
    assert.equal(code, 0, stderr)
    assert.ok(ms < STOPPED_WITHIN_MS, `${ms} ms`)
  })

  test('if the supervisor is killed while a process is starting, all processes end', async () => {
    const database = await createDatabase()
    const env = { SWITCHYARD_STORE: database.url, SWITCHYARD_SECRET_KEY: SECRET_KEY, SWITCHYARD_PROCESSES: String(PROCESSES) }
    try {
      const run = runService({ env: { ...env, SWITCHYARD_PORT: '0' } })
      await run.signals.until(() => run.stderr().includes('"child":2'))
      run.kill('SIGKILL')
      // Their output ends when the last of them has ended.
      const { stderr } = await run.ended
      assert.match(stderr, /"process":1,"signal":"the supervisor ended","msg":"stopping"/)
    } finally {
      await database.drop()
    }
  })

  test('several processes on SQLite are a usage error that says what to do', async () => {
    const { code, stderr } = await runService({ env: { SWITCHYARD_STORE: 'sqlite:unused.db', SWITCHYARD_PROCESSES: '2' } }).ended
    assert.equal(code, 2)
    assert.match(stderr, /SWITCHYARD_PROCESSES is 2, but only one process can use a SQLite file\. .*PostgreSQL/)
  })
})

/** A listener of the live view that collects the messageIds of attempts. */
async function openLive(service: Service): Promise<{ seen: Set<string>; close(): void }> {
  const abort = new AbortController()
  const response = await fetch(`${service.url}/api/live`, { headers: { authorization: `Bearer ${service.token}` }, signal: abort.signal })
  assert.equal(response.status, 200)
  const seen = new Set<string>()
  const read = async (): Promise<void> => {
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      const events = text.split('\n\n')
      text = events.pop() ?? ''
      for (const event of events) if (/^event: attempt$/m.test(event)) seen.add(/"messageId":"([^"]+)"/.exec(event)?.[1] ?? '')
    }
  }
  read().catch(() => {})
  return { seen, close: () => abort.abort() }
}
