// The spool: a killed process delivers its queued messages at its next start, once.

import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import test from 'node:test'
import { Analytics, type AnalyticsError } from '@switchyard/node'
import { runChild } from './child.ts'
import { gate, startTrackingServer, type TrackingServer } from './tracking-server.ts'

const event = { userId: 'u', event: 'e' }

interface Place extends Disposable {
  dir: string
  files(): string[]
}

function tempPlace(): Place {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-spool-'))
  const files = (): string[] =>
    readdirSync(dir, { recursive: true, withFileTypes: true })
      .flatMap((entry) => (entry.isFile() ? [relative(dir, join(entry.parentPath, entry.name))] : []))
      .sort()
  return { dir, files, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

/** Starts a client on the spool, lets it deliver the messages there, and closes it. */
async function start(server: TrackingServer, dir: string) {
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir } })
  return analytics.closeAndFlush()
}

/** Sorted by number, because batches are sent concurrently and arrive in any order. */
const ids = (server: TrackingServer): string[] =>
  server
    .messages()
    .map((message) => message.messageId)
    .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))

test('a process killed right after its calls delivers them once at its next start', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} }, flushAt: 1000 })
     for (let i = 0; i < 100; i++) analytics.track({ ...event, messageId: 'm-' + i })
     process.kill(process.pid, 'SIGKILL')`,
  )
  assert.equal((await child.ended).signal, 'SIGKILL')
  assert.equal(server.requests.length, 0)
  assert.deepEqual(await start(server, place.dir), { stored: 100, failed: 0, pending: 0 })
  assert.deepEqual(
    ids(server),
    Array.from({ length: 100 }, (_, i) => `m-${i}`),
  )
  assert.deepEqual(await start(server, place.dir), { stored: 0, failed: 0, pending: 0 })
  assert.equal(server.messages().length, 100)
  assert.deepEqual(place.files(), [])
})

test('after a process was killed under load, acknowledged messages are not sent again, and all others are', async () => {
  using place = tempPlace()
  let answersUpTo = 3
  await using server = await startTrackingServer((_request, number) =>
    number > answersUpTo ? { after: new Promise(() => {}) } : undefined,
  )
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} }, flushAt: 10, maxInFlight: 1 })
     let flushed = 0
     analytics.on('flush', () => ++flushed === 3 && say('three'))
     // Large enough that waiting batches do not share a request.
     const properties = { text: 'x'.repeat(5000) }
     for (let i = 0; i < 100; i++) analytics.track({ ...event, messageId: 'm-' + i, properties })`,
  )
  await child.printed('three')
  await server.arrived(4)
  child.process.kill('SIGKILL')
  await child.ended
  answersUpTo = Infinity
  server.requests.splice(0)
  assert.deepEqual(await start(server, place.dir), { stored: 70, failed: 0, pending: 0 })
  assert.deepEqual(
    ids(server),
    Array.from({ length: 70 }, (_, i) => `m-${i + 30}`),
  )
})

test('with a spool, process.exit loses no messages and prints no warning', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} } })
     analytics.track(event)
     process.exit(0)`,
  )
  assert.equal((await child.ended).stderr, '')
  assert.equal((await start(server, place.dir)).delivered, 1)
})

test('close with a timeout leaves pending messages to the next start', async () => {
  using place = tempPlace()
  let isStuck = true
  await using server = await startTrackingServer(() => (isStuck ? { after: new Promise(() => {}) } : undefined))
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir: place.dir } })
  analytics.on('error', (error) => assert.fail(error.message))
  const told = new Promise<AnalyticsError | undefined>((resolve) => analytics.track({ ...event, messageId: 'm-1' }, resolve))
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 50 }), { stored: 0, failed: 0, pending: 1 })
  // It has not failed, so there is no error event, but its callback must be called.
  assert.equal((await told)?.code, 'close_timeout')
  isStuck = false
  server.requests.splice(0)
  assert.equal((await start(server, place.dir)).delivered, 1)
  assert.deepEqual(ids(server), ['m-1'])
})

test('a clean close leaves an empty folder that only its owner can read', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const dir = join(place.dir, 'made', 'for', 'it')
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir } })
  analytics.track(event)
  assert.equal(statSync(dir).mode & 0o777, 0o700)
  for (const inner of readdirSync(dir)) {
    assert.equal(statSync(join(dir, inner)).mode & 0o777, 0o700)
    for (const file of readdirSync(join(dir, inner))) assert.equal(statSync(join(dir, inner, file)).mode & 0o777, 0o600)
  }
  await analytics.closeAndFlush()
  assert.deepEqual(readdirSync(dir), [])
})

test('two running processes share a folder and do not send each other’s messages', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer(({ body }) =>
    body.batch[0]?.messageId === 'of-the-first' ? { after: new Promise(() => {}) } : undefined,
  )
  const first = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir: place.dir } })
  first.track({ ...event, messageId: 'of-the-first' })
  await server.arrived(1)
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} } })
     analytics.track({ ...event, messageId: 'of-the-second' })
     await analytics.closeAndFlush()`,
  )
  assert.equal((await child.ended).code, 0)
  assert.deepEqual(ids(server), ['of-the-first', 'of-the-second'])
  await first.closeAndFlush({ timeout: 1 })
})

test('two processes that start at the same time recover each message once', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const dir = JSON.stringify(place.dir)
  const killed = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${dir} }, flushAt: 1000 })
     for (let i = 0; i < 200; i++) analytics.track({ ...event, messageId: 'm-' + i })
     process.kill(process.pid, 'SIGKILL')`,
  )
  await killed.ended
  const program = `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${dir} } }); await analytics.closeAndFlush()`
  await Promise.all([runChild(server.url, program).ended, runChild(server.url, program).ended])
  assert.equal(ids(server).length, 200)
  assert.equal(new Set(ids(server)).size, 200)
})

test('incomplete and damaged lines are skipped; the other messages are delivered', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const killed = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} }, flushAt: 1000 })
     for (let i = 0; i < 3; i++) analytics.track({ ...event, messageId: 'm-' + i })
     process.kill(process.pid, 'SIGKILL')`,
  )
  await killed.ended
  const messages = place.files().find((file) => file.endsWith('.messages')) ?? assert.fail('no messages')
  appendFileSync(join(place.dir, messages), 'null\n{"no":"id"}\n{"messageId":"half')
  writeFileSync(join(place.dir, 'stranger.txt'), 'not ours')
  assert.deepEqual(await start(server, place.dir), { stored: 3, failed: 0, pending: 0 })
  assert.deepEqual(place.files(), ['stranger.txt'])
})

test('a full spool rejects messages with queue_full', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir: place.dir, maxBytes: 2_000 } })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  for (let i = 0; i < 20; i++) analytics.track(event)
  const result = await analytics.flush()
  assert.ok(errors.length > 0 && errors.every((error) => error.code === 'queue_full'))
  assert.equal(result.delivered + errors.length, 20)
  analytics.track(event)
  assert.equal((await analytics.closeAndFlush()).delivered, 1)
})

test('the constructor rejects a spool that cannot be opened; a later failure emits an error, and messages are still sent', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const file = join(place.dir, 'file')
  writeFileSync(file, '')
  assert.throws(() => new Analytics({ writeKey: 'wk', spool: { dir: file } }), { code: 'invalid_settings', field: 'spool.dir' })
  const dir = join(place.dir, 'spool')
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir } })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  rmSync(dir, { recursive: true })
  analytics.track(event)
  assert.equal((await analytics.closeAndFlush()).delivered, 1)
  assert.deepEqual([...new Set(codes)], ['spool_failed'])
})

test('segments are deleted as their messages are delivered: the folder does not grow with the number of messages sent', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir: place.dir } })
  const properties = { text: 'x'.repeat(10_000) }
  for (let round = 0; round < 5; round++) {
    for (let i = 0; i < 200; i++) analytics.track({ ...event, properties })
    await analytics.flush()
    assert.deepEqual(
      place.files().filter((file) => !file.endsWith('.owner')),
      [],
    )
  }
  await analytics.closeAndFlush()
})

test('messages spooled for one write key and host are never sent with another key or to another host', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  await using elsewhere = await startTrackingServer()
  const dir = JSON.stringify(place.dir)
  const killed = runChild(
    server.url,
    `for (const writeKey of ['one', 'two'])
       for (let i = 0; i < 20; i++) new Analytics({ writeKey, host, spool: { dir: ${dir} } }).track({ ...event, messageId: writeKey + '-' + i })
     new Analytics({ writeKey: 'one', host: ${JSON.stringify(elsewhere.url)}, spool: { dir: ${dir} } }).track({ ...event, messageId: 'elsewhere' })
     process.kill(process.pid, 'SIGKILL')`,
  )
  await killed.ended
  for (const [writeKey, host, found] of [
    ['three', server.url, 0],
    ['two', server.url, 20],
    ['two', elsewhere.url, 0],
    ['one', server.url, 20],
    ['one', elsewhere.url, 1],
  ] as const) {
    const { delivered } = await new Analytics({ writeKey, host, spool: { dir: place.dir } }).closeAndFlush()
    assert.equal(delivered, found, `${writeKey} at ${host}`)
  }
  for (const { body } of server.requests) {
    for (const { messageId } of body.batch) assert.equal(messageId.split('-')[0], body.writeKey)
  }
  assert.deepEqual(ids(elsewhere), ['elsewhere'])
  assert.deepEqual(readdirSync(place.dir), [])
})

test('messages of version 0.1, which contain no write key, cause an error event and stay on disk', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  writeFileSync(join(place.dir, 'abc.owner'), '{"pid":0}')
  writeFileSync(join(place.dir, 'abc-0.messages'), '{"type":"track","userId":"u","event":"e","messageId":"old"}\n')
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir: place.dir } })
  const errors: AnalyticsError[] = []
  analytics.on('error', (error) => errors.push(error))
  assert.deepEqual(await analytics.closeAndFlush(), { stored: 0, failed: 0, pending: 0 })
  assert.deepEqual(
    errors.map((error) => error.code),
    ['spool_without_key'],
  )
  assert.match(errors[0]?.message ?? '', /1 file of messages from version 0\.1/)
  assert.deepEqual(place.files(), ['abc-0.messages', 'abc.owner'])
})

test('the write key is not written to disk', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const analytics = new Analytics({ writeKey: 'secret-write-key', host: server.url, spool: { dir: place.dir } })
  analytics.track(event)
  for (const file of place.files()) assert.doesNotMatch(readFileSync(join(place.dir, file), 'utf8'), /secret-write-key/)
  await analytics.closeAndFlush()
})

test('after close no old file descriptor is used: the application may have reused it', async () => {
  using place = tempPlace()
  let answer: (() => void) | undefined
  const httpClient = () =>
    new Promise<{ status: number; statusText: string }>((resolve) => {
      answer = () => resolve({ status: 200, statusText: 'OK' })
    })
  const analytics = new Analytics({ writeKey: 'wk', httpClient, spool: { dir: place.dir } })
  const { open: go, opened: mayGo } = gate()
  const slow = async <Ctx>(ctx: Ctx): Promise<Ctx> => {
    await mayGo
    return ctx
  }
  await analytics.register({ name: 'slow', type: 'before', isLoaded: () => true, load: async () => {}, page: slow })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  for (let i = 0; i < 3; i++) analytics.track(event)
  analytics.page({ userId: 'u' })
  await analytics.closeAndFlush({ timeout: 30 })
  const files = Array.from({ length: 8 }, (_, i) => join(place.dir, `application-${i}.txt`))
  const fds = files.map((file) => openSync(file, 'w'))
  answer?.()
  go()
  await new Promise((resolve) => setTimeout(resolve, 50))
  for (const fd of fds) closeSync(fd)
  for (const file of files) assert.equal(readFileSync(file, 'utf8'), '')
  // The message in the plugin was not on disk yet, so its loss is reported.
  assert.deepEqual(codes, ['close_timeout'])
})

test('recovery works with little room in the queue and in the spool', async () => {
  for (const settings of [{ maxQueueBytes: 2_000 }, { spool: { maxBytes: 3_000 } }, {}]) {
    using place = tempPlace()
    await using server = await startTrackingServer()
    const killed = runChild(
      server.url,
      `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} }, flushAt: 1000 })
       for (let i = 0; i < 60; i++) analytics.track({ ...event, messageId: 'm-' + i })
       process.kill(process.pid, 'SIGKILL')`,
    )
    await killed.ended
    const analytics = new Analytics({
      writeKey: 'wk',
      host: server.url,
      ...settings,
      spool: { dir: place.dir, ...('spool' in settings ? settings.spool : {}) },
    })
    analytics.on('error', (error) => assert.equal(error.code, 'queue_full'))
    analytics.track({ ...event, messageId: 'mine' })
    const { pending, failed } = await analytics.closeAndFlush({ timeout: 10_000 })
    assert.equal(pending, 0)
    assert.equal(new Set(ids(server)).size, ids(server).length)
    assert.equal(ids(server).filter((id) => id !== 'mine').length, 60)
    assert.equal(ids(server).includes('mine'), failed === 0)
    assert.deepEqual(place.files(), [])
  }
})

test('a disabled client does not open the spool or send its messages', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const dir = join(place.dir, 'spool')
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, disable: true, handleSignals: true, spool: { dir } })
  analytics.track(event)
  await analytics.closeAndFlush()
  assert.deepEqual(place.files(), [])
  assert.equal(process.listenerCount('SIGTERM'), 0)
})

test('closing after the folder was deleted is not an error', async () => {
  using place = tempPlace()
  await using stuck = await startTrackingServer(() => ({ after: new Promise(() => {}) }))
  const dir = join(place.dir, 'spool')
  const analytics = new Analytics({ writeKey: 'wk', host: stuck.url, spool: { dir } })
  const codes: string[] = []
  analytics.on('error', (error) => codes.push(error.code))
  analytics.track(event)
  rmSync(dir, { recursive: true })
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 30 }), { stored: 0, failed: 0, pending: 1 })
  assert.ok(codes.length > 0 && codes.every((code) => code === 'spool_failed'))
})

test('messages that a plugin is still processing are not on disk, and an exit reports them as lost', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const child = runChild(
    server.url,
    `const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} } })
     await analytics.register({ name: 'slow', type: 'before', isLoaded: () => true, load: async () => {}, page: () => new Promise(() => {}) })
     analytics.track(event)
     analytics.page({ userId: 'u' })
     process.exit(0)`,
  )
  assert.match((await child.ended).stderr, /exited with 1 message not delivered/)
})

test('a message that could not be written to disk is reported as lost at close, whatever messages it was queued with', async () => {
  using place = tempPlace()
  let isStuck = true
  await using server = await startTrackingServer(() => (isStuck ? { after: new Promise(() => {}) } : undefined))
  const dir = join(place.dir, 'spool')
  const analytics = new Analytics({ writeKey: 'wk', host: server.url, spool: { dir } })
  const failed: string[] = []
  analytics.on('error', (error) => failed.push(`${error.code} ${error.ctx?.event.messageId ?? ''}`.trim()))
  await analytics.flush()
  // The first segment cannot be created in the folder, so this message stays in memory.
  chmodSync(dir, 0o500)
  renameSync(dir, `${dir}-away`)
  const told = new Promise((resolve) => analytics.track({ ...event, messageId: 'memory' }, resolve))
  renameSync(`${dir}-away`, dir)
  chmodSync(dir, 0o700)
  analytics.track({ ...event, messageId: 'disk' })
  // Long enough for the request to reach the server, so that it does not arrive after the list is emptied below.
  assert.deepEqual(await analytics.closeAndFlush({ timeout: 1_500 }), { stored: 0, failed: 0, pending: 2 })
  await told
  assert.deepEqual(failed, ['spool_failed', 'close_timeout memory'])
  isStuck = false
  server.requests.splice(0)
  assert.equal((await start(server, dir)).delivered, 1)
  assert.deepEqual(ids(server), ['disk'])
})

test('a message is not spooled unchanged if a plugin registered right after the call will change it', async () => {
  using place = tempPlace()
  await using server = await startTrackingServer()
  const program = (load: string, end: string): string => `
    const analytics = new Analytics({ writeKey: 'wk', host, spool: { dir: ${JSON.stringify(place.dir)} } })
    analytics.track({ ...event, messageId: 'earlier' })
    await Promise.resolve()
    analytics.track({ ...event, messageId: 'mine', properties: { mail: 'secret' } })
    const track = (ctx) => (ctx.updateEvent('properties.mail', 'hidden'), ctx)
    const registered = analytics.register({ name: 'scrub', type: 'before', isLoaded: () => true, load: () => ${load}, track })
    ${end}
    process.kill(process.pid, 'SIGKILL')`
  await runChild(server.url, program('new Promise(() => {})', '')).ended
  assert.equal((await start(server, place.dir)).delivered, 1)
  assert.deepEqual(ids(server), ['earlier'])
  server.requests.splice(0)
  await runChild(server.url, program('Promise.resolve()', 'await registered; await Promise.resolve()')).ended
  assert.equal((await start(server, place.dir)).delivered, 2)
  assert.deepEqual(server.messages().find(({ messageId }) => messageId === 'mine')?.['properties'], { mail: 'hidden' })
  assert.deepEqual(place.files(), [])
})
