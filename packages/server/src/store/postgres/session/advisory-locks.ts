// The numbers of all PostgreSQL advisory locks that the service takes. The numbers are arbitrary but must differ, or two tasks that have
// nothing to do with each other would wait for each other. They must not change either: nodes of two versions run beside each other
// during an upgrade. They are text because that is how a bigint is passed. In addition, each node takes a lock whose number is its holder id
// (cluster/node-locks.ts). Holder ids are row ids, which are greater than all of these.

export const ADVISORY_LOCKS = {
  /** Creating and migrating the schema. */
  schema: '7311994520117',
  /** Adding a node, and declaring one dead. */
  membership: '7311994520118',
  /** Creating partitions. */
  partitions: '7311994520119',
  /** Dropping data that is older than the retention period. */
  retention: '7311994520120',
  /** Adding the appended changes to the ledger. */
  books: '7311994520121',
  /** Steps of replay jobs. */
  replaySteps: '7311994520130',
  /** Migrating a SQLite store into the database. */
  storeMigration: '7311994520131',
  /** Deletion requests, against settlements that may contain data of users: see messages/settling.ts. */
  deletions: '7311994520132',
  /** Claims of ordered shipments (shared), against changes of the owners of partitions: see cluster/order-partitions.ts. */
  order: '7311994520133',
  /** Updates of documents: this number plus one for each kind, up to 65,535. */
  documents: '7311994600000',
} as const
