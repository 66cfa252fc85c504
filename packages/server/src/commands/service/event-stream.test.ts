import assert from 'node:assert/strict'
import test from 'node:test'
import { parseEvents, type StreamEvent } from './event-stream.ts'

async function parse(...chunks: (string | Uint8Array)[]): Promise<StreamEvent[]> {
  async function* bytes(): AsyncIterable<Uint8Array> {
    for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk
  }
  const events: StreamEvent[] = []
  for await (const event of parseEvents(bytes())) events.push(event)
  return events
}

test('event names, ids, several lines of data, comments', async () => {
  assert.deepEqual(await parse(': hello\nretry: 5\n\nid: 7\nevent: accepted\ndata: {"a":\ndata:1}\n\ndata: x\n\n'), [
    { id: '7', event: 'accepted', data: '{"a":\n1}' },
    { id: '7', event: 'message', data: 'x' },
  ])
})

test('chunks may end anywhere, also within a character or a line ending', async () => {
  const text = 'event: é\r\ndata: ü\r\n\r\ndata: 2\r\n\r\n'
  const whole = await parse(text)
  assert.equal(whole.length, 2)
  const bytes = Buffer.from(text)
  for (let at = 1; at < bytes.length; at += 1)
    assert.deepEqual(await parse(bytes.subarray(0, at), bytes.subarray(at)), whole, `cut at ${at}`)
})

test('an incomplete event is ignored, and an endless one is an error', async () => {
  assert.deepEqual(await parse('data: half\n'), [])
  await assert.rejects(parse(`data: ${'x'.repeat(5_000_000)}`), /too large/)
})
