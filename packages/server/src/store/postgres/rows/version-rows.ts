// The versions of destinations. They are written in the transaction that changes the destination.

import { VERSION_PAGE_BYTES, type VersionRow } from '../../configuration/configuration-rows.ts'
import type { Ask } from '../session/database.ts'
import { readText, writeText } from '../session/text-columns.ts'

export async function readVersions(ask: Ask, destinationId: string, below: number, limit: number): Promise<VersionRow[]> {
  const { rows } = await ask<VersionRow>(
    `SELECT destination AS "destinationId", version, at AS "atMs", actor AS "actorId", actor_name AS "actorName", content FROM (
       SELECT *, sum(length(content)) OVER (ORDER BY version DESC) - length(content) AS bytes_before
       FROM destination_versions WHERE destination = $1 AND version < $2 ORDER BY version DESC LIMIT $3
     ) AS newest WHERE bytes_before <= ${VERSION_PAGE_BYTES} ORDER BY version DESC`,
    [destinationId, below, limit],
  )
  return rows.map((row) => Object.assign(row, { actorName: row.actorName === null ? null : readText(row.actorName) }))
}

export async function writeVersion(ask: Ask, { destinationId, version, atMs, actorId, actorName, content }: VersionRow): Promise<void> {
  await ask(
    `INSERT INTO destination_versions (destination, version, at, actor, actor_name, content) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (destination, version) DO UPDATE SET content = excluded.content`,
    [destinationId, version, atMs, actorId, actorName === null ? null : writeText(actorName), content],
  )
}
