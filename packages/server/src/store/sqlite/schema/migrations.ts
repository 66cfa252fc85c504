// The schema as numbered steps, applied in order, each in one transaction with its number. A step that was released is
// never changed. What every table is for stands beside it; which statement uses it stands in the files of this folder.

export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;

  -- Rows refer to sources and destinations by number. Those that were deleted stay, for what still refers to them.
  CREATE TABLE sources (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0, doc TEXT NOT NULL) STRICT;
  CREATE TABLE destinations (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, deleted INTEGER NOT NULL DEFAULT 0, doc TEXT NOT NULL) STRICT;
  CREATE TABLE suppressions (source INTEGER NOT NULL, user_id TEXT NOT NULL, since INTEGER NOT NULL, PRIMARY KEY (source, user_id)) WITHOUT ROWID, STRICT;

  -- Messages accepted together. The body comes last, so that what stands before it is read without it.
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

  -- The work owed, and nothing else: a row is the queue. One destination's rows lie together, first those never attempted
  -- (class 0) in the order they came, then retries (class 1) by when they are due.
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
  -- Retries whose window is over, found without passing those whose is not.
  CREATE INDEX shipments_by_first_attempt ON shipments (destination, first_attempt) WHERE class = 1;

  -- What happened, appended: the requests of one attempt at the messages of one part, and which of them it ended.
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

  -- Deliveries that ended without success, one row each, to list and group them.
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

  -- Deliveries owed once more.
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
  -- What the rows dropped by retention added up to, so that the ledger can still be counted from rows.
  CREATE TABLE ledger_archive (
    destination INTEGER PRIMARY KEY,
    owed INTEGER NOT NULL DEFAULT 0,
    delivered INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    cancelled INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  -- Message keys older than those in memory: see key-runs.ts.
  CREATE TABLE key_runs (id INTEGER PRIMARY KEY, newest INTEGER NOT NULL, filter BLOB NOT NULL) STRICT;
  CREATE TABLE key_chunks (run INTEGER NOT NULL, chunk INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (run, chunk)) STRICT;

  -- Source 0 stands for calls whose write key was not known.
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
  -- Control tokens beside the one that was made at the first start. Of a token only its hash is kept.
  CREATE TABLE tokens (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT;

  -- Who did what: appended in the transaction of what was done.
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

  -- How a deletion request ended, once it has; and whether its users stand in it by pseudonym: see deletion-completion.ts.
  ALTER TABLE deletions ADD COLUMN ended TEXT;
  -- Asked for without naming sources: what came by sources that were deleted is purged too.
  ALTER TABLE deletions ADD COLUMN every_source INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE deletions ADD COLUMN pseudonyms INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX deletions_by_name ON deletions (num, created_at, ended) WHERE pseudonyms = 0;

  CREATE TABLE oauth_apps (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL) STRICT;
  -- Assertions that were used, until they would be refused for their age.
  CREATE TABLE oauth_assertions (app TEXT NOT NULL, jti TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (app, jti)) WITHOUT ROWID, STRICT;
  CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);

  -- Deliveries owed once more. Those of one segment that a job replays together share an origin, as accepted ones do.
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
  -- Those that speak against one more; a message may have failed a hundred times beside them: see replay-rows.ts.
  CREATE INDEX replays_that_stand ON replays (segment, idx, destination) WHERE state IS NULL OR state IN ('retrying', 'delivered');

  -- Replays of many deliveries, how far each has come, and what became of what it replayed.
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
  -- Per destination, so that one that takes nothing does not hold the others up; destination 0 for a list of deliveries.
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

  -- Messages that came again, as fingerprints, under the segment that has them: see repeats.ts.
  CREATE TABLE repeats (
    segment INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    fingerprints BLOB NOT NULL,
    PRIMARY KEY (segment, digest)
  ) WITHOUT ROWID, STRICT;

  -- The caller's trace, where it sent one: see trace-column.ts.
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
  -- Receivers' credentials are sealed from here on. What is still plain is sealed at the next start that has the key: see encrypt-credentials.ts.
  INSERT INTO settings (name, value)
    SELECT 'plain_credentials', 'true' WHERE EXISTS (SELECT 1 FROM destinations);
  `,
]
