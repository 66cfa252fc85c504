// Writes a file that another process reads at any time: it never sees an empty or half-written file.

import { renameSync, writeFileSync } from 'node:fs'

export function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.new`, text)
  renameSync(`${path}.new`, path)
}
