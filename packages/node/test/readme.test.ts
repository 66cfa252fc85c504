// Compares the tables of the README with the code: settings, events, errors, rejection codes.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import type { AnalyticsEvents } from '@switchyard/node'
import { REFUSALS } from '@switchyard/protocol'
import { CLIENT_ERRORS } from '../src/call/errors.ts'

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')

/** Returns the rows of the first table after a heading, without backticks in the first cell. */
function rows(heading: string, nth = 0): string[][] {
  const section = readme.split(/^#+ /m).find((part) => part.startsWith(`${heading}\n`)) ?? assert.fail(`no section ${heading}`)
  const tables = section.split('\n\n').filter((block) => block.startsWith('|'))
  const table = tables[nth] ?? assert.fail(`no table in ${heading}`)
  return table
    .trim()
    .split('\n')
    .slice(2)
    .map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
}

const codes = (cell: string | undefined): string[] => [...(cell ?? '').matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? '')

test('the README lists exactly the settings of the code', () => {
  const source = readFileSync(new URL('../src/settings.ts', import.meta.url), 'utf8')
  const body = /export interface AnalyticsSettings \{([\s\S]*?)\n\}/.exec(source)?.[1] ?? ''
  const settings = [...body.matchAll(/^ {2}(\w+)\??:/gm)].map((match) => match[1] ?? '')
  assert.ok(settings.length > 15)
  assert.deepEqual(
    rows('Settings')
      .flatMap((row) => codes(row[0]))
      .sort(),
    settings.sort(),
  )
})

test('the README lists exactly the events of the code', () => {
  const events: Record<keyof AnalyticsEvents, true> = {
    initialize: true,
    error: true,
    identify: true,
    track: true,
    page: true,
    screen: true,
    group: true,
    alias: true,
    flush: true,
    http_request: true,
    http_response: true,
    retry: true,
    register: true,
    deregister: true,
    call_after_close: true,
    drained: true,
  }
  assert.deepEqual(
    rows('Events')
      .flatMap((row) => codes(row[0]))
      .sort(),
    Object.keys(events).sort(),
  )
})

for (const [title, table, nth] of [
  ['client errors', CLIENT_ERRORS, 0],
  ['refusals', REFUSALS, 1],
] as const) {
  test(`the README lists exactly the ${title} of the code, with the same texts`, () => {
    const listed = Object.fromEntries(rows('Errors', nth).map((row) => [codes(row[0])[0], row[1]]))
    assert.deepEqual(listed, { ...table })
  })
}
