// A local endpoint on a free port that keeps what arrives, and closes with its test. For tests only.

import type { TestContext } from 'node:test'
import type { Message } from '@switchyard/protocol'
import { createLocalEndpoint, type LocalEndpoint, type LocalEndpointOptions, type Rejection } from '../local-endpoint/endpoint.ts'

export interface CollectingEndpoint extends LocalEndpoint {
  messages: Message[]
  writeKeys: Set<string>
  rejections: Rejection[]
}

export async function collectingEndpoint(t: TestContext, options: LocalEndpointOptions = {}): Promise<CollectingEndpoint> {
  const messages: Message[] = []
  const writeKeys = new Set<string>()
  const rejections: Rejection[] = []
  const endpoint = await createLocalEndpoint({
    ...options,
    async onMessage(message, arrival) {
      await options.onMessage?.(message, arrival)
      messages.push(message)
      writeKeys.add(arrival.writeKey)
    },
    onRejected: (rejection) => void rejections.push(rejection),
  })
  t.after(() => endpoint.close())
  return { ...endpoint, messages, writeKeys, rejections }
}

/** A promise to hold an answer with, or to say that something has come. */
export function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
