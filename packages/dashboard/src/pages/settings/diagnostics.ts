// The checks of the installation: what each is about, the most urgent first, and all of them in a sentence.

export type CheckState = 'good' | 'warning' | 'bad' | 'unknown'

const NAMES: Readonly<Record<string, string>> = {
  store_writable: 'Writing to the store',
  store_integrity: 'The store is whole',
  ledger: 'The books add up',
  retention: 'Retention',
  disk: 'Room on the disk',
  clock: 'Clock',
  secret_key: 'Key of stored secrets',
  nodes: 'Nodes',
  destination: 'Destination',
  url: 'Reaching',
}

/** Of one that is not known here, its name with blanks. */
export function checkName(name: string): string {
  const words = NAMES[name] ?? name.replaceAll('_', ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

const ORDER: readonly CheckState[] = ['bad', 'warning', 'unknown', 'good']

export function byUrgency<T extends { state: CheckState }>(checks: readonly T[]): T[] {
  return ORDER.flatMap((state) => checks.filter((check) => check.state === state))
}

export function summaryOf(checks: readonly { state: CheckState }[]): string {
  const count = (state: CheckState): number => checks.filter((check) => check.state === state).length
  const [bad, warning, unknown] = [count('bad'), count('warning'), count('unknown')]
  if (bad + warning + unknown === 0) return `All ${checks.length} checks are good.`
  const parts = [
    ...(bad > 0 ? [`${bad} bad`] : []),
    ...(warning > 0 ? [`${warning} to look at`] : []),
    ...(unknown > 0 ? [`${unknown} that could not be made`] : []),
  ]
  return `Of ${checks.length} checks: ${parts.join(', ')}.`
}
