// Writes the `curl` command of an operation, to be pasted into a shell. The address and the credentials come from the environment variables that the
// guides use too, so the commands work wherever the service is.

import type { Media, OperationNode, SchemaNode } from './openapi.ts'

const MAX_LINE = 60

export function curlOf({ method, path, parameters = [], requestBody, security, responses }: OperationNode): string {
  const schemes = new Set(security.flatMap((scheme) => Object.keys(scheme)))
  const data = dataLines(requestBody?.content ?? {})
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => parameters.find((known) => known.name === name)?.example ?? name)
  const query = parameters.filter((known) => known.in === 'query' && (known.required || known.example !== undefined))
  const asked = query.map(({ name, example }) => `${name}=${example ?? name.toUpperCase()}`).join('&')
  return [
    `curl ${outputFlag(responses['200']?.content)}"$SWITCHYARD_URL${address}${asked === '' ? '' : `?${asked}`}"`,
    // With data, curl sends POST by itself.
    ...(method === 'get' || (method === 'post' && data.length > 0) ? [] : [`-X ${method.toUpperCase()}`]),
    ...(schemes.has('controlToken') ? [`-H "Authorization: Bearer $SWITCHYARD_TOKEN"`] : []),
    ...(schemes.has('writeKey') ? [`-u "$SWITCHYARD_WRITE_KEY:"`] : []),
    ...data,
  ].join(' \\\n  ')
}

/** For an event stream: shows events as they arrive. For a file: saves it. */
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

/** Without optional fields. */
function formLines({ properties = {}, required = [] }: SchemaNode): string[] {
  return Object.entries(properties)
    .filter(([name]) => required.includes(name))
    .map(([name, { const: value }]) =>
      typeof value === 'string' ? `-d ${quoted(`${name}=${value}`)}` : `--data-urlencode "${name}=$${name.toUpperCase()}"`,
    )
}

/** On one line if it is short. */
function jsonText(value: unknown): string {
  const short = JSON.stringify(value)
  return short.length <= MAX_LINE ? short : JSON.stringify(value, null, 2)
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
