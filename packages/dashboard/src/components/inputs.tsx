// Inputs that pages share, and filters of lists, which are kept in the page's address.

import {
  ActionIcon,
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
  Tooltip,
} from '@mantine/core'
import { type ComponentProps, type FormEvent, type Ref, useEffect, useState } from 'react'
import { isoTime, localTime } from '../url/local-time.ts'
import { changeSearch, type Param, useParam } from '../url/url-state.ts'
import { DeletionIcon } from './icons.tsx'

/** A form that the page sends itself. */
export function Form({ onSubmit, ...props }: Omit<ComponentProps<'form'>, 'onSubmit'> & { onSubmit: () => unknown }) {
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    void onSubmit()
  }
  return <form noValidate {...props} onSubmit={submit} />
}

/** Removes a row of inputs that have labels. */
export function RemoveButton({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <Tooltip label={label}>
      <ActionIcon variant="subtle" color="gray" size={36} mt={25} onClick={onClick} aria-label={label}>
        <DeletionIcon size={16} />
      </ActionIcon>
    </Tooltip>
  )
}

/** The properties of an input for text: its value, and what is done with what is typed. */
export function entered(value: string, set: (value: string) => void) {
  return { value, onChange: ({ currentTarget }: { currentTarget: { value: string } }) => set(currentTarget.value) }
}

/** The same for a checkbox or a switch. */
export function ticked(checked: boolean, set: (checked: boolean) => void) {
  return { checked, onChange: ({ currentTarget }: { currentTarget: { checked: boolean } }) => set(currentTarget.checked) }
}

const AREA = { autosize: true, spellCheck: false }
const MONOSPACE = { fontFamily: 'var(--mantine-font-family-monospace)' }

/** For code, keys and JSON: grows with its lines. */
export const CodeArea = Textarea.withProps({ ...AREA, styles: { input: MONOSPACE } })
export const SmallCodeArea = Textarea.withProps({ ...AREA, styles: { input: { ...MONOSPACE, fontSize: 'var(--mantine-font-size-xs)' } } })

/** For a new secret. Password managers must not fill it in. */
export function SecretInput(props: PasswordInputProps) {
  const toggle = { 'aria-label': 'Show or hide the secret' }
  return <PasswordInput {...props} autoComplete="new-password" data-1p-ignore visibilityToggleButtonProps={toggle} />
}

export type Option = string | { value: string; label: string }

interface Choice extends Param {
  options: readonly Option[]
  /** The choice without a parameter. */
  fallback?: string | undefined
}

/** The chosen option, and a function that chooses another. */
export function useChoice({ options, fallback = '', ...param }: Choice) {
  const [chosen, set] = useParam(param)
  const value = options.map((option) => (typeof option === 'string' ? option : option.value)).find((each) => each === chosen) ?? fallback
  return [value, (next: string | null): void => set(next === fallback ? null : next)] as const
}

interface ParamSelectProps extends Choice, Pick<NativeSelectProps, 'label' | 'description' | 'maw'> {
  /** The first choice, which removes the parameter; null for none. */
  all?: string | null
  /** The least width in a row of filters. */
  grow?: number
}

export function ParamSelect({ param, fallback, options, all = 'All', grow, isReplacing, ...props }: ParamSelectProps) {
  const [value, choose] = useChoice({ param, options, fallback, isReplacing })
  const data = all === null ? [...options] : [{ value: '', label: all }, ...options]
  return <NativeSelect {...props} {...entered(value, choose)} data={data} {...(grow && { style: { flex: `1 1 ${grow}px` } })} />
}

interface ParamInputProps extends Param, Pick<TextInputProps, 'label' | 'placeholder' | 'leftSection' | 'maw' | 'style'> {
  'data-autofocus'?: boolean
}

/** Searches while it is typed. */
export function ParamInput({ param, clears, ...props }: ParamInputProps) {
  const [value, set] = useParam({ param, clears, isReplacing: true })
  return <TextInput autoComplete="off" spellCheck={false} {...props} {...entered(value, set)} />
}

interface ParamSegmentsProps extends Choice, Omit<SegmentedControlProps, 'data' | 'value' | 'onChange'> {
  fallback: string
}

export function ParamSegments({ param, fallback, options, isReplacing, ...props }: ParamSegmentsProps) {
  const [value, choose] = useChoice({ param, options, fallback, isReplacing })
  return <SegmentedControl {...props} value={value} onChange={choose} data={[...options]} />
}

interface TextFilterProps extends Param, Pick<TextInputProps, 'label' | 'leftSection' | 'maxLength' | 'placeholder'> {
  /** The address has times in UTC, the input those of the viewer's time zone. */
  type?: 'text' | 'datetime-local'
  /** The name of an event may begin or end with a space. */
  isTrimmed?: boolean
  input?: Ref<HTMLInputElement>
}

/** Applied when it loses focus or Enter is pressed, so that not every letter is a request. */
export function TextFilter({ param, alias, clears, type = 'text', isTrimmed = true, input, ...props }: TextFilterProps) {
  const [chosen, choose] = useParam({ param, alias, clears })
  const isTime = type === 'datetime-local'
  const value = isTime ? localTime(chosen) : chosen
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  const apply = (): void => {
    const given = isTrimmed ? text.trim() : text
    if (given !== value) choose(isTime ? isoTime(given) : given)
  }
  return (
    <TextInput
      {...props}
      type={type}
      {...(isTime ? { step: 1 } : {})}
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
