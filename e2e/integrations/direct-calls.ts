// Calls the library directly, as Segment's own documentation does, in a process of its own whose connections all go to a gateway: what the
// service must send is what arrives from here. Nothing of the service and nothing of packages/integrations is used. Started with fork() by
// library-process.ts.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { IntegrationCase } from './cases.ts'
import './connect-to-gateway.ts'

export interface DirectCall extends Pick<IntegrationCase, 'directory' | 'direct' | 'subscriptions'> {
  /** One: onEvent. Several: onBatch, with all of them. */
  events: readonly object[]
}

/** One for each subscription, which are called one after the other. */
export type DirectResult = readonly SubscriptionResult[]

export interface SubscriptionResult {
  /** Whether an event matched. */
  isSubscribed: boolean
  /** The error of the library; null if there was none. */
  error: string | null
}

interface DirectDefinition {
  actions: Readonly<Record<string, { syncMode?: { default: string } }>>
}

type Settings = Record<string, unknown>
interface Output {
  output?: unknown
  multistatus?: readonly SingleStatus[]
  /** From an action that reports a single event as a batch. */
  data?: { responses?: readonly { value?: () => SingleStatus }[] }
}
interface SingleStatus {
  status: number
  errormessage?: string
}
interface Destination {
  onEvent(event: object, settings: Settings, options: object): Promise<readonly Output[]>
  onBatch(events: readonly object[], settings: Settings, options: object): Promise<readonly Output[]>
}

const require = createRequire(import.meta.url)
const { Destination } = require('@segment/actions-core') as { Destination: new (definition: object) => Destination }
const folder = join(dirname(require.resolve('@segment/action-destinations')), 'destinations')

// Segment has a version of cheerio with a default export. npm installs one without it, which the library accepts as well.
const cheerio = createRequire(folder)('cheerio') as { default?: object }
cheerio.default ??= cheerio

/** Segment always gives actions a client for statistics, and some rely on it. */
const OPTIONS = {
  statsContext: { statsClient: { incr() {}, observe() {}, histogram() {}, set() {}, _name() {}, _tags() {} }, tags: [] },
}

async function run({ directory, direct, subscriptions, events }: DirectCall): Promise<DirectResult> {
  const { settings, env, features } = direct
  Object.assign(process.env, env)
  const { default: definition } = require(join(folder, directory)) as { default: DirectDefinition }
  const { oauth, ...own } = settings as { oauth?: { accessToken?: string; refreshToken?: string } }
  const tokens = oauth && { oauth: { ...oauth, access_token: oauth.accessToken, refresh_token: oauth.refreshToken } }
  const results: SubscriptionResult[] = []
  // As Segment does: the actions of one event share it.
  const transaction: Record<string, string> = {}
  const transactionContext = { transaction, setTransaction: (key: string, value: string) => void (transaction[key] = value) }
  const options = { ...OPTIONS, features, ...(events.length === 1 && { transactionContext }) }
  for (const { action, subscribe, mapping: given } of subscriptions) {
    const destination = new Destination(definition)
    const mapping = { ...syncMode(definition, action), ...given }
    const all = { ...own, ...tokens, subscriptions: [{ partnerAction: action, subscribe, mapping }] }
    try {
      const [first] = await (events.length === 1
        ? destination.onEvent(events[0] as object, all, options)
        : destination.onBatch(events, all, options))
      const failed = statusesOf(first).find(({ status }) => status >= 400)
      results.push({ isSubscribed: first?.output !== 'not subscribed', error: failed?.errormessage ?? null })
    } catch (error) {
      results.push({ isSubscribed: true, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) })
    }
  }
  // One call at a time: see library-process.ts.
  for (const name of Object.keys(env)) delete process.env[name]
  return results
}

function statusesOf(output: Output | undefined): readonly SingleStatus[] {
  const { responses } = output?.data ?? {}
  return (
    output?.multistatus ??
    (Array.isArray(responses) ? responses.flatMap((each: { value?: () => SingleStatus }) => each.value?.() ?? []) : [])
  )
}

/** Segment's app adds it to the mapping of each subscription whose action has modes. The library does not, and presets do not contain it. */
function syncMode({ actions }: DirectDefinition, action: string): object {
  const mode = actions[action]?.syncMode?.default
  return mode === undefined ? {} : { __segment_internal_sync_mode: mode }
}

// Some definitions make a request that nobody waits for.
process.on('unhandledRejection', () => {})
process.on('message', (call: DirectCall) => void run(call).then((result) => process.send?.(result)))
process.send?.('ready')
