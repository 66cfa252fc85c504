// The connections of one node: a few, opened when needed, kept, and replaced when they break. A question waits for one no
// longer than its deadline. A transaction that stood in another's way is made again from its beginning.

import type { PostgresAddress } from './address.ts'
import { Connection, isWorthAgain, PostgresUnavailable, type Rows, type Statement, type Value } from './connection.ts'

export interface DatabaseOptions {
  address: PostgresAddress
  connections: number
  connectMs?: number
  statementMs?: number
  /** More settings of the sessions. */
  settings?: readonly string[]
  /** Told of every statement: what a node's round trips are counted with. */
  onTrip?: (() => void) | undefined
}

/** What a transaction's work asks with. */
export type Ask = <T = Record<string, unknown>>(text: string | Statement, values?: readonly Value[]) => Promise<Rows<T>>

/** Like Ask, but returns only the rows. */
export type AskRows = <T>(text: string | Statement, values?: readonly Value[]) => Promise<T[]>

export function rowsOf(ask: Ask): AskRows {
  return async <T>(text: string | Statement, values?: readonly Value[]) => (await ask<T>(text, values)).rows
}

/**
 * Questions that have to be answered by their indexes. What the server believes of how many rows there are lags behind a table that
 * fills and empties within minutes, and a plan made of it reads a million rows to answer with one page.
 */
export function byIndexes<T>(database: Database, work: (ask: Ask) => Promise<T>): Promise<T> {
  return database.transaction(
    async (ask) => {
      await ask("SELECT set_config(name, 'off', true) FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name")
      return work(ask)
    },
    { readOnly: true },
  )
}

/** `ask` must use a connection of its own. `onStuck` is called if the rollback fails too: then the connection is lost, and the first error says why. */
export async function transact<T>(
  ask: Ask,
  work: () => Promise<T>,
  { begin = 'BEGIN', onStuck = () => {} }: { begin?: string; onStuck?: () => void } = {},
): Promise<T> {
  await ask(begin)
  try {
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
/** A server that has as many connections as it takes is asked for one more after so long. */
const FULL_MS = 1_000

interface Waiting {
  resolve: (connection: Connection) => void
  reject: (error: Error) => void
  timer: NodeJS.Timeout
}

export class Database {
  readonly #options: Required<Omit<DatabaseOptions, 'onTrip'>>
  readonly #onTrip: () => void
  readonly #idle: Connection[] = []
  #open = 0
  #opening = 0
  readonly #waiting: Waiting[] = []
  #closed = false
  #fullUntil = 0
  /** Those in use, to be ended when it is closed. */
  readonly #all = new Set<Connection>()

  /** Statements asked so far. */
  roundTrips = 0

  constructor({ onTrip = () => {}, ...options }: DatabaseOptions) {
    this.#onTrip = onTrip
    this.#options = { connectMs: options.address.connectMs ?? CONNECT_MS, statementMs: STATEMENT_MS, settings: [], ...options }
  }

  /** `query` as an Ask, for functions that can run inside or outside of a transaction. */
  readonly ask: Ask = (text, values) => this.query(text, values)

  /** One statement, which is a transaction of its own. */
  query<T = Record<string, unknown>>(text: string | Statement, values: readonly Value[] = [], deadlineMs?: number): Promise<Rows<T>> {
    return this.#with((connection) => this.#ask<T>(connection, text, values, deadlineMs))
  }

  /** All or nothing, made again when another stood in its way. The work must not act outside the database. */
  async transaction<T>(work: (ask: Ask) => Promise<T>, { readOnly = false }: { readOnly?: boolean } = {}): Promise<T> {
    for (let nth = 1; ; nth++) {
      try {
        return await this.#with((connection) => this.#transact(connection, work, readOnly))
      } catch (error) {
        if (!isWorthAgain(error)) throw error
        if (nth === TRANSACTION_TRIES) throw new PostgresUnavailable('transactions stood in each other’s way', false, { cause: error })
      }
    }
  }

  /** A connection of one's own, to listen or to lock with. It is the caller's to destroy. */
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

  #transact<T>(connection: Connection, work: (ask: Ask) => Promise<T>, readOnly: boolean): Promise<T> {
    const ask: Ask = (text, values = []) => this.#ask(connection, text, values)
    return transact(ask, () => work(ask), {
      begin: readOnly ? 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY' : 'BEGIN',
      // Whatever the matter was, it must not be in the middle of something for whoever has the connection next.
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
          reject(new PostgresUnavailable('no connection to PostgreSQL was free in time', false))
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
        }
        // It may have gone before anybody could be told.
        if (connection.isGone) connection.onGone()
        else this.#give(connection)
      },
      (error: Error) => {
        this.#opening--
        this.#open--
        if (isFull(error)) this.#fullUntil = performance.now() + FULL_MS
        // There are others, and each will be free some time, or gone.
        if (isFull(error) && this.#open > 0) return
        // What could not be opened for one cannot be opened for another either: they need not wait for their time to be over.
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
