// Schemas for people: a list of fields, each with its type, its limits and its sentence; and a sample value.

import { type Html, html, NOTHING, prose } from './html.ts'
import { type ReferenceDocument, resolved, type SchemaNode, schemaName } from './reference-document.ts'

const MAX_DEPTH = 4
const SAMPLE_TIME = '2026-11-15T09:00:00.000Z'

/** The fields of an object; of a list, those of its entries. */
export function fieldList(document: ReferenceDocument, schema: SchemaNode, depth = 0): Html {
  const { properties, required = [] } = innermost(document, schema)
  if (properties === undefined || depth > MAX_DEPTH) return NOTHING
  const rows = Object.entries(properties).map(([name, field]) =>
    fieldRow(document, { name, field, required: required.includes(name) }, depth),
  )
  return html`<ul class="fields">${rows}</ul>`
}

export function fieldRow(
  document: ReferenceDocument,
  { name, field, required }: { name: string; field: SchemaNode; required: boolean },
  depth = 0,
): Html {
  const description = field.description ?? resolved(document, field).description ?? ''
  const reference = referenceOf(field)
  const nested = reference === undefined ? fieldList(document, field, depth + 1) : NOTHING
  return html`<li>
<div class="field"><code class="name">${name}</code> <span class="type">${typeText(field)}</span>${required ? html` <span class="required">required</span>` : NOTHING}${field.writeOnly ? html` <span class="required">write-only</span>` : NOTHING}</div>
${description === '' ? NOTHING : html`<div class="about">${prose(description)}</div>`}${limits(field)}${nested === NOTHING ? NOTHING : html`<details><summary>Fields of <code>${name}</code></summary>${nested}</details>`}
</li>`
}

/** In a few words: `string or null`, `list of Source`. */
export function typeText(schema: SchemaNode): Html {
  const name = schemaName(schema)
  if (name !== undefined) return html`<a href="#schema-${name}">${name}</a>`
  if (schema.oneOf !== undefined) return joined(schema.oneOf.map((one) => typeText(one)))
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['anything'])
  return joined(
    types.map((type) => {
      if (type === 'array') return html`list of ${schema.items === undefined ? 'anything' : typeText(schema.items)}`
      if (type === 'object' && typeof schema.additionalProperties === 'object')
        return html`object of ${typeText(schema.additionalProperties)}`
      if (type === 'string' && schema.format === 'date-time') return html`time`
      return html`${type === 'integer' ? 'whole number' : type}`
    }),
  )
}

function limits(schema: SchemaNode): Html {
  const { enum: values, default: fallback, minimum, maximum, minLength, maxLength, minItems, maxItems } = schema
  const parts = [
    ...(values === undefined ? [] : [html`one of ${joined(values.filter((value) => value !== null).map(literal), ', ')}`]),
    ...(schema.const === undefined ? [] : [html`always ${literal(schema.const)}`]),
    ...range(minimum, maximum, ''),
    ...range(minLength, maxLength, ' characters'),
    ...range(minItems, maxItems, ' entries'),
    ...(fallback === undefined ? [] : [html`default ${literal(fallback)}`]),
  ]
  return parts.length === 0 ? NOTHING : html`<div class="limits">${joined(parts, ' · ')}</div>`
}

function range(least: number | undefined, most: number | undefined, things: string): Html[] {
  if (least === undefined && most === undefined) return []
  if (most === undefined && least === 1 && things !== '') return [html`not empty`]
  if (most === undefined) return [html`at least ${number(least ?? 0)}${things}`]
  return [least === undefined ? html`at most ${number(most)}${things}` : html`${number(least)} to ${number(most)}${things}`]
}

function number(value: number): string {
  return value.toLocaleString('en-US')
}

function literal(value: unknown): Html {
  return html`<code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`
}

function joined(parts: readonly Html[], by = ' or '): Html {
  return html`${parts.map((part, index) => (index === 0 ? part : html`${by}${part}`))}`
}

/** A schema that has a place of its own on the page. */
function referenceOf(schema: SchemaNode): string | undefined {
  return (
    schemaName(schema) ?? (schema.items && referenceOf(schema.items)) ?? schema.oneOf?.map(referenceOf).find((name) => name !== undefined)
  )
}

function innermost(document: ReferenceDocument, schema: SchemaNode): SchemaNode {
  const own = resolved(document, schema)
  return own.items === undefined ? own : innermost(document, own.items)
}

// ── Samples ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export function sampleOf(document: ReferenceDocument, schema: SchemaNode, name = '', depth = 0): unknown {
  const own = resolved(document, schema)
  if (own.default !== undefined) return own.default
  if (own.const !== undefined) return own.const
  if (own.enum !== undefined) return own.enum[0]
  if (own.oneOf !== undefined) return sampleOf(document, own.oneOf[0] ?? {}, name, depth)
  const type = typeof own.type === 'string' ? own.type : own.type?.[0]
  switch (type) {
    case 'object': {
      if (depth > MAX_DEPTH) return {}
      const fields = Object.entries(own.properties ?? {})
      return Object.fromEntries(fields.map(([field, node]) => [field, sampleOf(document, node, field, depth + 1)]))
    }
    case 'array':
      return own.items === undefined ? [] : [sampleOf(document, own.items, name, depth + 1)]
    case 'integer':
    case 'number':
      return own.minimum ?? 0
    case 'boolean':
      return true
    case 'string':
      return own.format === 'date-time' || name.endsWith('At') ? SAMPLE_TIME : wordFor(name)
    default:
      return null
  }
}

function wordFor(name: string): string {
  return /^urls?$/.test(name) ? 'https://example.com/webhook' : '…'
}
