// Every error code: its status, what it means, and what to do.

import { REFUSALS } from '@switchyard/protocol'
import { ERROR_ADVICE } from '../../packages/server/src/api/error-advice.ts'
import { REASONS } from '../../packages/server/src/delivery/sending/outcome.ts'
import { API_ERRORS, type ApiErrorCode } from '../../packages/server/src/errors.ts'
import { code, heading, table } from './markdown.ts'

const SHAPE =
  '{ "success": false, "error": "source_not_found", "code": "source_not_found", "message": "There is no source with this id.", "field": "…" }'

export function errorsPage(): string {
  const requests = Object.keys(API_ERRORS) as ApiErrorCode[]
  const messages = (Object.keys(REFUSALS) as (keyof typeof REFUSALS)[]).filter((name) => !Object.hasOwn(API_ERRORS, name))
  return [
    heading('Errors', 'packages/server/src/errors.ts, packages/protocol/src/refusals.ts and packages/server/src/api/error-advice.ts'),
    'All errors have the same shape. `field` is present if a field or parameter is wrong:',
    '',
    '```json',
    SHAPE,
    '```',
    '',
    'Codes are stable: programs may rely on them. The sentence in `message` is for people and may change. The pages of the [HTTP API](http.md) say',
    'which codes each operation can return. The one exception is `POST /oauth2/token`, whose errors have the shape of RFC 6749.',
    '',
    '## Errors of requests',
    '',
    'The HTTP status is below the code.',
    '',
    table(
      ['Code', 'Meaning, and what to do'],
      requests.map((name) => [`${named(name)}<br>${API_ERRORS[name][0]}`, `${API_ERRORS[name][1]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Errors of single messages',
    '',
    'A call with an invalid message is answered with 400. In a batch, the valid messages are accepted, and `rejected` lists the others by',
    'index and code; the answer is 400 only if no message is valid. `invalid_request` and `message_too_large`, above, also occur for single messages.',
    '',
    table(
      ['Code', 'Meaning, and what to do'],
      messages.map((name) => [named(name), `${REFUSALS[name]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Reasons of failed attempts and deliveries',
    '',
    'These are not errors of a request. They are the `reason` of an attempt or a delivery, with the same sentence in `error`. A temporary failure is retried',
    'within the retry window, a permanent one is not. A delivery that has expired has the reason `retry_window_over`, one that was cancelled has `destination_deleted`',
    'or `message_deleted`, and one that failed because the stored message is damaged has `message_unreadable`.',
    '',
    table(
      ['Reason', 'Kind', 'Meaning'],
      [
        ...Object.entries(REASONS).map(([reason, [verdict, sentence]]) => [code(reason), verdict, sentence]),
        [
          code('http_NNN'),
          'temporary: 408, 425, 429 and 5xx, but not 501 and 505',
          'The receiver answered with this status. Redirects are not followed.',
        ],
      ],
    ),
    '',
  ].join('\n')
}

/** The code with an anchor, to which the operations of the HTTP API link. */
function named(name: string): string {
  return `<a id="${name}"></a>${code(name)}`
}
