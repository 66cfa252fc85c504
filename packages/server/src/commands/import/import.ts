// `switchyard import`: imports past messages with their original timestamps from a file of JSON lines. An interrupted import neither loses
// nor duplicates messages: progress is saved for the lines that have been answered, and all other lines are sent again with the same
// messageId.

import { hash } from 'node:crypto'
import { closeSync, ftruncateSync, openSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { refusal } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { textProblem } from '../../api/json-problem.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { at, idOf } from '../line/references.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { firstKey, WRITE_KEY_FLAG } from '../sending/send.ts'
import { pause } from '../service/api.ts'
import { createImportClient, OAUTH_FLAGS, oauthOf } from './import-client.ts'
import { fingerprintOf, type Line, readLines } from './import-lines.ts'
import { createOutcomes, type Outcome } from './import-outcomes.ts'
import { type ImportState, readState, removeState, writeState } from './import-state.ts'

const BATCH_MESSAGES = 500
const STATE_EVERY_MS = 500
const FINGERPRINT_BYTES = 64 * 1024
const SHOWN_REJECTS = 20
const DEFAULT_GIVE_UP = '2m'

export const importCommand: Command = {
  name: 'import',
  summary: 'Import past messages from a file of JSON lines (resumable)',
  details:
    'Each line is one message in the format of POST /v1/import. Messages keep their timestamp. Files compressed with gzip are detected. A line without a messageId gets one that is derived from its position and content, so that it is the same in every run.\n\n' +
    'Progress is saved in FILE.switchyard-import until the import is complete: if it is interrupted, run the same command again to resume. Rejected lines are reported with their line number and error code, and the exit code is then 1. Destinations with historical: false do not get messages older than 24 h.',
  arguments: [{ name: 'FILE', description: 'The file, or - for stdin, which cannot be resumed.' }],
  flags: {
    'write-key': WRITE_KEY_FLAG,
    source: {
      placeholder: 'SOURCE',
      description: 'Without a write key: the source to import into, by id or name.',
      defaultText: 'default',
    },
    rejects: {
      placeholder: 'FILE',
      description: 'Write rejected lines to this file, as JSON lines with line number, code, message and text.',
    },
    'dry-run': { placeholder: null, description: 'Check every line without sending anything.' },
    rate: { placeholder: 'NUMBER', description: 'The maximum number of messages per second.', defaultText: 'no limit' },
    restart: { placeholder: null, description: 'Start at the first line, ignoring saved progress.' },
    'give-up': {
      placeholder: 'DURATION',
      description: 'Stop after the service has been unreachable for this long.',
      defaultText: DEFAULT_GIVE_UP,
    },
    ...OAUTH_FLAGS,
  },
  examples: [
    'switchyard import history.ndjson',
    'switchyard import history.ndjson.gz --rejects rejected.ndjson',
    'switchyard import history.ndjson --dry-run',
    'switchyard import history.ndjson --client-id APP --key-id KEY --private-key private.pem',
  ],
  run: runImport,
}

async function runImport(call: Call): Promise<ExitCode> {
  const { signal, out } = call
  const file = call.arguments[0] as string
  const path = file === '-' ? null : file
  const totalBytes = path === null ? null : await sizeOf(path)
  const dryRun = call.has('dry-run')
  const statePath = path === null || dryRun ? null : `${path}.switchyard-import`
  const rate = call.flag('rate') === undefined ? null : parseCount('rate', call.flag('rate') as string)
  const batchMessages = rate === null ? BATCH_MESSAGES : Math.min(BATCH_MESSAGES, rate)
  const giveUpMs = parseDuration('give-up', call.flag('give-up') ?? DEFAULT_GIVE_UP)
  const oauth = await oauthOf(call)
  const state = await stateOf(call, path, statePath)
  const client = await createImportClient({
    writeKey: dryRun ? 'none' : await writeKeyOf(call),
    url: dryRun ? null : call.api.url,
    oauth,
    batchMessages,
    giveUpMs,
    signal,
    remark: (sentence) => out.remark(sentence),
  })
  const rejectsFile = openRejects(call.flag('rejects'), state.rejectsBytes)
  const progress = out.progress(dryRun ? 'Checking' : 'Importing')
  if (state.offset > 0) out.remark(`Resuming after line ${state.line}. Use --restart to start over.`)

  let problem: unknown
  let savedAtMs = Number.NEGATIVE_INFINITY
  const outcomes = createOutcomes({
    state,
    rejectsFile,
    onReject: rejectRemarks(call),
    onAdvanced({ readBytes }) {
      const rejected = rejectedCount(state)
      progress.update(
        path === null ? state.line : Math.min(readBytes, totalBytes ?? 0),
        totalBytes,
        `${counted(state.accepted, 'message')}${rejected > 0 ? `, ${rejected} rejected` : ''}`,
      )
      if (statePath === null || performance.now() - savedAtMs < STATE_EVERY_MS) return
      savedAtMs = performance.now()
      writeState(statePath, state)
    },
    onProblem(error) {
      problem ??= error
    },
  })
  const pace = rate === null ? null : createPace(rate, batchMessages, signal)

  try {
    for await (const line of readLines({ path, input: process.stdin, from: state, signal })) {
      if (problem !== undefined || client.problem !== undefined || signal.aborted) break
      if (state.salt === '') state.salt = hash('sha256', line.text, 'hex')
      const settle = outcomes.begin(line)
      const { message, outcome } = parseLine(line, state.salt)
      if (outcome !== undefined) {
        settle(outcome)
        continue
      }
      if (pace !== null) await pace()
      const drained = client.send(message, (rejection) => settle(rejection ?? 'accepted'))
      if (drained !== undefined) await drained
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problem ??= code === undefined ? error : new CommandProblem(`Reading ${file} failed: ${message}.`, EXIT.failed)
  }
  await client.end()
  try {
    outcomes.advance()
    if (statePath !== null) writeState(statePath, state)
  } catch (error) {
    problem ??= error
  }
  progress.end()
  if (rejectsFile !== null) closeSync(rejectsFile)
  problem ??= client.problem
  if (problem !== undefined) throw problem
  if (statePath !== null && !signal.aborted) removeState(statePath)
  return conclude(call, state, signal.aborted, dryRun)
}

/** Names the first rejected lines. */
function rejectRemarks({ out }: Call): (rejected: { line: number; code: string; message: string }) => void {
  let shown = 0
  return ({ line, code, message }) => {
    if (shown++ < SHOWN_REJECTS) out.remark(`Line ${line}: ${message} (${code})`)
    else if (shown === SHOWN_REJECTS + 1) out.remark('More lines are rejected. Use --rejects FILE to write all of them to a file.')
  }
}

/** Limits the import to `rate` messages per second, a batch at a time. */
function createPace(rate: number, batchMessages: number, signal: AbortSignal): () => Promise<void> | undefined {
  let count = 0
  let nextMs = performance.now()
  return () => {
    if (count++ % batchMessages !== 0) return undefined
    const waitMs = nextMs - performance.now()
    // Capacity that was not used while the service was slow is not made up for.
    nextMs = Math.max(nextMs, performance.now()) + (batchMessages / rate) * 1_000
    return waitMs > 0 ? pause(waitMs, signal) : undefined
  }
}

function conclude(call: Call, state: ImportState, interrupted: boolean, dryRun: boolean): ExitCode {
  const rejected = rejectedCount(state)
  if (call.json)
    call.out.json({ finished: !interrupted, dryRun, lines: state.line, accepted: state.accepted, rejected, rejectedByCode: state.rejected })
  else {
    const codes = Object.entries(state.rejected).map(([code, count]) => `${count} ${code}`)
    const valid = dryRun ? (state.accepted === 1 ? 'is valid' : 'are valid') : 'imported'
    call.out.line(
      `${counted(state.accepted, 'message')} ${valid}, ${counted(rejected, 'line')} rejected${codes.length === 0 ? '' : ` (${codes.join(', ')})`}.`,
    )
    if (interrupted)
      call.out.remark(
        `Interrupted after line ${state.line}.${dryRun || call.arguments[0] === '-' ? '' : ' Run the same command again to resume.'}`,
      )
  }
  if (interrupted) return EXIT.interrupted
  return rejected > 0 ? EXIT.failed : EXIT.ok
}

/** Returns the message of a line, which the client validates, or the outcome of a line that is not sent. */
function parseLine(line: Line, salt: string): { message?: unknown; outcome?: Outcome } {
  if (line.tooLong) return { outcome: refusal('message_too_large') }
  if (!line.isText) return { outcome: { code: 'invalid_utf8', message: 'The line is not valid UTF-8.' } }
  const text = line.text.trim()
  if (text === '') return { outcome: 'empty' }
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return { outcome: { code: 'invalid_json', message: textProblem('The line', text) } }
  }
  if (typeof message === 'object' && message !== null) {
    const fields = message as { messageId?: unknown }
    fields.messageId ??= messageIdOf(line, salt)
  }
  return { message }
}

/** Derived from the position, so that two equal lines are two messages, and from the content, so that different files give different ids. */
function messageIdOf({ start, text }: Line, salt: string): string {
  return `import-${hash('sha256', `${salt}\n${start}\n${text}`, 'base64url')}`
}

function rejectedCount({ rejected }: ImportState): number {
  return Object.values(rejected).reduce((sum, count) => sum + count, 0)
}

async function stateOf(call: Call, path: string | null, statePath: string | null): Promise<ImportState> {
  const bytes = path === null ? 0 : Math.min(FINGERPRINT_BYTES, await sizeOf(path))
  const fingerprint = path === null ? '' : await fingerprintOf(path, bytes)
  const found = statePath === null || call.has('restart') ? undefined : readState(statePath)
  if (found === undefined || path === null) {
    return { version: 1, fingerprint, fingerprintBytes: bytes, salt: '', offset: 0, line: 0, accepted: 0, rejected: {}, rejectsBytes: 0 }
  }
  if ((await fingerprintOf(path, found.fingerprintBytes)) !== found.fingerprint || (await isShorter(path, found)))
    throw new UsageProblem(`${path} has changed since the progress of its import was saved in ${statePath}. Use --restart to start over.`)
  return found
}

/** For a compressed file the offset does not relate to the file size. */
async function isShorter(path: string, { offset }: ImportState): Promise<boolean> {
  return !/\.gz$/i.test(path) && (await sizeOf(path)) < offset && !(await fingerprintIsGzip(path))
}

async function fingerprintIsGzip(path: string): Promise<boolean> {
  return (await fingerprintOf(path, 2)) === hash('sha256', Buffer.from([0x1f, 0x8b]), 'hex')
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new UsageProblem(`${path} is not a file.`)
    return found.size
  } catch (error) {
    if (error instanceof CommandProblem) throw error
    throw new UsageProblem(`Cannot read ${path}: ${(error as Error).message}.`)
  }
}

/** Truncates the file to the length in the saved state: later rejects will be written again. */
function openRejects(path: string | undefined, keptBytes: number): number | null {
  if (path === undefined) return null
  try {
    // The file contains personal data, so only its owner may read it.
    if (keptBytes === 0) return openSync(path, 'w', 0o600)
    const file = openSync(path, 'a')
    ftruncateSync(file, keptBytes)
    return file
  } catch (error) {
    throw new UsageProblem(`Cannot write ${path}: ${(error as Error).message}.`)
  }
}

async function writeKeyOf(call: Call): Promise<string> {
  const given = call.flag('write-key') ?? (call.env['SWITCHYARD_WRITE_KEY'] || undefined)
  if (given !== undefined) return given
  const source = await call.api.get(at`/api/sources/${await idOf(call.api, 'source', call.flag('source') ?? 'default')}`)
  return firstKey(source)
}
