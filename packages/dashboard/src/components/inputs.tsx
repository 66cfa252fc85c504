// Inputs that pages share, and filters of lists, which are kept in the page's address.

import {
  Button,
  NativeSelect,
  type NativeSelectProps,
  PasswordInput,
  type PasswordInputProps,
  SegmentedControl,
  type SegmentedControlProps,
  Textarea,
  TextInput,
  type TextInputProps,
} from '@mantine/core'
import { type Ref, useEffect, useState } from 'react'
import { changeSearch, useSearchState } from '../url/url-state.ts'

/** The properties of an input for text: its value, and what is done with what is typed. */
export function entered(value: string, set: (value: string) => void) {
  return { value, onChange: ({ currentTarget }: { currentTarget: { value: string } }) => set(currentTarget.value) }
}

/** The same for a checkbox or a switch. */
export function ticked(checked: boolean, set: (checked: boolean) => void) {
  return { checked, onChange: ({ currentTarget }: { currentTarget: { checked: boolean } }) => set(currentTarget.checked) }
}

/** For code, keys and JSON: grows with its lines. */
export const CodeArea = Textarea.withProps({
  autosize: true,
  spellCheck: false,
  styles: { input: { fontFamily: 'var(--mantine-font-family-monospace)' } },
})

/** For a new secret. Password managers must not fill it in. */
export function SecretInput(props: PasswordInputProps) {
  const toggle = { 'aria-label': 'Show or hide the secret' }
  return <PasswordInput {...props} autoComplete="new-password" data-1p-ignore visibilityToggleButtonProps={toggle} />
}

interface Param {
  /** The name of the parameter in the page's address. */
  param: string
  /** The choice without a parameter. */
  fallback?: string
}

export type Option = string | { value: string; label: string }

const valueOf = (option: Option): string => (typeof option === 'string' ? option : option.value)

interface ParamSelectProps extends Param, Pick<NativeSelectProps, 'label' | 'description' | 'maw'> {
  options: readonly Option[]
  /** The first choice, which removes the parameter; null for none. */
  all?: string | null
  /** The least width in a row of filters. */
  grow?: number
  isReplacing?: boolean
}

export function ParamSelect({ param, fallback = '', options, all = 'All', grow, isReplacing = false, ...props }: ParamSelectProps) {
  const [params, change] = useSearchState()
  const data = all === null ? [...options] : [{ value: '', label: all }, ...options]
  const value = data.map(valueOf).find((each) => each === params.get(param)) ?? fallback
  const choose = (chosen: string): void => change({ [param]: chosen === fallback ? null : chosen }, { replace: isReplacing })
  return <NativeSelect {...props} {...entered(value, choose)} data={data} {...(grow && { style: { flex: `1 1 ${grow}px` } })} />
}

interface ParamInputProps extends Omit<Param, 'fallback'>, Pick<TextInputProps, 'label' | 'placeholder' | 'leftSection' | 'maw' | 'style'> {
  /** Another parameter, which is removed. */
  clears?: string
  'data-autofocus'?: boolean
}

/** Searches while it is typed. */
export function ParamInput({ param, clears, ...props }: ParamInputProps) {
  const [params, change] = useSearchState()
  const set = (text: string): void => change({ ...(clears && { [clears]: null }), [param]: text }, { replace: true })
  return <TextInput autoComplete="off" spellCheck={false} {...props} {...entered(params.get(param) ?? '', set)} />
}

interface ParamSegmentsProps extends Required<Param>, Omit<SegmentedControlProps, 'data' | 'value' | 'onChange'> {
  options: readonly Option[]
  isReplacing?: boolean
}

export function ParamSegments({ param, fallback, options, isReplacing = false, ...props }: ParamSegmentsProps) {
  const [params, change] = useSearchState()
  const value = options.map(valueOf).find((each) => each === params.get(param)) ?? fallback
  const choose = (chosen: string): void => change({ [param]: chosen === fallback ? null : chosen }, { replace: isReplacing })
  return <SegmentedControl {...props} value={value} onChange={choose} data={[...options]} />
}

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
    const given = isTrimmed ? text.trim() : text
    if (given !== value) onChange(given)
  }
  return (
    <TextInput
      {...props}
      type={type}
      {...(type === 'datetime-local' ? { step: 1 } : {})}
      {...(input === undefined ? {} : { ref: input })}
      {...entered(text, setText)}
      onBlur={apply}
      onKeyDown={({ key }) => key === 'Enter' && apply()}
      autoComplete="off"
      spellCheck={false}
    />
  )
}

/** Choices of names, and the chosen id if its name is not known: what was deleted can still be searched for. */
export function nameOptions(names: ReadonlyMap<string, string>, chosen = ''): { value: string; label: string }[] {
  const known = [...names].map(([value, label]) => ({ value, label }))
  return [...known, ...(chosen === '' || names.has(chosen) ? [] : [{ value: chosen, label: chosen }])]
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
