// Moves a SQLite installation to PostgreSQL: every row, in pages, each written in one transaction with how far it has come. Both
// ends know of the move from its first moment: no service starts on the file, and no node on the database, until it is
// over. Killed anywhere, the same call goes on, or begins anew where the file was given back meanwhile. At its end both are compared.

import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecretBox } from '../secrets/secret-box.ts'
import { Arriving } from '../store/postgres/schema/arriving.ts'
import type { MovingState } from '../store/postgres/schema/moving-state.ts'
import { AGEING, LEAVING_TABLES, Leaving, type LeavingRow, type LeavingTable, type Place } from '../store/sqlite/schema/leaving.ts'
import { type Compared, compareStores } from './compare-stores.ts'
import { createSecretsOnTheWay, type SecretsOnTheWay } from './secrets-on-the-way.ts'
import { createTranslation, messageKeys, type Translate } from './translate-rows.ts'

/** What a person can mend. */
export class MoveProblem extends Error {
  override name = 'MoveProblem'
}

export interface MoveOptions {
  /** Of the SQLite file. */
  path: string
  /** Of the database. */
  url: string
  /** That the file's secrets may be sealed with. */
  oldKeys: readonly string[]
  /** That the nodes have. */
  newKey: string
  /** Leaves the file as it was, so that a service can be started on it. */
  keepUsable?: boolean
  /** Looks at both, and changes neither. */
  dryRun?: boolean
  onProgress?: (done: number, total: number, table: string) => void
  signal?: AbortSignal
  /** For tests. */
  pageRows?: number
  /** For tests: called at each place where the process may end. */
  onStep?: (step: string) => void
}

export interface Moved {
  /** Rows that are there now, or would be. */
  rows: number
  /** Of these, those that an earlier call had moved. */
  before: number
  counts: Record<LeavingTable, number>
  messages: number
  destinations: number
  to: string
  movedMs: number
  /** The file was moved by an earlier call, to its end. */
  already: boolean
}

const PAGE_ROWS = 4_000
const PAGE_BYTES = 4 * 1024 * 1024
/** Rows must not be named later than those that come after them: see SKEW in ids.ts. */
const AHEAD_MS = 30_000

export async function moveStore(options: MoveOptions): Promise<Moved> {
  const leaving = openFile(options.path)
  try {
    return await new Move(leaving, options).run()
  } finally {
    leaving.close()
  }
}

/** Takes the mark of a move away: services start on the file again. False when there was none. */
export function undoMove(path: string): boolean {
  const leaving = openFile(path)
  try {
    const { mark } = leaving
    leaving.setMark(null)
    return mark !== undefined
  } finally {
    leaving.close()
  }
}

function openFile(path: string): Leaving {
  if (!existsSync(path)) throw new MoveProblem(`There is no store at ${path}.`)
  return Leaving.open(path)
}

class Move {
  readonly #leaving: Leaving
  readonly #options: MoveOptions
  readonly #secrets: SecretsOnTheWay
  readonly #translate: Record<LeavingTable, Translate>
  readonly #installation: string
  readonly #total: number

  constructor(leaving: Leaving, options: MoveOptions) {
    this.#leaving = leaving
    this.#options = options
    this.#secrets = createSecretsOnTheWay(options.oldKeys, options.newKey)
    const seed = leaving.setting('dedup_seed')
    if (seed === undefined) throw new MoveProblem(`No service has ever run on ${options.path}: there is nothing to move.`)
    this.#installation = createHash('sha256').update(seed).digest('hex').slice(0, 16)
    this.#translate = createTranslation({
      secrets: this.#secrets,
      bodyBytes: (segment) => leaving.bodyBytes(segment),
      deletions: this.#all('deletions') as { num: number; created_at: number }[],
      replayJobs: this.#all('replay_jobs') as { num: number; created_at: number }[],
    })
    // Whatever cannot be opened is told before anything is moved.
    for (const row of this.#all('destinations')) this.#translate.destinations(row)
    this.#total = LEAVING_TABLES.reduce((sum, table) => sum + leaving.count(table), 0) - this.#staying
  }

  /** Settings that are not moved. The mark of the move comes to be one of them. */
  get #staying(): number {
    return this.#all('settings').filter((row) => this.#translate.settings(row) === undefined).length
  }

  /** Of a table that is small. */
  #all(table: LeavingTable): LeavingRow[] {
    return this.#leaving.page(table, null, { rows: -1, bytes: Number.POSITIVE_INFINITY })
  }

  async run(): Promise<Moved> {
    const { url, dryRun = false, keepUsable = false } = this.#options
    const started = performance.now()
    const arriving = await Arriving.open(url, { secretBox: createSecretBox(this.#options.newKey), onlyLook: dryRun })
    try {
      if (dryRun) return await this.#look(arriving)
      const there = arriving as Arriving
      const before = await this.#begin(there)
      const state = before.isOver ? before : await this.#moveAll(there, before)
      const compared = before.isOver ? null : await this.#end(there, state)
      this.#step('ended')
      this.#leaving.setMark(keepUsable ? null : { id: state.id, to: there.place, atMs: Date.now(), isOver: true })
      return this.#told(there.place, compared, {
        rows: state.rows,
        before: before.rows,
        already: before.isOver,
        movedMs: performance.now() - started,
      })
    } finally {
      arriving?.close()
    }
  }

  async #look(arriving: Arriving | undefined): Promise<Moved> {
    const { mark } = this.#leaving
    const state = await arriving?.state()
    this.#refuse(arriving?.place ?? '', state)
    const obstacle = state === undefined ? await arriving?.obstacle() : undefined
    if (obstacle !== undefined) throw new MoveProblem(obstacle)
    await this.#refuseClock(arriving)
    const done = state !== undefined && mark?.id === state.id ? state.rows : 0
    return this.#told(arriving?.place ?? '', null, { rows: this.#total, before: done, already: state?.isOver ?? false, movedMs: 0 })
  }

  /** Where it goes on from. */
  async #begin(arriving: Arriving): Promise<MovingState> {
    const { mark } = this.#leaving
    const found = await arriving.state()
    this.#refuse(arriving.place, found)
    // The file is as it was, and what is there already is sealed with the same key.
    if (found !== undefined && found.id === mark?.id && found.keyId === this.#secrets.keyId) return found
    if (found?.isOver) throw new MoveProblem('This installation was moved there, with another secret key than the one given now.')
    const obstacle = found === undefined ? await arriving.obstacle() : undefined
    if (obstacle !== undefined) throw new MoveProblem(obstacle)
    await this.#refuseClock(arriving)
    const id = randomBytes(9).toString('base64url')
    const from = resolve(this.#options.path)
    const { keyId } = this.#secrets
    const state: MovingState = {
      id,
      installation: this.#installation,
      from,
      keyId,
      done: [],
      table: null,
      after: null,
      rows: 0,
      isOver: false,
    }
    this.#leaving.setMark({ id, to: arriving.place, atMs: Date.now(), isOver: false })
    this.#step('marked')
    try {
      await arriving.begin(state, found ?? null)
    } catch (error) {
      this.#leaving.setMark(null)
      throw error
    }
    this.#step('begun')
    return state
  }

  #refuse(place: string, found: MovingState | undefined): void {
    const { mark } = this.#leaving
    const { path } = this.#options
    const undo = `switchyard migrate-store --from sqlite:${path} --undo`
    if (found !== undefined && found.installation !== this.#installation)
      throw new MoveProblem(
        `The database ${found.isOver ? 'holds' : 'is being given'} the rows of another file, ${found.from}. Give an empty one.`,
      )
    if (found?.isOver && found.id !== mark?.id)
      throw new MoveProblem(
        `This installation was moved into that database before. To move it once more, give an empty database, or drop the schema there first: DROP SCHEMA switchyard CASCADE;`,
      )
    if (found?.id === mark?.id || mark === undefined) return
    if (mark.isOver)
      throw new MoveProblem(
        `${path} was moved to ${mark.to} at ${new Date(mark.atMs).toISOString()}. If what is there is of no use, take the mark away first: ${undo}`,
      )
    if (mark.to !== place && place !== '')
      throw new MoveProblem(`${path} is being moved to ${mark.to}. Go on with that, or give it up first: ${undo}`)
  }

  async #refuseClock(arriving: Arriving | undefined): Promise<void> {
    const aheadMs = (await arriving?.behindMs(this.#leaving.newestMs())) ?? 0
    if (aheadMs <= AHEAD_MS) return
    throw new MoveProblem(
      `The newest row of the file is ${Math.ceil(aheadMs / 1_000)} s ahead of PostgreSQL's clock. Set the clocks right, or wait until that time is over.`,
    )
  }

  async #moveAll(arriving: Arriving, from: MovingState): Promise<MovingState> {
    for (const table of Object.keys(AGEING) as (keyof typeof AGEING)[]) await arriving.partition(table, this.#leaving.days(table))
    await arriving.partition('message_keys', this.#leaving.days('segments'))
    let state = from
    for (const table of LEAVING_TABLES) {
      if (state.done.includes(table)) continue
      state = await this.#moveTable(arriving, table, state)
      const next: MovingState = { ...state, done: [...state.done, table], table: null, after: null }
      await arriving.step(next, state)
      state = next
    }
    return state
  }

  async #moveTable(arriving: Arriving, table: LeavingTable, from: MovingState): Promise<MovingState> {
    const limits = { rows: this.#options.pageRows ?? PAGE_ROWS, bytes: PAGE_BYTES }
    let state = from
    let page = this.#leaving.page(table, state.after, limits)
    while (page.length > 0) {
      if (this.#options.signal?.aborted) throw new MoveProblem('Interrupted. The same call goes on from here.')
      const rows = page.map((row) => this.#translate[table](row)).filter((row) => row !== undefined)
      const keys = table === 'segments' ? page.flatMap(messageKeys) : []
      const after: Place = this.#leaving.placeOf(table, page.at(-1) as LeavingRow)
      const next: MovingState = { ...state, table, after, rows: state.rows + rows.length }
      this.#step(`${table} read`)
      const writing = arriving.write(table, rows, keys, next, state)
      // Read while the server writes.
      const following = this.#following(writing, table, after, limits)
      await writing
      this.#step(`${table} written`)
      state = next
      page = following()
      this.#options.onProgress?.(state.rows, this.#total, table)
    }
    return state
  }

  /** What reading throws is told after the writing is over, and not in the middle of it. */
  #following(writing: Promise<void>, ...[table, after, limits]: Parameters<Leaving['page']>): () => LeavingRow[] {
    // Told where it is awaited.
    writing.catch(() => {})
    try {
      const page = this.#leaving.page(table, after, limits)
      return () => page
    } catch (error) {
      return () => {
        throw error
      }
    }
  }

  async #end(arriving: Arriving, state: MovingState): Promise<Compared> {
    const compared = await compareStores(this.#leaving, arriving, this.#staying)
    if (compared.problems.length > 0)
      throw new MoveProblem(`What arrived is not what was sent, so no node will start on it: ${compared.problems.join('; ')}.`)
    this.#step('compared')
    await arriving.end({ ...state, isOver: true }, state, this.#secrets.keyId)
    return compared
  }

  #told(to: string, compared: Compared | null, facts: Pick<Moved, 'rows' | 'before' | 'already' | 'movedMs'>): Moved {
    const counts =
      compared?.counts ?? (Object.fromEntries(LEAVING_TABLES.map((table) => [table, this.#leaving.count(table)])) as Compared['counts'])
    if (compared === null) counts.settings -= this.#staying
    return {
      ...facts,
      to,
      counts,
      messages: this.#leaving.messages(),
      destinations: compared?.destinations ?? this.#leaving.ledger().length,
    }
  }

  #step(step: string): void {
    this.#options.onStep?.(step)
  }
}
