// Preloaded into a node (--import), in every thread of it: changes the source text of one file while it is loaded. The query of its URL has the
// name of the mutant, because some threads see no environment variables.

import { registerHooks } from 'node:module'
import { MUTANTS } from './mutants.ts'
import { mutated, urlOf } from './mutated-source.ts'

const name = new URL(import.meta.url).searchParams.get('name')
const mutant = MUTANTS.find((one) => one.name === name)
if (mutant === undefined) throw new Error(`There is no mutant named ${name}.`)
const url = urlOf(mutant)

registerHooks({
  load(loaded, context, nextLoad) {
    const module = nextLoad(loaded, context)
    if (loaded !== url) return module
    const source = typeof module.source === 'string' ? module.source : new TextDecoder().decode(module.source)
    return { ...module, source: mutated(mutant, source) }
  },
})
