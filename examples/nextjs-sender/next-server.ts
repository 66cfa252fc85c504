// Replaces 'next/server', so that the example runs without Next.js: an after() that works with host.ts. Do not copy this file.

import { AsyncLocalStorage } from 'node:async_hooks'

export type AfterCallback = () => unknown

/** The callbacks to run when the current request has been answered. */
export const requestStorage = new AsyncLocalStorage<AfterCallback[]>()

export function after(callback: AfterCallback): void {
  const callbacks = requestStorage.getStore()
  if (callbacks === undefined) throw new Error('after() was called outside of a request')
  callbacks.push(callback)
}
