// `switchyard backup`: a consistent copy of the store of a running service, fetched from it, checked, and only then put in its
// place. The key that opens the secrets in it is another file, which the service never gives out.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { ledgerProblems } from '../../api/check-ledger.ts'
import type { StoreInspection } from '../../installation/maintenance.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode } from '../line/command.ts'
import { controlToken } from '../line/global-flags.ts'
import { at } from '../line/references.ts'
import { createApi, pause } from '../service/api.ts'
import { type LocalKey, localConfig, localKey, opens } from './local-installation.ts'

const POLL_MS = 200
/** A check of a copy hurries nobody. */
const CHECK_DEADLINE_MS = 6 * 3_600_000

export const backup: Command = {
  name: 'backup',
  summary: 'A consistent copy of the SQLite file while the service runs, checked',
  details:
    'The service makes the copy beside its store, so it needs as much room again there; it goes on accepting and delivering. The copy is checked, for its integrity and by a recount of the ledger, before it gets its name.\n\n' +
    'Secrets in it are encrypted. To restore it you need the key as well: --with-key copies it to FILE.key, for its owner alone, where this command can read it. Restoring is: stop the service, put FILE in the place of the store and FILE.key beside it, start. docs/operations/backup.md says more.\n\nA PostgreSQL store is backed up with its own tools, such as pg_dump.',
  arguments: [{ name: 'FILE', sentence: 'Where the copy goes.' }],
  flags: {
    check: { placeholder: null, sentence: 'Checks the copy that FILE is, and makes none.' },
    force: { placeholder: null, sentence: 'Writes over what is there.' },
    'with-key': { placeholder: null, sentence: 'Copies the secret key, too.' },
    store: { placeholder: 'ADDRESS', sentence: 'With --with-key: the store that the key lies beside.', variable: 'SWITCHYARD_STORE' },
  },
  examples: ['switchyard backup backups/2026-11-15.db', 'switchyard backup --check backups/2026-11-15.db'],
  run: (call) => (call.has('check') ? checkCopy(call) : makeCopy(call)),
}

async function makeCopy(call: Call): Promise<ExitCode> {
  const path = resolve(call.arguments[0] as string)
  const keyPath = `${path}.key`
  for (const existing of [path, ...(call.has('with-key') ? [keyPath] : [])]) {
    if (existsSync(existing) && !call.has('force'))
      throw new CommandProblem(`${existing} is there already. Choose another name, or use --force.`, EXIT.usage)
  }
  if (!existsSync(dirname(path))) throw new CommandProblem(`The folder ${dirname(path)} is not there.`, EXIT.usage)
  const key = call.has('with-key') ? keyToCopy(call) : undefined
  const draft = `${path}.new`
  const job = await call.api.post('/api/backups')
  const id = String(job['id'])
  try {
    const bytes = await copied(call, id)
    await fetched(call, id, draft, bytes)
    const inspection = await inspect(draft)
    const problems = problemsOf(inspection)
    if (problems.length > 0) throw new CommandProblem(`The copy is not good and was thrown away: ${problems.join('; ')}.`)
    if (key !== undefined && !opens(key, inspection.secretKeyIds))
      throw new CommandProblem('The key that is here is not the one that the secrets in the copy are encrypted with. Nothing was kept.')
    putInPlace(draft, path)
    if (key !== undefined) writeKey(keyPath, key)
    tell(call, path, bytes, inspection, key === undefined ? null : keyPath)
    return EXIT.ok
  } finally {
    rmSync(draft, { force: true })
    await forget(call, id)
  }
}

/** Waits until the service has made the copy; its size. */
async function copied(call: Call, id: string): Promise<number> {
  const progress = call.out.progress('Copying, in bytes')
  try {
    for (;;) {
      const { state, doneBytes, totalBytes, error } = await call.api.get(at`/api/backups/${id}`)
      progress.update(Number(doneBytes), Number(totalBytes))
      if (state === 'ready') return Number(totalBytes)
      if (state === 'failed') throw new CommandProblem(String(error))
      await pause(POLL_MS, call.signal)
    }
  } finally {
    progress.end()
  }
}

async function fetched(call: Call, id: string, draft: string, bytes: number): Promise<void> {
  const progress = call.out.progress('Fetching, in bytes')
  rmSync(draft, { force: true })
  const file = await open(draft, 'wx', 0o600).catch((error: Error) => {
    throw new CommandProblem(`${draft} cannot be written: ${error.message}.`, EXIT.usage)
  })
  try {
    let done = 0
    for await (const chunk of await call.api.bytes(at`/api/backups/${id}/file`)) {
      await file.writeFile(chunk)
      done += chunk.length
      progress.update(done, bytes)
    }
    if (done !== bytes) throw new CommandProblem(`The copy broke off after ${done} of ${bytes} bytes.`)
    await file.sync()
  } catch (error) {
    if (error instanceof CommandProblem || call.signal.aborted) throw error
    throw new CommandProblem(`The copy could not be fetched: ${(error as Error).message}.`)
  } finally {
    progress.end()
    await file.close()
  }
}

async function inspect(path: string): Promise<StoreInspection> {
  const { inspectStoreFile } = await import('../../installation/maintenance.ts')
  const inspection = await inspectStoreFile(path, CHECK_DEADLINE_MS)
  if (inspection === undefined) throw new CommandProblem(`${path} could not be checked in time.`)
  return inspection
}

function problemsOf({ problems, ledger, recount }: StoreInspection): string[] {
  return problems.length > 0 ? problems : ledgerProblems(ledger, recount)
}

function putInPlace(draft: string, path: string): void {
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } catch {
    // Some file systems do not sync folders; the file itself is synced.
  } finally {
    closeSync(folder)
  }
}

function keyToCopy(call: Call): LocalKey {
  const config = localConfig(call)
  if (config.store.kind !== 'sqlite') throw new CommandProblem('--with-key is for SQLite stores.', EXIT.usage)
  const key = localKey(config, config.store.path)
  if (key === undefined)
    throw new CommandProblem(
      `There is no key at ${config.store.path}.key. Run this where the service runs, or name its store with --store.`,
      EXIT.usage,
    )
  return key
}

function writeKey(path: string, { key }: LocalKey): void {
  rmSync(path, { force: true })
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true })
}

function tell(call: Call, path: string, bytes: number, { recount, secretKeyIds }: StoreInspection, keyFile: string | null): void {
  if (call.json)
    return call.out.json({ file: path, bytes, checked: true, destinations: recount.length, keyFile, needsKey: secretKeyIds.length > 0 })
  call.out.line(`${path} is a good copy: ${bytes} bytes, whole, and its ledger equals its recount.`)
  if (keyFile !== null)
    call.out.line(`${keyFile} holds the key that opens its secrets. Keep the two apart from each other, and from others.`)
  else
    call.out.remark(
      'The key that opens its secrets is not in it: the .key file beside the store, or SWITCHYARD_SECRET_KEY. Keep it, too, in another place.',
    )
}

/** Also after Ctrl-C: a copy that nobody fetches takes room beside the store. */
async function forget(call: Call, id: string): Promise<void> {
  const api = createApi({
    url: call.api.url,
    token: controlToken(call.flag('token'), call.env),
    signal: new AbortController().signal,
    deadlineMs: 30_000,
  })
  await api.delete(at`/api/backups/${id}`).catch(() => {})
}

async function checkCopy(call: Call): Promise<ExitCode> {
  const path = resolve(call.arguments[0] as string)
  if (!existsSync(path)) throw new CommandProblem(`There is no file ${path}.`, EXIT.notFound)
  let inspection: StoreInspection
  try {
    inspection = await inspect(path)
  } catch (error) {
    throw new CommandProblem(`${path} cannot be read as a store: ${(error as Error).message}.`)
  }
  const problems = problemsOf(inspection)
  const key = localKey(localConfig(call), path)
  const fits = key === undefined || inspection.secretKeyIds.length === 0 ? null : opens(key, inspection.secretKeyIds)
  if (call.json)
    call.out.json({ file: path, good: problems.length === 0, problems, keyFits: fits, destinations: inspection.recount.length })
  else if (problems.length > 0) call.out.line(`${path} is not good: ${problems.join('; ')}.`)
  else {
    call.out.line(`${path} is whole, and its ledger equals its recount.`)
    if (fits === true) call.out.line(`Its secrets can be opened with the key in ${key?.path ?? 'SWITCHYARD_SECRET_KEY'}.`)
    else if (fits === false)
      call.out.remark(`Its secrets cannot be opened with the key in ${key?.path ?? 'SWITCHYARD_SECRET_KEY'}: it is another one.`)
    else if (inspection.secretKeyIds.length > 0) call.out.remark('To open its secrets, the key of the service that it is from is needed.')
  }
  return problems.length === 0 && fits !== false ? EXIT.ok : EXIT.failed
}
