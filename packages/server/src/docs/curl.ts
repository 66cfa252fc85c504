// The command that makes a request, to be pasted into a shell. The address stands as ORIGIN until the page knows its own.

import type { Media, OperationNode, SchemaNode } from './reference-document.ts'

/** Cannot be in a document by chance; what takes its place is escaped by whoever puts it there. */
export const ORIGIN = '%ORIGIN%'

const MAX_LINE = 44

export function curlOf({ method, path, parameters = [], requestBody, security, responses }: OperationNode): string {
  const schemes = new Set(security.flatMap((scheme) => Object.keys(scheme)))
  const data = dataLines(requestBody?.content ?? {})
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters.find((known) => known.name === name)?.example ?? name)
  const query = parameters.filter((known) => known.in === 'query' && (known.required || known.example !== undefined))
  const asked = query.map(({ name, example }) => `${name}=${example ?? name.toUpperCase()}`).join('&')
  return [
    `curl ${outputFlag(responses['200']?.content)}'${ORIGIN}${address}${asked === '' ? '' : `?${asked}`}'`,
    // With data, curl sends POST by itself.
    ...(method === 'get' || (method === 'post' && data.length > 0) ? [] : [`-X ${method.toUpperCase()}`]),
    ...(schemes.has('controlToken') ? [`-H "Authorization: Bearer $TOKEN"`] : []),
    ...(schemes.has('writeKey') ? [`-u "$WRITE_KEY:"`] : []),
    ...data,
  ].join(' \\\n  ')
}

/** Events at once, and a file into a file. */
function outputFlag(content: Readonly<Record<string, Media>> = {}): string {
  if ('text/event-stream' in content) return '-N '
  return 'application/octet-stream' in content ? '-o FILE ' : ''
}

function dataLines(content: Readonly<Record<string, Media>>): string[] {
  const [type, media] = Object.entries(content)[0] ?? []
  if (type === 'application/x-www-form-urlencoded') return formLines(media?.schema ?? {})
  if (type !== 'application/json' || media?.example === undefined) return []
  return [`-H 'Content-Type: application/json'`, `-d ${quoted(jsonText(media.example))}`]
}

/** What may be left out is. */
function formLines({ properties = {}, required = [] }: SchemaNode): string[] {
  return Object.entries(properties)
    .filter(([name]) => required.includes(name))
    .map(([name, { const: value }]) =>
      typeof value === 'string' ? `-d ${quoted(`${name}=${value}`)}` : `--data-urlencode "${name}=$${name.toUpperCase()}"`,
    )
}

/** On one line where it fits beside the words. */
function jsonText(value: unknown): string {
  const short = JSON.stringify(value)
  return short.length <= MAX_LINE ? short : JSON.stringify(value, null, 2)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
