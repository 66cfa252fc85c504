// Which messages the destination gets: types, events, an expression, historical messages; and whether they contain their violations.

import { MultiSelect, SimpleGrid, Switch, TagsInput } from '@mantine/core'
import type { Draft } from '../draft.ts'
import { MESSAGE_TYPES } from '../validation.ts'
import type { FieldsProps } from './field-state.ts'
import { SubscribeField } from './subscribe-field.tsx'

export function FilterFields({ draft, state }: FieldsProps) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <MultiSelect
          openOnFocus={false}
          label="Allowed types"
          description="Leave empty to allow all."
          data={[...MESSAGE_TYPES]}
          value={draft.typesAllow}
          onChange={(values) => state.set({ typesAllow: values }, 'filter.types.allow')}
          error={state.problem('filter.types.allow')}
          readOnly={state.isReadOnly}
        />
        <MultiSelect
          openOnFocus={false}
          label="Denied types"
          description="Takes precedence over allowed types."
          data={[...MESSAGE_TYPES]}
          value={draft.typesDeny}
          onChange={(values) => state.set({ typesDeny: values }, 'filter.types.deny')}
          error={state.problem('filter.types.deny')}
          readOnly={state.isReadOnly}
        />
        <TagsInput
          openOnFocus={false}
          label="Allowed events"
          description="Exact names; press Enter after each. Leave empty to allow all."
          value={draft.eventsAllow}
          onChange={(eventsAllow) => state.set({ eventsAllow }, 'filter.events.allow')}
          error={state.problem('filter.events.allow')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
        <TagsInput
          openOnFocus={false}
          label="Denied events"
          description="Takes precedence over allowed events."
          value={draft.eventsDeny}
          onChange={(eventsDeny) => state.set({ eventsDeny }, 'filter.events.deny')}
          error={state.problem('filter.events.deny')}
          readOnly={state.isReadOnly}
          splitChars={[]}
          acceptValueOnBlur
        />
      </SimpleGrid>
      <SubscribeField draft={draft} state={state} />
      <Switch
        label="Send historical messages"
        description="Messages with a timestamp more than 24 h before they were received, for example from an import."
        checked={draft.historical}
        onChange={(event) => state.set({ historical: event.currentTarget.checked }, 'historical')}
        disabled={state.isReadOnly}
      />
      <Switch
        label="Include violations of the tracking plan"
        description="Adds context.violations to messages that violate the tracking plan of their source: rule, property, what was expected and what was found."
        checked={draft.includeViolations}
        onChange={(event) => state.set({ includeViolations: event.currentTarget.checked }, 'includeViolations')}
        disabled={state.isReadOnly}
      />
    </>
  )
}

export function filterNote({ typesAllow, typesDeny, eventsAllow, eventsDeny, historical, includeViolations, subscribe }: Draft): string {
  const parts = [
    ...(typesAllow.length > 0 ? [`only ${typesAllow.join(', ')}`] : []),
    ...(typesDeny.length > 0 ? [`no ${typesDeny.join(', ')}`] : []),
    ...(eventsAllow.length > 0 ? [`${eventsAllow.length} allowed ${eventsAllow.length === 1 ? 'event' : 'events'}`] : []),
    ...(eventsDeny.length > 0 ? [`${eventsDeny.length} denied ${eventsDeny.length === 1 ? 'event' : 'events'}`] : []),
    ...(subscribe.trim() === '' ? [] : ['an expression']),
    ...(historical ? [] : ['no historical messages']),
  ]
  return `${parts.length === 0 ? 'all messages' : parts.join('; ')}${includeViolations ? '; with violations' : ''}`
}
