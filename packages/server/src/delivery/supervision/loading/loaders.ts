// The loader processes of this process, which load messages into warehouses. Like hosts, a loader is started when a destination has work, and ends after some
// time without work, so without warehouses there is no such process. It runs our own code, but beside the main thread: making rows takes time and memory.

import { type HostEvents, type HostOptions, openHost } from '../../link/host-channel.ts'
import type { Link, LinkEvents } from '../../link/link.ts'
import { unanswered } from '../../link/outcome.ts'
import { unavailableLink } from '../../link/unavailable-link.ts'
import type { Work } from '../../link/work.ts'
import { reportCheck } from '../report-check.ts'
import { type SenderGroup, SenderPool } from '../sender-pool.ts'

export interface LoadersOptions {
  count: number
  /** Called when a loader is opened. Null: the warehouse package is not installed. */
  host: () => HostOptions | null
  onLost: (error: Error) => void
  onOutput: (line: string, loader: string) => void
  /** Answers what a loader asks about the destinations that it has work of. */
  answer: (about: unknown) => Promise<unknown>
  onError: (error: unknown) => void
  program?: URL | undefined
  idleMs?: number | undefined
}

/** Loaders are checked every 2 s. Making the rows of a large load takes seconds, and longer on a busy machine. */
const SILENT_CHECKS = 30
const IDLE_MS = 10 * 60_000
/** It has work once a day. */
const BACKGROUND_IDLE_MS = 30_000
/** A loader that uses more is replaced when it has finished its work. */
const MAX_RSS_BYTES = 512 * 1024 * 1024
const MAX_LINE = 500
const PROGRAM = new URL('../../loader/loader-process.ts', import.meta.url)
const NOT_INSTALLED = 'The warehouse package is not installed on this server. Install it with `switchyard warehouse install`.'

export class Loaders implements SenderGroup {
  readonly #options: LoadersOptions
  readonly #usual: SenderPool
  /** Tests and previews run apart: somebody waits for them. */
  readonly #previews: SenderPool
  /** The upkeep of tables takes long, and delays no load. */
  readonly #background: SenderPool

  constructor(options: LoadersOptions) {
    const { count, onLost, idleMs = IDLE_MS } = options
    const shared = {
      open: (name: string, events: LinkEvents) => this.#open(name, events),
      onLost: (error: Error) => {
        onLost(error)
        return 'loader_lost' as const
      },
      silentChecks: SILENT_CHECKS,
      idleMs,
      check: reportCheck,
    }
    this.#options = options
    this.#usual = new SenderPool({ ...shared, count, name: 'switchyard-loader' })
    this.#previews = new SenderPool({ ...shared, count: 1, name: 'switchyard-loader-preview' })
    this.#background = new SenderPool({ ...shared, idleMs: Math.min(idleMs, BACKGROUND_IDLE_MS), count: 1, name: 'switchyard-upkeep' })
  }

  start(work: Work): void {
    if (work.isBackground === true) this.#background.start(work)
    else if (work.isPreview === true || work.keepAnswer) this.#previews.start(work)
    else this.#usual.start(work)
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    for (const pool of this.#pools) pool.tell(destinationId, command)
  }

  forget(destinationId: string): void {
    for (const pool of this.#pools) pool.forget(destinationId)
  }

  check(): void {
    for (const pool of this.#pools) pool.check()
  }

  async close(): Promise<void> {
    await Promise.all(this.#pools.map((pool) => pool.close()))
  }

  get #pools(): readonly SenderPool[] {
    return [this.#usual, this.#previews, this.#background]
  }

  #open(name: string, events: LinkEvents): Link {
    const { host, program = PROGRAM, onOutput } = this.#options
    const options = host()
    if (options === null) return unavailableLink(events, unanswered('warehouse_not_installed', NOT_INSTALLED))
    const hostEvents: HostEvents = {
      ...events,
      printed: (_stream, chunk) => {
        for (const line of chunk.split('\n')) if (line.trim() !== '') onOutput(line.slice(0, MAX_LINE), name)
      },
      asked: (question, about) => void this.#answer(question, about, link),
    }
    const link = openHost(name, options, hostEvents, program, MAX_RSS_BYTES)
    return link
  }

  async #answer(question: number, about: unknown, { commands }: Link): Promise<void> {
    try {
      commands.answer?.(question, await this.#options.answer(about), null)
    } catch (error) {
      this.#options.onError(error)
      commands.answer?.(question, null, 'what is stored of the tables could not be read or changed')
    }
  }
}
