// The ids of the selected deliveries. Pure.

/** The most deliveries that one replay can list. */
export const MAX_SELECTED = 1_000
/** More would make the URL too long to share. */
const MAX_IN_URL = 40

export type Selection = ReadonlySet<string>

export function toggled(selection: Selection, ids: readonly string[], isOn: boolean): Selection {
  const next = new Set(selection)
  for (const id of ids) {
    if (!isOn) next.delete(id)
    else if (next.size < MAX_SELECTED) next.add(id)
  }
  return next
}

/** The selection as text for the URL; null if it is empty or too large. */
export function selectionText(selection: Selection): string | null {
  return selection.size === 0 || selection.size > MAX_IN_URL ? null : [...selection].join(',')
}

export function selectionOf(text: string | null): Selection {
  return new Set(
    (text ?? '')
      .split(',')
      .filter((id) => /^\d{1,20}-\d{1,9}$/.test(id))
      .slice(0, MAX_IN_URL),
  )
}
