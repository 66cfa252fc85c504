// Finds resources by id or by name.

import { suggestion } from '../../api/nearest.ts'
import type { Api } from '../service/api.ts'
import { CommandProblem, EXIT, UsageProblem } from '../service/problem.ts'
import type { Call } from './command.ts'

const KINDS = {
  source: { path: '/api/sources', prefix: 'src_', list: 'switchyard sources' },
  destination: { path: '/api/destinations', prefix: 'dst_', list: 'switchyard destinations' },
  'OAuth application': { path: '/api/oauth-apps', prefix: 'app_', list: 'switchyard oauth-apps' },
  plan: { path: '/api/plans', prefix: 'pln_', list: 'switchyard plan list' },
  token: { path: '/api/tokens', prefix: 'tok_', list: 'switchyard tokens' },
} as const

export type Kind = keyof typeof KINDS

export async function idOf(api: Api, kind: Kind, reference: string): Promise<string> {
  const { path, prefix, list } = KINDS[kind]
  if (reference.startsWith(prefix)) return reference
  const named: { id: string; name: string }[] = []
  for await (const entry of api.all(path)) named.push({ id: String(entry['id']), name: String(entry['name']) })
  const found = named.filter(({ id, name }) => id === reference || name === reference)
  if (found.length === 1) return (found[0] as { id: string }).id
  if (found.length > 1)
    throw new UsageProblem(`Several ${kind}s have the name ${reference}. Use an id instead: ${found.map(({ id }) => id).join(' or ')}.`)
  const near = suggestion(
    reference,
    named.map(({ name }) => name),
  )
  throw new CommandProblem(
    `There is no ${kind} with the id or name ${reference}. ${near === undefined ? `Run \`${list}\` for a list.` : `Did you mean ${near}?`}`,
    EXIT.notFound,
  )
}

/** The path of the resource that the first argument names, or of the one with this id. */
export async function resourcePath({ api, arguments: [reference = ''] }: Call, kind: Kind, id?: string): Promise<string> {
  return KINDS[kind].path + at`/${id ?? (await idOf(api, kind, reference))}`
}

export async function idsOf(api: Api, kind: Kind, references: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const reference of references) ids.push(await idOf(api, kind, reference))
  return ids
}

export async function optionalId(api: Api, kind: Kind, reference: string | undefined): Promise<string | undefined> {
  return reference === undefined ? undefined : await idOf(api, kind, reference)
}

/** The names of all resources of a kind, by id. */
export async function namesOf(api: Api, kind: Kind): Promise<Map<unknown, string>> {
  const names = new Map<unknown, string>()
  for await (const { id, name } of api.all(KINDS[kind].path)) names.set(id, String(name))
  return names
}

/** A path with its parts URL-encoded. */
export function at(strings: TemplateStringsArray, ...parts: readonly string[]): string {
  return strings.map((text, index) => text + (index < parts.length ? encodeURIComponent(parts[index] as string) : '')).join('')
}
