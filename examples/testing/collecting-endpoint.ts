// An endpoint on a free port that accepts and stores what clients send, and closes with its test. It does things that the real service
// cannot, such as delaying a response. It rejects a blank write key. For tests only.

import type { TestContext } from 'node:test'
import { type ReceivedMessage, startTrackingServer } from '../../packages/node/test/tracking-server.ts'

export interface CollectingEndpoint {
  url: string
  messages: ReceivedMessage[]
  writeKeys: Set<string>
}

export async function collectingEndpoint(t: TestContext, options: { hold?: Promise<unknown> } = {}): Promise<CollectingEndpoint> {
  const messages: ReceivedMessage[] = []
  const writeKeys = new Set<string>()
  const server = await startTrackingServer(({ body, headers }) => {
    const key = Buffer.from(headers['authorization']?.split(' ')[1] ?? '', 'base64')
      .toString()
      .split(':')[0] as string
    if (key.trim() === '') return { status: 401, body: '{"success":false,"code":"invalid_write_key"}' }
    messages.push(...body.batch)
    writeKeys.add(key)
    return options.hold ? { after: options.hold } : {}
  })
  t.after(() => server.close())
  return { url: server.url, messages, writeKeys }
}

/** A promise to delay a response with, or to signal that something has arrived. */
export function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
