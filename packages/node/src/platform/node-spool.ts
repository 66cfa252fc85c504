// The spool on disk: an append-only file of messages and beside it one of the numbers whose outcome is known. A message
// is written with one write() before its call returns, so that it outlives a killed process (not a power cut: there is
// no fsync, which costs about a thousand times the write). Segments are small and are deleted whole.
//
//   TOKEN.owner            who writes here; touched now and then, so that others can tell the living from the dead
//   TOKEN.owner.by.TOKEN2  the same, once its process is gone and another has taken over what it left
//   TOKEN-N.messages       a message a line
//   TOKEN-N.done           lines "FROM TO": places in TOKEN-N.messages, from 0, whose outcome is known

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Spool, SpoolLimits, SpoolRange } from '../queue/spool.ts'

const SEGMENT_BYTES = 1024 * 1024
const TOUCH_MS = 10_000
/** A writer on another host that has not touched its file for this long is gone. */
const SILENT_MS = 60_000

interface Segment {
  base: string
  first: number
  count: number
  bytes: number
  open: number
  messagesFd: number
  doneFd: number
  /** No more messages will come. */
  full: boolean
}

interface Owner {
  host: string
  boot: string
  pid: number
  /** When the process started, in the kernel's ticks: tells a reused process ID from the one that wrote this. */
  started: string
}

export function openSpool(options: SpoolLimits, report: (error: unknown) => void): Spool {
  const { dir, maxBytes } = options
  fs.mkdirSync(dir, { recursive: true, mode: 0o700 })
  const token = `${process.pid.toString(36)}${randomBytes(6).toString('hex')}`
  const ownerFile = join(dir, `${token}.owner`)
  fs.writeFileSync(ownerFile, JSON.stringify(owner()), { flag: 'wx', mode: 0o600 })

  let segments: Segment[] = []
  let nextNumber = 0
  let nextSegment = 0
  let bytes = 0
  let closed = false
  let rescan: ReturnType<typeof setInterval> | undefined
  const heartbeat = setInterval(touch, TOUCH_MS).unref()

  function touch(): void {
    try {
      const now = new Date()
      fs.utimesSync(ownerFile, now, now)
    } catch (error) {
      report(error)
    }
  }

  function writable(): Segment {
    const last = segments.at(-1)
    if (last && !last.full) return last
    const base = join(dir, `${token}-${nextSegment++}`)
    const segment: Segment = {
      base,
      first: nextNumber,
      count: 0,
      bytes: 0,
      open: 0,
      messagesFd: fs.openSync(`${base}.messages`, 'ax', 0o600),
      doneFd: fs.openSync(`${base}.done`, 'ax', 0o600),
      full: false,
    }
    segments.push(segment)
    return segment
  }

  function drop(segment: Segment): void {
    segments = segments.filter((other) => other !== segment)
    bytes -= segment.bytes
    fs.closeSync(segment.messagesFd)
    fs.closeSync(segment.doneFd)
    // The messages first: what is left of a segment after a crash here is then a list of numbers without messages.
    fs.rmSync(`${segment.base}.messages`, { force: true })
    fs.rmSync(`${segment.base}.done`, { force: true })
  }

  async function recoverOnce(take: (json: string) => Promise<void>): Promise<void> {
    // Across writers, because one that was killed while it took over another's has left some messages twice.
    const seen = new Set<string>()
    for (const { claim, segments: left } of claimLeft(dir, token)) {
      for (const base of left) {
        for (const { json, messageId, number } of unfinished(base)) {
          if (closed) return
          if (!seen.has(messageId)) await take(json)
          seen.add(messageId)
          fs.appendFileSync(`${base}.done`, `${number} ${number}\n`, { mode: 0o600 })
        }
        fs.rmSync(`${base}.messages`, { force: true })
        fs.rmSync(`${base}.done`, { force: true })
      }
      fs.rmSync(claim, { force: true })
    }
  }

  return {
    keep(json) {
      const line = Buffer.from(`${json}\n`)
      if (bytes + line.length > maxBytes) return undefined
      const segment = writable()
      if (fs.writeSync(segment.messagesFd, line) !== line.length) {
        // A short write (disk full) leaves half a line, which recovery skips; nothing may be appended to it.
        segment.full = true
        throw new Error('the disk took only a part of the message')
      }
      segment.count++
      segment.open++
      segment.bytes += line.length
      bytes += line.length
      if (segment.bytes >= SEGMENT_BYTES) segment.full = true
      return nextNumber++
    },

    forget(ranges) {
      for (const segment of segments) {
        const inside = ranges.map((range) => cut(range, segment)).filter((range) => range.from <= range.to)
        if (inside.length === 0) continue
        for (const { from, to } of inside) segment.open -= to - from + 1
        // An empty segment is deleted even while it could take more, so that an idle client leaves nothing to recover.
        if (segment.open === 0) drop(segment)
        else fs.writeSync(segment.doneFd, inside.map(({ from, to }) => `${from - segment.first} ${to - segment.first}\n`).join(''))
      }
    },

    async recover(take) {
      await recoverOnce(take)
      // A writer on another host is known to be gone only after a while, so look again now and then.
      if (!closed) rescan = setInterval(() => void recoverOnce(take).catch(report), SILENT_MS).unref()
    },

    close() {
      closed = true
      clearInterval(heartbeat)
      clearInterval(rescan)
      for (const segment of segments) {
        fs.closeSync(segment.messagesFd)
        fs.closeSync(segment.doneFd)
      }
      // With nothing left to recover there is no owner to look for.
      if (segments.length === 0) fs.rmSync(ownerFile, { force: true })
      else markGone(ownerFile)
    },
  }
}

function cut(range: SpoolRange, segment: Segment): SpoolRange {
  return { from: Math.max(range.from, segment.first), to: Math.min(range.to, segment.first + segment.count - 1) }
}

/** The messages of a segment whose outcome is not known. A last line cut short by the kill is not one. */
function* unfinished(base: string): Generator<{ json: string; messageId: string; number: number }> {
  const done = new Set<number>()
  for (const line of readLines(`${base}.done`)) {
    const [from, to] = line.split(' ').map(Number)
    for (let number = from as number; number <= (to as number); number++) done.add(number)
  }
  for (const [number, json] of readLines(`${base}.messages`).entries()) {
    const messageId = done.has(number) ? undefined : messageIdOf(json)
    if (messageId !== undefined) yield { json, messageId, number }
  }
}

function readLines(file: string): string[] {
  try {
    return fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

function messageIdOf(line: string): string | undefined {
  try {
    const { messageId } = JSON.parse(line) as { messageId?: unknown }
    return typeof messageId === 'string' ? messageId : undefined
  } catch {
    return undefined
  }
}

/** Takes over, one rename each, what processes that are gone have left. Of two that try, one rename succeeds. */
function claimLeft(dir: string, token: string): { claim: string; segments: string[] }[] {
  const names = fs.readdirSync(dir)
  const claimed: { claim: string; segments: string[] }[] = []
  for (const name of names) {
    const match = /^([0-9a-z]+)\.owner(?:\.by\.([0-9a-z]+))?$/.exec(name)
    const writer = match?.[1]
    if (writer === undefined || writer === token || match?.[2] === token) continue
    // What another has taken over is free again only when that other is gone, too.
    const holder = match?.[2]
    const holderFile = join(dir, holder === undefined ? name : `${holder}.owner`)
    if (isAlive(holderFile)) continue
    const claim = join(dir, `${writer}.owner.by.${token}`)
    try {
      fs.renameSync(join(dir, name), claim)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      throw error
    }
    const numberOf = (file: string): number => Number(file.slice(writer.length + 1, -'.messages'.length))
    const files = names
      .filter((file) => file.startsWith(`${writer}-`) && file.endsWith('.messages'))
      .sort((a, b) => numberOf(a) - numberOf(b))
    claimed.push({ claim, segments: files.map((file) => join(dir, file.slice(0, -'.messages'.length))) })
  }
  return claimed
}

function owner(): Owner {
  return { host: hostname(), boot: bootId(), pid: process.pid, started: statOf(process.pid)?.started ?? '' }
}

function markGone(file: string): void {
  fs.writeFileSync(file, JSON.stringify({ ...owner(), pid: 0 }))
}

function isAlive(file: string): boolean {
  let written: Owner
  let touchedAt: number
  try {
    written = JSON.parse(fs.readFileSync(file, 'utf8')) as Owner
    touchedAt = fs.statSync(file).mtimeMs
  } catch {
    return false
  }
  if (written.pid === 0) return false
  if (written.host !== hostname() || written.boot !== bootId()) return Date.now() - touchedAt < SILENT_MS
  try {
    process.kill(written.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const running = statOf(written.pid)
  return running === undefined || (running.state !== 'Z' && running.started === written.started)
}

function bootId(): string {
  return readFirst('/proc/sys/kernel/random/boot_id') ?? ''
}

/** Fields 3 and 22 of /proc/PID/stat, behind the name in parentheses, which may itself hold spaces. */
function statOf(pid: number): { state: string; started: string } | undefined {
  const stat = readFirst(`/proc/${pid}/stat`)
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields?.[0] === undefined || fields[19] === undefined ? undefined : { state: fields[0], started: fields[19] }
}

function readFirst(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8').trim()
  } catch {
    return undefined
  }
}
