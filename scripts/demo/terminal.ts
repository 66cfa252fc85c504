// The terminal output of the demo: permanent lines, and below them a status line that is overwritten. Without a terminal, the status is
// printed as plain lines, less often. Keys are read one by one; the terminal mode is restored however the process ends.

import type { ReadStream, WriteStream } from 'node:tty'

const PLAIN_EVERY_MS = 5_000

export interface Terminal {
  isInteractive: boolean
  /** Prints a permanent line above the status line. */
  line: (text?: string) => void
  /** Replaces the status line. Without a terminal, prints a line at most every five seconds. */
  status: (text: string) => void
  /** Clears the status line and stops reading keys. */
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
  // Ignored: nobody reads the output any more, for example after the window was closed or `head` has exited.
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
      // Another program on the same terminal may have ended the raw mode: npm does so about a minute after it has started a script. Setting a mode
      // that the process believes to be set does nothing, so it is changed twice.
      if (input.isRaw) input.setRawMode(false).setRawMode(true)
      clear()
      // A line wider than the window would wrap, and only its last row would be cleared.
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
