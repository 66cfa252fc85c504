// Reads messages from the archive of a lake for replay jobs, and decides by today's configuration which of them are sent: suppressed users, privacy rules, and
// the filters of the destination. A page stays in memory until its messages are replayed. The position is in the store, so nothing is lost with the memory.

import type { JsonObject } from '@switchyard/protocol'
import { type ArchiveAnswer, ArchiveProblem, type ArchiveRequest } from '../destinations/warehouse/archive-page.ts'
import type { Privacy } from '../ingest/privacy/privacy.ts'
import { schemasOfSources } from '../store/port/warehouse-tables.ts'
import type {
  ArchivedMessage,
  ArchiveSelection,
  ArchiveStep,
  Configuration,
  Destination,
  ReplayJob,
  ReplaySelection,
  ReplaySkipReason,
  Routing,
  SegmentContent,
  Store,
} from '../store/store.ts'

export interface ArchiveFeedDeps {
  store: Pick<Store, 'configuration' | 'documents'>
  /** Rejects with ArchiveProblem. */
  read: (lake: Destination, request: ArchiveRequest) => Promise<ArchiveAnswer>
  route: (configuration: Configuration, sourceId: string, content: SegmentContent) => Routing
  privacy: Pick<Privacy, 'ofStored'>
}

type Selection = Extract<ReplaySelection, { archive: unknown }>
type StoredText = Omit<ArchivedMessage, 'skip' | 'text'> & { text: string }

interface Page {
  from: string | null
  messages: StoredText[]
  next: string | null
}

const MESSAGES_PER_PAGE = 250
const CHARACTERS_PER_PAGE = 1024 * 1024
/** Problems that may end by themselves. Others pause the job. */
const TEMPORARY = new Set([
  'warehouse_unreachable',
  'warehouse_timed_out',
  'warehouse_disk_full',
  'loader_lost',
  'timeout',
  'aborted',
  'archive_unread',
])

export class ArchiveFeed {
  readonly #deps: ArchiveFeedDeps
  readonly #pages = new Map<string, Page>()
  #only: { configuration: Configuration; target: Destination; made: Configuration } | null = null

  constructor(deps: ArchiveFeedDeps) {
    this.#deps = deps
  }

  /** At most `max` messages after the position of the job; more of them stay in memory. */
  async take({ id, selection, archive }: Pick<ReplayJob, 'id' | 'selection' | 'archive'>, max: number): Promise<ArchiveStep> {
    const from = archive?.cursor ?? null
    if (!('archive' in selection)) return { from, messages: [], next: null }
    try {
      const page = this.#rest(id, from) ?? (await this.#read(selection, from))
      this.#pages.set(id, page)
      const messages = page.messages.slice(0, max)
      const next = messages.length === page.messages.length ? page.next : (messages.at(-1)?.cursor ?? from)
      return { from, messages: messages.map((message) => this.#judged(selection, message)), next }
    } catch (error) {
      if (!(error instanceof ArchiveProblem)) throw error
      const { code, message } = error
      return { from, problem: { code, message }, pause: !TEMPORARY.has(code) }
    }
  }

  forget(jobId: string): void {
    this.#pages.delete(jobId)
  }

  /** About how many messages a job would have. Rejects with ArchiveProblem. */
  async size(selection: Selection): Promise<number> {
    const { destinationId, ...query } = selection.archive
    let size = 0
    for (const { name } of await this.#sources(selection)) {
      const answer = await this.#deps.read(this.#lake(destinationId), { ...queryOf(query), schema: name, page: null })
      size += 'size' in answer ? answer.size : 0
    }
    return size
  }

  /** What is left of the page in memory, if the job is somewhere in it. */
  #rest(jobId: string, from: string | null): Page | undefined {
    const page = this.#pages.get(jobId)
    if (page === undefined || page.from === from) return page
    const at = page.messages.findIndex(({ cursor }) => cursor === from)
    return at < 0 || at === page.messages.length - 1 ? undefined : { from, messages: page.messages.slice(at + 1), next: page.next }
  }

  async #read(selection: Selection, from: string | null): Promise<Page> {
    const sources = await this.#sources(selection)
    const [sourceId = '', ...rest] = from?.split(' ') ?? []
    const at = sources.findIndex((source) => source.sourceId >= sourceId)
    const source = sources[at]
    if (source === undefined) return { from, messages: [], next: null }
    const { destinationId, ...query } = selection.archive
    const cursor = source.sourceId === sourceId && rest.join(' ') !== '' ? rest.join(' ') : null
    const page = { cursor, limit: MESSAGES_PER_PAGE, maxCharacters: CHARACTERS_PER_PAGE }
    const answer = await this.#deps.read(this.#lake(destinationId), { ...queryOf(query), schema: source.name, page })
    if ('size' in answer) throw new Error('a loader answered another question')
    const after = sources[at + 1]
    return {
      from,
      messages: answer.messages.map(({ receivedAtMs, text, cursor: own }) => ({
        sourceId: source.sourceId,
        receivedAtMs: Math.floor(receivedAtMs),
        text,
        cursor: `${source.sourceId} ${own}`,
      })),
      next: answer.cursor !== null ? `${source.sourceId} ${answer.cursor}` : after === undefined ? null : `${after.sourceId} `,
    }
  }

  /** The sources of the lake whose messages the target gets, in the order in which they are read. */
  async #sources({ destinationId, archive, sourceIds }: Selection): Promise<{ sourceId: string; name: string }[]> {
    const { store } = this.#deps
    const { sources, destinations } = store.configuration()
    const wanted = new Set(destinations.get(destinationId)?.sourceIds)
    const schemas = await schemasOfSources(store.documents, archive.destinationId)
    return schemas
      .filter(({ sourceId }) => wanted.has(sourceId) && sources.has(sourceId))
      .filter(({ sourceId }) => (archive.sourceId ?? sourceId) === sourceId && (sourceIds?.includes(sourceId) ?? true))
      .sort((one, other) => (one.sourceId < other.sourceId ? -1 : 1))
  }

  #lake(id: string): Destination {
    const lake = this.#deps.store.configuration().destinations.get(id)
    if (lake === undefined) throw new ArchiveProblem('destination_not_found', 'The lake with the archive was deleted.')
    return lake
  }

  #judged({ destinationId }: Selection, message: StoredText): ArchivedMessage {
    const configuration = this.#deps.store.configuration()
    const target = configuration.destinations.get(destinationId)
    const found = target === undefined ? 'destination_gone' : this.#judge(configuration, target, message)
    return typeof found === 'string' ? { ...message, text: null, skip: found } : { ...message, text: JSON.stringify(found), skip: null }
  }

  #judge(configuration: Configuration, target: Destination, { sourceId, receivedAtMs, text }: StoredText): JsonObject | ReplaySkipReason {
    // It was sent to the warehouse when it was received.
    if (target.type === 'warehouse' && receivedAtMs >= target.createdAtMs) return 'already_loaded'
    const item = storedItem(text)
    const source = configuration.sources.get(sourceId)
    if (item === null || source === undefined) return 'unreadable'
    const suppressed = configuration.suppressions.get(sourceId)
    const isSuppressed = (): boolean =>
      suppressed !== undefined && (suppressed.has(item['userId'] as string) || suppressed.has(item['previousId'] as string))
    if (isSuppressed()) return 'user_suppressed'
    try {
      this.#deps.privacy.ofStored(source)?.()(item)
    } catch {
      // More values to hash than a request may have.
      return 'unreadable'
    }
    if (isSuppressed()) return 'user_suppressed'
    const { shipments, skips } = this.#deps.route(
      this.#onlyTarget(configuration, target),
      sourceId,
      contentOf(sourceId, receivedAtMs, item),
    )
    if (shipments.length > 0) return item
    const reason = skips[0]?.reason
    return reason === 'integrations_disabled' || reason === 'historical' ? reason : 'filtered'
  }

  /** A disabled destination holds the job up, but decides as it would if it were enabled. */
  #onlyTarget(configuration: Configuration, target: Destination): Configuration {
    if (this.#only?.configuration !== configuration || this.#only.target !== target) {
      const destinations = new Map([[target.id, { ...target, enabled: true }]])
      this.#only = { configuration, target, made: { ...configuration, destinations } }
    }
    return this.#only.made
  }
}

function queryOf({ afterMs, beforeMs, event, userId }: Omit<ArchiveSelection, 'destinationId'>) {
  return { afterMs, beforeMs, ...(event === undefined ? {} : { event }), ...(userId === undefined ? {} : { userId }) }
}

function contentOf(sourceId: string, receivedAtMs: number, item: JsonObject): SegmentContent {
  const none = { ip: null, browser: false, sentAt: null, context: null, integrations: null, trace: null }
  return { sourceId, receivedAtMs, ...none, items: [item] }
}

/** An archive has messages as receivers get them; a segment has them as they were sent. Null if the text is damaged. */
function storedItem(text: string): JsonObject | null {
  let message: JsonObject
  try {
    message = JSON.parse(text) as JsonObject
  } catch {
    return null
  }
  if (typeof message !== 'object' || message === null || typeof message['type'] !== 'string') return null
  const { version: _version, receivedAt: _receivedAt, timestamp, ...rest } = message
  // Without an original time, the time is when it was received, which is not corrected again.
  const item: JsonObject = rest['originalTimestamp'] === undefined ? rest : { ...rest, timestamp }
  if (item['type'] !== 'alias') return item
  const { 'Previous ID': previousId, 'User ID': userId, ...alias } = item
  return { ...alias, previousId, ...(userId === undefined ? {} : { userId }) }
}
