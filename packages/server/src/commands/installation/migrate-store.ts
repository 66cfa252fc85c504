// `switchyard migrate-store`: migrates a SQLite installation to PostgreSQL while the service is stopped. The work is done by store-migration.

import { counted } from '../../api/counted.ts'
import { SETTINGS, type StoreAddress } from '../../config.ts'
import type { MigrationResult } from '../../installation/maintenance.ts'
import { keyProblem } from '../../secrets/key-strength.ts'
import { type Call, type Command, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { showResult } from '../line/listing.ts'
import { maintain } from './local-installation.ts'

export const migrateStore: Command = {
  name: 'migrate-store',
  summary: 'Migrate a SQLite installation to PostgreSQL without losing data (stop the service first)',
  details:
    'Copies everything: configuration and secrets, tokens, messages, pending deliveries, attempts, replays, deletions, suppressions, the audit log and counts. The PostgreSQL database must be empty. At the end the row counts of every table, the ledger, and the ledger recounted from the rows are compared between the two stores. If the command is interrupted, run it again to resume.\n\n' +
    "In PostgreSQL, secrets are encrypted with the key in SWITCHYARD_SECRET_KEY, which every node needs (`switchyard rotate-key --generate` prints a new one). To decrypt the secrets of the file, the command tries the .key file next to it and the key in SWITCHYARD_SECRET_KEY. If the file uses one key from SWITCHYARD_SECRET_KEY and the nodes will use another, keep the file's key there and set SWITCHYARD_NEW_SECRET_KEY to the nodes' key.\n\n" +
    'The rows stay in the file, and the file is marked as migrated: no service starts on it until you remove the mark with --undo. Messages and deliveries get new ids; lookups by the old ids still work. See docs/operations/postgresql.md.',
  flags: {
    from: { placeholder: 'ADDRESS', description: 'The SQLite file to migrate.', defaultText: SETTINGS.store.defaultText },
    to: {
      placeholder: 'ADDRESS',
      description:
        'The PostgreSQL database to migrate to: postgres://… Other users of this machine can see the flags of a process, so prefer the environment variable.',
      variable: 'SWITCHYARD_STORE',
    },
    'dry-run': { placeholder: null, description: 'Check both stores and count the rows, without changing anything.' },
    'keep-usable': {
      placeholder: null,
      description: 'Do not mark the file as migrated. Make sure that no service starts on it, because the two stores would diverge.',
    },
    undo: {
      placeholder: null,
      description: 'Remove the mark, so that a service can start on the file again. Does not change the PostgreSQL database.',
    },
  },
  examples: [
    'SWITCHYARD_STORE=postgres://switchyard@db.internal/switchyard switchyard migrate-store --from sqlite:./data/switchyard.db',
    'switchyard migrate-store --from sqlite:./data/switchyard.db --undo',
  ],
  run: (call) => (call.has('undo') ? undo(call) : migrate(call)),
}

async function migrate(call: Call): Promise<ExitCode> {
  const { out, env, signal } = call
  const path = fileOf(call)
  const to = call.flag('to') ?? (env['SWITCHYARD_STORE'] || undefined)
  if (to === undefined) throw new UsageProblem('The target database is missing. Set SWITCHYARD_STORE to postgres://…, or use --to.')
  const address = parsed(to, call.flag('to') === undefined ? 'SWITCHYARD_STORE' : '--to')
  if (address.kind !== 'postgres')
    throw new UsageProblem(`${call.flag('to') === undefined ? 'SWITCHYARD_STORE' : '--to'} must be a PostgreSQL address (postgres://…).`)
  const dryRun = call.has('dry-run')
  // The key that the nodes will use: they do not start with a short one.
  for (const name of [env['SWITCHYARD_NEW_SECRET_KEY'] ? 'SWITCHYARD_NEW_SECRET_KEY' : 'SWITCHYARD_SECRET_KEY']) {
    const weak = env[name] ? keyProblem(name, env[name]) : null
    if (weak !== null) throw new UsageProblem(weak)
  }
  const progress = out.progress('Migrating rows')
  const options = {
    path,
    url: address.url,
    secretKey: env['SWITCHYARD_SECRET_KEY'] || null,
    newKey: env['SWITCHYARD_NEW_SECRET_KEY'] || null,
    keepUsable: call.has('keep-usable'),
    dryRun,
    signal,
    onProgress: (done: number, total: number, table: string) => progress.update(done, total, table),
  }
  const result = await maintain(({ migrateStore: runMigration }) => runMigration(options)).finally(() => progress.end())
  if (call.json) out.json(asJson(result, path, dryRun, call.has('keep-usable')))
  else printResult(call, result, path, dryRun)
  return EXIT.ok
}

function printResult(call: Call, result: MigrationResult, path: string, dryRun: boolean): void {
  const { out } = call
  const { rows, earlierRows, messages, destinations, to, wasComplete } = result
  if (dryRun) {
    out.line(
      `Would migrate ${counted(rows, 'row')} (${counted(messages, 'message')})${earlierRows > 0 ? `; ${counted(earlierRows, 'row is', 'rows are')} already migrated` : ''}.`,
    )
    return
  }
  if (wasComplete) out.line(`${path} was already migrated to ${to}: ${counted(rows, 'row')}.`)
  else {
    out.line(
      `Migrated ${counted(rows, 'row')} (${counted(messages, 'message')}) to ${to}${earlierRows > 0 ? `, ${earlierRows} of them by an earlier run` : ''}, at ${rate(result)} rows per second.`,
    )
    out.line(
      `Verified: the row counts of all tables, and the ledgers of ${counted(destinations, 'destination')} (stored and recounted), are the same in both stores.`,
    )
  }
  if (call.has('keep-usable')) out.remark('The file is not marked as migrated: make sure that no service starts on it.')
  else
    out.line(
      out.inForm(
        `${path} is marked as migrated, and no service will start on it. To remove the mark: switchyard migrate-store --from sqlite:${path} --undo`,
      ),
    )
  out.remark(
    'Next: start the nodes with this address in SWITCHYARD_STORE and the key in SWITCHYARD_SECRET_KEY. Keep the key safe: without it the secrets cannot be decrypted.',
  )
}

function rate({ rows, earlierRows, elapsedMs }: MigrationResult): number {
  return Math.round(((rows - earlierRows) * 1_000) / Math.max(1, elapsedMs))
}

function asJson(result: MigrationResult, path: string, dryRun: boolean, isUsable: boolean): object {
  const { rows, earlierRows, messages, destinations, to, wasComplete, counts, elapsedMs } = result
  return {
    from: path,
    to,
    dryRun,
    already: wasComplete,
    rows,
    rowsFromBefore: earlierRows,
    messages,
    destinations,
    tables: counts,
    ...(dryRun ? {} : { seconds: Math.round(elapsedMs) / 1_000, rowsPerSecond: rate(result), fileUsable: isUsable }),
  }
}

async function undo(call: Call): Promise<ExitCode> {
  const path = fileOf(call)
  const undone = await maintain(({ undoMigration }) => undoMigration(path))
  const done = `Removed the mark from ${path}. A service can start on it again, with the data from before the migration.`
  showResult(call, { from: path, undone }, undone ? done : `${path} was not marked as migrated.`)
  return EXIT.ok
}

function fileOf(call: Call): string {
  const address = parsed(call.flag('from') ?? SETTINGS.store.defaultText, '--from')
  if (address.kind !== 'sqlite') throw new UsageProblem('--from must be a SQLite store (sqlite:PATH).')
  return address.path
}

/** The error does not quote the value, which may contain a password. */
function parsed(text: string, what: string): StoreAddress {
  const result = SETTINGS.store.parse(text)
  if ('value' in result) return result.value
  throw new UsageProblem('problem' in result ? `${what}: ${result.problem}` : `${what} must be ${result.expected}.`)
}
