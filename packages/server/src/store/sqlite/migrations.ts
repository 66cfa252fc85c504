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

  CREATE TABLE oauth_apps (num INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, doc TEXT NOT NULL) STRICT;
  -- Assertions that were used, until they would be refused for their age.
  CREATE TABLE oauth_assertions (app TEXT NOT NULL, jti TEXT NOT NULL, expires_at INTEGER NOT NULL, PRIMARY KEY (app, jti)) WITHOUT ROWID, STRICT;
  CREATE INDEX oauth_assertions_by_expiry ON oauth_assertions (expires_at);

  -- Replays of many deliveries, and how far each has come.
  CREATE TABLE replay_jobs (
    num INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    finished_at INTEGER,
    state TEXT NOT NULL,
    doc TEXT NOT NULL,
    total INTEGER NOT NULL,
    done INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    cursor TEXT
  ) STRICT;
  CREATE INDEX replays_by_original ON replays (replay_of);

  -- Counts per minute, of sources and of destinations.
  CREATE TABLE stats (
    minute INTEGER NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    doc TEXT NOT NULL,
    PRIMARY KEY (minute, kind, subject)
  ) WITHOUT ROWID, STRICT;
  `,
]
