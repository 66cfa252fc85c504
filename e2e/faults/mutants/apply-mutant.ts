// Preloaded into a node (--import), in every thread of it: changes the source text of one file while it is loaded. The query of its URL has the
// name of the mutant, because some threads see no environment variables. Loaders are processes, and a node starts them without what was preloaded into it:
// for a mutant of a loader, the node also gets a change, which preloads this file into the loaders.

import { registerHooks } from 'node:module'
import { MUTANTS } from './mutants.ts'
import { changesOf, mutated, urlOf } from './mutated-source.ts'

const name = new URL(import.meta.url).searchParams.get('name')
const mutant = MUTANTS.find((one) => one.name === name)
if (mutant === undefined) throw new Error(`There is no mutant named ${name}.`)
const changed = new Map(changesOf(mutant, import.meta.url).map((change) => [urlOf(change), change]))

registerHooks({
  load(loaded, context, nextLoad) {
    const module = nextLoad(loaded, context)
    const change = changed.get(loaded)
    if (change === undefined) return module
    const source = typeof module.source === 'string' ? module.source : new TextDecoder().decode(module.source)
    return { ...module, source: mutated(change, source) }
  },
})
