// What the demo shows on a terminal: lines that stay, and below them one that is written over. Where there is no terminal it prints plain
// lines, fewer of them. Keys are read one by one; the terminal is given back as it was, however the process ends.

import type { ReadStream, WriteStream } from 'node:tty'

const PLAIN_EVERY_MS = 5_000

export interface Terminal {
  isInteractive: boolean
  /** Above what is written over. */
  line: (text?: string) => void
  /** Written over by the next; without a terminal at most every five seconds. */
  status: (text: string) => void
  /** No more of it, and no keys. */
  close: () => void
  bold: (text: string) => string
  dim: (text: string) => string
  green: (text: string) => string
  red: (text: string) => string
}

export function openTerminal(output: WriteStream, input: ReadStream, onKey: (key: string) => void): Terminal {
  const isInteractive = output.isTTY && input.isTTY
  const paint = (code: number) => (text: string) => (output.isTTY && !process.env['NO_COLOR'] ? `\x1b[${code}m${text}\x1b[0m` : text)
  let shown = ''
  let plainAtMs = Number.NEGATIVE_INFINITY
  // Whoever read it has gone: a closed window, a pipe to head.
  output.on('error', () => {})
  const restore = (): void => void (isInteractive && input.isRaw && input.setRawMode(false))
  const read = (bytes: Buffer): void => {
    for (const key of bytes.toString('utf8')) onKey(key)
  }
  if (isInteractive) {
    input.on('error', () => {})
    input.setRawMode(true)
    input.on('data', read)
    input.resume()
    process.on('exit', restore)
  }
  const clear = (): void => {
    if (shown !== '') output.write('\r\x1b[2K')
  }
  return {
    isInteractive,
    line(text = '') {
      clear()
      output.write(`${text}\n`)
      if (shown !== '') output.write(shown)
    },
    status(text) {
      if (!isInteractive) {
        if (performance.now() - plainAtMs < PLAIN_EVERY_MS) return
        plainAtMs = performance.now()
        output.write(`${text}\n`)
        return
      }
      clear()
      // Wider than the window, it would leave its beginning behind.
      shown = text.slice(0, Math.max(20, output.columns - 1))
      output.write(shown)
    },
    close() {
      clear()
      shown = ''
      if (!isInteractive) return
      restore()
      input.off('data', read)
      input.pause()
    },
    bold: paint(1),
    dim: paint(2),
    green: paint(32),
    red: paint(31),
  }
}
