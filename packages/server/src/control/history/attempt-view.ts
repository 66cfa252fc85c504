// An attempt as shown in responses, of a delivery or of a test.

import { array, integer, nullable, number, object, string, time } from '../../api/schema.ts'
import type { TestAttempt } from '../../delivery/delivery.ts'

const MS = nullable(number())

export const ATTEMPT_FIELDS = {
  url: string({
    description:
      'The URL of the attempt. Query values, and parts of the path that look like secrets, are not stored with an attempt. Editors and admins see the current ones of the destination if exactly one of its URLs matches. In all other cases, and for viewers, they are shown as `(hidden)`.',
  }),
  address: nullable(
    string({
      description: 'The IP address that the service connected to; null if the attempt ended before it had an address to connect to.',
    }),
  ),
  startedAt: time(),
  status: nullable(integer({ description: 'The HTTP status of the response; null if there was none.' })),
  reason: nullable(string({ description: 'Why the attempt failed, as a stable code; null on success.' })),
  error: nullable(string({ description: 'Why the attempt failed, as a sentence; null on success.' })),
  timings: object(
    { dnsMs: MS, connectMs: MS, tlsMs: MS, firstByteMs: MS, totalMs: number() },
    {
      description:
        'The duration of each phase in milliseconds; null for a phase that was skipped or not reached. `firstByteMs` and `totalMs` are measured from the start of the attempt.',
    },
  ),
  responseStart: nullable(string({ description: 'The start of the response body. It is kept only for failed attempts and tests.' })),
  version: integer({
    description:
      "The version of the destination's `request` and `transformation`, or of its `subscriptions`, with which the request was built.",
  }),
  logs: nullable(string({ description: 'What the transformation or the integration printed, at most 2 KB; null if it printed nothing.' })),
  subscription: nullable(
    string({ description: 'The name of the subscription for which the integration made the request; null for a webhook.' }),
  ),
  method: nullable(
    string({
      description: 'The HTTP method of a request of an integration; null if the subscription ended without a request, and for a webhook.',
    }),
  ),
  load: nullable(
    object(
      {
        id: string({ description: 'The id of the load. A load that is repeated keeps it.' }),
        tables: array(object({ table: string(), rows: integer() }), {
          description: 'The tables that were loaded, the largest first. At most 200.',
        }),
        rows: integer({ description: 'The rows in all tables.' }),
        bytes: integer({ description: 'As written or sent. 0 for tables that an earlier attempt had loaded already.' }),
        durationMs: number(),
      },
      { description: 'What was loaded into the tables of a warehouse, instead of a request; null for other destinations.' },
    ),
  ),
}

export function attemptView(attempt: TestAttempt, shownUrl: (url: string) => string) {
  const { url, step, load } = attempt
  return {
    ...attempt,
    url: shownUrl(url),
    timings: attempt,
    subscription: step?.subscription ?? null,
    method: step?.method ?? null,
    load: load ?? null,
  }
}
