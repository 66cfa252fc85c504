// The configuration that all nodes share. It is in the database, where any node may change it, and as a whole in the memory of each node,
// for the hot paths. A change is made under a lock that all nodes take, is computed from what is stored, and is visible here after its
// commit. A node reads the changes of others when they notify it, and once a second in case a notification was lost. The logic of the
// changes is in ../../configuration/common-configuration-store.ts.

import type { SecretBox } from '../../../secrets/secret-box.ts'
import { createSerialQueue } from '../../../timing/serial-queue.ts'
import type { ConfigurationChanges, VersionRow } from '../../configuration/configuration-rows.ts'
import { checkSecrets, configurationTables } from '../../configuration/configuration-tables.ts'
import { InMemoryConfiguration } from '../../configuration/in-memory-configuration.ts'
import { StoreUnavailable } from '../../store.ts'
import type { Ask } from '../session/database.ts'
import { sqlOf } from '../tables/sql.ts'
import { Change } from './configuration-change.ts'
import { createNotificationListener, type NotificationListener } from './notification-listener.ts'
import type { StoreContext } from './store-context.ts'
import { lockMark, type Mark, readMark, readState, type State, UNREAD } from './stored-configuration.ts'

export interface SharedOptions {
  secretBox: SecretBox
  /** Called on every node that learns of the deletion, to cancel the destination's pending deliveries. */
  onDestinationDeleted: (id: string) => void
  /** Called when this node has read this version. */
  onVersion: (version: number) => void
}

interface Known extends State {
  /** How often the listening connection had been lost when the state was read. If it was lost since then, the state may be stale. */
  losses: number
}

export class SharedConfiguration extends InMemoryConfiguration implements ConfigurationChanges {
  readonly #context: StoreContext
  readonly #onVersion: (version: number) => void
  /** Other channels can be added to it before load(). */
  readonly listener: NotificationListener
  readonly #inTurn = createSerialQueue()
  #secretBox: SecretBox
  #state: Known = { ...UNREAD, losses: 0 }
  /** The newest version that a notification announced. */
  #announcedVersion = 0
  /** How often the listening connection was lost, after which the server may be a different one and versions prove nothing: see Known. */
  #losses = 0
  #isReloading = false
  /** The id of the key that the stored secrets are encrypted with, as last read. */
  #secretKey: string | null = null

  constructor(context: StoreContext, { secretBox, onDestinationDeleted, onVersion }: SharedOptions) {
    super(onDestinationDeleted)
    this.#context = context
    this.#secretBox = secretBox
    this.#onVersion = onVersion
    this.listener = createNotificationListener({
      database: context.database,
      onVersion: (version) => {
        this.#announcedVersion = Math.max(this.#announcedVersion, version)
        this.#reloadSoon()
      },
      onLost: () => {
        this.#losses++
      },
      onReturn: () => {
        this.#losses++
        this.#reloadSoon()
      },
    })
  }

  get secretBox(): SecretBox {
    return this.#secretBox
  }

  async versions(destinationId: string, below: number, limit: number): Promise<VersionRow[]> {
    if (this.#isOtherKey(this.#secretKey)) throw new StoreUnavailable(OTHER_KEY)
    return configurationTables(sqlOf(this.#context.database.ask)).versions(destinationId, below, limit)
  }

  /** Why this node cannot use the stored configuration, for check(). */
  get problem(): string | null {
    if (this.#state.unopened !== null) return this.#state.unopened.message
    return this.#isOtherKey(this.#secretKey) ? OTHER_KEY : null
  }

  /** Reads everything, at the start. Throws SecretBoxError if the key cannot decrypt a stored secret. */
  async load(): Promise<void> {
    // Listens before reading, so that no change is missed in between.
    await this.listener.start()
    await this.#inTurn(() => this.#loadAll()).catch((error: unknown) => {
      this.listener.close()
      throw error
    })
  }

  async #loadAll(): Promise<void> {
    const { idMap, database } = this.#context
    const losses = this.#losses
    const state = await database.transaction(
      async (ask) => {
        const mark = await readMark(ask)
        const read = await readState(ask, mark, UNREAD, { idMap, secretBox: this.#secretBox })
        if (read.unopened !== null) throw read.unopened
        await checkSecrets(configurationTables(sqlOf(ask)), this.#secretBox)
        this.#secretKey = mark.secretKey
        return { ...read, losses }
      },
      { readOnly: true },
    )
    if (this.#secretKey !== this.#secretBox.keyId) await this.#adoptKey()
    this.#become(state)
  }

  /** Called once a second. Costs one small query if nothing changed. */
  async refresh(): Promise<void> {
    const { version, secretKey } = await readMark(this.#context.database.ask)
    this.#secretKey = secretKey
    if (version !== this.#state.version || this.#isStale) await this.#inTurn(() => this.#reload())
  }

  async close(): Promise<void> {
    this.listener.close()
    // Waits for changes in progress before the connections are closed.
    await this.#inTurn(async () => {})
  }

  /**
   * `work` may also write other rows in the transaction, and is called again after a serialization conflict. A change that wrote nothing is
   * not announced. A change of the key is not announced either: other nodes keep using the configuration in their memory, and refuse changes
   * until they are restarted with the new key.
   */
  change<T>(work: (change: Change) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      const { result, states, box } = await this.#context.database.transaction(async (ask) => {
        const mark = await lockMark(ask)
        // The other nodes could not decrypt what this one encrypts.
        if (this.#isOtherKey(mark.secretKey)) throw new StoreUnavailable(OTHER_KEY)
        // Another node may have made a change that this node has not read yet.
        const before = await this.#read(ask, mark, this.#state)
        const change = new Change(this.#context, ask, before, this.#secretBox)
        const result = await work(change)
        const box = change.nextBox
        if (!(await change.end())) return { result, states: [before], box }
        return { result, states: [before, await this.#read(ask, await readMark(ask), before)], box }
      })
      if (box !== this.#secretBox) this.#secretKey = box.keyId
      this.#secretBox = box
      for (const state of states) this.#become(state)
      return result
    })
  }

  // ── What this node has read ──

  /** Reads what other nodes have written since. */
  async #reload(): Promise<void> {
    this.#become(
      await this.#context.database.transaction(async (ask) => this.#read(ask, await readMark(ask), this.#state), { readOnly: true }),
    )
  }

  /** If it fails, the next refresh reads the changes. */
  #reloadSoon(): void {
    if (this.#isReloading || this.#context.isClosed()) return
    this.#isReloading = true
    const reloading = this.#inTurn(async () => {
      this.#isReloading = false
      // This node is also notified of its own changes, which it has already read.
      if (this.#announcedVersion > this.#state.version || this.#isStale) await this.#reload()
    })
    this.#context.run(reloading)
  }

  async #read(ask: Ask, mark: Mark, before: Known): Promise<Known> {
    const losses = this.#losses
    const whole = before.losses !== losses
    if (mark.version === before.version && !whole) return before
    return { ...(await readState(ask, mark, before, { idMap: this.#context.idMap, secretBox: this.#secretBox, whole })), losses }
  }

  get #isStale(): boolean {
    return this.#state.losses !== this.#losses
  }

  #become(state: Known): void {
    const { version } = this.#state
    this.#state = state
    this.replace(state.configuration)
    if (state.version !== version) this.#onVersion(state.version)
  }

  /** Records the id of this node's key, which has decrypted everything that is stored. */
  async #adoptKey(): Promise<void> {
    const { keyId } = this.#secretBox
    const { count } = await this.#context.database.query(
      'UPDATE configuration SET secret_key = $1 WHERE secret_key IS NOT DISTINCT FROM $2',
      [keyId, this.#secretKey],
    )
    if (count === 1) this.#secretKey = keyId
  }

  #isOtherKey(secretKey: string | null): boolean {
    return secretKey !== null && secretKey !== this.#secretBox.keyId
  }
}

const OTHER_KEY = 'The stored secrets were re-encrypted with a different key while this node was running. Restart this node with that key.'
