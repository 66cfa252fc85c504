// The limit: only the building blocks of the service, as an upper bound. HTTP in, JSON.parse, the body committed to SQLite
// (WAL, synchronous=FULL), 200, JSON.stringify and a POST for each message, the outcome committed. It does not validate,
// deduplicate or retry, loses pending messages when it dies, and its memory is unbounded.

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Batch, createPoster, listen, readOptions } from './http-front-end.ts'

interface Arrived {
  body: Buffer
  messages: unknown[]
  answer: () => void
}

/**
 * Nothing waits for an outcome, so outcomes can be delayed. Measured in alternating runs with 0 and 50 ms, and with SQLite on a separate thread:
 * no difference beyond noise (14,100 to 15,800 events/s, spreads of 5,000), so the simplest variant is used.
 */
const OUTCOME_DELAY_MS = 10

const { receiver, folder } = readOptions()
const post = receiver === undefined ? undefined : createPoster(receiver)
const database = new DatabaseSync(join(folder, 'limit.db'))
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE outcomes (request INTEGER PRIMARY KEY, delivered INTEGER NOT NULL);`)
const insertRequest = database.prepare('INSERT INTO requests (body) VALUES (?)')
const insertOutcome = database.prepare('INSERT INTO outcomes (request, delivered) VALUES (?, ?)')

let arrived: Arrived[] = []
let finished: { request: number; delivered: number }[] = []
let owed = 0
let timer: NodeJS.Timeout | undefined

listen(
  (body, answer) => {
    const { batch } = JSON.parse(body.toString()) as Batch
    arrived.push({ body, messages: batch, answer })
    // All requests of one turn of the event loop share a commit.
    if (arrived.length === 1) setImmediate(commit)
  },
  () => owed,
)

function commit(): void {
  const [requests, outcomes] = [arrived, finished]
  arrived = []
  finished = []
  clearTimeout(timer)
  timer = undefined
  database.exec('BEGIN')
  const ids = requests.map(({ body }) => Number(insertRequest.run(body).lastInsertRowid))
  for (const { request, delivered } of outcomes) insertOutcome.run(request, delivered)
  database.exec('COMMIT')
  for (const { delivered } of outcomes) owed -= delivered
  for (const [index, { answer, messages }] of requests.entries()) {
    answer()
    if (post) deliver(ids[index] ?? 0, messages, post)
  }
}

function deliver(request: number, messages: unknown[], post: (message: unknown) => Promise<void>): void {
  owed += messages.length
  let open = messages.length
  const finishOne = () => {
    open -= 1
    if (open > 0) return
    finished.push({ request, delivered: messages.length })
    if (arrived.length === 0) timer ??= setTimeout(commit, OUTCOME_DELAY_MS)
  }
  for (const message of messages) void post(message).then(finishOne)
}
