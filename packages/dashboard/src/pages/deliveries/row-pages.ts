// A list of any length by pages, of which only those near what is looked at stay in memory. Of a page that was dropped, its cursor and
// how many rows it had are left: so every row keeps its place, and the page is asked for again when somebody scrolls back to it.

export interface RowPage<Row> {
  data: Row[]
  next: string | null
}

interface Held<Row> {
  /** What it is asked for with. */
  cursor: string | null
  count: number
  /** Null: not in memory. */
  rows: Row[] | null
}

export interface RowPagesOptions<Row> {
  load: (cursor: string | null, signal: AbortSignal) => Promise<RowPage<Row>>
  /** Pages kept on both sides of those that are looked at. */
  keep?: number
  /** Rows before the end at which the next page is asked for. */
  ahead?: number
  /** Pages without a row that are passed before the list waits to be told to go on: a filter may find nothing for long. */
  patience?: number
}

export class RowPages<Row> {
  readonly #load: RowPagesOptions<Row>['load']
  readonly #keep: number
  readonly #ahead: number
  readonly #patience: number
  readonly #stop = new AbortController()
  readonly #listeners = new Set<() => void>()
  readonly #asked = new Set<Held<Row>>()
  #pages: Held<Row>[] = []
  #count = 0
  #next: string | null = null
  #isBegun = false
  #isEnd = false
  #isLoading = false
  #empties = 0
  #problem: Error | null = null
  #view: readonly [first: number, last: number] = [0, 0]
  /** Of the answers that are waited for: an older one's are no longer wanted. */
  #life = 0
  #version = 0

  constructor({ load, keep = 3, ahead = 100, patience = 10 }: RowPagesOptions<Row>) {
    this.#load = load
    this.#keep = keep
    this.#ahead = ahead
    this.#patience = patience
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Another number whenever something changed. */
  readonly version = (): number => this.#version

  /** Rows known so far. */
  get count(): number {
    return this.#count
  }

  get isBegun(): boolean {
    return this.#isBegun
  }

  get isEnd(): boolean {
    return this.#isEnd
  }

  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Much was looked through for nothing: go on is to be asked for. */
  get isWaiting(): boolean {
    return this.#empties >= this.#patience && !this.#isEnd
  }

  get problem(): Error | null {
    return this.#problem
  }

  /** Rows in memory, for tests. */
  get held(): number {
    return this.#pages.reduce((sum, { rows }) => sum + (rows?.length ?? 0), 0)
  }

  /** Undefined while its page is not in memory. */
  rowAt(index: number): Row | undefined {
    const at = this.#pageOf(index)
    return at === undefined ? undefined : this.#pages[at.page]?.rows?.[at.place]
  }

  /** What is in memory of some rows. */
  rowsBetween(first: number, last: number): Row[] {
    const found: Row[] = []
    for (let index = Math.max(0, first); index <= Math.min(last, this.#count - 1); index++) {
      const row = this.rowAt(index)
      if (row !== undefined) found.push(row)
    }
    return found
  }

  /** Tells what is looked at: what is near is asked for, what is far is dropped. */
  show(first: number, last: number): void {
    this.#view = [first, last]
    this.#tend()
  }

  goOn(): void {
    this.#empties = 0
    this.#problem = null
    this.#tend()
  }

  /** From the first page, which takes the place of everything when it is there. */
  async refresh(): Promise<void> {
    const life = ++this.#life
    this.#asked.clear()
    this.#isLoading = true
    try {
      const page = await this.#load(null, this.#stop.signal)
      if (life !== this.#life) return
      this.#pages = page.data.length === 0 ? [] : [{ cursor: null, count: page.data.length, rows: page.data }]
      this.#count = page.data.length
      this.#empties = page.data.length === 0 ? 1 : 0
      this.#goOnFrom(page.next)
      this.#problem = null
    } catch (error) {
      if (life !== this.#life) return
      this.#problem = error as Error
    }
    this.#isLoading = false
    this.#tell()
    this.#tend()
  }

  close(): void {
    this.#life++
    this.#stop.abort()
    this.#listeners.clear()
  }

  #goOnFrom(next: string | null): void {
    this.#isBegun = true
    this.#next = next
    this.#isEnd = next === null
  }

  #tend(): void {
    if (this.#stop.signal.aborted) return
    const [first, last] = this.#view
    const from = (this.#pageOf(first)?.page ?? this.#pages.length) - this.#keep
    const to = (this.#pageOf(Math.min(last, this.#count - 1))?.page ?? this.#pages.length) + this.#keep
    let start = 0
    for (const [at, page] of this.#pages.entries()) {
      const isSeen = start <= last && start + page.count > first
      if (isSeen && page.rows === null) void this.#again(page)
      // Those that are gone keep their count, so that nothing moves.
      if (at < from || at > to) page.rows = null
      start += page.count
    }
    if (last >= this.#count - this.#ahead && !this.#isEnd && !this.#isLoading && !this.isWaiting && this.#problem === null)
      void this.#more()
  }

  async #more(): Promise<void> {
    const life = this.#life
    const cursor = this.#next
    this.#isLoading = true
    this.#tell()
    try {
      const page = await this.#load(cursor, this.#stop.signal)
      if (life !== this.#life) return
      if (page.data.length > 0) {
        this.#pages.push({ cursor, count: page.data.length, rows: page.data })
        this.#count += page.data.length
        this.#empties = 0
      } else this.#empties++
      this.#goOnFrom(page.next)
    } catch (error) {
      if (life !== this.#life) return
      this.#problem = error as Error
    }
    this.#isLoading = false
    this.#tell()
    this.#tend()
  }

  async #again(page: Held<Row>): Promise<void> {
    if (this.#asked.has(page)) return
    this.#asked.add(page)
    const life = this.#life
    try {
      const { data } = await this.#load(page.cursor, this.#stop.signal)
      if (life !== this.#life) return
      // What waited may have ended since, and stands elsewhere now.
      this.#count += data.length - page.count
      page.count = data.length
      page.rows = data
    } catch (error) {
      if (life !== this.#life) return
      this.#problem = error as Error
    }
    this.#asked.delete(page)
    this.#tell()
  }

  #pageOf(index: number): { page: number; place: number } | undefined {
    if (index < 0) return undefined
    let start = 0
    for (let page = 0; page < this.#pages.length; page++) {
      const { count } = this.#pages[page] as Held<Row>
      if (index < start + count) return { page, place: index - start }
      start += count
    }
    return undefined
  }

  #tell(): void {
    this.#version++
    for (const listener of this.#listeners) listener()
  }
}
