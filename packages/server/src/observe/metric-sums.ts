// Turns the metrics of several processes on one port into one text, as if one process had counted everything. Works on the Prometheus
// text of each process, in which each line is a series and its value.
//
// Invariant: a sum never falls because a process did not answer or was replaced. Prometheus interprets a falling counter as a restart
// and counts the whole remaining value once more. So the last values of a process that does not answer are used again, and the counters of a
// process that ended are kept.

import { METRICS, type Metric, type MetricKey, NOT_SUMMED, PROCESS_METRICS } from './metric-table.ts'

interface Family {
  /** The lines HELP and TYPE. */
  head: string
  values: Map<string, number>
}

type Families = Map<string, Family>

/** `labelled`: every process keeps its own series, with the label `process`. `first`: all processes report the same value. */
type Rule = 'sum' | 'max' | 'min' | 'first' | 'labelled'

const RULES: ReadonlyMap<string, Rule> = new Map([
  ...(Object.entries(METRICS) as [MetricKey, Metric][]).map(([key, { name, origin }]): [string, Rule] => [
    name,
    origin === 'store' ? 'first' : (NOT_SUMMED[key] ?? 'sum'),
  ]),
  ...Object.keys(PROCESS_METRICS).map((name): [string, Rule] => [name, 'labelled']),
])
const TYPES = new Map(Object.values(METRICS).map(({ name, type }: Metric) => [name, type]))

export class MetricSums {
  readonly #latest = new Map<number, Families>()
  /** The counters of processes that ended, by family and series. */
  readonly #ended = new Map<string, Map<string, number>>()

  /** The text of a process, which is identified by its index. */
  update(index: number, text: string): void {
    this.#latest.set(index, parse(text))
  }

  /** The process with this index has ended; the next one with the same index starts at 0. */
  end(index: number): void {
    for (const [name, { values }] of this.#latest.get(index) ?? []) {
      if (RULES.get(name) !== 'sum' || TYPES.get(name) === 'gauge') continue
      const kept = this.#ended.get(name) ?? new Map<string, number>()
      for (const [series, value] of values) kept.set(series, (kept.get(series) ?? 0) + value)
      this.#ended.set(name, kept)
    }
    this.#latest.delete(index)
  }

  /** The metrics of all processes; null if none has reported. `answered` are the indexes of those that reported to this scrape. */
  text(answered: ReadonlySet<number>, processes: number): string | null {
    if (this.#latest.size === 0) return null
    const inOrder = [...this.#latest].sort(([a], [b]) => a - b)
    this.#dropDeletedDestinations()
    const combined: Families = new Map()
    for (const [index, families] of inOrder) {
      for (const [name, family] of families) {
        if (family.values.size === 0 && combined.has(name)) continue
        const into = combined.get(name) ?? { head: family.head, values: new Map<string, number>() }
        combined.set(name, into)
        add(RULES.get(name) ?? 'first', family, into, index)
      }
    }
    for (const [name, kept] of this.#ended) {
      const values = combined.get(name)?.values
      // A series that no running process has is missing until one of them counts again.
      for (const [series, value] of kept) if (values?.has(series)) values.set(series, (values.get(series) ?? 0) + value)
    }
    const own = METRICS.processes.name
    combined.get(own)?.values.set(`${own}{state="answered"}`, answered.size)
    combined.get(own)?.values.set(`${own}{state="missing"}`, processes - answered.size)
    return [...combined.values()].map(written).join('')
  }

  /** Otherwise counters of destinations that were deleted long ago would accumulate. */
  #dropDeletedDestinations(): void {
    const known = new Set([...this.#latest.values()].flatMap((families) => destinationsOf(families.get(METRICS.destinationInfo.name))))
    for (const kept of this.#ended.values()) {
      for (const series of kept.keys()) {
        const destination = destinationOf(series)
        if (destination !== undefined && !known.has(destination)) kept.delete(series)
      }
    }
  }
}

function add(rule: Rule, { values }: Family, into: Family, index: number): void {
  if (rule === 'first') {
    if (into.values.size === 0) into.values = values
    return
  }
  for (const [series, value] of values) {
    if (rule === 'labelled') {
      into.values.set(labelled(series, index), value)
      continue
    }
    const before = into.values.get(series)
    into.values.set(series, before === undefined ? value : rule === 'sum' ? before + value : Math[rule](before, value))
  }
}

function parse(text: string): Families {
  const families: Families = new Map()
  let family: Family = { head: '', values: new Map() }
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) {
      family = { head: `${line}\n`, values: new Map() }
      families.set(line.split(' ', 3)[2] as string, family)
    } else if (line.startsWith('#')) family.head += `${line}\n`
    else if (line !== '') {
      const space = line.lastIndexOf(' ')
      family.values.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
  }
  return families
}

function written({ head, values }: Family): string {
  let text = head
  for (const [series, value] of values) text += `${series} ${value}\n`
  return `${text}\n`
}

function labelled(series: string, index: number): string {
  const brace = series.indexOf('{')
  return brace === -1 ? `${series}{process="${index}"}` : `${series.slice(0, brace)}{process="${index}",${series.slice(brace + 1)}`
}

function destinationsOf(info: Family | undefined): string[] {
  return [...(info?.values.keys() ?? [])].flatMap((series) => destinationOf(series) ?? [])
}

function destinationOf(series: string): string | undefined {
  return /[{,]destination="([^"]*)"/.exec(series)?.[1]
}
