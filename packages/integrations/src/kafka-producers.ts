// Keeps producers of Kafka between runs, with their connections. The library has a list of them for this (`actions-kafka-optimize-connection`), but
// opens one for each run that starts before the first one is connected, forgets all but the last of these, and never closes one whose settings are no
// longer used.

import { join } from 'node:path'
import { definitionsFolder, require } from './definitions.ts'

interface Kafka {
  producersByConfig: Record<string, { producer: { disconnect(): Promise<void> }; lastUsed: number } | undefined>
  serializeKafkaConfig: (settings: object) => string
  getOrCreateProducer: (settings: object, stats?: object) => Promise<unknown>
}

/** Longer than a request can take, 10 s, and than the 30 s after which the library itself replaces a producer. */
const UNUSED_MS = 60_000
const CHECK_MS = 15_000

let isKept = false

/** Must be called before the code of the integration runs. */
export function keepKafkaProducers(slug: string): void {
  if (slug !== 'actions-kafka' || isKept) return
  isKept = true
  const kafka = require(join(definitionsFolder(), 'kafka/utils.js')) as Kafka
  const open = kafka.getOrCreateProducer
  const opening = new Map<string, Promise<unknown>>()
  kafka.getOrCreateProducer = (settings, stats) => {
    const key = kafka.serializeKafkaConfig(settings)
    let producer = opening.get(key)
    if (producer === undefined) {
      producer = open(settings, stats).finally(() => opening.delete(key))
      opening.set(key, producer)
    }
    return producer
  }
  setInterval(() => closeUnused(kafka, Date.now()), CHECK_MS).unref()
}

/** Exported for tests. */
export function closeUnused({ producersByConfig }: Pick<Kafka, 'producersByConfig'>, nowMs: number): void {
  for (const [key, kept] of Object.entries(producersByConfig)) {
    if (kept === undefined || nowMs - kept.lastUsed <= UNUSED_MS) continue
    delete producersByConfig[key]
    kept.producer.disconnect().catch(() => undefined)
  }
}
