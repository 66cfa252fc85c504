// The rules of the spool, tested without a client: which writers are alive, who takes over, and what is deleted.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { MessagesWithoutKey, type Spool } from '../spool.ts'
import { DiskSpool, type SpoolTimes, senderFolder } from './node-spool.ts'

const SENDER = 'a write key and an address'
const LONG: SpoolTimes = { touchMs: 60_000, silentMs: 60_000 }

const opened: Spool[] = []

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-spool-'))
  t.after(() => {
    for (const spool of opened.splice(0)) spool.close()
    rmSync(dir, { recursive: true })
  })
  return dir
}

function open(dir: string, { maxBytes = 1_000_000, times = LONG } = {}): Spool {
  const spool = new DiskSpool({ dir, maxBytes, sender: SENDER }, (error) => assert.fail(error as Error), times)
  opened.push(spool)
  return spool
}

const message = (id: string): string => JSON.stringify({ messageId: id, text: 'line\nbreak \u2028' })
const inside = (dir: string, file = ''): string => join(senderFolder({ dir, sender: SENDER }), file)
const files = (dir: string, ending: string): string[] => readdirSync(inside(dir)).filter((file) => file.endsWith(ending))

async function recovered(spool: Spool): Promise<string[]> {
  const ids: string[] = []
  await spool.recover(async (json) => {
    ids.push((JSON.parse(json) as { messageId: string }).messageId)
  })
  return ids
}

/** Writes the files of another writer, with the owner file that the test needs. */
function leave(dir: string, ids: string[], change: (owner: Record<string, unknown>) => unknown, touchedMsAgo = 0): void {
  const spool = new DiskSpool({ dir, maxBytes: 1_000_000, sender: SENDER }, () => {}, LONG)
  for (const id of ids) spool.keep(message(id))
  const file = inside(dir, files(dir, '.owner')[0])
  const owner = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  spool.close()
  writeFileSync(file, String(change(owner)))
  const at = new Date(Date.now() - touchedMsAgo)
  utimesSync(file, at, at)
}

const same = (change: object) => (owner: Record<string, unknown>) => JSON.stringify({ ...owner, ...change })

const writers: [title: string, change: (owner: Record<string, unknown>) => unknown, touchedMsAgo: number, isLeft: boolean][] = [
  ['a process that is running', same({}), 0, false],
  ['a process that is gone', same({ pid: 2 ** 22 - 1 }), 0, true],
  ['a process whose ID another process has by now', same({ started: '1' }), 0, true],
  ['a process that left by itself', same({ pid: 0 }), 0, true],
  ['a process of another host, heard of lately', same({ host: 'elsewhere', pid: 1 }), 0, false],
  ['a process of another host, not heard of for long', same({ host: 'elsewhere', pid: 1 }), 61_000, true],
  ['a process of another container on this host, heard of lately', same({ namespace: 'pid:[1]', pid: 2 ** 22 - 1 }), 0, false],
  ['a process of another container on this host, not heard of for long', same({ namespace: 'pid:[1]', pid: 2 ** 22 - 1 }), 61_000, true],
  ['an owner that cannot be read, lately', () => '{', 0, false],
  ['an owner that cannot be read, for long', () => '{', 61_000, true],
]

for (const [title, change, touchedMsAgo, isLeft] of writers) {
  test(`messages of ${title} are ${isLeft ? 'taken over' : 'left alone'}`, async (t) => {
    const dir = folder(t)
    leave(dir, ['a', 'b'], change, touchedMsAgo)
    assert.deepEqual(await recovered(open(dir)), isLeft ? ['a', 'b'] : [])
  })
}

test('messages that one writer is taking over are left alone by others until that writer is dead, too', async (t) => {
  const dir = folder(t)
  leave(dir, ['a', 'b', 'c'], same({ pid: 0 }))
  const first = open(dir)
  let taken: (() => void) | undefined
  const stopped = new Promise<void>((resolve) => {
    void first.recover((_json, number) => {
      resolve()
      return number === 0 ? Promise.resolve() : new Promise<void>((go) => (taken = go))
    })
  })
  await stopped
  assert.deepEqual(await recovered(open(dir)), [])
  first.forget([{ from: 0, to: 0 }])
  first.close()
  taken?.()
  assert.deepEqual(await recovered(open(dir)), ['b', 'c'])
})

test('a writer that dies later is found by the periodic search', async (t) => {
  const dir = folder(t)
  leave(dir, ['a'], same({ host: 'elsewhere', pid: 1 }))
  const spool = open(dir, { times: { touchMs: 60_000, silentMs: 200 } })
  const found = new Promise<string>((resolve) => void spool.recover(async (json) => resolve(json)))
  const hold = setTimeout(() => {}, 60_000)
  assert.equal(await found, message('a'))
  clearTimeout(hold)
})

test('a deleted owner file is written again at the next heartbeat', async (t) => {
  const dir = folder(t)
  open(dir, { times: { touchMs: 20, silentMs: 60_000 } })
  for (const file of files(dir, '.owner')) rmSync(inside(dir, file))
  const until = Date.now() + 60_000
  while (files(dir, '.owner').length === 0 && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10))
  assert.equal(files(dir, '.owner').length, 1)
})

test('a segment is deleted and its room freed when the outcome of all its messages is known', (t) => {
  const dir = folder(t)
  const spool = open(dir, { maxBytes: 8_000 })
  const numbers: number[] = []
  for (let i = 0; ; i++) {
    const number = spool.keep(message(`m-${i}`))
    if (number === undefined) break
    numbers.push(number)
  }
  assert.ok(files(dir, '.messages').length >= 6, `${files(dir, '.messages').length} segments`)
  const half = numbers.length >> 1
  spool.forget([{ from: 0, to: half }])
  assert.ok(files(dir, '.messages').length <= 5)
  assert.notEqual(spool.keep(message('again')), undefined)
  spool.forget([{ from: half + 1, to: numbers.length }])
  assert.deepEqual(files(dir, '.messages'), [])
})

test('messages keep escaped line breaks and all other content', async (t) => {
  const dir = folder(t)
  const first = open(dir)
  first.keep(message('a'))
  first.close()
  const found: string[] = []
  await open(dir).recover(async (json) => void found.push(json))
  assert.deepEqual(found, [message('a')])
})

test('a closed spool accepts no messages, but still deletes them by file name', async (t) => {
  const dir = folder(t)
  const spool = open(dir)
  spool.keep(message('a'))
  spool.keep(message('b'))
  spool.close()
  assert.throws(() => spool.keep(message('c')), /closed/)
  spool.forget([{ from: 0, to: 0 }])
  assert.deepEqual(await recovered(open(dir)), ['b'])
})

test('message numbers stay correct when a segment is taken over between two messages of our own', async (t) => {
  const dir = folder(t)
  leave(dir, ['old-0', 'old-1', 'old-2'], same({ pid: 0 }))
  const spool = open(dir)
  spool.keep(message('a-0'))
  spool.keep(message('a-1'))
  const old: number[] = []
  await spool.recover(async (_json, number) => void old.push(number))
  spool.forget([{ from: old[0] as number, to: old.at(-1) as number }])
  const own = [0, 1, 2, 3].map((i) => spool.keep(message(`b-${i}`)) as number)
  spool.forget([{ from: own[0] as number, to: own[1] as number }])
  spool.close()
  assert.deepEqual(await recovered(open(dir)), ['a-0', 'a-1', 'b-2', 'b-3'])
})

test('an incomplete .done file does not remove undelivered messages', async (t) => {
  const dir = folder(t)
  const ids = Array.from({ length: 30 }, (_, i) => `m-${i}`)
  const first = open(dir)
  for (const id of ids) first.keep(message(id))
  first.forget([{ from: 0, to: 14 }])
  first.close()
  const [list] = files(dir, '.done')
  const file = inside(dir, list)
  // "0 14" cut to "0 1", which is less but true: the next writer's "15 19" must not make it "0 115 19".
  writeFileSync(file, readFileSync(file, 'utf8').trimEnd().slice(0, -1))
  const second = open(dir)
  const numbers: number[] = []
  await second.recover(async (_json, number) => void numbers.push(number))
  assert.equal(numbers.length, 30)
  second.forget([{ from: numbers[15] as number, to: numbers[19] as number }])
  second.close()
  assert.deepEqual(await recovered(open(dir)), [...ids.slice(2, 15), ...ids.slice(20)])
})

test('line numbers beyond the end and invalid lines in a .done file are ignored', async (t) => {
  const dir = folder(t)
  const first = open(dir)
  first.keep(message('a'))
  first.keep(message('b'))
  first.close()
  const [list] = files(dir, '.done')
  writeFileSync(inside(dir, list), '0 99\n1 1 1\nx\n-1 0\n\n')
  assert.deepEqual(await recovered(open(dir)), ['a', 'b'])
})

test('files that a crash left are deleted with their writer', async (t) => {
  const dir = folder(t)
  leave(dir, ['a'], same({ pid: 0 }))
  const [owner] = files(dir, '.owner')
  const token = (owner ?? '').slice(0, -'.owner'.length)
  writeFileSync(inside(dir, `${token}-7.done`), '\n0 0\n')
  writeFileSync(inside(dir, `${token}.owner.new`), '{')
  const spool = open(dir)
  const numbers: number[] = []
  await spool.recover(async (_json, number) => void numbers.push(number))
  spool.forget([{ from: numbers[0] as number, to: numbers[0] as number }])
  spool.close()
  assert.deepEqual(readdirSync(dir), [])
})

test('messages of one sender are not passed to another', async (t) => {
  const dir = folder(t)
  leave(dir, ['a', 'b'], same({ pid: 0 }))
  const other = new DiskSpool({ dir, maxBytes: 1_000_000, sender: 'another' }, (error) => assert.fail(error as Error), LONG)
  assert.deepEqual(await recovered(other), [])
  other.close()
  assert.deepEqual(await recovered(open(dir)), ['a', 'b'])
})

/** Writes files as version 0.1 did: the same, but in the parent folder. */
function leaveAsBefore(dir: string, change: (owner: Record<string, unknown>) => unknown, touchedMsAgo = 0): void {
  leave(dir, ['a', 'b'], change, touchedMsAgo)
  for (const file of readdirSync(inside(dir))) renameSync(inside(dir, file), join(dir, file))
  rmdirSync(inside(dir))
}

test('messages of version 0.1, which contain no write key, are reported and not sent; after a move to a sender’s folder they are delivered', async (t) => {
  const dir = folder(t)
  leaveAsBefore(dir, same({ pid: 0 }))
  const reports: unknown[] = []
  const spool = new DiskSpool({ dir, maxBytes: 1_000_000, sender: SENDER }, (error) => reports.push(error), LONG)
  assert.deepEqual(await recovered(spool), [])
  spool.close()
  const [report] = reports
  assert.equal(reports.length, 1)
  assert.ok(report instanceof MessagesWithoutKey)
  assert.ok(report.message.includes(inside(dir)), report.message)
  mkdirSync(inside(dir))
  for (const file of readdirSync(dir)) if (/\.(owner|messages|done)$/.test(file)) renameSync(join(dir, file), inside(dir, file))
  assert.deepEqual(await recovered(open(dir)), ['a', 'b'])
})

test('messages of version 0.1 that a running process of that version will deliver are not reported', async (t) => {
  const dir = folder(t)
  leaveAsBefore(dir, same({}))
  assert.deepEqual(await recovered(open(dir)), [])
})

test('messages of version 0.1 whose process ends later are reported at the next check', async (t) => {
  const dir = folder(t)
  leaveAsBefore(dir, same({ host: 'elsewhere', pid: 1 }))
  const reported = new Promise<unknown>((resolve) => {
    const spool = new DiskSpool({ dir, maxBytes: 1_000_000, sender: SENDER }, resolve, { touchMs: 60_000, silentMs: 200 })
    opened.push(spool)
    void spool.recover(async () => {})
  })
  const hold = setTimeout(() => {}, 60_000)
  assert.ok((await reported) instanceof MessagesWithoutKey)
  clearTimeout(hold)
})

test('a client can open its subfolder while the last one to close removes it', (t) => {
  const dir = folder(t)
  for (let i = 0; i < 3; i++) {
    const spool = open(dir)
    spool.close()
    assert.deepEqual(readdirSync(dir), [])
  }
})
