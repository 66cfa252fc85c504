// A webhook receiver that writes track and identify messages into PostgreSQL tables. A request is one statement and therefore one
// transaction: it answers 200 after the commit and 503 while the database is unavailable, and repeated messages change nothing.
// Run: DATABASE_URL=postgres://… SWITCHYARD_SIGNING_SECRET=whsec_… npm run example examples/postgres-sink.ts
// It listens on PORT (9000) and HOST (127.0.0.1). Turn on batches for the destination, {"batch": {"size": 500}}: each is one round trip.
// Other types are accepted but not stored; {"filter": {"types": {"allow": ["track", "identify", "delete"]}}} saves sending them.

import { verify, type WebhookMessage } from '@switchyard/webhook'
import Fastify from 'fastify'
import pg from 'pg'

const connectionString = process.env['DATABASE_URL'] ?? stop('Set DATABASE_URL to the connection string of the database: postgres://…')
const signingSecrets = process.env['SWITCHYARD_SIGNING_SECRET']?.split(' ')
if (!signingSecrets) stop('SWITCHYARD_SIGNING_SECRET must be the signing secret (whsec_…) of the destination.')

// Switchyard waits five seconds for a response: connecting and writing together take at most four.
const pool = new pg.Pool({ connectionString, connectionTimeoutMillis: 2_000, query_timeout: 2_000, statement_timeout: 2_000 })
// Idle connections in the pool break when the server stops; without a listener, the error would end this process.
pool.on('error', (error) => app.log.warn({ err: error }, 'an idle database connection was lost'))

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

// Ordered by key, so that two requests with the same messages wait for each other instead of deadlocking.
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

// Deletes only up to the time of the deletion request: a user who returns afterwards is a new customer, however late this message arrives.
const ERASE = `
  WITH erased AS (DELETE FROM tracks WHERE user_id = $1 AND received_at <= $2)
  DELETE FROM identifies WHERE user_id = $1 AND received_at <= $2`

const app = Fastify({ logger: true })
// The signature covers the raw bytes, so the body must not be parsed before it is verified.
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
    // An invalid value (class 22) or a missing one (23502) would fail again on a retry. Any other error may be temporary.
    const isBadData = error instanceof pg.DatabaseError && /^(22|23502)/.test(error.code ?? '')
    return isBadData ? reply.code(422).send(error.message) : reply.code(503).header('retry-after', '5').send('the database is unavailable')
  }
  return reply.code(200).send('stored')
})

/** Not at the start: this process may start before its database. */
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
  // A delete is never in a batch with other messages.
  if (first?.type === 'delete') await pool.query(ERASE, [first.userId, first.timestamp])
  else await pool.query(WRITE, [storable(JSON.stringify(messages))])
}

// JSON may contain U+0000 and unpaired surrogates, PostgreSQL's text may not. Every escape is matched, so that an escaped
// backslash is not mistaken for the start of one.
function storable(json: string): string {
  return json.replace(/\\(?:u0000|ud[89a-f]..|.)/g, (escape) => (escape.length === 6 ? '\ufffd' : escape))
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(2)
}

async function close(): Promise<void> {
  await app.close() // answers requests in flight, accepts no new ones
  await pool.end()
}
process.once('SIGTERM', () => void close()).once('SIGINT', () => void close())

await app.listen({ port: Number(process.env['PORT'] ?? 9000), host: process.env['HOST'] ?? '127.0.0.1' })
