// The values that a tool offers for a field: which of them match what is typed, and the constant that a mapping gets. Pure.

import { type FieldSchema, isOfType } from './definition.ts'

export interface Choice {
  value: string | number | boolean
  label: string
  description?: string | undefined
}

/** The choices that contain the typed text. If the text is exactly one of the values, all choices, so that another can be chosen. */
export function matchingChoices(choices: readonly Choice[], typed: string): readonly Choice[] {
  const text = typed.trim().toLowerCase()
  if (text === '' || choices.some(({ value }) => String(value) === typed)) return choices
  return choices.filter(({ value, label }) => label.toLowerCase().includes(text) || String(value).toLowerCase().includes(text))
}

/** Adds only choices that are new: some tools ignore the page and return the same ones again. */
export function withMore(known: readonly Choice[], found: readonly Choice[]): readonly Choice[] {
  const values = new Set(known.map(({ value }) => value))
  return [...known, ...found.filter(({ value }) => !values.has(value))]
}

/** What is shown below a value that was chosen. */
export function choiceText({ value, label, description }: Choice): string {
  return [label === String(value) ? '' : label, description ?? ''].filter(Boolean).join(' · ')
}

/** The constant for what is typed or chosen: a number if the field takes numbers, and nothing is lost by that. */
export function choiceConstant(typed: string, choices: readonly Choice[], schema: Pick<FieldSchema, 'type'>): string | number | boolean {
  const value = choices.find((choice) => String(choice.value) === typed)?.value ?? typed
  if (typeof value !== 'string' || value === '' || !isOfType(schema, 'number', 'integer')) return value
  return String(Number(value)) === value ? Number(value) : value
}

/** The JSON text of an object with one more property, which is empty; null if the text is not that of an object with properties of its own. */
export function withProperty(text: string, name: string): string | null {
  try {
    const value = JSON.parse(text) as unknown
    const object = value === null ? {} : value
    if (typeof object !== 'object' || Array.isArray(object) || Object.keys(object).some((key) => key.startsWith('@'))) return null
    return JSON.stringify(Object.hasOwn(object, name) ? object : { ...object, [name]: '' }, null, 2)
  } catch {
    return null
  }
}
