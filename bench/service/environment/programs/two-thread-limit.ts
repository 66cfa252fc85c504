// The limit in two threads: the same parts as limit.ts, with signing and sending in a separate thread. This
// thread receives HTTP requests, parses, commits to SQLite and answers; two-thread-sender.ts signs and sends. It does not validate,
// deduplicate or retry, loses pending messages when it dies, and its memory is unbounded.
//
// Variants, in alternating runs of 45,000 events in batches of 15 on two cores with other work, so that CPU time per event says more than
// events per second:
// - this one, JSON.parse and JSON.stringify in this thread and 32 connections: 45 µs, and 38 µs since the messages are written into one buffer
// - the same with 64 connections: 50 µs; see two-thread-sender.ts for other numbers
// - JSON.parse and JSON.stringify in the sender: 47 µs, but then a 200 is answered to what may not be JSON
// - JSON.parse in both threads and JSON.stringify in the sender: 52 µs
// - SQLite in the sender: 42 µs against 38 µs; the same CPU time with batches of 1 and of 1,000
// - undici's request API instead of its dispatch API: 79 µs
// - message bodies as strings, another size of the young generation, single-threaded garbage collection: no difference beyond noise

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Worker } from 'node:worker_threads'
import { type Batch, listen, readOptions } from './http-front-end.ts'

interface Arrived {
  body: Buffer
  /** The JSON of each message. */
  messages: string[]
  answer: () => void
}

/** Nothing waits for an outcome. 0 and 10 ms made no difference beyond noise. */
const OUTCOME_DELAY_MS = 10

const { receiver, folder } = readOptions()
const database = new DatabaseSync(join(folder, 'limit.db'))
database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  CREATE TABLE requests (id INTEGER PRIMARY KEY, body BLOB NOT NULL);
  CREATE TABLE outcomes (request INTEGER PRIMARY KEY, delivered INTEGER NOT NULL);`)
const insertRequest = database.prepare('INSERT INTO requests (body) VALUES (?)')
const insertOutcome = database.prepare('INSERT INTO outcomes (request, delivered) VALUES (?, ?)')
const sender =
  receiver === undefined
    ? undefined
    : new Worker(new URL('./two-thread-sender.ts', import.meta.url), { workerData: { receiver }, name: 'sender' })

let arrived: Arrived[] = []
/** Pairs of a request and its number of messages. */
let finished: Float64Array[] = []
let owed = 0
let timer: NodeJS.Timeout | undefined

sender?.on('message', (outcomes: Float64Array) => {
  finished.push(outcomes)
  if (arrived.length === 0) timer ??= setTimeout(commit, OUTCOME_DELAY_MS)
})

listen(
  (body, answer) => {
    const { batch } = JSON.parse(body.toString()) as Batch
    arrived.push({ body, messages: batch.map((message) => JSON.stringify(message)), answer })
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
  let delivered = 0
  database.exec('BEGIN')
  const ids = requests.map(({ body }) => Number(insertRequest.run(body).lastInsertRowid))
  for (const pairs of outcomes) {
    for (let index = 0; index < pairs.length; index += 2) {
      const [request = 0, messages = 0] = pairs.subarray(index, index + 2)
      insertOutcome.run(request, messages)
      delivered += messages
    }
  }
  database.exec('COMMIT')
  owed -= delivered
  for (const { answer } of requests) answer()
  if (sender && requests.length > 0) handOver(sender, requests, ids)
}

/** One transfer for all messages of a commit: their bytes, and for each request its id, its number of messages and their lengths. */
function handOver(sender: Worker, requests: Arrived[], ids: number[]): void {
  const numbers: number[] = []
  let total = 0
  for (const [index, { messages }] of requests.entries()) {
    numbers.push(ids[index] ?? 0, messages.length)
    for (const message of messages) {
      const length = Buffer.byteLength(message)
      numbers.push(length)
      total += length
    }
    owed += messages.length
  }
  const bytes = new Uint8Array(total)
  const buffer = Buffer.from(bytes.buffer)
  let at = 0
  for (const { messages } of requests) for (const message of messages) at += buffer.write(message, at)
  const plan = Float64Array.from(numbers)
  sender.postMessage({ plan, bytes }, [plan.buffer, bytes.buffer])
}
