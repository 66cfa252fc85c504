// The result of a check of the installation.

export type CheckState = 'good' | 'warning' | 'bad' | 'unknown'

export interface Finding {
  state: CheckState
  message: string
  /** What to do next; null if nothing needs to be done. */
  advice: string | null
}
