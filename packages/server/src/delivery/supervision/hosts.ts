// The hosts of this process, which run integrations. A host is started when a destination that belongs to it has work, and ends after some
// time without work, so without integrations there is no such process. Destinations that may have made a host crash or hang run in a separate host.

import type { JsonObject } from '@switchyard/protocol'
import type { IntegrationDestination, StateEntry } from '../../store/store.ts'
import { type HostEvents, type HostOptions, openHost } from '../link/host-channel.ts'
import type { Link, LinkEvents, OpenLink } from '../link/link.ts'
import { type Outcome, unanswered } from '../link/outcome.ts'
import type { RenewedTokens } from '../link/protocol.ts'
import { unavailableLink } from '../link/unavailable-link.ts'
import type { Work } from '../link/work.ts'
import { HostOutput, withoutSecrets } from './host-output.ts'
import type { LostReason } from './replaceable-sender.ts'
import { reportCheck } from './report-check.ts'
import { type SenderGroup, SenderPool } from './sender-pool.ts'
import { Suspects } from './suspects.ts'
import { Turns } from './turns.ts'

export interface HostsOptions {
  count: number
  /** Called when a host is opened. Null: the integrations package is not installed. */
  host: () => HostOptions | null
  onLost: (error: Error) => void
  /** Called when what an integration keeps between messages could not be read. Its messages are retried. */
  onError?: ((error: unknown) => void) | undefined
  /** Called for a line that a host has printed. It contains no secrets of settings. */
  onOutput: (line: string, host: string) => void
  /** Called when the refresh token of a destination was replaced by another one. */
  onNewRefreshToken?: ((destinationId: string, renewed: NewRefreshToken) => void) | undefined
  /** Reads what an integration keeps between messages. */
  readState?: ((destinationId: string) => Promise<readonly StateEntry[]>) | undefined
  /** The program of a host, for tests. */
  program?: URL | undefined
  idleMs?: number | undefined
  silentChecks?: number | undefined
  maxRssBytes?: number | undefined
}

export type NewRefreshToken = { [name in keyof RenewedTokens]: string }

/** Hosts are checked every 2 s. Loading an integration on a busy machine takes seconds, during which the host does not respond. */
const SILENT_CHECKS = 10
const IDLE_MS = 10 * 60_000
const MAX_BUG = 500
const NOT_INSTALLED = 'The integrations are not installed on this server. Install them with `switchyard catalog install`.'

export class Hosts implements SenderGroup {
  readonly #options: HostsOptions
  readonly #usual: SenderPool
  readonly #isolated: SenderPool
  /** Previews run apart: a mapping that takes long delays no delivery. */
  readonly #previews: SenderPool
  readonly #turns: Turns
  readonly #suspects = new Suspects(() => performance.now())
  /** The destinations in the separate host. */
  readonly #movedApart = new Set<string>()
  /** The settings of destinations that have run, whose values must not be logged. */
  readonly #settings = new Map<string, IntegrationDestination['settings']>()
  /** The tokens that destinations have got in the meantime. They must not be logged either. */
  readonly #renewed = new Map<string, { accessToken: string; refreshToken: string | null }>()

  constructor(options: HostsOptions) {
    const { count, silentChecks = SILENT_CHECKS, idleMs = IDLE_MS } = options
    const open: OpenLink = (name, events) => this.#open(name, events)
    const onLost = (error: Error, work: readonly Work[]): LostReason => this.#lost(error, work)
    const shared = { open, onLost, silentChecks, idleMs, check: reportCheck }
    this.#options = options
    this.#usual = new SenderPool({ ...shared, count, name: 'switchyard-host', onEnd: (work, outcome) => this.#ended(work, outcome) })
    this.#isolated = new SenderPool({
      ...shared,
      count: 1,
      name: 'switchyard-host-isolated',
      onEnd: (work, outcome) => {
        this.#ended(work, outcome)
        this.#turns.ended()
      },
    })
    this.#turns = new Turns((work) => this.#isolated.start(work))
    this.#previews = new SenderPool({ ...shared, count: 1, name: 'switchyard-host-preview', onLost: (error) => this.#lostPreview(error) })
  }

  start(work: Work): void {
    const { id, settings } = work.destination as IntegrationDestination
    this.#settings.set(id, settings)
    if (work.isPreview === true) return this.#previews.start(work)
    if (this.#suspects.has(id)) {
      this.#movedApart.add(id)
      return this.#turns.start(work)
    }
    if (this.#movedApart.delete(id)) {
      this.#turns.recall(id)
      this.#isolated.forget(id)
    }
    this.#usual.start(work)
  }

  tell(destinationId: string, command: 'recall' | 'resume'): void {
    if (command === 'recall') this.#turns.recall(destinationId)
    for (const pool of this.#pools) pool.tell(destinationId, command)
  }

  forget(destinationId: string): void {
    this.#turns.recall(destinationId)
    this.#suspects.forget(destinationId)
    this.#movedApart.delete(destinationId)
    this.#settings.delete(destinationId)
    this.#renewed.delete(destinationId)
    for (const pool of this.#pools) pool.forget(destinationId)
  }

  check(): void {
    for (const pool of this.#pools) pool.check()
  }

  async close(): Promise<void> {
    this.#turns.recall()
    await Promise.all(this.#pools.map((pool) => pool.close()))
  }

  get #pools(): readonly SenderPool[] {
    return [this.#usual, this.#isolated, this.#previews]
  }

  #open(name: string, events: LinkEvents): Link {
    const { host, program, maxRssBytes, onOutput } = this.#options
    const options = host()
    if (options === null) return unavailableLink(events, unanswered('integration_retry', NOT_INSTALLED))
    const secrets = (): Iterable<JsonObject> => [...this.#settings.values(), ...this.#renewed.values()]
    const output = new HostOutput(secrets, (line) => onOutput(line, name))
    const hostEvents: HostEvents = {
      ...events,
      printed: (stream, chunk) => output.add(stream, chunk),
      bug: (unit, message: unknown) => events.bug(unit, withoutSecrets(String(message), secrets()).slice(0, MAX_BUG)),
      tokens: (destinationId, renewed) => this.#tokens(destinationId, renewed),
      stateWanted: (destinationId) => void this.#sendState(destinationId, link),
    }
    const link = openHost(name, options, hostEvents, program, maxRssBytes)
    return link
  }

  async #sendState(destinationId: string, { commands }: Link): Promise<void> {
    const { readState, onError } = this.#options
    // A host that has been taken over can name any destination. Those that run here are all that it can learn about.
    if (!this.#settings.has(destinationId)) return commands.state?.(destinationId, null)
    try {
      commands.state?.(destinationId, (await readState?.(destinationId)) ?? [])
    } catch (error) {
      onError?.(error)
      commands.state?.(destinationId, null)
    }
  }

  /** A host that has been taken over can name any destination. Whoever knows its refresh token was given it. */
  #tokens(destinationId: string, { accessToken, refreshToken, usedRefreshToken }: RenewedTokens): void {
    const settings = this.#settings.get(destinationId)
    if (settings === undefined) return
    const { refreshToken: given = null } = (settings['oauth'] ?? {}) as { refreshToken?: string }
    if (usedRefreshToken !== given && usedRefreshToken !== this.#renewed.get(destinationId)?.refreshToken) return
    this.#renewed.set(destinationId, { accessToken, refreshToken })
    if (refreshToken === null || usedRefreshToken === null || refreshToken === usedRefreshToken) return
    this.#options.onNewRefreshToken?.(destinationId, { accessToken, refreshToken, usedRefreshToken })
  }

  #lost(error: Error, work: readonly Work[]): LostReason {
    this.#options.onLost(error)
    const { isolated, isKnown } = this.#suspects.lost(work)
    for (const id of isolated) this.#usual.forget(id)
    return isKnown ? 'integration_crashed' : 'sender_lost'
  }

  #lostPreview(error: Error): LostReason {
    this.#options.onLost(error)
    return 'integration_crashed'
  }

  #ended(work: Work, outcome: Outcome | null): void {
    if (outcome?.reason !== 'sender_lost' && outcome?.reason !== 'integration_crashed') this.#suspects.survived(work, outcome)
  }
}
