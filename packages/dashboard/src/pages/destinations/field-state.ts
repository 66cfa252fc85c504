// What the parts of the form share.

import type { Draft } from './draft.ts'

export interface FieldState {
  /** What is wrong with a field, if it is to be said by now. */
  problem: (field: string) => string | null
  set: (changes: Partial<Draft>, ...fields: string[]) => void
  isReadOnly: boolean
}
