// In the place of 'next/server', so that the example runs without Next.js: after() as the host beside it understands it. Do not
// copy this file.

import { AsyncLocalStorage } from 'node:async_hooks'

export type AfterCallback = () => unknown

/** What the request under way wants done when it is answered. */
export const requestStorage = new AsyncLocalStorage<AfterCallback[]>()

export function after(callback: AfterCallback): void {
  const callbacks = requestStorage.getStore()
  if (callbacks === undefined) throw new Error('after() was called outside of a request')
  callbacks.push(callback)
}
