// Batches, the timeout of an attempt, and concurrency.

import { NumberInput, SimpleGrid, TextInput } from '@mantine/core'
import type { Draft } from './draft.ts'
import { type FieldsProps, type KindForm, numberInput, textInput } from './field-state.ts'

export function DeliveryFields({ draft, state, descriptions }: FieldsProps & Pick<KindForm<Draft>, 'descriptions'>) {
  const isBatch = (draft.batchSize ?? 1) > 1
  return (
    <SimpleGrid cols={{ base: 1, sm: 2 }}>
      <NumberInput
        label="Batch size"
        description={descriptions.batchSize}
        {...numberInput(state, 'batch.size', draft.batchSize, (batchSize) => ({ batchSize }))}
      />
      <TextInput
        label="Batch wait"
        description={isBatch ? 'How long to wait for more messages, up to 60 s.' : 'Up to 60 s. No effect with a batch size of 1.'}
        {...textInput(state, 'batch.lingerMs', draft.linger, (linger) => ({ linger }))}
      />
      <NumberInput
        label="Batch bytes"
        description={
          isBatch
            ? 'Up to 5,242,880 bytes per request. A larger message is sent alone.'
            : 'Up to 5,242,880. No effect with a batch size of 1.'
        }
        {...numberInput(state, 'batch.bytes', draft.batchBytes, (batchBytes) => ({ batchBytes }))}
      />
      <NumberInput
        label="Concurrent requests"
        description="1 to 1,000 requests in flight at the same time."
        {...numberInput(state, 'maxInFlight', draft.maxInFlight, (maxInFlight) => ({ maxInFlight }))}
      />
      <TextInput
        label="Timeout"
        description={descriptions.timeout}
        {...textInput(state, 'timeoutMs', draft.timeout, (timeout) => ({ timeout }))}
      />
    </SimpleGrid>
  )
}

export function deliveryNote({ batchSize, timeout, maxInFlight }: Draft): string {
  return `${(batchSize ?? 1) > 1 ? `batches of ${batchSize}` : 'one message per request'}, timeout ${timeout}, ${maxInFlight ?? '?'} concurrent`
}
