// Whether a result can be a chart: it has a time, and a number. Pure.

import type { Answer } from '../../api/client.ts'

export type Result = Answer<'POST /api/sql'>

export interface Chartable {
  time: string
  numbers: string[]
  points: Record<string, string | number | null>[]
}

const MOST_NUMBERS = 4
const TIME = /^(DATE|TIMESTAMP)/
const NUMBER = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL)/

/** Null if there is no time, no number, or fewer than two rows. */
export function chartOf({ columns, rows }: Result): Chartable | null {
  const timeAt = columns.findIndex(({ type }) => TIME.test(type))
  const numberAts = columns.flatMap(({ type }, at) => (NUMBER.test(type) ? [at] : [])).slice(0, MOST_NUMBERS)
  if (timeAt === -1 || numberAts.length === 0 || rows.length < 2) return null
  const nameAt = (at: number): string => (columns[at] as Result['columns'][number]).name
  const points = rows
    .filter((row) => row[timeAt] !== null)
    .sort((one, other) => (String(one[timeAt]) < String(other[timeAt]) ? -1 : 1))
    .map((row) =>
      Object.fromEntries([
        [
          nameAt(timeAt),
          String(row[timeAt])
            .replace('T00:00:00.000Z', '')
            .replace(/T(\d\d:\d\d):.*/, ' $1'),
        ],
        ...numberAts.map((at): [string, number | null] => [nameAt(at), row[at] === null ? null : Number(row[at])]),
      ]),
    )
  return { time: nameAt(timeAt), numbers: numberAts.map(nameAt), points }
}
