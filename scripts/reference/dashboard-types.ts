// The control API as TypeScript types for the dashboard, generated from the OpenAPI document. So the dashboard is typed by the schemas that
// validate its requests. scripts/reference.ts writes them to packages/dashboard/src/api/types.ts.

import type { JsonSchema } from '../../packages/server/src/api/schema.ts'
import { describedApi } from './api.ts'

interface Operation {
  summary?: string
  parameters?: { name: string; in: string; required?: boolean; schema: JsonSchema }[]
  requestBody?: { content: Record<string, { schema: JsonSchema }> }
  responses: Record<string, { content?: Record<string, { schema?: JsonSchema }> }>
  'x-event-data'?: JsonSchema
}

const METHODS = ['get', 'post', 'patch', 'delete'] as const

export function dashboardTypes(): string {
  const { paths, components } = describedApi() as unknown as {
    paths: Record<string, Partial<Record<(typeof METHODS)[number], Operation>>>
    components: { schemas: Record<string, JsonSchema> }
  }
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith('/api/'))
    .flatMap(([path, methods]) =>
      METHODS.flatMap((method) => {
        const operation = methods[method]
        return operation === undefined ? [] : [operationText(`${method.toUpperCase()} ${path}`, operation)]
      }),
    )
  const used = new Set<string>()
  const collect = (text: string): void => {
    for (const [, name] of text.matchAll(/\bSchemas\['(\w+)'\]/g)) {
      if (used.has(name as string)) continue
      used.add(name as string)
      collect(typeOf(components.schemas[name as string] as JsonSchema))
    }
  }
  collect(operations.join('\n'))
  const schemas = [...used].sort().map((name) => `  ${name}: ${typeOf(components.schemas[name] as JsonSchema)}`)
  return `// Written by scripts/reference.ts from the routes of the service. Change it there, then run: node scripts/run.mjs scripts/reference.ts

export interface Schemas {
${schemas.join('\n')}
}

/** Requests and responses, by method and path. */
export interface Operations {
${operations.join('\n')}
}
`
}

function operationText(key: string, operation: Operation): string {
  const query = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query')
  const fields = query.map(
    ({ name, required, schema }) => `${name}${required ? '' : '?'}: ${typeOf(schema)}${required ? '' : ' | undefined'}`,
  )
  const body = operation.requestBody?.content['application/json']?.schema
  const success = Object.entries(operation.responses).find(([status]) => status.startsWith('2'))?.[1]
  const answer = operation['x-event-data'] ?? success?.content?.['application/json']?.schema
  const text = [
    `    query: ${fields.length === 0 ? 'Record<string, never>' : `{ ${fields.join('; ')} }`}`,
    `    body: ${body === undefined ? 'undefined' : typeOf(body)}`,
    `    answer: ${answer === undefined ? 'undefined' : typeOf(answer)}`,
  ].join('\n')
  return `  /** ${operation.summary ?? ''} */\n  '${key}': {\n${text}\n  }`
}

function typeOf(schema: JsonSchema): string {
  const {
    $ref,
    type,
    enum: values,
    const: only,
    anyOf,
    oneOf,
    allOf,
    items,
    properties,
    required,
    additionalProperties,
  } = schema as Record<string, unknown> & { properties?: Record<string, JsonSchema>; required?: string[] }
  if (typeof $ref === 'string') return `Schemas['${$ref.slice($ref.lastIndexOf('/') + 1)}']`
  if (only !== undefined) return JSON.stringify(only)
  if (Array.isArray(values)) return values.map((value) => (value === null ? 'null' : `'${String(value)}'`)).join(' | ')
  const union = (anyOf ?? oneOf) as JsonSchema[] | undefined
  if (union) return union.map((each) => wrapped(typeOf(each))).join(' | ')
  if (Array.isArray(allOf)) return (allOf as JsonSchema[]).map((each) => wrapped(typeOf(each))).join(' & ')
  if (Array.isArray(type)) return (type as string[]).map((each) => wrapped(typeOf({ ...schema, type: each }))).join(' | ')
  switch (type) {
    case 'string':
      return 'string'
    case 'integer':
    case 'number':
      return 'number'
    case 'boolean':
      return 'boolean'
    case 'null':
      return 'null'
    case 'array':
      return `${wrapped(typeOf((items ?? {}) as JsonSchema))}[]`
    case 'object': {
      if (properties === undefined) {
        const of =
          typeof additionalProperties === 'object' && additionalProperties !== null ? typeOf(additionalProperties as JsonSchema) : 'unknown'
        return `Record<string, ${of}>`
      }
      const isRequired = new Set(required ?? [])
      const fields = Object.entries(properties).map(([name, of]) => {
        const key = /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`
        return `${key}${isRequired.has(name) ? '' : '?'}: ${typeOf(of)}${isRequired.has(name) ? '' : ' | undefined'}`
      })
      return fields.length === 0 ? 'Record<string, never>' : `{ ${fields.join('; ')} }`
    }
    default:
      return 'unknown'
  }
}

function wrapped(text: string): string {
  return text.includes(' | ') || text.includes(' & ') ? `(${text})` : text
}
