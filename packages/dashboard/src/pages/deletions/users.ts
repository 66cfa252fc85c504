// Users as they are typed or pasted, one in each line, and what a request for them will do, in words.

/** Each once, in their order. Blanks around them are no part of an id that anybody meant. */
export function parseUserIds(text: string): string[] {
  return [
    ...new Set(
      text
        .split(/\r?\n/)
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ),
  ]
}

export const MAX_USERS = 5_000

export function usersProblem(userIds: readonly string[]): string | null {
  return userIds.length > MAX_USERS
    ? `${userIds.length.toLocaleString()} users are too many for one request: at most ${MAX_USERS.toLocaleString()}.`
    : null
}

/** `u-1, u-2 and 3 more`. */
export function joinNames(names: readonly string[], most = 3): string {
  if (names.length <= most) return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  return `${names.slice(0, most).join(', ')} and ${(names.length - most).toLocaleString()} more`
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`
}

interface Receiver {
  id: string
  enabled: boolean
  sourceIds: readonly string[]
}

/** The destinations that are told: the enabled ones that get something of these sources. Null is all sources. */
export function notifiedDestinations<T extends Receiver>(destinations: readonly T[], sourceIds: readonly string[] | null): T[] {
  return destinations.filter(({ enabled, sourceIds: of }) => enabled && of.some((id) => sourceIds === null || sourceIds.includes(id)))
}
