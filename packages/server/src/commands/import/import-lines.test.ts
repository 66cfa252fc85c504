import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type Line, MAX_LINE_BYTES, readLines, type Start } from './import-lines.ts'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-import-'))
after(() => rmSync(folder, { recursive: true, force: true }))
const signal = new AbortController().signal

async function linesOf(content: string | Buffer, from: Start = { offset: 0, line: 0 }, name = 'lines.ndjson'): Promise<Line[]> {
  const path = join(folder, name)
  writeFileSync(path, content)
  return all(readLines({ path, input: process.stdin, from, signal }))
}

async function all(lines: AsyncIterable<Line>): Promise<Line[]> {
  const found: Line[] = []
  for await (const line of lines) found.push(line)
  return found
}

test('lines have their number and offsets, with any line ending, with and without a final newline', async () => {
  const lines = await linesOf('\uFEFF{"a":1}\r\n\n{"b":"ü"}\n{"c":3}')
  assert.deepEqual(
    lines.map(({ number, text }) => [number, text]),
    [
      [1, '{"a":1}'],
      [2, ''],
      [3, '{"b":"ü"}'],
      [4, '{"c":3}'],
    ],
  )
  assert.deepEqual(
    lines.map(({ start }) => start),
    [0, ...lines.slice(0, -1).map(({ end }) => end)],
  )
  assert.equal((await linesOf('')).length, 0)
})

test('reading from the end of a line gives the same lines as reading from the start, compressed or not', async () => {
  const text = Array.from({ length: 1_000 }, (_, index) => `{"line":${index},"pad":"${'ü'.repeat(index % 97)}"}`).join('\n')
  const whole = await linesOf(text)
  for (const content of [text, gzipSync(text)]) {
    for (const at of [0, 1, 500, 998]) {
      const { end, number } = whole[at] as Line
      const rest = await linesOf(content, { offset: end, line: number }, 'rest')
      const summarise = (lines: Line[]) => lines.map(({ number: n, start, end: e, text: t }) => [n, start, e, t])
      assert.deepEqual(summarise(rest), summarise(whole.slice(at + 1)))
    }
  }
})

test('a line beyond the limit is not kept in memory, and the next one is read', async () => {
  const lines = await linesOf(`${'x'.repeat(3 * MAX_LINE_BYTES)}\nnext\n`)
  assert.deepEqual(
    lines.map(({ tooLong, text }) => [tooLong, text.length]),
    [
      [true, MAX_LINE_BYTES],
      [false, 4],
    ],
  )
})

test('a line that is not UTF-8 is marked; truncated lines and characters split between chunks are not', async () => {
  const bytes = Buffer.concat([Buffer.from('"ü"\n'), Buffer.from([0x22, 0xff, 0x22, 0x0a]), Buffer.from('"😀"\n'), Buffer.from([0xc3])])
  assert.deepEqual(
    (await linesOf(bytes)).map(({ isText }) => isText),
    [true, false, true, false],
  )
  const input = Readable.from(Array.from(Buffer.from('"😀"\n'), (byte) => Buffer.from([byte])))
  const [line] = await all(readLines({ path: null, input, from: { offset: 0, line: 0 }, signal }))
  assert.deepEqual([line?.text, line?.isText], ['"😀"', true])
})

test('piped input is read with chunks split anywhere', async () => {
  const bytes = Buffer.from('{"a":"ü"}\n{"b":2}\n')
  const input = Readable.from(Array.from(bytes, (byte) => Buffer.from([byte])))
  const lines = await all(readLines({ path: null, input, from: { offset: 0, line: 0 }, signal }))
  assert.deepEqual(
    lines.map(({ text }) => text),
    ['{"a":"ü"}', '{"b":2}'],
  )
})

test('a truncated compressed file is an error', async () => {
  const cut = gzipSync('x\n'.repeat(100_000)).subarray(0, 100)
  await assert.rejects(linesOf(cut), /unexpected end of file/)
})
