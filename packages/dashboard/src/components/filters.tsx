// Filters of lists, which are kept in the page's address.

import { Button, TextInput, type TextInputProps } from '@mantine/core'
import { type Ref, useEffect, useState } from 'react'
import { changeSearch } from '../url/url-state.ts'

interface TextFilterProps extends Pick<TextInputProps, 'leftSection' | 'maxLength' | 'placeholder'> {
  label: string
  value: string | undefined
  type?: 'text' | 'datetime-local'
  /** The name of an event may begin or end with a space. */
  isTrimmed?: boolean
  input?: Ref<HTMLInputElement>
  onChange: (value: string) => void
}

/** Applied when it loses focus or Enter is pressed, so that not every letter is a request. */
export function TextFilter({ value = '', type = 'text', isTrimmed = true, input, onChange, ...props }: TextFilterProps) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = (): void => {
    const entered = isTrimmed ? text.trim() : text
    if (entered !== value) onChange(entered)
  }
  return (
    <TextInput
      {...props}
      type={type}
      {...(type === 'datetime-local' ? { step: 1 } : {})}
      {...(input === undefined ? {} : { ref: input })}
      value={text}
      onChange={({ currentTarget }) => setText(currentTarget.value)}
      onBlur={apply}
      onKeyDown={({ key }) => key === 'Enter' && apply()}
      autoComplete="off"
      spellCheck={false}
    />
  )
}

/** All names, and the chosen id if its name is not known: what was deleted can still be searched for. */
export function nameOptions(names: ReadonlyMap<string, string>, chosen = ''): { value: string; label: string }[] {
  const known = [...names].map(([value, label]) => ({ value, label }))
  return [{ value: '', label: 'All' }, ...known, ...(chosen === '' || names.has(chosen) ? [] : [{ value: chosen, label: chosen }])]
}

export function clearFilters(names: readonly string[]): void {
  changeSearch(Object.fromEntries(names.map((name) => [name, null])))
}

export function ClearFilters({ onClick, mt }: { onClick: () => void; mt?: number | string }) {
  return (
    <Button variant="subtle" size="compact-sm" onClick={onClick} {...(mt === undefined ? {} : { mt })}>
      Clear filters
    </Button>
  )
}
