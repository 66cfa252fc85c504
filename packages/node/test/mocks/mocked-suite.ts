// What every HTTP mock must do for the client: intercept requests, pass them to the test, respond and fail. The test file of each
// mock implements that; nothing listens on the host, which is a loopback port.

import assert from 'node:assert/strict'
import test from 'node:test'
import { Analytics, type AnalyticsError } from '@switchyard/node'

export const HOSTS = ['http://127.0.0.1:9', 'https://127.0.0.1:9'] as const

export interface Mocked {
  /** Bodies of the intercepted requests, as text. */
  bodies: string[]
  restore?: () => void
}

/** Intercepts the next POSTs to the host's /v1/batch: each with one of these statuses, and then no more. */
export type Intercept = (host: string, replies: { status: number; headers?: Record<string, string>; body: string }[]) => Mocked

const OK = { status: 200, body: '{"success":true}' }

export function mockedSuite(mock: string, intercept: Intercept): void {
  for (const host of HOSTS) {
    const scheme = new URL(host).protocol

    test(`${mock} intercepts ${scheme}, and its response is a delivery`, async () => {
      const { result, bodies, codes } = await send(intercept, host, [OK])
      assert.deepEqual(codes, [])
      assert.deepEqual(result, { stored: 3, failed: 0, pending: 0 })
      const { batch } = JSON.parse(bodies[0] ?? '') as { batch: { event: string }[] }
      assert.deepEqual(
        batch.map(({ event }) => event),
        ['e 0', 'e 1', 'e 2'],
      )
    })

    test(`${mock} can reject over ${scheme}, and the client sees status and body`, async () => {
      const body = '{"success":false,"code":"batch_too_large","message":"Too large."}'
      const { result, errors } = await send(intercept, host, [{ status: 400, body }])
      assert.deepEqual(result, { stored: 0, failed: 3, pending: 0 })
      assert.equal(errors[0]?.status, 400)
      assert.match(errors[0]?.message ?? '', /batch_too_large: Too large\./)
    })

    test(`${mock} can fail once over ${scheme}, and the retry is intercepted, too`, async () => {
      const { result, bodies } = await send(intercept, host, [{ status: 503, headers: { 'Retry-After': '0' }, body: '' }, OK])
      assert.deepEqual(result, { stored: 3, failed: 0, pending: 0 })
      assert.equal(bodies.length, 2)
    })
  }
}

async function send(intercept: Intercept, host: string, replies: Parameters<Intercept>[1]) {
  const { bodies, restore } = intercept(host, replies)
  try {
    const analytics = new Analytics({ writeKey: 'wk', host, maxRetries: 1 })
    const errors: AnalyticsError[] = []
    analytics.on('error', (error) => errors.push(error))
    for (let i = 0; i < 3; i++) analytics.track({ userId: 'u', event: `e ${i}` })
    const { stored, failed, pending } = await analytics.closeAndFlush()
    return { result: { stored, failed, pending }, bodies, errors, codes: errors.map((error) => `${error.code}: ${error.message}`) }
  } finally {
    restore?.()
  }
}
