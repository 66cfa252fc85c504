// Segment's mapping kit, which evaluates `request.body`. It is loaded with the first mapping, so a service without mappings does not pay for
// it. Loaded with `require`: the package's ES modules import files without their extension, which Node.js rejects.
//
// Three of its modules are replaced before it is loaded (bounded-reading.ts says why). The Liquid engine is replaced by an error: mappings
// with @liquid are refused, and the kit requires `liquidjs` without depending on it.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { JsonObject } from '@switchyard/protocol'
import { beginReading, boundedGet, flattenObject } from './bounded-reading.ts'

const KIT = '@segment/actions-core/mapping-kit'

interface MappingKit {
  transform: (mapping: JsonObject, data: JsonObject) => JsonObject
  /** Throws an error, or an iterable of errors, whose messages start with the place: `/body/text has an invalid directive: @x.` */
  validate: (mapping: JsonObject) => void
}

let kit: MappingKit | undefined

export function mappingKit(): MappingKit {
  if (kit !== undefined) return kit
  const require = createRequire(import.meta.url)
  const replace = (file: string, exports: object): void => {
    require.cache[file] = { id: file, filename: file, loaded: true, exports } as unknown as NodeJS.Module
  }
  const noLiquid = (): never => {
    throw new Error('@liquid is not supported')
  }
  const folder = dirname(require.resolve(KIT))
  replace(join(folder, 'liquid-directive.js'), { evaluateLiquid: noLiquid, getLiquidKeys: noLiquid })
  replace(join(folder, 'flatten.js'), { flattenObject })
  replace(join(folder, '..', 'get.js'), { get: boundedGet })
  const { transform } = require(KIT) as Pick<MappingKit, 'transform'>
  const { default: validate } = require(`${KIT}/validate`) as { default: MappingKit['validate'] }
  // Another version of the package may have its files elsewhere. Then the replacements would have no effect.
  beginReading(0)
  const { path } = transform({ path: { '@path': '$.constructor' } }, {})
  if (path !== undefined) throw new Error('This version of @segment/actions-core is not supported: its files have moved.')
  kit = { transform, validate }
  return kit
}

/** Returns the JSON value that a checked mapping gives for a message; undefined if there is none. May throw. */
export function evaluate(mapping: unknown, message: JsonObject, itemSize: number, secrets: Readonly<Record<string, string>>): unknown {
  // Loads the kit first: it is tried out then, which begins a reading of its own.
  mappingKit()
  beginReading(itemSize, secrets)
  return evaluateMore(mapping, message)
}

/** The same, but what it reads counts towards the limit of the evaluation before. */
export function evaluateMore(mapping: unknown, message: JsonObject): unknown {
  return mappingKit().transform({ body: mapping }, message)['body']
}
