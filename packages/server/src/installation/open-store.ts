// Opens the store that the settings name, whichever it is, and says in words what keeps it from being opened. Beside
// maintenance.ts the only file that names an adapter: nothing outside may know which of them runs. A login is never quoted.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import type { Config } from '../config.ts'
import type { Log } from '../logging/log.ts'
import { createSecretBox, SecretBoxError } from '../secrets/secret-box.ts'
import { KeyFileProblem, openWithKeyFile } from '../secrets/secret-key-file.ts'
import { AddressProblem, describeAddress, parsePostgresAddress } from '../store/postgres/session/address.ts'
import { StoreProblem } from '../store/sqlite/schema/database.ts'
import { createSqliteStore, type SqliteStore } from '../store/sqlite/store.ts'
import { createBackups } from '../store/sqlite/threads/backups.ts'
import { type Backups, type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'
import { VERSION } from '../version.ts'

/** What cannot be started for a reason that a person can mend. */
export class StartProblem extends Error {
  override name = 'StartProblem'
}

export { StoreProblem }

export interface OpenedStore {
  store: Store & {
    /** Where schedule time starts: see clock.ts. */
    scheduleStartMs: number
    useClock(clock: Clock): void
  }
  /** Of a store that is a file. */
  path: string | null
  /** Where it is, as people read it: a path, or hosts and database without the login. */
  place: string
  /** Where the key that opens stored secrets is; null: in the environment. */
  keyPath: string | null
  /** Null where the store is backed up with tools of its own. */
  backups: Backups | null
  /** What this process is called among the nodes. */
  nodeName: string
}

export interface OpenOptions {
  log: Pick<Log, 'info' | 'warn' | 'error'>
  onState: (problem: string | null) => void
  onCommit: (commitMs: number, commands: number) => void
  /** Of a store that is a server: told of every statement. */
  onTrip?: () => void
  /** How long a database that does not answer yet is waited for. */
  waitMs?: number
  /** Ends the waiting. */
  stopping?: AbortSignal | undefined
}

/** A database that is started together with its nodes needs about this long, recovery after a crash included. */
const WAIT_MS = 60_000
const AGAIN_MS = 1_000

/** What the server says of the login or the database: waiting does not mend it. */
const NOT_MENDED_BY_WAITING = new Set(['28000', '28P01', '3D000', '42501'])

export async function openStore(config: Config, options: OpenOptions): Promise<OpenedStore> {
  try {
    return await (config.store.kind === 'sqlite'
      ? openFile(config.store.path, config, options)
      : openServer(config.store.url, config, options))
  } catch (error) {
    if (error instanceof SecretBoxError || error instanceof KeyFileProblem || error instanceof AddressProblem)
      throw new StartProblem(error.message, { cause: error })
    throw error
  }
}

async function openFile(
  path: string,
  { secretKey, retentionDays, port }: Config,
  { onState, onCommit }: OpenOptions,
): Promise<OpenedStore> {
  const open = (key: string): Promise<SqliteStore> =>
    createSqliteStore({ path, secretBox: createSecretBox(key), retentionDays, onState, onCommit })
  const store = await (secretKey === null ? openWithKeyFile(path, open) : open(secretKey))
  const keyPath = secretKey === null ? resolve(`${path}.key`) : null
  return { store, path: resolve(path), place: resolve(path), keyPath, backups: createBackups({ path }), nodeName: nodeNameOf(port) }
}

async function openServer(url: string, config: Config, options: OpenOptions): Promise<OpenedStore> {
  const { secretKey, retentionDays, port } = config
  const place = describeAddress(parsePostgresAddress(url))
  if (secretKey === null) {
    throw new StartProblem(
      'With PostgreSQL, SWITCHYARD_SECRET_KEY is required: the key that encrypts stored secrets, the same on every node. ' +
        'Generate one with `switchyard rotate-key --generate` or `openssl rand -base64 32`, and keep it with your other secrets.',
    )
  }
  // Loaded only now: an installation on SQLite does not read the driver.
  const [{ createPostgresStore }, { SchemaProblem }] = await Promise.all([
    import('../store/postgres/store.ts'),
    import('../store/postgres/schema/migrate.ts'),
  ])
  const { onState, onCommit, onTrip = () => {} } = options
  const onTrouble = (err: unknown): void => options.log.error({ err }, 'a background task failed and will be retried')
  const secretBox = createSecretBox(secretKey)
  const nodeName = nodeNameOf(port)
  const open = () =>
    createPostgresStore({ url, secretBox, retentionDays, nodeName, version: VERSION, onState, onCommit, onTrip, onTrouble })
  try {
    const store = await waitedFor(open, place, options)
    return { store, path: null, place, keyPath: null, backups: null, nodeName }
  } catch (error) {
    if (error instanceof StoreUnavailable) throw new StartProblem(`Cannot use the store at ${place}: ${error.message}.`, { cause: error })
    if (error instanceof SchemaProblem) throw new StartProblem(error.message, { cause: error })
    throw serverProblem(error, place)
  }
}

/** Where several run on one machine, the port tells them apart. */
function nodeNameOf(port: number): string {
  return `${hostname()}:${port === 0 ? process.pid : port}`
}

/** Compose and Kubernetes start the database and the nodes at once: a node that comes first waits, and says so once. */
export async function waitedFor<T>(
  open: () => Promise<T>,
  place: string,
  options: Pick<OpenOptions, 'log' | 'waitMs' | 'stopping'>,
): Promise<T> {
  const { log, waitMs = WAIT_MS, stopping } = options
  const untilMs = performance.now() + waitMs
  for (let nth = 1; ; nth++) {
    try {
      const opened = await open()
      if (nth > 1) log.info({ store: place }, 'connected to the store')
      return opened
    } catch (error) {
      const leftMs = untilMs - performance.now()
      if (!(error instanceof StoreUnavailable) || !isMendedByWaiting(error) || leftMs <= 0) throw error
      if (nth === 1)
        log.warn(
          { store: place, problem: error.message },
          `the store does not respond yet: retrying for up to ${Math.round(waitMs / 1_000)} s`,
        )
      await pause(Math.min(AGAIN_MS, leftMs), stopping)
    }
  }
}

/** False where every host has an answer that only a person can change: a wrong password, a database that there is not. */
function isMendedByWaiting({ cause }: Error): boolean {
  const errors: readonly unknown[] = cause instanceof AggregateError ? cause.errors : cause === undefined ? [] : [cause]
  return errors.length === 0 || !errors.every((error) => NOT_MENDED_BY_WAITING.has((error as { code?: string }).code ?? ''))
}

/** What the server has against the schema being made or used, such as a role that may not create one. */
function serverProblem(error: unknown, place: string): unknown {
  const { severity, message } = error as { severity?: string; message: string }
  return severity === undefined ? error : new StartProblem(`Cannot open the store at ${place}: ${message}.`, { cause: error })
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(new StartProblem('Stopped while waiting for the store.'))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}
