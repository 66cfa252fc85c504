// The four clients behind one interface: how each is constructed, called and closed. Each runs at its own default
// settings, because that is what a user gets; only `flushAt` is set, and only where a workload says so. The peers are
// imported by a computed name and narrowed here, so that the repository type-checks without them installed.

/** One call of the workload, in the format that three of the four clients accept directly. */
export interface Call {
  userId: string
  event: string
  properties: Record<string, unknown>
}

export interface RunningClient {
  track(call: Call): void
  /** Resolves when the client reports that everything was sent. */
  close(): Promise<void>
}

export interface Settings {
  host: string
  flushAt?: number
}

interface Client {
  packageName: string
  /** `from` is what to import: the package's name, or the entry of a copy installed elsewhere. */
  start(from: string, settings: Settings): Promise<RunningClient>
}

const WRITE_KEY = 'bench-write-key'

export const CLIENTS = {
  switchyard: { packageName: '@switchyard/node', start: startSegmentLike },
  segment: { packageName: '@segment/analytics-node', start: startSegmentLike },
  posthog: { packageName: 'posthog-node', start: startPosthog },
  rudderstack: { packageName: '@rudderstack/rudder-sdk-node', start: startRudderstack },
} as const satisfies Record<string, Client>

export type ClientName = keyof typeof CLIENTS
export const CLIENT_NAMES = Object.keys(CLIENTS) as ClientName[]
export const PEER_NAMES = CLIENT_NAMES.filter((name) => name !== 'switchyard')

interface SegmentLike {
  track(call: Call): unknown
  closeAndFlush(): Promise<unknown>
}

interface Posthog {
  capture(message: { distinctId: string; event: string; properties: Record<string, unknown> }): void
  shutdown(): Promise<unknown>
}

interface Rudderstack {
  track(call: Call): unknown
  flush(): Promise<unknown>
}

async function startSegmentLike(from: string, settings: Settings): Promise<RunningClient> {
  const Analytics = (await classOf(from, 'Analytics')) as new (settings: object) => SegmentLike
  const client = new Analytics({ writeKey: WRITE_KEY, ...settings })
  return {
    track: (call) => void client.track(call),
    close: async () => void (await client.closeAndFlush()),
  }
}

async function startPosthog(from: string, settings: Settings): Promise<RunningClient> {
  const PostHog = (await classOf(from, 'PostHog')) as new (key: string, settings: object) => Posthog
  const client = new PostHog(WRITE_KEY, settings)
  return {
    track: (call) => client.capture({ distinctId: call.userId, event: call.event, properties: call.properties }),
    close: async () => void (await client.shutdown()),
  }
}

// This client has no close(): flush() sends one batch, and batches in flight finish while the process lives.
async function startRudderstack(from: string, { host, ...settings }: Settings): Promise<RunningClient> {
  const Analytics = (await classOf(from, 'Analytics')) as new (key: string, settings: object) => Rudderstack
  const client = new Analytics(WRITE_KEY, { dataPlaneUrl: host, ...settings })
  return {
    track: (call) => void client.track(call),
    close: async () => void (await client.flush()),
  }
}

/** The class a module exports by name, or as its default, or inside its default (CommonJS seen from ESM). */
async function classOf(from: string, name: string): Promise<unknown> {
  const module: unknown = await import(from)
  const fallback = memberOf(module, 'default')
  const found = [memberOf(module, name), memberOf(fallback, name), fallback].find((value) => typeof value === 'function')
  if (!found) throw new Error(`${from} exports no ${name}`)
  return found
}

function memberOf(value: unknown, name: string): unknown {
  return (typeof value === 'object' || typeof value === 'function') && value !== null ? Reflect.get(value, name) : undefined
}
