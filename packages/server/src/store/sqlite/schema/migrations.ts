// The schema as numbered steps, which are applied in order, each in one transaction together with its number. The statements of a released step
// are never changed. Comments say what each table is for.

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

  -- Rows refer to sources and destinations by number. The rows of deleted ones are kept, because other rows may refer to them.
  CREATE TABLE sources (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0, doc TEXT NOT NULL) STRICT;
  CREATE TABLE destinations (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0, doc TEXT NOT NULL) STRICT;
  CREATE TABLE suppressions (source INTEGER NOT NULL, user_id TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (source, user_id)) WITHOUT ROWID, STRICT;

  -- Messages that were accepted together. The body is the last column, so that the other columns can be read without it.
  CREATE TABLE segments (
    seq INTEGER PRIMARY KEY,
    source INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    ip TEXT,
    browser INTEGER NOT NULL,
    count INTEGER NOT NULL,
    absent TEXT,
    routes TEXT NOT NULL,
    keys BLOB NOT NULL,
    body BLOB NOT NULL
  ) STRICT;

  -- The queue of pending deliveries. The rows of a destination are adjacent: first shipments that were never attempted (class 0), in the order in
  -- which they arrived, then retries (class 1) by due time.
  CREATE TABLE shipments (
    destination INTEGER NOT NULL,
    class INTEGER NOT NULL,
    due INTEGER NOT NULL,
    id INTEGER NOT NULL,
    count INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    first_attempt INTEGER,
    unit INTEGER NOT NULL,
    replay INTEGER NOT NULL,
    urls TEXT,
    parts TEXT NOT NULL,
    PRIMARY KEY (destination, class, due, id)
  ) WITHOUT ROWID, STRICT;
  -- Finds retries whose retry window is over without reading the others.
  CREATE INDEX shipments_by_first_attempt ON shipments (destination, first_attempt) WHERE class = 1;

  -- Append-only: the requests of one attempt for the messages of one part, and which deliveries it ended.
  CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    origin INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    replay INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    doc TEXT NOT NULL
  ) STRICT;
  CREATE INDEX attempts_by_origin ON attempts (origin);
  CREATE INDEX attempts_by_destination ON attempts (destination, id);

  -- Deliveries that ended without success, one row each, for listing and grouping.
  CREATE TABLE failures (
    id INTEGER PRIMARY KEY,
    destination INTEGER NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    origin INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    replay INTEGER NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX failures_by_state ON failures (destination, state, id);

  -- Replayed deliveries.
  CREATE TABLE replays (
    origin INTEGER PRIMARY KEY,
    destination INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    replay_of TEXT NOT NULL,
    at INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX replays_by_segment ON replays (segment, idx);

  CREATE TABLE ledger (
    destination INTEGER PRIMARY KEY,
    owed INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- The sums of rows that retention has dropped, so that the ledger can still be recounted from rows.
  CREATE TABLE ledger_archive (
    destination INTEGER PRIMARY KEY,
    owed INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  -- Message keys that are older than those in memory: see key-runs.ts.
  CREATE TABLE key_runs (id INTEGER PRIMARY KEY, newest INTEGER NOT NULL, filter BLOB NOT NULL) STRICT;
  CREATE TABLE key_chunks (run INTEGER NOT NULL, chunk INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (run, chunk)) STRICT;

  -- Source 0 means calls with an unknown write key.
  CREATE TABLE source_counts (
    source INTEGER PRIMARY KEY,
    accepted INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0,
    suppressed INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE TABLE rejections (
    source INTEGER NOT NULL,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    last_sample TEXT NOT NULL,
    PRIMARY KEY (source, code)
  ) WITHOUT ROWID, STRICT;

  CREATE TABLE deletions (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    suppress INTEGER NOT NULL,
    user_ids TEXT NOT NULL,
    sources TEXT NOT NULL,
    purged INTEGER NOT NULL DEFAULT 0,
    -- The purge has read all segments up to here; it is over when this reaches the end.
    purge_cursor INTEGER NOT NULL DEFAULT 0,
    purge_end INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE deletion_targets (
    deletion INTEGER NOT NULL,
    user_id TEXT NOT NULL,
    source INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    origin INTEGER NOT NULL,
    -- How its delivery ended, filled in when retention drops the attempts that say so.
    final TEXT,
    PRIMARY KEY (deletion, user_id, source, destination)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX deletion_targets_by_origin ON deletion_targets (origin);
  `,
  `
  -- Control tokens, in addition to the one that was created at the first start. Only the hash of a token is stored.
  CREATE TABLE tokens (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT;

  -- The audit log. Entries are appended in the transaction of the change.
  CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT,
    before TEXT,
    after TEXT
  ) STRICT;
  CREATE INDEX audit_by_subject ON audit (subject, id);

  -- The final state of a deletion request, and whether its user ids were replaced by pseudonyms: see deletion-completion.ts.
  ALTER TABLE deletions ADD COLUMN ended TEXT;
  -- The request was made for all sources, so messages of deleted sources are purged too.
  ALTER TABLE deletions ADD COLUMN every_source INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE deletions ADD COLUMN pseudonyms INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX deletions_by_name ON deletions (num, created_at, ended) WHERE pseudonyms = 0;

  CREATE TABLE oauth_apps (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL) STRICT;
  -- Used assertions, until they would be rejected because of their age.
  CREATE TABLE oauth_assertions (app TEXT NOT NULL, jti TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (app, jti)) WITHOUT ROWID, STRICT;
  CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);

  -- Replayed deliveries. Those of one segment that a job replays together share an origin, as accepted ones do.
  ALTER TABLE replays RENAME TO single_replays;
  CREATE TABLE replays (
    origin INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    replay_of TEXT NOT NULL,
    at INTEGER NOT NULL,
    job INTEGER,
    -- NULL before the first attempt, then 'retrying', then how it ended.
    state TEXT,
    PRIMARY KEY (origin, idx)
  ) WITHOUT ROWID, STRICT;
  INSERT INTO replays (origin, idx, destination, segment, replay_of, at, state)
    SELECT origin, idx, destination, segment, replay_of, at, (
      SELECT CASE WHEN sum(delivered) > 0 THEN 'delivered' WHEN sum(failed) > 0 THEN 'failed' WHEN sum(expired) > 0 THEN 'expired'
                  WHEN sum(cancelled) > 0 THEN 'cancelled' WHEN count(*) > 0 THEN 'retrying' END
      FROM attempts WHERE attempts.origin = single_replays.origin)
    FROM single_replays;
  DROP TABLE single_replays;
  CREATE INDEX replays_by_segment ON replays (segment, idx, destination);
  -- Pending and delivered replays, which prevent another replay. A message may have a hundred failed ones besides: see replay-rows.ts.
  CREATE INDEX replays_that_stand ON replays (segment, idx, destination) WHERE state IS NULL OR state IN ('retrying', 'delivered');

  -- Replay jobs, their progress, and the final states of the deliveries that they replayed.
  CREATE TABLE replay_jobs (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    state TEXT NOT NULL,
    rate INTEGER,
    doc TEXT NOT NULL,
    -- Rows from here on, in time, are not part of it.
    bound INTEGER NOT NULL,
    total INTEGER NOT NULL,
    position INTEGER NOT NULL DEFAULT 0,
    replayed INTEGER NOT NULL DEFAULT 0,
    skipped TEXT NOT NULL DEFAULT '{}',
    delivered INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  CREATE INDEX replay_jobs_by_state ON replay_jobs (state, num);
  -- One part per destination, so that one that accepts nothing does not block the others. Destination 0 for deliveries that were selected by id.
  CREATE TABLE replay_parts (
    job INTEGER NOT NULL,
    destination INTEGER NOT NULL,
    -- Which of the job's states, from which row, and from which place in it.
    state INTEGER NOT NULL DEFAULT 0,
    next INTEGER NOT NULL DEFAULT 0,
    place INTEGER NOT NULL DEFAULT 0,
    over INTEGER NOT NULL DEFAULT 0,
    -- Replayed and not attempted yet.
    waiting INTEGER NOT NULL DEFAULT 0,
    -- The position of the job when it last had its turn.
    turn INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job, destination)
  ) WITHOUT ROWID, STRICT;

  -- Fingerprints of messages that were sent again, by the segment that contains the messages: see repeats.ts.
  CREATE TABLE repeats (
    segment INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    fingerprints BLOB NOT NULL,
    PRIMARY KEY (segment, digest)
  ) WITHOUT ROWID, STRICT;

  -- The caller's trace context, if it sent one: see trace-column.ts.
  ALTER TABLE segments ADD COLUMN trace TEXT;

  -- Counts per minute and per hour (step, in milliseconds): of sources, of destinations, and of all together.
  CREATE TABLE stats (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (kind, subject, step, at)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX stats_by_age ON stats (step, at);
  `,
  `
  -- From this version on, receivers' credentials are encrypted. Existing plain text is encrypted at the next start, which has the key: see encrypt-credentials.ts.
  INSERT INTO settings (name, value)
    SELECT 'plain_credentials', 'true' WHERE EXISTS (SELECT 1 FROM destinations);
  `,
  `
  -- The versions of destinations, with encrypted content: see destination-versions.ts. They are deleted with the destination.
  CREATE TABLE destination_versions (
    destination TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    actor TEXT,
    actor_name TEXT,
    content TEXT NOT NULL,
    PRIMARY KEY (destination, version)
  ) WITHOUT ROWID, STRICT;
  `,
  `
  CREATE TABLE plans (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0, doc TEXT NOT NULL) STRICT;

  -- What the service counted or noticed, by kind: see port/documents.ts.
  CREATE TABLE documents (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    at INTEGER NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (kind, key)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX documents_by_time ON documents (kind, at, key);

  -- How messages differ from the tracking plan: see violations-column.ts.
  ALTER TABLE segments ADD COLUMN violations TEXT;
  -- Messages that are sent nowhere until they are released. The rule is the key of a rule of the plan.
  CREATE TABLE quarantine (
    segment INTEGER NOT NULL,
    idx INTEGER NOT NULL,
    source INTEGER NOT NULL,
    plan TEXT NOT NULL,
    rule TEXT NOT NULL,
    PRIMARY KEY (segment, idx)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX quarantine_by_source ON quarantine (source, segment, idx);
  ALTER TABLE source_counts ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE source_counts ADD COLUMN released INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE source_counts ADD COLUMN deleted INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- From this version on, the mappings of webhooks are encrypted, too. Existing ones are encrypted at the next start: see encrypt-credentials.ts.
  INSERT OR REPLACE INTO settings (name, value)
    SELECT 'plain_credentials', 'true' WHERE EXISTS (SELECT 1 FROM destinations);
  `,
  `
  -- What a token is limited to: see resource-rows.ts. Null: nothing.
  ALTER TABLE tokens ADD COLUMN limits TEXT;
  -- The type and the owner of the actor, and the ids of the sources that the change concerns, as JSON: see audit-log.ts.
  ALTER TABLE audit ADD COLUMN actor_about TEXT;
  ALTER TABLE audit ADD COLUMN sources TEXT;
  `,
  `
  -- Shipments whose messages are delivered in order have classes of their own: never attempted (2), in the order in which they arrived; heads of keys,
  -- to be attempted again (3), by due time; and those that wait behind others of their key (4), with the key as due. 'ord' is the place in the order of acceptance.
  ALTER TABLE shipments ADD COLUMN ord INTEGER;
  CREATE INDEX shipments_waiting ON shipments (destination, due, ord, id) WHERE class = 4;
  CREATE INDEX shipments_heads_by_first_attempt ON shipments (destination, first_attempt) WHERE class = 3;
  -- The keys that are not free, as hashes: see model/order/key-states.ts. The message is the head, or the one that holds the key. 'due' is that
  -- of the head when it was stored. 'skip': an operator ends the head when its running attempt is over.
  CREATE TABLE order_keys (
    destination INTEGER NOT NULL,
    key INTEGER NOT NULL,
    state TEXT NOT NULL,
    since INTEGER NOT NULL,
    segment INTEGER,
    origin INTEGER,
    idx INTEGER,
    due INTEGER,
    skip INTEGER NOT NULL DEFAULT 0,
    waiting INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (destination, key)
  ) WITHOUT ROWID, STRICT;
  CREATE INDEX order_keys_by_state ON order_keys (destination, state, since, key);
  -- Whether the replay is the head of its key. Other replays are outside the order.
  ALTER TABLE replays ADD COLUMN resumed INTEGER NOT NULL DEFAULT 0;
  `,
  `
  -- What operators see of keys: the attempts of the head so far, and how the message that holds the key ended. 'segment' finds the keys of deleted messages.
  ALTER TABLE order_keys ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE order_keys ADD COLUMN ended TEXT;
  CREATE INDEX order_keys_by_segment ON order_keys (segment) WHERE segment IS NOT NULL;
  -- Keys with so many waiting messages that the limit of a destination may be exceeded. The smallest limit is 100.
  CREATE INDEX order_keys_crowded ON order_keys (destination, waiting) WHERE waiting > 99;
  `,
]
