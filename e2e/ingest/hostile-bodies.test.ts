// Bodies that are meant to break a parser, through the whole service to a real receiver. Each is refused with an error, or arrives
// unchanged, as JSON.parse reads it. The service keeps running.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type ReceivedMessage, type Receiver, startReceiver } from '../system/receiver.ts'
import { type Service, startService, track } from '../system/service.ts'

let receiver: Receiver
let service: Service
let last = 0

before(async () => {
  receiver = await startReceiver()
  service = await startService()
  await service.destination({ urls: [receiver.url] })
})
after(async () => {
  await service[Symbol.asyncDispose]()
  await receiver.close()
})

/** JSON as text, because most of these bodies cannot be written as objects. */
interface Fields {
  messageId?: string
  userId?: string
  event?: string
  properties?: string
  more?: string
}

function message({ messageId = `"m-${++last}"`, userId = '"u"', event = '"Tested"', properties = '{}', more = '' }: Fields): string {
  return `{"type":"track","messageId":${messageId},"userId":${userId},"event":${event},"properties":${properties}${more}}`
}

const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`
const keys = (count: number): string => `{${Array.from({ length: count }, (_, index) => `"${index.toString(36)}":${index % 10}`).join()}}`
const batch = (...messages: string[]): string => `{"batch":[${messages.join()}]}`

suite('arrives unchanged', () => {
  const PROPERTIES: [title: string, properties: string][] = [
    ['a key named __proto__', '{"__proto__":{"polluted":true},"a":{"__proto__":null,"b":{"__proto__":1}}}'],
    [
      'keys named like what every object has',
      '{"constructor":{"prototype":{"polluted":true}},"toString":1,"hasOwnProperty":null,"then":"x"}',
    ],
    ['a key named toJSON', '{"toJSON":"not a function","a":{"toJSON":{}}}'],
    ['lone surrogates', String.raw`{"a":"\ud800","b":"x\udc00y","\udfff":"\ud800\ud800","pair":"\ud83d\ude00"}`],
    ['NUL characters', String.raw`{"a":"\u0000","b\u0000c":"d\u0000e"}`],
    ['every control character', JSON.stringify({ text: Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)).join('') })],
    ['line separators and what HTML would read', '{"a":"\u2028\u2029</script><!--"}'],
    ['numbers beyond what is exact', '{"a":123456789012345678901234567890,"b":0.1e-400,"c":1e308,"d":-0,"e":9007199254740993}'],
    ['a number that is infinite once read', '{"a":1e999,"b":[-1e999]}'],
    ['a key that is there twice', '{"a":1,"b":2,"a":{"c":3,"c":4}}'],
    ['an empty key', '{"":{"":1}}'],
    ['thousands of keys', keys(3_000)],
    ['keys that are numbers', '{"2":"b","1":"a","-1":"c","01":"d","4294967295":"e"}'],
    ['hundreds of levels', deep(400)],
    ['blanks of every kind', ' {\t"a" :\r\n [ 1 , 2 ] } '],
  ]
  for (const [title, properties] of PROPERTIES) {
    test(title, async () => {
      const sent = message({ properties: properties.startsWith('[') ? `{"a":${properties}}` : properties })
      await assertPasses(batch(sent), sent)
    })
  }

  test('hostile ids, which stay distinct', async () => {
    const ids = [
      String.raw`"\ud800"`,
      String.raw`"\ud801"`,
      '"\ufffd"',
      String.raw`"\u0000"`,
      String.raw`"\u0000\u0000"`,
      '"__proto__"',
      '" "',
      '"\'; --"',
    ]
    const sent = ids.map((id) => message({ messageId: id, userId: id, event: id }))
    await assertPasses(batch(...sent), ...sent)
    const again = await service.post('/v1/batch', batch(...sent))
    assert.equal(again.status, 200)
    await sentinel()
    for (const id of ids) assert.equal(receiver.byMessageId.get(JSON.parse(id) as string)?.length, 1, id)
  })

  test("the context of a batch with thousands of keys, as the default of each message's context", async () => {
    const context = keys(3_000)
    const own = message({ more: ',"context":{"a":"own","__proto__":{"x":1}}' })
    const none = message({})
    const body = `{"context":${context},"batch":[${own},${none}]}`
    assert.equal((await service.post('/v1/batch', body)).status, 200)
    const [first, second] = [await arrived(own), await arrived(none)]
    assert.equal(JSON.stringify(second['context']), JSON.stringify(JSON.parse(context)))
    const merged = { ...(JSON.parse(context) as object), ...(JSON.parse('{"a":"own","__proto__":{"x":1}}') as object) }
    assert.equal(JSON.stringify(first['context']), JSON.stringify(merged))
  })

  test('fields of a call that occur twice: the last one counts', async () => {
    const sent = message({ more: ',"event":"Last","properties":{"last":true}' })
    await assertPasses(`{"batch":"first","batch":[${sent}]}`, sent)
    const single = message({ more: ',"type":"track"' })
    assert.equal((await service.post('/v1/track', single)).status, 200)
    await arrived(single)
  })

  test('the fields of a top-level __proto__ are not used as fields of the message', async () => {
    const { status, body } = await service.post(
      '/v1/batch',
      batch('{"type":"track","messageId":"inherits","__proto__":{"userId":"u","event":"e"}}'),
    )
    assert.equal(status, 400)
    assert.equal(body.code, 'no_user_anon_id')
    const sent = message({ more: ',"__proto__":{"event":"Inherited","polluted":true}' })
    await assertPasses(batch(sent), sent)
  })
})

suite('is refused, and the service keeps running', () => {
  const REFUSED: [title: string, path: string, body: string | Buffer, code: string][] = [
    [
      'a hundred thousand levels beside the messages',
      '/v1/batch',
      `{"context":{"a":${deep(100_000)}},"batch":[${message({})}]}`,
      'invalid_request',
    ],
    ['a hundred thousand levels as the batch', '/v1/batch', `{"batch":${deep(100_000)}}`, '*'],
    ['a hundred thousand levels that are never closed', '/v1/batch', `{"batch":${'['.repeat(100_000)}`, 'invalid_json'],
    ['a hundred thousand levels of objects', '/v1/batch', `${'{"a":'.repeat(80_000)}1${'}'.repeat(80_000)}`, '*'],
    ['a hundred thousand levels in a call', '/v1/track', message({ properties: `{"a":${deep(100_000)}}` }), 'message_too_large'],
    ['as many levels as fit in a call', '/v1/track', message({ properties: `{"a":${deep(15_000)}}` }), '*'],
    ['as many levels as fit in a message of a batch', '/v1/batch', batch(message({ properties: `{"a":${deep(15_000)}}` })), '*'],
    ['ten thousand keys in a call', '/v1/track', message({ properties: keys(10_000) }), 'message_too_large'],
    ['ten thousand keys in a message of a batch', '/v1/batch', batch(message({ properties: keys(10_000) })), 'message_too_large'],
    [
      "ten thousand keys in a batch's own context",
      '/v1/batch',
      `{"context":${keys(10_000)},"batch":[${message({})}]}`,
      'message_too_large',
    ],
    ['a NUL byte in a string', '/v1/batch', batch(message({ userId: '"a\0b"' })), 'invalid_json'],
    ['a NUL byte behind the JSON', '/v1/batch', `${batch(message({}))}\0`, 'invalid_json'],
    [
      'half of a character',
      '/v1/batch',
      Buffer.concat([Buffer.from('{"batch":[{"type":"track","userId":"'), Buffer.from([0xe2, 0x82]), Buffer.from('","event":"e"}]}')]),
      'invalid_json',
    ],
    [
      'a character in more bytes than it needs',
      '/v1/track',
      Buffer.from([...Buffer.from('{"userId":"'), 0xc0, 0xaf, ...Buffer.from('","event":"e"}')]),
      'invalid_json',
    ],
    [
      'a surrogate as bytes',
      '/v1/track',
      Buffer.from([...Buffer.from('{"userId":"'), 0xed, 0xa0, 0x80, ...Buffer.from('","event":"e"}')]),
      'invalid_json',
    ],
    ['UTF-16', '/v1/batch', Buffer.from(batch(message({})), 'utf16le'), 'invalid_json'],
    ['a key that JSON does not have', '/v1/batch', `{batch:[${message({})}]}`, 'invalid_json'],
    ['nothing', '/v1/batch', '', '*'],
    ['null', '/v1/batch', 'null', 'invalid_request'],
    ['a batch of nulls', '/v1/batch', '{"batch":[null,1,"x",[]]}', '*'],
    ['a batch that is an object with a length', '/v1/batch', '{"batch":{"length":1,"0":{}}}', 'invalid_request'],
  ]
  for (const [title, path, body, code] of REFUSED) {
    test(title, async () => {
      const arrivals = receiver.arrivals.length
      const answer = await service.post(path, body)
      assert.equal(answer.status, 400)
      assert.equal(answer.body.success, false)
      if (code !== '*') assert.equal(answer.body.code, code)
      await sentinel()
      assert.equal(receiver.arrivals.length, arrivals + 1)
    })
  }

  test('gzip that inflates to half a gigabyte, without holding it in memory', async () => {
    // Several members form one stream, which has a thousandth of its uncompressed size.
    const member = gzipSync(Buffer.alloc(16 * 1024 * 1024, ' '), { level: 9 })
    const bomb = Buffer.concat(Array.from({ length: 30 }, () => member))
    assert.ok(bomb.length < 512_000, `${bomb.length} bytes`)
    const peak = peakMemory(service.pid)
    const answers = await Promise.all(Array.from({ length: 10 }, () => service.post('/v1/batch', bomb, { 'content-encoding': 'gzip' })))
    for (const { status, body } of answers) assert.deepEqual([status, body.code], [400, 'batch_too_large'])
    await sentinel()
    if (peak === null) return
    const grown = ((peakMemory(service.pid) ?? 0) - peak) / 1_024
    assert.ok(grown < 250, `the peak of its memory grew by ${grown} MB`)
  })

  test('invalid gzip and truncated gzip', async () => {
    const good = gzipSync(batch(message({})))
    for (const body of [Buffer.from('not gzip'), good.subarray(0, -9), Buffer.concat([good.subarray(0, 20), Buffer.alloc(50, 0xff)])]) {
      const { status, body: answer } = await service.post('/v1/batch', body, { 'content-encoding': 'gzip' })
      assert.deepEqual([status, answer.code], [400, 'invalid_request'])
    }
    await sentinel()
  })

  test('the same for the control API', async () => {
    for (const body of [
      deep(100_000),
      `{"name":${deep(100_000)}}`,
      '{"__proto__":{"name":"x"}}',
      '{"name":"\0"}',
      '{"name":"\\ud800\\u0000","constructor":1}',
    ]) {
      const { status } = await fetch(`${service.url}/api/sources`, {
        method: 'POST',
        headers: { authorization: `Bearer ${service.token}` },
        body,
      })
      assert.equal(status, 400, body.slice(0, 50))
    }
    await sentinel()
  })
})

test('afterwards the ledger is consistent, and no error was logged', async () => {
  await sentinel()
  const ledger = await service.settled()
  assert.deepEqual(await service.ledger({ recount: true }), ledger)
  assert.equal(ledger[0]?.delivered, receiver.arrivals.length)
  assert.deepEqual(
    service.log().filter(({ level }) => level !== 'info'),
    [],
  )
})

/** Sends the body and checks that its messages arrive as JSON.parse reads them. */
async function assertPasses(body: string, ...sent: string[]): Promise<void> {
  const answer = await service.post('/v1/batch', body)
  assert.deepEqual([answer.status, answer.body], [200, { success: true }])
  for (const text of sent) await arrived(text)
}

/** The message that arrived, compared with the one that was sent. Compared as text, which includes the order of keys and only own properties. */
async function arrived(text: string): Promise<ReceivedMessage> {
  const sent = JSON.parse(text) as ReceivedMessage
  const id = sent.messageId as string
  await receiver.until(() => receiver.byMessageId.has(id), { what: `${id} arrives`, deadlineMs: 20_000 })
  const came = receiver.byMessageId.get(id)?.[0]?.messages[0] as ReceivedMessage
  for (const field of ['type', 'messageId', 'userId', 'event', 'properties']) {
    assert.equal(JSON.stringify(came[field]), JSON.stringify(sent[field]), field)
  }
  assert.equal(Object.hasOwn(came, 'polluted'), false)
  return came
}

/** Sends a message and waits for it. Everything sent before would have arrived by then, and the service is running. */
async function sentinel(): Promise<void> {
  const id = `sentinel-${++last}`
  assert.equal((await service.send([track(id)])).status, 200)
  await receiver.until(() => receiver.byMessageId.has(id), { deadlineMs: 20_000 })
}

/** In KB; null if the system does not report it. */
function peakMemory(pid: number): number | null {
  try {
    return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? Number.NaN)
  } catch {
    return null
  }
}
