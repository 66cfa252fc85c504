// The output of a command: results go to stdout, so that they can be piped; progress and remarks go to stderr. Results contain text from
// untrusted senders, so their control characters are escaped before they reach a terminal, and their line breaks cannot fake a line of
// ours (terminal-text.ts). Files that a command writes to a pipe (`text`) are not escaped. Our own colours are marked with a random text, which a sender cannot guess.

import { randomBytes } from 'node:crypto'
import { harmless } from '../../logging/terminal-text.ts'

export interface Progress {
  /** Shows `done` of `total`, with an optional remark. */
  update(done: number, total: number | null, remark?: string): void
  /** Clears the bar. */
  end(): void
}

export interface Output {
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean
  /** Writes one line. Line breaks in the text are shown as \n. */
  line(text: string): void
  /** Writes text of several lines, such as a configuration file. Only a terminal gets it escaped. */
  text(text: string): void
  /** Writes one JSON value: indented on a terminal, on one line otherwise. */
  json(value: unknown): void
  table(columns: readonly string[], rows: readonly (readonly string[])[]): void
  /** Writes a line to stderr. */
  remark(text: string): void
  /** Shows a bar on a terminal, a line every few seconds elsewhere, and nothing with --json. */
  progress(what: string): Progress
  /** Our own text with the commands in it as the reader can run them; remarks have it anyway. */
  inForm(text: string): string
  /** The text in a colour, or unchanged if colours are off. */
  paint(style: Style, text: string): string
}

const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const
export type Style = keyof typeof STYLES

/** The part of a stream that is used here. */
interface Stream {
  isTTY?: boolean
  columns?: number
  write(text: string): unknown
}

export interface OutputOptions {
  stdout: Stream
  stderr: Stream
  json: boolean
  /** Whether a terminal gets colours. */
  colours: boolean
  inForm?: (text: string) => string
  now?: () => number
}

const GAP = '  '
/** Columns are not made narrower than this. */
const MIN_COLUMN = 8
const PLAIN_PROGRESS_EVERY_MS = 5_000
const BAR_EVERY_MS = 80
const BAR_CELLS = 24

export function createOutput({
  stdout,
  stderr,
  json,
  colours,
  inForm = (text) => text,
  now = () => performance.now(),
}: OutputOptions): Output {
  const isTerminal = stdout.isTTY === true
  const painted = colours && isTerminal
  let bar = ''

  function remark(text: string): void {
    clearBar()
    stderr.write(`${written(inForm(text))}\n`)
    if (bar !== '') stderr.write(bar)
  }
  function clearBar(): void {
    if (bar !== '') stderr.write('\r\x1b[K')
  }
  function lines(texts: readonly string[]): void {
    // The progress bar is on the same screen.
    if (isTerminal) clearBar()
    for (const each of texts) stdout.write(`${written(each)}\n`)
    if (isTerminal && bar !== '') stderr.write(bar)
  }
  const line = (text: string): void => lines([text])
  const paint = (style: Style, text: string): string => (painted ? `${MARK}${STYLES[style]}m${text}${MARK}0m` : text)

  return {
    isTerminal,
    line,
    // What goes to a file or another program must be the text itself: an escape would be part of a name in the YAML of `export`.
    text: (text) => (isTerminal ? lines(text.split('\n')) : void stdout.write(`${text}\n`)),
    remark,
    inForm,
    paint,
    json(value) {
      // JSON escapes C0 control characters. Escaping the remaining dangerous characters does not change the JSON value.
      const text = JSON.stringify(value, null, isTerminal ? 2 : undefined)
      stdout.write(`${text.split('\n').map(harmless).join('\n')}\n`)
    },
    table(columns, rows) {
      const [head = '', ...body] = tableLines(columns, rows, isTerminal ? (stdout.columns ?? 80) : Number.POSITIVE_INFINITY)
      line(paint('bold', head))
      for (const row of body) line(row)
    },
    progress(what) {
      if (json) return { update() {}, end() {} }
      const isBar = stderr.isTTY === true
      let last = isBar ? Number.NEGATIVE_INFINITY : now()
      let hasShown = false
      return {
        update(done, total, remarkText) {
          const isFull = total !== null && done >= total
          if (now() - last < (isBar ? BAR_EVERY_MS : PLAIN_PROGRESS_EVERY_MS) && !(isFull && (isBar || hasShown))) return
          last = now()
          hasShown = true
          const counted = total === null ? `${done}` : `${done} of ${total}`
          const text = `${what}: ${counted}${remarkText === undefined || remarkText === '' ? '' : `, ${remarkText}`}`
          if (!isBar) {
            stderr.write(`${written(text)}\n`)
            return
          }
          clearBar()
          bar = written(cutTo(total === null ? text : `${drawn(done, total)} ${text}`, (stderr.columns ?? 80) - 1))
          stderr.write(bar)
        },
        end() {
          clearBar()
          bar = ''
        },
      }
    },
  }
}

function drawn(done: number, total: number): string {
  const share = total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.floor(share * BAR_CELLS)
  return `${'█'.repeat(full)}${'░'.repeat(BAR_CELLS - full)} ${String(Math.floor(share * 100)).padStart(3)}%`
}

const MARK = `\x1b<${randomBytes(8).toString('hex')}>`
const COLOUR = new RegExp(`${MARK}\\d+m`, 'g')

/** Escapes everything that a terminal would interpret, except our own colours. */
function plain(text: string): string {
  return text.split(MARK).map(harmless).join(MARK)
}

function written(text: string): string {
  return plain(text).replaceAll(MARK, '\x1b[')
}

/** The titles and the rows, in columns that fit into `space`. */
function tableLines(columns: readonly string[], rows: readonly (readonly string[])[], space: number): string[] {
  const cells = rows.map((row) => row.map((cell) => plain(cell.replaceAll('\n', ' '))))
  const widths = fit(
    columns.map((name, at) => Math.max(widthOf(name), ...cells.map((row) => widthOf(row[at] ?? '')))),
    space,
    columns.map((name, at) => at === 0 || /\bid$/.test(name)),
  )
  const padded = (cell: string, at: number): string => {
    const cut = cutTo(cell, widths[at] as number)
    return cut + ' '.repeat((widths[at] as number) - widthOf(cut))
  }
  return [columns.map((name) => name.toUpperCase()), ...cells].map((row) => row.map(padded).join(GAP).trimEnd())
}

/** Narrows the widest columns until the table fits. Ids, which users copy, are narrowed last, and the first column never. */
function fit(wanted: readonly number[], space: number, isId: readonly boolean[]): number[] {
  const widths = [...wanted]
  const total = (): number => widths.reduce((sum, width) => sum + width, (widths.length - 1) * GAP.length)
  while (total() > space) {
    const wide = widths.map((width, at) => ({ width, at })).filter(({ width, at }) => at > 0 && width > MIN_COLUMN)
    const others = wide.filter(({ at }) => !isId[at])
    const [first, ...rest] = others.length > 0 ? others : wide
    if (first === undefined) break
    const widest = rest.reduce((most, column) => (column.width > most.width ? column : most), first)
    widths[widest.at] = widest.width - 1
  }
  return widths
}

function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let cut = ''
  let used = 0
  // A colour sequence could be cut in two, so truncated text has no colours.
  for (const character of withoutColours(text)) {
    const next = widthOf(character)
    if (used + next > width - 1) break
    cut += character
    used += next
  }
  return `${cut}…`
}

/** The number of terminal cells that the text takes. */
export function widthOf(text: string): number {
  let width = 0
  for (const character of withoutColours(text)) {
    if (/^\p{M}|\u200d|\ufe0f$/u.test(character)) continue
    width += /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}$/u.test(
      character,
    )
      ? 2
      : 1
  }
  return width
}

function withoutColours(text: string): string {
  return text.replace(COLOUR, '')
}
