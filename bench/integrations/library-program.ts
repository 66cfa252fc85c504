// Calls the library directly for many events, some at a time, and reports when all calls have returned. Started with fork() by run.ts.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import '../../e2e/integrations/connect-to-gateway.ts'

export interface LibraryWork {
  directory: string
  settings: object
  subscription: { action: string; subscribe: string; mapping: object }
  event: object
  eventCount: number
  batchSize: number
  inFlight: number
}

interface Destination {
  onEvent(event: object, settings: object): Promise<unknown>
  onBatch(events: readonly object[], settings: object): Promise<unknown>
}

const require = createRequire(import.meta.url)
const { Destination } = require('@segment/actions-core') as { Destination: new (definition: object) => Destination }
const folder = join(dirname(require.resolve('@segment/action-destinations')), 'destinations')

async function run({ directory, settings, subscription, event, eventCount, batchSize, inFlight }: LibraryWork): Promise<void> {
  const { default: definition } = require(join(folder, directory)) as { default: object }
  const destination = new Destination(definition)
  const { action, subscribe, mapping } = subscription
  const all = { ...settings, subscriptions: [{ partnerAction: action, subscribe, mapping }] }
  // Parsed from JSON for each event, as anything that receives events has to.
  const text = JSON.stringify(event)
  const starts = Array.from({ length: Math.ceil(eventCount / batchSize) }, (_, index) => index * batchSize).values()
  const worker = async (): Promise<void> => {
    // The workers share the iterator.
    for (const start of starts) {
      const size = Math.min(batchSize, eventCount - start)
      const events = Array.from({ length: size }, (_, index) => ({ ...(JSON.parse(text) as object), messageId: `m-${start + index}` }))
      if (batchSize === 1) await destination.onEvent(events[0] as object, all)
      else await destination.onBatch(events, all)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
}

process.on('message', (work: LibraryWork) => void run(work).then(() => process.send?.('done')))
process.send?.('ready')
