// One connection to the server that may be written to. Every wait on it has an end: a network that swallows packets
// neither answers nor refuses, so the connection is given up from this side, and what was asked on it counts as not known.
// No retries and no pooling here: see database.ts.

import { Socket } from 'node:net'
import pg from 'pg'
import { StoreUnavailable } from '../../store.ts'
import type { PostgresAddress } from './address.ts'

export const SCHEMA = 'switchyard'

/** What a statement is asked with: by name, it is parsed and planned once per connection. */
export interface Statement {
  name?: string
  text: string
}

export type Value = string | number | boolean | null | Buffer | bigint | readonly (string | number | boolean | null)[]

export interface Rows<T> {
  rows: T[]
  /** Rows that were changed, or given. */
  count: number
}

/** The store cannot be used now. */
export class PostgresUnavailable extends StoreUnavailable {
  /** The server may have done it all the same: the connection was lost before it said. */
  readonly doubtful: boolean

  constructor(message: string, doubtful: boolean, options?: ErrorOptions) {
    super(message, options)
    this.doubtful = doubtful
  }
}

/** Classes and codes of SQLSTATE that say something about the server and nothing about the statement. */
const UNAVAILABLE_CLASSES = new Set(['08', '53', '57', '58', 'F0'])
const UNAVAILABLE_CODES = new Set([
  '25006', // read-only: this was the primary
  '55P03', // a lock was not to be had in time
  '28000',
  '28P01', // the password is not taken any more
  '3D000', // the database is gone
])
const AGAIN_CODES = new Set(['40001', '40P01'])

/** Integers of 64 bits: names of rows are larger than a double holds and stay text, everything else is a number. */
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
  /** How long a statement may take on the server. */
  statementMs: number
  /** More settings of the session. */
  settings?: readonly string[]
}

export class Connection {
  readonly #client: pg.Client
  readonly #socket: Socket
  readonly #statementMs: number
  #gone: string | null = null
  /** A commit that the standby was not waited for. */
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
      // Somebody cancelled the wait for the standby: the transaction is here, and may not survive this server. The message may be
      // in another language.
      if (routine === 'SyncRepWaitForLSN' || message?.includes('synchronous replication')) this.#unreplicated = true
    })
    client.on('notification', ({ channel, payload = '' }) => this.onNotification?.(channel, payload))
  }

  /** The first of the hosts, in their order, that can be written to. */
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
    throw new PostgresUnavailable(`PostgreSQL is not to be reached (${problems.join('; ')})`, false, { cause: new AggregateError(errors) })
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
      if (rows[0]?.standby) throw new Error('it can only be read')
      // A server that stops may say so in the packet that has the answer.
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

  /** Rejects with PostgresUnavailable for what the server or the network is to blame for, otherwise with the server's error. */
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
      if (this.#unreplicated) throw new PostgresUnavailable('a commit was not confirmed by the standby', true)
      return { rows: result.rows as T[], count: result.rowCount ?? 0 }
    } catch (error) {
      throw this.#told(error as Error & { code?: string; severity?: string })
    } finally {
      clearTimeout(timer)
    }
  }

  destroy(): void {
    this.#end('the connection was closed')
  }

  #told(error: Error & { code?: string; severity?: string }): Error {
    if (error instanceof PostgresUnavailable) return error
    // An error of the server has a severity; without one, the connection broke.
    if (error.severity === undefined) {
      this.#end(error.message)
      return new PostgresUnavailable(error.message || 'the connection was lost', true, { cause: error })
    }
    const code = error.code ?? ''
    // A server that stops says so in the middle of a commit, too. Whatever its code, after it there is no connection any more.
    const isFatal = error.severity === 'FATAL' || error.severity === 'PANIC'
    if (!isFatal && !UNAVAILABLE_CLASSES.has(code.slice(0, 2)) && !UNAVAILABLE_CODES.has(code)) return error
    // What was the primary is not asked again.
    if (isFatal || code === '25006') this.#end(error.message)
    return new PostgresUnavailable(error.message, isFatal, { cause: error })
  }

  #end(problem: string): void {
    if (this.#gone !== null) return
    this.#gone = problem
    this.#socket.destroy()
    // Its own queue would wait for ever.
    void this.#client.end().catch(() => {})
    this.onGone?.()
  }
}

/** Two transactions stood in each other's way, and one of them has to be made again. */
export function isWorthAgain(error: unknown): boolean {
  return AGAIN_CODES.has((error as { code?: string }).code ?? '')
}
