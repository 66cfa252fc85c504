// The pages of the HTTP API, written from the OpenAPI document of the service: an overview and one page per tag. A schema that only
// one page uses is on that page; the others are in the overview.

import { describedApi } from './api.ts'
import { curlOf } from './curl.ts'
import { code, fence, heading, table } from './markdown.ts'
import {
  errorsOf,
  type OpenApi,
  type OperationNode,
  operationsOf,
  otherResponsesOf,
  type ResponseNode,
  resolved,
  type SchemaNode,
  schemaName,
} from './openapi.ts'
import { exampleOf, fieldTable, meaningText, type SchemaLink, typeText } from './schema.ts'

const SOURCE = 'the routes of the service'
const COMMON_ERRORS = 'Common errors'
const MAX_OPEN_LINES = 16

interface HttpPage {
  /** From the repository's root. */
  path: string
  /** Its title in the table of contents. */
  title: string
  render(): string
}

interface Part {
  name: string
  slug: string
  description: string
  operations: readonly OperationNode[]
}

/** Shared by everything on a page. */
interface Page {
  document: OpenApi
  link: SchemaLink
  commonErrors: ReadonlySet<string>
}

export function httpPages(): HttpPage[] {
  const document: OpenApi = describedApi()
  const operations = operationsOf(document)
  const parts = document.tags.map(({ name, description }) => ({
    name,
    slug: name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'),
    description,
    operations: operations.filter(({ tags }) => tags[0] === name),
  }))
  const shared = sharedSchemas(document, parts)
  return [
    { path: 'docs/reference/http.md', title: 'Overview', render: () => overview(document, parts, shared) },
    ...parts.map((part) => ({
      path: `docs/reference/http/${part.slug}.md`,
      title: part.name,
      render: () => partPage(document, part, shared),
    })),
  ]
}

// ── Overview ────────────────────────────────────────────────────────────────────────────────────────────────────────

const SETUP = `export SWITCHYARD_URL=http://127.0.0.1:8080
export SWITCHYARD_WRITE_KEY=…
export SWITCHYARD_TOKEN=sy_…`

const SEND = `curl "$SWITCHYARD_URL/v1/track" \\
  -u "$SWITCHYARD_WRITE_KEY:" \\
  -H 'Content-Type: application/json' \\
  -d '{"userId":"u-1","event":"Order Completed"}'`

const LOOK_UP = `curl "$SWITCHYARD_URL/api/messages?limit=1" \\
  -H "Authorization: Bearer $SWITCHYARD_TOKEN"`

function overview(document: OpenApi, parts: readonly Part[], shared: ReadonlySet<string>): string {
  const link: SchemaLink = (name) => `#${name.toLowerCase()}`
  return joined([
    heading('HTTP API', SOURCE).trimEnd(),
    document.info.description,
    '[Errors](errors.md) lists every error code with its meaning and what to do about it. A running service serves this reference for programs, as an OpenAPI 3.1 document, at `/docs/openapi.json`; with a control token also at `/api/openapi.json`.',
    '## Try it',
    'The examples take the address of the service and the credentials from environment variables. The service prints a write key at every start, and the token at its first start.',
    fence('sh', SETUP),
    'Send a message:',
    fence('sh', SEND),
    'See whether it was delivered:',
    fence('sh', LOOK_UP),
    '## Authentication',
    table(['Scheme', 'Meaning'], Object.entries(document.components.securitySchemes).map(schemeRow)),
    '## Operations',
    ...parts.flatMap(({ name, slug, description, operations }) => [
      `### [${name}](http/${slug}.md)`,
      description,
      operations
        .filter(isOwn)
        .map((operation) => `- [${code(nameOf(operation))}](http/${slug}.md#${anchorOf(operation)})<br>${operation.summary}.`)
        .join('\n'),
    ]),
    '## Schemas',
    ...[...shared].flatMap((name) => schemaText(document, name, link)),
  ])
}

function schemeRow([name, scheme]: [
  string,
  { type?: string; scheme?: string; in?: string; name?: string; description?: string },
]): string[] {
  const how =
    scheme.type === 'http'
      ? scheme.scheme === 'basic'
        ? 'Basic authentication'
        : code('Authorization: Bearer …')
      : scheme.type === 'apiKey'
        ? `${scheme.in ?? ''} ${code(scheme.name ?? '')}`
        : 'OAuth 2.0, client credentials'
  return [`${code(name)}<br>${how}`, scheme.description ?? '']
}

// ── A page per tag ──────────────────────────────────────────────────────────────────────────────────────────────────

function partPage(document: OpenApi, { name, description, operations }: Part, shared: ReadonlySet<string>): string {
  // The schemas that the page links to. The set grows while they are written, because they link to others.
  const linked = new Set<string>()
  const link: SchemaLink = (schema) => {
    if (!shared.has(schema)) linked.add(schema)
    return `${shared.has(schema) ? '../http.md' : ''}#${schema.toLowerCase()}`
  }
  const own = operations.filter(isOwn)
  const commonErrors = commonErrorsOf(document, own)
  const page: Page = { document, link, commonErrors }
  const written = own.flatMap((operation) => operationText(page, operation, operations))
  const schemas: string[] = []
  for (const schema of linked) schemas.push(...schemaText(document, schema, link))
  return joined([
    heading(`HTTP API: ${name}`, SOURCE).trimEnd(),
    description,
    ...written,
    ...(commonErrors.size === 0 ? [] : [`## ${COMMON_ERRORS}`, commonErrorsText(page, own)]),
    ...(schemas.length === 0 ? [] : ['## Schemas', ...schemas]),
  ])
}

function operationText(page: Page, operation: OperationNode, all: readonly OperationNode[]): string[] {
  const { summary, description, parameters = [], requestBody } = operation
  const role = operation['x-role']
  const aliases = all.filter((other) => other['x-alias-of'] === operation.path)
  const [type = '', media] = Object.entries(requestBody?.content ?? {})[0] ?? []
  return [
    `## ${code(nameOf(operation))}`,
    `${summary}.${role === undefined ? '' : ` Requires the role ${code(role)}.`}`,
    ...(description === undefined ? [] : [description]),
    fence('sh', curlOf(operation)),
    ...(aliases.length === 0
      ? []
      : [
          table(
            ['Other path', 'Meaning'],
            aliases.map((alias) => [code(nameOf(alias)), alias.summary]),
          ),
        ]),
    ...(parameters.length === 0 ? [] : [parameterTable(page, parameters)]),
    ...(media?.schema === undefined ? [] : [`**Body**${formText(type)}`, fieldTable(resolved(page.document, media.schema), page.link)]),
    ...otherResponsesOf(page.document, operation).flatMap(({ status, response }, at) =>
      responseText(page, status, response).concat(at === 0 ? exampleText(page.document, response) : []),
    ),
    ...errorText(page, operation),
  ]
}

function parameterTable({ link }: Page, parameters: NonNullable<OperationNode['parameters']>): string {
  return table(
    ['Parameter', 'Meaning'],
    parameters.map(({ name, in: place, required, description, schema }) => [
      `${code(name)}<br>${typeText(schema, link)}, ${place}${required ? ', required' : ''}`,
      meaningText({ ...schema, description }),
    ]),
  )
}

function responseText({ link }: Page, status: string, { description, content }: ResponseNode): string[] {
  const [type = 'application/json', media] = Object.entries(content ?? {})[0] ?? []
  const event = media?.['x-event-data']
  const schema = event ?? media?.schema
  const isNamed = schema !== undefined && schemaName(schema) !== undefined
  // The status says this already.
  const about = description.startsWith('Success') ? '' : ` ${description}`
  return [
    `**Response ${code(status)}**${formText(type)}${about}${isNamed ? ` ${typeText(schema, link)}` : ''}`,
    ...(event === undefined ? [] : [event.description ?? 'The data of each event:']),
    ...(schema?.oneOf === undefined ? [] : ['One of these objects:']),
    ...[schema?.oneOf ?? schema ?? []].flat().flatMap((one) => (one.properties === undefined ? [] : fieldsText(fieldTable(one, link)))),
  ]
}

/** Long tables are collapsed, so that a page does not consist mostly of tables. */
function fieldsText(fields: string): string[] {
  return fields.split('\n').length > MAX_OPEN_LINES ? folded('Fields of the response', fields) : [fields]
}

function folded(summary: string, content: string): string[] {
  return [`<details>\n<summary>${summary}</summary>`, content, '</details>']
}

function exampleText(document: OpenApi, { content }: ResponseNode): string[] {
  const media = content?.['application/json']
  const example = media?.example ?? exampleOf(document, media?.schema ?? { type: 'object' })
  if (JSON.stringify(example) === '{}') return []
  return folded('Example response', fence('json', JSON.stringify(example, null, 2)))
}

function schemaText(document: OpenApi, name: string, link: SchemaLink): string[] {
  const schema = resolved<SchemaNode>(document, { $ref: `#/components/schemas/${name}` })
  return [
    `### ${name}`,
    ...(schema.description === undefined ? [] : [schema.description]),
    ...(schema.oneOf === undefined ? [] : [`One of ${schema.oneOf.map((one) => typeText(one, link)).join(', ')}.`]),
    ...(schema.properties === undefined ? [] : [fieldTable(schema, link)]),
  ]
}

// ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The errors that all operations with authentication on a page have in common. They are listed once, at its end. */
function commonErrorsOf(document: OpenApi, operations: readonly OperationNode[]): Set<string> {
  const [first, ...others] = operations.filter(isAuthenticated).map((operation) => codesOf(document, operation))
  if (first === undefined || others.length === 0) return new Set()
  return new Set(first.filter((each) => others.every((codes) => codes.includes(each))))
}

function commonErrorsText({ document, commonErrors }: Page, operations: readonly OperationNode[]): string {
  const rows = errorsOf(document, operations.find(isAuthenticated) as OperationNode)
    .map(({ status, codes }) => [status, codes.filter((each) => commonErrors.has(each))] as const)
    .filter(([, codes]) => codes.length > 0)
  return table(
    ['Status', 'Codes'],
    rows.map(([status, codes]) => [status, codeLinks(codes)]),
  )
}

function errorText({ document, commonErrors }: Page, operation: OperationNode): string[] {
  const hasCommon = isAuthenticated(operation) && commonErrors.size > 0
  const rows = errorsOf(document, operation)
    .map(({ status, codes }) => ({ status, codes: hasCommon ? codes.filter((each) => !commonErrors.has(each)) : codes }))
    .filter(({ codes }) => codes.length > 0)
    .map(({ status, codes }) => `${status} ${codeLinks(codes)}`)
  if (hasCommon) rows.push(`[${COMMON_ERRORS.toLowerCase()}](#${COMMON_ERRORS.toLowerCase().replaceAll(' ', '-')})`)
  return rows.length === 0 ? [] : [`**Errors** ${rows.join(' · ')}`]
}

function codeLinks(codes: readonly string[]): string {
  return codes.map((each) => `[${code(each)}](../errors.md#${each})`).join(', ')
}

function codesOf(document: OpenApi, operation: OperationNode): string[] {
  return errorsOf(document, operation).flatMap(({ codes }) => codes)
}

function isAuthenticated({ security }: OperationNode): boolean {
  return security.length > 0
}

// ── Names and links ─────────────────────────────────────────────────────────────────────────────────────────────────

export function nameOf({ method, path }: OperationNode): string {
  return `${method.toUpperCase()} ${path}`
}

/** The anchor that GitHub and the site give to the heading of an operation. */
function anchorOf(operation: OperationNode): string {
  return nameOf(operation)
    .toLowerCase()
    .replaceAll(/[^a-z0-9 _-]/g, '')
    .replaceAll(' ', '-')
}

/** Whether the operation is not just an alias of another. */
function isOwn(operation: OperationNode): boolean {
  return operation['x-alias-of'] === undefined
}

function formText(type: string): string {
  return type === 'application/json' ? '' : ` (${type})`
}

/** Schemas that operations of several tags use, directly or through others. */
function sharedSchemas(document: OpenApi, parts: readonly Part[]): Set<string> {
  const seen = new Set<string>()
  const shared = new Set<string>()
  for (const { operations } of parts) {
    const own = new Set<string>()
    addReferences(document, operations, own)
    for (const name of own) (seen.has(name) ? shared : seen).add(name)
  }
  return shared
}

function addReferences({ components }: OpenApi, node: unknown, names: Set<string>): void {
  for (const [, kind = '', name = ''] of JSON.stringify(node).matchAll(/"#\/components\/(schemas|responses)\/([^"]+)"/g)) {
    if (kind === 'schemas') {
      if (names.has(name)) continue
      names.add(name)
    }
    addReferences({ components } as OpenApi, components[kind as 'schemas' | 'responses'][name], names)
  }
}

function joined(blocks: readonly string[]): string {
  return `${blocks.join('\n\n')}\n`
}
