// Parses user ids that are typed or pasted, one per line, and formats lists.

/** Returns each id once, in order. Surrounding white space is not part of an id. */
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
    ? `${userIds.length.toLocaleString()} users are too many for one request. Enter at most ${MAX_USERS.toLocaleString()}.`
    : null
}

/** `u-1, u-2 and 3 more`. */
export function joinNames(names: readonly string[], max = 3): string {
  if (names.length <= max) return names.length < 2 ? (names[0] ?? '') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`
  return `${names.slice(0, max).join(', ')} and ${(names.length - max).toLocaleString()} more`
}

interface Receiver {
  id: string
  enabled: boolean
  sourceIds: readonly string[]
}

/** The destinations that get a delete message: enabled, and connected to one of these sources. Null means all sources. */
export function notifiedDestinations<T extends Receiver>(destinations: readonly T[], sourceIds: readonly string[] | null): T[] {
  return destinations.filter(({ enabled, sourceIds: of }) => enabled && of.some((id) => sourceIds === null || sourceIds.includes(id)))
}

export interface Target {
  userId: string
  destinationId: string | null
}

/** The destinations that these targets wait for, with the users of each. */
export function waitingFor(targets: readonly Target[]): { destinationId: string; users: string[] }[] {
  const users = new Map<string, Set<string>>()
  for (const { destinationId, userId } of targets)
    if (destinationId !== null) users.set(destinationId, (users.get(destinationId) ?? new Set()).add(userId))
  return [...users].map(([destinationId, own]) => ({ destinationId, users: [...own] }))
}
