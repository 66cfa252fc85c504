// Where is my event? What is searched for stands in the address; text is taken when Enter is pressed or the field is left.

import { Button, Grid, Group, NativeSelect, TextInput } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { SearchIcon } from '../../components/icons.tsx'
import { changeSearch } from '../../url-state.ts'
import { fromLocalInput, localInput, PERIODS, periodChoice } from './period.ts'

export const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const

export const FILTERS = ['messageId', 'userId', 'sourceId', 'type', 'period', 'from', 'to'] as const

export function Filters({ params, sources }: { params: URLSearchParams; sources: ReadonlyMap<string, string> }) {
  const messageId = useDraft(params.get('messageId') ?? '')
  const userId = useDraft(params.get('userId') ?? '')
  const sourceId = params.get('sourceId') ?? ''
  const choice = periodChoice(params)
  const take = (): void => changeSearch({ messageId: messageId.text.trim(), userId: userId.text.trim() })
  const leave = (): void => {
    const isChanged = messageId.text.trim() !== (params.get('messageId') ?? '') || userId.text.trim() !== (params.get('userId') ?? '')
    if (isChanged) take()
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    take()
  }
  const isFiltered = FILTERS.some((name) => params.has(name))
  return (
    <form onSubmit={submit} role="search" aria-label="Where is my event?">
      <Grid gap="sm" align="flex-end">
        <Grid.Col span={{ base: 12, sm: 6, lg: 3 }}>
          <TextInput
            label="messageId"
            placeholder="In whole, as the sender gave it"
            value={messageId.text}
            onChange={(event) => messageId.setText(event.currentTarget.value)}
            onBlur={leave}
            autoComplete="off"
            spellCheck={false}
            leftSection={<SearchIcon size={15} />}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 6, lg: 3 }}>
          <TextInput
            label="User"
            placeholder="A userId, in whole"
            value={userId.text}
            onChange={(event) => userId.setText(event.currentTarget.value)}
            onBlur={leave}
            autoComplete="off"
            spellCheck={false}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 2 }}>
          <NativeSelect
            label="Source"
            value={sourceId}
            onChange={(event) => changeSearch({ sourceId: event.currentTarget.value })}
            data={[
              { value: '', label: 'All' },
              ...[...sources].map(([value, label]) => ({ value, label })),
              // One that was deleted can still be looked for.
              ...(sourceId === '' || sources.has(sourceId) ? [] : [{ value: sourceId, label: sourceId }]),
            ]}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 2 }}>
          <NativeSelect
            label="Type"
            value={params.get('type') ?? ''}
            onChange={(event) => changeSearch({ type: event.currentTarget.value })}
            data={[{ value: '', label: 'All' }, ...TYPES]}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4, lg: 2 }}>
          <NativeSelect
            label="Received"
            value={choice}
            onChange={(event) => {
              const { value } = event.currentTarget
              changeSearch({ period: value === 'any' ? null : value, from: null, to: null })
            }}
            data={[
              { value: 'any', label: 'At any time' },
              ...PERIODS.map(({ value, label }) => ({ value, label })),
              { value: 'between', label: 'Between two times' },
            ]}
          />
        </Grid.Col>
        {choice === 'between' &&
          (['from', 'to'] as const).map((name) => (
            <Grid.Col key={name} span={{ base: 12, sm: 6, lg: 3 }}>
              <TextInput
                type="datetime-local"
                step={1}
                label={name === 'from' ? 'From (your time)' : 'To (your time)'}
                value={localInput(params.get(name))}
                onChange={(event) =>
                  changeSearch({ [name]: fromLocalInput(event.currentTarget.value), period: 'between' }, { replace: true })
                }
              />
            </Grid.Col>
          ))}
        <Grid.Col span={{ base: 12, lg: 'content' }}>
          <Group gap="xs">
            <Button type="submit">Search</Button>
            {isFiltered && (
              <Button variant="default" onClick={() => changeSearch(Object.fromEntries(FILTERS.map((name) => [name, null])))}>
                Clear
              </Button>
            )}
          </Group>
        </Grid.Col>
      </Grid>
    </form>
  )
}

/** What is being typed; begun anew when the address says something else. */
function useDraft(value: string): { text: string; setText: (text: string) => void } {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  return { text, setText }
}
