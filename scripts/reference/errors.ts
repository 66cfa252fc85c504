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
    'Every refusal, of every path, has one shape; `field` is there where a field or parameter is at fault:',
    '',
    '```json',
    SHAPE,
    '```',
    '',
    'Codes are stable: programs may rely on them. Sentences are for people and may get better. The pages of the [HTTP API](http.md) say which',
    'codes each operation gives. The one exception is `POST /oauth2/token`, whose errors have the shape of RFC 6749.',
    '',
    '## Of requests',
    '',
    'The HTTP status is below the code.',
    '',
    table(
      ['Code', 'Meaning, and what to do'],
      requests.map((name) => [`${named(name)}<br>${API_ERRORS[name][0]}`, `${API_ERRORS[name][1]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Of single messages',
    '',
    'A call with a message like this is 400. In a batch the good messages are taken all the same, and `rejected` names the others by',
    'index and code; it is 400 only when none was good. `invalid_request` and `message_too_large`, above, are given for single messages, too.',
    '',
    table(
      ['Code', 'Meaning, and what to do'],
      messages.map((name) => [named(name), `${REFUSALS[name]}<br>${ERROR_ADVICE[name]}`]),
    ),
    '',
    '## Why a delivery is not there yet',
    '',
    'These are no errors of a request: they are the `reason` of an attempt or a delivery, with the same sentence in `error`. A temporary one is tried',
    'again within the retry window, a permanent one is not. `retry_window_over` is the reason of a delivery that has expired, `destination_deleted`',
    'and `message_deleted` those of one that was cancelled, `message_unreadable` that of one that failed because the stored message is damaged.',
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

/** With an anchor: the operations of the HTTP API link to their codes. */
function named(name: string): string {
  return `<a id="${name}"></a>${code(name)}`
}
