// What the sections of the form share.

import type { Draft } from './draft.ts'

export interface FieldState {
  /** The error to show at a field; null if there is none, or if it should not be shown yet. */
  problem: (field: string) => string | null
  set: (changes: Partial<Draft>, ...fields: string[]) => void
  isReadOnly: boolean
}
