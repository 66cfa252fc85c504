// A filter with a list that can be searched, kept in the page's address. Not in inputs.tsx, whose code is part of the first load.

import { Select, type SelectProps } from '@mantine/core'
import { useChoice } from './inputs.tsx'

type ParamComboboxProps = Parameters<typeof useChoice>[0] & Omit<SelectProps, 'data' | 'value' | 'onChange'>

export function ParamCombobox({ param, alias, clears, options, isReplacing, ...props }: ParamComboboxProps) {
  const [value, choose] = useChoice({ param, alias, clears, options, isReplacing })
  return <Select placeholder="Any" clearable {...props} data={[...options]} value={value === '' ? null : value} onChange={choose} />
}
