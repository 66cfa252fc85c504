// Stores the refresh tokens that integrations got in exchange for others. Many tools accept a refresh token only once, so without this a destination would
// stop working at the next start. Access tokens that are renewed with the same refresh token are not stored: a new host requests another one.

import { setTimeout as wait } from 'node:timers/promises'
import type { JsonObject } from '@switchyard/protocol'
import type { Actor, Audit, Destination, Store } from '../../store/store.ts'
import type { NewRefreshToken } from './hosts.ts'

export interface TokenKeeperOptions {
  store: { resources: Pick<Store['resources'], 'updateDestination'> }
  /** Called when tokens could not be stored. It tries again, unless it is being closed. */
  onError: (error: unknown) => void
  pauseMs?: number
}

/** Between two changes of a destination. An integration that renews its tokens all the time must not fill the audit log. */
const PAUSE_MS = 5_000
const SERVICE: Actor = { id: 'service', name: 'service', type: 'service' }

export class TokenKeeper {
  readonly #options: TokenKeeperOptions
  readonly #closing = new AbortController()
  /** The latest tokens by destination, with the refresh token that is stored. */
  readonly #waiting = new Map<string, NewRefreshToken>()
  readonly #writing = new Map<string, Promise<void>>()

  constructor(options: TokenKeeperOptions) {
    this.#options = options
  }

  keep(destinationId: string, renewed: NewRefreshToken): void {
    this.#waiting.set(destinationId, following(this.#waiting.get(destinationId), renewed))
    if (this.#writing.has(destinationId)) return
    this.#writing.set(
      destinationId,
      this.#write(destinationId).finally(() => this.#writing.delete(destinationId)),
    )
  }

  /** Stores what is left. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#writing.values())
  }

  async #write(destinationId: string): Promise<void> {
    const { signal } = this.#closing
    for (let next = this.#take(destinationId); next !== undefined; next = this.#take(destinationId)) {
      try {
        await this.#store(destinationId, next)
      } catch (error) {
        this.#options.onError(error)
        if (signal.aborted) return
        const later = this.#waiting.get(destinationId)
        this.#waiting.set(destinationId, later === undefined ? next : following(next, later))
      }
      await wait(this.#options.pauseMs ?? PAUSE_MS, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  #take(destinationId: string): NewRefreshToken | undefined {
    const next = this.#waiting.get(destinationId)
    this.#waiting.delete(destinationId)
    return next
  }

  /** Changes nothing if somebody else, for example another node, has stored another refresh token in the meantime. */
  async #store(destinationId: string, { accessToken, refreshToken, usedRefreshToken }: NewRefreshToken): Promise<void> {
    const change = (destination: Destination): Partial<Destination> => {
      if (destination.type !== 'integration') return {}
      const { settings } = destination
      const oauth = settings['oauth'] as JsonObject | undefined
      if (oauth?.['refreshToken'] !== usedRefreshToken) return {}
      return { settings: { ...settings, oauth: { ...oauth, refreshToken, accessToken } } }
    }
    await this.#options.store.resources.updateDestination(destinationId, change, audit)
  }
}

const audit: Audit<Destination> = (after, before) => ({
  actor: SERVICE,
  action: 'destination.renew-tokens',
  subject: after?.id ?? null,
  before: null,
  after: { changedSecrets: ['settings.oauth'] },
  sources: (after ?? before)?.sourceIds ?? null,
})

/** The later tokens. If they were got with the earlier ones, which are not stored, they replace what those would have replaced. */
function following(earlier: NewRefreshToken | undefined, later: NewRefreshToken): NewRefreshToken {
  return earlier?.refreshToken === later.usedRefreshToken ? { ...later, usedRefreshToken: earlier.usedRefreshToken } : later
}
