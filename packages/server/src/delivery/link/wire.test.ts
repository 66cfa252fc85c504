import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Outcome } from './outcome.ts'
import { PacketReader, PacketWriter } from './packet.ts'
import type { Load, Start } from './protocol.ts'
import { CommandWriter, ReportReader, ReportWriter, readCommands } from './wire.ts'

const natural = fc.nat(10_000)
const nullable = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | null> => fc.option(arbitrary, { nil: null })
const trace = nullable(fc.record({ traceparent: fc.string(), tracestate: nullable(fc.string()) }))
const load: fc.Arbitrary<Load> = fc.record({
  key: natural,
  destination: natural,
  origin: fc.oneof(natural, fc.string()),
  about: fc.record(
    {
      sourceId: fc.string(),
      receivedAtMs: natural,
      ip: nullable(fc.string()),
      browser: fc.boolean(),
      trace,
      violations: fc.constant({ 2: [{ rule: 'page', code: 'wrong_type' as const, path: 'p', expected: 'a number', found: 'a string' }] }),
    },
    { requiredKeys: ['sourceId', 'receivedAtMs', 'ip', 'browser', 'trace'] },
  ),
  body: fc.uint8Array({ maxLength: 300 }),
  isText: fc.boolean(),
  parsed: fc.constant(null),
  absent: fc.array(natural),
  indexes: fc.array(natural),
})
const start: fc.Arbitrary<Start> = fc.record({
  unit: natural,
  destination: natural,
  isBatch: fc.boolean(),
  attempt: natural,
  replay: fc.boolean(),
  atMs: fc.nat(Number.MAX_SAFE_INTEGER),
  keepAnswer: fc.boolean(),
  limit: fc.oneof(natural, fc.constant(Number.POSITIVE_INFINITY)),
  urls: fc.array(natural),
  steps: nullable(fc.array(fc.string())),
  isPreview: fc.boolean(),
  notAfterMs: nullable(fc.double({ min: 0, max: 1e12, noNaN: true })),
  isLate: fc.boolean(),
  messages: fc.array(natural),
})
const outcome: fc.Arbitrary<Outcome> = fc.record({
  verdict: fc.constantFrom('success', 'temporary', 'permanent'),
  status: nullable(natural),
  reason: nullable(fc.string()),
  error: nullable(fc.string()),
  address: nullable(fc.constantFrom('192.0.2.1', '192.0.2.2', '2001:db8::1')),
  timings: fc.record({
    dnsMs: nullable(natural),
    connectMs: nullable(natural),
    tlsMs: nullable(natural),
    firstByteMs: nullable(natural),
    totalMs: fc.double({ noNaN: true }),
  }),
  retryAfterMs: nullable(natural),
  responseStart: nullable(fc.string()),
})

/** What the other side gets: a structured clone, with the buffers transferred. */
function pass(writer: PacketWriter, other?: PacketWriter): PacketReader {
  const { packet, transfer } = writer.take()
  const received = structuredClone(packet, { transfer })
  other?.giveBack(received.buffer)
  writer.keepSpare(received.spare)
  return new PacketReader(received)
}

test('commands arrive in order and unchanged, also when buffers are reused', () => {
  const command = fc.oneof(
    load.map((each) => ['load', each] as const),
    start.map((each) => ['start', each] as const),
    fc.tuple(fc.constantFrom('forget', 'recall', 'resume'), natural),
    fc.tuple(fc.constant('limit' as const), natural, natural),
    fc.tuple(fc.constant('drop' as const), natural, nullable(fc.array(natural))),
    natural.map((number) => ['define', number, { id: `destination ${number}` }] as const),
  )
  fc.assert(
    fc.property(fc.array(fc.array(command, { maxLength: 20 }), { maxLength: 5 }), (packets) => {
      const writer = new PacketWriter()
      const commands = new CommandWriter(writer, () => undefined)
      for (const packet of packets) {
        for (const [kind, ...args] of packet) (commands[kind] as (...given: readonly unknown[]) => void)(...args)
        const received: unknown[] = []
        const note =
          (kind: string) =>
          (...args: unknown[]): void =>
            void received.push([kind, ...structuredClone(args)])
        const link = {
          define: note('define'),
          forget: note('forget'),
          recall: note('recall'),
          resume: note('resume'),
          limit: note('limit'),
          load: note('load'),
          start: note('start'),
          drop: note('drop'),
        }
        assert.equal(readCommands(pass(writer), link), false)
        assert.deepEqual(structuredClone(received), structuredClone(packet))
        assert.ok(writer.isEmpty)
      }
    }),
  )
})

const unsent = fc.record({
  position: natural,
  why: fc.oneof(
    fc.constantFrom('deleted' as const, 'unreadable' as const),
    fc.record({ reason: fc.constantFrom('mapping_failed' as const), error: fc.option(fc.string()), logs: fc.option(fc.string()) }),
  ),
})

const token = fc.string({ minLength: 1 })

test('reports arrive in order and unchanged, and an address is sent once', () => {
  const report = fc.oneof(
    fc.tuple(fc.constant('outcome' as const), natural, natural, outcome, natural),
    fc.tuple(fc.constant('unsent' as const), natural, fc.array(unsent), fc.boolean()),
    fc.tuple(fc.constant('bug' as const), natural, fc.string()),
    fc.tuple(
      fc.constant('tokens' as const),
      token,
      fc.record({ accessToken: token, refreshToken: fc.option(token), usedRefreshToken: fc.option(token) }),
    ),
    fc.tuple(fc.constant('stateWanted' as const), token),
  )
  fc.assert(
    fc.property(fc.array(fc.array(report, { maxLength: 20 }), { maxLength: 5 }), (packets) => {
      const writer = new PacketWriter()
      const reports = new ReportWriter(writer, () => undefined)
      const reader = new ReportReader()
      for (const packet of packets) {
        for (const [kind, ...args] of packet) (reports[kind] as (...given: readonly unknown[]) => void)(...args)
        const received: unknown[] = []
        const note =
          (kind: string) =>
          (...args: unknown[]): void =>
            void received.push([kind, ...args])
        const about = { tokens: note('tokens'), stateWanted: note('stateWanted') }
        reader.read(pass(writer), { outcome: note('outcome'), unsent: note('unsent'), bug: note('bug'), ...about })
        assert.deepEqual(structuredClone(received), structuredClone(packet))
      }
    }),
  )
})

test('what cannot be a token is not accepted', () => {
  const valid = { accessToken: 'a', refreshToken: 'b', usedRefreshToken: 'c' }
  const rows: [unknown, unknown][] = [
    ['', valid],
    [1, valid],
    ['dst_1', null],
    ['dst_1', { ...valid, accessToken: null }],
    ['dst_1', { ...valid, accessToken: '' }],
    ['dst_1', { ...valid, refreshToken: { toString: 'b' } }],
    ['dst_1', { ...valid, refreshToken: 'x'.repeat(16 * 1024 + 1) }],
    ['dst_1', { accessToken: 'a' }],
  ]
  for (const [id, tokens] of rows) {
    const writer = new PacketWriter()
    new ReportWriter(writer, () => undefined).tokens(id as never, tokens as never)
    const ignore = (): void => undefined
    const reports = { outcome: ignore, unsent: ignore, bug: ignore, tokens: () => assert.fail('accepted') }
    assert.throws(() => new ReportReader().read(pass(writer), reports), TypeError)
  }
})

test('a ping is noticed among other commands, such as those with what an integration keeps', () => {
  const entry = { subscriptionId: 'sub_1', key: 'k', value: 'v', setAtMs: 1, expiresAtMs: 2 }
  const writer = new PacketWriter()
  const commands = new CommandWriter(writer, () => undefined)
  commands.forget(1)
  commands.state('dst_1', [entry])
  commands.state('dst_2', null)
  commands.ping()
  const ignore = (): void => undefined
  const link = { define: ignore, forget: ignore, recall: ignore, resume: ignore, limit: ignore, load: ignore, start: ignore, drop: ignore }
  const received: unknown[] = []
  assert.equal(readCommands(pass(writer), { ...link, state: (...state) => void received.push(state) }), true)
  assert.deepEqual(received, [
    ['dst_1', [entry]],
    ['dst_2', null],
  ])
})

test('a buffer that comes back is filled again, and more addresses than are remembered are still correct', () => {
  const writer = new PacketWriter()
  const other = new PacketWriter()
  const reports = new ReportWriter(writer, () => undefined)
  const reader = new ReportReader()
  const timings = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 1 }
  const about = { verdict: 'success', status: 200, reason: null, error: null, timings, retryAfterMs: null, responseStart: null } as const
  const expected: string[] = []
  const received: (string | null)[] = []
  for (let nth = 0; nth < 25_000; nth++) {
    const address = `address ${nth % 12_500}`
    expected.push(address)
    reports.outcome(nth, 0, { ...about, address }, 0)
    if (nth % 1_000 !== 999) continue
    const note = (_unit: number, _url: number, { address }: Outcome): void => void received.push(address)
    reader.read(pass(writer, other), { outcome: note, unsent: () => undefined, bug: () => undefined })
    // The other side has nothing to say but returns the buffer.
    const back = other.take().packet
    writer.keepSpare(back.spare)
  }
  assert.deepEqual(received, expected)
})

test('a buffer that was large once is not kept', () => {
  const writer = new PacketWriter()
  for (const bytes of [8 * 1024 * 1024, 100]) {
    writer.bytes(new Uint8Array(bytes))
    writer.giveBack(writer.take().packet.buffer)
  }
  writer.number(1)
  const { packet, transfer } = writer.take()
  assert.deepEqual([packet.spare.map(({ byteLength }) => byteLength), transfer.length], [[64 * 1024], 2])
})
