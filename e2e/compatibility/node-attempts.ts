// The tests of each client for servers, up to the webhook. One function per feature; differences between clients are arguments, so that every
// statement of node-clients.ts is asserted here.

import assert from 'node:assert/strict'
import { generateKeyPairSync, randomUUID } from 'node:crypto'
import { LIMIT, type NodeBench, type SentRequest, type TriedSource } from './node-bench.ts'
import type { CreateSender, Kind, Sender, SenderSettings } from './node-senders.ts'
import type { Installed } from './results.ts'

export type Attempt = (bench: NodeBench) => Promise<void>

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const CALLS: Record<Kind, { message: object; arrives: object }> = {
  identify: {
    message: { userId: 'u-1', traits: { plan: 'pro', note: 'é ✓' } },
    arrives: { userId: 'u-1', traits: { plan: 'pro', note: 'é ✓' } },
  },
  track: {
    message: { userId: 'u-1', event: 'Tested', properties: { total: 12.5 } },
    arrives: { userId: 'u-1', event: 'Tested', properties: { total: 12.5 } },
  },
  page: {
    message: { anonymousId: 'a-1', category: 'Docs', name: 'Home', properties: { url: 'https://a.example/' } },
    arrives: { anonymousId: 'a-1', category: 'Docs', name: 'Home' },
  },
  screen: { message: { userId: 'u-1', name: 'Home', properties: { dark: true } }, arrives: { userId: 'u-1', name: 'Home' } },
  group: {
    message: { userId: 'u-1', groupId: 'g-1', traits: { seats: 7 } },
    arrives: { userId: 'u-1', groupId: 'g-1', traits: { seats: 7 } },
  },
  alias: { message: { userId: 'u-2', previousId: 'a-1' }, arrives: { 'User ID': 'u-2', 'Previous ID': 'a-1' } },
}

/** Marks that no other test uses. */
function newMarks(): (name: string | number) => string {
  const own = randomUUID()
  return (name) => `${own} ${name}`
}

const track = (mark: string, fields: object = {}): object => ({ userId: 'u-1', event: 'Tested', context: { mark }, ...fields })

/** `ownFields`: fields that the client adds to each message, which receivers do not get. */
export function sendsAllKinds(create: CreateSender, library: Installed, ownFields: readonly string[] = ['_metadata']): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    for (const [kind, { message }] of Object.entries(CALLS)) void sender.call(kind as Kind, { ...message, context: { mark: mark(kind) } })
    await sender.settled()
    await source.books(6)
    for (const [kind, { arrives }] of Object.entries(CALLS)) {
      const message = await source.arrived(mark(kind))
      const { version, type, context, timestamp, originalTimestamp, sentAt, receivedAt } = message
      assert.deepEqual([version, type], [1, kind])
      assert.deepEqual({ ...message, ...arrives }, message)
      for (const time of [timestamp, originalTimestamp, sentAt, receivedAt]) assert.match(String(time), ISO)
      assert.deepEqual((context as { library: Installed }).library, library)
      const sent = bench.proxy.requestsWith(mark(kind))[0]?.body.batch.find(({ messageId }) => messageId === message.messageId) ?? {}
      for (const field of ownFields) assert.deepEqual([field in sent, field in message], [true, false], field)
      // A page's URL is in its properties, to which each client adds other values.
      if (kind === 'page') assert.equal((message['properties'] as { url: string }).url, 'https://a.example/')
    }
    assert.deepEqual(sender.errors, [])
  }
}

export interface Wire {
  authorization: 'Basic' | 'none'
  /** Whether the body has the write key. */
  writeKey: boolean
  contentType: RegExp
}

export function isUnderstood(create: CreateSender, wire: Wire, settings: Partial<SenderSettings> = {}): Attempt {
  return async ({ proxy, source: newSource }) => {
    const source = await newSource()
    const mark = newMarks()
    const sender = create({ ...source, ...settings })
    assert.equal(await flushed(sender, sender.call('track', track(mark(1)))), undefined)
    const [{ headers, body, path, status }] = proxy.requestsWith(mark(1)) as [SentRequest]
    assert.deepEqual([path, status], ['/v1/batch', 200])
    const authorization = headers['authorization']
    if (wire.authorization === 'none') assert.equal(authorization, undefined)
    else assert.equal(authorization, `Basic ${btoa(`${source.writeKey}:`)}`)
    assert.equal(body.writeKey, wire.writeKey ? source.writeKey : undefined)
    assert.match(headers['content-type'] ?? '', wire.contentType)
    assert.equal(headers['content-encoding'], settings.gzip === true ? 'gzip' : undefined)
    await source.arrived(mark(1))
  }
}

/** `sizes`: the number of messages in each request for 40 calls, the largest first. */
export function batches(create: CreateSender, sizes: readonly number[]): Attempt {
  return async ({ proxy, source: newSource }) => {
    const requests = async (flushAt?: number): Promise<number[]> => {
      const source = await newSource()
      const mark = newMarks()
      const sender = create({ ...source, ...(flushAt === undefined ? {} : { flushAt }) })
      for (let number = 0; number < 40; number++) void sender.call('track', track(mark(number)))
      await sender.settled()
      await source.books(40)
      const own = Array.from({ length: 40 }, (_, number) => proxy.requestsWith(mark(number))).flat()
      // On a busy machine, a client may send a batch again because the answer is late.
      const batches = new Map(own.map(({ body: { batch } }) => [batch.map(({ messageId }) => messageId).join(), batch.length]))
      return [...batches.values()].sort((a, b) => b - a)
    }
    assert.deepEqual(await requests(), sizes)
    assert.deepEqual(await requests(1), Array<number>(40).fill(1))
  }
}

export function callsBack(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    const told = sender.call('track', track(mark(1)))
    assert.equal(await flushed(sender, told), undefined)
    // When the callback is called, the message is stored and can be read at once.
    assert.equal((await source.view(mark(1))).sourceName, 'of a test')
    await source.arrived(mark(1))
    assert.deepEqual(sender.errors, [])
  }
}

export function flushesAndCloses(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    void sender.call('track', track(mark(1)))
    await sender.flush()
    assert.equal((await source.stats()).accepted, 1)
    void sender.call('track', track(mark(2)))
    void sender.call('track', track(mark(3)))
    await sender.close?.()
    assert.equal((await source.stats()).accepted, 3)
    void sender.call('track', track(mark(4)))
    assert.equal(sender.callsAfterClose.length, 1)
    await source.books(3)
  }
}

/** For a client without close. `waits`: whether flush waits for requests that the client had already started. */
export function flushes(create: CreateSender, { waits }: { waits: boolean }): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    assert.equal(sender.close, undefined)
    let isTold = false
    const told = sender.call('track', track(mark('sent at once'))).then(() => {
      isTold = true
    })
    await sender.flush()
    if (waits) assert.equal((await source.stats()).accepted, 1)
    else assert.equal(isTold, false)
    await told
    void sender.call('track', track(mark('queued')))
    await sender.flush()
    assert.equal((await source.stats()).accepted, 2)
    await source.books(2)
  }
}

export function retries(create: CreateSender): Attempt {
  return async ({ proxy, source: newSource }) => {
    const source = await newSource()
    const mark = newMarks()
    const sender = create({ ...source, flushAt: 2 })
    proxy.refuse(mark(1))
    proxy.lose(mark(4))
    const told = [1, 2, 3, 4, 5, 6].map((number) => sender.call('track', track(mark(number))))
    await sender.settled()
    assert.deepEqual(await Promise.all(told), Array<undefined>(6).fill(undefined))
    for (const number of [1, 4]) {
      assert.deepEqual(statuses(source, mark(number)), [503, 200])
    }
    await source.books(6)
    for (const number of [1, 2, 3, 4, 5, 6]) await source.arrived(mark(number))
    // The batch whose answer was lost arrived twice, and was recognised.
    const { accepted, duplicates } = await source.stats()
    assert.equal(accepted, 6)
    assert.equal(duplicates, proxy.requestsWith(mark(4))[0]?.body.batch.length)
    assert.deepEqual(sender.errors, [])
  }
}

/** Sends after the time of `Retry-After`, not before. */
export function waitsForTheLimit(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.limitedSource()
    const mark = newMarks()
    const sender = create(source)
    await overdraw(source, 3)
    assert.equal(await flushed(sender, sender.call('track', track(mark(1)))), undefined)
    assert.deepEqual(statuses(source, mark(1)), [429, 200])
    await source.arrived(mark(1))
    assert.deepEqual(sender.errors, [])
  }
}

/** Retries too early, and then gives up. */
export function givesUpAtTheLimit(create: CreateSender, error: RegExp, attempts: number): Attempt {
  return async (bench) => {
    const source = await bench.limitedSource()
    const mark = newMarks()
    const sender = create(source)
    await overdraw(source, 60)
    assert.match(String(await flushed(sender, sender.call('track', track(mark(1))))), error)
    assert.deepEqual(statuses(source, mark(1)), Array<number>(attempts).fill(429))
    assert.equal(sender.errors.length, 1)
  }
}

/** Uses up the rate limit for so many seconds. */
async function overdraw(source: TriedSource, seconds: number): Promise<void> {
  await source.send(Array.from({ length: LIMIT * (seconds + 1) }, (_, number) => ({ type: 'track', ...track(`before ${number}`) })))
}

function statuses(source: TriedSource, mark: string): number[] {
  return source.requestsWith(mark).map(({ status }) => status)
}

/** `attempts`: how many times it sends a batch that is answered with 401. */
export function reportsWrongKey(create: CreateSender, error: RegExp, attempts: number): Attempt {
  return async ({ proxy }) => {
    const mark = newMarks()
    const sender = create({ writeKey: 'no-such-key', host: proxy.url })
    assert.match(String(await flushed(sender, sender.call('track', track(mark(1))))), error)
    assert.equal(sender.errors.length, 1)
    const answers = proxy.requestsWith(mark(1)).map(({ status }) => status)
    assert.deepEqual(answers, Array<number>(attempts).fill(401))
  }
}

/** `field`: the field for the time of the event. */
export function keepsPastTimes(create: CreateSender, field = 'timestamp'): Attempt {
  return async (bench) => {
    const source = await bench.source([{}, { historical: false }])
    const mark = newMarks()
    const sender = create(source)
    const past = new Date('2020-02-03T04:05:06.789Z')
    await flushed(sender, sender.call('track', track(mark('past'), { [field]: past })))
    await flushed(sender, sender.call('track', track(mark('present'))))
    await source.books(2)
    // Not to the destination without historical messages, with that reason.
    await source.books(1, 1)
    assert.deepEqual(source.pathsOf(mark('past')), ['/first'])
    const { skips } = await source.view(mark('past'))
    assert.deepEqual(
      skips.map(({ reason }) => reason),
      ['historical'],
    )
    const { timestamp, originalTimestamp } = await source.arrived(mark('past'))
    assert.equal(originalTimestamp, past.toISOString())
    // Corrected by the difference of the clocks, which is the duration of the request here.
    const off = Date.parse(String(timestamp)) - past.getTime()
    assert.ok(off >= 0 && off < 30_000, `${String(timestamp)} is ${off} ms off`)
  }
}

/** The client sets `originalTimestamp` itself, and the given time is ignored. */
export function losesPastTimestamp(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    const before = Date.now()
    await flushed(sender, sender.call('track', track(mark('past'), { timestamp: new Date('2020-02-03T04:05:06.789Z') })))
    const { timestamp, originalTimestamp } = await source.arrived(mark('past'))
    for (const time of [timestamp, originalTimestamp]) assert.ok(Date.parse(String(time)) >= before, String(time))
  }
}

export function selectsDestinations(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source([{}, {}])
    const mark = newMarks()
    const sender = create(source)
    const cases: [name: string, integrations: object | undefined, paths: string[]][] = [
      ['not said', undefined, ['/first', '/second']],
      ['one only', { All: false, second: true }, ['/second']],
      ['all but one', { second: false }, ['/first']],
      ['no webhooks', { Webhooks: false }, []],
      ['another case of the letters', { All: false, First: true }, []],
      ['with options', { All: false, first: { key: 1 } }, ['/first']],
    ]
    for (const [name, integrations] of cases) {
      void sender.call('track', track(mark(name), integrations === undefined ? {} : { integrations }))
    }
    await sender.settled()
    await source.books(3, 0)
    await source.books(2, 1)
    for (const [name, , paths] of cases) assert.deepEqual(source.pathsOf(mark(name)), paths, name)
    const { skips } = await source.view(mark('no webhooks'))
    assert.deepEqual(
      skips.map(({ reason }) => reason),
      ['integrations_disabled', 'integrations_disabled'],
    )
  }
}

export function isDeduplicated(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    const same = (name: string): object => track(mark(name), { messageId: mark('same') })
    await flushed(sender, sender.call('track', same('first')))
    await flushed(sender, sender.call('track', same('again')))
    void sender.call('track', same('in the batch of others'))
    void sender.call('track', track(mark('another')))
    void sender.call('track', track(mark('one more')))
    await sender.settled()
    await source.books(3)
    assert.deepEqual(await source.stats(), { accepted: 3, duplicates: 2 })
    assert.equal((await source.arrived(mark('first'))).messageId, mark('same'))
    assert.deepEqual([source.pathsOf(mark('again')), source.pathsOf(mark('in the batch of others'))], [[], []])
  }
}

/** It generates every messageId itself, so the caller cannot mark duplicates. */
export function takesNoMessageId(create: CreateSender): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    for (const name of ['first', 'again']) void sender.call('track', track(mark(name), { messageId: mark('same') }))
    await sender.settled()
    await source.books(2)
    const ids = await Promise.all(['first', 'again'].map(async (name) => (await source.arrived(mark(name))).messageId))
    assert.equal(new Set([...ids, mark('same')]).size, 3)
  }
}

/** More than 500 levels, which no client checks and the service rejects. */
const tooDeep = (): object => {
  let nested: object = {}
  for (let level = 0; level < 600; level++) nested = { nested }
  return nested
}

export function isSilentOnPartialRefusal(create: CreateSender, error: RegExp): Attempt {
  return async (bench) => {
    const source = await bench.source()
    const mark = newMarks()
    const sender = create(source)
    // Clients that send the first message separately have done so.
    await flushed(sender, sender.call('track', track(mark('before'))))
    const bad = track(mark('bad'), { properties: tooDeep() })
    const told = [sender.call('track', track(mark('good'))), sender.call('track', bad)]
    await sender.settled()
    assert.deepEqual(await Promise.all(told), [undefined, undefined])
    await source.books(2)
    await source.arrived(mark('good'))
    assert.deepEqual(await source.rejections(), ['invalid_request'])
    // If all messages of a batch are rejected, the client gets an error.
    assert.match(String(await flushed(sender, sender.call('track', bad))), error)
    await source.books(2)
  }
}

export interface OAuthClaims {
  /** What happens to a batch that is sent with a revoked token. */
  revoked: 'sent again' | 'given up'
}

export function sendsWithToken(create: CreateSender, { revoked }: OAuthClaims): Attempt {
  return async (bench) => {
    const { source, oauthSettings, revoke } = await guarded(bench)
    const mark = newMarks()
    const sender = create({ ...source, oauthSettings })
    for (let number = 0; number < 100; number++) void sender.call('track', track(mark(number)))
    await sender.settled()
    assert.deepEqual(sender.errors, [])
    await source.books(100)
    await revoke()
    const told = await flushed(sender, sender.call('track', track(mark('revoked'))))
    if (revoked === 'sent again') assert.equal(told, undefined)
    else assert.match(String(told), /\[401\] Unauthorized/)
    assert.equal(await flushed(sender, sender.call('track', track(mark('next')))), undefined)
    await source.books(revoked === 'sent again' ? 102 : 101)
    await sender.close?.()
  }
}

/** It has no such setting, so a source that requires a token rejects its messages. */
export function sendsNoToken(create: CreateSender, error: RegExp): Attempt {
  return async (bench) => {
    const { source, oauthSettings } = await guarded(bench)
    const mark = newMarks()
    const sender = create({ ...source, oauthSettings })
    assert.match(String(await flushed(sender, sender.call('track', track(mark(1))))), error)
    assert.deepEqual(await source.rejections(), ['oauth_required'])
    await source.books(0)
  }
}

interface Guarded {
  source: TriedSource
  oauthSettings: NonNullable<SenderSettings['oauthSettings']>
  revoke: () => Promise<unknown>
}

async function guarded({ service, source: newSource }: NodeBench): Promise<Guarded> {
  const source = await newSource()
  await service.api(`/sources/${source.sourceId}`, { method: 'PATCH', body: { requireOAuth: true } })
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const publicKeyPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const { id: clientId } = await service.api<{ id: string }>('/oauth-apps', {
    method: 'POST',
    body: { name: 'Backend', sourceIds: [source.sourceId], keys: [{ id: 'key-1', publicKeyPem }] },
  })
  const clientKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return {
    source,
    oauthSettings: { clientId, clientKey, keyId: 'key-1', authServer: `${service.url}/oauth2` },
    revoke: () => service.api(`/oauth-apps/${clientId}/revoke-tokens`, { method: 'POST' }),
  }
}

/** The argument of a call's callback. */
async function flushed(sender: Sender, told: Promise<unknown>): Promise<unknown> {
  await sender.settled()
  return told
}
