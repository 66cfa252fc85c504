// The results of the installation's diagnostics: names of the checks, their order, and a summary.

import { capitalized } from '../../text/format.ts'

export type CheckState = 'good' | 'warning' | 'bad' | 'unknown'

const NAMES: Readonly<Record<string, string>> = {
  store_writable: 'Store is writable',
  store_integrity: 'Store integrity',
  ledger: 'Ledger balances',
  retention: 'Retention',
  disk: 'Disk space',
  clock: 'Clock',
  secret_key: 'Secret key',
  nodes: 'Nodes',
  destination: 'Destination',
  url: 'Reachability of',
}

/** For an unknown check, returns its name with spaces. */
export function checkName(name: string): string {
  const words = NAMES[name] ?? name.replaceAll('_', ' ')
  return capitalized(words)
}

const ORDER: readonly CheckState[] = ['bad', 'warning', 'unknown', 'good']

export function byUrgency<T extends { state: CheckState }>(checks: readonly T[]): T[] {
  return ORDER.flatMap((state) => checks.filter((check) => check.state === state))
}

export function summaryOf(checks: readonly { state: CheckState }[]): string {
  const count = (state: CheckState): number => checks.filter((check) => check.state === state).length
  const [bad, warning, unknown] = [count('bad'), count('warning'), count('unknown')]
  if (bad + warning + unknown === 0) return `All ${checks.length} checks passed.`
  const parts = [
    ...(bad > 0 ? [`${bad} failed`] : []),
    ...(warning > 0 ? [`${warning} ${warning === 1 ? 'warning' : 'warnings'}`] : []),
    ...(unknown > 0 ? [`${unknown} unknown`] : []),
  ]
  return `${checks.length} checks: ${parts.join(', ')}, ${count('good')} passed.`
}
