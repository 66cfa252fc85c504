// Faulty versions of the service that the fault rounds must catch: each breaks one promise by changing a few lines of one source file. If a round
// with a mutant passes, the audit has a gap. No file is changed: apply-mutant.ts changes the source text when a node loads it.
// This file is loaded into nodes, so it imports nothing.

export interface Mutant {
  /** The name for --mutants. */
  name: string
  /** What it does wrong. */
  breaks: string
  /** Below packages/server/src. */
  file: string
  /** Each `from` must be in the file exactly once. */
  changes: readonly (readonly [from: string, to: string])[]
  /** The key of the row that must catch it. */
  fault: string
  /** Whether the file is loaded by loaders, which are processes of their own. */
  inLoader?: true
  store: 'sqlite' | 'postgres'
  /** One of the problems must match this. Otherwise the mutant is not caught, for example because the nodes did not start. */
  expected: RegExp
  /** Faults in the round; 3 by default. */
  faults?: number
  /** Of the round; 1 by default. */
  seed?: number
}

const NOT_IN_ORDER = /in order.*: m-\d+ and m-\d+ of a.* (?:the second arrived|the first arrived again|in one request)/
const LOST = /acknowledged messages (?:never arrived|are not in the store)/

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'answer-before-commit',
    breaks: 'A call is answered with 200 up to 50 ms before its transaction is committed.',
    file: 'store/sqlite/threads/group-writer.ts',
    changes: [
      ["database.exec('BEGIN IMMEDIATE')", "if (!database.isTransaction) database.exec('BEGIN IMMEDIATE')"],
      ["database.exec('COMMIT')", "setTimeout(() => database.isTransaction && database.exec('COMMIT'), 50)"],
    ],
    fault: 'node-killed',
    store: 'sqlite',
    expected: LOST,
  },
  {
    name: 'asynchronous-commit',
    breaks: 'PostgreSQL confirms commits before they are on disk.',
    file: 'store/postgres/session/connection.ts',
    changes: [["'synchronous_commit=on'", "'synchronous_commit=off'"]],
    fault: 'postgres-killed',
    store: 'postgres',
    expected: LOST,
  },
  {
    name: 'failed-commit-ignored',
    breaks: 'A call is answered with 200 although its transaction failed with a disk error.',
    file: 'store/sqlite/threads/group-writer.ts',
    changes: [['replies[at] = failure(failed)', 'replies[at] ??= failure(failed)']],
    fault: 'io-error',
    store: 'sqlite',
    expected: LOST,
    // A fifth of the statements fail in each of the first faults, so that transactions fail at their commit.
    seed: 4674,
    faults: 6,
  },
  {
    name: 'lost-answer-ignored',
    breaks: 'A call is answered with 200 if the connection to PostgreSQL broke before the commit was confirmed.',
    file: 'store/postgres/messages/accepting.ts',
    changes: [['this.#reportState(error.message)', 'if (group !== undefined) return group.replies(new Map())']],
    fault: 'postgres-killed',
    store: 'postgres',
    expected: LOST,
  },
  {
    name: 'delivered-before-response',
    breaks: 'A delivery is recorded as delivered when its request is sent.',
    file: 'delivery/lanes/lane.ts',
    changes: [
      [
        'this.#flights.start(this.destination, task, unit, allowed,',
        'if (this.destination.transformation === null) {\ntask.deliver(unit, [])\nheld.changed(task)\n}\n' +
          'this.#flights.start(this.destination, task, unit, allowed,',
      ],
    ],
    fault: 'node-killed',
    store: 'sqlite',
    expected: LOST,
  },
  {
    name: 'no-retry',
    breaks: 'A delivery is recorded as failed after a temporary failure.',
    file: 'destinations/webhook/verdict.ts',
    changes: [["PERMANENT_FROM_500.has(status) ? 'permanent' : 'temporary'", "'permanent'"]],
    fault: 'node-killed',
    store: 'sqlite',
    expected: /is failed in the store instead of delivered/,
  },
  {
    name: 'sender-lost-is-final',
    breaks: 'Deliveries fail if the sender thread ends while it sends them.',
    file: 'api/attempt-reasons.ts',
    changes: [["sender_lost: [\n    'temporary'", "sender_lost: [\n    'permanent'"]],
    fault: 'sender-killed',
    store: 'sqlite',
    expected: /is failed in the store instead of delivered/,
  },
  {
    name: 'untransformed-is-dropped',
    breaks: 'If the transformation thread ends, its messages are recorded as dropped by the transformation.',
    file: 'delivery/sender/transforming/thread-transformer.ts',
    changes: [
      [
        "if ('lostAt' in end) this.#lost(job, isSlow, end)",
        "if ('lostAt' in end) while (job.results.length < job.count) job.results.push({ kind: 'dropped', logs: null })",
      ],
    ],
    fault: 'transform-killed',
    store: 'sqlite',
    expected: /transformed: m-\d+ is cancelled in the store instead of delivered/,
    faults: 12,
  },
  {
    name: 'partial-success-is-success',
    breaks: 'All messages that an integration got together count as delivered, also those that the tool did not accept.',
    file: 'delivery/shipments/task.ts',
    changes: [["if (verdict === 'success') {\n        record.delivered", "if (verdict !== 'permanent') {\n        record.delivered"]],
    fault: 'host-killed',
    store: 'sqlite',
    expected: /integration: \d+ acknowledged messages never arrived/,
  },
  {
    name: 'no-dead-letters',
    breaks: 'Dead letters are not stored.',
    file: 'store/sqlite/writing/write-settle.ts',
    changes: [['for (const some of letters) this.#letters.insert(some)', '']],
    fault: 'node-killed',
    store: 'sqlite',
    expected: /dead letters: \d+ acknowledged messages never arrived/,
  },
  {
    name: 'recorded-late',
    breaks: 'Outcomes are recorded 15 s after the response, so that a crash repeats many deliveries.',
    file: 'delivery/recording/settlement-recorder.ts',
    // Those with retries are recorded at once, because the lane looks for them.
    changes: [
      [
        'this.#try({ settlement, onEnd, nth: 1, hasFailed: false })',
        'const first = { settlement, onEnd, nth: 1, hasFailed: false }\n' +
          'if (settlement.remaining.length + settlement.kept.length > 0) return this.#try(first)\n' +
          'onEnd(true)\nsetTimeout(() => this.#try({ ...first, onEnd: () => {} }), 15_000)',
      ],
    ],
    fault: 'node-killed',
    store: 'sqlite',
    expected: /arrived more than once, and neither a fault nor a failed attempt explains it/,
  },
  {
    name: 'duplicates-forgotten',
    breaks: 'After a restart, messages that were accepted before are accepted again.',
    file: 'store/sqlite/keys/duplicates.ts',
    changes: [['if (isKey(words, at)) this.#recent.add(words, at, seq)', '']],
    fault: 'clock-jump',
    store: 'sqlite',
    expected: /messages are counted as accepted, but \d+ were acknowledged/,
    faults: 6,
  },
  {
    name: 'pending-is-old',
    breaks: 'Retention drops messages that are not delivered yet.',
    file: 'store/sqlite/writing/retention.ts',
    changes: [['this.#pinned = new Set([...pending, ...held])', 'this.#pinned = new Set(held)']],
    fault: 'clock-jump',
    store: 'sqlite',
    expected: /acknowledged messages (?:never arrived|have not arrived)/,
    // Twice the clock jumps further ahead by more than the retention time, while a receiver is away.
    seed: 17935,
    faults: 2,
  },
  {
    name: 'cancelled-not-counted',
    breaks: 'The ledger does not count cancelled deliveries.',
    file: 'store/sqlite/writing/group-counts.ts',
    changes: [['this.add(destination, state, count)', "if (state !== 'cancelled') this.add(destination, state, count)"]],
    fault: 'node-killed',
    store: 'sqlite',
    expected: /the ledger .* differs from its recount/,
  },
  {
    name: 'unordered-dead-letters',
    breaks: 'Settlements that were built before a deletion are written unchanged after it, with dead letters of the deleted users.',
    file: 'store/deletions/deleted-users.ts',
    changes: [['if (all.length === 0) return settlement', 'if (all.length >= 0) return settlement']],
    fault: 'user-deleted',
    store: 'sqlite',
    expected: /data of a deleted user/,
    faults: 12,
  },
  {
    name: 'text-stays',
    breaks: 'A deletion leaves the text of attempts.',
    file: 'store/deletions/purged-attempts.ts',
    changes: [['if (changed.length > 0) await rows.rewrite(changed)', 'void changed']],
    fault: 'node-killed',
    store: 'sqlite',
    expected: /shows data of a deleted user|the table attempts has data of a deleted user/,
  },
  {
    name: 'no-takeover',
    breaks: 'The deliveries of a node that died are not released.',
    file: 'store/postgres/cluster/dead-nodes.ts',
    changes: [["await ask('UPDATE shipments SET holder = 0 WHERE holder = $1', [holder])", 'void [ask, holder]']],
    fault: 'node-killed',
    store: 'postgres',
    expected: LOST,
  },
  {
    name: 'no-fence',
    breaks: 'A node that was declared dead can record outcomes of deliveries that another node has taken over.',
    file: 'store/postgres/messages/settling.ts',
    changes: [
      ['if (!this.#tools.claiming.holds(id as string, claim)) throw', 'if (id === undefined || claim === undefined) throw'],
      ['SELECT CASE WHEN (SELECT count(*) FROM gone)', 'SELECT CASE WHEN true THEN NULL WHEN (SELECT count(*) FROM gone)'],
    ],
    fault: 'node-frozen',
    store: 'postgres',
    expected: /the recorded attempts delivered \d+ messages instead of \d+/,
    // All pauses are longer than the lease.
    seed: 1361,
  },
  {
    name: 'key-in-parallel',
    breaks: 'Messages of a key are sent while earlier ones of the key are in flight.',
    file: 'delivery/lanes/queues/key-queues.ts',
    changes: [['return running === 0 && waiting.length > 0', 'return running >= 0 && waiting.length > 0']],
    fault: 'node-killed',
    store: 'sqlite',
    expected: NOT_IN_ORDER,
  },
  {
    name: 'retry-overtaken',
    breaks: 'New messages of a key are sent while its head waits for another attempt.',
    file: 'store/sqlite/writing/ordered-claims.ts',
    changes: [['const isFree = orderKeys.freeKeys(destination, leaving)', 'const isFree = null']],
    fault: 'node-killed',
    store: 'sqlite',
    expected: NOT_IN_ORDER,
  },
  {
    name: 'latest-first',
    breaks: 'Messages that were claimed together are sent in the reverse of the order in which they were accepted.',
    file: 'store/postgres/messages/ordered-reads.ts',
    changes: [['rows.sort(byPlace)', 'rows.sort((a, b) => byPlace(b, a))']],
    fault: 'node-killed',
    store: 'postgres',
    expected: NOT_IN_ORDER,
  },
  {
    name: 'load-renamed',
    breaks: 'A load that is repeated has another id, so that it does not replace what it has written before.',
    file: 'delivery/lanes/load-gathering.ts',
    changes: [
      [
        'const [oldest] = first.shipments',
        'const [oldest] = first.shipments.map((one) => !isLoad(one.shipment.progress) ? one\n' +
          ": { ...one, shipment: { ...one.shipment, progress: [`load:${newId('load')}`, ...(one.shipment.progress ?? []).slice(1)] } })",
      ],
    ],
    fault: 'loads-killed',
    store: 'sqlite',
    expected: /table \w+: \d+ messages have more than one row/,
    faults: 8,
  },
  {
    name: 'unloaded-is-delivered',
    breaks: 'Messages count as delivered although a loader could not load their rows into some tables.',
    file: 'delivery/loader/load-runs.ts',
    inLoader: true,
    changes: [['(error === null ? [] :', '(error === null || true ? [] :']],
    fault: 'warehouse-away',
    store: 'sqlite',
    expected: /\d+ acknowledged messages have no row/,
    faults: 8,
  },
]
