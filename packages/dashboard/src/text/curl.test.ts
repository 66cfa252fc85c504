import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { BODY_FILE, curlOf, signaturesIn } from './curl.ts'

const run = promisify(execFile)

function hasCurl(): boolean {
  try {
    execFileSync('curl', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const bodies: [title: string, body: string][] = [
  ['plain', '{"a":1}'],
  ['with quotes, dollars and backslashes', JSON.stringify({ a: `it's "$(touch /tmp/never)" \`id\` \\ !`, b: '\n\u001b[31m', c: 'ü€😀' })],
  ['that begins with an @', '@/etc/passwd'],
  ['too long for a command line', JSON.stringify({ a: "x'".repeat(100_000) })],
]

for (const [title, body] of bodies) {
  test(`a body ${title} arrives byte by byte, and so do the headers`, { skip: hasCurl() ? false : 'needs curl' }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'curl-'))
    const arrived: { request: IncomingMessage; body: string }[] = []
    const server = createServer((request, response) => {
      const parts: Buffer[] = []
      request
        .on('data', (part: Buffer) => parts.push(part))
        .on('end', () => {
          arrived.push({ request, body: Buffer.concat(parts).toString('utf8') })
          response.end('ok')
        })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      server.close()
      rmSync(folder, { recursive: true })
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a[1]?b={c}&d='e'`
    const { command, bodyFile } = curlOf({
      url,
      headers: { 'User-Agent': 'Switchyard/1.0', 'Content-Type': 'application/json', 'X-It': "'s", 'X-Empty': '' },
      body,
    })
    assert.equal(bodyFile, body.length > 100_000 ? BODY_FILE : null)
    if (bodyFile !== null) writeFileSync(join(folder, bodyFile), body)
    await run('sh', ['-c', `${command} --silent`], { cwd: folder })
    const [{ request, body: received }] = arrived as [(typeof arrived)[0]]
    assert.equal(received, body)
    assert.equal(request.method, 'POST')
    const { 'user-agent': agent, 'content-type': type, 'x-it': it, 'x-empty': empty, accept } = request.headers
    assert.deepEqual([agent, type, it, empty, accept], ['Switchyard/1.0', 'application/json', "'s", '', undefined])
  })
}

test('each signature is listed with how it is computed', () => {
  assert.deepEqual(
    signaturesIn({ 'X-Signature': 'a', 'webhook-signature': 'v1,b' }).map(({ header }) => header),
    ['X-Signature', 'webhook-signature'],
  )
  assert.deepEqual(signaturesIn({ 'Content-Type': 'application/json' }), [])
})
