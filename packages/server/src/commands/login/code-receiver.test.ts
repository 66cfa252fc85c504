// Tests that the local port of `switchyard login` takes only the answer of its own login, and only once.

import assert from 'node:assert/strict'
import { request } from 'node:http'
import { test } from 'node:test'
import { startCodeReceiver } from './code-receiver.ts'

const STATE = 'state-of-this-login'
const never = new AbortController().signal

function get(port: number, path: string, { host = `127.0.0.1:${port}`, method = 'GET' } = {}): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port, path, method, headers: { host } }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (part: string) => (text += part))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
    })
    sent.once('error', reject)
    sent.end()
  })
}

test('another state, path, method or host name gets 404, and the login goes on waiting', async () => {
  await using receiver = await startCodeReceiver(STATE)
  const { port } = receiver
  assert.equal((await get(port, '/?code=c&state=another')).status, 404)
  assert.equal((await get(port, '/?code=c')).status, 404)
  assert.equal((await get(port, `/other?code=c&state=${STATE}`)).status, 404)
  assert.equal((await get(port, `/?code=c&state=${STATE}`, { method: 'POST' })).status, 404)
  // A name of an attacker that resolves to 127.0.0.1.
  assert.equal((await get(port, `/?code=c&state=${STATE}`, { host: `evil.example:${port}` })).status, 404)

  const answered = get(port, `/?code=the-code&state=${STATE}`)
  const { code, answer } = await receiver.received(never)
  assert.equal(code, 'the-code')
  assert.equal((await get(port, `/?code=second&state=${STATE}`)).status, 404)
  answer({ title: 'Logged in', text: 'Close this window.' })
  const { status, text } = await answered
  assert.equal(status, 200)
  assert.match(text, /<h1>Logged in<\/h1>/)
})

test('a callback without a code is a login that was cancelled', async () => {
  await using receiver = await startCodeReceiver(STATE)
  const answered = get(receiver.port, `/?state=${STATE}&error=denied`)
  const { code, answer } = await receiver.received(never)
  assert.equal(code, null)
  answer({ title: 'Not logged in', text: 'Close this window.' })
  assert.match((await answered).text, /Not logged in/)
})

test('the wait ends when it is aborted', async () => {
  await using receiver = await startCodeReceiver(STATE)
  const abort = new AbortController()
  const waiting = receiver.received(abort.signal)
  abort.abort(new Error('stopped'))
  await assert.rejects(waiting, /stopped/)
})
