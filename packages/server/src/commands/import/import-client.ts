// The client of an import: @switchyard/node with the settings of one that would rather wait than lose a line. It adds what an
// import needs beside them: what is a refusal of one line and what is the end of it all, how long the service may be away, and
// how to end on Ctrl-C. Lines, their order and the state are not its business.

import type { Analytics, AnalyticsError, AnalyticsSettings, OAuthSettings, RawMessage } from '@switchyard/node'
import { type Call, CommandProblem, EXIT, type Flag } from '../line/command.ts'
import { readNamedFile, readSecret } from '../line/input.ts'

export interface Refused {
  code: string
  message: string
}

export interface ImportClient {
  /** Why it cannot go on; undefined while it can. */
  readonly problem: CommandProblem | undefined
  /**
   * `settle` is called once, when the service has the message (null) or it is refused; never for one that has to be sent by
   * another run. Returns what to wait for before the next, if the client holds enough.
   */
  send(message: unknown, settle: (refused: Refused | null) => void): Promise<unknown> | undefined
  /** Resolves when each message has its end. */
  end(): Promise<void>
}

export interface ImportClientOptions {
  writeKey: string
  /** Null: nothing is sent. */
  url: string | null
  oauth: OAuthSettings | undefined
  batchMessages: number
  giveUpMs: number
  signal: AbortSignal
  remark: (sentence: string) => void
}

const REQUEST_MS = 30_000
/** What is under way at Ctrl-C has this long for its answers. */
const DRAIN_MS = 5_000
/** Enough for all requests to be full, and little enough for a small machine. */
const HELD_BYTES = 2 * 1024 * 1024
/** How a message ends that another run has to send. */
const UNSENT: ReadonlySet<string> = new Set(['close_timeout', 'call_after_close'])
/** Of the request and not of the message. */
const FATAL: ReadonlySet<string> = new Set(['delivery_failure', 'oauth_failure', 'queue_full'])

export const OAUTH_FLAGS: Readonly<Record<string, Flag>> = {
  'client-id': { placeholder: 'ID', sentence: 'Where the source requires OAuth: the id of the application.' },
  'key-id': { placeholder: 'ID', sentence: 'With --client-id: the id of its key.' },
  'private-key': { placeholder: 'FILE', sentence: 'With --client-id: the private key in PEM, or env:NAME where a variable holds it.' },
  'auth-server': { placeholder: 'URL', sentence: 'With --client-id: where access tokens are asked for.', usual: 'the service itself' },
  scope: { placeholder: 'SCOPE', sentence: 'With --client-id: the scope that is asked for.', usual: 'tracking_api:write' },
}

export async function oauthOf(call: Call): Promise<OAuthSettings | undefined> {
  const [clientId, keyId, where] = [call.flag('client-id'), call.flag('key-id'), call.flag('private-key')]
  if (clientId === undefined || keyId === undefined || where === undefined) {
    if (Object.keys(OAUTH_FLAGS).every((name) => call.flag(name) === undefined)) return undefined
    throw new CommandProblem('OAuth needs --client-id, --key-id and --private-key together.', EXIT.usage)
  }
  const clientKey = where.startsWith('env:')
    ? await readSecret('--private-key', where, call.env)
    : readNamedFile('--private-key', where.replace(/^@/, ''))
  return { clientId, keyId, clientKey, authServer: call.flag('auth-server'), scope: call.flag('scope') }
}

export async function createImportClient(options: ImportClientOptions): Promise<ImportClient> {
  const { url, giveUpMs, signal, remark } = options
  const analytics = await openClient({
    writeKey: options.writeKey,
    host: url ?? undefined,
    disable: url === null,
    historical: true,
    oauthSettings: options.oauth,
    flushAt: options.batchMessages,
    flushInterval: 1_000,
    httpRequestTimeout: REQUEST_MS,
    maxInFlight: 4,
    highWaterMarkBytes: HELD_BYTES,
    // How long it is tried is decided below, by how long nothing was answered.
    maxRetries: Number.POSITIVE_INFINITY,
    maxTotalBackoffDuration: Number.POSITIVE_INFINITY,
    maxRateLimitDuration: Number.POSITIVE_INFINITY,
  })
  let problem: CommandProblem | undefined
  let awaySinceMs: number | undefined
  let told = ''

  function stop(reason: CommandProblem): void {
    if (problem !== undefined) return
    problem = reason
    void analytics.closeAndFlush({ timeout: 0 })
  }

  analytics.on('flush', () => {
    awaySinceMs = undefined
  })
  analytics.on('retry', ({ error }) => {
    const sentence = sentenceOf(error, url)
    awaySinceMs ??= performance.now()
    if (performance.now() - awaySinceMs > giveUpMs)
      stop(new CommandProblem(`${sentence} It is given up; run again to go on.`, EXIT.unreachable, { cause: error }))
    // Once for each kind, not with every try.
    else if (sentence !== told) remark(`${sentence} Trying again.`)
    told = sentence
  })
  const interrupt = (): void => void analytics.closeAndFlush({ timeout: awaySinceMs === undefined ? DRAIN_MS : 0 })
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()

  return {
    get problem() {
      return problem
    },
    send(message, settle) {
      // The client judges it, whatever it is.
      const goOn = analytics.enqueue(message as RawMessage, (error) => {
        if (error === undefined) settle(null)
        else if (FATAL.has(error.code)) stop(new CommandProblem(sentenceOf(error, url), exitOf(error), { cause: error }))
        else if (!UNSENT.has(error.code)) settle({ code: error.code, message: error.message })
      })
      return goOn ? undefined : new Promise((resolve) => analytics.once('drained', () => resolve(undefined)))
    },
    async end() {
      await analytics.closeAndFlush()
      signal.removeEventListener('abort', interrupt)
    },
  }
}

async function openClient(settings: AnalyticsSettings): Promise<Analytics> {
  const { Analytics, AnalyticsError } = await import('@switchyard/node')
  try {
    return new Analytics(settings)
  } catch (error) {
    if (!(error instanceof AnalyticsError)) throw error
    const message = error.message
      .replace(/^oauthSettings\.clientKey/, '--private-key')
      .replace(/^oauthSettings\.authServer/, '--auth-server')
    throw new CommandProblem(`${message}.`, EXIT.usage)
  }
}

function exitOf({ code, status }: AnalyticsError): 1 | 3 {
  return code === 'oauth_failure' || status === 401 || status === 403 ? EXIT.unreachable : EXIT.failed
}

function sentenceOf({ code, status, reason, message }: AnalyticsError, url: string | null): string {
  if (code === 'delivery_failure' && status === undefined && reason instanceof Error)
    return `No service answers at ${url} (${(reason as NodeJS.ErrnoException).code ?? reason.name}).`
  const sentence = message.charAt(0).toUpperCase() + message.slice(1)
  return sentence.endsWith('.') ? sentence : `${sentence}.`
}
