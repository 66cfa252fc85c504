// The filters of the list of messages. They are in the URL; text is applied when Enter is pressed or the field loses focus.

import { Button, Grid, Group, NativeSelect, TextInput } from '@mantine/core'
import { type FormEvent, useEffect, useState } from 'react'
import { SearchIcon } from '../../components/icons.tsx'
import { changeSearch } from '../../url-state.ts'
import { fromLocalInput, localInput, PERIODS, periodChoice } from './period.ts'

export const TYPES = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete', 'dead_letter'] as const

export const FILTERS = ['messageId', 'userId', 'sourceId', 'type', 'event', 'period', 'from', 'to'] as const

export function Filters({ params, sources }: { params: URLSearchParams; sources: ReadonlyMap<string, string> }) {
  const messageId = useDraft(params.get('messageId') ?? '')
  const userId = useDraft(params.get('userId') ?? '')
  const event = useDraft(params.get('event') ?? '')
  const sourceId = params.get('sourceId') ?? ''
  const choice = periodChoice(params)
  // The name of an event is not trimmed: it must match exactly, and it may begin or end with a space.
  const typed = { messageId: messageId.text.trim(), userId: userId.text.trim(), event: event.text }
  const apply = (): void => changeSearch(typed)
  const applyIfChanged = (): void => {
    if (Object.entries(typed).some(([name, text]) => text !== (params.get(name) ?? ''))) apply()
  }
  const submit = (event: FormEvent): void => {
    event.preventDefault()
    apply()
  }
  const isFiltered = FILTERS.some((name) => params.has(name))
  return (
    <form onSubmit={submit} role="search" aria-label="Search messages">
      <Grid gap="sm" align="flex-end">
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextInput
            label="messageId"
            placeholder="Full messageId"
            value={messageId.text}
            onChange={(event) => messageId.setText(event.currentTarget.value)}
            onBlur={applyIfChanged}
            autoComplete="off"
            spellCheck={false}
            leftSection={<SearchIcon size={15} />}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextInput
            label="User"
            placeholder="Full userId"
            value={userId.text}
            onChange={(event) => userId.setText(event.currentTarget.value)}
            onBlur={applyIfChanged}
            autoComplete="off"
            spellCheck={false}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4 }}>
          <TextInput
            label="Event"
            placeholder="Exact name of a track event"
            value={event.text}
            onChange={({ currentTarget }) => event.setText(currentTarget.value)}
            onBlur={applyIfChanged}
            autoComplete="off"
            spellCheck={false}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 3 }}>
          <NativeSelect
            label="Source"
            value={sourceId}
            onChange={(event) => changeSearch({ sourceId: event.currentTarget.value })}
            data={[
              { value: '', label: 'All' },
              ...[...sources].map(([value, label]) => ({ value, label })),
              // A deleted source can still be searched for.
              ...(sourceId === '' || sources.has(sourceId) ? [] : [{ value: sourceId, label: sourceId }]),
            ]}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 6, sm: 4, lg: 3 }}>
          <NativeSelect
            label="Type"
            value={params.get('type') ?? ''}
            onChange={(event) => changeSearch({ type: event.currentTarget.value })}
            data={[{ value: '', label: 'All' }, ...TYPES]}
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, sm: 4, lg: 3 }}>
          <NativeSelect
            label="Received"
            value={choice}
            onChange={(event) => {
              const { value } = event.currentTarget
              changeSearch({ period: value === 'any' ? null : value, from: null, to: null })
            }}
            data={[
              { value: 'any', label: 'Any time' },
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

/** The text that is being typed; reset when the URL changes. */
function useDraft(value: string): { text: string; setText: (text: string) => void } {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  return { text, setText }
}
