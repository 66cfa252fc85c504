// Messages Quarantined: messages of a source are held back because they violate its tracking plan.

import { many, rule } from './rule.ts'

export interface QuarantinedMessages {
  nowMs: number
  /** The number of messages of the source in quarantine. */
  quarantinedNow: number
}

export const messagesQuarantined = rule({
  id: 'messages_quarantined',
  event: 'Messages Quarantined',
  subject: 'source',
  severity: () => 'warning',
  notifies: false,
  measure: { name: 'quarantined', label: 'messages in quarantine' },
  description: 'Messages of a source are in quarantine: stored, but not sent to any destination until they are released.',
  sentences: ['Open when messages of the source are in quarantine. Close when none are.'],
  settings: {},
  judge({ nowMs, quarantinedNow }: QuarantinedMessages) {
    return { verdict: quarantinedNow > 0 ? 'open' : 'close', sinceMs: nowMs, details: { quarantined: quarantinedNow } }
  },
  opened: (name, { quarantined }) =>
    `${many(quarantined, 'message', 'messages')} of the source "${name}" ${Number(quarantined) === 1 ? 'is' : 'are'} in quarantine: stored, but not sent to any destination. Release or delete ${Number(quarantined) === 1 ? 'it' : 'them'}.`,
  closed: (name) => `No message of the source "${name}" is in quarantine any more.`,
  link: (id) => `/plans?tab=quarantine&source=${id}`,
})
