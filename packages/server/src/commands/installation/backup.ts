// `switchyard backup`: downloads a consistent copy of the store of a running service, checks it, and only then moves it to its final name.
// The key that decrypts its secrets is a separate file, which the service never returns.

import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { bookProblems } from '../../api/check-ledger.ts'
import type { StoreInspection } from '../../installation/maintenance.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { controlToken } from '../line/global-flags.ts'
import { at } from '../line/references.ts'
import { createApi, pause } from '../service/api.ts'
import { canDecrypt, type LocalKey, localConfig, localKey } from './local-installation.ts'

const POLL_MS = 200
/** Generous, because checking a large copy takes long. */
const CHECK_DEADLINE_MS = 6 * 3_600_000

export const backup: Command = {
  name: 'backup',
  summary: 'Make a verified copy of the SQLite store while the service runs',
  details:
    'The service first writes the copy next to its store, so there must be enough free disk space for a second copy. It keeps accepting and delivering messages meanwhile. The copy is verified before it is moved to FILE: its integrity is checked, and its ledger is recounted from the rows.\n\n' +
    'Secrets in the copy are encrypted, so restoring it also needs the key. With --with-key, the command copies the key to FILE.key, readable only by the owner. Run it on the machine of the service, where it can read the key. To restore: stop the service, replace the store with FILE and put FILE.key next to it, and start the service. See docs/operations/backup.md.\n\nBack up a PostgreSQL store with its own tools, such as pg_dump.',
  arguments: [{ name: 'FILE', description: 'The file to write, or with --check the copy to check.' }],
  flags: {
    check: { placeholder: null, description: 'Check the existing copy FILE instead of making one.' },
    force: { placeholder: null, description: 'Overwrite FILE if it exists.' },
    'with-key': { placeholder: null, description: 'Also copy the secret key.' },
    store: {
      placeholder: 'ADDRESS',
      description: 'With --with-key: the address of the store of the service. The key file is next to it.',
      variable: 'SWITCHYARD_STORE',
    },
  },
  examples: ['switchyard backup backups/2026-11-15.db', 'switchyard backup --check backups/2026-11-15.db'],
  run: (call) => (call.has('check') ? checkCopy(call) : makeCopy(call)),
}

async function makeCopy(call: Call): Promise<ExitCode> {
  const path = resolve(call.arguments[0] as string)
  const keyPath = `${path}.key`
  for (const existing of [path, ...(call.has('with-key') ? [keyPath] : [])]) {
    if (existsSync(existing) && !call.has('force'))
      throw new UsageProblem(`${existing} already exists. Choose another name, or use --force to overwrite it.`)
  }
  if (!existsSync(dirname(path))) throw new UsageProblem(`The directory ${dirname(path)} does not exist. Create it first.`)
  const key = call.has('with-key') ? keyToCopy(call) : undefined
  const draft = `${path}.new`
  const job = await call.api.post('/api/backups')
  const id = String(job['id'])
  try {
    const bytes = await waitForCopy(call, id)
    await download(call, id, draft, bytes)
    const inspection = await inspect(draft)
    const problems = problemsOf(inspection)
    if (problems.length > 0)
      throw new CommandProblem(
        `The copy failed verification and was deleted: ${problems.join('; ')}. Run \`switchyard doctor\` to check the store.`,
      )
    if (key !== undefined && !canDecrypt(key, inspection.secretKeyIds))
      throw new CommandProblem(
        'The key found here is not the one that encrypts the secrets in the copy, so the copy was deleted. Check --store, or SWITCHYARD_SECRET_KEY.',
      )
    putInPlace(draft, path)
    if (key !== undefined) writeKey(keyPath, key)
    printResult(call, path, bytes, inspection, key === undefined ? null : keyPath)
    return EXIT.ok
  } finally {
    rmSync(draft, { force: true })
    await deleteCopy(call, id)
  }
}

/** Waits until the service has made the copy. Returns its size. */
async function waitForCopy(call: Call, id: string): Promise<number> {
  const progress = call.out.progress('Copying (bytes)')
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

async function download(call: Call, id: string, draft: string, bytes: number): Promise<void> {
  const progress = call.out.progress('Downloading (bytes)')
  rmSync(draft, { force: true })
  const file = await open(draft, 'wx', 0o600).catch((error: Error) => {
    throw new UsageProblem(`Cannot write ${draft}: ${error.message}.`)
  })
  try {
    let done = 0
    for await (const chunk of await call.api.bytes(at`/api/backups/${id}/file`)) {
      await file.writeFile(chunk)
      done += chunk.length
      progress.update(done, bytes)
    }
    if (done !== bytes) throw new CommandProblem(`The download ended after ${done} of ${bytes} bytes. Run the command again.`)
    await file.sync()
  } catch (error) {
    if (error instanceof CommandProblem || call.signal.aborted) throw error
    throw new CommandProblem(`The copy could not be downloaded: ${(error as Error).message}. Run the command again.`)
  } finally {
    progress.end()
    await file.close()
  }
}

async function inspect(path: string): Promise<StoreInspection> {
  const { inspectStoreFile } = await import('../../installation/maintenance.ts')
  const inspection = await inspectStoreFile(path, CHECK_DEADLINE_MS)
  if (inspection === undefined) throw new CommandProblem(`Checking ${path} took longer than ${CHECK_DEADLINE_MS / 3_600_000} hours.`)
  return inspection
}

function problemsOf(inspection: StoreInspection): string[] {
  return inspection.problems.length > 0 ? inspection.problems : bookProblems(inspection)
}

function putInPlace(draft: string, path: string): void {
  renameSync(draft, path)
  const folder = openSync(dirname(path), 'r')
  try {
    fsyncSync(folder)
  } catch {
    // Some file systems cannot sync directories; the file itself is synced.
  } finally {
    closeSync(folder)
  }
}

function keyToCopy(call: Call): LocalKey {
  const config = localConfig(call)
  if (config.store.kind !== 'sqlite') throw new UsageProblem('--with-key works only with a SQLite store.')
  const key = localKey(config, config.store.path)
  if (key === undefined)
    throw new UsageProblem(
      `There is no key at ${config.store.path}.key. Run the command where the service runs, or name its store with --store.`,
    )
  return key
}

function writeKey(path: string, { key }: LocalKey): void {
  rmSync(path, { force: true })
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: 'wx', flush: true })
}

function printResult(call: Call, path: string, bytes: number, { recount, secretKeyIds }: StoreInspection, keyFile: string | null): void {
  if (call.json)
    return call.out.json({ file: path, bytes, checked: true, destinations: recount.length, keyFile, needsKey: secretKeyIds.length > 0 })
  call.out.line(`Wrote ${path} (${bytes} bytes). Verified: the file is intact, and its ledger matches a recount of the rows.`)
  if (keyFile !== null)
    call.out.line(`Wrote ${keyFile}, the key that decrypts its secrets. Store the two files in different places, and protect both.`)
  else
    call.out.remark(
      'The copy does not contain the key that decrypts its secrets (the .key file next to the store, or SWITCHYARD_SECRET_KEY). Back up the key too, in a different place.',
    )
}

/** Deletes the copy on the service, also after Ctrl-C, because it takes disk space next to the store. */
async function deleteCopy(call: Call, id: string): Promise<void> {
  const api = createApi({
    url: call.api.url,
    ...controlToken(call.flag('token'), call.env, call.api.url),
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
    throw new CommandProblem(`${path} is not a readable Switchyard store: ${(error as Error).message}.`)
  }
  const problems = problemsOf(inspection)
  const key = localKey(localConfig(call), path)
  const fits = key === undefined || inspection.secretKeyIds.length === 0 ? null : canDecrypt(key, inspection.secretKeyIds)
  if (call.json)
    call.out.json({ file: path, good: problems.length === 0, problems, keyFits: fits, destinations: inspection.recount.length })
  else if (problems.length > 0) call.out.line(`${path} has problems: ${problems.join('; ')}.`)
  else {
    call.out.line(`${path} is intact, and its ledger matches a recount of the rows.`)
    if (fits === true) call.out.line(`The key in ${key?.path ?? 'SWITCHYARD_SECRET_KEY'} can decrypt its secrets.`)
    else if (fits === false)
      call.out.remark(
        `The key in ${key?.path ?? 'SWITCHYARD_SECRET_KEY'} cannot decrypt its secrets: they were encrypted with a different key.`,
      )
    else if (inspection.secretKeyIds.length > 0)
      call.out.remark('No key was found here. Restoring the copy needs the key of the service that it was made from.')
  }
  return problems.length === 0 && fits !== false ? EXIT.ok : EXIT.failed
}
