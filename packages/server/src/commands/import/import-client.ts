// The client of an import: @switchyard/node, configured to wait rather than to lose a message. It also decides which errors reject one line
// and which stop the import, how long the service may be unreachable, and how to stop on Ctrl-C. It does not know about lines, their
// order or the saved state.

import { createPrivateKey } from 'node:crypto'
import type { Analytics, AnalyticsError, AnalyticsSettings, OAuthSettings, RawMessage } from '@switchyard/node'
import { type Call, CommandProblem, EXIT, type Flag, UsageProblem } from '../line/command.ts'
import { readNamedFile, readSecret } from '../line/input.ts'
import { pathAdvice, plainHttpProblem } from '../service/connection-problem.ts'

export interface Rejection {
  code: string
  message: string
}

export interface ImportClient {
  /** Why the import cannot continue; undefined while it can. */
  readonly problem: CommandProblem | undefined
  /**
   * Calls `settle` once: with null when the service has accepted the message, or with the rejection. It is not called for a message that
   * another run has to send. If the client's buffer is full, returns a promise to await before the next call.
   */
  send(message: unknown, settle: (rejection: Rejection | null) => void): Promise<unknown> | undefined
  /** Resolves when every message is settled or left to another run. */
  end(): Promise<void>
}

export interface ImportClientOptions {
  writeKey: string
  /** Null for a dry run, which sends nothing. */
  url: string | null
  oauth: OAuthSettings | undefined
  batchMessages: number
  giveUpMs: number
  signal: AbortSignal
  remark: (sentence: string) => void
}

const REQUEST_MS = 30_000
/** How long to wait for responses in flight after Ctrl-C. */
const DRAIN_MS = 5_000
/** Enough to fill all concurrent requests, and small enough for a small machine. */
const BUFFER_BYTES = 2 * 1024 * 1024
/** Error codes of messages that another run has to send. */
const UNSENT: ReadonlySet<string> = new Set(['close_timeout', 'call_after_close'])
/** Error codes that concern the request, not the message, and stop the import. */
const FATAL: ReadonlySet<string> = new Set(['delivery_failure', 'oauth_failure', 'queue_full'])

export const OAUTH_FLAGS: Readonly<Record<string, Flag>> = {
  'client-id': { placeholder: 'ID', description: 'If the source requires OAuth: the id of the OAuth application.' },
  'key-id': { placeholder: 'ID', description: 'With --client-id: the id of the key.' },
  'private-key': {
    placeholder: 'FILE',
    description: 'With --client-id: a file with the private key in PEM format, or env:NAME to read it from an environment variable.',
  },
  'auth-server': {
    placeholder: 'URL',
    description: 'With --client-id: the server that issues access tokens.',
    defaultText: 'the service itself',
  },
  scope: { placeholder: 'SCOPE', description: 'With --client-id: the scope to request.', defaultText: 'tracking_api:write' },
}

export async function oauthOf(call: Call): Promise<OAuthSettings | undefined> {
  const [clientId, keyId, where] = [call.flag('client-id'), call.flag('key-id'), call.flag('private-key')]
  if (clientId === undefined || keyId === undefined || where === undefined) {
    if (Object.keys(OAUTH_FLAGS).every((name) => call.flag(name) === undefined)) return undefined
    throw new UsageProblem('OAuth needs all three of --client-id, --key-id and --private-key.')
  }
  const clientKey = where.startsWith('env:')
    ? await readSecret('--private-key', where, call.env)
    : readNamedFile('--private-key', where.replace(/^@/, ''))
  assertPrivateKey(clientKey)
  return { clientId, keyId, clientKey, authServer: call.flag('auth-server'), scope: call.flag('scope') }
}

/** The client reads its key only for the first request. A wrong file is a mistake in the command, and is reported before anything is read or sent. */
function assertPrivateKey(pem: string): void {
  try {
    createPrivateKey(pem)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new UsageProblem(`--private-key is not a usable private key in PEM format: ${reason}.`)
  }
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
    highWaterMarkBytes: BUFFER_BYTES,
    // Unlimited, because the limit is applied below: the import stops if the service has been unreachable for `giveUpMs`.
    maxRetries: Number.POSITIVE_INFINITY,
    maxTotalBackoffDuration: Number.POSITIVE_INFINITY,
    maxRateLimitDuration: Number.POSITIVE_INFINITY,
  })
  let problem: CommandProblem | undefined
  let unreachableSinceMs: number | undefined
  let lastRemark = ''

  function stop(reason: CommandProblem): void {
    if (problem !== undefined) return
    problem = reason
    void analytics.closeAndFlush({ timeout: 0 })
  }

  analytics.on('flush', () => {
    unreachableSinceMs = undefined
  })
  analytics.on('retry', ({ error }) => {
    const sentence = sentenceOf(error, url)
    unreachableSinceMs ??= performance.now()
    if (performance.now() - unreachableSinceMs > giveUpMs)
      stop(new CommandProblem(`${sentence} Giving up. Run the same command again to resume.`, EXIT.unreachable, { cause: error }))
    // Printed when the error changes, not for every retry.
    else if (sentence !== lastRemark) remark(`${sentence} Retrying.`)
    lastRemark = sentence
  })
  const interrupt = (): void => void analytics.closeAndFlush({ timeout: unreachableSinceMs === undefined ? DRAIN_MS : 0 })
  signal.addEventListener('abort', interrupt, { once: true })
  if (signal.aborted) interrupt()

  return {
    get problem() {
      return problem
    },
    send(message, settle) {
      // The client validates the message, so any parsed JSON value can be passed.
      const hasRoom = analytics.enqueue(message as RawMessage, (error) => {
        if (error === undefined) settle(null)
        else if (FATAL.has(error.code)) stop(new CommandProblem(sentenceOf(error, url), exitOf(error), { cause: error }))
        else if (!UNSENT.has(error.code)) settle({ code: error.code, message: error.message })
      })
      return hasRoom ? undefined : new Promise((resolve) => analytics.once('drained', () => resolve(undefined)))
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
    throw new UsageProblem(`${withFlags(error.message)}.`)
  }
}

/** Names the flag of a setting, not the setting. */
const withFlags = (message: string): string =>
  message.replace('oauthSettings.clientKey', '--private-key').replace('oauthSettings.authServer', '--auth-server')

function exitOf({ code, status }: AnalyticsError): 1 | 3 {
  return code === 'oauth_failure' || status === 401 || status === 403 ? EXIT.unreachable : EXIT.failed
}

function sentenceOf({ code, status, reason, message }: AnalyticsError, url: string | null): string {
  if (code === 'delivery_failure' && status === undefined && reason instanceof Error) {
    const cause = (reason as NodeJS.ErrnoException).code ?? reason.name
    return plainHttpProblem(String(url), cause) ?? `Cannot reach a service at ${url} (${cause}).`
  }
  // Below /api, the control API answers, which wants a control token.
  if (url !== null && /\b(?:unauthorized|not_found): /.test(message) && pathAdvice(url) !== '')
    return `The service at ${url} has no tracking API. ${pathAdvice(url)}`
  const sentence = withFlags(message.charAt(0).toUpperCase() + message.slice(1))
  return sentence.endsWith('.') ? sentence : `${sentence}.`
}
