// The page docs/reference/errors.md: every error code with its status, its meaning and what to do.

import { REFUSALS } from '@switchyard/protocol'
import { ERROR_ADVICE } from '../../packages/server/src/api/error-advice.ts'
import { REASONS } from '../../packages/server/src/delivery/link/outcome.ts'
import { API_ERRORS, type ApiErrorCode } from '../../packages/server/src/errors.ts'
import { code, heading, table } from './markdown.ts'

const EXAMPLE =
  '{ "success": false, "error": "invalid_field", "code": "invalid_field", "message": "name must be 1 to 100 characters long.", "field": "name" }'

export function errorsPage(): string {
  const requests = Object.keys(API_ERRORS) as ApiErrorCode[]
  const messages = (Object.keys(REFUSALS) as (keyof typeof REFUSALS)[]).filter((name) => !Object.hasOwn(API_ERRORS, name))
  return [
    heading('Errors', 'packages/server/src/errors.ts, packages/protocol/src/refusals.ts and packages/server/src/api/error-advice.ts'),
    'All errors have the same shape. `field` is present if the error is about a field or parameter:',
    '',
    '```json',
    EXAMPLE,
    '```',
    '',
    'Codes are stable, so programs can rely on them. The text in `message` is for people and may change. The pages of the [HTTP API](http.md) list',
    'the codes that each operation can return. The one exception is `POST /oauth2/token`: its errors have the shape that RFC 6749 defines.',
    '',
    '## Request errors',
    '',
    'The number below each code is the HTTP status.',
    '',
    table(
      ['Code', 'Meaning and what to do'],
      requests.map((name) => [`${named(name)}<br>${API_ERRORS[name][0]}`, `${API_ERRORS[name][1]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Message errors',
    '',
    'A call with an invalid message gets a response with status 400. In a batch, the valid messages are accepted, and `rejected` in the response lists the',
    'others by index and code. A batch gets status 400 only if none of its messages is valid. `invalid_request` and `message_too_large`, above, also occur for single messages.',
    '',
    table(
      ['Code', 'Meaning and what to do'],
      messages.map((name) => [named(name), `${REFUSALS[name]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Failure reasons of attempts and deliveries',
    '',
    'These codes are not errors of a request. They are values of `reason` in an attempt or a delivery; `error` of an attempt contains the sentence in the last column. A temporary',
    'failure is retried within the retry window; a permanent failure is not retried. An expired delivery has the reason `retry_window_over`. A cancelled delivery has the reason',
    '`destination_deleted` or `message_deleted`. A delivery that failed because the stored message is damaged has the reason `message_unreadable`.',
    '',
    table(
      ['Reason', 'Kind', 'Meaning'],
      [
        ...Object.entries(REASONS).map(([reason, [verdict, sentence]]) => [code(reason), verdict, sentence]),
        [
          code('http_NNN'),
          'temporary for 408, 425, 429 and 5xx except 501 and 505; permanent for all others',
          'The receiver answered with this status. Redirects are not followed.',
        ],
      ],
    ),
    '',
  ].join('\n')
}

/** The code with an anchor. The pages of the HTTP API link to it. */
function named(name: string): string {
  return `<a id="${name}"></a>${code(name)}`
}
