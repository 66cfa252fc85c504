// The sources whose messages the destination gets.

import { MultiSelect } from '@mantine/core'
import { useList } from '../../api/queries.ts'
import type { FieldsProps } from './field-state.ts'

export function SourcesField({ draft, state }: FieldsProps) {
  const sources = useList('GET /api/sources', { query: { limit: 1_000 } })
  const known = sources.rows.map(({ id, name }) => ({ value: id, label: name }))
  // A source that is not in the list (yet) is shown by its id and kept.
  const others = draft.sourceIds.filter((id) => !known.some(({ value }) => value === id)).map((id) => ({ value: id, label: id }))
  return (
    <MultiSelect
      openOnFocus={false}
      label="Sources"
      description="Messages from these sources are sent to this destination. Without a source, it receives nothing."
      placeholder={draft.sourceIds.length === 0 ? 'Choose sources' : ''}
      data={distinct([...known, ...others])}
      value={draft.sourceIds}
      onChange={(sourceIds) => state.set({ sourceIds }, 'sourceIds')}
      error={state.problem('sourceIds') ?? (sources.problem ? `Could not load sources: ${sources.problem.message}` : null)}
      readOnly={state.isReadOnly}
      searchable
      nothingFoundMessage="No matching source"
    />
  )
}

/** Adds the id to the labels of sources that have the same name. */
function distinct(options: readonly { value: string; label: string }[]): { value: string; label: string }[] {
  const times = new Map<string, number>()
  for (const { label } of options) times.set(label, (times.get(label) ?? 0) + 1)
  return options.map(({ value, label }) => ({ value, label: (times.get(label) ?? 0) > 1 ? `${label} (${value})` : label }))
}
