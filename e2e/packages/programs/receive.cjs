// A receiver of webhooks: a real server that verifies what it is sent, and one verification of fetch's Request. Given
// the package by receiver.mjs and receiver.cjs, each in its module system; gives what the test compares.
const { createServer } = require('node:http')

module.exports = async function receive({ generateSecret, signBody, signStandardWebhook, verify, verifySignature, verifyWebhook }) {
  const sharedSecret = 'shared'
  const signingSecrets = [generateSecret()]
  const options = { sharedSecret, signingSecrets }
  const body = JSON.stringify({ version: 1, type: 'track', userId: 'u-1', event: 'é ✓', messageId: 'm-1' })
  const headers = {
    'content-type': 'application/json',
    'x-signature': signBody(body, sharedSecret),
    ...signStandardWebhook({ id: 'm-1', timestampSeconds: Math.floor(Date.now() / 1000), body }, signingSecrets),
  }

  const server = createServer(async (request, response) => {
    const verdict = await verify(request, options)
    response.writeHead(verdict.ok ? 200 : verdict.status).end(verdict.ok ? verdict.messages[0].event : verdict.code)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${server.address().port}/`
  const post = async (text) => {
    const response = await fetch(url, { method: 'POST', headers: { ...headers, connection: 'close' }, body: text })
    return `${response.status} ${await response.text()}`
  }
  const answers = [await post(body), await post(body.replace('u-1', 'u-2'))]
  server.close()

  const ofFetch = await verify(new Request(url, { method: 'POST', headers, body }), options)
  return {
    answers,
    ofFetch: ofFetch.ok && ofFetch.coverage,
    ofBytes: verifyWebhook({ headers, body: Buffer.from(body) }, options).ok,
    signature: ['shared', 'other'].map((secret) => verifySignature(body, headers['x-signature'], secret)),
  }
}
