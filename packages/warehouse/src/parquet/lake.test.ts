import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createWarehouse } from '../engines.ts'
import { idsOf, manifestOf, readTable, scanTable, temporaryLake } from '../fixtures/lake-reading.ts'
import { message, TestLoads } from '../fixtures/messages.ts'
import type { ArchivePage, Progress, Warehouse, WarehouseFailure } from '../warehouse.ts'
import { FolderFiles } from './folder-files.ts'
import { ParquetLake } from './lake.ts'
import type { LakeFiles } from './lake-files.ts'
import { withReader } from './table-files.ts'

const DAY_MS = 86_400_000
const NOW = Date.UTC(2026, 10, 19, 12)

function open(folder: string): Warehouse {
  return createWarehouse({ engine: 'parquet', url: pathToFileURL(folder).href }, { lakeFolder: folder })
}

async function untilDone(step: (cursor: string | null) => Promise<Progress>): Promise<Progress> {
  const total: Progress = { cursor: null, changed: 0, problems: [] }
  do {
    const { cursor, changed, problems } = await step(total.cursor)
    total.cursor = cursor
    total.changed += changed
    total.problems.push(...problems)
  } while (total.cursor !== null)
  return total
}

test('a load writes one file per table and day, and a manifest that says what is in them', async () => {
  using lake = temporaryLake()
  const loads = new TestLoads('parquet')
  const { result } = await loads.load(open(lake.folder), 'load_1', [
    message({ messageId: 'm1', properties: { total: 12.5, note: 'ä' } }),
    message({ messageId: 'm2', receivedAt: '2026-11-16T23:59:59.999Z' }),
    message({ messageId: 'm3', type: 'page', name: 'Home' }),
  ])
  assert.deepEqual(result.tables.map(({ table, rows, error }) => `${table} ${rows} ${error?.code}`).sort(), [
    '_messages 3 undefined',
    'order_completed 2 undefined',
    'pages 1 undefined',
    'tracks 2 undefined',
  ])
  const { files } = manifestOf(lake.folder, 'shop/order_completed')
  assert.deepEqual(files.map(({ path }) => path).sort(), ['day=2026-11-16/load_1.parquet', 'day=2026-11-17/load_1.parquet'])
  for (const { path, bytes, sha256, rows } of files) {
    const content = readFileSync(join(lake.folder, 'shop/order_completed', path))
    assert.equal(content.length, bytes)
    assert.equal(createHash('sha256').update(content).digest('hex'), sha256)
    assert.equal(rows, 1)
  }
  const rows = await readTable(lake.folder, 'shop/order_completed')
  const m1 = rows.find(({ id }) => id === 'm1')
  assert.deepEqual([m1?.['total'], m1?.['note'], m1?.['received_at']], [12.5, 'ä', Date.parse('2026-11-17T10:00:00.000Z')])
  const archived = (await readTable(lake.folder, 'shop/_messages')).find(({ id }) => id === 'm3')
  assert.equal((JSON.parse(String(archived?.['message'])) as { name: string }).name, 'Home')
  assert.deepEqual(globSync('**/.tmp-*', { cwd: lake.folder }), [])
})

test('the latest traits of users and accounts are one whole file', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  const identify = (messageId: string, traits: object, receivedAt: string, userId = 'alice'): ReturnType<typeof message> =>
    message({ messageId, type: 'identify', traits, receivedAt, userId })
  await loads.load(warehouse, 'load_1', [
    identify('m1', { plan: 'pro', seats: 2 }, '2026-11-17T10:00:00Z'),
    identify('m2', { plan: 'free' }, '2026-11-17T10:00:00Z', 'bob'),
  ])
  await loads.load(warehouse, 'load_2', [
    identify('m3', { plan: 'old', email: 'a@example.com' }, '2026-11-16T10:00:00Z'),
    message({ messageId: 'm4', type: 'group', groupId: 'g1', traits: { name: 'ACME' } }),
  ])
  assert.deepEqual(
    manifestOf(lake.folder, 'shop/users').files.map(({ path }) => path),
    ['state-2.parquet'],
  )
  assert.deepEqual(globSync('shop/users/*', { cwd: lake.folder }).sort(), [
    'shop/users/_lock',
    'shop/users/_manifest.json',
    'shop/users/state-2.parquet',
  ])
  const users = new Map((await scanTable(lake.folder, 'shop/users')).map((row) => [row['id'], row]))
  assert.equal(users.get('alice')?.['plan'], 'pro')
  assert.equal(users.get('alice')?.['email'], 'a@example.com')
  assert.equal(users.get('alice')?.['seats'], 2)
  assert.equal(users.get('bob')?.['plan'], 'free')
  assert.equal((await scanTable(lake.folder, 'shop/accounts'))[0]?.['name'], 'ACME')
})

/** Throws at one of the operations, as a process that is killed there. */
function failingAt(folder: string, step: number): { files: LakeFiles; failed: () => boolean } {
  let count = 0
  const files = new FolderFiles(folder)
  const check = (): void => {
    if (count++ === step) throw new Error('killed')
    // A process that is killed does nothing afterwards, so nothing else may work, either.
    if (count > step) throw new Error('killed before')
  }
  const wrapped: LakeFiles = {
    place: files.place,
    hasLocks: true,
    read: (path) => (check(), files.read(path)),
    open: (path) => (check(), files.open(path)),
    replace: (path, version, bytes) => (check(), files.replace(path, version, bytes)),
    remove: (path) => (check(), files.remove(path)),
    list: (path) => (check(), files.list(path)),
    exclusively: (path, work) => files.exclusively(path, work),
    create: async (path) => {
      check()
      const file = await files.create(path)
      return {
        write: async (bytes) => (check(), file.write(bytes)),
        publish: async () => (check(), file.publish()),
        discard: () => file.discard(),
      }
    },
  }
  return { files: wrapped, failed: () => count > step }
}

const asyncSteps = async (
  run: (lake: string, files: (folder: string) => LakeFiles) => Promise<void>,
  check: (lake: string) => Promise<void>,
): Promise<number> => {
  for (let step = 0; ; step++) {
    using lake = temporaryLake()
    let failing: ReturnType<typeof failingAt> | null = null
    await run(lake.folder, (folder) => {
      failing = failingAt(folder, step)
      return failing.files
    }).catch((error: unknown) => {
      if (!String(error).includes('killed')) throw error
    })
    await check(lake.folder)
    if (!(failing as ReturnType<typeof failingAt> | null)?.failed()) return step
  }
}

const MIXED = [
  message({ messageId: 'm1' }),
  message({ messageId: 'm2', receivedAt: '2026-11-16T23:00:00Z' }),
  message({ messageId: 'm3', type: 'identify', traits: { plan: 'pro' } }),
]

test('a load that is killed at any step and repeated is in its tables exactly once', async () => {
  let loads = new TestLoads('parquet')
  const steps = await asyncSteps(
    async (folder, files) => {
      loads = new TestLoads('parquet')
      await loads.load(open(folder), 'load_0', [message({ messageId: 'm0' })])
      await loads.load(new ParquetLake(files(folder)), 'load_1', MIXED)
    },
    async (folder) => {
      const { result } = await loads.load(open(folder), 'load_1', MIXED, { repeated: true })
      assert.ok(result.tables.every(({ error }) => error === null))
      for (const read of [readTable, scanTable]) {
        assert.deepEqual(idsOf(await read(folder, 'shop/order_completed')), ['m0', 'm1', 'm2'])
        assert.deepEqual(idsOf(await read(folder, 'shop/tracks')), ['m0', 'm1', 'm2'])
        assert.deepEqual(idsOf(await read(folder, 'shop/_messages')), ['m0', 'm1', 'm2', 'm3'])
      }
      assert.equal((await readTable(folder, 'shop/users'))[0]?.['plan'], 'pro')
    },
  )
  assert.ok(steps > 20, `only ${steps} steps`)
})

test('a repeat with fewer messages leaves no file of the first attempt behind', async () => {
  using lake = temporaryLake()
  const loads = await prepared(lake.folder)
  // The first attempt was killed after its file was published, and before the manifest was replaced.
  const leftover = join(lake.folder, 'shop/tracks/day=2026-11-16/load_1.parquet')
  mkdirSync(dirname(leftover))
  cpSync(join(lake.folder, 'shop/tracks/day=2026-11-17/load_first.parquet'), leftover)
  await loads.load(open(lake.folder), 'load_1', MIXED.slice(0, 1), { repeated: true })
  assert.deepEqual(idsOf(await scanTable(lake.folder, 'shop/tracks')), ['first', 'm1'])
})

test('loads of several processes at once all arrive', async () => {
  using lake = temporaryLake()
  const { schema } = await prepared(lake.folder)
  const one = async (at: number): Promise<void> => {
    const loads = new TestLoads('parquet', schema)
    const { result } = await loads.load(open(lake.folder), `load_${at}`, [message({ messageId: `m${at}` })])
    assert.ok(
      result.tables.every(({ error }) => error === null),
      JSON.stringify(result),
    )
  }
  await Promise.all(Array.from({ length: 12 }, (_, at) => one(at)))
  const expected = ['first', ...Array.from({ length: 12 }, (_, at) => `m${at}`)].sort()
  assert.deepEqual(idsOf(await readTable(lake.folder, 'shop/tracks')), expected)
})

async function prepared(folder: string): Promise<TestLoads> {
  const loads = new TestLoads('parquet')
  await loads.load(open(folder), 'load_first', [message({ messageId: 'first' })])
  return loads
}

test('small files of a past day are merged, except those of open loads and of today', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  for (let at = 0; at < 5; at++)
    await loads.load(warehouse, `load_${at}`, [message({ messageId: `m${at}`, properties: { [`p${at}`]: at } })])
  await loads.load(warehouse, 'load_today', [message({ messageId: 'today', receivedAt: new Date(NOW).toISOString() })])
  const upkeep = { schema: loads.schema, nowMs: NOW, openLoads: async () => ['load_4'], keepDays: null }
  const { problems } = await untilDone((cursor) => warehouse.upkeep({ ...upkeep, cursor }))
  assert.deepEqual(problems, [])
  const { files, removed } = manifestOf(lake.folder, 'shop/order_completed')
  assert.equal(files.length, 3)
  assert.equal(removed, undefined)
  for (const read of [readTable, scanTable])
    assert.deepEqual(idsOf(await read(lake.folder, 'shop/order_completed')), ['m0', 'm1', 'm2', 'm3', 'm4', 'today'])
  const m3 = (await readTable(lake.folder, 'shop/order_completed')).find(({ id }) => id === 'm3')
  assert.deepEqual([m3?.['p3'], m3?.['p0']], [3, null])
})

test('a merge or a deletion that is killed at any step is completed by the next one', async () => {
  let loads = new TestLoads('parquet')
  const run = async (
    folder: string,
    step: (warehouse: Warehouse, cursor: string | null) => Promise<Progress>,
    files?: LakeFiles,
  ): Promise<void> => {
    const warehouse = files === undefined ? open(folder) : new ParquetLake(files)
    await untilDone((cursor) => step(warehouse, cursor))
  }
  const merge = (warehouse: Warehouse, cursor: string | null): Promise<Progress> =>
    warehouse.upkeep({ schema: { ...loads.schema, tables: [] }, cursor, nowMs: NOW, openLoads: async () => [], keepDays: null })
  const remove = (warehouse: Warehouse, cursor: string | null): Promise<Progress> =>
    warehouse.deleteUsers({ schema: { ...loads.schema, tables: [] }, cursor, userIds: ['bob'] })
  const prepare = async (folder: string): Promise<void> => {
    loads = new TestLoads('parquet')
    for (let at = 0; at < 3; at++)
      await loads.load(open(folder), `load_${at}`, [
        message({ messageId: `a${at}` }),
        message({ messageId: `b${at}`, userId: 'bob' }),
        message({ messageId: `i${at}`, userId: 'bob', type: 'identify', traits: { at } }),
      ])
  }
  for (const step of [merge, remove]) {
    const steps = await asyncSteps(
      async (folder, files) => {
        await prepare(folder)
        await run(folder, step, files(folder))
      },
      async (folder) => {
        await run(folder, step)
        const left = step === merge ? ['a0', 'a1', 'a2', 'b0', 'b1', 'b2'] : ['a0', 'a1', 'a2']
        for (const read of [readTable, scanTable]) assert.deepEqual(idsOf(await read(folder, 'shop/tracks')), left)
        assert.deepEqual(idsOf(await readTable(folder, 'shop/users')), step === merge ? ['bob'] : [])
        if (step === remove) assertNothingOf(folder, 'bob')
      },
    )
    assert.ok(steps > 10, `only ${steps} steps`)
  }
})

/** Tables of events are not looked at, because the schema of that test has none. */
function assertNothingOf(folder: string, userId: string): void {
  for (const file of globSync('shop/{_messages,tracks,identifies,users}/**/*', { cwd: folder, withFileTypes: true })) {
    if (!file.isFile() || file.name.startsWith('.tmp-')) continue
    assert.equal(readFileSync(join(file.parentPath, file.name)).includes(userId), false, file.name)
  }
}

test('users are deleted from every table, also while they are merged', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  for (let at = 0; at < 3; at++)
    await loads.load(warehouse, `load_${at}`, [message({ messageId: `a${at}` }), message({ messageId: `b${at}`, userId: 'bob' })])
  const [{ changed }] = await Promise.all([
    untilDone((cursor) => warehouse.deleteUsers({ schema: loads.schema, cursor, userIds: ['bob', 'nobody'] })),
    untilDone((cursor) =>
      open(lake.folder).upkeep({ schema: loads.schema, cursor, nowMs: NOW, openLoads: async () => [], keepDays: null }),
    ),
  ])
  assert.equal(changed, 9)
  for (const table of ['shop/tracks', 'shop/order_completed', 'shop/_messages'])
    for (const read of [readTable, scanTable]) assert.deepEqual(idsOf(await read(lake.folder, table)), ['a0', 'a1', 'a2'])
})

test('days that are not kept, and files that nobody names, are removed', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  await loads.load(warehouse, 'load_1', [message({ messageId: 'old', receivedAt: '2026-10-01T00:00:00Z' }), message({ messageId: 'new' })])
  const left = join(lake.folder, 'shop/tracks/day=2026-11-17/load_gone.parquet')
  writeFileSync(left, 'x')
  utimesSync(left, new Date(NOW - 2 * DAY_MS), new Date(NOW - 2 * DAY_MS))
  await untilDone((cursor) => warehouse.upkeep({ schema: loads.schema, cursor, nowMs: NOW, openLoads: async () => [], keepDays: 30 }))
  for (const read of [readTable, scanTable]) assert.deepEqual(idsOf(await read(lake.folder, 'shop/tracks')), ['new'])
})

test('the archive is read in pages by time, also across merges', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  const at = (minute: number): string => new Date(Date.UTC(2026, 10, 17, 10, minute)).toISOString()
  for (let load = 0; load < 3; load++)
    await loads.load(
      warehouse,
      `load_${load}`,
      Array.from({ length: 5 }, (_, index) =>
        message({ messageId: `m${load}${index}`, receivedAt: at(index * 3 + load), event: index === 4 ? 'Other' : 'E' }),
      ),
    )
  const query = { schema: loads.schema, afterMs: Date.parse(at(1)), beforeMs: Date.parse(at(14)), event: 'E' }
  const found: string[] = []
  let cursor: string | null = null
  do {
    const page: ArchivePage | undefined = await warehouse.readArchive?.(query, cursor, 4)
    assert.ok(page)
    found.push(...page.messages.map(({ id }) => id))
    cursor = page.cursor
    await warehouse.upkeep({ schema: loads.schema, cursor: '_messages', nowMs: NOW, openLoads: async () => [], keepDays: null })
  } while (cursor !== null)
  assert.deepEqual(found, ['m10', 'm20', 'm01', 'm11', 'm21', 'm02', 'm12', 'm22', 'm03', 'm13', 'm23'])
})

test('pages of an archive have a largest size, its messages are counted by file, and a file that is gone is named', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  const at = (hour: number): string => new Date(Date.UTC(2026, 10, 17, hour)).toISOString()
  await loads.load(warehouse, 'load_1', [message({ messageId: 'm1', receivedAt: at(1) }), message({ messageId: 'm2', receivedAt: at(2) })])
  await loads.load(warehouse, 'load_2', [message({ messageId: 'm3', receivedAt: at(3) })])
  const all = { schema: loads.schema, afterMs: 0, beforeMs: Date.UTC(2030, 0) }
  const first = await warehouse.readArchive?.(all, null, 100, 1)
  assert.deepEqual([first?.messages.map(({ id }) => id), first?.cursor === first?.messages[0]?.cursor], [['m1'], true])
  const rest = await warehouse.readArchive?.(all, first?.cursor ?? null, 100)
  assert.deepEqual([rest?.messages.map(({ id }) => id), rest?.cursor], [['m2', 'm3'], null])
  assert.equal(await warehouse.archiveSize?.(all), 3)
  assert.equal(await warehouse.archiveSize?.({ ...all, afterMs: Date.parse(at(3)) }), 1)
  const folder = join(lake.folder, 'shop', '_messages')
  const [file] = (JSON.parse(readFileSync(join(folder, '_manifest.json'), 'utf8')) as { files: { path: string }[] }).files
  // By these, row groups outside the time are not read.
  const times = await withReader(new FolderFiles(lake.folder), `shop/_messages/${file?.path}`, async (reader) =>
    reader.times(0, 'received_at'),
  )
  assert.deepEqual(times, { min: Date.parse(at(1)), max: Date.parse(at(2)) })
  rmSync(join(folder, file?.path ?? ''))
  await assert.rejects(warehouse.readArchive?.(all, null, 100) ?? Promise.resolve(), (error: WarehouseFailure) => {
    assert.deepEqual([error.warehouse.code, error.warehouse.message.includes(String(file?.path))], ['file_missing', true])
    return true
  })
  // Nothing of that file is wanted.
  const later = await warehouse.readArchive?.({ ...all, afterMs: Date.parse(at(3)) }, null, 100)
  assert.deepEqual(
    later?.messages.map(({ id }) => id),
    ['m3'],
  )
})

test('a folder of another installation is refused, and can be adopted', async () => {
  using lake = temporaryLake()
  const loads = await prepared(lake.folder)
  const owner = { installation: 'ins_2', destinationId: 'dst_9', sourceId: 'src_1' }
  const other = [message({ messageId: 'm2' })]
  await assert.rejects(loads.load(open(lake.folder), 'load_2', other, { owner }), /tables of another installation.*"adopt": true/)
  await loads.load(open(lake.folder), 'load_2', other, { owner: { ...owner, adopt: true } })
  assert.deepEqual(idsOf(await readTable(lake.folder, 'shop/tracks')), ['first', 'm2'])
})

test('the connection test says what is missing', async () => {
  using lake = temporaryLake()
  assert.equal((await open(lake.folder).check()).problem, null)
  const file = join(lake.folder, 'file')
  writeFileSync(file, '')
  const url = pathToFileURL(join(file, 'inside')).href
  const { problem, steps } = await createWarehouse({ engine: 'parquet', url }, { lakeFolder: lake.folder }).check()
  assert.equal(problem?.code, 'not_found')
  assert.deepEqual(
    steps.map(({ step, ok }) => [step, ok]),
    [['create table', false]],
  )
  assert.throws(() => createWarehouse({ engine: 'parquet', url: 'file:///etc' }, { lakeFolder: lake.folder }), /is not below/)
  assert.throws(() => createWarehouse({ engine: 'parquet', url }, { lakeFolder: null }), /SWITCHYARD_LAKE_DIR/)
})

test('one table that cannot be written does not stop the others', async () => {
  using lake = temporaryLake()
  const loads = await prepared(lake.folder)
  rmSync(join(lake.folder, 'shop/order_completed'), { recursive: true })
  writeFileSync(join(lake.folder, 'shop/order_completed'), '')
  const { result } = await loads.load(open(lake.folder), 'load_2', [message({ messageId: 'm2' })])
  const failed = result.tables.filter(({ error }) => error !== null)
  assert.deepEqual(
    failed.map(({ table }) => table),
    ['order_completed'],
  )
  assert.deepEqual(idsOf(await readTable(lake.folder, 'shop/tracks')), ['first', 'm2'])
  // Repaired, the same load completes it, and writes no table twice.
  rmSync(join(lake.folder, 'shop/order_completed'))
  await loads.load(open(lake.folder), 'load_2', [message({ messageId: 'm2' })], { repeated: true })
  assert.deepEqual(idsOf(await scanTable(lake.folder, 'shop/order_completed')), ['m2'])
  assert.deepEqual(idsOf(await scanTable(lake.folder, 'shop/tracks')), ['first', 'm2'])
})

test('a file that was deleted under the manifest is reported, and the rest is merged', async () => {
  using lake = temporaryLake()
  const warehouse = open(lake.folder)
  const loads = new TestLoads('parquet')
  for (let at = 0; at < 3; at++) await loads.load(warehouse, `load_${at}`, [message({ messageId: `m${at}` })])
  rmSync(join(lake.folder, 'shop/tracks/day=2026-11-17/load_1.parquet'))
  const { problems } = await untilDone((cursor) =>
    warehouse.upkeep({ schema: loads.schema, cursor, nowMs: NOW, openLoads: async () => [], keepDays: null }),
  )
  assert.equal(problems[0]?.code, 'file_missing')
  assert.match(problems[0].message, /load_1\.parquet is gone.*1 rows/)
  assert.deepEqual(idsOf(await scanTable(lake.folder, 'shop/tracks')), ['m0', 'm2'])
  const deletion = await untilDone((cursor) => warehouse.deleteUsers({ schema: loads.schema, cursor, userIds: ['alice'] }))
  assert.equal(deletion.problems[0]?.code, 'file_missing')
})

test('a manifest that is not JSON stops only its table', async () => {
  using lake = temporaryLake()
  const loads = await prepared(lake.folder)
  writeFileSync(join(lake.folder, 'shop/tracks/_manifest.json'), '{"files": [')
  const { result } = await loads.load(open(lake.folder), 'load_2', [message({ messageId: 'm2' })])
  const failed = result.tables.filter(({ error }) => error !== null)
  assert.deepEqual(
    failed.map(({ table, error }) => [table, error?.code]),
    [['tracks', 'table_changed']],
  )
})
