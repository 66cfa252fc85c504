// What the form, its sections and the kinds of destinations share.

import type { ComponentType, ReactNode } from 'react'
import type { Destination } from '../kind.ts'
import type { DestinationChange, Draft, Problems } from './draft.ts'

export interface FieldState<Edited extends Draft = Draft> {
  /** The error to show at a field; null if there is none, or if it should not be shown yet. */
  problem: (field: string) => string | null
  set: (changes: Partial<Edited>, ...fields: string[]) => void
  isReadOnly: boolean
}

export interface FieldsProps<Edited extends Draft = Draft> {
  draft: Edited
  state: FieldState<Edited>
}

/** A section of the form that can be closed. */
export interface FormSection<Edited extends Draft> {
  name: string
  title: string
  /** The fields in it: the section is opened if one of them has a problem. */
  fields: RegExp
  /** What is set in it, in a few words. */
  note: (draft: Edited) => string
  /** Sections that most destinations do not need are closed at first, unless something is set in them. */
  isUsed?: (draft: Edited) => boolean
  Fields: ComponentType<FieldsProps<Edited>>
}

/** What a kind adds to the form. */
export interface KindForm<Edited extends Draft> {
  problemsOf: (draft: Edited) => Problems
  /** The form field at which to show an error of the API; null if no field shows it. */
  fieldOf: (field: string, draft: Edited) => string | null
  /** In the part General, below the name. */
  general?: (fields: FieldsProps<Edited>) => ReactNode
  /** The part Settings, between General and the sections. */
  settings?: (fields: FieldsProps<Edited>) => ReactNode
  sections: readonly FormSection<Edited>[]
  /** The descriptions of fields that every kind has. */
  descriptions: { batchSize: string; timeout: string; maxInFlight?: string }
}

/** The form for the settings of an existing destination. */
export interface EditForm<Saved extends Destination, Edited extends Draft> extends KindForm<Edited> {
  draftOf: (saved: Saved) => Edited
  /** The fields that differ from the saved ones; null if none do. */
  patchOf: (saved: Saved, draft: Edited) => DestinationChange | null
  /** The settings that other tabs edit. */
  editedElsewhere: readonly (keyof Saved)[]
}

/** The properties of an input for a whole number. */
export function numberInput<Edited extends Draft>(
  state: FieldState<Edited>,
  field: string,
  value: number | null,
  set: (value: number | null) => Partial<Edited>,
) {
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
export function textInput<Edited extends Draft>(
  state: FieldState<Edited>,
  field: string,
  value: string,
  set: (value: string) => Partial<Edited>,
) {
  return {
    value,
    onChange: (event: { currentTarget: { value: string } }) => state.set(set(event.currentTarget.value), field),
    error: state.problem(field),
    readOnly: state.isReadOnly,
    autoComplete: 'off',
  }
}
