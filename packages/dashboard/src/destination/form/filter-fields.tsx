// Which messages the destination gets: types, events, an expression, historical messages; and whether they contain their violations.

import { MultiSelect, SimpleGrid, Switch, TagsInput } from '@mantine/core'
import { MESSAGE_TYPES } from '../../api/rules.ts'
import { CodeArea, ticked } from '../../components/inputs.tsx'
import type { Draft } from './draft.ts'
import { type FieldsProps, textInput } from './field-state.ts'
import { SubscribeField } from './subscribe-field.tsx'
import type { MessageType } from './validation.ts'

const EXAMPLE = '[{ "when": "type = \\"track\\"", "action": "drop_properties", "fields": { "properties": ["email"] } }]'

export function FilterFields({ draft, state }: FieldsProps) {
  const list = (field: string) => ({ error: state.problem(field), readOnly: state.isReadOnly, openOnFocus: false })
  const types = (key: 'typesAllow' | 'typesDeny', field: string) => ({
    ...list(field),
    data: [...MESSAGE_TYPES],
    value: draft[key],
    onChange: (values: MessageType[]) => state.set({ [key]: values }, field),
  })
  const events = (key: 'eventsAllow' | 'eventsDeny', field: string) => ({
    ...list(field),
    value: draft[key],
    onChange: (values: string[]) => state.set({ [key]: values }, field),
    splitChars: [],
    acceptValueOnBlur: true,
  })
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <MultiSelect label="Allowed types" description="Leave empty to allow all." {...types('typesAllow', 'filter.types.allow')} />
        <MultiSelect label="Denied types" description="Takes precedence over allowed types." {...types('typesDeny', 'filter.types.deny')} />
        <TagsInput
          label="Allowed events"
          description="Exact names; press Enter after each. Leave empty to allow all."
          {...events('eventsAllow', 'filter.events.allow')}
        />
        <TagsInput
          label="Denied events"
          description="Takes precedence over allowed events."
          {...events('eventsDeny', 'filter.events.deny')}
        />
      </SimpleGrid>
      <SubscribeField draft={draft} state={state} />
      <CodeArea
        label="Conditional filters"
        description="A JSON list. For messages that match an expression: drop them, send only a share of them, or remove properties."
        placeholder={EXAMPLE}
        {...textInput(state, 'conditionalFilters', draft.conditionalFilters, (conditionalFilters) => ({ conditionalFilters }))}
        minRows={1}
        maxRows={16}
      />
      <Switch
        label="Send historical messages"
        description="Messages with a timestamp more than 24 h before they were received, for example from an import."
        {...ticked(draft.historical, (historical) => state.set({ historical }, 'historical'))}
        disabled={state.isReadOnly}
      />
      <Switch
        label="Include violations of the tracking plan"
        description="Adds context.violations to messages that violate the tracking plan of their source: rule, property, what was expected and what was found."
        {...ticked(draft.includeViolations, (includeViolations) => state.set({ includeViolations }, 'includeViolations'))}
        disabled={state.isReadOnly}
      />
    </>
  )
}

export function filterNote({
  typesAllow,
  typesDeny,
  eventsAllow,
  eventsDeny,
  historical,
  includeViolations,
  conditionalFilters,
  subscribe,
}: Draft): string {
  const parts = [
    ...(typesAllow.length > 0 ? [`only ${typesAllow.join(', ')}`] : []),
    ...(typesDeny.length > 0 ? [`no ${typesDeny.join(', ')}`] : []),
    ...(eventsAllow.length > 0 ? [`${eventsAllow.length} allowed ${eventsAllow.length === 1 ? 'event' : 'events'}`] : []),
    ...(eventsDeny.length > 0 ? [`${eventsDeny.length} denied ${eventsDeny.length === 1 ? 'event' : 'events'}`] : []),
    ...(subscribe.trim() === '' ? [] : ['an expression']),
    ...(conditionalFilters.trim() === '' ? [] : ['conditional filters']),
    ...(historical ? [] : ['no historical messages']),
  ]
  return `${parts.length === 0 ? 'all messages' : parts.join('; ')}${includeViolations ? '; with violations' : ''}`
}
