// An alert by email: through the whole service to a mail server of the test.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAIL_AUTHORITY, startMailServer } from '../../packages/server/src/delivery/fixtures/mail-server.ts'
import { startService } from '../system/service.ts'

interface Test {
  success: boolean
  attempts: { url: string; reason: string | null; responseStart: string | null }[]
}

test('an alert arrives as an email, and a test of the destination shows the reply of the mail server', async (t) => {
  await using service = await startService()
  let refusal: string | undefined
  const server = await startMailServer(t, { secure: true, answer: (command) => (command.startsWith('RCPT') ? refusal : undefined) })
  const url = `smtps://localhost:${server.port}`
  const id = await service.destination({
    name: 'Email',
    sourceIds: ['system'],
    maxInFlight: 1,
    urls: [url],
    auth: { type: 'basic', username: 'alerts', password: 'a password' },
    tls: { ca: MAIL_AUTHORITY.cert },
    request: {
      body: {
        from: 'alerts@example.com',
        to: ['on-call@example.com'],
        subject: { '@template': '{{event}}' },
        text: { '@template': '{{properties.message}}' },
      },
    },
  })
  await service.api('/alerts/test', { method: 'POST' })
  await service.settled()
  const [email] = server.emails
  assert.ok(email)
  assert.match(email.content, /^Subject: Alert Test\r$/m)
  assert.deepEqual(email.to, ['RCPT TO:<on-call@example.com>'])
  const login = Buffer.from('\0alerts\0a password').toString('base64')
  assert.ok(server.commands.includes(`+AUTH PLAIN ${login}`))

  refusal = '550 no such user'
  const tested = await service.api<Test>(`/destinations/${id}/test`, { method: 'POST', body: {} })
  assert.equal(tested.success, false)
  assert.deepEqual(
    tested.attempts.map((attempt) => [attempt.url, attempt.reason, attempt.responseStart]),
    [[url, 'mail_refused', '550 no such user']],
  )
  const { checks } = await service.api<{ checks: { name: string; state: string; url: string | null }[] }>('/diagnostics')
  assert.equal(checks.find((check) => check.url === url)?.state, 'good')
})
