// The JSON Schema validator of the service: Ajv, with the formats of ajv-formats. It is loaded with the first plan, and not with the service:
// loading takes a twentieth of the service's start, and many installations have no plan.

import { createRequire } from 'node:module'
import { type CreateSchemaCompiler, planSchemaCompiler } from '@switchyard/protocol'
import type * as ajv from 'ajv/dist/2020.js'
import type * as ajvFormats from 'ajv-formats'

const load = createRequire(import.meta.url)

/** A service that starts with plans calls this before messages arrive. With many connections, it may not be able to open a file later. */
export function loadValidator() {
  return { ...(load('ajv/dist/2020.js') as typeof ajv), formats: load('ajv-formats') as typeof ajvFormats.default }
}

export const createSchemaCompiler: CreateSchemaCompiler = planSchemaCompiler((options) => {
  const { Ajv2020, formats } = loadValidator()
  // The fast formats are regular expressions that check digits, but not for example whether a month has 31 days.
  return formats.default(new Ajv2020(options), { mode: 'fast' })
})
