// Imports history: one JSON message per line, from a file or stdin, each with its type and the time it happened. The file
// may be larger than memory, because the reader waits whenever the client says that it holds enough.
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/backpressure-import.ts FILE, and again after it was stopped or killed: each line
// keeps its ID, so what had arrived within the last 24 hours is dropped as a duplicate. `switchyard import FILE` needs no code at all,
// remembers how far it came, and writes the refused lines to a file; this is for an import of your own. SWITCHYARD_HOST_URL is the host.

import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { Analytics, type RawMessage } from '@switchyard/node'

const SHOWN_REJECTIONS = 20
/** What was read when it is told to stop has this long to arrive. */
const STOP_MS = 3_000

const analytics = new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // Times arrive as they are in the file.
  historical: true,
  flushAt: 500,
  // With the pauses in between, ten retries ride out two minutes: an import would rather wait than lose lines.
  maxRetries: 10,
  highWaterMarkBytes: 4 * 1024 * 1024,
})

const count = { read: 0, sent: 0, delivered: 0, rejected: 0, waits: 0 }
const rejections: string[] = []

const stopped = new AbortController()
const input = addAbortSignal(stopped.signal, await openInput(process.argv[2]))
process.once('SIGINT', stopReading).once('SIGTERM', stopReading)
const progress = setInterval(showProgress, 1_000)
for await (const line of lines(input)) {
  if (stopped.signal.aborted) break
  count.read++
  if (line === '' || send(line, count.read)) continue
  // The message was taken, but the client holds more than its mark: read on when half of that is delivered.
  count.waits++
  await new Promise<void>((resolve) => analytics.once('drained', resolve))
}
await analytics.closeAndFlush()
clearInterval(progress)
showProgress()
if (process.stderr.isTTY) process.stderr.write('\n')

if (stopped.signal.aborted) console.log(`stopped after line ${count.read}; run it again for the rest`)
console.log(`${count.delivered} of ${count.sent} messages delivered, ${count.rejected} lines rejected`)
for (const rejection of rejections) console.log(rejection)
if (count.rejected > rejections.length) console.log(`and ${count.rejected - rejections.length} more`)
process.exitCode = count.rejected === 0 && !stopped.signal.aborted ? 0 : 1

function stopReading(): void {
  stopped.abort()
  // Ends the wait of the loop above, too: when all of it has arrived, or the time is up.
  void analytics.closeAndFlush({ timeout: STOP_MS })
}

async function openInput(file: string | undefined): Promise<Readable> {
  if (file === undefined && process.stdin.isTTY) fail('Give a file of JSON lines, or send them to stdin.')
  if (file === undefined) return process.stdin
  try {
    return (await open(file)).createReadStream()
  } catch (error) {
    return fail(`Cannot read ${file}: ${(error as Error).message}`)
  }
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(2)
}

// Not node:readline: it also breaks lines at U+2028, which JSON allows inside a string, and reads ahead of whoever waits.
async function* lines(input: Readable): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const chunk of input.setEncoding('utf8')) {
      const parts = (rest + chunk).split('\n')
      rest = parts.pop() as string
      for (const part of parts) yield part.trim()
    }
  } catch (error) {
    if (stopped.signal.aborted) return
    throw error
  }
  if (rest !== '') yield rest.trim()
}

/** False when the reader should wait. */
function send(line: string, lineNumber: number): boolean {
  // Unchecked, whatever the type says: the client judges it and tells the callback.
  let message: RawMessage
  try {
    message = JSON.parse(line) as RawMessage
  } catch {
    return reject(lineNumber, 'invalid_json', 'The line is not JSON.')
  }
  if (typeof message !== 'object' || message === null) return reject(lineNumber, 'invalid_request', 'A message must be a JSON object.')
  // The client takes the present for a time that is not given, and history must not land there.
  if (message.timestamp == null) return reject(lineNumber, 'timestamp_required', 'timestamp is required.')
  // An import that is run again after a failure gives each line its old ID, and what had arrived is dropped as a duplicate.
  message.messageId ??= createHash('sha256').update(`${lineNumber}:${line}`).digest('base64url')
  count.sent++
  return analytics.enqueue(message, (error) => {
    if (error) reject(lineNumber, error.code, error.message)
    else count.delivered++
  })
}

function reject(lineNumber: number, code: string, reason: string): true {
  count.rejected++
  if (rejections.length < SHOWN_REJECTIONS) rejections.push(`line ${lineNumber}: ${code}: ${reason}`)
  return true
}

function showProgress(): void {
  const text = `${count.read} lines read, ${count.delivered} delivered, ${count.rejected} rejected, paused ${count.waits} times`
  // On a terminal one line that changes; in a log file one line a second.
  process.stderr.write(process.stderr.isTTY ? `\r${text}` : `${text}\n`)
}
