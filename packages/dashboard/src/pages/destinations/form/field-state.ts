// What the sections of the form share.

import type { Draft } from '../draft.ts'

export interface FieldState {
  /** The error to show at a field; null if there is none, or if it should not be shown yet. */
  problem: (field: string) => string | null
  set: (changes: Partial<Draft>, ...fields: string[]) => void
  isReadOnly: boolean
}

export interface FieldsProps {
  draft: Draft
  state: FieldState
}

/** The properties of an input for a whole number. */
export function numberInput(state: FieldState, field: string, value: number | null, set: (value: number | null) => Partial<Draft>) {
  return {
    value: value ?? '',
    onChange: (next: number | string) => state.set(set(typeof next === 'number' ? next : null), field),
    error: state.problem(field),
    readOnly: state.isReadOnly,
    thousandSeparator: ',',
    allowDecimal: false,
    clampBehavior: 'none' as const,
  }
}

/** The properties of an input for text, such as a duration. */
export function textInput(state: FieldState, field: string, value: string, set: (value: string) => Partial<Draft>) {
  return {
    value,
    onChange: (event: { currentTarget: { value: string } }) => state.set(set(event.currentTarget.value), field),
    error: state.problem(field),
    readOnly: state.isReadOnly,
    autoComplete: 'off',
  }
}
