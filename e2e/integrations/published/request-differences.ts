// Compares the requests that arrived with those that are published.

import { isDeepStrictEqual } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { GatewayRequest } from '../gateway/recording-gateway.ts'
import type { PublishedRequest } from './facts/published-fact.ts'

/** The published requests that did not arrive, and the requests that arrived and are not published. Empty if all agree. */
export function requestDifferences(published: readonly PublishedRequest[], arrived: readonly GatewayRequest[]): string[] {
  const left = [...arrived]
  const differences: string[] = []
  for (const expected of published) {
    const at = left.findIndex((request) => requestProblem(expected, request) === null)
    if (at !== -1) left.splice(at, 1)
    else differences.push(`missing: ${JSON.stringify(expected)}${closest(expected, left)}`)
  }
  return [...differences, ...left.map((request) => `not published: ${lineOf(request)} ${JSON.stringify(bodyOf(request))}`)]
}

function closest(expected: PublishedRequest, requests: readonly GatewayRequest[]): string {
  const same = requests.find((request) => lineOf(request, expected) === inOrder(expected.request))
  return same === undefined ? '' : ` (${requestProblem(expected, same)})`
}

function requestProblem(expected: PublishedRequest, actual: GatewayRequest): string | null {
  const { request, partOfQuery = {}, headers = {}, body, partOfBody } = expected
  if (lineOf(actual, expected) !== inOrder(request)) return 'another method or URL'
  const query = new URLSearchParams(actual.path.replace(/^[^?]*/, ''))
  for (const [name, value] of Object.entries(partOfQuery))
    if (query.get(name) !== value) return `${name} in the query is ${query.get(name)}`
  for (const [name, value] of Object.entries(headers))
    if (actual.headers[name.toLowerCase()] !== value) return `${name} is ${actual.headers[name.toLowerCase()]}`
  const sent = bodyOf(actual)
  if (body !== undefined && !isDeepStrictEqual(sent, body)) return `the body is ${JSON.stringify(sent)}`
  if (partOfBody !== undefined && !contains(sent, partOfBody)) return `the body is ${JSON.stringify(sent)}`
  return null
}

/** The gateway stands for servers that all speak HTTPS. */
function lineOf({ method, host, path }: GatewayRequest, { partOfQuery }: Pick<PublishedRequest, 'partOfQuery'> = {}): string {
  return inOrder(`${method} https://${host}${partOfQuery === undefined ? path : path.replace(/\?.*/, '')}`)
}

/** The order of the fields of a query says nothing. */
function inOrder(line: string): string {
  const [address = '', query] = line.split('?', 2)
  return query === undefined ? address : `${address}?${query.split('&').sort().join('&')}`
}

function bodyOf({ headers, bytes }: GatewayRequest): unknown {
  const text = (headers['content-encoding'] === 'gzip' ? gunzipSync(bytes) : bytes).toString()
  if (headers['content-type']?.startsWith('application/x-www-form-urlencoded')) return Object.fromEntries(new URLSearchParams(text))
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function contains(actual: unknown, part: unknown): boolean {
  if (Array.isArray(part))
    return Array.isArray(actual) && actual.length === part.length && part.every((item, at) => contains(actual[at], item))
  if (typeof part !== 'object' || part === null) return actual === part
  if (typeof actual !== 'object' || actual === null) return false
  return Object.entries(part).every(([key, value]) => contains((actual as Record<string, unknown>)[key], value))
}
