// The schema as numbered steps. They are applied in order, each in one transaction that also records its number. A released step is
// never changed. Nodes of the previous version keep running while a step is applied: see migrate.ts. Tables from which
// retention drops rows have daily partitions: see partitions.ts. Rows refer to sources and destinations by `num`, a
// row id that a node created; the server generates no ids.

import { encryptCredentials, encryptDestinations } from './encrypt-credentials.ts'
import { MIGRATIONS_FROM_6, type Migration } from './migrations-from-6.ts'

/** The tables with daily partitions, and the column that they are partitioned by. */
export const PARTITIONED = {
  segments: 'seq',
  message_keys: 'day',
  attempts: 'id',
  failures: 'id',
  replays: 'origin',
  repeats: 'segment',
} as const

export type PartitionedTable = keyof typeof PARTITIONED

export const MIGRATIONS: readonly Migration[] = [
  {
    worksFrom: 1,
    sql: `
  CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);

  -- The running nodes. A node is alive until the server's clock passes expires_at. A node holds work under the id 'holder', which no other
  -- node has, nor the same node after it has joined again. The doc has the notices for other nodes: see membership.ts.
  CREATE TABLE nodes (
    num integer PRIMARY KEY,
    holder bigint NOT NULL UNIQUE,
    name text NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    doc text NOT NULL DEFAULT '{}'
  ) WITH (fillfactor = 50);

  -- One row. Every change of the configuration locks it and increases its version in the same transaction.
  -- The rows that a change writes carry the new version, so that a node reads only what it has not seen.
  CREATE TABLE configuration (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL DEFAULT 1,
    -- The last version that removed suppressions. A node that has not seen it reads all suppressions again.
    unsuppressed bigint NOT NULL DEFAULT 1,
    -- The id of the key that stored secrets are encrypted with: see secret-box.ts.
    secret_key text
  );
  INSERT INTO configuration DEFAULT VALUES;

  -- Deleted ones are kept, because other rows still refer to them. Docs are JSON stored as text, because jsonb rejects some valid JSON.
  CREATE TABLE sources (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version bigint NOT NULL DEFAULT 0,
    deleted boolean NOT NULL DEFAULT false,
    doc text NOT NULL
  );
  CREATE TABLE destinations (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    version bigint NOT NULL DEFAULT 0,
    deleted boolean NOT NULL DEFAULT false,
    doc text NOT NULL
  );
  CREATE TABLE oauth_apps (num bigint PRIMARY KEY, id text NOT NULL UNIQUE, doc text NOT NULL);
  CREATE TABLE tokens (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    name text NOT NULL,
    role text NOT NULL,
    hash text NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    last_used_at bigint
  );
  -- An index entry is limited to about 2,700 bytes, and a user id may be longer, so its digest is indexed. PostgreSQL does not declare
  -- convert_to IMMUTABLE, because users can define conversions; the conversion to UTF8 cannot change.
  CREATE FUNCTION digest_of(text) RETURNS bytea LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT sha256(convert_to($1, 'UTF8')) $$;

  -- User ids are encoded as in session/text-columns.ts, so that any text can be stored unchanged.
  CREATE TABLE suppressions (
    source bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    user_digest bytea NOT NULL GENERATED ALWAYS AS (digest_of(user_id)) STORED,
    since bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (source, user_digest)
  );
  -- In the order in which they are listed: see deletion-rows.ts.
  CREATE INDEX suppressions_in_order ON suppressions (source, left(user_id, 200), user_digest);
  CREATE INDEX suppressions_by_version ON suppressions (version);

  -- Messages accepted together. The routes also include messages that turned out to be duplicates; readers
  -- leave out the indexes in 'absent'.
  CREATE TABLE segments (
    seq bigint NOT NULL PRIMARY KEY,
    source bigint NOT NULL,
    received_at bigint NOT NULL,
    count integer NOT NULL,
    browser boolean NOT NULL,
    absent integer[],
    ip text,
    trace text,
    routes text NOT NULL,
    keys bytea NOT NULL,
    body bytea NOT NULL
  ) PARTITION BY RANGE (seq);
  -- Large bodies are already compressed.
  ALTER TABLE segments ALTER COLUMN body SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL;

  -- The deduplication keys, with the segment of the message. Two days are searched, so that duplicates are recognized for at least one day.
  CREATE TABLE message_keys (day integer NOT NULL, key uuid NOT NULL, segment bigint NOT NULL, PRIMARY KEY (key, day)) PARTITION BY RANGE (day);

  -- The queue of pending work, and nothing else. The holder (0 for none) comes first in the key, so that work that is accepted and delivered
  -- at once touches only one index, the rows of a dead node are stored together, and only its holder can settle a row.
  CREATE TABLE shipments (
    holder bigint NOT NULL DEFAULT 0,
    id bigint NOT NULL,
    destination bigint NOT NULL,
    due bigint NOT NULL DEFAULT 0,
    first_attempt bigint,
    claim integer NOT NULL DEFAULT 0,
    count integer NOT NULL,
    attempt integer NOT NULL DEFAULT 0,
    bytes integer NOT NULL,
    unit boolean NOT NULL DEFAULT false,
    replay boolean NOT NULL DEFAULT false,
    urls text,
    parts text NOT NULL,
    PRIMARY KEY (holder, id)
  ) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
  -- The rows of one destination, in the order in which they are claimed. 'holder < 1' means 'holder = 0', and keeps the planner from using
  -- the primary key, which has the same order but contains the rows of all destinations.
  CREATE INDEX shipments_fresh ON shipments (destination, id) WHERE holder < 1 AND attempt = 0;
  CREATE INDEX shipments_retries ON shipments (destination, due, id) WHERE holder < 1 AND attempt > 0;
  CREATE INDEX shipments_by_first_attempt ON shipments (destination, first_attempt) WHERE holder < 1 AND attempt > 0;

  -- Append-only: the requests of one attempt to deliver the messages of one part, and which of these messages it settled.
  CREATE TABLE attempts (
    id bigint NOT NULL PRIMARY KEY,
    origin bigint NOT NULL,
    destination bigint NOT NULL,
    segment bigint NOT NULL,
    at bigint NOT NULL,
    attempt integer NOT NULL,
    delivered integer NOT NULL,
    failed integer NOT NULL,
    expired integer NOT NULL,
    cancelled integer NOT NULL,
    replay boolean NOT NULL,
    doc text NOT NULL
  ) PARTITION BY RANGE (id);
  CREATE INDEX attempts_by_origin ON attempts (origin);
  CREATE INDEX attempts_by_destination ON attempts (destination, id);

  -- Deliveries that ended without success, one row each, to list and group them.
  CREATE TABLE failures (
    id bigint NOT NULL PRIMARY KEY,
    destination bigint NOT NULL,
    origin bigint NOT NULL,
    segment bigint NOT NULL,
    at bigint NOT NULL,
    idx integer NOT NULL,
    attempts integer NOT NULL,
    replay boolean NOT NULL,
    state text NOT NULL,
    reason text
  ) PARTITION BY RANGE (id);
  CREATE INDEX failures_by_state ON failures (destination, state, id);

  -- Replayed deliveries. Those of one segment that a job replays together share an origin, as accepted ones do.
  CREATE TABLE replays (
    origin bigint NOT NULL,
    idx integer NOT NULL,
    destination bigint NOT NULL,
    segment bigint NOT NULL,
    replay_of text NOT NULL,
    at bigint NOT NULL,
    job bigint,
    -- NULL before the first attempt, then 'retrying', then the final state.
    state text,
    PRIMARY KEY (origin, idx)
  ) PARTITION BY RANGE (origin);
  CREATE INDEX replays_by_segment ON replays (segment, idx, destination, origin);
  CREATE INDEX replays_that_stand ON replays (segment, idx, destination, origin)
    WHERE state IS NULL OR state IN ('retrying', 'delivered');

  -- Fingerprints of messages that were received again, with the segment that contains them.
  CREATE TABLE repeats (
    segment bigint NOT NULL,
    digest bigint NOT NULL,
    count integer NOT NULL,
    last_at bigint NOT NULL,
    fingerprints bytea NOT NULL,
    PRIMARY KEY (segment, digest)
  ) PARTITION BY RANGE (segment);

  -- Changes of counts. A transaction appends its changes, and they are added up once a second, so that nodes do not wait for each
  -- other's lock on one row. See fold-deltas.ts. Kind 0: a destination's ledger (owed, delivered, pending, failed, expired, cancelled); kind 1:
  -- a source's counts (accepted, duplicates, rejected, suppressed); kind 2: no counts, only a marker that the group with this id was committed.
  CREATE TABLE deltas (
    id bigint PRIMARY KEY,
    kind smallint NOT NULL,
    subject bigint NOT NULL,
    counts bigint[] NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
  CREATE TABLE ledger (
    destination bigint PRIMARY KEY,
    owed bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  -- The counts of the rows that retention has dropped, so that the ledger can still be recounted from rows.
  CREATE TABLE ledger_archive (
    destination bigint PRIMARY KEY,
    owed bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0
  );
  -- The old segments with pending deliveries, which retention must keep. Used only while retention runs, and refilled each time.
  CREATE UNLOGGED TABLE pinned (segment bigint PRIMARY KEY);
  CREATE TABLE source_counts (
    source bigint PRIMARY KEY,
    accepted bigint NOT NULL DEFAULT 0,
    duplicates bigint NOT NULL DEFAULT 0,
    rejected bigint NOT NULL DEFAULT 0,
    suppressed bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  -- Source 0 stands for calls whose write key was unknown. Samples are encoded as in session/text-columns.ts.
  CREATE TABLE rejections (
    source bigint NOT NULL,
    code text NOT NULL,
    count bigint NOT NULL,
    last_at bigint NOT NULL,
    last_sample text NOT NULL,
    PRIMARY KEY (source, code)
  );

  CREATE TABLE deletions (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    suppress boolean NOT NULL,
    -- Whether the request named no sources. Then messages of deleted sources are purged too.
    every_source boolean NOT NULL,
    -- JSON arrays: user ids, and the 'num' of each source.
    user_ids text NOT NULL,
    sources text NOT NULL,
    purged integer NOT NULL DEFAULT 0,
    -- The purge has read all segments up to here, and has finished when this reaches purge_end.
    purge_cursor bigint NOT NULL DEFAULT 0,
    purge_end bigint NOT NULL,
    -- The outcome, once it has ended; and whether its user ids were replaced by pseudonyms.
    ended text,
    pseudonyms boolean NOT NULL DEFAULT false
  );
  CREATE INDEX deletions_by_name ON deletions (num) WHERE NOT pseudonyms;
  CREATE INDEX deletions_to_purge ON deletions (num) WHERE purge_cursor < purge_end;
  CREATE TABLE deletion_targets (
    deletion bigint NOT NULL,
    user_id text COLLATE "C" NOT NULL,
    user_digest bytea NOT NULL GENERATED ALWAYS AS (digest_of(user_id)) STORED,
    source bigint NOT NULL,
    -- 0 if there is only the purge.
    destination bigint NOT NULL,
    origin bigint NOT NULL,
    -- The outcome of its delivery, filled in when retention drops the attempts that record it.
    final text,
    PRIMARY KEY (deletion, user_digest, source, destination)
  );
  CREATE INDEX deletion_targets_by_origin ON deletion_targets (origin);

  -- The audit log. An entry is appended in the transaction of the change.
  CREATE TABLE audit (
    id bigint PRIMARY KEY,
    at bigint NOT NULL,
    actor text NOT NULL,
    actor_name text NOT NULL,
    action text NOT NULL,
    subject text,
    before text,
    after text
  );
  CREATE INDEX audit_by_subject ON audit (subject, id);

  -- Used assertions, kept until they would be rejected as expired.
  CREATE TABLE oauth_assertions (app text NOT NULL, jti text NOT NULL, expires_at bigint NOT NULL, PRIMARY KEY (app, jti));
  CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);

  -- Replay jobs, with the progress of each and the outcomes of its replays.
  CREATE TABLE replay_jobs (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    finished_at bigint,
    state text NOT NULL,
    rate integer,
    doc text NOT NULL,
    -- Rows from this row id on are not part of the job.
    bound bigint NOT NULL,
    total bigint NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    replayed bigint NOT NULL DEFAULT 0,
    skipped text NOT NULL DEFAULT '{}',
    delivered bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    -- The runner that makes the steps, and the end of its lease: see replay-steps.ts.
    leader text,
    leader_until timestamptz
  ) WITH (fillfactor = 50);
  CREATE INDEX replay_jobs_by_state ON replay_jobs (state, num);
  -- One row per destination, so that a destination that accepts nothing does not hold up the others; destination 0 for a list of deliveries.
  CREATE TABLE replay_parts (
    job bigint NOT NULL,
    destination bigint NOT NULL,
    -- The cursor: which of the job's states, the next row, and the position in that row.
    state integer NOT NULL DEFAULT 0,
    next bigint NOT NULL DEFAULT 0,
    place integer NOT NULL DEFAULT 0,
    over boolean NOT NULL DEFAULT false,
    -- The number of replays that were not attempted yet.
    waiting bigint NOT NULL DEFAULT 0,
    -- The position of the job when it last had its turn.
    turn bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, destination)
  ) WITH (fillfactor = 50);
  -- The outcomes of replays, appended by the transactions that settle them and added to the two tables above by the job's next step, so
  -- that settling waits for no step and for no other node.
  CREATE TABLE replay_outcomes (
    job bigint NOT NULL,
    destination bigint NOT NULL,
    attempted integer NOT NULL,
    delivered integer NOT NULL,
    failed integer NOT NULL,
    expired integer NOT NULL,
    cancelled integer NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
  CREATE INDEX replay_outcomes_by_job ON replay_outcomes (job);

  -- Counts per minute and per hour (step, in milliseconds) of each source, of each destination, and in total.
  CREATE TABLE stats (
    kind text NOT NULL,
    subject text NOT NULL,
    step integer NOT NULL,
    at bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (kind, subject, step, at)
  );
  CREATE INDEX stats_by_age ON stats (step, at);

  -- Called inside a statement to abort it.
  CREATE FUNCTION refuse(reason text) RETURNS integer LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING ERRCODE = 'SY001', MESSAGE = reason; END $$;

  -- Rows of days without a partition: the clock jumped, or the day's partition was dropped and these rows were still needed.
  CREATE TABLE segments_rest PARTITION OF segments DEFAULT;
  CREATE TABLE message_keys_rest PARTITION OF message_keys DEFAULT;
  CREATE TABLE attempts_rest PARTITION OF attempts DEFAULT;
  CREATE TABLE failures_rest PARTITION OF failures DEFAULT;
  CREATE TABLE replays_rest PARTITION OF replays DEFAULT;
  CREATE TABLE repeats_rest PARTITION OF repeats DEFAULT;
  `,
  },
  {
    // No table changes its columns. URLs and headers of destinations, which were stored in plain text, are encrypted. Code of the previous
    // version cannot read these docs, and would write plain text again.
    worksFrom: 2,
    alone: true,
    sql: '',
    work: encryptCredentials,
  },
  {
    // Nodes of the previous version do not know the table, and write no versions.
    worksFrom: 2,
    sql: `
  -- The versions of destinations, with encrypted content: see destination-versions.ts. They are deleted with the destination.
  CREATE TABLE destination_versions (
    destination text NOT NULL,
    version integer NOT NULL,
    at bigint NOT NULL,
    actor text,
    actor_name text,
    content text NOT NULL,
    PRIMARY KEY (destination, version)
  );
  `,
  },
  {
    // Nodes of the previous version do not know tracking plans, and let all messages pass. They leave
    // deltas of kind 3 to others.
    worksFrom: 2,
    sql: `
  CREATE TABLE plans (num bigint PRIMARY KEY, id text NOT NULL UNIQUE, deleted boolean NOT NULL DEFAULT false, doc text NOT NULL, version bigint NOT NULL DEFAULT 1);

  -- What the service counted or noticed, by kind: see port/documents.ts. Keys are ASCII.
  CREATE TABLE documents (
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (kind, key)
  );
  CREATE INDEX documents_by_time ON documents (kind, at, key);

  -- How messages differ from the tracking plan: see violations-column.ts.
  ALTER TABLE segments ADD COLUMN violations text;
  -- Messages that are sent nowhere until they are released. The rule is the key of a rule of the plan. Plan and rule are encoded as in
  -- session/text-columns.ts.
  CREATE TABLE quarantine (
    segment bigint NOT NULL,
    idx integer NOT NULL,
    source bigint NOT NULL,
    plan text NOT NULL,
    rule text NOT NULL,
    PRIMARY KEY (segment, idx)
  );
  CREATE INDEX quarantine_by_source ON quarantine (source, segment, idx);
  -- Changed by deltas of kind 3 (quarantined, released, deleted).
  ALTER TABLE source_counts
    ADD COLUMN quarantined bigint NOT NULL DEFAULT 0, ADD COLUMN released bigint NOT NULL DEFAULT 0, ADD COLUMN deleted bigint NOT NULL DEFAULT 0;
  `,
  },
  {
    // No table changes its columns. The mappings of webhooks, which were stored in plain text, are encrypted, and destinations may have `secrets`.
    // Code of the previous version would send messages without their mapping.
    worksFrom: 5,
    alone: true,
    sql: '',
    work: encryptDestinations,
  },
  ...MIGRATIONS_FROM_6,
]
