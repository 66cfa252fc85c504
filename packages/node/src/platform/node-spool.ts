// The spool on disk: append-only files of messages, and beside each one of the places whose outcome is known. A message
// is written with one write() before it is queued, so that it outlives a killed process (not a power cut: there is no
// fsync, which costs about a thousand times the write). Files are small and are deleted whole.
//
//   SENDER/TOKEN-N.messages  a message a line
//   SENDER/TOKEN-N.done      lines "FROM TO": places in TOKEN-N.messages, from 0, whose outcome is known; other lines mean nothing
//
// SENDER is a hash of the write key and address: a line contains neither, so its folder has to tell.
// Who TOKEN is, and whether it still lives, is node-spool-owner.ts.

import { createHash } from 'node:crypto'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { MessagesWithoutKey, type Spool, type SpoolPlace, type SpoolRange } from '../queue/spool.ts'
import { claimLeft, createOwner, leftSegments, type Owner } from './node-spool-owner.ts'

const SEGMENT_BYTES = 1024 * 1024

export interface SpoolTimes {
  /** Between two signs of life. */
  touchMs: number
  /** A writer on another host without a sign of life for this long is gone. */
  silentMs: number
}

interface Segment {
  base: string
  first: number
  count: number
  bytes: number
  /** Messages whose outcome is not known. */
  open: number
  messagesFd: number
  doneFd: number
  /** No more messages will come. */
  full: boolean
}

type Take = (json: string, number: number) => Promise<void>

/** What spools do when the process ends without closing them. One listener for all. */
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

export function openSpool(
  place: SpoolPlace,
  report: (error: unknown) => void,
  times: SpoolTimes = { touchMs: 10_000, silentMs: 60_000 },
): Spool {
  const { maxBytes } = place
  const dir = senderFolder(place)
  const owner = enter(dir)
  // A segment is freed when all of it is delivered: several, so that the whole spool does not wait for one message.
  const segmentBytes = Math.min(SEGMENT_BYTES, maxBytes / 8)
  let segments: Segment[] = []
  let nextNumber = 0
  let nextSegment = 0
  let bytes = 0
  let isClosed = false
  let isRecovering = false
  let isUnsentTold = false
  const heartbeat = setInterval(() => attempt(() => owner.touch()), times.touchMs).unref()
  let rescan: ReturnType<typeof setInterval> | undefined
  const noExit = onExit(() => attempt(() => segments.length === 0 && leave(dir, owner)))

  function attempt(work: () => unknown): void {
    try {
      work()
    } catch (error) {
      report(error)
    }
  }

  function add(base: string, found: Pick<Segment, 'count' | 'bytes' | 'open' | 'full'>): Segment {
    const messagesFd = fs.openSync(`${base}.messages`, 'a', 0o600)
    let doneFd: number
    try {
      doneFd = fs.openSync(`${base}.done`, 'a', 0o600)
    } catch (error) {
      fs.closeSync(messagesFd)
      throw error
    }
    // A segment's messages are numbered without a gap, so that a number tells its place: none is added to an earlier one.
    const last = segments.at(-1)
    if (last) last.full = true
    const segment: Segment = { base, first: nextNumber, messagesFd, doneFd, ...found }
    nextNumber += segment.count
    bytes += segment.bytes
    segments.push(segment)
    return segment
  }

  function newBase(): string {
    return join(dir, `${owner.token}-${nextSegment++}`)
  }

  function writable(): Segment {
    const last = segments.at(-1)
    return last && !last.full ? last : add(newBase(), { count: 0, bytes: 0, open: 0, full: false })
  }

  function drop(segment: Segment): void {
    segments = segments.filter((other) => other !== segment)
    bytes -= segment.bytes
    if (!isClosed) closeFiles(segment)
    // The messages first: what a crash leaves of a segment is then a list of places without messages.
    fs.rmSync(`${segment.base}.messages`, { force: true })
    fs.rmSync(`${segment.base}.done`, { force: true })
  }

  /** Takes over a segment by its name, so that at any moment it belongs to exactly one of the two. */
  async function adopt(from: string, take: Take): Promise<void> {
    const { lines, done } = readSegment(from)
    const left = [...lines.entries()].filter(([place, json]) => !done.has(place) && isMessage(json))
    if (left.length === 0) {
      fs.rmSync(`${from}.messages`, { force: true })
      fs.rmSync(`${from}.done`, { force: true })
      return
    }
    const base = newBase()
    // The list is under both names for a moment: without it, what is delivered would be sent again.
    if (fs.existsSync(`${from}.done`)) fs.copyFileSync(`${from}.done`, `${base}.done`)
    fs.renameSync(`${from}.messages`, `${base}.messages`)
    fs.rmSync(`${from}.done`, { force: true })
    const size = fs.statSync(`${base}.messages`).size
    const { first } = add(base, { count: lines.length, bytes: size, open: left.length, full: true })
    for (const [place, json] of left) {
      if (isClosed) return
      await take(json, first + place)
    }
  }

  function reportUnsent(): void {
    if (isUnsentTold) return
    const { length } = leftSegments(place.dir, times.silentMs)
    if (length === 0) return
    isUnsentTold = true
    report(withoutKey(length, place.dir, dir))
  }

  async function recoverOnce(take: Take): Promise<void> {
    if (isRecovering) return
    isRecovering = true
    try {
      reportUnsent()
      for (const claim of claimLeft(dir, owner, times.silentMs)) {
        for (const base of claim.segments) {
          if (isClosed) return
          await adopt(base, take)
        }
        claim.finish()
      }
    } finally {
      isRecovering = false
    }
  }

  return {
    keep(json) {
      if (isClosed) throw new Error('the spool is closed')
      const line = Buffer.from(`${json}\n`)
      if (bytes + line.length > maxBytes) return undefined
      const segment = writable()
      if (fs.writeSync(segment.messagesFd, line) !== line.length) {
        // A short write (disk full) leaves half a line, which recovery passes over; nothing may be appended to it.
        segment.full = true
        throw new Error('the message was written only in part; the disk may be full')
      }
      segment.count++
      segment.open++
      segment.bytes += line.length
      bytes += line.length
      if (segment.bytes >= segmentBytes) segment.full = true
      return nextNumber++
    },

    forget(ranges) {
      for (const segment of segments) {
        const inside = ranges.map((range) => cut(range, segment)).filter((range) => range.from <= range.to)
        if (inside.length === 0) continue
        for (const { from, to } of inside) segment.open -= to - from + 1
        // An empty segment is deleted even while it could take more, so that an idle client leaves nothing to recover.
        if (segment.open === 0) {
          drop(segment)
          continue
        }
        // On a line of its own, also behind one that a full disk or a kill has cut short.
        const lines = `\n${inside.map(({ from, to }) => `${from - segment.first} ${to - segment.first}\n`).join('')}`
        // After close the numbers of the files may be anyone's: then by name, if the next start has not taken them over.
        if (isClosed) {
          if (fs.existsSync(`${segment.base}.messages`)) fs.appendFileSync(`${segment.base}.done`, lines)
        } else if (fs.writeSync(segment.doneFd, lines) !== lines.length)
          throw new Error('the list of delivered messages was written only in part; the disk may be full')
      }
    },

    async recover(take) {
      await recoverOnce(take)
      // A writer on another host is known to be gone only after a while, so look again now and then.
      if (!isClosed) rescan = setInterval(() => void recoverOnce(take).catch(report), times.silentMs).unref()
    },

    close() {
      if (isClosed) return
      isClosed = true
      clearInterval(heartbeat)
      clearInterval(rescan)
      noExit()
      for (const segment of segments) closeFiles(segment)
      // With nothing left to recover there is no owner to look for.
      attempt(() => (segments.length === 0 ? leave(dir, owner) : owner.markGone()))
    },
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
      // Another client, the last to leave the folder, may have removed it in between.
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

/** Whole lines: a last one that was cut short by the kill is none. */
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
