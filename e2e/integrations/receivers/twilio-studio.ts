// Twilio Studio, which starts a flow once for a user in a cooling-off period: the destination, and the answers of the tool.

import type { Answer } from '../../system/receiver.ts'

export const TWILIO_STUDIO = {
  type: 'integration',
  integration: 'actions-twilio-studio',
  settings: { accountSid: 'AC1', authToken: 'sample-token', spaceId: 'spa_1', profileApiAccessToken: 'sample-token' },
  retry: { initialMs: 100, maxMs: 1_000 },
  subscriptions: [
    {
      name: 'Trigger',
      action: 'triggerStudioFlow',
      subscribe: 'type = "identify"',
      mapping: {
        flowSid: 'FW1',
        from: '+15550199',
        coolingOffPeriod: 3_600,
        userId: { '@path': '$.userId' },
        eventType: { '@path': '$.type' },
      },
    },
  ],
}

const JSON_TYPE = { headers: { 'content-type': 'application/json' } }

/** Answers the lookup of a user's phone number, and the start of a flow. */
export function twilioAnswer({ path }: { path: string }): Answer {
  const found = { data: [{ id: '+15550100', created_at: '2026-01-01T00:00:00Z' }] }
  return { ...JSON_TYPE, body: isLookup(path) ? JSON.stringify(found) : '{"sid":"FN1"}' }
}

export function isLookup(path: string): boolean {
  return path.includes('/external_ids')
}

export function isExecution({ path }: { path: string }): boolean {
  return path.endsWith('/Executions')
}
