// The spool on disk: segments of messages, each an append-only file with a second file that lists the messages whose outcome is
// known. A message is written with one write() before it is queued, so it survives a killed process (but not a power failure:
// there is no fsync, which costs about a thousand times as much as the write). Segments are small and are deleted as a whole.
//
//   SENDER/TOKEN-N.messages  one message per line
//   SENDER/TOKEN-N.done      lines "FROM TO": line numbers in TOKEN-N.messages, from 0, whose outcome is known; other lines are ignored
//
// SENDER is a hash of the write key and URL, because the messages contain neither.
// TOKEN identifies the writer; node-spool-owner.ts tracks whether it is alive.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { MessagesWithoutKey, type Spool, type SpoolPlace, type SpoolRange } from '../spool.ts'
import { abandonedSegments, claimSegments, createOwner, type Owner } from './node-spool-owner.ts'

const SEGMENT_BYTES = 1024 * 1024

export interface SpoolTimes {
  /** Interval of heartbeats. */
  touchMs: number
  /** A writer on another host is declared dead after this long without a heartbeat. */
  silentMs: number
}

interface Segment {
  base: string
  first: number
  count: number
  bytes: number
  /** Number of messages whose outcome is not known. */
  open: number
  messagesFd: number
  doneFd: number
  /** No more messages may be appended. */
  full: boolean
}

type Take = (json: string, number: number) => Promise<void>

/** What to do if the process ends before the spools are closed. All spools share one listener. */
const atExit = new Set<() => void>()

function onExit(work: () => void): () => void {
  if (atExit.size === 0) process.on('exit', runAtExit)
  atExit.add(work)
  return () => {
    atExit.delete(work)
    if (atExit.size === 0) process.off('exit', runAtExit)
  }
}

function runAtExit(): void {
  for (const work of atExit) work()
}

export class DiskSpool implements Spool {
  readonly #place: SpoolPlace
  readonly #report: (error: unknown) => void
  readonly #times: SpoolTimes
  readonly #dir: string
  readonly #owner: Owner
  #segments: Segment[] = []
  #nextNumber = 0
  #nextSegment = 0
  #bytes = 0
  #isClosed = false
  #isRecovering = false
  #isUnsentReported = false
  readonly #heartbeat: ReturnType<typeof setInterval>
  #rescan: ReturnType<typeof setInterval> | undefined
  readonly #noExit: () => void

  constructor(place: SpoolPlace, report: (error: unknown) => void, times: SpoolTimes = { touchMs: 10_000, silentMs: 60_000 }) {
    this.#place = place
    this.#report = report
    this.#times = times
    this.#dir = senderFolder(place)
    this.#owner = enter(this.#dir)
    this.#heartbeat = setInterval(() => this.#attempt(() => this.#owner.touch()), times.touchMs).unref()
    this.#noExit = onExit(() => this.#attempt(() => this.#segments.length === 0 && leave(this.#dir, this.#owner)))
  }

  keep(json: string): number | undefined {
    if (this.#isClosed) throw new Error('the spool is closed')
    const { maxBytes } = this.#place
    const line = Buffer.from(`${json}\n`)
    if (this.#bytes + line.length > maxBytes) return undefined
    const segment = this.#writable()
    if (fs.writeSync(segment.messagesFd, line) !== line.length) {
      // A short write (disk full) leaves an incomplete line, which recovery skips; nothing may be appended to it.
      segment.full = true
      throw new Error('the message was written only in part; the disk may be full')
    }
    segment.count++
    segment.open++
    segment.bytes += line.length
    this.#bytes += line.length
    // A segment is deleted when all its messages are delivered. With eight or more, one message does not block the whole spool.
    if (segment.bytes >= Math.min(SEGMENT_BYTES, maxBytes / 8)) segment.full = true
    return this.#nextNumber++
  }

  forget(ranges: SpoolRange[]): void {
    for (const segment of this.#segments) {
      const inside = ranges.map((range) => cut(range, segment)).filter((range) => range.from <= range.to)
      if (inside.length === 0) continue
      for (const { from, to } of inside) segment.open -= to - from + 1
      // A segment without open messages is deleted even if it is not full, so that an idle client leaves nothing to recover.
      if (segment.open === 0) {
        this.#drop(segment)
        continue
      }
      // Starts with a line break, in case a full disk or a kill has left an incomplete line.
      const lines = `\n${inside.map(({ from, to }) => `${from - segment.first} ${to - segment.first}\n`).join('')}`
      // After close the file descriptors may have been reused, so the file is opened by name, if no other writer has taken it over.
      if (this.#isClosed) {
        if (fs.existsSync(`${segment.base}.messages`)) fs.appendFileSync(`${segment.base}.done`, lines)
      } else if (fs.writeSync(segment.doneFd, lines) !== lines.length)
        throw new Error('the list of delivered messages was written only in part; the disk may be full')
    }
  }

  async recover(take: Take): Promise<void> {
    await this.#recoverOnce(take)
    // A writer on another host is declared dead only after a while, so the search is repeated periodically.
    const again = (): void => void this.#recoverOnce(take).catch(this.#report)
    if (!this.#isClosed) this.#rescan = setInterval(again, this.#times.silentMs).unref()
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    clearInterval(this.#rescan)
    this.#noExit()
    for (const segment of this.#segments) closeFiles(segment)
    // Without messages to recover, the owner file is not needed.
    this.#attempt(() => (this.#segments.length === 0 ? leave(this.#dir, this.#owner) : this.#owner.markGone()))
  }

  #attempt(work: () => unknown): void {
    try {
      work()
    } catch (error) {
      this.#report(error)
    }
  }

  #add(base: string, found: Pick<Segment, 'count' | 'bytes' | 'open' | 'full'>): Segment {
    const messagesFd = fs.openSync(`${base}.messages`, 'a', 0o600)
    let doneFd: number
    try {
      doneFd = fs.openSync(`${base}.done`, 'a', 0o600)
    } catch (error) {
      fs.closeSync(messagesFd)
      throw error
    }
    // The messages of a segment have consecutive numbers, from which their line follows. So nothing may be appended to an earlier segment.
    const last = this.#segments.at(-1)
    if (last) last.full = true
    const segment: Segment = { base, first: this.#nextNumber, messagesFd, doneFd, ...found }
    this.#nextNumber += segment.count
    this.#bytes += segment.bytes
    this.#segments.push(segment)
    return segment
  }

  #newBase(): string {
    return join(this.#dir, `${this.#owner.token}-${this.#nextSegment++}`)
  }

  #writable(): Segment {
    const last = this.#segments.at(-1)
    return last && !last.full ? last : this.#add(this.#newBase(), { count: 0, bytes: 0, open: 0, full: false })
  }

  #drop(segment: Segment): void {
    this.#segments = this.#segments.filter((other) => other !== segment)
    this.#bytes -= segment.bytes
    if (!this.#isClosed) closeFiles(segment)
    removeFiles(segment.base)
  }

  /** Takes over a segment by renaming it, so that it belongs to exactly one writer at any moment. */
  async #adopt(from: string, take: Take): Promise<void> {
    const { lines, done } = readSegment(from)
    const left = [...lines.entries()].filter(([place, json]) => !done.has(place) && isMessage(json))
    if (left.length === 0) return removeFiles(from)
    const base = this.#newBase()
    // The .done file briefly exists under both names, because without it delivered messages would be sent again.
    if (fs.existsSync(`${from}.done`)) fs.copyFileSync(`${from}.done`, `${base}.done`)
    fs.renameSync(`${from}.messages`, `${base}.messages`)
    fs.rmSync(`${from}.done`, { force: true })
    const { size } = fs.statSync(`${base}.messages`)
    const { first } = this.#add(base, { count: lines.length, bytes: size, open: left.length, full: true })
    for (const [place, json] of left) {
      if (this.#isClosed) return
      await take(json, first + place)
    }
  }

  #reportUnsent(): void {
    if (this.#isUnsentReported) return
    const { length } = abandonedSegments(this.#place.dir, this.#times.silentMs)
    if (length === 0) return
    this.#isUnsentReported = true
    this.#report(withoutKey(length, this.#place.dir, this.#dir))
  }

  async #recoverOnce(take: Take): Promise<void> {
    if (this.#isRecovering) return
    this.#isRecovering = true
    try {
      this.#reportUnsent()
      for (const claim of claimSegments(this.#dir, this.#owner, this.#times.silentMs)) {
        for (const base of claim.segments) {
          if (this.#isClosed) return
          await this.#adopt(base, take)
        }
        claim.finish()
      }
    } finally {
      this.#isRecovering = false
    }
  }
}

/** A hash, because the write key itself must not be written to disk. */
export function senderFolder({ dir, sender }: Pick<SpoolPlace, 'dir' | 'sender'>): string {
  return join(dir, createHash('sha256').update(sender).digest('hex').slice(0, 32))
}

function enter(dir: string): Owner {
  for (let tries = 1; ; tries++) {
    fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
    try {
      return createOwner(dir)
    } catch (error) {
      // The last other client in the folder may have removed it in between.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || tries === 5) throw error
    }
  }
}

function leave(dir: string, owner: Owner): void {
  owner.remove()
  try {
    fs.rmdirSync(dir)
  } catch {
    // Other clients still use it, or it is gone already.
  }
}

/** Version 0.1 kept the messages of all senders in one folder, so their write key and address are not known. */
function withoutKey(files: number, from: string, to: string): MessagesWithoutKey {
  const count = `${files} file${files === 1 ? '' : 's'} of messages from version 0.1`
  return new MessagesWithoutKey(
    `${from} contains ${count}, which do not contain their write key and are not sent. If all of them are for the write key and host of this client, move the .owner, .messages and .done files to ${to}; otherwise delete them.`,
  )
}

/** The messages first, so that a crash leaves at most a .done file without messages. */
function removeFiles(base: string): void {
  fs.rmSync(`${base}.messages`, { force: true })
  fs.rmSync(`${base}.done`, { force: true })
}

function closeFiles(segment: Segment): void {
  fs.closeSync(segment.messagesFd)
  fs.closeSync(segment.doneFd)
}

function cut(range: SpoolRange, segment: Segment): SpoolRange {
  return { from: Math.max(range.from, segment.first), to: Math.min(range.to, segment.first + segment.count - 1) }
}

function readSegment(base: string): { lines: string[]; done: Set<number> } {
  const done = new Set<number>()
  const lines = readLines(`${base}.messages`)
  for (const line of readLines(`${base}.done`)) {
    const [, from, to] = /^(\d+) (\d+)$/.exec(line)?.map(Number) ?? []
    if (from === undefined || to === undefined || to >= lines.length) continue
    for (let place = from; place <= to; place++) done.add(place)
  }
  return { lines, done }
}

/** Returns the complete lines, without a last one that was cut short by a kill. */
function readLines(file: string): string[] {
  try {
    return fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function isMessage(line: string): boolean {
  try {
    return typeof (JSON.parse(line) as { messageId?: unknown } | null)?.messageId === 'string'
  } catch {
    return false
  }
}
