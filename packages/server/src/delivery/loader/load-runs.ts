// Carries out the units of warehouses, in a loader process: loads, deletions of users, tests and previews. A load has an id, which stays the same when it is
// repeated: a table in which it is committed is left as it is, so each message is in each of its tables once. The code that makes rows and writes them is in
// the package @switchyard/warehouse.

import type { JsonObject } from '@switchyard/protocol'
import type { LoadedTable, SourceSchema, Warehouse, WarehouseError, WarehouseSettings } from '@switchyard/warehouse'
import { kindOf } from '../../destinations/kinds.ts'
import type { WarehouseDestination } from '../../destinations/warehouse/settings.ts'
import type { LoadRecord } from '../../store/store.ts'
import { withTimeout } from '../../timing/with-timeout.ts'
import { archiveIn } from '../link/archive-message.ts'
import { copyIn } from '../link/copy-message.ts'
import { loadOf } from '../link/load-progress.ts'
import { failure, type Outcome, type RanMessage, type RanRequest, type ReasonCode, withoutAnswer } from '../link/outcome.ts'
import { upkeepIn } from '../link/upkeep-message.ts'
import { checkIn } from '../link/warehouse-check.ts'
import type { IntegrationRuns, RunWork } from '../sender/integration-runs.ts'
import { runArchive } from './archive-run.ts'
import { runCheck } from './check-run.ts'
import { runCopy } from './copy-run.ts'
import type { Engines } from './engines.ts'
import { StoredSchemas } from './stored-schemas.ts'
import { runUpkeep } from './upkeep-run.ts'

/** The texts of messages that are being loaded at the same time. One load may always run. */
const MAX_BYTES = 48 * 1024 * 1024
/** How long one attempt deletes rows before it continues in the next. */
const DELETION_MS = 180_000
const CLOSE_MS = 500
/** Errors that are about the place, and not about one of its tables. */
const ALL_TABLES = new Set<WarehouseError['code']>(['credentials_refused', 'disk_full', 'read_only', 'timed_out', 'unreachable'])
const MAX_TABLES = 200
const MAX_SHOWN_ROWS = 10

export class LoadRuns implements IntegrationRuns {
  readonly #open: () => Promise<Engines>
  readonly #lakeFolder: string | null
  readonly #schemas: StoredSchemas
  /** By destination, with the settings that it was opened with. */
  readonly #warehouses = new Map<string, { destination: WarehouseDestination; warehouse: Warehouse }>()
  readonly #running = new Map<AbortController, Promise<void>>()
  readonly #waiting: (() => void)[] = []
  #bytes = 0
  #isClosing = false

  constructor(open: () => Promise<Engines>, lakeFolder: string | null, ask: (question: number, about: unknown) => void) {
    this.#open = open
    this.#lakeFolder = lakeFolder
    this.#schemas = new StoredSchemas(ask)
  }

  get inFlight(): number {
    return this.#running.size
  }

  run(destination: WarehouseDestination, work: RunWork, done: (outcome: Outcome) => void): void {
    const abort = new AbortController()
    const startedMs = performance.now()
    const deadline = setTimeout(() => abort.abort(), destination.timeoutMs)
    const end = async (): Promise<void> => {
      const outcome = await this.#carryOut(destination, work, abort.signal).catch((error: unknown) => failed(error, startedMs))
      clearTimeout(deadline)
      this.#running.delete(abort)
      done(this.#isClosing && outcome.verdict === 'temporary' && outcome.ran === undefined ? failure('aborted') : outcome)
    }
    this.#running.set(abort, end())
  }

  answer(question: number, value: unknown, error: string | null): void {
    this.#schemas.receive(question, value, error)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    for (const abort of this.#running.keys()) abort.abort()
    await withTimeout(CLOSE_MS, Promise.allSettled(this.#running.values()))
  }

  async #carryOut(destination: WarehouseDestination, work: RunWork, signal: AbortSignal): Promise<Outcome> {
    const engines = await this.#open()
    if (work.isPreview) return this.#preview(engines, destination, work)
    const text = work.messages[0]?.text
    const check = checkIn(text)
    if (check !== null) {
      const startedMs = performance.now()
      const answer = await runCheck(engines, settingsOf(destination), check, this.#lakeFolder)
      return answered(answer, startedMs)
    }
    const warehouse = await this.#warehouseOf(engines, destination)
    const startedMs = performance.now()
    const upkeep = upkeepIn(text)
    if (upkeep !== null) return answered(await runUpkeep(warehouse, destination, upkeep, this.#schemas, signal), startedMs)
    const archive = archiveIn(text)
    if (archive !== null) return answered(await runArchive(warehouse, archive), startedMs)
    const copy = copyIn(text)
    if (copy !== null) return answered(await runCopy(warehouse, copy, signal), startedMs)
    if (work.keepsRequests) return test(warehouse)
    if (isDeletion(work)) return this.#delete(warehouse, destination, work, signal)
    const bytes = work.messages.reduce((sum, { text }) => sum + text.length, 0)
    await this.#room(bytes)
    try {
      return await this.#load(engines, warehouse, destination, work, signal)
    } finally {
      this.#bytes -= bytes
      this.#waiting.shift()?.()
    }
  }

  /** Waits until there is memory for a load. */
  async #room(bytes: number): Promise<void> {
    while (this.#bytes > 0 && this.#bytes + bytes > MAX_BYTES) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#bytes += bytes
  }

  async #load(
    engines: Engines,
    warehouse: Warehouse,
    { id: destinationId, warehouse: place }: WarehouseDestination,
    { messages, succeeded }: RunWork,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const startedMs = performance.now()
    const { id, sourceId, createdMs } = loadOf(succeeded)
    const of = { destinationId, sourceId }
    const about = await this.#schemas.begin(engines, of, id)
    const { evolved, schema } = await this.#schemas.evolved(engines, of, about, messages, { engine: place.engine, loadedAtMs: createdMs })
    const owner = { installation: about.installation, destinationId, sourceId, adopt: place.adopt }
    // It is not known whether an earlier attempt has begun.
    const load = { id, owner, schema, loadedAtMs: createdMs, repeated: true }
    const result = await warehouse.load(load, evolved.batch, signal)
    const errors = new Map(result.tables.flatMap(({ table, error }) => (error === null ? [] : [[table, error] as const])))
    // What an earlier attempt has committed is counted already.
    const fresh = result.tables.filter(({ error, bytes }) => error === null && bytes > 0)
    const counted = new Set(fresh.map(({ table }) => table))
    await this.#schemas.ask('ended', {
      ...of,
      kind: 'ended',
      loadId: id,
      schema: schema.name,
      loaded: result.tables.filter(({ error }) => error === null).map(({ table }) => table),
      failed: [...errors].filter(([, { code }]) => !ALL_TABLES.has(code)).map(([table, error]) => ({ table, reason: reasonOf(error) })),
      messages: messages.length,
      tables: fresh.map(({ table, rows }) => ({ table, rows })),
      bytes: fresh.reduce((sum, { bytes }) => sum + bytes, 0),
      durationMs: performance.now() - startedMs,
      unfit: [...evolved.unfit, ...result.unfit].filter(({ table }) => counted.has(table)),
      limits: evolved.limits,
      recreated: result.tables.filter(({ recreated }) => recreated).map(({ table }) => table),
    })
    const record = recordOf(id, result.tables, performance.now() - startedMs)
    return outcomeOf(errors, evolved.tablesOf, record, succeeded ?? [], startedMs)
  }

  /** Deletes the rows of users, table by table. The cursor is kept with the delivery. */
  async #delete(
    warehouse: Warehouse,
    { id: destinationId }: WarehouseDestination,
    { messages, succeeded }: RunWork,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const startedMs = performance.now()
    const userIds = messages.map(({ text }) => String((JSON.parse(text) as JsonObject)['userId']))
    const at = succeeded?.[0]?.split(' ') ?? []
    let from = at[0] ?? ''
    let cursor: string | null = at[1] ?? null
    const schemas = await this.#schemas.ask('schemas', { kind: 'schemas', destinationId })
    for (const { sourceId, schema } of schemas.sort((one, other) => (one.sourceId < other.sourceId ? -1 : 1))) {
      if (sourceId < from) continue
      if (sourceId !== from) cursor = null
      do {
        if (signal.aborted || performance.now() - startedMs > DELETION_MS)
          return unfinished(messages.length, `${sourceId} ${cursor ?? ''}`.trim(), startedMs)
        const progress = await warehouse.deleteUsers({ schema, userIds, cursor }, signal)
        cursor = progress.cursor
      } while (cursor !== null)
      from = sourceId
    }
    return withoutAnswer({ verdict: 'success', reason: null, error: null }, performance.now() - startedMs)
  }

  /** The rows that the messages would be. Nothing is stored. */
  async #preview(engines: Engines, destination: WarehouseDestination, { messages }: RunWork): Promise<Outcome> {
    const { id: destinationId, warehouse: place } = destination
    const schema: SourceSchema = { name: 'preview', revision: 0, tables: [] }
    const texts = messages.map(({ text }) => ({ text: received(text) }))
    const { batch } = engines.evolve(schema, texts, { engine: place.engine, loadedAtMs: Date.now() })
    const success = withoutAnswer({ verdict: 'success', reason: null, error: null }, 0)
    const [url = destinationId] = kindOf(destination).targets(destination)
    const requests = batch.tables.map(({ table, columns, rows, messages: positions }): RanRequest => {
      const shown = [...rows]
        .slice(0, MAX_SHOWN_ROWS)
        .map((row) => Object.fromEntries(row.map((cell, at) => [columns[at]?.name ?? '', cell])))
      const sent = {
        headers: { table, columns: columns.map(({ name, type }) => `${name} ${type}`).join(', ') },
        body: JSON.stringify(shown),
      }
      const about = [...new Set(positions)]
      return { positions: about, subscription: table, method: 'LOAD', url, startedAtMs: Date.now(), outcome: success, sent }
    })
    const each = messages.map((): RanMessage => ({ verdict: 'success', reason: null, retryAfterMs: null, succeeded: [] }))
    return { ...success, ran: { messages: each, requests } }
  }

  async #warehouseOf(engines: Engines, destination: WarehouseDestination): Promise<Warehouse> {
    const known = this.#warehouses.get(destination.id)
    if (known?.destination === destination) return known.warehouse
    this.#warehouses.delete(destination.id)
    await known?.warehouse.close()
    const warehouse = engines.createWarehouse(settingsOf(destination), {
      lakeFolder: this.#lakeFolder,
      destinationId: destination.id,
    })
    this.#warehouses.set(destination.id, { destination, warehouse })
    return warehouse
  }
}

/** Settings that are null are left out. */
function settingsOf({ warehouse }: WarehouseDestination): WarehouseSettings {
  const entries = Object.entries(warehouse).filter(([name, value]) => value !== null && name !== 'adopt' && name !== 'keepDays')
  return Object.fromEntries(entries) as unknown as WarehouseSettings
}

function isDeletion({ messages: [first] }: RunWork): boolean {
  return first?.text.includes('"type":"delete"') === true && (JSON.parse(first.text) as JsonObject)['type'] === 'delete'
}

/** What the main thread has asked. */
function answered(answer: object, startedMs: number): Outcome {
  const success = withoutAnswer({ verdict: 'success', reason: null, error: null }, performance.now() - startedMs)
  return { ...success, responseStart: JSON.stringify(answer) }
}

/** A message of a preview was not received. */
function received(text: string): string {
  const message = JSON.parse(text) as JsonObject
  const receivedAt = message['receivedAt'] ?? new Date().toISOString()
  return JSON.stringify({ messageId: 'preview', ...message, receivedAt })
}

async function test(warehouse: Warehouse): Promise<Outcome> {
  const startedMs = performance.now()
  const check = await warehouse.check()
  const totalMs = performance.now() - startedMs
  const { problem } = check
  const responseStart = JSON.stringify(check)
  if (problem === null) return { ...withoutAnswer({ verdict: 'success', reason: null, error: null }, totalMs), responseStart }
  return { ...withoutAnswer({ verdict: 'temporary', reason: reasonOf(problem), error: problem.message }, totalMs), responseStart }
}

function recordOf(id: string, loaded: readonly LoadedTable[], durationMs: number): LoadRecord {
  const committed = loaded.filter(({ error }) => error === null).map(({ table, rows }) => ({ table, rows }))
  return {
    id,
    tables: committed.sort((one, other) => other.rows - one.rows).slice(0, MAX_TABLES),
    rows: committed.reduce((sum, { rows }) => sum + rows, 0),
    bytes: loaded.reduce((sum, { bytes }) => sum + bytes, 0),
    durationMs,
  }
}

/** A message is delivered if all its tables are committed. If some are not, the messages of the others are. */
function outcomeOf(
  errors: ReadonlyMap<string, WarehouseError>,
  tablesOf: readonly (readonly string[])[],
  load: LoadRecord,
  progress: readonly string[],
  startedMs: number,
): Outcome {
  const totalMs = performance.now() - startedMs
  const success = { ...withoutAnswer({ verdict: 'success', reason: null, error: null }, totalMs), load }
  if (errors.size === 0) return success
  const failures = new Map<string, number[]>()
  const delivered: number[] = []
  const messages = tablesOf.map((tables, position): RanMessage => {
    const table = tables.find((each) => errors.has(each))
    if (table === undefined) {
      delivered.push(position)
      return { verdict: 'success', reason: null, retryAfterMs: null, succeeded: progress }
    }
    const positions = failures.get(table)
    if (positions === undefined) failures.set(table, [position])
    else positions.push(position)
    return { verdict: 'temporary', reason: reasonOf(errors.get(table) as WarehouseError), retryAfterMs: null, succeeded: progress }
  })
  const failedOutcome = (table: string): Outcome => {
    const error = errors.get(table) as WarehouseError
    return { ...withoutAnswer({ verdict: 'temporary', reason: reasonOf(error), error: `Table ${table}: ${error.message}` }, totalMs), load }
  }
  const startedAtMs = Date.now() - totalMs
  const request = (positions: number[], outcome: Outcome): RanRequest => {
    return { positions, subscription: null, method: null, url: '', startedAtMs, outcome, sent: null }
  }
  const requests = Array.from(failures, ([table, positions]) => request(positions, failedOutcome(table)))
  if (delivered.length > 0) requests.push(request(delivered, success))
  const [table] = failures.keys()
  const whole = delivered.length > 0 || table === undefined ? success : failedOutcome(table)
  return { ...whole, ran: { messages, requests } }
}

function unfinished(count: number, cursor: string, startedMs: number): Outcome {
  const reason = 'deletion_unfinished'
  const error = 'The rows of the user are being deleted. The next attempt continues.'
  const outcome = withoutAnswer({ verdict: 'temporary', reason, error }, performance.now() - startedMs)
  const messages = Array.from(
    { length: count },
    (): RanMessage => ({ verdict: 'temporary', reason, retryAfterMs: null, succeeded: [cursor] }),
  )
  const positions = messages.map((_, position) => position)
  const request: RanRequest = { positions, subscription: null, method: null, url: '', startedAtMs: Date.now(), outcome, sent: null }
  return { ...outcome, ran: { messages, requests: [request] } }
}

function reasonOf({ code }: WarehouseError): ReasonCode {
  return `warehouse_${code}`
}

function failed(error: unknown, startedMs: number): Outcome {
  const known = (error as { warehouse?: WarehouseError } | null)?.warehouse
  const reason = known === undefined ? 'warehouse_failed' : reasonOf(known)
  const text = known?.message ?? (error instanceof Error ? error.message : String(error))
  return withoutAnswer({ verdict: 'temporary', reason, error: text }, performance.now() - startedMs)
}
