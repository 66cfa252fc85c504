// The JSON Schema validator of the client for tests: the same as that of the service. The build writes it to a file of its own, with Ajv in it.

import { type CreateSchemaCompiler, planSchemaCompiler } from '@switchyard/protocol'
import { Ajv2020 } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'

export const createSchemaCompiler: CreateSchemaCompiler = planSchemaCompiler((options) =>
  formats.default(new Ajv2020(options), { mode: 'fast' }),
)
