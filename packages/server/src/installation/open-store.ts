// Opens the store from the settings, and reports problems in words. Only this file and maintenance.ts refer to the store adapters;
// nothing else may know which of them is used. Credentials are never quoted.

import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { VERSION } from '../api/version.ts'
import type { Config } from '../config.ts'
import type { Log } from '../logging/log.ts'
import { keyProblem } from '../secrets/key-strength.ts'
import { createSecretBox, SecretBoxError } from '../secrets/secret-box.ts'
import { KeyFileProblem, openWithKeyFile } from '../secrets/secret-key-file.ts'
import { AddressProblem, describeAddress, parsePostgresAddress } from '../store/postgres/session/address.ts'
import { StoreProblem } from '../store/sqlite/schema/database.ts'
import { createSqliteStore, type SqliteStore } from '../store/sqlite/store.ts'
import { createBackups } from '../store/sqlite/threads/backups.ts'
import { type Backups, type Store, StoreUnavailable } from '../store/store.ts'
import type { Clock } from '../timing/clock.ts'

/** The service cannot start, for a reason that a person can fix. */
export class StartProblem extends Error {
  override name = 'StartProblem'
}

export { StoreProblem }

export interface OpenedStore {
  store: Store & {
    /** The start of schedule time; see clock.ts. */
    scheduleStartMs: number
    useClock(clock: Clock): void
  }
  /** The path of a SQLite store; null with PostgreSQL. */
  path: string | null
  /** The address of the store for people: a path, or hosts and database without credentials. */
  place: string
  /** The path of the file with the secret key; null if the key is in the environment. */
  keyPath: string | null
  /** Null with PostgreSQL, which has its own backup tools. */
  backups: Backups | null
  /** The name of this node. */
  nodeName: string
}

export interface OpenOptions {
  log: Pick<Log, 'info' | 'warn' | 'error'>
  onState: (problem: string | null) => void
  onCommit: (commitMs: number, commands: number) => void
  /** With PostgreSQL: called for every round trip. */
  onRoundTrip?: () => void
  /** How long to wait for a database that does not respond at startup. */
  waitMs?: number
  /** Aborts the wait. */
  stopping?: AbortSignal | undefined
  /** Distinguishes the processes on one port. */
  processIndex?: number | undefined
}

/** A database that is started together with the nodes needs about this long, including recovery after a crash. */
const WAIT_MS = 60_000
const RETRY_EVERY_MS = 1_000

/** SQLSTATE codes for wrong credentials, a missing database and missing privileges, which waiting does not fix. */
const PERMANENT_ERRORS = new Set(['28000', '28P01', '3D000', '42501'])

export async function openStore(config: Config, options: OpenOptions): Promise<OpenedStore> {
  const weak = config.secretKey === null ? null : keyProblem('SWITCHYARD_SECRET_KEY', config.secretKey)
  if (weak !== null)
    throw new StartProblem(
      `${weak} If the store is already encrypted with the short key: keep it in SWITCHYARD_SECRET_KEY, set SWITCHYARD_NEW_SECRET_KEY to the new key, run \`switchyard rotate-key\` while no node is running, and then start the service with the new key.`,
    )
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
  { secretKey, retentionDays, quarantineDays, port }: Config,
  { onState, onCommit }: OpenOptions,
): Promise<OpenedStore> {
  const open = (key: string): Promise<SqliteStore> =>
    createSqliteStore({ path, secretBox: createSecretBox(key), retentionDays, quarantineDays: quarantineDays || null, onState, onCommit })
  const store = await (secretKey === null ? openWithKeyFile(path, open) : open(secretKey))
  const keyPath = secretKey === null ? resolve(`${path}.key`) : null
  return { store, path: resolve(path), place: resolve(path), keyPath, backups: createBackups({ path }), nodeName: nodeNameOf(port) }
}

async function openServer(url: string, config: Config, options: OpenOptions): Promise<OpenedStore> {
  const { secretKey, retentionDays, port } = config
  const quarantineDays = config.quarantineDays || null
  const place = describeAddress(parsePostgresAddress(url))
  if (secretKey === null) {
    throw new StartProblem(
      'With PostgreSQL, SWITCHYARD_SECRET_KEY is required: the key that encrypts stored secrets, the same on every node. ' +
        'Generate one with `switchyard rotate-key --generate` or `openssl rand -base64 32`, and keep it with your other secrets.',
    )
  }
  // Imported only here, so that an installation with SQLite does not load the PostgreSQL driver.
  const [{ createPostgresStore }, { SchemaProblem }] = await Promise.all([
    import('../store/postgres/store.ts'),
    import('../store/postgres/schema/migrate.ts'),
  ])
  const { onState, onCommit, onRoundTrip = () => {} } = options
  const onBackgroundError = (err: unknown): void => options.log.error({ err }, 'a background task failed and will be retried')
  const secretBox = createSecretBox(secretKey)
  const nodeName = nodeNameOf(port, options.processIndex)
  const open = () =>
    createPostgresStore({
      url,
      secretBox,
      retentionDays,
      quarantineDays,
      nodeName,
      version: VERSION,
      onState,
      onCommit,
      onRoundTrip,
      onBackgroundError,
    })
  try {
    const store = await retryWhileUnavailable(open, place, options)
    return { store, path: null, place, keyPath: null, backups: null, nodeName }
  } catch (error) {
    if (error instanceof StoreUnavailable) throw new StartProblem(`Cannot use the store at ${place}: ${error.message}.`, { cause: error })
    if (error instanceof SchemaProblem) throw new StartProblem(error.message, { cause: error })
    throw serverProblem(error, place)
  }
}

/** The port distinguishes several nodes on one machine, and the index those on one port. */
function nodeNameOf(port: number, index?: number): string {
  return `${hostname()}:${port === 0 ? process.pid : port}${index === undefined ? '' : `#${index}`}`
}

/** Compose and Kubernetes start the database and the nodes at the same time. A node that is ready first waits, and logs this once. */
export async function retryWhileUnavailable<T>(
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
      if (!(error instanceof StoreUnavailable) || !isTemporary(error) || leftMs <= 0) throw error
      if (nth === 1)
        log.warn(
          { store: place, problem: error.message },
          `the store does not respond yet: retrying for up to ${Math.round(waitMs / 1_000)} s`,
        )
      await sleep(Math.min(RETRY_EVERY_MS, leftMs), stopping)
    }
  }
}

/** Returns false if every host reports an error that only a person can fix, such as a wrong password or a missing database. */
function isTemporary({ cause }: Error): boolean {
  const errors: readonly unknown[] = cause instanceof AggregateError ? cause.errors : cause === undefined ? [] : [cause]
  return errors.length === 0 || !errors.every((error) => PERMANENT_ERRORS.has((error as { code?: string }).code ?? ''))
}

/** Converts an error of the server, such as a missing privilege to create the schema, to StartProblem. Returns other errors unchanged. */
function serverProblem(error: unknown, place: string): unknown {
  const { severity, message } = error as { severity?: string; message: string }
  return severity === undefined ? error : new StartProblem(`Cannot open the store at ${place}: ${message}.`, { cause: error })
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
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
