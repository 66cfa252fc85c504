// A webhook receiver that writes track and identify messages into tables of PostgreSQL. A request is one statement, and so one
// transaction: the answer is 200 when it is committed, 503 while the database is away, and what comes again changes nothing.
// Run: DATABASE_URL=postgres://… SWITCHYARD_SIGNING_SECRET=whsec_… npm run example examples/postgres-sink.ts
// PORT (9000) and HOST (127.0.0.1) are where it listens. Give the destination batches, {"batch": {"size": 500}}: each is one round trip.
// Other types are taken and not stored; {"filter": {"types": {"allow": ["track", "identify", "delete"]}}} saves sending them.

import { verify, type WebhookMessage } from '@switchyard/webhook'
import Fastify from 'fastify'
import pg from 'pg'

const connectionString = process.env['DATABASE_URL'] ?? stop('DATABASE_URL must name the database: postgres://…')
const signingSecrets = process.env['SWITCHYARD_SIGNING_SECRET']?.split(' ')
if (!signingSecrets) stop('SWITCHYARD_SIGNING_SECRET must be the signing secret (whsec_…) of the destination.')

// Switchyard waits five seconds for an answer: connecting and writing together take at most four.
const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 2_000, query_timeout: 2_000, statement_timeout: 2_000 })
// Connections that wait in the pool break when the server goes; without a listener that would end this process.
pool.on('error', (error) => app.log.warn({ err: error }, 'a connection was lost'))

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS tracks (
    message_id text PRIMARY KEY, user_id text, anonymous_id text, event text NOT NULL, properties jsonb, context jsonb,
    timestamp timestamptz NOT NULL, received_at timestamptz NOT NULL
  );
  CREATE TABLE IF NOT EXISTS identifies (
    message_id text PRIMARY KEY, user_id text, anonymous_id text, traits jsonb, context jsonb,
    timestamp timestamptz NOT NULL, received_at timestamptz NOT NULL
  );
  CREATE INDEX IF NOT EXISTS tracks_user ON tracks (user_id);
  CREATE INDEX IF NOT EXISTS identifies_user ON identifies (user_id);`

// In the order of the key, so that two requests with the same messages wait for each other and do not deadlock.
const WRITE = `
  WITH messages AS (
    SELECT * FROM jsonb_to_recordset($1) AS m (
      type text, "messageId" text, "userId" text, "anonymousId" text, event text, properties jsonb, traits jsonb, context jsonb,
      timestamp timestamptz, "receivedAt" timestamptz)
    ORDER BY "messageId"
  ), written AS (
    INSERT INTO tracks SELECT "messageId", "userId", "anonymousId", event, properties, context, timestamp, "receivedAt"
    FROM messages WHERE type = 'track'
    ON CONFLICT (message_id) DO NOTHING
  )
  INSERT INTO identifies SELECT "messageId", "userId", "anonymousId", traits, context, timestamp, "receivedAt"
  FROM messages WHERE type = 'identify'
  ON CONFLICT (message_id) DO NOTHING`

// Up to the time of the request to delete: who comes back afterwards is a new customer, however late this arrives.
const ERASE = `
  WITH erased AS (DELETE FROM tracks WHERE user_id = $1 AND received_at <= $2)
  DELETE FROM identifies WHERE user_id = $1 AND received_at <= $2`

const app = Fastify({ logger: true })
// Signatures are over the bytes as they came, so nothing may parse them on the way.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))

app.post('/', async (request, reply) => {
  const result = await verify(request, { signingSecrets })
  if (!result.ok) return reply.code(result.status).send(result.code)
  try {
    await createTables()
    await write(result.messages)
  } catch (error) {
    request.log.error({ err: error, messages: result.messages.length }, 'not stored')
    // A value that does not fit (class 22), or is missing (23502), would fit no better the next time. Anything else may pass.
    const isBadData = error instanceof pg.DatabaseError && /^(22|23502)/.test(error.code ?? '')
    return isBadData ? reply.code(422).send(error.message) : reply.code(503).header('retry-after', '5').send('the database is away')
  }
  return reply.code(200).send('stored')
})

/** Not at the start: this process may be up before its database is. */
let tables: Promise<unknown> | undefined
function createTables(): Promise<unknown> {
  tables ??= pool.query(SCHEMA).catch((error: unknown) => {
    tables = undefined
    throw error
  })
  return tables
}

async function write(messages: WebhookMessage[]): Promise<void> {
  const [first] = messages
  // Never in a batch with others.
  if (first?.type === 'delete') await pool.query(ERASE, [first.userId, first.timestamp])
  else await pool.query(WRITE, [storable(JSON.stringify(messages))])
}

// JSON may hold U+0000 and halves of surrogate pairs, PostgreSQL's text may not. Every escape is matched, so that an escaped
// backslash is not taken for the beginning of one.
function storable(json: string): string {
  return json.replace(/\\(?:u0000|ud[89a-f]..|.)/g, (escape) => (escape.length === 6 ? '\ufffd' : escape))
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(2)
}

async function close(): Promise<void> {
  await app.close() // answers what is under way, takes no more
  await pool.end()
}
process.once('SIGTERM', () => void close()).once('SIGINT', () => void close())

await app.listen({ port: Number(process.env['PORT'] ?? 9000), host: process.env['HOST'] ?? '127.0.0.1' })
