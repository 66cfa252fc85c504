// Verifies Switchyard webhooks with nothing but Node.js. Copy the functions above `main` into your receiver and pass them
// the raw bytes of the body. Each returns null if the request is genuine, otherwise a code that says what is wrong.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { pathToFileURL } from 'node:url'

const TOLERANCE_SECONDS = 300

/** Standard Webhooks. `header` returns a header by its lower-case name; `secrets` has one or more whsec_… values, two during a rotation. */
export function verifyStandardWebhook(body, header, secrets, nowSeconds = Date.now() / 1000) {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(header)
  if (!id || !timestamp || !signatures) return 'signature_missing'
  if (!/^[0-9]{1,12}$/.test(timestamp)) return 'header_invalid'
  if (Math.abs(nowSeconds - Number(timestamp)) > TOLERANCE_SECONDS) return 'timestamp_outside_tolerance'
  let genuine = false
  for (const secret of secrets) {
    const digest = createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.`).update(body).digest('base64')
    // Do not leave the loop early: the time it takes must not reveal which signature matched.
    for (const signature of signatures.split(' ')) if (isEqual(signature, `v1,${digest}`)) genuine = true
  }
  return genuine ? null : 'signature_invalid'
}

/**
 * X-Signature. In a batch it covers only the first message, so a batch of several messages is rejected unless
 * Standard Webhooks has already verified the whole body.
 */
export function verifyXSignature(body, header, sharedSecret, isBodyProven = false) {
  const signature = header('x-signature')
  if (!signature) return 'signature_missing'
  const signed = isBatch(body) ? firstMessage(body) : body
  if (signed === undefined) return 'signature_invalid'
  if (!isEqual(signature, createHmac('sha1', sharedSecret).update(signed).digest('hex'))) return 'signature_invalid'
  return isBodyProven || !isBatch(body) || body.equals(Buffer.from(`[${signed}]`)) ? null : 'batch_unproven'
}

function isBatch(body) {
  return body[0] === 0x5b
}

function firstMessage(body) {
  try {
    return JSON.stringify(JSON.parse(body.toString())[0])
  } catch {
    return undefined
  }
}

function keyOf(secret) {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (key.length < 24) throw new TypeError('A signing secret must be whsec_ followed by the base64 of at least 24 bytes.')
  return key
}

function isEqual(received, computed) {
  const [a, b] = [Buffer.from(received), Buffer.from(computed)]
  return a.length === b.length && timingSafeEqual(a, b)
}

// A small program to try it: reads the body from stdin, headers from the arguments, secrets from SIGNING_SECRETS and SHARED_SECRET.
async function main() {
  const { SIGNING_SECRETS = '', SHARED_SECRET = '', NOW } = process.env
  const secrets = SIGNING_SECRETS.split(' ').filter(Boolean)
  if (secrets.length === 0 && SHARED_SECRET === '') {
    console.error('Set SIGNING_SECRETS or SHARED_SECRET.')
    return 2
  }
  const headers = new Map(process.argv.slice(2).map((line) => [line.split(':')[0].toLowerCase(), line.replace(/^[^:]*: */, '')]))
  const header = (name) => headers.get(name)
  const chunks = []
  for await (const chunk of process.stdin) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  let problem = null
  if (secrets.length > 0) problem = verifyStandardWebhook(body, header, secrets, NOW ? Number(NOW) : undefined)
  if (SHARED_SECRET !== '') problem ??= verifyXSignature(body, header, SHARED_SECRET, secrets.length > 0)
  if (problem !== null) {
    console.log(`invalid: ${problem}`)
    return 1
  }
  console.log('valid')
  return 0
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  process.exitCode = await main().catch((error) => {
    console.error(error.message)
    return 2
  })
}
