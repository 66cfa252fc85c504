import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Line } from './import-lines.ts'
import { createOutcomes, type OutcomesOptions, type Reject } from './import-outcomes.ts'
import type { ImportState } from './import-state.ts'

const folder = mkdtempSync(join(tmpdir(), 'switchyard-outcomes-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function newState(): ImportState {
  return {
    version: 1,
    fingerprint: '',
    fingerprintBytes: 0,
    salt: '',
    offset: 0,
    line: 0,
    accepted: 0,
    rejected: {},
    rejectsBytes: 0,
  }
}

/** Lines of ten bytes each. */
function line(number: number): Line {
  const end = number * 10
  return { number, start: end - 10, end, text: `line ${number}`, tooLong: false, isText: true, readBytes: end }
}

function open(options: Partial<OutcomesOptions> = {}) {
  const state = newState()
  const told: Reject[] = []
  const problems: unknown[] = []
  const outcomes = createOutcomes({
    state,
    rejectsFile: null,
    onReject: (reject) => told.push(reject),
    onAdvanced() {},
    onProblem: (problem) => problems.push(problem),
    ...options,
  })
  return { state, told, problems, ...outcomes }
}

const refused = { code: 'event_required', message: 'No.' }

test('a line is done when all lines before it are, in whatever order the responses arrive', () => {
  const { state, told, begin, advance } = open()
  const settle = [1, 2, 3, 4, 5].map((number) => begin(line(number)))
  settle[3]?.(refused)
  settle[1]?.(refused)
  settle[2]?.('empty')
  advance()
  assert.deepEqual([state.offset, state.line, told], [0, 0, []])
  settle[0]?.('accepted')
  advance()
  assert.deepEqual([state.offset, state.line, state.accepted, state.rejected], [40, 4, 1, { event_required: 2 }])
  assert.deepEqual(
    told.map((reject) => [reject.line, reject.text]),
    [
      [2, 'line 2'],
      [4, 'line 4'],
    ],
  )
  settle[4]?.('accepted')
  begin(line(6))('accepted')
  advance()
  assert.deepEqual([state.offset, state.line, state.accepted], [60, 6, 3])
})

test('the state advances automatically, once for all lines that are settled together', async () => {
  let advanced = 0
  const done = new Promise<void>((resolve) => {
    const { begin } = open({
      onAdvanced({ number }) {
        advanced++
        if (number === 100) resolve()
      },
    })
    const settle = Array.from({ length: 100 }, (_, at) => begin(line(at + 1)))
    for (const each of settle) each('accepted')
  })
  await done
  assert.equal(advanced, 1)
})

test('the rejects file has the length that the state says', () => {
  const path = join(folder, 'rejects')
  const file = openSync(path, 'w')
  const { state, begin, advance, told } = open({ rejectsFile: file })
  for (let number = 1; number <= 3; number++) begin(line(number))({ code: 'c', message: 'Ü' })
  advance()
  closeSync(file)
  const written = readFileSync(path)
  assert.equal(written.length, state.rejectsBytes)
  assert.deepEqual(JSON.parse(written.toString().split('\n')[1] as string), { line: 2, code: 'c', message: 'Ü', text: 'line 2' })
  assert.deepEqual(told, [])
})

test('if the rejects file cannot be written, the state stays where it was and does not advance any more', () => {
  const path = join(folder, 'readable')
  closeSync(openSync(path, 'w'))
  const file = openSync(path, 'r')
  const { state, begin, advance, problems } = open({ rejectsFile: file })
  begin(line(1))('accepted')
  begin(line(2))(refused)
  advance()
  advance()
  closeSync(file)
  assert.equal(problems.length, 1)
  assert.deepEqual([state.offset, state.accepted, state.rejected], [0, 0, {}])
})
