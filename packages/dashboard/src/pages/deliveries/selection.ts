// Which deliveries are selected, by id: one by one, or from the last one to another. Pure.

/** As many as one replay can name. */
export const MAX_SELECTED = 1_000
/** More would make an address that no mail carries. */
const MAX_IN_ADDRESS = 40

export type Selection = ReadonlySet<string>

export function toggled(selection: Selection, ids: readonly string[], isOn: boolean): Selection {
  const next = new Set(selection)
  for (const id of ids) {
    if (!isOn) next.delete(id)
    else if (next.size < MAX_SELECTED) next.add(id)
  }
  return next
}

/** For the address; null when there is none, or too many. */
export function selectionText(selection: Selection): string | null {
  return selection.size === 0 || selection.size > MAX_IN_ADDRESS ? null : [...selection].join(',')
}

export function selectionOf(text: string | null): Selection {
  return new Set(
    (text ?? '')
      .split(',')
      .filter((id) => /^\d{1,20}-\d{1,9}$/.test(id))
      .slice(0, MAX_IN_ADDRESS),
  )
}
