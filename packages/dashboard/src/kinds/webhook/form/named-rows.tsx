// A list of names and values in the form: headers, or secrets, whose values are not shown. Each entry shows its own errors.

import { Group, Input, TextInput } from '@mantine/core'
import { PlusIcon } from '../../../components/icons.tsx'
import { entered, RemoveButton, SecretInput } from '../../../components/inputs.tsx'
import { SmallButton } from '../../../components/styled.tsx'
import { replaceAt } from '../../../destination/form/draft.ts'
import { capitalized } from '../../../text/format.ts'

interface NamedRowsProps<Entry extends { name: string; value: string }> {
  entries: readonly Entry[]
  /** `header` or `secret`. `problem` gets `headers`, `headers[0].name` and so on. */
  noun: 'header' | 'secret'
  onChange: (entries: Entry[], ...fields: string[]) => void
  problem: (field: string) => string | null
  isReadOnly: boolean
  max: number
  added: Entry
  /** An example of a name. */
  nameExample: string
  valueExample: (entry: Entry) => string
  isNameFixed?: (entry: Entry) => boolean
}

export function NamedRows<Entry extends { name: string; value: string }>(props: NamedRowsProps<Entry>) {
  const { entries, noun, onChange, problem, isReadOnly, max, added, nameExample, valueExample, isNameFixed } = props
  const list = `${noun}s`
  const input = (entry: Entry, at: number, part: 'name' | 'value') => ({
    label: `${capitalized(noun)} ${at + 1} ${part}`,
    ...entered(entry[part], (value) =>
      onChange(replaceAt(entries, at, { ...entry, [part]: part === 'name' ? value.trim() : value }), `${list}[${at}].${part}`),
    ),
    error: problem(`${list}[${at}].${part}`),
    autoComplete: 'off',
    style: { flex: part === 'name' ? '1 1 150px' : '2 1 180px' },
  })
  return (
    <>
      {entries.map((entry, at) => {
        const value = { ...input(entry, at, 'value'), placeholder: valueExample(entry), readOnly: isReadOnly }
        return (
          <Group key={at} gap="xs" align="flex-start">
            <TextInput {...input(entry, at, 'name')} placeholder={nameExample} readOnly={isReadOnly || isNameFixed?.(entry) === true} />
            {noun === 'header' ? <TextInput {...value} /> : <SecretInput {...value} />}
            {!isReadOnly && (
              <RemoveButton label={`Remove ${noun} ${at + 1}`} onClick={() => onChange(entries.filter((_, other) => other !== at))} />
            )}
          </Group>
        )
      })}
      {problem(list) !== null && <Input.Error>{problem(list)}</Input.Error>}
      {!isReadOnly && entries.length < max && (
        <Group>
          <SmallButton leftSection={<PlusIcon size={14} />} onClick={() => onChange([...entries, added])}>
            Add a {noun}
          </SmallButton>
        </Group>
      )}
    </>
  )
}
