// The source text of a mutant.

import { fileURLToPath } from 'node:url'
import type { Mutant } from './mutants.ts'

export type Change = Pick<Mutant, 'name' | 'file' | 'changes'>

/** The changes of files for a mutant. `preload` is the URL of apply-mutant.ts, with its query. */
export function changesOf(mutant: Mutant, preload: string): Change[] {
  if (mutant.inLoader !== true) return [mutant]
  const folder = fileURLToPath(new URL('.', preload))
  const flags = [`--allow-fs-read=${folder}*`, `--import=${preload}`].map((flag) => JSON.stringify(flag))
  const start = "'--permission',"
  return [mutant, { name: mutant.name, file: 'delivery/link/host-channel.ts', changes: [[start, `${start} ${flags.join(', ')},`]] }]
}

export function urlOf({ file }: Pick<Change, 'file'>): string {
  return new URL(`../../../packages/server/src/${file}`, import.meta.url).href
}

/** Throws if a text to be changed is not in the source exactly once. */
export function mutated({ name, file, changes }: Change, source: string): string {
  let text = source
  for (const [from, to] of changes) {
    const parts = text.split(from)
    if (parts.length !== 2)
      throw new Error(`Mutant ${name}: ${JSON.stringify(from)} must be in ${file} once, but is there ${parts.length - 1} times.`)
    text = parts.join(to)
  }
  return text
}
