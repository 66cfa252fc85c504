// Imports past messages: one JSON message per line, from a file or stdin, each with its type and timestamp. The file
// may be larger than memory, because the reader pauses whenever the client's queue is full enough (back-pressure).
// Run: SWITCHYARD_WRITE_KEY=… npm run example examples/backpressure-import.ts FILE, and run it again after it was stopped or killed: each line
// keeps its ID, so messages that arrived within the last 24 hours are dropped as duplicates. `switchyard import FILE` needs no code,
// remembers its position, and writes rejected lines to a file; this example is for a custom import. SWITCHYARD_HOST_URL is the host.

import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { addAbortSignal, type Readable } from 'node:stream'
import { Analytics, type RawMessage } from '@switchyard/node'

const SHOWN_REJECTIONS = 20
/** How long messages that were already read may take to arrive after a signal to stop. */
const STOP_MS = 3_000

const analytics = new Analytics({
  writeKey: process.env['SWITCHYARD_WRITE_KEY'] ?? 'dev',
  host: process.env['SWITCHYARD_HOST_URL'] ?? 'http://localhost:8080',
  // Timestamps are sent as they are in the file.
  historical: true,
  flushAt: 500,
  // With the pauses in between, ten retries cover an outage of two minutes: an import should rather wait than lose lines.
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
  // The message was queued, but the queue is above its high-water mark: continue reading when half of that is delivered.
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
  // Also ends the wait in the loop above: when everything has arrived, or the time is up.
  void analytics.closeAndFlush({ timeout: STOP_MS })
}

async function openInput(file: string | undefined): Promise<Readable> {
  if (file === undefined && process.stdin.isTTY) fail('Pass a file of JSON lines as an argument, or send the lines to stdin.')
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

// Not node:readline: it also breaks lines at U+2028, which JSON allows inside a string, and keeps reading while the loop waits.
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

/** Returns false if the reader should pause. */
function send(line: string, lineNumber: number): boolean {
  // Not validated here, despite the type: the client validates it and reports to the callback.
  let message: RawMessage
  try {
    message = JSON.parse(line) as RawMessage
  } catch {
    return reject(lineNumber, 'invalid_json', 'The line is not JSON.')
  }
  if (typeof message !== 'object' || message === null) return reject(lineNumber, 'invalid_request', 'A message must be a JSON object.')
  // Without a timestamp the client would use the current time, which is wrong for past messages.
  if (message.timestamp == null) return reject(lineNumber, 'timestamp_required', 'timestamp is required.')
  // An import that is run again after a failure gives each line the same ID, so messages that had arrived are dropped as duplicates.
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
  // On a terminal, one line that is updated; in a log file, one line per second.
  process.stderr.write(process.stderr.isTTY ? `\r${text}` : `${text}\n`)
}
