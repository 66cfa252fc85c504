// The source text of a mutant.

import type { Mutant } from './mutants.ts'

export function urlOf({ file }: Mutant): string {
  return new URL(`../../../packages/server/src/${file}`, import.meta.url).href
}

/** Throws if a text to be changed is not in the source exactly once. */
export function mutated({ name, file, changes }: Mutant, source: string): string {
  let text = source
  for (const [from, to] of changes) {
    const parts = text.split(from)
    if (parts.length !== 2)
      throw new Error(`Mutant ${name}: ${JSON.stringify(from)} must be in ${file} once, but is there ${parts.length - 1} times.`)
    text = parts.join(to)
  }
  return text
}
