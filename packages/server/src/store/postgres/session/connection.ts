// One connection to the server that accepts writes. Every wait on it has a timeout: if the network drops packets, neither an answer nor an
// error arrives, so this side closes the connection and treats the outcome of its statement as unknown.
// No retries and no pooling here: see database.ts.

import { Socket } from 'node:net'
import pg from 'pg'
import { StoreUnavailable } from '../../store.ts'
import type { PostgresAddress } from './address.ts'

export const SCHEMA = 'switchyard'

/** A statement with a name is parsed and planned once per connection. */
export interface Statement {
  name?: string
  text: string
}

export type Value = string | number | boolean | null | Buffer | bigint | readonly (string | number | boolean | null)[]

export interface Rows<T> {
  rows: T[]
  /** The number of rows that were changed or returned. */
  count: number
}

/** The database cannot be used at the moment. */
export class PostgresUnavailable extends StoreUnavailable {
  /** Whether the statement may have been committed anyway: the connection was lost before the server answered. */
  readonly mayHaveCommitted: boolean

  constructor(message: string, mayHaveCommitted: boolean, options?: ErrorOptions) {
    super(message, options)
    this.mayHaveCommitted = mayHaveCommitted
  }
}

/** SQLSTATE classes and codes that describe the state of the server, not an error in the statement. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58', 'F0'])
const UNAVAILABLE_CODES = new Set([
  '25006', // read-only: the server is no longer the primary
  '55P03', // lock timeout
  '28000',
  '28P01', // the password is no longer accepted
  '3D000', // the database is gone
])
const CONFLICT_CODES = new Set(['40001', '40P01'])

/** Parses a 64-bit integer. Row ids exceed the safe integers of JavaScript and stay text; everything else becomes a number. */
function parseInt8(text: string): number | string {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}

const INT8 = 20
const INT8_ARRAY = 1016
const types = new pg.TypeOverrides()
types.setTypeParser(INT8, parseInt8)
types.setTypeParser(INT8_ARRAY, (text: string) => (text === '{}' ? [] : text.slice(1, -1).split(',').map(parseInt8)))

const SETTINGS = [`search_path=${SCHEMA}`, 'jit=off', 'synchronous_commit=on', 'idle_in_transaction_session_timeout=15000', 'timezone=UTC']

export interface ConnectOptions {
  address: PostgresAddress
  connectMs: number
  /** The statement timeout on the server. */
  statementMs: number
  /** Additional session settings. */
  settings?: readonly string[]
}

export class Connection {
  readonly #client: pg.Client
  readonly #socket: Socket
  readonly #statementMs: number
  #gone: string | null = null
  /** Whether the current statement committed without the confirmation of the synchronous standby. */
  #unreplicated = false
  onNotification: ((channel: string, payload: string) => void) | null = null
  onGone: (() => void) | null = null

  private constructor(client: pg.Client, socket: Socket, statementMs: number) {
    this.#client = client
    this.#socket = socket
    this.#statementMs = statementMs
    client.on('error', (error) => this.#end(error.message))
    client.on('end', () => this.#end('the connection was closed'))
    client.on('notice', ({ message, routine }) => {
      // The wait for the standby was cancelled: the transaction is committed here, but would be lost with this server. The message may be
      // localized, so the routine is checked too.
      if (routine === 'SyncRepWaitForLSN' || message?.includes('synchronous replication')) this.#unreplicated = true
    })
    client.on('notification', ({ channel, payload = '' }) => this.onNotification?.(channel, payload))
  }

  /** Connects to the first host in the list that accepts writes. */
  static async open(options: ConnectOptions): Promise<Connection> {
    const problems: string[] = []
    const errors: unknown[] = []
    for (const { host, port } of options.address.hosts) {
      try {
        return await Connection.#openOne(host, port, options)
      } catch (error) {
        errors.push(error)
        problems.push(`${host}:${port}: ${(error as Error).message || ((error as { code?: string }).code ?? 'no answer')}`)
      }
    }
    throw new PostgresUnavailable(`Cannot connect to PostgreSQL (${problems.join('; ')})`, false, { cause: new AggregateError(errors) })
  }

  static async #openOne(
    host: string,
    port: number,
    { address, connectMs, statementMs, settings = [] }: ConnectOptions,
  ): Promise<Connection> {
    const socket = new Socket()
    const client = new pg.Client({
      host,
      port,
      database: address.database,
      user: address.user,
      password: address.password,
      ssl: address.ssl,
      stream: () => socket,
      types,
      keepAlive: true,
      keepAliveInitialDelayMillis: 5_000,
      application_name: address.applicationName,
      options: [...SETTINGS, ...settings, `statement_timeout=${statementMs}`].map((setting) => `-c ${setting}`).join(' '),
    })
    const connection = new Connection(client, socket, statementMs)
    let timer: NodeJS.Timeout | undefined
    try {
      await Promise.race([
        client.connect(),
        new Promise<never>((_, reject) => {
          timer = setTimeout(() => reject(new Error(`no answer within ${connectMs} ms`)), connectMs)
        }),
      ])
      clearTimeout(timer)
      const { rows } = await connection.query<{ standby: boolean }>(
        "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean AS standby",
        [],
        connectMs,
      )
      if (rows[0]?.standby) throw new Error('server is read-only (a standby, or default_transaction_read_only is on)')
      // A server that is shutting down may say so in the same packet as the answer.
      if (connection.#gone !== null) throw new Error(connection.#gone)
      return connection
    } catch (error) {
      connection.destroy()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  get isGone(): boolean {
    return this.#gone !== null
  }

  /** Rejects with PostgresUnavailable if the server or the network is at fault, otherwise with the server's error. */
  async query<T>(statement: string | Statement, values: readonly Value[] = [], deadlineMs = this.#statementMs + 2_000): Promise<Rows<T>> {
    if (this.#gone !== null) throw new PostgresUnavailable(this.#gone, false)
    this.#unreplicated = false
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        const problem = `PostgreSQL did not answer within ${deadlineMs} ms`
        this.#end(problem)
        reject(new PostgresUnavailable(problem, true))
      }, deadlineMs)
    })
    try {
      const asked = typeof statement === 'string' ? { text: statement } : statement
      const result = await Promise.race([this.#client.query({ ...asked, values: values as unknown[] }), late])
      if (this.#unreplicated) throw new PostgresUnavailable('the synchronous standby did not confirm a commit', true)
      return { rows: result.rows as T[], count: result.rowCount ?? 0 }
    } catch (error) {
      throw this.#translate(error as Error & { code?: string; severity?: string })
    } finally {
      clearTimeout(timer)
    }
  }

  destroy(): void {
    this.#end('the connection was closed')
  }

  #translate(error: Error & { code?: string; severity?: string }): Error {
    if (error instanceof PostgresUnavailable) return error
    // Errors that the server sends have a severity; without one, the connection broke.
    if (error.severity === undefined) {
      this.#end(error.message)
      return new PostgresUnavailable(error.message || 'the connection was lost', true, { cause: error })
    }
    const code = error.code ?? ''
    // A server that shuts down may report that in the middle of a commit. Whatever the code, a fatal error closes the connection.
    const isFatal = error.severity === 'FATAL' || error.severity === 'PANIC'
    if (!isFatal && !UNAVAILABLE_CLASSES.has(code.slice(0, 2)) && !UNAVAILABLE_CODES.has(code)) return error
    // 25006: the server is no longer the primary, so the connection is not reused.
    if (isFatal || code === '25006') this.#end(error.message)
    return new PostgresUnavailable(error.message, isFatal, { cause: error })
  }

  #end(problem: string): void {
    if (this.#gone !== null) return
    this.#gone = problem
    this.#socket.destroy()
    // Otherwise queries in the client's own queue would wait forever.
    void this.#client.end().catch(() => {})
    this.onGone?.()
  }
}

/** Whether the error is a serialization conflict or a deadlock, after which the transaction must be retried. */
export function isConflict(error: unknown): boolean {
  return CONFLICT_CODES.has((error as { code?: string }).code ?? '')
}

const LOCK_NOT_AVAILABLE = '55P03'

/**
 * A lock for which every other statement would have to queue is requested with a short timeout and retried later. Otherwise a long read, such as
 * a backup, would block accepting while the lock request waits.
 */
export function isLockTimeout(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code === LOCK_NOT_AVAILABLE || cause?.code === LOCK_NOT_AVAILABLE
}
