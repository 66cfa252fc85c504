// `switchyard deliveries`: lists deliveries, and shows one with all its attempts.

import type { JsonObject } from '@switchyard/protocol'
import { DELIVERY_FILTERS } from '../../api/list-filters.ts'
import { type Command, EXIT } from '../line/command.ts'
import { filterFlags, filtersFrom } from '../line/fields.ts'
import { type Column, cell, showFacts, state, time } from '../line/listing.ts'
import { at, namesOf } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { showAttempt } from './message-timeline.ts'

/** A pending delivery has no reason of its own: the one of its last attempt says why it is still pending. */
const columns = (names: ReadonlyMap<unknown, string>): readonly Column[] => [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['reason', ({ reason, lastReason }) => reason ?? lastReason],
  ['attempts', ({ attemptCount }) => attemptCount],
  ['message id', ({ messageId }) => messageId],
  ['destination', ({ destinationId }) => names.get(destinationId) ?? destinationId],
  ['ended, or next attempt', ({ settledAt, nextAttemptAt }) => time(settledAt ?? nextAttemptAt)],
]

export const DELIVERY_COMMANDS: readonly Command[] = [
  newestCommand({
    name: 'deliveries list',
    summary: 'List deliveries, newest first',
    flags: filterFlags(DELIVERY_FILTERS),
    examples: ['switchyard deliveries --state failed --from 2h', "switchyard deliveries --destination 'my webhook' --reason timeout"],
    path: '/api/deliveries',
    query: (call) => filtersFrom(call, DELIVERY_FILTERS),
    columns: async ({ json, api }) => columns(json ? new Map() : await namesOf(api, 'destination')),
    none: 'No deliveries match.',
  }),
  {
    name: 'deliveries show',
    summary: 'Show a delivery: its state, all attempts, and the request',
    arguments: [{ name: 'DELIVERY_ID', description: 'The id, as listed by `switchyard deliveries`.' }],
    async run(call) {
      const { json, out } = call
      const delivery = await call.api.get(at`/api/deliveries/${call.arguments[0] as string}`)
      if (json) {
        out.json(delivery)
        return EXIT.ok
      }
      const { id, messageId, destinationId, reason, lastReason, replay, nextAttemptAt, expiresAt, settledAt, traceId, attempts, request } =
        delivery
      showFacts(out, [
        ['id', id],
        ['state', state(call, delivery['state'])],
        ['reason', reason ?? lastReason ?? undefined],
        ['message id', messageId],
        ['destination', destinationId],
        ['replay', replay],
        ['next attempt', nextAttemptAt === null ? undefined : time(nextAttemptAt)],
        ['expires', expiresAt == null ? undefined : time(expiresAt)],
        ['settled', settledAt === null ? undefined : time(settledAt)],
        ['trace', traceId ?? undefined],
      ])
      out.line('')
      if ((attempts as unknown[]).length === 0) out.line('No attempts yet.')
      for (const attempt of attempts as JsonObject[]) showAttempt(out, attempt)
      if (request !== null) showRequest(request as JsonObject)
      return EXIT.ok

      function showRequest({ headers, body, note }: JsonObject): void {
        out.line('')
        out.line('Request:')
        for (const [name, value] of Object.entries(headers as object)) out.line(`  ${name}: ${cell(value)}`)
        out.line('')
        out.line(`  ${cell(body)}`)
        if (typeof note === 'string') out.line(out.paint('dim', `  ${note}`))
      }
    },
  },
]
