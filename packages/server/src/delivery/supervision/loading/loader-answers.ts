// Answers what loaders ask: the schemas of sources, which are stored here, and what became of loads.

import type { SourceSchema } from '@switchyard/warehouse'
import {
  addStats,
  closeLoad,
  noteLoad,
  noteTables,
  openLoad,
  openLoads,
  readSchema,
  readSchemas,
  schemaNames,
  storeSchema,
} from '../../../store/port/warehouse-tables.ts'
import type { Store } from '../../../store/store.ts'
import type { LoadBegins, LoadContext, LoadEnded, LoaderQuestion } from '../../link/loader-questions.ts'

export interface LoaderAnswersOptions {
  store: Pick<Store, 'documents' | 'configuration' | 'secrets'>
  nowMs: () => number
  newInstallation: () => string
  /** Called when a load is over. */
  onLoad?: (ended: LoadEnded) => void
}

export class LoaderAnswering {
  readonly #options: LoaderAnswersOptions
  #installation: Promise<string> | null = null

  constructor(options: LoaderAnswersOptions) {
    this.#options = options
  }

  async answer(about: unknown): Promise<unknown> {
    const { store, nowMs, onLoad } = this.#options
    const { documents } = store
    const question = about as LoaderQuestion
    if (question.kind === 'begins') return this.#begins(question)
    // Of a destination that was deleted nothing is stored any more.
    const isKnown = store.configuration().destinations.has(question.destinationId)
    if (question.kind === 'grew') return isKnown ? storeSchema(documents, question, question.before, question.change, nowMs()) : true
    if (question.kind === 'schemas') return readSchemas(documents, question.destinationId)
    if (question.kind === 'open') return openLoads(documents, question.destinationId)
    const { tables, unfit } = question
    if (!isKnown) return null
    if (tables.length > 0) await addStats(documents, question, tables, unfit, nowMs())
    await noteTables(documents, question, nowMs())
    const { loadId: id, sourceId, messages, bytes, durationMs, failed } = question
    const rows = tables.reduce((sum, each) => sum + each.rows, 0)
    const load = {
      id,
      sourceId,
      atMs: nowMs(),
      messages,
      tables: tables.length,
      rows,
      bytes,
      durationMs: Math.round(durationMs),
      failed: failed.map(({ table }) => table),
    }
    if (tables.length + failed.length > 0) await noteLoad(documents, question.destinationId, load)
    onLoad?.(question)
    return null
  }

  /** The outcome of loads is recorded: they are not repeated, so their files may be merged. */
  async settled(destinationId: string, loads: readonly string[]): Promise<void> {
    for (const load of loads) await closeLoad(this.#options.store.documents, destinationId, load)
  }

  async #begins({ destinationId, sourceId, loadId, known }: LoadBegins): Promise<LoadContext> {
    const { store, nowMs } = this.#options
    const { documents } = store
    const { sources, plans } = store.configuration()
    if (loadId !== null && loadId !== '' && store.configuration().destinations.has(destinationId))
      await openLoad(documents, destinationId, loadId, nowMs())
    const stored = await this.#schemaUnless(known?.revision ?? null, destinationId, sourceId)
    const plan = [...plans.values()].find(({ sourceIds }) => sourceIds.includes(sourceId))
    const version = plan === undefined ? '' : `${plan.id} ${plan.version}`
    return {
      installation: await this.#installationId(),
      sourceName: sources.get(sourceId)?.name ?? sourceId,
      schema: stored,
      taken: stored === null ? await schemaNames(documents, destinationId) : [],
      plan: version,
      rules: known?.plan === version ? undefined : (plan?.rules ?? []),
    }
  }

  /** Undefined if the loader has the newest revision, so that a large schema is not sent with every load. */
  async #schemaUnless(revision: number | null, destinationId: string, sourceId: string): Promise<SourceSchema | null | undefined> {
    const schema = await readSchema(this.#options.store.documents, destinationId, sourceId, revision)
    return schema === 'same' ? undefined : (schema ?? null)
  }

  #installationId(): Promise<string> {
    const { store, newInstallation } = this.#options
    this.#installation ??= store.secrets.getOrCreate('warehouse_installation', newInstallation())
    this.#installation.catch(() => {
      this.#installation = null
    })
    return this.#installation
  }
}
