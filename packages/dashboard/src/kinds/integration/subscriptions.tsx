// The subscriptions of an integration: which action runs when, and with what. Presets are subscriptions that the definition suggests; paths and
// events are suggested from the last messages of the sources.

import { Alert, Collapse, Group, NativeSelect, Paper, Select, Stack, Switch, TextInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useRef, useState } from 'react'
import { type ApiProblem, call } from '../../api/client.ts'
import { entered, ticked } from '../../components/inputs.tsx'
import { LinkedText } from '../../components/integration-tile.tsx'
import { LongStrong, Note, RowButton, SmallNote, SmallTag, Strong } from '../../components/styled.tsx'
import type { Action, Definition } from './definition.ts'
import { type FieldTool, type Tool, ToolOfFields } from './field-choices.tsx'
import { usableMapping } from './mapping-draft.ts'
import { MappingFields } from './mapping-fields.tsx'
import { eventNames, type PathSuggestion, pathSuggestions } from './path-suggestions.ts'
import { actionDraft, actionOf, defaultMode, presetDraft, type SubscriptionDraft, unusedName } from './subscription-draft.ts'
import { WhenFields, whenText } from './when-fields.tsx'

export interface SubscriptionsProps {
  definition: Definition
  subscriptions: readonly SubscriptionDraft[]
  onChange: (subscriptions: SubscriptionDraft[]) => void
  /** Whose messages the suggestions come from. */
  sourceIds: readonly string[]
  /** By field of the API, such as `subscriptions[0].mapping.user_id`. */
  problem: (field: string) => string | null
  /** The fields with problems that are shown. */
  wrong: readonly string[]
  isReadOnly: boolean
  /** The tool that is asked for the values of dynamic fields. */
  tool: Tool
}

export function Subscriptions({ definition, subscriptions, onChange, sourceIds, problem, wrong, isReadOnly, tool }: SubscriptionsProps) {
  const recent = useRecentMessages(sourceIds)
  const [open, setOpen] = useState<string | null>(() =>
    subscriptions.length === 1 && definition.presets.length === 0 ? (subscriptions[0]?.key ?? null) : null,
  )
  return (
    <Stack gap="sm">
      {subscriptions.map((subscription, at) => (
        <SubscriptionCard
          key={subscription.key}
          subscription={subscription}
          action={actionOf(definition, subscription.action)}
          onChange={(next) => onChange(subscriptions.map((each, other) => (other === at ? next : each)))}
          onRemove={() => onChange(subscriptions.filter((_, other) => other !== at))}
          isOpen={open === subscription.key}
          onOpen={(isOpen) => setOpen(isOpen ? subscription.key : null)}
          recent={recent}
          problem={(field) => problem(`subscriptions[${at}].${field}`)}
          isWrong={wrong.some((field) => field.startsWith(`subscriptions[${at}]`))}
          isReadOnly={isReadOnly}
          tool={tool}
        />
      ))}
      {subscriptions.length === 0 && (
        <Alert color="orange" title="Nothing is sent yet">
          {definition.presets.some(({ type }) => type === 'automatic')
            ? 'Add a subscription for each action that should run.'
            : 'This integration suggests no subscriptions of its own. Choose the actions that should run, and when.'}
        </Alert>
      )}
      {!isReadOnly && (
        <AddSubscription
          definition={definition}
          subscriptions={subscriptions}
          onAdd={(subscription) => {
            onChange([...subscriptions, subscription])
            setOpen(subscription.key)
          }}
        />
      )}
    </Stack>
  )
}

interface CardProps {
  subscription: SubscriptionDraft
  /** Undefined if the definition no longer has it. */
  action: Action | undefined
  onChange: (subscription: SubscriptionDraft) => void
  onRemove: () => void
  isOpen: boolean
  onOpen: (isOpen: boolean) => void
  recent: RecentMessages
  problem: (field: string) => string | null
  isWrong: boolean
  isReadOnly: boolean
  tool: Tool
}

function SubscriptionCard(props: CardProps) {
  const { subscription, action, onChange, onRemove, isOpen, onOpen, isWrong, isReadOnly } = props
  const { name, enabled, subscribe } = subscription
  const set = (changes: Partial<SubscriptionDraft>): void => onChange({ ...subscription, ...changes })
  const title = name.trim() === '' ? (action?.name ?? subscription.action) : name
  return (
    <Paper withBorder p="sm" component="section" aria-label={title}>
      <Group justify="space-between" align="flex-start" gap="xs">
        <Switch
          label={
            <Group gap="xs" component="span" style={{ rowGap: 0 }}>
              <LongStrong span>{title}</LongStrong>
              {isWrong && (
                <SmallTag color="red" component="span">
                  has errors
                </SmallTag>
              )}
            </Group>
          }
          description={
            <>
              {whenText(subscribe)} Runs{' '}
              {action === undefined ? `“${subscription.action}”, which the installed version does not have` : `“${action.name}”`}.
            </>
          }
          {...ticked(enabled, (enabled) => set({ enabled }))}
          disabled={isReadOnly}
          style={{ flex: '1 1 240px' }}
        />
        <Group gap="xs">
          <RowButton
            onClick={() => onOpen(!isOpen)}
            aria-expanded={isOpen}
            aria-label={`${isOpen ? 'Close' : isReadOnly ? 'View' : 'Edit'} ${title}`}
          >
            {isOpen ? 'Close' : isReadOnly ? 'View' : 'Edit'}
          </RowButton>
          {!isReadOnly && (
            <RowButton onClick={onRemove} aria-label={`Remove ${title}`}>
              Remove
            </RowButton>
          )}
        </Group>
      </Group>
      <Collapse expanded={isOpen}>{isOpen && <SubscriptionFields {...props} set={set} />}</Collapse>
    </Paper>
  )
}

type FieldsProps = Pick<CardProps, 'subscription' | 'action' | 'recent' | 'problem' | 'isReadOnly' | 'tool'> & {
  set: (changes: Partial<SubscriptionDraft>) => void
}

function SubscriptionFields({
  subscription: { name, subscribe, mapping, syncMode },
  action,
  set,
  recent,
  problem,
  isReadOnly,
  tool,
}: FieldsProps) {
  const mode = syncMode ?? (action === undefined ? null : defaultMode(action))
  const ask: FieldTool['ask'] = (field, page) =>
    tool.ask({
      action: action?.slug ?? '',
      field,
      mapping: usableMapping(mapping),
      ...(mode === null ? {} : { syncMode: mode }),
      ...(page === undefined ? {} : { page }),
    })
  return (
    <Stack gap="md" pt="md">
      {action !== undefined && action.description !== '' && (
        <Note>
          <LinkedText markdown={action.description} />
        </Note>
      )}
      <TextInput
        label="Name"
        {...entered(name, (name) => set({ name }))}
        error={problem('name')}
        readOnly={isReadOnly}
        maw={420}
        autoComplete="off"
      />
      <WhenFields
        subscribe={subscribe}
        onChange={(next) => set({ subscribe: next })}
        events={recent.events}
        problem={problem('subscribe')}
        isReadOnly={isReadOnly}
      />
      {action?.syncMode != null && (
        <NativeSelect
          label={action.syncMode.title}
          description={action.syncMode.description}
          data={(action.syncMode.oneOf ?? []).map(({ const: value, title }) => ({ value: String(value), label: title }))}
          {...entered(mode ?? '', (syncMode) => set({ syncMode }))}
          error={problem('syncMode')}
          disabled={isReadOnly}
          maw={420}
        />
      )}
      <Stack gap="xs">
        <Strong>Fields</Strong>
        <SmallNote>
          A path such as $.properties.total reads a value of the message. A template mixes text and values, such as{' '}
          {'{{event}} for {{properties.total}}'}.
          {recent.suggestions.some(({ example }) => example !== '') && ' Paths are suggested from the last messages of the sources.'}
        </SmallNote>
        <ToolOfFields value={isReadOnly ? null : { name: tool.name, ask }}>
          <MappingFields
            schema={action?.fields ?? { properties: {}, required: [] }}
            mapping={mapping}
            syncMode={mode}
            onChange={(next) => set({ mapping: next })}
            suggestions={recent.suggestions}
            problem={problem}
            isReadOnly={isReadOnly}
          />
        </ToolOfFields>
      </Stack>
    </Stack>
  )
}

interface AddSubscriptionProps {
  definition: Definition
  subscriptions: readonly SubscriptionDraft[]
  onAdd: (subscription: SubscriptionDraft) => void
}

/** Offers presets that are not in the list yet, and all actions. */
function AddSubscription({ definition, subscriptions, onAdd }: AddSubscriptionProps) {
  const added = useRef(0)
  const presets = definition.presets
    .map((preset, at) => ({ preset, value: `preset ${at}` }))
    .filter(({ preset }) => !subscriptions.some(({ name, action }) => name === preset.name && action === preset.action))
  const actions = definition.actions.map((action) => ({ action, value: `action ${action.slug}` }))
  const add = (value: string | null): void => {
    const key = `new ${++added.current} ${value}`
    const preset = presets.find((each) => each.value === value)?.preset
    const action = actions.find((each) => each.value === value)?.action
    const draft = preset !== undefined ? presetDraft(definition, preset, key) : action !== undefined ? actionDraft(action, key) : undefined
    if (draft !== undefined) onAdd({ ...draft, name: unusedName(draft.name, subscriptions) })
  }
  return (
    <Select
      label="Add a subscription"
      placeholder="Choose an action"
      data={[
        ...(presets.length === 0 ? [] : [{ group: 'Presets', items: presets.map(({ preset, value }) => ({ value, label: preset.name })) }]),
        { group: 'Actions', items: actions.map(({ action, value }) => ({ value, label: action.name })) },
      ]}
      value={null}
      onChange={add}
      searchable={presets.length + actions.length > 8}
      openOnFocus={false}
      maw={420}
    />
  )
}

const MAX_SOURCES = 5
const PER_SOURCE = 30

export interface RecentMessages {
  suggestions: readonly PathSuggestion[]
  events: readonly string[]
}

export function useRecentMessages(sourceIds: readonly string[]): RecentMessages {
  const asked = sourceIds.slice(0, MAX_SOURCES)
  const { data } = useQuery<{ event: string | null; message: Record<string, unknown> | null }[], ApiProblem>({
    queryKey: ['recent messages', ...asked],
    queryFn: async ({ signal }) => {
      const pages = await Promise.all(
        asked.map((sourceId) => call('GET /api/messages', { query: { sourceId, limit: PER_SOURCE }, signal })),
      )
      return pages.flatMap((page) => page.data)
    },
    enabled: asked.length > 0,
    staleTime: 30_000,
  })
  return useMemo(() => {
    const messages = data ?? []
    return {
      suggestions: pathSuggestions(messages.flatMap(({ message }) => (message === null ? [] : [message]))),
      events: eventNames(messages),
    }
  }, [data])
}
