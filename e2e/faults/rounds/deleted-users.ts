// Users who are deleted in every round, while their messages fail. They have a source and destinations of their own, so that the audit of the usual
// traffic stays exact. Everything that quotes a message contains the marker of its user: the output and the error of a transformation, the
// response of the receiver, and the dead letter. After the round, no marker may be left, neither in the API nor in the tables, and no dead
// letter may have arrived after the deletion was answered.

import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Receiver, startReceiver } from '../../system/receiver.ts'
import { eventually } from '../../system/signals.ts'
import type { Random } from '../system/random.ts'
import { sendBatch } from '../system/send-batch.ts'
import type { System } from '../system/system.ts'

const MESSAGES = 8
const MARKER = 'marker-of-deleted-user'
/** A request that was in flight when the deletion was answered can arrive a moment later; a frozen node sends it when it continues. */
const IN_FLIGHT_MS = 20_000
const AGAIN_MS = 250
const LETTER_MS = 15_000
const SHOWN = 5
const RETRY = { initialMs: 100, maxMs: 1_000 }

const TRANSFORMATION = `export default (message) => {
  const { marker, fails } = message.properties ?? {}
  console.log(marker)
  if (fails) throw new Error('cannot send ' + marker)
  return message
}`

const usersOf = new WeakMap<System, DeletedUsers>()

/** `random` is not shared with the round, so that the seed of a round causes the same faults as before. */
export async function startDeletedUsers(system: System, random: Random): Promise<DeletedUsers> {
  const users = await DeletedUsers.start(system, random)
  usersOf.set(system, users)
  return users
}

/** For rows that delete more users. */
export function deletedUsersOf(system: System): DeletedUsers {
  return usersOf.get(system) as DeletedUsers
}

interface Deletion {
  id: string
  marker: string
  /** performance.now() when the request was answered. */
  answeredMs: number
}

class DeletedUsers {
  readonly #system: System
  readonly #random: Random
  readonly #source: { id: string; writeKeys: string[] }
  readonly #destinationIds: readonly string[]
  /** When dead letters of each marker arrived, in performance.now(). */
  readonly #arrivedMs: Map<string, number>
  readonly #running = new Set<Promise<void>>()
  readonly #deletions: Deletion[] = []
  #last = 0
  #problems: string[] = []

  private constructor(
    system: System,
    random: Random,
    source: { id: string; writeKeys: string[] },
    destinationIds: readonly string[],
    arrivedMs: Map<string, number>,
  ) {
    this.#system = system
    this.#random = random
    this.#source = source
    this.#destinationIds = destinationIds
    this.#arrivedMs = arrivedMs
  }

  static async start(system: System, random: Random): Promise<DeletedUsers> {
    const create = <T>(path: string, body: object): Promise<T> => untilAnswered(() => system.api<T>(path, { method: 'POST', body }))
    const source = await create<{ id: string; writeKeys: string[] }>('/sources', { name: 'deleted users' })
    const arrivedMs = new Map<string, number>()
    const letters = await startReceiver(({ bytes, atMs }) => {
      for (const [marker] of bytes.toString().matchAll(new RegExp(`${MARKER}-\\d+-`, 'g'))) arrivedMs.set(marker, atMs)
      return undefined
    })
    // Its response quotes the request.
    const refusing: Receiver = await startReceiver(({ messages: [message], bytes }) =>
      message?.type === 'delete' ? undefined : { status: random.chance(0.3) ? 503 : 410, body: bytes, after: sleep(random.int(0, 30)) },
    )
    for (const receiver of [letters, refusing]) system.defer(async () => await receiver[Symbol.asyncDispose]())
    const { id: deadLetter } = await create<{ id: string }>('/destinations', {
      name: 'dead letters of deleted users',
      sourceIds: [],
      urls: [letters.url],
      retry: RETRY,
    })
    const { id } = await create<{ id: string }>('/destinations', {
      name: 'quoting deleted users',
      sourceIds: [source.id],
      urls: [refusing.url],
      retry: RETRY,
      transformation: { code: TRANSFORMATION },
      deadLetter,
    })
    return new DeletedUsers(system, random, source, [deadLetter, id], arrivedMs)
  }

  /** Sends messages of a new user, and deletes the user at a random moment while they fail. */
  delete(): Promise<void> {
    const running: Promise<void> = this.#delete().catch(
      (error: Error) => void this.#problems.push(`a user was not deleted: ${error.message}`),
    )
    this.#running.add(running)
    return running
  }

  async #delete(): Promise<void> {
    const system = this.#system
    const nth = ++this.#last
    const userId = `deleted-user-${nth}`
    const marker = `${MARKER}-${nth}-`
    const batch = Array.from({ length: MESSAGES }, (_, at) => ({
      type: 'track',
      event: 'Quoted',
      messageId: `${userId}-${at}`,
      userId,
      properties: { marker, fails: at % 2 === 0 },
    }))
    const waitMs = this.#random.int(0, 150)
    const turn = this.#random.int(0, 100)
    await untilAnswered(async () => {
      const nodes = system.urls()
      const status = await sendBatch(nodes[turn % nodes.length] as string, this.#source.writeKeys[0] as string, batch)
      if (status !== 200) throw new Error(`the messages of ${userId} were answered with ${status}`)
    })
    // While the first attempts are being made or recorded, or when outcomes are stored already.
    if (nth % 2 === 0) await sleep(waitMs)
    else await this.#letterArrived(marker)
    const body = { userIds: [userId], sourceIds: [this.#source.id], suppress: false }
    // If the answer was lost, the user is deleted twice.
    const { id } = await untilAnswered(() => system.api<{ id: string }>('/deletions', { method: 'POST', body }))
    this.#deletions.push({ id, marker, answeredMs: performance.now() })
  }

  /** Waits for a dead letter of the user, for some seconds at most. */
  async #letterArrived(marker: string): Promise<void> {
    const hasArrived = async (): Promise<boolean> => this.#arrivedMs.has(marker)
    await eventually(hasArrived, (isSo) => isSo, { deadlineMs: LETTER_MS }).catch(() => {})
  }

  /** Resolves when all deletions are finished and nothing is pending. Returns problems. */
  async finish(deadlineMs: number): Promise<string[]> {
    await Promise.all(this.#running)
    const system = this.#system
    const problems = [...this.#problems]
    const late = (error: Error): void => void problems.push(error.message)
    for (const { id } of this.#deletions)
      await eventually(
        () => untilAnswered(() => system.api<{ state: string }>(`/deletions/${id}`)),
        ({ state }) => state === 'finished',
        { what: `deletion ${id} is finished`, deadlineMs },
      ).catch(late)
    await eventually(
      () => untilAnswered(() => system.api<{ data: { destinationId: string; pending: number }[] }>('/ledger')),
      ({ data }) => data.every(({ destinationId, pending }) => pending === 0 || !this.#destinationIds.includes(destinationId)),
      { what: 'nothing of the deleted users is pending', deadlineMs },
    ).catch(late)
    for (const { marker, answeredMs } of this.#deletions) {
      const atMs = this.#arrivedMs.get(marker)
      if (atMs !== undefined && atMs > answeredMs + IN_FLIGHT_MS)
        problems.push(`a dead letter of a deleted user arrived ${Math.round(atMs - answeredMs)} ms after the deletion was answered`)
    }
    return [...problems, ...(await this.#inApi()), ...(await this.#inTables())]
  }

  async #inApi(): Promise<string[]> {
    const system = this.#system
    const problems: string[] = []
    const look = async (path: string): Promise<{ data?: { id: string }[] }> => {
      const answer = await system.api<{ data?: { id: string }[] }>(path)
      const [text] = textsWith(JSON.stringify(answer))
      if (text !== undefined) problems.push(`GET ${path} shows data of a deleted user: ${text}`)
      return answer
    }
    await look(`/messages?limit=1000&sourceId=${this.#source.id}`)
    for (const destinationId of this.#destinationIds) {
      const { data = [] } = await look(`/deliveries?limit=1000&destinationId=${destinationId}`)
      for (const { id } of data) if (problems.length < SHOWN) await look(`/deliveries/${id}`)
    }
    return problems.slice(0, SHOWN)
  }

  async #inTables(): Promise<string[]> {
    const { cluster, nodes } = this.#system
    const found = cluster === undefined ? inSqlite(nodes[0]?.service.file as string) : await inPostgres(cluster)
    return found.map((table) => `the table ${table} has data of a deleted user`)
  }
}

function textsWith(text: string): string[] {
  return [...text.matchAll(new RegExp(`.{0,60}${MARKER}.{0,20}`, 'g'))].map(([found]) => found)
}

function inSqlite(file: string): string[] {
  const database = new DatabaseSync(file, { readOnly: true })
  try {
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all() as { name: string }[]
    return tables.flatMap(({ name }) => {
      const columns = database.prepare(`SELECT name FROM pragma_table_info('${name}')`).all() as { name: string }[]
      const where = columns.map((column) => `instr(CAST("${column.name}" AS BLOB), CAST('${MARKER}' AS BLOB)) > 0`).join(' OR ')
      return database.prepare(`SELECT 1 FROM "${name}" WHERE ${where} LIMIT 1`).get() === undefined ? [] : [name]
    })
  } finally {
    database.close()
  }
}

/** A bytea is shown in hexadecimal. */
async function inPostgres(cluster: NonNullable<System['cluster']>): Promise<string[]> {
  const tables = await cluster.query<{ name: string }>(
    "SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'switchyard' AND c.relkind IN ('r', 'p') AND NOT c.relispartition",
  )
  const found: string[] = []
  for (const { name } of tables) {
    const rows = await cluster.query(
      `SELECT 1 AS one FROM switchyard.${name} t WHERE strpos(t::text, $1) > 0 OR strpos(t::text, $2) > 0 LIMIT 1`,
      [MARKER, Buffer.from(MARKER).toString('hex')],
    )
    if (rows.length > 0) found.push(name)
  }
  return found
}

/** A node may be down, or its database. */
async function untilAnswered<T>(ask: () => Promise<T>): Promise<T> {
  const lastMs = performance.now() + 120_000
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      if (performance.now() > lastMs) throw error
      await sleep(AGAIN_MS)
    }
  }
}
