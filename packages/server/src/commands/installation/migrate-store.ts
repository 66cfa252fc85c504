// `switchyard migrate-store`: moves a SQLite installation to PostgreSQL while neither runs. The work is store-migration's.

import { SETTINGS, type StoreAddress } from '../../config.ts'
import type { Moved } from '../../installation/maintenance.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode } from '../line/command.ts'

export const migrateStore: Command = {
  name: 'migrate-store',
  summary: 'Moves a SQLite installation to PostgreSQL, with nothing lost; the service must be stopped',
  details:
    'Everything goes: configuration and secrets, tokens, messages, what is still owed, attempts, replays, deletions, suppressions, the audit log, counts. The database must be empty. At the end both are compared, table by table, and the ledger with its recount. Interrupted at any moment, the same call goes on.\n\n' +
    "Secrets are encrypted with the key in SWITCHYARD_SECRET_KEY from then on, which every node needs (`switchyard rotate-key --generate` prints a good one). They are opened with the key beside the file, or with that same key. Where the file's key is another that was given in SWITCHYARD_SECRET_KEY, leave it there and put the nodes' key in SWITCHYARD_NEW_SECRET_KEY.\n\n" +
    'The file stays as it is, with a mark: no service starts on it until --undo takes that away. The ids of messages and deliveries change; the old ones still find them. docs/operations/postgresql.md says more.',
  flags: {
    from: { placeholder: 'ADDRESS', sentence: 'The file.', usual: SETTINGS.store.usual },
    to: {
      placeholder: 'ADDRESS',
      sentence: 'The database: postgres://… Others on this machine can read the flags of a process: rather use the variable.',
      variable: 'SWITCHYARD_STORE',
    },
    'dry-run': { placeholder: null, sentence: 'Looks at both and counts; moves nothing.' },
    'keep-usable': { placeholder: null, sentence: 'Leaves no mark in the file. Two services would then go on from the same past.' },
    undo: { placeholder: null, sentence: 'Takes the mark away, so that a service starts on the file again. The database is left alone.' },
  },
  examples: [
    'SWITCHYARD_STORE=postgres://switchyard@db.internal/switchyard switchyard migrate-store --from sqlite:./data/switchyard.db',
    'switchyard migrate-store --from sqlite:./data/switchyard.db --undo',
  ],
  run: (call) => (call.has('undo') ? undo(call) : move(call)),
}

async function move(call: Call): Promise<ExitCode> {
  const { out, env, signal } = call
  const path = fileOf(call)
  const to = call.flag('to') ?? (env['SWITCHYARD_STORE'] || undefined)
  if (to === undefined) throw new CommandProblem('Where to? Set SWITCHYARD_STORE to postgres://…, or give it with --to.', EXIT.usage)
  const address = parsed(to, call.flag('to') === undefined ? 'SWITCHYARD_STORE' : '--to')
  if (address.kind !== 'postgres') throw new CommandProblem('The store to move to must be postgres://…', EXIT.usage)
  const dryRun = call.has('dry-run')
  const { MaintenanceProblem, migrateStore: migrate } = await import('../../installation/maintenance.ts')
  const progress = out.progress('Moving, in rows')
  let moved: Moved
  try {
    moved = await migrate({
      path,
      url: address.url,
      secretKey: env['SWITCHYARD_SECRET_KEY'] || null,
      newKey: env['SWITCHYARD_NEW_SECRET_KEY'] || null,
      keepUsable: call.has('keep-usable'),
      dryRun,
      signal,
      onProgress: (done, total, table) => progress.update(done, total, table),
    })
  } catch (error) {
    if (error instanceof MaintenanceProblem) throw new CommandProblem(error.message, EXIT.failed, { cause: error })
    throw error
  } finally {
    progress.end()
  }
  if (call.json) out.json(asJson(moved, path, dryRun, call.has('keep-usable')))
  else tell(call, moved, path, dryRun)
  return EXIT.ok
}

function tell(call: Call, moved: Moved, path: string, dryRun: boolean): void {
  const { out } = call
  const { rows, before, messages, destinations, to, already } = moved
  if (dryRun) {
    out.line(`${rows} rows would be moved, with ${messages} messages${before > 0 ? `; ${before} of them are there already` : ''}.`)
    return
  }
  if (already) out.line(`${path} was moved to ${to} before: ${rows} rows.`)
  else {
    out.line(
      `${rows} rows with ${messages} messages are in ${to}${before > 0 ? `, ${before} of them from before` : ''}: ${rate(moved)} rows per second.`,
    )
    out.line(
      `Compared: every table has as many rows, and the ledger and its recount are the same on both sides, for ${destinations} destinations.`,
    )
  }
  if (call.has('keep-usable')) out.remark('The file can still be used: take care that no service starts on it.')
  else out.line(`No service starts on ${path} any more; switchyard migrate-store --from sqlite:${path} --undo changes that.`)
  out.remark(
    'Start the nodes with that address in SWITCHYARD_STORE and the key in SWITCHYARD_SECRET_KEY. Keep the key: nothing else opens the secrets.',
  )
}

function rate({ rows, before, movedMs }: Moved): number {
  return Math.round(((rows - before) * 1_000) / Math.max(1, movedMs))
}

function asJson(moved: Moved, path: string, dryRun: boolean, isUsable: boolean): object {
  const { rows, before, messages, destinations, to, already, counts, movedMs } = moved
  return {
    from: path,
    to,
    dryRun,
    already,
    rows,
    rowsFromBefore: before,
    messages,
    destinations,
    tables: counts,
    ...(dryRun ? {} : { seconds: Math.round(movedMs) / 1_000, rowsPerSecond: rate(moved), fileUsable: isUsable }),
  }
}

async function undo(call: Call): Promise<ExitCode> {
  const path = fileOf(call)
  const { MaintenanceProblem, undoMigration } = await import('../../installation/maintenance.ts')
  try {
    const was = await undoMigration(path)
    if (call.json) call.out.json({ from: path, undone: was })
    else call.out.line(was ? `Services start on ${path} again, with what was in it when it was moved.` : `${path} was not marked as moved.`)
    return EXIT.ok
  } catch (error) {
    if (error instanceof MaintenanceProblem) throw new CommandProblem(error.message, EXIT.failed, { cause: error })
    throw error
  }
}

function fileOf(call: Call): string {
  const address = parsed(call.flag('from') ?? SETTINGS.store.usual, '--from')
  if (address.kind !== 'sqlite') throw new CommandProblem('The store to move from must be sqlite:PATH.', EXIT.usage)
  return address.path
}

/** What was given is not quoted: it may hold a password. */
function parsed(text: string, what: string): StoreAddress {
  const result = SETTINGS.store.parse(text)
  if ('value' in result) return result.value
  throw new CommandProblem('problem' in result ? `${what}: ${result.problem}` : `${what} must be ${result.expected}.`, EXIT.usage)
}
