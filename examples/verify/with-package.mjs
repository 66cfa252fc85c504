// Verifies Switchyard webhooks with @switchyard/webhook, which also reads the body of Node.js, Express, Fastify and
// fetch-style requests, and rejects repeated headers and messages that no signature covers.

import { verifyWebhook } from '@switchyard/webhook'

/** Returns null if the request is genuine, otherwise a code that says what is wrong. */
export function problemOf(body, headers, secrets, now) {
  const result = verifyWebhook({ headers, body }, { ...secrets, ...(now === undefined ? {} : { now }) })
  return result.ok ? null : result.code
}

// A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
const { SIGNING_SECRETS = '', SHARED_SECRET = '', NOW } = process.env
const signingSecrets = SIGNING_SECRETS.split(' ').filter(Boolean)
if (signingSecrets.length === 0 && SHARED_SECRET === '') {
  console.error('Set SIGNING_SECRETS or SHARED_SECRET.')
  process.exit(2)
}
const secrets = {
  ...(signingSecrets.length > 0 ? { signingSecrets } : {}),
  ...(SHARED_SECRET === '' ? {} : { sharedSecret: SHARED_SECRET }),
}
const headers = process.argv.slice(2).map((line) => [line.split(':')[0], line.replace(/^[^:]*: */, '')])
const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
let problem
try {
  problem = problemOf(Buffer.concat(chunks), headers, secrets, NOW ? () => Number(NOW) * 1000 : undefined)
} catch (error) {
  console.error(error.message)
  process.exit(2)
}
if (problem === null) console.log('valid')
else {
  console.log(`invalid: ${problem}`)
  process.exitCode = 1
}
