// The limit in two threads: the same building blocks as limit.ts, with signing and sending in a thread of their own. This
// thread takes HTTP, parses, commits to SQLite and answers; two-thread-sender.ts signs and sends. It does not validate,
// deduplicate or retry, loses pending messages when it dies, and its memory is unbounded.
//
// Tried in alternating runs of 45,000 events in batches of 15, on two cores with other work (events/s, CPU µs per event):
// - parsing and JSON.stringify here, so that the sender only signs and posts: 25,500, 50 µs; 29,100, 45 µs with 32 connections
// - parsing and JSON.stringify in the sender, nothing here: 25,700, 47 µs; but then a 200 is answered to what may not be JSON
// - parsing here, and parsing again and JSON.stringify in the sender: 24,900, 52 µs
// - the request API of undici instead of its dispatch API: 17,000, 79 µs
// - bodies as strings instead of buffers: no difference beyond noise; nor a young generation of 16 MB

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
  const plan: number[] = []
  for (const [index, { messages }] of requests.entries()) {
    plan.push(ids[index] ?? 0, messages.length)
    for (const message of messages) plan.push(Buffer.byteLength(message))
    owed += messages.length
  }
  const text = requests.map(({ messages }) => messages.join('')).join('')
  const bytes = new TextEncoder().encode(text)
  const lengths = Float64Array.from(plan)
  sender.postMessage({ plan: lengths, bytes }, [lengths.buffer, bytes.buffer])
}
