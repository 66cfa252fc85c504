// Runs a program that uses the analytics client and returns what it observed and what the endpoint received, so that two clients can be
// compared. Details that each client may choose are left out: order, ids, times and the library name.

import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { dirname } from 'node:path'
import type { ReceivedMessage } from '../../packages/node/test/tracking-server.ts'
import { createTrackingEndpoint } from '../clients/tracking-endpoint.ts'
import { run } from '../system/run-program.ts'

export interface ProgramRun {
  seen: Record<string, string[]>
  messages: object[]
  /** The number of requests of each special kind. */
  requests: Record<string, number>
}

export async function runProgram(program: string): Promise<ProgramRun> {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const clientKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const endpoint = await createTrackingEndpoint()
  try {
    const { stdout } = await run(process.execPath, [program, endpoint.url, clientKey], { cwd: dirname(program) })
    const seen = JSON.parse(stdout) as Record<string, string[]>
    for (const list of Object.values(seen)) list.sort()
    const { headers, messages, tokenForms } = endpoint
    const withGivenFields = messages.filter(
      ({ messageId, timestamp }) => messageId === 'order-42' && timestamp === '2020-02-03T04:05:06.789Z',
    )
    assert.equal(withGivenFields.length, 1, 'the given messageId and timestamp are kept')
    return {
      seen,
      messages: messages.map(comparable).sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
      requests: {
        bySubclass: headers.filter((header) => header['x-traced'] === 'yes').length,
        byFunction: headers.filter((header) => header['x-function'] === 'yes').length,
        withToken: headers.filter((header) => header.authorization?.startsWith('Bearer ')).length,
        forToken: tokenForms.length,
      },
    }
  } finally {
    await endpoint.close()
  }
}

function comparable(message: ReceivedMessage): object {
  const { type, event, userId, anonymousId, previousId, groupId, name, category, traits } = message
  const { library: _, ...context } = message['context'] as Record<string, unknown>
  const integrations = message['integrations'] ?? {}
  // The public client repeats a page's category among its properties.
  const { category: __, ...properties } = (message['properties'] ?? {}) as Record<string, unknown>
  return { type, event, userId, anonymousId, previousId, groupId, name, category, properties, traits, context, integrations }
}
