// Diagnostics: checks of the installation from the point of view of the service. Each check has a deadline, and its result has a sentence and
// advice. Nothing is changed, and no request is sent to a receiver. Checks that only the caller can make, such as comparing its own clock,
// are made by the caller.

import { isoTime } from '@switchyard/protocol'
import { array, integer, nullable, object, oneOf, string, time } from '../../api/schema.ts'
import { kindOf } from '../../destinations/kinds.ts'
import type { Destination, Store, StoreInspection } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { checkDestination, createUrlChecks } from './diagnose-destinations.ts'
import { checkDisk, checkSecretKey } from './diagnose-files.ts'
import { createIntegrationChecks } from './diagnose-integrations.ts'
import { checkSingleSignOn } from './diagnose-login.ts'
import { checkNodes, checkServer } from './diagnose-server.ts'
import { checkInspection, checkRetention } from './diagnose-store.ts'
import type { Finding } from './finding.ts'

export interface Check extends Finding {
  name: string
  destinationId: string | null
  url: string | null
  ms: number
}

const CHECK = object({
  name: string({ description: 'The name of the check. Names do not change.' }),
  state: oneOf(['good', 'warning', 'bad', 'unknown'], { description: 'The result. `unknown` means that the check failed or timed out.' }),
  message: string({ description: 'The result as a sentence.' }),
  advice: nullable(string({ description: 'What to do next; null if nothing needs to be done.' })),
  destinationId: nullable(string()),
  url: nullable(string()),
  ms: integer({ description: 'The duration of the check in milliseconds.' }),
})
const DIAGNOSTICS = object({
  at: time({ description: 'The wall clock time of the service.' }),
  scheduleAt: time({
    description:
      'The schedule time, which retries use. It does not follow changes of the wall clock, and may differ from it: at most one hour of each downtime counts.',
  }),
  version: nullable(string()),
  startedAt: nullable(time()),
  storePath: nullable(string({ description: 'The path of the store; null if it is not a file.' })),
  store: nullable(string({ description: 'The location of the store: a path, or hosts and database.' })),
  secretKeyPath: nullable(string({ description: 'The file of the encryption key; null if the key is in the environment.' })),
  checks: array(CHECK),
})

const COMMIT_DEADLINE_MS = 10_000
/** Shorter than the time for which the `doctor` command waits for a response. */
const INSPECT_DEADLINE_MS = 60_000
const URLS_DEADLINE_MS = 20_000
const INTEGRATIONS_DEADLINE_MS = 40_000
/** If the wall clock differs by more than this from its value at the start plus the time that has passed since, it has jumped. */
const JUMP_MS = 60_000

export function diagnosticRoutes(parts: ControlParts): Route[] {
  const { store, clock, operatorTools } = parts
  let inspecting: Promise<StoreInspection | undefined> | undefined
  /** An inspection reads the whole store, so concurrent requests share one. */
  const inspect = (): Promise<StoreInspection | undefined> =>
    (inspecting ??= store.books.inspect(INSPECT_DEADLINE_MS).finally(() => {
      inspecting = undefined
    }))

  return [
    route('GET', '/diagnostics', {
      summary: 'Run diagnostics',
      access: { role: 'admin', sources: 'all' },
      description:
        'Checks the store, ledger, disk, clock and encryption key, whether each webhook can be reached, and whether each integration can run. No request is sent to a destination: the service only connects to a webhook, and only loads the code of an integration.',
      answer: DIAGNOSTICS,
      async handle() {
        const destinations = [...store.configuration().destinations.values()]
        const checksOf = await destinationChecks(parts)
        const { singleSignOn } = parts.access
        const [commit, stored, server, key, login, ...perDestination] = await Promise.all([
          timed('store_writable', () => checkCommit(store)),
          checkStore(parts, inspect),
          checkServerAndNodes(store),
          operatorTools === undefined ? null : timed('secret_key', () => checkSecretKey(operatorTools.installation)),
          singleSignOn === null ? null : timed('single_sign_on', () => checkSingleSignOn(singleSignOn)),
          ...destinations.map(checksOf),
        ])
        const { installation } = operatorTools ?? {}
        return {
          at: isoTime(clock.wallMs()),
          scheduleAt: isoTime(clock.scheduleMs()),
          version: installation?.version ?? null,
          startedAt: installation === undefined ? null : isoTime(installation.startedAtMs),
          storePath: installation?.storePath ?? null,
          store: installation?.storePlace ?? null,
          secretKeyPath: installation?.secretKey.from === 'file' ? installation.secretKey.path : null,
          checks: [
            commit,
            ...stored,
            ...server,
            await timed('clock', () => checkClock(clock)),
            ...(key === null ? [] : [key]),
            ...(login === null ? [] : [login]),
            ...perDestination.flat(),
          ],
        }
      },
    }),
  ]
}

/** The checks of one destination. Connections and integrations that are tried share a deadline. */
async function destinationChecks({
  store,
  clock,
  delivery,
  catalog,
  operatorTools,
}: ControlParts): Promise<(destination: Destination) => Promise<Check[]>> {
  const ledger = await store.books.ledger()
  const dial = createUrlChecks(operatorTools?.dial, URLS_DEADLINE_MS)
  const integration = createIntegrationChecks({
    catalog,
    preview: (destination, messages) => delivery.preview(destination, messages),
    deadlineMs: INTEGRATIONS_DEADLINE_MS,
    nowMs: () => clock.wallMs(),
  })
  return async (destination) => {
    const { id, enabled, timeoutMs } = destination
    const pending = ledger.find((row) => row.destinationId === id)?.pending ?? 0
    const oldestAtMs = pending === 0 ? null : ((await store.books.oldestPendingOf(id))?.atMs ?? null)
    const health = await timed(
      'destination',
      () => checkDestination(destination, delivery.health(id), pending, oldestAtMs, clock.wallMs()),
      id,
    )
    if (!enabled) return [health]
    const kind = kindOf(destination)
    if (kind.slug(destination) !== null) return [health, await timed('integration', () => integration(destination), id)]
    if (kind.requests === null || kind.carrier !== null) return [health]
    const { tls } = kind.requests.credentials(destination)
    const dialled = kind.targets(destination).map((url) => timed('url', () => dial(url, timeoutMs, tls), id, url))
    return [health, ...(await Promise.all(dialled))]
  }
}

async function checkStore(
  { store, clock, operatorTools }: ControlParts,
  inspect: () => Promise<StoreInspection | undefined>,
): Promise<Check[]> {
  const startedAtMs = performance.now()
  const installation = operatorTools?.installation
  try {
    const inspection = await inspect()
    const ms = Math.round(performance.now() - startedAtMs)
    const checks = checkInspection(inspection, [...store.configuration().destinations.values()], store.serverFacts !== undefined)
    const retention = installation === undefined ? [] : [checkRetention(inspection, installation.retentionDays, clock.wallMs())]
    const disk =
      installation?.storePath == null
        ? []
        : [await timed('disk', () => checkDisk(installation.storePath as string, inspection?.storedBytes ?? null))]
    return [...[...checks, ...retention].map(({ name, ...finding }) => checkOf(name, ms, finding)), ...disk]
  } catch (error) {
    const message = `The store could not be read: ${(error as Error).message}.`
    return [
      {
        name: 'store_integrity',
        state: 'bad',
        message,
        advice: 'Check the disk, and have a backup ready.',
        destinationId: null,
        url: null,
        ms: 0,
      },
    ]
  }
}

async function checkServerAndNodes(store: Store): Promise<Check[]> {
  const { nodes } = store
  const startedAtMs = performance.now()
  const alive = nodes === undefined ? [] : [checkNodes(nodes.nodes)]
  // If the server cannot be queried, the check `store_writable` reports it.
  const facts = store.serverFacts === undefined ? [] : await store.serverFacts().then(checkServer, () => [])
  const ms = Math.round(performance.now() - startedAtMs)
  return [...alive, ...facts].map(({ name, ...finding }) => checkOf(name, ms, finding))
}

async function checkCommit(store: Store): Promise<Finding> {
  const startedAtMs = performance.now()
  const late = { ok: false, message: `no commit finished within ${COMMIT_DEADLINE_MS / 1_000} s` } as const
  const result = await withTimeout(COMMIT_DEADLINE_MS, store.check(), late)
  const ms = Math.round(performance.now() - startedAtMs)
  if (!result.ok)
    return {
      state: 'bad',
      message: `The store cannot be written: ${result.message}.`,
      advice: 'Check whether the disk is full or read-only.',
    }
  if (ms > 1_000)
    return {
      state: 'warning',
      message: `A commit took ${ms} ms.`,
      advice: 'The disk is slow or busy. Every request with messages waits for a commit.',
    }
  return { state: 'good', message: `A commit took ${ms} ms, including the sync to disk.`, advice: null }
}

function checkClock(clock: Clock): Finding {
  const ahead = clock.wallMs() - (performance.timeOrigin + performance.now())
  if (Math.abs(ahead) <= JUMP_MS)
    return { state: 'good', message: 'The wall clock has not jumped since the service started.', advice: null }
  return {
    state: 'warning',
    message:
      ahead > 0
        ? `The wall clock was set ahead by ${Math.round(ahead / 1_000)} s after the service started, or the machine was suspended for that long.`
        : `The wall clock was set back by ${Math.round(-ahead / 1_000)} s after the service started.`,
    advice: 'Retries follow schedule time and are not affected. Synchronize the clock with NTP.',
  }
}

async function timed(
  name: string,
  check: () => Finding | Promise<Finding>,
  destinationId: string | null = null,
  url: string | null = null,
): Promise<Check> {
  const startedAtMs = performance.now()
  const finding = await check()
  return checkOf(name, Math.round(performance.now() - startedAtMs), finding, destinationId, url)
}

function checkOf(
  name: string,
  ms: number,
  { state, message, advice }: Finding,
  destinationId: string | null = null,
  url: string | null = null,
): Check {
  return { name, state, message, advice, destinationId, url, ms }
}
