// Whether the messages of a user, of a source, or with the same value of a field are sent in order, and what happens if one of them fails.

import { NumberInput, Select, SimpleGrid, TextInput } from '@mantine/core'
import { SmallNote } from '../../components/styled.tsx'
import type { Draft } from './draft.ts'
import { type FieldsProps, numberInput, textInput } from './field-state.ts'
import type { OrderChoice } from './order-draft.ts'

const CHOICES: readonly { value: OrderChoice; label: string }[] = [
  { value: 'none', label: 'Not ordered' },
  { value: 'user', label: 'In order for each user' },
  { value: 'source', label: 'In order for each source' },
  { value: 'path', label: 'In order for each value of a field' },
]

const ON_FAILURE: readonly { value: Draft['orderOnFailure']; label: string }[] = [
  { value: 'skip', label: 'Continue with the next message' },
  { value: 'hold', label: 'Hold the later messages' },
]

export function OrderFields({ draft, state }: FieldsProps) {
  const { orderBy, orderOnFailure } = draft
  const isPath = orderBy === 'path'
  return (
    <>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label="Order"
          description="A failed message delays the later ones of its own key only. A user is the userId, or the anonymousId without one."
          data={CHOICES}
          value={orderBy}
          onChange={(value) => value !== null && state.set({ orderBy: value }, 'order')}
          error={state.problem('order') ?? (isPath ? null : state.problem('order.by'))}
          readOnly={state.isReadOnly}
          allowDeselect={false}
        />
        {isPath && (
          <TextInput
            label="Field"
            description="The path of the field, such as context.groupId or properties.orderId."
            {...textInput(state, 'order.by', draft.orderPath, (orderPath) => ({ orderPath }))}
            required
          />
        )}
        {orderBy !== 'none' && (
          <>
            <Select
              label="When a message fails permanently or expires"
              description="What happens to the later messages of its key. Held ones wait until somebody retries or skips it."
              data={ON_FAILURE}
              value={orderOnFailure}
              onChange={(value) => value !== null && state.set({ orderOnFailure: value }, 'order.onFailure')}
              error={state.problem('order.onFailure')}
              readOnly={state.isReadOnly}
              allowDeselect={false}
            />
            <NumberInput
              label="Waiting messages of one key"
              description={
                orderOnFailure === 'skip'
                  ? '100 to 1,000,000. Above it, the message that the others wait for fails.'
                  : '100 to 1,000,000. Above it, an incident is opened.'
              }
              {...numberInput(state, 'order.maxWaiting', draft.orderMaxWaiting, (orderMaxWaiting) => ({ orderMaxWaiting }))}
            />
          </>
        )}
      </SimpleGrid>
      {orderBy !== 'none' && (
        <SmallNote>
          Applies to messages that are accepted from now on. Messages without such a value are sent without waiting, and counted on the page
          of the destination.
        </SmallNote>
      )}
    </>
  )
}

export function isOrderUsed({ orderBy }: Draft): boolean {
  return orderBy !== 'none'
}

export function orderNote({ orderBy, orderPath, orderOnFailure }: Draft): string {
  if (orderBy === 'none') return 'not ordered'
  return `by ${orderBy === 'path' ? orderPath : orderBy}${orderOnFailure === 'hold' ? ', held after a failure' : ''}`
}
