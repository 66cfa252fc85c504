import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { createSecretBox, SecretBoxError } from '../../secrets/secret-box.ts'
import { destinationOf } from '../conformance/fixtures.ts'
import type { ChangeTables, ConfigurationChange, VersionRow } from './configuration-rows.ts'
import { versionContext, withVersion, writeVersion } from './destination-versions.ts'

const request = { method: 'POST', path: '', headers: { 'X-Key': 'SECRET-1' }, body: null, format: 'json' } as const
const transformation = { code: 'SECRET-2', timeoutMs: 50, memoryMb: 8 }
const BEFORE = { ...destinationOf(), id: 'dst_1', createdAtMs: 1 }
const UPDATED = { ...BEFORE, request, transformation, version: 2 }

function fakeChange(): { change: ConfigurationChange; rows: VersionRow[] } {
  const rows: VersionRow[] = []
  const tables: Partial<ChangeTables> = {
    putVersion: (row) => rows.push(row),
    versions: (_, below) => rows.filter(({ version }) => version < below).sort((left, right) => right.version - left.version),
  }
  const change: Partial<ConfigurationChange> = {
    secretBox: createSecretBox('a key'),
    tables: tables as ChangeTables,
  }
  return { change: change as ConfigurationChange, rows }
}

test('the content of a version is encrypted as a whole and bound to its place', async () => {
  const { change, rows } = fakeChange()
  await writeVersion(change, BEFORE, UPDATED, { entry: undefined, atMs: 5 })
  const [first, second] = rows
  assert.ok(first && second)
  assert.ok(!JSON.stringify(rows).includes('SECRET-'))
  assert.ok(!JSON.stringify(rows).includes('X-Key'))
  assert.match(change.secretBox.open(second.content, versionContext('dst_1', 2)), /SECRET-1.*SECRET-2/)
  for (const context of [versionContext('dst_1', 1), versionContext('dst_2', 2)])
    assert.throws(() => change.secretBox.open(second.content, context), SecretBoxError)
  // Somebody with access to the rows cannot make one version pass for another.
  first.content = second.content
  await assert.rejects(withVersion(change, UPDATED, { ...UPDATED, version: 1 }), SecretBoxError)
})

test('a destination from before there were versions gets its first version with the second one', async () => {
  const { change, rows } = fakeChange()
  await writeVersion(change, BEFORE, UPDATED, { entry: undefined, atMs: 5 })
  assert.deepEqual(
    rows.map(({ version, atMs }) => [version, atMs]),
    [
      [1, 1],
      [2, 5],
    ],
  )
  const restored = await withVersion(change, UPDATED, { ...UPDATED, version: 1 })
  assert.deepEqual([restored.version, asWebhook(restored).request, asWebhook(restored).transformation], [3, null, null])
})
