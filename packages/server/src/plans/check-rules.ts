// Checks the schemas of a plan's rules before the plan is saved. Every schema is compiled once, so that no rule fails when its messages arrive.

import { setImmediate } from 'node:timers/promises'
import { type PlanRule, schemaProblem } from '@switchyard/protocol'
import { invalidField } from '../api/schema.ts'
import { createSchemaCompiler } from './plan-schema-compiler.ts'

/** Throws invalid_field for the first schema that is not accepted. `accepted` are rules whose schemas were checked before. */
export async function checkRules(rules: readonly PlanRule[], accepted: readonly PlanRule[] = []): Promise<void> {
  const known = new Set(accepted.map(({ schema }) => JSON.stringify(schema)))
  const compile = createSchemaCompiler({ validateSchema: true })
  for (const [index, { schema }] of rules.entries()) {
    const text = JSON.stringify(schema)
    if (known.has(text)) continue
    known.add(text)
    const found = schemaProblem(schema, compile)
    if (found !== null) throw invalidField(`rules[${index}].schema${found.path === '' ? '' : `.${found.path}`}`, found.problem)
    // Compiling takes about 2 ms, and up to a second for the largest schemas: requests of others are handled in between.
    await setImmediate()
  }
}
