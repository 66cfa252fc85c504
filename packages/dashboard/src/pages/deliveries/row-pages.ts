// A list of any length, loaded page by page. Only the pages near the visible rows stay in memory. For a page that was dropped, its cursor and
// its number of rows are kept, so that every row keeps its position and the page can be loaded again when somebody scrolls back to it.

export interface RowPage<Row> {
  data: Row[]
  next: string | null
}

interface KnownPage<Row> {
  /** The cursor that it is loaded with. */
  cursor: string | null
  count: number
  /** Null if it is not in memory. */
  rows: Row[] | null
}

export interface RowPagesOptions<Row> {
  load: (cursor: string | null, signal: AbortSignal) => Promise<RowPage<Row>>
  /** The number of pages that are kept on both sides of the visible ones. */
  keep?: number
  /** The next page is loaded when the end is this many rows away. */
  ahead?: number
  /** After this many empty pages in a row, the list waits for resume(): a filter may match nothing for a long time. */
  patience?: number
}

export class RowPages<Row> {
  readonly #load: RowPagesOptions<Row>['load']
  readonly #keep: number
  readonly #ahead: number
  readonly #patience: number
  readonly #stop = new AbortController()
  readonly #listeners = new Set<() => void>()
  readonly #reloading = new Set<KnownPage<Row>>()
  #pages: KnownPage<Row>[] = []
  #count = 0
  #next: string | null = null
  #hasStarted = false
  #isEnd = false
  #isLoading = false
  #empties = 0
  #problem: Error | null = null
  #view: readonly [first: number, last: number] = [0, 0]
  /** Increased by each refresh: responses of an earlier generation are ignored. */
  #generation = 0
  #version = 0

  constructor({ load, keep = 3, ahead = 100, patience = 40 }: RowPagesOptions<Row>) {
    this.#load = load
    this.#keep = keep
    this.#ahead = ahead
    this.#patience = patience
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A number that changes whenever something changed. */
  readonly version = (): number => this.#version

  /** The number of rows known so far. */
  get count(): number {
    return this.#count
  }

  get hasStarted(): boolean {
    return this.#hasStarted
  }

  get isEnd(): boolean {
    return this.#isEnd
  }

  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Whether too many pages were empty and the list waits for resume(). */
  get isWaiting(): boolean {
    return this.#empties >= this.#patience && !this.#isEnd
  }

  get problem(): Error | null {
    return this.#problem
  }

  /** The number of rows in memory, for tests. */
  get held(): number {
    return this.#pages.reduce((sum, { rows }) => sum + (rows?.length ?? 0), 0)
  }

  /** Undefined while its page is not in memory. */
  rowAt(index: number): Row | undefined {
    const at = this.#pageOf(index)
    return at === undefined ? undefined : this.#pages[at.page]?.rows?.[at.place]
  }

  /** Returns those of the rows that are in memory. */
  rowsBetween(first: number, last: number): Row[] {
    const found: Row[] = []
    for (let index = Math.max(0, first); index <= Math.min(last, this.#count - 1); index++) {
      const row = this.rowAt(index)
      if (row !== undefined) found.push(row)
    }
    return found
  }

  /** Sets which rows are visible: loads the pages near them and drops the others. */
  show(first: number, last: number): void {
    this.#view = [first, last]
    this.#update()
  }

  resume(): void {
    this.#empties = 0
    this.#problem = null
    this.#update()
  }

  /** Loads the first page again, which then replaces everything. */
  async refresh(): Promise<void> {
    const generation = ++this.#generation
    this.#reloading.clear()
    this.#isLoading = true
    try {
      const page = await this.#load(null, this.#stop.signal)
      if (generation !== this.#generation) return
      this.#pages = page.data.length === 0 ? [] : [{ cursor: null, count: page.data.length, rows: page.data }]
      this.#count = page.data.length
      this.#empties = page.data.length === 0 ? 1 : 0
      this.#continueFrom(page.next)
      this.#problem = null
    } catch (error) {
      if (generation !== this.#generation) return
      this.#problem = error as Error
    }
    this.#isLoading = false
    this.#notify()
    this.#update()
  }

  close(): void {
    this.#generation++
    this.#stop.abort()
    this.#listeners.clear()
  }

  #continueFrom(next: string | null): void {
    this.#hasStarted = true
    this.#next = next
    this.#isEnd = next === null
  }

  #update(): void {
    if (this.#stop.signal.aborted) return
    const [first, last] = this.#view
    const from = (this.#pageOf(first)?.page ?? this.#pages.length) - this.#keep
    const to = (this.#pageOf(Math.min(last, this.#count - 1))?.page ?? this.#pages.length) + this.#keep
    let start = 0
    for (const [at, page] of this.#pages.entries()) {
      const isVisible = start <= last && start + page.count > first
      if (isVisible && page.rows === null) void this.#reload(page)
      // Dropped pages keep their count, so that no row moves.
      if (at < from || at > to) page.rows = null
      start += page.count
    }
    if (last >= this.#count - this.#ahead && !this.#isEnd && !this.#isLoading && !this.isWaiting && this.#problem === null)
      void this.#loadNext()
  }

  async #loadNext(): Promise<void> {
    const generation = this.#generation
    const cursor = this.#next
    this.#isLoading = true
    this.#notify()
    try {
      const page = await this.#load(cursor, this.#stop.signal)
      if (generation !== this.#generation) return
      if (page.data.length > 0) {
        this.#pages.push({ cursor, count: page.data.length, rows: page.data })
        this.#count += page.data.length
        this.#empties = 0
      } else this.#empties++
      this.#continueFrom(page.next)
    } catch (error) {
      if (generation !== this.#generation) return
      this.#problem = error as Error
    }
    this.#isLoading = false
    this.#notify()
    this.#update()
  }

  async #reload(page: KnownPage<Row>): Promise<void> {
    if (this.#reloading.has(page)) return
    this.#reloading.add(page)
    const generation = this.#generation
    try {
      const { data } = await this.#load(page.cursor, this.#stop.signal)
      if (generation !== this.#generation) return
      // The page may have fewer rows now: a delivery may have changed its state and with it its position in the list.
      this.#count += data.length - page.count
      page.count = data.length
      page.rows = data
    } catch (error) {
      if (generation !== this.#generation) return
      this.#problem = error as Error
    }
    this.#reloading.delete(page)
    this.#notify()
  }

  #pageOf(index: number): { page: number; place: number } | undefined {
    if (index < 0) return undefined
    let start = 0
    for (let page = 0; page < this.#pages.length; page++) {
      const { count } = this.#pages[page] as KnownPage<Row>
      if (index < start + count) return { page, place: index - start }
      start += count
    }
    return undefined
  }

  #notify(): void {
    this.#version++
    for (const listener of this.#listeners) listener()
  }
}
