// What `switchyard import-workspace` would create from an export, or has created. Secrets are part of the requests only, never of what is shown.

import type { ConditionalFilter } from '../../model/configuration.ts'

/** In `origin`, before the id at Segment. */
export const ORIGIN_PREFIX = 'segment:'

/** `created` and `failed` are results of a run; a plan has the others. */
export type Outcome = 'create' | 'exists' | 'needs_secrets' | 'not_supported' | 'created' | 'failed'

interface Planned {
  name: string
  segmentId: string
  outcome: Outcome
  /** Why it is not created; null otherwise. */
  reason: string | null
  /** Parts that are not imported, although the entry itself is. */
  notes: string[]
  /** What a person may want to know, although nothing is missing. */
  hints: string[]
  /** The id of the resource here; null until it is created. */
  id: string | null
  /** Whether it exists without an origin, which is then set, so that later runs recognise it even if it is renamed. */
  adopts: boolean
}

export interface PlannedSource extends Planned {
  writeKeys: readonly string[]
  body: object
}

export interface PlannedSubscription {
  name: string
  action: string
  outcome: 'create' | 'exists' | 'not_supported'
  reason: string | null
  notes: string[]
  body: object
}

export interface PlannedDestination extends Planned {
  type: 'integration' | 'webhook'
  /** The slug at Segment, which is that of the integration here. */
  integration: string
  /** The names by which messages refer to it, besides its own. */
  aliases: string[]
  source: PlannedSource | null
  /** Settings that the export does not contain, because Segment does not reveal secrets. */
  secrets: string[]
  /** Fields of mappings that are masked, by the name of the subscription. */
  mappingSecrets: Map<string, string[]>
  subscriptions: PlannedSubscription[]
  settings: Record<string, unknown>
  conditionalFilters: ConditionalFilter[]
  enabled: boolean
}

export interface PlannedPlan extends Omit<Planned, 'adopts'> {
  /** The sources that it is attached to. */
  sources: PlannedSource[]
  body: { rules: readonly object[] } & Record<string, unknown>
}

export interface WorkspacePlan {
  plans: PlannedPlan[]
  sources: PlannedSource[]
  destinations: PlannedDestination[]
  others: { part: string; count: number; reason: string }[]
}

/** What already exists in the service. */
export interface Existing {
  sources: readonly { id: string; name: string; origin: string | null; writeKeys: readonly string[] }[]
  plans: readonly { id: string; name: string; sourceIds: readonly string[] }[]
  destinations: readonly {
    id: string
    name: string
    origin: string | null
    type: unknown
    integration: unknown
    /** All names by which messages may refer to it. */
    names: readonly string[]
    /** The names of its subscriptions. */
    subscriptions: readonly string[]
    conditionalFilters: readonly ConditionalFilter[]
  }[]
}

/** Values of settings by the name of the destination, from the file of --secrets. Null leaves a setting out. */
export type Secrets = ReadonlyMap<string, Readonly<Record<string, unknown>>>

/** Names are unique here. Entries that share a name get the text of `suffix` in addition, or if that is not enough, their id. */
export function uniqueNames<T extends { id: string; name: string }>(entries: readonly T[], suffix: (entry: T) => string): Map<T, string> {
  const counts = (names: Iterable<string>): Map<string, number> => {
    const found = new Map<string, number>()
    for (const name of names) found.set(name, (found.get(name) ?? 0) + 1)
    return found
  }
  let names = new Map(entries.map((entry) => [entry, entry.name.trim()]))
  for (const addition of [suffix, ({ id }: T) => id]) {
    const taken = counts(names.values())
    names = new Map([...names].map(([entry, name]) => [entry, taken.get(name) === 1 ? name : `${entry.name.trim()} (${addition(entry)})`]))
  }
  return names
}
