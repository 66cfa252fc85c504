// The HTTP interface, from the description of the API that the service gives out.

import {
  answersOf,
  errorsOf,
  type OperationNode,
  operationsOf,
  type ReferenceDocument,
  resolved,
  type SchemaNode,
  schemaName,
} from '../../packages/server/src/docs/reference-document.ts'
import { describedApi } from './api.ts'
import { code, heading, table } from './markdown.ts'

export function httpPage(): string {
  const document: ReferenceDocument = describedApi()
  const operations = operationsOf(document)
  const common = commonErrors(document, operations.filter(isWithToken))
  const parts = document.tags.flatMap(({ name, description }) => [
    `## ${name}\n\n${description}`,
    ...operations.filter(({ tags }) => tags[0] === name).map((operation) => operationText(document, operation, common)),
  ])
  const schemas = Object.entries(document.components.schemas).map(([name, schema]) => schemaText(document, name, schema as SchemaNode))
  return `${[
    heading('HTTP', 'the routes of the service').trimEnd(),
    'A running service shows the same at `/docs/api`, with commands to copy, and gives it to machines at `/api/openapi.json` and `/docs/openapi.json`.',
    document.info.description,
    `Operations under \`/api\` that take a token can also be refused with ${[...common].map(code).join(', ')}. [errors.md](errors.md) explains the codes.`,
    ...parts,
    '## Schemas',
    ...schemas,
  ].join('\n\n')}\n`
}

function isWithToken({ security }: OperationNode): boolean {
  return security.some((scheme) => 'controlToken' in scheme)
}

/** What all of them can be refused with: said once. */
function commonErrors(document: ReferenceDocument, operations: readonly OperationNode[]): Set<string> {
  const [first = new Set<string>(), ...rest] = operations.map(
    (operation) => new Set(errorsOf(document, operation).flatMap(({ codes }) => codes)),
  )
  return new Set([...first].filter((each) => rest.every((codes) => codes.has(each))))
}

function operationText(document: ReferenceDocument, operation: OperationNode, common: ReadonlySet<string>): string {
  const { method, path, summary, description, parameters = [], requestBody } = operation
  const title = `### ${code(`${method.toUpperCase()} ${path}`)}`
  const alias = operation['x-alias-of']
  if (alias !== undefined) return `${title}\n\n${summary}.`
  const role = operation['x-role'] === undefined ? '' : ` Role: ${code(operation['x-role'])}.`
  const [type, media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return [
    title,
    `${summary}.${role}`,
    ...(description === undefined ? [] : [description]),
    ...(parameters.length === 0
      ? []
      : [
          table(
            ['Parameter', 'In', 'Type', 'Meaning'],
            parameters.map(({ name, in: place, required, description, schema }) => [
              code(name),
              place,
              typeText(schema) + (required ? ', required' : ''),
              [description, limitsText(schema)].filter((part) => part !== '').join(' '),
            ]),
          ),
        ]),
    ...(media?.schema === undefined
      ? []
      : [`Body${type === 'application/json' ? '' : ` (${type ?? ''})`}:`, fieldTable(document, media.schema)]),
    ...answersOf(document, operation).map(({ status, response }) => answerText(document, status, response, summary)),
    ...errorText(document, operation, common),
  ].join('\n\n')
}

function answerText(
  document: ReferenceDocument,
  status: string,
  { description, content }: OperationNode['responses'][string],
  summary: string,
): string {
  const [type, media] = Object.entries(content ?? {})[0] ?? []
  const schema = media?.['x-event-data'] ?? media?.schema
  const form = type === undefined || type === 'application/json' ? '' : ` (${type})`
  const shape = schema === undefined || type === 'text/html' ? '' : ` ${shortText(document, schema)}`
  const about = description === `${summary}.` ? '' : ` ${description}`
  return `Answer ${code(status)}${form}:${about}${shape}`
}

/** The names alone: the fields of an answer are under Schemas where they have a name, and speak for themselves elsewhere. */
function shortText(document: ReferenceDocument, schema: SchemaNode): string {
  if (schemaName(schema) !== undefined) return typeText(schema)
  const { properties } = schema
  if (properties === undefined) return ''
  return `\`{ ${Object.entries(properties)
    .map(([name, field]) => (schemaName(field.items ?? field) === undefined ? name : `${name}: ${plainType(field)}`))
    .join(', ')} }\``
}

function plainType(field: SchemaNode): string {
  return field.items === undefined ? (schemaName(field) ?? '') : `[${schemaName(field.items) ?? ''}]`
}

function errorText(document: ReferenceDocument, operation: OperationNode, common: ReadonlySet<string>): string[] {
  const rows = errorsOf(document, operation)
    .map(({ status, codes }) => ({ status, codes: isWithToken(operation) ? codes.filter((each) => !common.has(each)) : codes }))
    .filter(({ codes }) => codes.length > 0)
  if (rows.length === 0) return []
  return [`Errors: ${rows.map(({ status, codes }) => `${status} ${codes.map(code).join(', ')}`).join(' · ')}`]
}

function schemaText(document: ReferenceDocument, name: string, schema: SchemaNode): string {
  const about = schema.description === undefined ? [] : [schema.description]
  const variants = schema.oneOf === undefined ? [] : [`One of ${schema.oneOf.map((one) => typeText(one)).join(', ')}.`]
  return [`### ${name}`, ...about, ...variants, ...(schema.properties === undefined ? [] : [fieldTable(document, schema)])].join('\n\n')
}

function fieldTable(document: ReferenceDocument, schema: SchemaNode): string {
  const rows = fieldRows(resolved(document, schema), '')
  return rows.length === 0 ? 'An object.' : table(['Field', 'Type', 'Meaning'], rows)
}

function fieldRows({ properties = {}, required = [] }: SchemaNode, prefix: string): string[][] {
  const rows: string[][] = []
  for (const [name, field] of Object.entries(properties)) {
    const path = prefix + name
    const marks = [required.includes(name) ? ', required' : '', field.writeOnly ? ', write-only' : ''].join('')
    const meaning = [field.description ?? '', limitsText(field)].filter((part) => part !== '').join(' ')
    rows.push([code(path), typeText(field) + marks, meaning])
    rows.push(...fieldRows(field.items ?? field, field.items === undefined ? `${path}.` : `${path}[].`))
  }
  return rows
}

function typeText(schema: SchemaNode): string {
  const name = schemaName(schema)
  if (name !== undefined) return `[${name}](#${name.toLowerCase()})`
  if (schema.oneOf !== undefined) return schema.oneOf.map((one) => typeText(one)).join(' or ')
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['anything'])
  return types
    .map((type) => {
      if (type === 'array') return `list of ${schema.items === undefined ? 'anything' : typeText(schema.items)}`
      if (type === 'object' && typeof schema.additionalProperties === 'object') return `object of ${typeText(schema.additionalProperties)}`
      return type === 'string' && schema.format === 'date-time' ? 'time' : type === 'integer' ? 'whole number' : type
    })
    .join(' or ')
}

function limitsText(schema: SchemaNode): string {
  const { enum: values, default: fallback, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema
  const parts = [
    ...(values === undefined
      ? []
      : [
          `one of ${values
            .filter((value) => value !== null)
            .map((value) => code(typeof value === 'string' ? value : JSON.stringify(value)))
            .join(', ')}`,
        ]),
    ...(schema.const === undefined ? [] : [`always ${code(JSON.stringify(schema.const))}`]),
    ...range(minimum, maximum, ''),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    ...(fallback === undefined ? [] : [`default ${code(JSON.stringify(fallback))}`]),
  ]
  return parts.length === 0 ? '' : `(${parts.join('; ')})`
}

function range(least: number | undefined, most: number | undefined, things: string): string[] {
  if (least === undefined && most === undefined) return []
  if (most === undefined && least === 1 && things !== '') return ['not empty']
  if (most === undefined) return [`at least ${least ?? 0}${things}`]
  return [least === undefined ? `at most ${most}${things}` : `${least} to ${most}${things}`]
}
