// Tracks which processes write to a spool folder and which of them are alive, and lets a writer take over from a dead one.
// Taking over is a single rename, so only one of two writers that try succeeds.
//
//   TOKEN.owner            a writer: its host, process and start time; touched periodically as a heartbeat
//   TOKEN.owner.by.TOKEN2  the same file after TOKEN died, while TOKEN2 takes over its messages

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

interface Identity {
  host: string
  /** The boot ID, which changes when the machine restarts. */
  boot: string
  /** The PID namespace, to distinguish containers that have the same hostname and each have a process 1. */
  namespace: string
  /** 0 if the writer has closed its spool and left messages on purpose. */
  pid: number
  /** When the process started, in the kernel's ticks, to detect a reused process ID. */
  started: string
}

export interface Owner {
  token: string
  /** Records a heartbeat. */
  touch(): void
  /** Marks the writer as gone, so that the next start takes over its messages. */
  markGone(): void
  remove(): void
}

export function createOwner(dir: string): Owner {
  const token = `${process.pid.toString(36)}${randomBytes(6).toString('hex')}`
  const file = join(dir, `${token}.owner`)
  function write(identity: Identity): void {
    // Written under another name first, so that nobody reads a partly written file.
    fs.writeFileSync(`${file}.new`, JSON.stringify(identity), { mode: 0o600 })
    fs.renameSync(`${file}.new`, file)
  }
  write(identityOf(process.pid))
  return {
    token,
    touch() {
      const now = new Date()
      try {
        fs.utimesSync(file, now, now)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        write(identityOf(process.pid))
      }
    },
    markGone: () => write({ ...identityOf(process.pid), pid: 0 }),
    remove: () => fs.rmSync(file, { force: true }),
  }
}

export interface Claim {
  /** Paths of segments without their endings, oldest first. */
  segments: string[]
  /** Deletes the remaining files of the writer, after all its segments were taken over. */
  finish(): void
}

const OWNER_FILE = /^([0-9a-z]+)\.owner(?:\.by\.([0-9a-z]+))?$/

/** Claims the messages of dead writers, including claims that were made before but not finished. */
export function claimSegments(dir: string, owner: Owner, silentMs: number): Claim[] {
  const claims: Claim[] = []
  for (const name of fs.readdirSync(dir)) {
    const [, writer, holder] = OWNER_FILE.exec(name) ?? []
    if (writer === undefined || writer === owner.token) continue
    const claim = join(dir, `${writer}.owner.by.${owner.token}`)
    if (holder !== owner.token) {
      // A claim of another writer can be taken over only if that writer is dead, too.
      if (isHeld(dir, name, holder, silentMs)) continue
      try {
        fs.renameSync(join(dir, name), claim)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
        throw error
      }
    }
    claims.push({ segments: segmentsOf(dir, writer), finish: () => clear(dir, writer, claim) })
  }
  return claims
}

/** Returns the segments of dead writers that nobody has taken over. */
export function abandonedSegments(dir: string, silentMs: number): string[] {
  return fs.readdirSync(dir).flatMap((name) => {
    const [, writer, holder] = OWNER_FILE.exec(name) ?? []
    return writer === undefined || isHeld(dir, name, holder, silentMs) ? [] : segmentsOf(dir, writer)
  })
}

function isHeld(dir: string, ownerFile: string, holder: string | undefined, silentMs: number): boolean {
  return isAlive(join(dir, holder === undefined ? ownerFile : `${holder}.owner`), silentMs)
}

/** Also deletes what a crash may have left: .done files without messages, and an owner file that was not renamed yet. */
function clear(dir: string, writer: string, claim: string): void {
  for (const name of fs.readdirSync(dir)) {
    if (name === `${writer}.owner.new` || (name.startsWith(`${writer}-`) && name.endsWith('.done')))
      fs.rmSync(join(dir, name), { force: true })
  }
  fs.rmSync(claim, { force: true })
}

function segmentsOf(dir: string, writer: string): string[] {
  const numbers = fs.readdirSync(dir).flatMap((name) => {
    const [, token, number] = /^([0-9a-z]+)-(\d+)\.messages$/.exec(name) ?? []
    return token === writer ? [Number(number)] : []
  })
  return numbers.sort((a, b) => a - b).map((number) => join(dir, `${writer}-${number}`))
}

function isAlive(file: string, silentMs: number): boolean {
  let touchedAt: number
  let text: string
  try {
    touchedAt = fs.statSync(file).mtimeMs
    text = fs.readFileSync(file, 'utf8')
  } catch {
    return false
  }
  const isSilent = Date.now() - touchedAt >= silentMs
  let written: Identity
  try {
    written = JSON.parse(text) as Identity
  } catch {
    return !isSilent
  }
  if (written.pid === 0) return false
  const here = identityOf(process.pid)
  if (written.host !== here.host || written.boot !== here.boot || written.namespace !== here.namespace) return !isSilent
  try {
    process.kill(written.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const running = statOf(written.pid)
  return running === undefined || (running.state !== 'Z' && running.started === written.started)
}

function identityOf(pid: number): Identity {
  return {
    host: hostname(),
    boot: orEmpty(() => fs.readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    namespace: orEmpty(() => fs.readlinkSync('/proc/self/ns/pid')),
    pid,
    started: statOf(pid)?.started ?? '',
  }
}

/** Reads fields 3 and 22 of /proc/PID/stat, which follow the name in parentheses. The name may contain spaces. */
function statOf(pid: number): { state: string; started: string } | undefined {
  const stat = orEmpty(() => fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] && fields[19] ? { state: fields[0], started: fields[19] } : undefined
}

/** Returns an empty string if the file cannot be read, so that values compare as equal on systems without /proc. */
function orEmpty(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
