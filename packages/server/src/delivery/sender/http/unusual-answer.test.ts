// Unusual answers of real receivers. plain-answer.test.ts has more of them.

import assert from 'node:assert/strict'
import test from 'node:test'
import { clientFor, post, rawReceiver, withResolvers } from '../../fixtures/attempts.ts'

test('an unusual answer is judged like any other, and its connection is closed', async (t) => {
  const unusual: [answer: string, verdict: string, reason: string | null, responseStart: string | null][] = [
    ['HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok', 'success', null, null],
    ['HTTP/1.1 503 No\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nno\r\n0\r\nx: y\r\n\r\n', 'temporary', 'http_503', 'no'],
    ['HTTP/1.1 400 No\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\nx\r\n\r\n', 'temporary', 'invalid_response', 'no'],
    ['HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'success', null, null],
    ['HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok', 'temporary', 'invalid_response', null],
  ]
  for (const [answer, verdict, reason, responseStart] of unusual) {
    for (const isSplit of [false, true]) {
      let left = 0
      const { promise: closed, resolve: onClose } = withResolvers()
      const url = await rawReceiver(t, (socket) => {
        socket.once('close', () => (left += 1) && onClose())
        if (!isSplit) return socket.write(answer)
        socket.write(answer.slice(0, -9))
        setImmediate(() => setImmediate(() => socket.write(answer.slice(-9))))
      })
      const outcome = await post(clientFor(t), url)
      assert.deepEqual([outcome.verdict, outcome.reason, outcome.responseStart], [verdict, reason, responseStart], answer)
      assert.notEqual(outcome.timings.firstByteMs, null)
      await closed
      assert.equal(left, 1)
    }
  }
})
