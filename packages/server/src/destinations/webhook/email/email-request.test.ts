import assert from 'node:assert/strict'
import test from 'node:test'
import { emailOf, writtenEmail } from '../../../delivery/sender/mail/email.ts'
import type { Destination } from '../../../model/configuration.ts'
import { longestAttemptMs } from '../../kinds.ts'
import { EMAIL_CONFIRMATION_MS, emailRequest, MAX_RECEIVED_BYTES } from './email-request.ts'

test('an email may be under way for longer than its timeout, a request may not', () => {
  const webhook = { type: 'webhook', timeoutMs: 5_000 }
  const longest = (urls: string[]): number => longestAttemptMs({ ...webhook, urls } as Partial<Destination> as Destination)
  assert.equal(longest(['https://example.com/']), 5_000)
  assert.equal(longest(['smtps://mail.example.com']), 5_000 + EMAIL_CONFIRMATION_MS)
})

test('the memory that is counted for an email covers its JSON when parsed and the email that is written', async () => {
  for (const character of ['a', 'ä', '€', '😀', '\u0001', '=']) {
    const text = character.repeat(100_000)
    const json = JSON.stringify({ from: 'a@example.com', to: 'b@example.com', subject: 'Subject', text })
    const { sendingBytes = 0 } = emailRequest([json], { id: '1-0' })
    const email = emailOf(json)
    assert.ok(typeof email === 'object')
    const written = await writtenEmail(email, '<1-0@switchyard>', new Date(0))
    assert.ok(sendingBytes - MAX_RECEIVED_BYTES >= written.length + text.length, character)
  }
})
