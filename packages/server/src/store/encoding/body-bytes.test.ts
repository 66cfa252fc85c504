import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { packBody, unpackBody } from './body-bytes.ts'

test('a body is unpacked to the same bytes, whatever its size, and a large one is stored in less space', () => {
  for (const bytes of [0, 1, 100, 32_767, 32_768, 40_000, 512_000]) {
    const repetitive = Buffer.from(JSON.stringify({ batch: ['x'.repeat(bytes)] }))
    const noise = Buffer.from(JSON.stringify({ batch: [randomBytes(bytes).toString('base64')] }))
    for (const body of [repetitive, noise]) {
      const packed = packBody(body)
      assert.ok(packed.length <= body.length)
      assert.deepEqual(Buffer.from(unpackBody(packed)), body)
    }
    if (bytes >= 32_768) assert.ok(packBody(repetitive).length < bytes / 4)
  }
  assert.deepEqual(Buffer.from(unpackBody(packBody(new Uint8Array()))), Buffer.alloc(0))
})

test('a body in the middle of a larger buffer is packed without the rest of the buffer', () => {
  const all = Buffer.from(`before${JSON.stringify({ batch: ['y'.repeat(50_000)] })}after`)
  const body = all.subarray(6, -5)
  assert.deepEqual(Buffer.from(unpackBody(packBody(body))), Buffer.from(body))
})
