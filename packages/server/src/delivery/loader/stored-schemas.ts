// The schemas of sources, as a loader knows them: asked from the service once, and changed there. If another loader was faster, the newer schema is read and
// the rows are made again, so that a new property has one column and one type.

import type { Evolved, EvolveOptions, LoadMessage, PlannedColumns, SourceSchema } from '@switchyard/warehouse'
import type { LoaderAnswers, LoaderQuestion } from '../link/loader-questions.ts'
import type { Engines } from './engines.ts'

interface OfSource {
  destinationId: string
  sourceId: string
}

interface Known {
  schema: SourceSchema
  plan: string
  planned: PlannedColumns | undefined
}

export interface Begun extends Known {
  installation: string
}

/** So many nodes change one schema at the same time that one of them was never first. */
const MAX_TRIES = 20

export class StoredSchemas {
  readonly #send: (question: number, about: unknown) => void
  readonly #open = new Map<number, { resolve: (value: never) => void; reject: (error: Error) => void }>()
  readonly #known = new Map<string, Known>()
  #last = 0

  constructor(send: (question: number, about: unknown) => void) {
    this.#send = send
  }

  ask<Kind extends LoaderQuestion['kind']>(_kind: Kind, about: Extract<LoaderQuestion, { kind: Kind }>): Promise<LoaderAnswers[Kind]> {
    const question = ++this.#last
    return new Promise((resolve, reject) => {
      this.#open.set(question, { resolve, reject })
      this.#send(question, about)
    })
  }

  receive(question: number, value: unknown, error: string | null): void {
    const waiting = this.#open.get(question)
    this.#open.delete(question)
    if (error === null) waiting?.resolve(value as never)
    else waiting?.reject(new Error(error))
  }

  async begin(
    { schemaName, plannedColumns }: Pick<Engines, 'schemaName' | 'plannedColumns'>,
    of: OfSource,
    loadId: string,
  ): Promise<Begun> {
    const key = `${of.destinationId} ${of.sourceId}`
    const known = this.#known.get(key)
    const answer = await this.ask('begins', {
      ...of,
      kind: 'begins',
      loadId,
      known: known === undefined ? null : { revision: known.schema.revision, plan: known.plan },
    })
    const { installation, sourceName, taken, plan, rules } = answer
    const schema =
      answer.schema === undefined && known !== undefined
        ? known.schema
        : (answer.schema ?? { name: schemaName(sourceName, taken), revision: 0, tables: [] })
    const planned = rules === undefined ? known?.planned : plan === '' ? undefined : plannedColumns({ rules: rules as never })
    const begun = { schema, plan, planned }
    this.#known.set(key, begun)
    return { ...begun, installation }
  }

  /** The rows of messages, and the schema that they fit, which is stored. */
  async evolved(
    engines: Engines,
    of: OfSource,
    begun: Begun,
    messages: readonly LoadMessage[],
    options: Omit<EvolveOptions, 'planned'>,
  ): Promise<{ evolved: Evolved; schema: SourceSchema }> {
    let { schema, planned } = begun
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const evolved = engines.evolve(schema, messages, planned === undefined ? options : { ...options, planned })
      if (!evolved.changed) return { evolved, schema }
      const { name, revision, tables } = evolved.schema
      const before = new Map(schema.tables.map((table) => [table.table, table]))
      const changed = tables.filter((table) => before.get(table.table) !== table)
      const change = { name, revision, tables: changed }
      if (await this.ask('grew', { ...of, kind: 'grew', before: schema.revision, change })) {
        this.#known.set(`${of.destinationId} ${of.sourceId}`, { schema: evolved.schema, plan: begun.plan, planned })
        return { evolved, schema: evolved.schema }
      }
      this.#known.delete(`${of.destinationId} ${of.sourceId}`)
      ;({ schema, planned } = await this.begin(engines, of, ''))
    }
    throw new Error('other loaders have changed the schema again and again; the load is repeated')
  }
}
