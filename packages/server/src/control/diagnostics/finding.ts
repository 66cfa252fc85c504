// What a check of the installation came to.

export type CheckState = 'good' | 'warning' | 'bad' | 'unknown'

export interface Finding {
  state: CheckState
  message: string
  /** What to do next; null when nothing. */
  advice: string | null
}
