// `switchyard import`: past messages from a file of JSON lines, with their own times. Nothing is lost when it is ended in the
// middle, and nothing is there twice: what has had its answer is written down, and what has not is sent again under the same
// messageId.

import { createHash } from 'node:crypto'
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { MAX_MESSAGE_BYTES, parseMessage, refusal } from '@switchyard/protocol'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode } from './command.ts'
import { fingerprintOf, type Line, readLines } from './import-lines.ts'
import { createImportSender, Interrupted, pause } from './import-sender.ts'
import { type ImportState, readState, removeState, writeState } from './import-state.ts'
import { parseCount, parseDuration } from './moment.ts'
import { at, idOf } from './references.ts'

const BATCH_MESSAGES = 500
const BATCH_BYTES = 400 * 1024
const AT_ONCE = 4
const STATE_EVERY_MS = 500
const FINGERPRINT_BYTES = 64 * 1024
const SHOWN_REJECTS = 20

export const importCommand: Command = {
  name: 'import',
  summary: 'Sends past messages from a file of JSON lines; can be interrupted and gone on with',
  details:
    'One message a line, as for POST /v1/import, with its timestamp, which is kept as it is. gzip is recognised. A line without a messageId gets one made of its place and content, the same each time.\n\n' +
    'FILE.switchyard-import says how far it is, until it is done: run the same line again to go on. Lines that are refused are told with their number and code; the exit code is then 1. Destinations with historical: false are not sent messages older than 24 h.',
  arguments: [{ name: 'FILE', sentence: 'The file; - is stdin, which cannot be gone on with.' }],
  flags: {
    'write-key': { placeholder: 'KEY', sentence: 'Of the source.', variable: 'SWITCHYARD_WRITE_KEY', usual: 'asked of the control API' },
    source: { placeholder: 'SOURCE', sentence: 'Without a write key: the source, by id or name.', usual: 'default' },
    rejects: { placeholder: 'FILE', sentence: 'Writes refused lines here, as JSON lines with number, code and the line itself.' },
    'dry-run': { placeholder: null, sentence: 'Checks every line and sends nothing.' },
    rate: { placeholder: 'NUMBER', sentence: 'Most messages per second.', usual: 'as fast as the service takes them' },
    restart: { placeholder: null, sentence: 'Begins at the first line, whatever was done before.' },
    'give-up': { placeholder: 'DURATION', sentence: 'How long the service may be away.', usual: '2m' },
  },
  examples: [
    'switchyard import history.ndjson',
    'switchyard import history.ndjson.gz --rejects refused.ndjson',
    'switchyard import history.ndjson --dry-run',
  ],
  run: (call) => runImport(call),
}

interface Reject {
  line: number
  code: string
  message: string
  text: string
}

interface Batch {
  messages: string[]
  lines: Line[]
  bytes: number
  rejects: Reject[]
  last: Line | null
  /** Its end; undefined while it is under way. */
  accepted: number | undefined
}

async function runImport(call: Call): Promise<ExitCode> {
  const file = call.arguments[0] as string
  const path = file === '-' ? null : file
  const totalBytes = path === null ? null : await sizeOf(path)
  const dryRun = call.has('dry-run')
  const statePath = path === null || dryRun ? null : `${path}.switchyard-import`
  const state = await stateOf(call, path, statePath)
  const send = dryRun
    ? async () => ({ rejected: [] })
    : createImportSender({
        url: call.api.url,
        writeKey: await writeKeyOf(call),
        giveUpMs: call.flag('give-up') === undefined ? 120_000 : parseDuration('give-up', call.flag('give-up') as string),
        signal: call.signal,
        onTrouble: troubles(call),
      })
  const rate = call.flag('rate') === undefined ? null : parseCount('rate', call.flag('rate') as string)
  const rejects = openRejects(call.flag('rejects'), state.rejectsBytes)
  const progress = call.out.progress(dryRun ? 'Checking' : 'Importing')
  if (state.offset > 0) call.out.remark(`Going on after line ${state.line}, where it was interrupted. --restart begins anew.`)

  const queue: Batch[] = []
  const underWay = new Set<Promise<void>>()
  let problem: unknown
  let shown = 0
  let savedAtMs = 0
  let nextSendAtMs = performance.now()

  /** What has its end, in the order of the file. */
  function settle(force = false): void {
    while (queue[0]?.accepted !== undefined) {
      const done = queue.shift() as Batch
      state.accepted += done.accepted as number
      for (const reject of done.rejects.sort((left, right) => left.line - right.line)) {
        state.rejected[reject.code] = (state.rejected[reject.code] ?? 0) + 1
        if (rejects !== null) {
          const text = `${JSON.stringify(reject)}\n`
          // At once, so that the state is never ahead of it.
          state.rejectsBytes += writeSync(rejects, text)
        } else if (shown++ < SHOWN_REJECTS) call.out.remark(`Line ${reject.line}: ${reject.message} (${reject.code})`)
        else if (shown === SHOWN_REJECTS + 1) call.out.remark('More are refused; --rejects FILE writes them all down.')
      }
      if (done.last === null) continue
      state.offset = done.last.end
      state.line = done.last.number
      const refused = rejectedCount(state)
      progress.update(
        path === null ? state.line : Math.min(done.last.readBytes, totalBytes ?? 0),
        totalBytes,
        `${state.accepted} messages${refused > 0 ? `, ${refused} refused` : ''}`,
      )
    }
    if (statePath === null || (!force && performance.now() - savedAtMs < STATE_EVERY_MS)) return
    savedAtMs = performance.now()
    writeState(statePath, state)
  }

  async function dispatch(batch: Batch): Promise<void> {
    queue.push(batch)
    if (rate !== null && batch.messages.length > 0) {
      const waitMs = nextSendAtMs - performance.now()
      nextSendAtMs = Math.max(nextSendAtMs, performance.now()) + (batch.messages.length / rate) * 1_000
      if (waitMs > 0 && !(await pause(waitMs, call.signal))) return
    }
    const sending = (batch.messages.length === 0 ? Promise.resolve({ rejected: [] }) : send(batch.messages))
      .then(({ rejected }) => {
        for (const { index, code, message } of rejected) {
          const line = batch.lines[index]
          if (line !== undefined) batch.rejects.push({ line: line.number, code, message, text: line.text })
        }
        batch.accepted = batch.messages.length - rejected.length
        settle()
      })
      .catch((error: unknown) => {
        problem ??= error
      })
      .finally(() => underWay.delete(sending))
    underWay.add(sending)
    if (underWay.size >= AT_ONCE) await Promise.race(underWay)
  }

  let batch = emptyBatch()
  const full = rate === null ? BATCH_MESSAGES : Math.max(1, Math.min(BATCH_MESSAGES, rate))
  try {
    for await (const line of readLines({ path, input: process.stdin, from: state, signal: call.signal })) {
      if (problem !== undefined || call.signal.aborted) break
      if (state.salt === '') state.salt = createHash('sha256').update(line.text).digest('hex')
      const taken = take(line, state.salt)
      batch.last = line
      if (taken === null) continue
      if ('code' in taken) batch.rejects.push(taken)
      else {
        if (batch.bytes + taken.bytes > BATCH_BYTES) {
          await dispatch({ ...batch, last: { ...line, number: line.number - 1, end: line.start } })
          batch = { ...emptyBatch(), last: line }
        }
        batch.messages.push(taken.text)
        batch.lines.push(line)
        batch.bytes += taken.bytes
      }
      if (batch.messages.length >= full || batch.rejects.length >= BATCH_MESSAGES) {
        await dispatch(batch)
        batch = emptyBatch()
      }
    }
    if (problem === undefined && !call.signal.aborted && batch.last !== null) await dispatch(batch)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    problem ??= code === undefined ? error : new CommandProblem(`${file} cannot be read to its end: ${message}.`, EXIT.failed)
  }
  await Promise.all(underWay)
  settle(true)
  progress.end()
  if (rejects !== null) closeSync(rejects)
  if (problem !== undefined && !(problem instanceof Interrupted)) throw problem
  const interrupted = call.signal.aborted || problem !== undefined
  if (statePath !== null && !interrupted) removeState(statePath)
  return conclude(call, state, interrupted, dryRun)
}

function conclude(call: Call, state: ImportState, interrupted: boolean, dryRun: boolean): ExitCode {
  const rejected = rejectedCount(state)
  if (call.json)
    call.out.json({ finished: !interrupted, dryRun, lines: state.line, accepted: state.accepted, rejected, rejectedByCode: state.rejected })
  else {
    const codes = Object.entries(state.rejected).map(([code, count]) => `${count} ${code}`)
    const done = dryRun ? 'would be sent' : 'imported'
    call.out.line(`${state.accepted} messages ${done}, ${rejected} lines refused${codes.length === 0 ? '' : ` (${codes.join(', ')})`}.`)
    if (interrupted)
      call.out.remark(`Interrupted after line ${state.line}.${dryRun || call.arguments[0] === '-' ? '' : ' Run the same again to go on.'}`)
  }
  if (interrupted) return EXIT.interrupted
  return rejected > 0 ? EXIT.failed : EXIT.ok
}

/** The line as it is sent, why it is not, or null where there is nothing in it. */
function take(line: Line, salt: string): { text: string; bytes: number } | Reject | null {
  const { number, text, tooLong } = line
  const reject = ({ code, message }: { code: string; message: string }): Reject => ({ line: number, code, message, text })
  if (tooLong) return reject(refusal('message_too_large'))
  const trimmed = text.trim()
  if (trimmed === '') return null
  let value: unknown
  try {
    value = JSON.parse(trimmed)
  } catch {
    return reject({ code: 'invalid_json', message: 'The line is not JSON.' })
  }
  const parsed = parseMessage(value)
  if (!parsed.ok) return reject(parsed)
  const sent = parsed.message.messageId == null ? withId(trimmed, value as object, messageIdOf(line, salt)) : trimmed
  // One that is too large only with an id goes without: better twice after a crash than not at all.
  const fitting = [sent, trimmed].find((each) => Buffer.byteLength(each) <= MAX_MESSAGE_BYTES)
  return fitting === undefined ? reject(refusal('message_too_large')) : { text: fitting, bytes: Buffer.byteLength(fitting) + 1 }
}

/** Put into the text, so that the rest of it goes out as it came; numbers beyond a double's precision, for one. */
function withId(text: string, value: object, messageId: string): string {
  // A null one would come after ours and win.
  if (Object.hasOwn(value, 'messageId')) return JSON.stringify({ ...value, messageId })
  return `{"messageId":${JSON.stringify(messageId)},${text.slice(1)}`
}

/** By its place, so that two lines that are the same are two messages; and by its content, so that another file is another. */
function messageIdOf({ start, text }: Line, salt: string): string {
  return `import-${createHash('sha256').update(`${salt}\n${start}\n${text}`).digest('base64url')}`
}

function emptyBatch(): Batch {
  return { messages: [], lines: [], bytes: 0, rejects: [], last: null, accepted: undefined }
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
    throw new CommandProblem(`${path} is not the file that ${statePath} is about. Use --restart to begin anew.`, EXIT.usage)
  return found
}

/** Of what is compressed, the offset says nothing about the file's own size. */
async function isShorter(path: string, { offset }: ImportState): Promise<boolean> {
  return !/\.gz$/i.test(path) && (await sizeOf(path)) < offset && !(await fingerprintIsGzip(path))
}

async function fingerprintIsGzip(path: string): Promise<boolean> {
  return (
    (await fingerprintOf(path, 2)) ===
    createHash('sha256')
      .update(Buffer.from([0x1f, 0x8b]))
      .digest('hex')
  )
}

async function sizeOf(path: string): Promise<number> {
  try {
    const found = await stat(path)
    if (!found.isFile()) throw new CommandProblem(`${path} is not a file.`, EXIT.usage)
    return found.size
  } catch (error) {
    if (error instanceof CommandProblem) throw error
    throw new CommandProblem(`${path} cannot be read: ${(error as Error).message}.`, EXIT.usage)
  }
}

/** What was written down after the state was, is written again. */
function openRejects(path: string | undefined, keptBytes: number): number | null {
  if (path === undefined) return null
  try {
    if (keptBytes === 0) return openSync(path, 'w')
    const file = openSync(path, 'a')
    ftruncateSync(file, keptBytes)
    return file
  } catch (error) {
    throw new CommandProblem(`${path} cannot be written: ${(error as Error).message}.`, EXIT.usage)
  }
}

/** Told once for each kind, not with every try. */
function troubles(call: Call): (sentence: string) => void {
  let last = ''
  return (sentence) => {
    if (sentence !== last) call.out.remark(`${sentence} Trying again.`)
    last = sentence
  }
}

async function writeKeyOf(call: Call): Promise<string> {
  const given = call.flag('write-key') ?? (call.env['SWITCHYARD_WRITE_KEY'] || undefined)
  if (given !== undefined) return given
  const source = await call.api.get(at`/api/sources/${await idOf(call.api, 'source', call.flag('source') ?? 'default')}`)
  return (source['writeKeys'] as string[])[0] as string
}
