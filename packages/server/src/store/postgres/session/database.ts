// A connection pool. Connections are opened when needed, kept, and replaced when they break. Waiting for one has a
// timeout. A transaction that hits a serialization conflict or a deadlock is retried from the beginning.

import type { PostgresAddress } from './address.ts'
import { Connection, isConflict, PostgresUnavailable, type Rows, type Statement, type Value } from './connection.ts'

export interface DatabaseOptions {
  address: PostgresAddress
  connections: number
  connectMs?: number
  statementMs?: number
  /** Additional session settings. */
  settings?: readonly string[]
  /** Called for every statement, to count round trips. */
  onRoundTrip?: (() => void) | undefined
}

/** Runs a statement, usually inside a transaction. */
export type Ask = <T = Record<string, unknown>>(text: string | Statement, values?: readonly Value[]) => Promise<Rows<T>>

/** Like Ask, but returns only the rows. */
export type AskRows = <T>(text: string | Statement, values?: readonly Value[]) => Promise<T[]>

export function rowsOf(ask: Ask): AskRows {
  return async <T>(text: string | Statement, values?: readonly Value[]) => (await ask<T>(text, values)).rows
}

/**
 * Runs queries that must be answered from an index. The server's statistics lag behind a table that fills and empties within
 * minutes, and a plan based on them may read a million rows to return one page.
 */
export function withIndexScansOnly<T>(database: Database, work: (ask: Ask) => Promise<T>): Promise<T> {
  return database.transaction(work, { readOnly: true, disabled: ['enable_seqscan', 'enable_bitmapscan', 'enable_sort'] })
}

interface TransactionOptions {
  readOnly?: boolean
  /** Settings that are off during the transaction. They are sent with BEGIN, so that they cost no round trip. */
  disabled?: readonly string[]
  /** A statement without parameters, such as a lock, that is sent with BEGIN. What it returns is ignored. */
  first?: string
}

/** `ask` must use a separate connection. `onStuck` is called if the rollback fails too: then the connection is lost, and the first error says why. */
export async function transact<T>(
  ask: Ask,
  work: () => Promise<T>,
  { begin = 'BEGIN', onStuck = () => {} }: { begin?: string; onStuck?: () => void } = {},
): Promise<T> {
  try {
    await ask(begin)
    const result = await work()
    await ask('COMMIT')
    return result
  } catch (error) {
    await ask('ROLLBACK').catch(onStuck)
    throw error
  }
}

const CONNECT_MS = 3_000
const STATEMENT_MS = 10_000
const TRANSACTION_TRIES = 10
const TOO_MANY_CONNECTIONS = '53300'
/** After the server has rejected a connection because it has too many, wait this long before opening another. */
const FULL_MS = 1_000

interface Waiting {
  resolve: (connection: Connection) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

export class Database {
  readonly #options: Required<Omit<DatabaseOptions, 'onRoundTrip'>>
  readonly #onTrip: () => void
  readonly #idle: Connection[] = []
  #open = 0
  #opening = 0
  readonly #waiting: Waiting[] = []
  #closed = false
  #fullUntil = 0
  /** All open connections, to be destroyed by close(). */
  readonly #all = new Set<Connection>()

  /** Called when an open connection broke. */
  onLost: (() => void) | null = null

  /** The number of statements sent so far. */
  roundTrips = 0

  constructor({ onRoundTrip = () => {}, ...options }: DatabaseOptions) {
    this.#onTrip = onRoundTrip
    this.#options = { connectMs: options.address.connectMs ?? CONNECT_MS, statementMs: STATEMENT_MS, settings: [], ...options }
  }

  /** `query` as an Ask, for functions that can run inside or outside of a transaction. */
  readonly ask: Ask = (text, values) => this.query(text, values)

  /** Runs one statement as its own transaction. */
  query<T = Record<string, unknown>>(text: string | Statement, values: readonly Value[] = [], deadlineMs?: number): Promise<Rows<T>> {
    return this.#with((connection) => this.#ask<T>(connection, text, values, deadlineMs))
  }

  /** Runs `work` in a transaction and retries it after a conflict, so `work` must have no effects outside the database. */
  async transaction<T>(work: (ask: Ask) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    for (let nth = 1; ; nth++) {
      try {
        return await this.#with((connection) => this.#transact(connection, work, options))
      } catch (error) {
        if (!isConflict(error)) throw error
        if (nth === TRANSACTION_TRIES)
          throw new PostgresUnavailable(`gave up after ${TRANSACTION_TRIES} serialization conflicts or deadlocks`, false, { cause: error })
      }
    }
  }

  /** Opens a separate connection, for example to LISTEN or to hold a lock. The caller must destroy it. */
  connect(statementMs = this.#options.statementMs): Promise<Connection> {
    return Connection.open({ ...this.#options, statementMs })
  }

  close(): void {
    this.#closed = true
    for (const { reject, timer } of this.#waiting.splice(0)) {
      clearTimeout(timer)
      reject(new PostgresUnavailable('the store is closed', false))
    }
    for (const connection of this.#all) connection.destroy()
    this.#idle.length = 0
  }

  #transact<T>(connection: Connection, work: (ask: Ask) => Promise<T>, { readOnly, disabled = [], first }: TransactionOptions): Promise<T> {
    const ask: Ask = (text, values = []) => this.#ask(connection, text, values)
    return transact(ask, () => work(ask), {
      begin: [
        readOnly === true ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN',
        ...disabled.map((name) => `SET LOCAL ${name} = off`),
        ...(first === undefined ? [] : [first]),
      ].join('; '),
      // The next user of the connection must not find it inside a transaction.
      onStuck: () => connection.destroy(),
    })
  }

  #ask<T>(connection: Connection, text: string | Statement, values: readonly Value[], deadlineMs?: number): Promise<Rows<T>> {
    this.roundTrips++
    this.#onTrip()
    return connection.query<T>(text, values, deadlineMs)
  }

  async #with<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#take()
    try {
      return await work(connection)
    } finally {
      this.#give(connection)
    }
  }

  #take(): Promise<Connection> {
    if (this.#closed) return Promise.reject(new PostgresUnavailable('the store is closed', false))
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.isGone) return Promise.resolve(idle)
    }
    const { connectMs, statementMs } = this.#options
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        resolve,
        reject,
        timer: setTimeout(() => {
          const at = this.#waiting.indexOf(waiting)
          if (at !== -1) this.#waiting.splice(at, 1)
          reject(new PostgresUnavailable(`no PostgreSQL connection became free within ${connectMs + statementMs} ms`, false))
        }, connectMs + statementMs),
      }
      this.#waiting.push(waiting)
      this.#openIfNeeded()
    })
  }

  #openIfNeeded(): void {
    if (this.#closed || this.#opening >= this.#waiting.length || this.#open >= this.#options.connections) return
    if (this.#open > 0 && performance.now() < this.#fullUntil) return
    this.#open++
    this.#opening++
    Connection.open(this.#options).then(
      (connection) => {
        this.#opening--
        if (this.#closed) return connection.destroy()
        this.#all.add(connection)
        connection.onGone = () => {
          this.#all.delete(connection)
          this.#open--
          this.#openIfNeeded()
          if (!this.#closed) this.onLost?.()
        }
        // It may have been lost before onGone was set.
        if (connection.isGone) connection.onGone()
        else this.#give(connection)
      },
      (error: Error) => {
        this.#opening--
        this.#open--
        if (isFull(error)) this.#fullUntil = performance.now() + FULL_MS
        // Other connections are open, and one of them will become free or break.
        if (isFull(error) && this.#open > 0) return
        // The other waiting callers would fail in the same way, so they are rejected now instead of waiting for their timeouts.
        for (const { reject, timer } of this.#waiting.splice(0)) {
          clearTimeout(timer)
          reject(error)
        }
      },
    )
  }

  #give(connection: Connection): void {
    if (connection.isGone) return
    const next = this.#waiting.shift()
    if (next === undefined) this.#idle.push(connection)
    else {
      clearTimeout(next.timer)
      next.resolve(connection)
    }
    this.#openIfNeeded()
  }
}

function isFull({ cause }: Error): boolean {
  return cause instanceof AggregateError && cause.errors.some((error: { code?: string }) => error.code === TOO_MANY_CONNECTIONS)
}
