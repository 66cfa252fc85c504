// How commands and reports are written into packets and read from them. Both sides use this file, so they always agree. Addresses and
// failures are the only texts of an outcome: an address is sent once and then referred to by number.

import type { Verdict } from '../../destinations/port/kind.ts'
import type { SegmentAbout } from '../../store/port/stored-messages.ts'
import type { Destination, LoadRecord, RowId, StateEntry, TraceContext } from '../../store/store.ts'
import type { Outcome, Ran } from './outcome.ts'
import type { PacketReader, PacketWriter } from './packet.ts'
import type { Load, RenewedTokens, SenderCommands, SenderReports, Start, Unsent } from './protocol.ts'

// ── Commands ──

const DEFINE = 1
const FORGET = 2
const LOAD = 3
const START = 4
const DROP = 5
/** Asks for an answer, to see whether the sender still runs. */
const PING = 6
const RECALL = 7
const RESUME = 8
const LIMIT = 9
const STATE = 10
const ANSWER = 11

const IS_TEXT = 1
const HAS_VIOLATIONS = 2
const IS_BROWSER = 4
const HAS_IP = 8
const HAS_TRACE = 16
/** The origin is a text. PostgreSQL gives out ids that may be too large for a number. */
const TEXT_ORIGIN = 32

const BATCH = 1
const REPLAY = 2
const KEEP_ANSWER = 4
const PREVIEW = 8
const SOME_STEPS = 16
const HAS_END = 32
const LATE = 64

export class CommandWriter implements SenderCommands {
  readonly #to: PacketWriter
  readonly #onWrite: () => void

  constructor(to: PacketWriter, onWrite: () => void) {
    this.#to = to
    this.#onWrite = onWrite
  }

  define(number: number, destination: Destination): void {
    this.#begin(DEFINE)
    this.#to.number(number)
    this.#to.value(destination)
  }

  forget(number: number): void {
    this.#begin(FORGET)
    this.#to.number(number)
  }

  recall(number: number): void {
    this.#begin(RECALL)
    this.#to.number(number)
  }

  resume(number: number): void {
    this.#begin(RESUME)
    this.#to.number(number)
  }

  limit(number: number, limit: number): void {
    this.#begin(LIMIT)
    this.#to.number(number)
    this.#to.number(limit)
  }

  load({ key, destination, origin, about, body, isText, absent, indexes }: Load): void {
    const to = this.#to
    this.#begin(LOAD)
    to.number(key)
    to.number(destination)
    const { sourceId, receivedAtMs, ip, browser, trace, violations } = about
    // Values are cloned one by one, which costs more than numbers.
    const given = (violations === undefined ? 0 : HAS_VIOLATIONS) | (ip === null ? 0 : HAS_IP) | (trace === null ? 0 : HAS_TRACE)
    to.number((isText ? IS_TEXT : 0) | (browser ? IS_BROWSER : 0) | (typeof origin === 'number' ? 0 : TEXT_ORIGIN) | given)
    to.number(receivedAtMs)
    if (typeof origin === 'number') to.number(origin)
    else to.value(origin)
    to.value(sourceId)
    if (ip !== null) to.value(ip)
    if (trace !== null) to.value(trace)
    if (violations !== undefined) to.value(violations)
    to.bytes(body)
    writeList(to, absent)
    writeList(to, indexes)
  }

  start(start: Start): void {
    const { unit, destination, isBatch, attempt, replay, atMs, keepAnswer, limit, urls, messages, steps, isPreview, notAfterMs, isLate } =
      start
    const to = this.#to
    this.#begin(START)
    to.number(unit)
    to.number(destination)
    const more = (isPreview ? PREVIEW : 0) | (steps === null ? 0 : SOME_STEPS) | (notAfterMs === null ? 0 : HAS_END) | (isLate ? LATE : 0)
    to.number((isBatch ? BATCH : 0) | (replay ? REPLAY : 0) | (keepAnswer ? KEEP_ANSWER : 0) | more)
    to.number(attempt)
    to.number(atMs)
    to.number(limit)
    writeList(to, urls)
    writeList(to, messages)
    if (steps !== null) to.value(steps)
    if (notAfterMs !== null) to.number(notAfterMs)
  }

  drop(key: number, indexes: readonly number[] | null): void {
    this.#begin(DROP)
    this.#to.number(key)
    this.#to.number(indexes === null ? 1 : 0)
    writeList(this.#to, indexes ?? [])
  }

  state(destinationId: string, entries: readonly StateEntry[] | null): void {
    this.#begin(STATE)
    this.#to.value(destinationId)
    this.#to.value(entries)
  }

  answer(question: number, value: unknown, error: string | null): void {
    this.#begin(ANSWER)
    this.#to.number(question)
    this.#to.value(value)
    this.#to.value(error)
  }

  ping(): void {
    this.#begin(PING)
  }

  #begin(command: number): void {
    this.#to.number(command)
    this.#onWrite()
  }
}

/** Carries out the commands of a packet. Returns whether an answer was asked for. */
export function readCommands(from: PacketReader, commands: SenderCommands): boolean {
  let isPinged = false
  while (!from.isAtEnd) {
    const command = from.number()
    if (command === START) commands.start(readStart(from))
    else if (command === LOAD) commands.load(readLoad(from))
    else if (command === DEFINE) commands.define(from.number(), from.value() as Destination)
    else if (command === FORGET) commands.forget(from.number())
    else if (command === RECALL) commands.recall(from.number())
    else if (command === RESUME) commands.resume(from.number())
    else if (command === LIMIT) commands.limit(from.number(), from.number())
    else if (command === PING) isPinged = true
    else if (command === ANSWER) commands.answer?.(from.number(), from.value(), from.value() as string | null)
    else if (command === STATE) commands.state?.(from.value() as string, from.value() as readonly StateEntry[] | null)
    else {
      const key = from.number()
      const isAll = from.number() === 1
      const indexes = readList(from)
      commands.drop(key, isAll ? null : indexes)
    }
  }
  return isPinged
}

function readLoad(from: PacketReader): Load {
  const key = from.number()
  const destination = from.number()
  const flags = from.number()
  const receivedAtMs = from.number()
  const browser = (flags & IS_BROWSER) !== 0
  const origin = (flags & TEXT_ORIGIN) === 0 ? from.number() : (from.value() as RowId)
  const sourceId = from.value() as string
  const ip = (flags & HAS_IP) === 0 ? null : (from.value() as string)
  const trace = (flags & HAS_TRACE) === 0 ? null : (from.value() as TraceContext)
  const about: SegmentAbout = { sourceId, receivedAtMs, ip, browser, trace }
  if ((flags & HAS_VIOLATIONS) !== 0) about.violations = from.value() as SegmentAbout['violations']
  const isText = (flags & IS_TEXT) !== 0
  return { key, destination, origin, about, isText, parsed: null, body: from.bytes(), absent: readList(from), indexes: readList(from) }
}

function readStart(from: PacketReader): Start {
  const unit = from.number()
  const destination = from.number()
  const flags = from.number()
  return {
    unit,
    destination,
    isBatch: (flags & BATCH) !== 0,
    replay: (flags & REPLAY) !== 0,
    keepAnswer: (flags & KEEP_ANSWER) !== 0,
    isPreview: (flags & PREVIEW) !== 0,
    isLate: (flags & LATE) !== 0,
    attempt: from.number(),
    atMs: from.number(),
    limit: from.number(),
    urls: readList(from),
    messages: readList(from),
    steps: (flags & SOME_STEPS) === 0 ? null : (from.value() as string[]),
    notAfterMs: (flags & HAS_END) === 0 ? null : from.number(),
  }
}

// ── Reports ──

const VERDICTS: readonly Verdict[] = ['success', 'temporary', 'permanent']
/** In the place of a URL's number: reports about the whole unit. */
const CANNOT_BE_SENT = -1
const HAS_BUG = -2
/** Also in its place: a report about a destination, without a unit. */
const HAS_TOKENS = -3
const WANTS_STATE = -4
const ASKS = -5
/** Longer tokens are not accepted. */
const MAX_TOKEN = 16 * 1024
/** How many addresses both sides remember. Others are sent every time. */
const MAX_ADDRESSES = 10_000
const UNNUMBERED = -1

export class ReportWriter implements SenderReports {
  readonly #to: PacketWriter
  readonly #onWrite: () => void
  readonly #addresses = new Map<string, number>()

  constructor(to: PacketWriter, onWrite: () => void) {
    this.#to = to
    this.#onWrite = onWrite
  }

  outcome(unit: number, url: number, outcome: Outcome, waitedMs: number): void {
    const to = this.#to
    const { verdict, status, reason, error, address, timings, retryAfterMs, responseStart, logs, ran, load } = outcome
    to.number(unit)
    to.number(url)
    to.number(waitedMs)
    to.number(VERDICTS.indexOf(verdict))
    to.nullable(status)
    this.#address(address)
    to.nullable(timings.dnsMs)
    to.nullable(timings.connectMs)
    to.nullable(timings.tlsMs)
    to.nullable(timings.firstByteMs)
    to.number(timings.totalMs)
    to.nullable(retryAfterMs)
    const hasText =
      reason !== null || error !== null || responseStart !== null || logs !== undefined || ran !== undefined || load !== undefined
    to.number(hasText ? 1 : 0)
    if (hasText) to.value([reason, error, responseStart, logs, ran, load])
    this.#onWrite()
  }

  unsent(unit: number, unsent: readonly Unsent[], isOver: boolean): void {
    this.#to.number(unit)
    this.#to.number(CANNOT_BE_SENT)
    this.#to.number(isOver ? 1 : 0)
    this.#to.value(unsent)
    this.#onWrite()
  }

  bug(unit: number, message: string): void {
    this.#to.number(unit)
    this.#to.number(HAS_BUG)
    this.#to.value(message)
    this.#onWrite()
  }

  tokens(destinationId: string, renewed: RenewedTokens): void {
    this.#to.number(0)
    this.#to.number(HAS_TOKENS)
    this.#to.value(destinationId)
    this.#to.value(renewed)
    this.#onWrite()
  }

  stateWanted(destinationId: string): void {
    this.#to.number(0)
    this.#to.number(WANTS_STATE)
    this.#to.value(destinationId)
    this.#onWrite()
  }

  asked(question: number, about: unknown): void {
    this.#to.number(question)
    this.#to.number(ASKS)
    this.#to.value(about)
    this.#onWrite()
  }

  #address(address: string | null): void {
    const known = address === null ? Number.NaN : this.#addresses.get(address)
    if (known !== undefined) return this.#to.number(known)
    const number = this.#addresses.size
    this.#to.number(number < MAX_ADDRESSES ? number : UNNUMBERED)
    this.#to.value(address)
    if (number < MAX_ADDRESSES) this.#addresses.set(address as string, number)
  }
}

type Texts = [reason: string | null, error: string | null, responseStart: string | null, logs?: string, ran?: Ran, load?: LoadRecord]

export class ReportReader {
  readonly #addresses: string[] = []

  read(from: PacketReader, reports: SenderReports): void {
    while (!from.isAtEnd) {
      const unit = from.number()
      const url = from.number()
      if (url === HAS_BUG) reports.bug(unit, from.value() as string)
      else if (url === CANNOT_BE_SENT) {
        const isOver = from.number() === 1
        reports.unsent(unit, from.value() as Unsent[], isOver)
      } else if (url === HAS_TOKENS) {
        const destinationId = checkedToken(from.value())
        const renewed = checkedTokens(from.value())
        reports.tokens?.(destinationId, renewed)
      } else if (url === ASKS) {
        reports.asked?.(unit, from.value())
      } else if (url === WANTS_STATE) {
        reports.stateWanted?.(checkedToken(from.value()))
      } else {
        const waitedMs = from.number()
        reports.outcome(unit, url, this.#outcome(from), waitedMs)
      }
    }
  }

  #outcome(from: PacketReader): Outcome {
    const verdict = VERDICTS[from.number()] as Verdict
    const status = from.nullable()
    const address = this.#address(from)
    const timings = {
      dnsMs: from.nullable(),
      connectMs: from.nullable(),
      tlsMs: from.nullable(),
      firstByteMs: from.nullable(),
      totalMs: from.number(),
    }
    const retryAfterMs = from.nullable()
    if (from.number() === 0) return { verdict, status, reason: null, error: null, address, timings, retryAfterMs, responseStart: null }
    const [reason, error, responseStart, logs, ran, load] = from.value() as Texts
    const outcome = { verdict, status, reason, error, address, timings, retryAfterMs, responseStart }
    return {
      ...outcome,
      ...(logs === undefined ? {} : { logs }),
      ...(ran === undefined ? {} : { ran }),
      ...(load === undefined ? {} : { load }),
    }
  }

  #address(from: PacketReader): string | null {
    const number = from.nullable()
    if (number === null) return null
    if (number !== UNNUMBERED && number < this.#addresses.length) return this.#addresses[number] as string
    const address = from.value() as string
    if (number !== UNNUMBERED && this.#addresses.length < MAX_ADDRESSES) this.#addresses.push(address)
    return address
  }
}

/** Tokens are stored, so they are checked. Throws if they cannot be any. */
function checkedTokens(value: unknown): RenewedTokens {
  const { accessToken, refreshToken, usedRefreshToken } = value as RenewedTokens
  return {
    accessToken: checkedToken(accessToken),
    refreshToken: refreshToken === null ? null : checkedToken(refreshToken),
    usedRefreshToken: usedRefreshToken === null ? null : checkedToken(usedRefreshToken),
  }
}

function checkedToken(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > MAX_TOKEN) throw new TypeError('not a token')
  return value
}

function writeList(to: PacketWriter, list: readonly number[]): void {
  to.number(list.length)
  for (const each of list) to.number(each)
}

function readList(from: PacketReader): number[] {
  const length = from.number()
  const list: number[] = []
  for (let at = 0; at < length; at++) list.push(from.number())
  return list
}
