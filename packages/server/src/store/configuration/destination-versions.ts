// The versions of a destination: what it sent, and since when. A version is written in the transaction that changes the destination, so
// that neither exists without the other. Its content may contain credentials, in header values and in code, so it is encrypted as a whole
// and bound to its place.

import { isDeepStrictEqual } from 'node:util'
import { contentOf, kindOf } from '../../destinations/kinds.ts'
import type { Destination, DestinationContent, DestinationType } from '../../model/configuration.ts'
import type { SecretBox } from '../../secrets/secret-box.ts'
import { type DestinationVersion, type NewAuditEntry, type Page, type PageRequest, UnknownVersion } from '../store.ts'
import type { ConfigurationChange, ConfigurationChanges, VersionRow } from './configuration-rows.ts'

/** The newest versions that are kept of each destination. */
export const VERSIONS_KEPT = 100
/** Greater than the number of every version. */
const NO_BOUND = 2 ** 31 - 1

type Content = Pick<DestinationVersion, 'content' | 'changed' | 'restoredFrom' | 'origins'>

/**
 * Returns the destination as it is to be stored: with the number of its version, which is a new one if its content changes, and with the
 * content of another version if it is to be restored. Throws UnknownVersion.
 */
export async function withVersion(change: ConfigurationChange, before: Destination, asked: Destination): Promise<Destination> {
  const updated = asked.version === before.version ? asked : { ...asked, ...(await contentToRestore(change, before, asked.version)) }
  const isChanged = !isDeepStrictEqual(contentOf(before), contentOf(updated))
  return { ...updated, version: before.version + (isChanged ? 1 : 0) }
}

/** Writes the version of a destination that was created (`before` is null) or changed. Writes nothing if its content has not changed. */
export async function writeVersion(
  change: ConfigurationChange,
  before: Destination | null,
  updated: Destination,
  { entry, atMs, restoredFrom = null }: { entry: NewAuditEntry | undefined; atMs: number; restoredFrom?: number | null },
): Promise<void> {
  if (before?.version === updated.version) return
  // Destinations from before there were versions have none stored.
  if (before?.version === 1) {
    const first = {
      version: 1,
      atMs: before.createdAtMs,
      actor: null,
      content: contentOf(before),
      changed: [],
      restoredFrom: null,
      origins: kindOf(before).origins(before),
    }
    await change.tables.putVersion(rowOf(before.id, first, change.secretBox))
  }
  const changed = before === null ? [] : changedSettings(contentOf(before), contentOf(updated))
  const actor = entry?.actor ?? null
  const next = {
    version: updated.version,
    atMs,
    actor,
    content: contentOf(updated),
    changed,
    restoredFrom,
    origins: kindOf(updated).origins(updated),
  }
  await change.tables.putVersion(rowOf(updated.id, next, change.secretBox))
  if (updated.version > VERSIONS_KEPT) await change.tables.dropVersions(updated.id, updated.version - VERSIONS_KEPT)
}

async function contentToRestore(change: ConfigurationChange, { id, type }: Destination, version: number): Promise<DestinationContent> {
  const [row] = await change.tables.versions(id, version + 1, 1)
  if (row?.version !== version) throw new UnknownVersion()
  return versionOf(row, type, change.secretBox).content
}

export function dropAllVersions(change: ConfigurationChange, destinationId: string): unknown {
  return change.tables.dropVersions(destinationId, NO_BOUND)
}

/** Encrypts the versions of a destination with another key. */
export async function reencryptVersions(change: ConfigurationChange, destinationId: string, box: SecretBox): Promise<void> {
  for (let below = NO_BOUND; ; ) {
    const rows = await change.tables.versions(destinationId, below, VERSIONS_KEPT)
    for (const row of rows) {
      const context = versionContext(destinationId, row.version)
      await change.tables.putVersion({ ...row, content: box.seal(change.secretBox.open(row.content, context), context) })
    }
    const last = rows.at(-1)
    if (last === undefined) return
    below = last.version
  }
}

export async function listVersions(
  changes: ConfigurationChanges,
  destination: Destination,
  { limit, cursor }: PageRequest,
): Promise<Page<DestinationVersion>> {
  const below = cursor === null ? NO_BOUND : Number(cursor)
  const rows = await changes.versions(destination.id, below, limit)
  const data = rows.map((row) => versionOf(row, destination.type, changes.secretBox))
  const last = data.at(-1)
  if (last === undefined && cursor === null) return { data: [unstoredVersion(destination)], next: null }
  const hasMore = last !== undefined && (await changes.versions(destination.id, last.version, 1)).length > 0
  return { data, next: hasMore ? String(last.version) : null }
}

export async function readVersion(
  changes: ConfigurationChanges,
  destination: Destination,
  version: number,
): Promise<DestinationVersion | undefined> {
  const [row] = await changes.versions(destination.id, version + 1, 1)
  if (row === undefined && version === destination.version) return unstoredVersion(destination)
  return row?.version === version ? versionOf(row, destination.type, changes.secretBox) : undefined
}

/** The place that the content of a version is bound to. */
export function versionContext(destinationId: string, version: number): string {
  return `${destinationId}.versions.${version}`
}

/** The only version of a destination from before there were versions. */
function unstoredVersion(destination: Destination): DestinationVersion {
  const { version, createdAtMs } = destination
  return { version, atMs: createdAtMs, actor: null, content: contentOf(destination), changed: [], restoredFrom: null }
}

function rowOf(destinationId: string, { version, atMs, actor, ...content }: DestinationVersion, box: SecretBox): VersionRow {
  const sealed = box.seal(JSON.stringify(content satisfies Content), versionContext(destinationId, version))
  return { destinationId, version, atMs, actorId: actor?.id ?? null, actorName: actor?.name ?? null, content: sealed }
}

function versionOf(
  { destinationId, version, atMs, actorId, actorName, content }: VersionRow,
  type: DestinationType,
  box: SecretBox,
): DestinationVersion {
  const opened = JSON.parse(box.open(content, versionContext(destinationId, version))) as Content
  const actor = actorId === null ? null : { id: actorId, name: actorName ?? '' }
  return { version, atMs, actor, ...opened, content: contentOf({ ...opened.content, type }) }
}

/** The settings that differ: as a whole if one of both is off, otherwise by their fields. */
function changedSettings(before: DestinationContent, after: DestinationContent): string[] {
  return Object.keys(after).flatMap((name) => {
    const [was, is] = [before[name], after[name]]
    if (isDeepStrictEqual(was, is)) return []
    if (was === null || is === null) return [name]
    if (!Array.isArray(was) || !Array.isArray(is)) return changedFields(was as object, is as object).map((field) => `${name}.${field}`)
    if (was.length !== is.length) return [name]
    return was.flatMap((old: object, at) => changedFields(old, is[at] as object).map((field) => `${name}[${at}].${field}`))
  })
}

function changedFields(was: object, is: object): string[] {
  const [left, right] = [new Map<string, unknown>(Object.entries(was)), new Map<string, unknown>(Object.entries(is))]
  return [...new Set([...left.keys(), ...right.keys()])].filter((field) => !isDeepStrictEqual(left.get(field), right.get(field)))
}
