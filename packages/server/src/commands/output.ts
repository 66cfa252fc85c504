// What a command says: results on stdout, so that they can be piped, progress and remarks on stderr.

export interface Progress {
  /** `done` of `total`, with a word on what is special about it. */
  update(done: number, total: number | null, remark?: string): void
  /** Clears the bar. */
  end(): void
}

export interface Output {
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean
  line(text: string): void
  /** One JSON value: indented on a terminal, on one line otherwise. */
  json(value: unknown): void
  table(columns: readonly string[], rows: readonly (readonly string[])[]): void
  /** On stderr. */
  remark(text: string): void
  /** A bar on a terminal, a line now and then elsewhere, nothing with --json. */
  progress(what: string): Progress
}
