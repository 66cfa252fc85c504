// When a subscription runs: types of messages and names of events, or an expression for everything else.

import { Anchor, Group, MultiSelect, SimpleGrid, Stack, TagsInput } from '@mantine/core'
import { useState } from 'react'
import { MESSAGE_TYPES } from '../../api/rules.ts'
import { CodeArea, entered } from '../../components/inputs.tsx'
import { Note } from '../../components/styled.tsx'
import { Position, useExpressionProblem } from '../../destination/form/subscribe-field.tsx'
import { simpleSubscribe, subscribeOf, subscribeSentence } from '../../text/subscribe-sentence.ts'

const TYPES: readonly string[] = [...MESSAGE_TYPES, 'delete']

interface WhenFieldsProps {
  subscribe: string
  onChange: (subscribe: string) => void
  /** Names of events to suggest. */
  events: readonly string[]
  problem: string | null
  isReadOnly: boolean
}

export function WhenFields({ subscribe, onChange, events, problem, isReadOnly }: WhenFieldsProps) {
  const text = subscribe.trim()
  const simple = text === '' ? { types: [], events: [] } : simpleSubscribe(subscribe)
  const [isExpression, setExpression] = useState(false)
  const checked = useExpressionProblem(text, !isReadOnly)
  const error = problem ?? checked
  const isSimple = simple !== null && !isExpression && simple.types.every((type) => TYPES.includes(type))
  return (
    <Stack gap="xs" role="group" aria-label="When it runs">
      {isSimple ? (
        <SimpleGrid cols={{ base: 1, sm: 2 }}>
          <MultiSelect
            label="Message types"
            description="Runs for messages of these types. Leave empty for all."
            data={[...TYPES]}
            value={simple.types}
            onChange={(types) => onChange(subscribeOf({ ...simple, types }))}
            error={error}
            readOnly={isReadOnly}
            openOnFocus={false}
          />
          <TagsInput
            label="Event names"
            description="Exact names; press Enter after each. Leave empty for all."
            data={events.filter((event) => !simple.events.includes(event))}
            value={simple.events}
            onChange={(names) => onChange(subscribeOf({ ...simple, events: names }))}
            readOnly={isReadOnly}
            splitChars={[]}
            acceptValueOnBlur
          />
        </SimpleGrid>
      ) : (
        <div>
          <CodeArea
            label="Expression"
            description="Runs for messages that match."
            placeholder={'type = "track" and event = "Order Completed" and properties.total > 100'}
            {...entered(subscribe, onChange)}
            error={error}
            readOnly={isReadOnly}
            minRows={1}
            maxRows={8}
          />
          {error !== null && <Position text={text} problem={error} />}
        </div>
      )}
      <Group gap="md">
        <Note>{error === null ? whenText(text) : ''}</Note>
        {!isReadOnly && simple !== null && (
          <Anchor component="button" type="button" size="sm" onClick={() => setExpression(isSimple)}>
            {isSimple ? 'Write an expression' : 'Choose types and events'}
          </Anchor>
        )}
      </Group>
    </Stack>
  )
}

/** A sentence, or the expression if there is none. */
export function whenText(expression: string): string {
  if (expression.trim() === '') return 'Choose when it runs.'
  const sentence = subscribeSentence(expression)
  return sentence === null ? `When this matches: ${expression.trim().replaceAll(/\s+/g, ' ')}` : `${sentence}.`
}
