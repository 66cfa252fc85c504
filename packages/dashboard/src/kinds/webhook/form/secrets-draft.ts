// The secrets that the path, the headers and the body of the request read as {{secrets.name}}, while they are edited, and whether stored secrets may be
// kept. They are write-only: an empty value keeps what is stored. Pure.

import { FIELDS, SECRET_NAME } from '../../../api/rules.ts'
import type { Noted } from '../../../destination/form/draft.ts'
import { lengthProblem, type Problem } from '../../../destination/form/validation.ts'

export interface NamedSecret {
  name: string
  /** Empty: the stored one is kept. */
  value: string
  isStored: boolean
}

export function secretsDraftOf(secrets: Readonly<Record<string, string>>): NamedSecret[] {
  return Object.keys(secrets).map((name) => ({ name, value: '', isStored: true }))
}

/** What the API gets: secrets that were entered, and null for those that were removed. */
export function secretsBodyOf(before: readonly NamedSecret[], after: readonly NamedSecret[]): Record<string, string | null> {
  const names = new Set(after.map(({ name }) => name))
  const removed = before.filter(({ name }) => !names.has(name)).map(({ name }): [string, null] => [name, null])
  const entered = after.filter(({ value }) => value !== '').map(({ name, value }): [string, string] => [name, value])
  return Object.fromEntries<string | null>([...removed, ...entered])
}

/** `isMoved`: the URLs point to another server, to which stored secrets are not sent. */
export function secretProblems(secrets: readonly NamedSecret[], isMoved: boolean): Noted[] {
  const seen = new Set<string>()
  return secrets.flatMap(({ name, value, isStored }, at): Noted[] => {
    const isDuplicate = seen.has(name)
    seen.add(name)
    return [
      [`secrets[${at}].name`, isDuplicate ? 'This name is already in the list.' : nameProblem(name)],
      [`secrets[${at}].value`, valueProblem(value, isStored, isMoved)],
    ]
  })
}

function nameProblem(name: string): Problem {
  if (name === '') return 'Enter a name.'
  return SECRET_NAME.test(name)
    ? null
    : 'Use up to 64 letters, digits, underscores and hyphens. The first must be a letter or an underscore.'
}

function valueProblem(value: string, isStored: boolean, isMoved: boolean): Problem {
  if (value !== '') return lengthProblem(value, FIELDS['secrets[]'])
  if (!isStored) return 'Enter the secret.'
  return isMoved ? AGAIN : null
}

export const AGAIN = 'Enter it again: the URL points to another server, and stored secrets are not sent there.'

/** The servers of URLs: scheme, host and port. Invalid URLs are left out. */
export function originsOf(urls: readonly string[]): string[] {
  return [...new Set(urls.filter((url) => URL.canParse(url)).map(originOf))]
}

function originOf(text: string): string {
  const { origin, protocol, host } = new URL(text)
  // Only URLs of the web have an origin.
  return origin === 'null' ? `${protocol}//${host.toLowerCase()}` : origin
}

/** `stored`: the servers that secrets were given for; null for a new destination. */
export function isMovedFrom(stored: readonly string[] | null, urls: readonly string[]): boolean {
  return stored !== null && originsOf(urls).some((origin) => !stored.includes(origin))
}
