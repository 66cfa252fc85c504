// The part of the report about ordered destinations, and its targets.

import { spreadOf, spreadText, tableText } from '../client/table.ts'
import type { PerformanceTarget } from '../client/targets.ts'
import { ORDER_CASES, type OrderCaseName, type OrderRound, type OrderRun } from './scenarios/order.ts'

const ORDER_FACTOR = 0.8
/** What the others lose at most when one key of a thousand fails. */
const FAILING_FACTOR = 0.95
const WITHOUT_FACTOR = 0.99

const COMPARISONS: readonly (readonly [name: OrderCaseName, base: OrderCaseName, factor: number, what: string])[] = [
  ['1,000 keys', 'without order, 1,000 users', ORDER_FACTOR, 'ordered delivery of 1,000 keys'],
  ['100,000 keys', 'without order, 100,000 users', ORDER_FACTOR, 'ordered delivery of 100,000 keys'],
  ['1,000 keys, one failing', '1,000 keys', FAILING_FACTOR, 'ordered delivery of 1,000 keys, one of which fails'],
  ['without order, 1,000 users', 'without order before', WITHOUT_FACTOR, 'delivery without order'],
]

export function orderText(rounds: readonly OrderRound[]): string {
  const rows = ORDER_CASES.flatMap(({ name }) => {
    const runs = rounds.flatMap((round) => round.get(name) ?? [])
    if (runs.length === 0) return []
    const of = (value: (run: OrderRun) => number) => spreadText(spreadOf(runs.map(value)), 0)
    const comparison = COMPARISONS.find(([compared]) => compared === name)
    const ratio = comparison === undefined ? '–' : spreadText(ratios(rounds, name, comparison[1]), 2)
    const complaints = [...new Set(runs.flatMap((run) => run.complaints))]
    return [
      [
        name,
        String(runs.length),
        of((run) => run.eventsPerSecond),
        ratio,
        ratio === '–' ? '' : (comparison?.[1] ?? ''),
        of((run) => run.cpuUsPerEvent),
        of((run) => run.databaseCpuUsPerEvent),
        complaints.join(', ') || 'all once',
      ],
    ]
  })
  const head = ['Destination', 'Rounds', 'Events/s', '×', 'Compared with', 'CPU µs/event', 'Database µs', 'Received']
  return tableText(head, rows, (column) => column === 0 || column === 4 || column === 7)
}

export function orderTargets(rounds: readonly OrderRound[]): PerformanceTarget[] {
  return COMPARISONS.flatMap(([name, base, factor, what]) => {
    const ratio = ratios(rounds, name, base)
    if (ratio === undefined && base === 'without order before') return []
    const measured = ratio === undefined ? 'not run' : `${spreadText(ratio, 2)} ×`
    return [{ what, needed: `≥ ${factor} × ${base}`, measured, isMet: ratio && ratio.median >= factor }]
  })
}

function ratios(rounds: readonly OrderRound[], name: OrderCaseName, base: OrderCaseName): ReturnType<typeof spreadOf> {
  return spreadOf(
    rounds.flatMap((round) => {
      const [run, other] = [round.get(name), round.get(base)]
      return run && other ? [run.eventsPerSecond / other.eventsPerSecond] : []
    }),
  )
}
