// Anybody who may create a lake may give it the address of another one, and sources of both may have the same name. Nothing of the other lake is read,
// deleted, merged or queried because of that.

import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createWarehouse } from '../engines.ts'
import { idsOf, readTable, temporaryLake } from '../fixtures/lake-reading.ts'
import { message, TestLoads } from '../fixtures/messages.ts'
import { FolderLake } from '../sql/readable-lake.ts'
import type { Warehouse } from '../warehouse.ts'
import { FolderFiles } from './folder-files.ts'

const OWNER = { installation: 'ins_1', destinationId: 'dst_owner', sourceId: 'src_1' }
const EVER = { afterMs: 0, beforeMs: Date.UTC(2030, 0) }

function openAs(folder: string, destinationId: string): Warehouse {
  return createWarehouse({ engine: 'parquet', url: pathToFileURL(folder).href }, { lakeFolder: folder, destinationId })
}

test('a lake with the address of another one and a source of the same name sees and changes nothing of it', async () => {
  using lake = temporaryLake()
  const loads = new TestLoads('parquet')
  await loads.load(openAs(lake.folder, 'dst_owner'), 'load_1', [message({ messageId: 'm1', userId: 'ada' })], { owner: OWNER })
  const { schema } = loads
  const nowMs = Date.UTC(2029, 0)
  const steps: Record<string, (warehouse: Warehouse) => Promise<unknown> | undefined> = {
    'the archive': (warehouse) => warehouse.readArchive?.({ schema, ...EVER }, null, 10),
    'the size of the archive': (warehouse) => warehouse.archiveSize?.({ schema, ...EVER }),
    'a deletion': (warehouse) => warehouse.deleteUsers({ schema, userIds: ['ada'], cursor: null }),
    'the upkeep': (warehouse) => warehouse.upkeep({ schema, nowMs, openLoads: async () => [], keepDays: 1, cursor: null }),
  }
  const tablesAs = async (destinationId: string): Promise<string[]> => {
    const found = await new FolderLake(new FolderFiles(lake.folder), lake.folder, destinationId).tables([schema.name])
    return found.map(({ table }) => table)
  }
  for (const [what, step] of Object.entries(steps))
    await assert.rejects(async () => step(openAs(lake.folder, 'dst_other')), /tables of another installation or destination/, what)
  assert.deepEqual(await tablesAs('dst_other'), [])
  assert.deepEqual(idsOf(await readTable(lake.folder, `${schema.name}/tracks`)), ['m1'])

  assert.ok((await tablesAs('dst_owner')).includes('tracks'))
  assert.equal(await openAs(lake.folder, 'dst_owner').archiveSize?.({ schema, ...EVER }), 1)
  // After a change by hand, nobody knows whose it is.
  writeFileSync(join(lake.folder, schema.name, '_switchyard.json'), 'not json')
  assert.deepEqual(await tablesAs('dst_owner'), [])
  rmSync(join(lake.folder, schema.name, '_switchyard.json'))
  assert.ok((await tablesAs('dst_owner')).includes('tracks'))
})
