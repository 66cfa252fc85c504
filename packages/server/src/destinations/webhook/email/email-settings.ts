// What else must be set so that a webhook can send emails: `request.body` gives from, to, subject and text. The rest of an HTTP request has no place in an email.

import type { JsonObject } from '@switchyard/protocol'
import type { WebhookDestination } from '../../../model/configuration.ts'
import type { SettingsProblem } from '../../port/kind.ts'
import { isMailUrl } from './mail-server.ts'

/** A mail server that does not answer holds an attempt for more than a minute, and a node has a limit of all attempts in flight. */
export const MAX_EMAILS_IN_FLIGHT = 20

const FIELDS = ['from', 'to', 'subject', 'text'] as const

export function emailProblem(settings: Partial<WebhookDestination>): SettingsProblem | null {
  const { urls = [], request = null, batch = { size: 1 }, auth = null, headers = {}, sharedSecret = null, signingSecrets = [] } = settings
  const { secrets = {} } = settings
  if (!urls.some(isMailUrl)) return null
  const at = (field: string, problem: string): SettingsProblem => ({ field, problem })
  if (!urls.every(isMailUrl)) return at('urls', 'must all be mail servers if one of them is; create another destination for the others')
  if (batch.size > 1) return at('batch.size', 'must be 1, because each message is sent as a separate email')
  const body = bodyOf(request?.body)
  const missing = FIELDS.find((name) => !Object.hasOwn(body, name))
  if (request === null || missing !== undefined)
    return at(`request.body.${missing ?? 'from'}`, 'is required, because the body is an object with from, to, subject and text')
  if (request.format !== 'json') return at('request.format', 'must be json for emails')
  if (request.path !== '') return at('request.path', 'must be empty for emails')
  if (auth !== null && auth.type !== 'basic') return at('auth.type', 'must be basic for mail servers')
  const empty = (['username', 'password'] as const).find((name) => auth?.[name] === '')
  if (empty !== undefined)
    return at(`auth.${empty}`, 'must not be empty for mail servers; set auth to null if the mail server needs no login')
  const useless = Object.entries({
    headers: Object.keys(headers).length,
    'request.headers': Object.keys(request.headers).length,
    sharedSecret: sharedSecret === null ? 0 : 1,
    signingSecrets: signingSecrets.length,
    // Emails are read by people and stored in mailboxes.
    secrets: Object.keys(secrets).length,
  }).find(([, count]) => count > 0)
  return useless === undefined ? null : at(useless[0], 'cannot be used with emails; remove it')
}

function bodyOf(body: unknown): JsonObject {
  return typeof body === 'object' && body !== null && !Array.isArray(body) ? body : {}
}
