// A webhook receiver on Fastify that processes each message once, despite retries, replays, restarts and kill -9. A request is
// only verified, written to an inbox in SQLite, and answered; messages are processed from there, and marked as done in the same transaction.
// Run: SWITCHYARD_SIGNING_SECRET=whsec_… npm run example examples/fastify-receiver.ts
// It listens on PORT (9000) and HOST (127.0.0.1), and keeps accepted messages in INBOX_FILE (data/inbox.db).

import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { verify, type WebhookMessage } from '@switchyard/webhook'
import Fastify from 'fastify'

// Two secrets, separated by a space, during a rotation.
const signingSecrets = process.env['SWITCHYARD_SIGNING_SECRET']?.split(' ')
if (!signingSecrets) stop('SWITCHYARD_SIGNING_SECRET must be the signing secret (whsec_…) of the destination.')

/** How long repeated messages are recognised: longer than you would ever replay. */
const REMEMBERED_MS = 30 * 24 * 60 * 60 * 1_000
const LONGEST_PAUSE_MS = 60_000

const file = process.env['INBOX_FILE'] ?? 'data/inbox.db'
mkdirSync(dirname(file), { recursive: true })
const database = new DatabaseSync(file, { timeout: 2_000 })
// FULL: a message that was answered with 204 is on disk and survives a power failure.
database.exec(`
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  CREATE TABLE IF NOT EXISTS inbox (
    id TEXT PRIMARY KEY, message TEXT NOT NULL, due_at INTEGER NOT NULL, failures INTEGER NOT NULL DEFAULT 0, done_at INTEGER
  );
  CREATE INDEX IF NOT EXISTS inbox_due ON inbox (due_at) WHERE done_at IS NULL;
  CREATE INDEX IF NOT EXISTS inbox_done ON inbox (done_at) WHERE done_at IS NOT NULL;
  CREATE TABLE IF NOT EXISTS customers (user_id TEXT PRIMARY KEY, orders INTEGER NOT NULL, spent REAL NOT NULL);
`)
const put = database.prepare('INSERT INTO inbox (id, message, due_at) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING')
const nextDue = database.prepare(
  'SELECT id, message, failures FROM inbox WHERE done_at IS NULL AND due_at <= ? ORDER BY due_at, rowid LIMIT 1',
)
// Only the id has to be kept, so the content of the message is removed.
const markDone = database.prepare("UPDATE inbox SET done_at = ?, message = '' WHERE id = ? AND done_at IS NULL")
const postpone = database.prepare('UPDATE inbox SET due_at = ?, failures = failures + 1 WHERE id = ?')
const forget = database.prepare('DELETE FROM inbox WHERE done_at < ?')
const addOrder = database.prepare(
  'INSERT INTO customers VALUES (?, 1, ?) ON CONFLICT (user_id) DO UPDATE SET orders = orders + 1, spent = spent + excluded.spent',
)
const removeCustomer = database.prepare('DELETE FROM customers WHERE user_id = ?')

/**
 * Processes a message: put your own code here. Writes to this database happen exactly once. Effects elsewhere (an e-mail, a call to
 * another API) may be repeated after a crash: pass the messageId as the idempotency key.
 */
function work(message: WebhookMessage): void {
  if (message.type === 'track' && message['event'] === 'Order Completed') {
    const { total } = (message['properties'] ?? {}) as { total?: unknown }
    addOrder.run(message.userId ?? 'unknown', Number(total) || 0)
  } else if (message.type === 'delete') removeCustomer.run(message.userId ?? 'unknown')
}

const app = Fastify({ logger: true })
// The signature covers the raw bytes, so the body must not be parsed before it is verified.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

app.post('/', async (request, reply) => {
  const result = await verify(request, { signingSecrets })
  if (!result.ok) return reply.code(result.status).send(result.code)
  // Stores all of a batch or nothing. A failure here is answered with 500, and Switchyard sends the batch again.
  const taken = transaction(() => {
    let count = 0
    for (const message of result.messages) count += Number(put.run(idOf(message), JSON.stringify(message), Date.now()).changes)
    return count
  })
  request.log.info({ taken, known: result.messages.length - taken, attempt: result.attempt }, 'received')
  wake()
  return reply.code(204).send()
})

/** A delete has no messageId, so the user and the time identify it. */
function idOf({ messageId, type, userId, timestamp }: WebhookMessage): string {
  return messageId ?? `${type} ${userId} ${timestamp}`
}

interface InboxRow {
  id: string
  message: string
  failures: number
}

let isWorking = false
let isClosing = false

function wake(): void {
  if (isWorking) return
  isWorking = true
  setImmediate(workOnNext)
}

/** Processes one message per turn of the event loop, so that requests are answered in between, however long the backlog is. */
function workOnNext(): void {
  if (isClosing) return
  const next = nextDue.get(Date.now()) as unknown as InboxRow | undefined
  if (next === undefined) {
    isWorking = false
    return
  }
  try {
    transaction(() => {
      // Marks nothing if a second process on the same file, as in a rolling restart, was faster.
      if (markDone.run(Date.now(), next.id).changes === 1) work(JSON.parse(next.message) as WebhookMessage)
    })
    app.log.info({ messageId: next.id }, 'done')
  } catch (error) {
    // This message waits, and the others continue.
    postpone.run(Date.now() + Math.min(1_000 * 2 ** next.failures, LONGEST_PAUSE_MS), next.id)
    app.log.error({ err: error, messageId: next.id }, 'processing failed, will be retried')
  }
  setImmediate(workOnNext)
}

function transaction<T>(act: () => T): T {
  database.exec('BEGIN IMMEDIATE')
  try {
    const result = act()
    database.exec('COMMIT')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK')
    throw error
  }
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(2)
}

const everySecond = setInterval(wake, 1_000)
const everyHour = setInterval(() => forget.run(Date.now() - REMEMBERED_MS), 60 * 60 * 1_000)

async function close(): Promise<void> {
  await app.close() // answers requests in flight, accepts no new ones
  isClosing = true // unprocessed messages stay in the inbox until the next start
  clearInterval(everySecond)
  clearInterval(everyHour)
  database.close()
}
process.once('SIGTERM', () => void close()).once('SIGINT', () => void close())

await app.listen({ port: Number(process.env['PORT'] ?? 9000), host: process.env['HOST'] ?? '127.0.0.1' })
