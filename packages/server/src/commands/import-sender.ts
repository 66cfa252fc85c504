// Posts batches of an import to /v1/import, a few at a time, and tries again what may be good later. A batch has its end when
// the service has answered for each of its messages. No sentAt is sent, so that times are kept as they are in the file.

import { CommandProblem, EXIT } from './problem.ts'

export interface BatchAnswer {
  /** By index in the batch. */
  rejected: readonly { index: number; code: string; message: string }[]
}

export interface ImportSenderOptions {
  url: string
  writeKey: string
  /** After how long without any success it is given up. */
  giveUpMs: number
  /** Ends waiting between tries; a request under way gets its answer. */
  signal: AbortSignal
  onTrouble: (sentence: string) => void
}

export class Interrupted extends Error {}

const REQUEST_MS = 30_000
const FIRST_PAUSE_MS = 250
const LONGEST_PAUSE_MS = 15_000

export function createImportSender({
  url,
  writeKey,
  giveUpMs,
  signal,
  onTrouble,
}: ImportSenderOptions): (messages: readonly string[]) => Promise<BatchAnswer> {
  const authorization = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`
  let lastSuccessMs = performance.now()

  return async (messages) => {
    const body = `{"batch":[${messages.join(',')}]}`
    for (let tries = 0; ; tries += 1) {
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries) * (0.5 + Math.random() / 2)
      const answer = await post(body)
      if (answer.kind === 'done') {
        lastSuccessMs = performance.now()
        return answer
      }
      if (performance.now() - lastSuccessMs > giveUpMs)
        throw new CommandProblem(`${answer.problem} It is given up; run again to go on.`, EXIT.unreachable)
      onTrouble(answer.problem)
      if (!(await pause(Math.max(pauseMs, answer.afterMs), signal))) throw new Interrupted()
    }
  }

  async function post(body: string): Promise<(BatchAnswer & { kind: 'done' }) | { kind: 'again'; problem: string; afterMs: number }> {
    // Not fetch, which refuses some ports.
    const { request } = await import('undici')
    let status: number
    let retryAfter: unknown
    let text: string
    try {
      const response = await request(`${url}/v1/import`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body,
        signal: AbortSignal.timeout(REQUEST_MS),
      })
      status = response.statusCode
      retryAfter = response.headers['retry-after']
      text = await response.body.text()
    } catch (error) {
      const cause = (error as { code?: string }).code ?? (error as Error).name
      return { kind: 'again', problem: `No service answers at ${url} (${cause}).`, afterMs: 0 }
    }
    const answer = parsed(text)
    const rejected = rejectedOf(answer)
    if (status >= 200 && status < 300) return { kind: 'done', rejected }
    // Every message of the batch was bad, and each is listed.
    if (status === 400 && rejected.length > 0) return { kind: 'done', rejected }
    const sentence = typeof answer?.['message'] === 'string' ? answer['message'] : `${url} answered ${status}.`
    if (status === 429 || status === 408 || status >= 500)
      return { kind: 'again', problem: sentence, afterMs: Math.min(300, Number(retryAfter) || 0) * 1_000 }
    const code = typeof answer?.['code'] === 'string' ? ` (${answer['code']})` : ''
    throw new CommandProblem(`${sentence}${code}`, status === 401 || status === 403 ? EXIT.unreachable : EXIT.failed)
  }
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

function rejectedOf(answer: Record<string, unknown> | undefined): { index: number; code: string; message: string }[] {
  const list = answer?.['rejected']
  return Array.isArray(list) ? (list as { index: number; code: string; message: string }[]) : []
}

/** False when the signal ended it. */
export function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', end)
      resolve(!signal.aborted)
    }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end)
    if (signal.aborted) end()
  })
}
