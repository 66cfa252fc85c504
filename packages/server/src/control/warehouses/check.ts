// Tests the settings of a warehouse that is not created yet, and shows the tables that the newest messages of its sources would make. Whoever may create the
// destination may test it, and both accept the same settings. Nothing is stored, except the entry in the audit log.

import { pathToFileURL } from 'node:url'
import { array, boolean, type Infer, integer, invalidField, nullable, object, string } from '../../api/schema.ts'
import { retryOf } from '../../destinations/settings/retry-settings.ts'
import { hiddenPlace } from '../../destinations/warehouse/place.ts'
import { outboundMessage } from '../../outbound/outbound-message.ts'
import { CLASSIC, type Configuration, type Destination, type SegmentContent, type Store, type StoredMessage } from '../../store/store.ts'
import { NEW_DESTINATION } from '../destinations/destination-settings.ts'
import { assertInstalled } from '../destinations/destinations.ts'
import { checkedSettings } from '../destinations/patched-settings.ts'
import { SAMPLE_TYPES, sampleContent } from '../destinations/sample-message.ts'
import { recordAction } from '../routes/audit-entries.ts'
import { type ControlParts, type Route, route } from '../routes/route.ts'
import { checkSources } from '../sources/sources.ts'

const MESSAGES_OF_SOURCE = 100
const MAX_SOURCES = 10
/** The loader parses all of them at once. */
const MAX_BYTES = 2 * 1024 * 1024

const ANSWER = object(
  {
    problem: nullable(
      object(
        {
          code: string({ description: 'Such as `credentials_refused`, `permission_missing`, `unreachable`, `not_found` or `read_only`.' }),
          message: string({ description: 'A sentence that says what is missing.' }),
        },
        { description: 'Why the warehouse cannot be written; null if the test has passed.' },
      ),
    ),
    steps: array(object({ step: string(), ok: boolean(), error: nullable(string()) }), {
      description: 'What was tried, in order. The test creates and drops a table `_switchyard_test`.',
    }),
    version: nullable(string({ description: 'What the database says about itself, such as `PostgreSQL 17.2`.' })),
    messages: integer({ description: 'How many stored messages the tables are made from; 0 if they are made from sample messages.' }),
    tables: array(
      object({
        sourceId: nullable(string()),
        schema: string({ description: 'The schema, or the folder, of the tables of the source. An existing name gets a number.' }),
        table: string(),
        rows: integer(),
        columnCount: integer({ description: 'The number of columns; `columns` may have fewer, because the answer is limited.' }),
        columns: array(
          object({
            name: string(),
            type: string(),
            path: string({ description: 'Where the values are in a message.' }),
            example: nullable(string({ description: 'The first value, shortened.' })),
          }),
        ),
        unfit: integer({ description: 'How many values do not fit their column. They are kept in `_unfit`.' }),
      }),
      { description: 'The tables that these messages would make. The first load decides: a column gets the type of its first value.' },
    ),
  },
  { title: 'WarehouseCheck' },
)

export function warehouseCheckRoutes(parts: ControlParts): Route[] {
  const { store, clock, delivery, checkUrl = () => null, lakeFolder = null } = parts
  return [
    route('GET', '/warehouse/folder', {
      summary: 'Show where lakes in folders can be',
      access: { role: 'editor', sources: 'none' },
      answer: object({
        url: nullable(
          string({ description: 'The folder below which they must be; null if `SWITCHYARD_LAKE_DIR` is not set, and must be.' }),
        ),
      }),
      handle: () => ({ url: lakeFolder === null ? null : pathToFileURL(lakeFolder).href }),
    }),
    route('POST', '/warehouse/check', {
      summary: 'Test the settings of a warehouse before it is created',
      description:
        'The body is that of a new destination. Connects through the address check, creates and drops a table `_switchyard_test`, and returns the tables that the newest messages of its sources would make. The destination is not created.',
      access: { role: 'editor', sources: 'limited' },
      body: NEW_DESTINATION,
      answer: ANSWER,
      errors: ['not_installed', 'too_many_previews'],
      async handle({ body, actor }) {
        if (body.type !== 'warehouse') throw invalidField('type', 'must be warehouse')
        assertInstalled(parts, body.type)
        const configuration = store.configuration()
        const settings = checkedSettings(body.type, body, undefined, { checkUrl, definition: null })
        checkSources(configuration, body.sourceIds)
        const destination = { ...CLASSIC, ...settings, ...retryOf(body), id: 'check', createdAtMs: 0 } as Destination
        if (destination.type !== 'warehouse') throw new Error(`${destination.type} is no warehouse`)
        const { warehouse, sourceIds } = destination
        // Recorded before anything is dialled.
        const after = { warehouse: hiddenPlace(warehouse) }
        await recordAction(store.history, { actor, action: 'warehouse.check', subject: 'warehouse', after, sources: sourceIds })
        const stored = await storedMessages(store, configuration, sourceIds.slice(0, MAX_SOURCES))
        const messages = stored.reduce((sum, each) => sum + each.messages.length, 0)
        const sources = messages > 0 ? stored : [sampleSource(configuration, sourceIds, clock.wallMs())]
        const check = await delivery.checkWarehouse(destination, { sources })
        return shown(check, messages, new Set(configuration.sources.keys()))
      },
    }),
  ]
}

type Checked = Awaited<ReturnType<ControlParts['delivery']['checkWarehouse']>>

function shown({ problem, steps, version, tables }: Checked, messages: number, known: ReadonlySet<string>): Infer<typeof ANSWER> {
  const shownTables = tables.map(({ sourceId, ...table }) => ({ sourceId: known.has(sourceId) ? sourceId : null, ...table }))
  return { problem, steps, version, messages, tables: shownTables }
}

async function storedMessages({ history }: Store, { sources, plans }: Configuration, sourceIds: readonly string[]) {
  const found = []
  let bytesLeft = MAX_BYTES
  for (const sourceId of sourceIds) {
    const { data } = await history.messages({ sourceId }, { limit: MESSAGES_OF_SOURCE, cursor: null })
    const messages: string[] = []
    // The newest come first, and the oldest are loaded first.
    for (let at = data.length - 1; at >= 0; at--) {
      const { content, index } = data[at] as StoredMessage
      if (content.items[index] == null) continue
      const text = textOf(content, index)
      bytesLeft -= text.length
      if (bytesLeft > 0) messages.push(text)
    }
    const plan = [...plans.values()].find((each) => each.sourceIds.includes(sourceId))
    found.push({ sourceId, name: sources.get(sourceId)?.name ?? sourceId, rules: plan?.rules ?? null, messages })
  }
  return found
}

/** Shows the layout before the first message. */
function sampleSource({ sources }: Configuration, [sourceId = '']: readonly string[], nowMs: number) {
  const messages = SAMPLE_TYPES.map((type) => textOf(sampleContent(nowMs, type), 0))
  return { sourceId, name: sources.get(sourceId)?.name ?? 'source', rules: null, messages }
}

function textOf(content: SegmentContent, index: number): string {
  return JSON.stringify(outboundMessage(content, index))
}
