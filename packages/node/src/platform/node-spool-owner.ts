// Who writes in a spool folder, who of them still lives, and who takes over from the dead. Taking over is one rename,
// and of two that try one succeeds.
//
//   TOKEN.owner            a writer: its host, process and start; touched now and then
//   TOKEN.owner.by.TOKEN2  the same, once TOKEN is gone and TOKEN2 takes over what it left

import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'

interface Identity {
  host: string
  /** Tells a machine that was started anew. */
  boot: string
  /** Tells containers that share a host's name and each have a process 1. */
  namespace: string
  /** 0 once the writer has left by itself. */
  pid: number
  /** When the process started, in the kernel's ticks: tells a reused process ID from the one that wrote this. */
  started: string
}

export interface Owner {
  token: string
  /** A sign of life. */
  touch(): void
  /** Leaves messages behind on purpose. */
  markGone(): void
  remove(): void
}

export function createOwner(dir: string): Owner {
  const token = `${process.pid.toString(36)}${randomBytes(6).toString('hex')}`
  const file = join(dir, `${token}.owner`)
  function write(identity: Identity): void {
    // Under another name first, so that nobody ever reads half of it.
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
  /** All is taken over: nothing of the writer is to be left. */
  finish(): void
}

const OWNER_FILE = /^([0-9a-z]+)\.owner(?:\.by\.([0-9a-z]+))?$/

/** Takes over what writers that are gone have left, and what was claimed before but not finished. */
export function claimLeft(dir: string, owner: Owner, silentMs: number): Claim[] {
  const claims: Claim[] = []
  for (const name of fs.readdirSync(dir)) {
    const [, writer, holder] = OWNER_FILE.exec(name) ?? []
    if (writer === undefined || writer === owner.token) continue
    const claim = join(dir, `${writer}.owner.by.${owner.token}`)
    if (holder !== owner.token) {
      // What another has taken over is free again only when that other is gone, too.
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

/** Files whose writers are gone and that nobody has taken over. */
export function leftSegments(dir: string, silentMs: number): string[] {
  return fs.readdirSync(dir).flatMap((name) => {
    const [, writer, holder] = OWNER_FILE.exec(name) ?? []
    return writer === undefined || isHeld(dir, name, holder, silentMs) ? [] : segmentsOf(dir, writer)
  })
}

function isHeld(dir: string, ownerFile: string, holder: string | undefined, silentMs: number): boolean {
  return isAlive(join(dir, holder === undefined ? ownerFile : `${holder}.owner`), silentMs)
}

/** A crash may have left lists without messages, and an owner file that was not in place yet. */
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

/** Fields 3 and 22 of /proc/PID/stat, behind the name in parentheses, which may itself hold spaces. */
function statOf(pid: number): { state: string; started: string } | undefined {
  const stat = orEmpty(() => fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields[0] && fields[19] ? { state: fields[0], started: fields[19] } : undefined
}

/** Where there is no /proc, its facts are all alike. */
function orEmpty(read: () => string): string {
  try {
    return read()
  } catch {
    return ''
  }
}
