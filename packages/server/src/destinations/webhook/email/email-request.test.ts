import assert from 'node:assert/strict'
import test from 'node:test'
import type { Destination } from '../../../model/configuration.ts'
import { longestAttemptMs } from '../../kinds.ts'
import { EMAIL_CONFIRMATION_MS } from './email-request.ts'

test('an email may be under way for longer than its timeout, a request may not', () => {
  const webhook = { type: 'webhook', timeoutMs: 5_000 }
  const longest = (urls: string[]): number => longestAttemptMs({ ...webhook, urls } as Partial<Destination> as Destination)
  assert.equal(longest(['https://example.com/']), 5_000)
  assert.equal(longest(['smtps://mail.example.com']), 5_000 + EMAIL_CONFIRMATION_MS)
})
