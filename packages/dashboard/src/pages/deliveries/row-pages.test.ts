import assert from 'node:assert/strict'
import test from 'node:test'
import { RowPages } from './row-pages.ts'

const SIZE = 100

/** A list of so many numbers; `gap`: pages without a row before the first. */
function listOf(total: number, gap = 0) {
  const asked: (string | null)[] = []
  const load = async (cursor: string | null) => {
    asked.push(cursor)
    const at = Number(cursor ?? -gap)
    if (at < 0) return { data: [], next: String(at + 1) }
    const data = Array.from({ length: Math.min(SIZE, total - at) }, (_, place) => at + place)
    return { data, next: at + SIZE < total ? String(at + SIZE) : null }
  }
  return { asked, load }
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 5))

async function scroll(pages: RowPages<number>, from: number, to: number, step: number): Promise<number> {
  let most = 0
  for (let at = from; step > 0 ? at <= to : at >= to; at += step) {
    pages.show(at, at + 20)
    await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, pages.held)
  }
  await settled()
  return most
}

test('a list of 100,000 rows is scrolled to its end and back with a few pages in memory', async () => {
  const { load } = listOf(100_000)
  const pages = new RowPages({ load })
  pages.show(0, 20)
  await settled()
  assert.ok((await scroll(pages, 0, 99_980, 50)) <= 8 * SIZE)
  assert.deepEqual([pages.count, pages.isEnd, pages.rowAt(99_999)], [100_000, true, 99_999])
  assert.equal(pages.rowAt(500), undefined, 'dropped')
  assert.ok((await scroll(pages, 99_980, 0, -50)) <= 8 * SIZE)
  assert.equal(pages.rowAt(0), 0)
  assert.equal(pages.rowAt(20), 20)
  assert.equal(pages.rowAt(50_000), undefined)
  pages.show(50_000, 50_020)
  await settled()
  assert.equal(pages.rowAt(50_007), 50_007, 'a jump')
})

test('empty pages are skipped, and after some of them the list waits for resume()', async () => {
  const { asked, load } = listOf(10, 25)
  const pages = new RowPages({ load, patience: 10 })
  pages.show(0, 20)
  await settled()
  assert.deepEqual([asked.length, pages.isWaiting, pages.isEnd], [10, true, false])
  pages.resume()
  await settled()
  assert.equal(pages.isWaiting, true)
  pages.resume()
  await settled()
  assert.deepEqual([pages.count, pages.isWaiting, pages.isEnd], [10, false, true])
})

test('an error is reported, and resume() retries', async () => {
  let isDown = true
  const { load } = listOf(10)
  const pages = new RowPages({ load: (cursor) => (isDown ? Promise.reject(new Error('down')) : load(cursor)) })
  pages.show(0, 20)
  await settled()
  assert.equal(pages.problem?.message, 'down')
  isDown = false
  pages.resume()
  await settled()
  assert.deepEqual([pages.problem, pages.count], [null, 10])
})

test('a reloaded page with fewer rows moves the rows after it', async () => {
  let missing = 0
  const { load } = listOf(2_000)
  const pages = new RowPages({
    keep: 1,
    load: async (cursor) => {
      const page = await load(cursor)
      return cursor === null ? { ...page, data: page.data.slice(missing) } : page
    },
  })
  pages.show(0, 20)
  await settled()
  await scroll(pages, 0, 1_980, 50)
  missing = 40
  await scroll(pages, 1_980, 0, -50)
  assert.deepEqual([pages.count, pages.rowAt(0), pages.rowAt(60)], [1_960, 40, 100])
})

test('a refresh replaces everything, and earlier responses are ignored', async () => {
  const { load } = listOf(1_000)
  let release = () => {}
  const pages = new RowPages({
    load: async (cursor) => {
      if (cursor === '100') await new Promise<void>((resolve) => (release = resolve))
      return load(cursor)
    },
  })
  pages.show(0, 95)
  await settled()
  const refreshed = pages.refresh()
  release()
  await refreshed
  pages.show(0, 1)
  await settled()
  assert.equal(pages.rowAt(100), undefined)
  release()
  await settled()
  assert.deepEqual([pages.count, pages.rowAt(100)], [200, 100])
})
