// The JSON Schema validator of the service: Ajv, with the formats of ajv-formats.

import { type CreateSchemaCompiler, planSchemaCompiler } from '@switchyard/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

export const createSchemaCompiler: CreateSchemaCompiler = planSchemaCompiler((options) =>
  // The fast formats are regular expressions that check digits, but not for example whether a month has 31 days.
  formats.default(new Ajv2020(options), { mode: 'fast' }),
)
