// The paths of privacy rules: keys separated by dots. `*` stands for all elements of an array and all keys of an object, and a backslash
// makes the dot, star or backslash after it part of a key. A rule that would make a message invalid, or that would change how it is
// processed, is refused here, when the source is saved, because the message itself was checked before the rules are applied.

export const PRIVACY_ACTIONS = ['drop', 'hash', 'mask'] as const

/** What is done with the value at a path of a message. `*` stands for all elements of an array and all keys of an object. */
export interface PrivacyRule {
  path: string
  action: (typeof PRIVACY_ACTIONS)[number]
}

/** A key, or null for `*`. */
export type Segment = string | null

export const MAX_PATH_LENGTH = 500
const MAX_SEGMENTS = 20

/** The service needs them as they are: to check, find, order and route messages. */
const UNCHANGEABLE = new Set(['type', 'messageId', 'event', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt', 'writeKey'])
/** Dropped or masked, they would no longer tell users apart. */
export const IDENTITIES: ReadonlySet<string> = new Set(['userId', 'anonymousId', 'previousId', 'groupId'])
/** They must stay objects. */
const OBJECTS = new Set(['context', 'traits', 'properties'])

/** The fields of a message that `*` at the start of a path does not stand for. */
export const NOT_IN_WILDCARD: ReadonlySet<string> = new Set([...UNCHANGEABLE, ...IDENTITIES, 'integrations'])

/** Returns the segments, or what is wrong with the path, as the end of a sentence that starts with the name of the field. */
export function parsePath(path: string): readonly Segment[] | string {
  const segments: Segment[] = []
  let key = ''
  let isStar = false
  for (let at = 0; at <= path.length; at++) {
    const char = path[at]
    if (char === undefined || char === '.') {
      if (key === '' && !isStar) return `has an empty key at position ${at + 1}. Remove the extra dot`
      segments.push(isStar ? null : key)
      key = ''
      isStar = false
    } else if (isStar || (char === '*' && key !== ''))
      return `has a * at position ${isStar ? at : at + 1} that is not a whole key. Write \\* if the key contains a star`
    else if (char === '*') isStar = true
    else if (char !== '\\') key += char
    else {
      const escaped = path[++at]
      if (escaped !== '.' && escaped !== '*' && escaped !== '\\')
        return `has a backslash at position ${at} that is not followed by a dot, a star or a backslash. Write \\\\ if the key contains a backslash`
      key += escaped
    }
  }
  return segments.length > MAX_SEGMENTS ? `has ${segments.length} keys, and at most ${MAX_SEGMENTS} are allowed` : segments
}

/** Returns what is wrong with a rule; null if it can be saved. */
export function ruleProblem({ path, action }: PrivacyRule): { field: keyof PrivacyRule; problem: string } | null {
  const segments = parsePath(path)
  if (typeof segments === 'string') return { field: 'path', problem: segments }
  const [first = null, second] = segments
  if (first === null)
    return second === undefined ? { field: 'path', problem: 'must name a field, such as traits.* for everything in the traits' } : null
  if (UNCHANGEABLE.has(first))
    return { field: 'path', problem: `is ${first}, which the service needs unchanged. Choose another field of the message` }
  if (first === 'integrations' && segments.length < 3) {
    return {
      field: 'path',
      problem:
        'is part of what chooses the destinations. Only settings of an integration can be changed, such as integrations.Acme.clientId',
    }
  }
  if (IDENTITIES.has(first)) {
    if (second !== undefined) return { field: 'path', problem: `continues after ${first}, which is a string. Use ${first} alone` }
    if (action !== 'hash')
      return { field: 'action', problem: `must be hash for ${first}, because different users would otherwise become the same user` }
  }
  if (OBJECTS.has(first) && second === undefined && action !== 'drop')
    return { field: 'action', problem: `must be drop for ${first}, which is an object. Use ${first}.* to ${action} each value in it` }
  return null
}
