// The schema as numbered steps, applied in order, each in one transaction with its number. A step that was released is
// never changed. Nodes of the version before go on while the next one's step is applied: see migrate.ts. Everything that
// is old enough to be dropped lies in daily partitions: see partitions.ts. Rows refer to sources and destinations by `num`, a
// row name given by a node; nothing here is numbered by the server.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import type { Ask } from '../session/database.ts'
import { encryptCredentials } from './encrypt-credentials.ts'

export interface Migration {
  /** The lowest step whose code can go on working when this one has been applied: itself, where nothing older can. */
  worksFrom: number
  /** The step is run only when no node is running: nodes of the previous version cannot work with its result. */
  alone?: true
  sql: string
  /** What SQL cannot do, after it and in the same transaction. */
  work?: (ask: Ask, box: SecretBox) => Promise<void>
}

/** Tables in daily partitions, and the column whose range they are cut by. */
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

  -- The nodes that run. A node is alive as long as the server's clock has not passed expires_at. What a node holds, it holds under
  -- 'holder', which no other node and no later life of the same node has. Its doc is what it tells the others: see membership.ts.
  CREATE TABLE nodes (
    num integer PRIMARY KEY,
    holder bigint NOT NULL UNIQUE,
    name text NOT NULL,
    version text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    doc text NOT NULL DEFAULT '{}'
  ) WITH (fillfactor = 50);

  -- One row. Its version grows with every change of the configuration, in the change's transaction, and whoever makes one holds it.
  -- What a change writes carries the version that it makes, so that a node reads no more than what it has not seen.
  CREATE TABLE configuration (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version bigint NOT NULL DEFAULT 1,
    -- The version that last took suppressions away: whoever has not seen it reads all of them.
    unsuppressed bigint NOT NULL DEFAULT 1,
    -- The id of the key that stored secrets are encrypted with: see secret-box.ts.
    secret_key text
  );
  INSERT INTO configuration DEFAULT VALUES;

  -- Those that were deleted stay, for what still refers to them. Docs are JSON, as text because JSON may hold what jsonb refuses.
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
  -- An index holds no text of more than some 2,700 bytes, and a stranger's may be longer: its digest stands for it there. What makes
  -- bytes of a text is not IMMUTABLE to the server only because encodings can be made by its users: UTF8 cannot.
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

  -- Messages accepted together. Shipments planned for what turned out to be duplicates are in the routes, too: whoever reads
  -- leaves the absent out.
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
  -- Large bodies are compressed before they come here.
  ALTER TABLE segments ALTER COLUMN body SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL;

  -- What duplicates share, and where the message is. Looked for in two days, so that it holds for at least one.
  CREATE TABLE message_keys (day integer NOT NULL, key uuid NOT NULL, segment bigint NOT NULL, PRIMARY KEY (key, day)) PARTITION BY RANGE (day);

  -- The work owed, and nothing else: a row is the queue. Who holds it (0: nobody) comes first in the key, so that what is accepted
  -- and delivered at once touches one index, what a node that died has held lies together, and a row cannot be settled by another than its holder.
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
  -- One destination's own rows, in the order in which they are taken. 'holder < 1' means 'holder = 0', and keeps a statement that says it
  -- so from being planned by the primary key, which has the same order and everybody's rows in it.
  CREATE INDEX shipments_fresh ON shipments (destination, id) WHERE holder < 1 AND attempt = 0;
  CREATE INDEX shipments_retries ON shipments (destination, due, id) WHERE holder < 1 AND attempt > 0;
  CREATE INDEX shipments_by_first_attempt ON shipments (destination, first_attempt) WHERE holder < 1 AND attempt > 0;

  -- What happened, appended: the requests of one attempt at the messages of one part, and which of them it ended.
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

  -- Deliveries owed once more. Those of one segment that a job replays together share an origin, as accepted ones do.
  CREATE TABLE replays (
    origin bigint NOT NULL,
    idx integer NOT NULL,
    destination bigint NOT NULL,
    segment bigint NOT NULL,
    replay_of text NOT NULL,
    at bigint NOT NULL,
    job bigint,
    -- NULL before the first attempt, then 'retrying', then how it ended.
    state text,
    PRIMARY KEY (origin, idx)
  ) PARTITION BY RANGE (origin);
  CREATE INDEX replays_by_segment ON replays (segment, idx, destination, origin);
  CREATE INDEX replays_that_stand ON replays (segment, idx, destination, origin)
    WHERE state IS NULL OR state IN ('retrying', 'delivered');

  -- Messages that came again, as fingerprints, under the segment that has them.
  CREATE TABLE repeats (
    segment bigint NOT NULL,
    digest bigint NOT NULL,
    count integer NOT NULL,
    last_at bigint NOT NULL,
    fingerprints bytea NOT NULL,
    PRIMARY KEY (segment, digest)
  ) PARTITION BY RANGE (segment);

  -- The books. A transaction appends what it changes, and what was appended is added up now and then: nodes do not wait for each other
  -- at one row. See books.ts. Kind 0: a destination's ledger (owed, delivered, pending, failed, expired, cancelled); kind 1: a source's counts
  -- (accepted, duplicates, rejected, suppressed); kind 2: nothing but that the group of this name was committed.
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
  -- What the rows dropped by retention added up to, so that the ledger can still be counted from rows.
  CREATE TABLE ledger_archive (
    destination bigint PRIMARY KEY,
    owed bigint NOT NULL DEFAULT 0,
    delivered bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0
  );
  -- The segments that retention must leave, while it runs: old, and still owed. Of use to nobody else, and made anew each time.
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
    -- Asked for without naming sources: what came by sources that were deleted is purged too.
    every_source boolean NOT NULL,
    -- JSON arrays, of ids and of nums.
    user_ids text NOT NULL,
    sources text NOT NULL,
    purged integer NOT NULL DEFAULT 0,
    -- The purge has read all segments up to here; it is over when this reaches the end.
    purge_cursor bigint NOT NULL DEFAULT 0,
    purge_end bigint NOT NULL,
    -- How it ended, once it has; and whether its users stand in it by pseudonym.
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
    -- 0: there is only the purge.
    destination bigint NOT NULL,
    origin bigint NOT NULL,
    -- How its delivery ended, filled in when retention drops the attempts that say so.
    final text,
    PRIMARY KEY (deletion, user_digest, source, destination)
  );
  CREATE INDEX deletion_targets_by_origin ON deletion_targets (origin);

  -- Who did what: appended in the transaction of what was done.
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

  -- Assertions that were used, until they would be refused for their age.
  CREATE TABLE oauth_assertions (app text NOT NULL, jti text NOT NULL, expires_at bigint NOT NULL, PRIMARY KEY (app, jti));
  CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);

  -- Replays of many deliveries, how far each has come, and what became of what it replayed.
  CREATE TABLE replay_jobs (
    num bigint PRIMARY KEY,
    id text NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    finished_at bigint,
    state text NOT NULL,
    rate integer,
    doc text NOT NULL,
    -- Rows from here on, in time, are not part of it.
    bound bigint NOT NULL,
    total bigint NOT NULL,
    position bigint NOT NULL DEFAULT 0,
    replayed bigint NOT NULL DEFAULT 0,
    skipped text NOT NULL DEFAULT '{}',
    delivered bigint NOT NULL DEFAULT 0,
    failed bigint NOT NULL DEFAULT 0,
    expired bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    -- Whose runner makes the steps, until when: see replay-steps.ts.
    leader text,
    leader_until timestamptz
  ) WITH (fillfactor = 50);
  CREATE INDEX replay_jobs_by_state ON replay_jobs (state, num);
  -- Per destination, so that one that takes nothing does not hold the others up; destination 0 for a list of deliveries.
  CREATE TABLE replay_parts (
    job bigint NOT NULL,
    destination bigint NOT NULL,
    -- Which of the job's states, from which row, and from which place in it.
    state integer NOT NULL DEFAULT 0,
    next bigint NOT NULL DEFAULT 0,
    place integer NOT NULL DEFAULT 0,
    over boolean NOT NULL DEFAULT false,
    -- Replayed and not attempted yet.
    waiting bigint NOT NULL DEFAULT 0,
    -- The position of the job when it last had its turn.
    turn bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job, destination)
  ) WITH (fillfactor = 50);
  -- What became of replays, appended by the transactions that settle them and added to the two tables above by the job's next step:
  -- whoever settles waits for no step and for no other node.
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

  -- Counts per minute and per hour (step, in milliseconds): of sources, of destinations, and of all together.
  CREATE TABLE stats (
    kind text NOT NULL,
    subject text NOT NULL,
    step integer NOT NULL,
    at bigint NOT NULL,
    doc text NOT NULL,
    PRIMARY KEY (kind, subject, step, at)
  );
  CREATE INDEX stats_by_age ON stats (step, at);

  -- Called by a statement that finds, in its middle, that it must not be made.
  CREATE FUNCTION refuse(reason text) RETURNS integer LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION USING ERRCODE = 'SY001', MESSAGE = reason; END $$;

  -- Rows of days that have no partition of their own: the clock jumped, or a day was dropped around what is still owed.
  CREATE TABLE segments_rest PARTITION OF segments DEFAULT;
  CREATE TABLE message_keys_rest PARTITION OF message_keys DEFAULT;
  CREATE TABLE attempts_rest PARTITION OF attempts DEFAULT;
  CREATE TABLE failures_rest PARTITION OF failures DEFAULT;
  CREATE TABLE replays_rest PARTITION OF replays DEFAULT;
  CREATE TABLE repeats_rest PARTITION OF repeats DEFAULT;
  `,
  },
  {
    // Nothing in the tables changes its shape. What was plain in them is sealed: URLs and headers of destinations, in docs that code of
    // the version before cannot read, and would write plain again.
    worksFrom: 2,
    alone: true,
    sql: '',
    work: encryptCredentials,
  },
]
