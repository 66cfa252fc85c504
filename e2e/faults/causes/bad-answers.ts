// Answers of receivers that misbehave, and how a delivery with such an answer must end. Answers that are not valid HTTP are written to the
// socket directly; they end the connection, because the server would hold back its answer to the next request.

import type { Socket } from 'node:net'
import { drip, pour } from '../../system/raw-receiver.ts'
import type { Answer } from '../../system/receiver.ts'
import type { Random } from '../system/random.ts'

export interface BadAnswer {
  /**
   * `either`: the answer is a complete 2xx that may be lost on the way, or that comes with something broken. The message is delivered, now
   * or by a later attempt.
   */
  ends: 'retried' | 'failed' | 'delivered' | 'either'
  answer: (random: Random) => Answer
}

const GIGABYTE = 2 ** 30
const OK = 'HTTP/1.1 200 OK\r\n'
const EMPTY_OK = `${OK}Content-Length: 0\r\n\r\n`
const FAILED = 'HTTP/1.1 500 Internal Server Error\r\n'
/** Where redirects lead, at the receiver of another destination, which reports a request for it. */
export const REDIRECTED_PATH = '/redirected'

const TEMPORARY = [408, 425, 429, 500, 502, 503, 504, 520, 599]
const PERMANENT = [300, 304, 400, 401, 403, 404, 405, 409, 410, 411, 413, 414, 415, 422, 431, 451, 499, 501, 505, 600, 999]
const SUCCESSES = [201, 202, 203, 204, 206, 226, 299]
const REDIRECTS = [301, 302, 303, 307, 308]
/** Most are invalid, and count as missing. Longer waits than these are tried at a destination of their own. */
const RETRY_AFTER = [
  '0',
  '1',
  '2',
  '-5',
  'soon',
  '1.5',
  '1e9',
  '99999999999',
  'Infinity',
  '',
  '1, 2',
  'Thu, 01 Jan 1970 00:00:00 GMT',
  '5 apples',
]

const on = (act: (socket: Socket) => void): Answer => ({ script: (_response, socket) => act(socket) })
const raw =
  (text: string): BadAnswer['answer'] =>
  () =>
    on((socket) => socket.end(text, 'latin1'))
const retried = (answer: BadAnswer['answer']): BadAnswer => ({ ends: 'retried', answer })

const SLOW: readonly BadAnswer[] = [
  retried(() => ({ hang: true })),
  retried(() => on((socket) => drip(socket, `${OK}X-Padding: ${'x'.repeat(10_000)}`, 50))),
  retried(() =>
    on((socket) => {
      socket.write(`${OK}Content-Length: 10000\r\n\r\n`)
      drip(socket, 'x', 50)
    }),
  ),
  // Interim responses without end.
  retried(() => on((socket) => drip(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n', 5))),
]

const CUT: readonly BadAnswer[] = [
  retried(() => ({ reset: true })),
  retried(() => on((socket) => socket.destroy())),
  retried(() => on((socket) => socket.end(`${OK}Content-Length: 1000\r\n\r\nthe start`))),
  retried(() => on((socket) => socket.end(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n`))),
  retried(() => on((socket) => socket.write(`${OK}Content-Length: 1000\r\n\r\nthe start`, () => socket.resetAndDestroy()))),
  retried(() => on((socket) => socket.end('HTTP/1.1 200'))),
  { ends: 'either', answer: () => on((socket) => socket.write(EMPTY_OK, () => socket.resetAndDestroy())) },
]

const TOO_MUCH: readonly BadAnswer[] = [
  {
    ends: 'either',
    answer: () =>
      on((socket) => {
        socket.write(`${OK}Content-Length: ${GIGABYTE}\r\n\r\n`)
        pour(socket, GIGABYTE)
      }),
  },
  retried(() =>
    on((socket) => {
      socket.write(`${FAILED}Content-Length: ${GIGABYTE}\r\n\r\n`)
      pour(socket, GIGABYTE)
    }),
  ),
  retried(() =>
    on((socket) => {
      socket.write(`${OK}X-Padding: `)
      pour(socket, GIGABYTE)
    }),
  ),
]

const BROKEN: readonly BadAnswer[] = [
  retried((random) => on((socket) => socket.end(Buffer.from(Array.from({ length: 5_000 }, () => random.int(0, 255)))))),
  ...[
    'plain text\r\n',
    'HTTP/1.1 abc OK\r\n\r\n',
    'HTTP/7.9 200 OK\r\n\r\n',
    `${OK}Content-Length: ten\r\n\r\n`,
    `${OK}Content-Length: -1\r\n\r\n`,
    `${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
    `${OK}X-Name: a\0b\r\n\r\n`,
    `${OK}Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n`,
    // Not asked for.
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  ].map((text) => retried(raw(text))),
  ...[
    // Something follows that answers no request.
    `${EMPTY_OK}garbage`,
    `${EMPTY_OK}HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n`,
    `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${EMPTY_OK}`,
    'HTTP/1.1 200\nContent-Length: 0\n\n',
    `${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ].map((text): BadAnswer => ({ ends: 'either', answer: raw(text) })),
]

const WRONG_STATUS: readonly BadAnswer[] = [
  retried((random) => ({ status: random.pick(TEMPORARY) })),
  retried((random) => ({ status: random.pick([429, 503]), headers: { 'retry-after': random.pick(RETRY_AFTER) } })),
  { ends: 'failed', answer: (random) => ({ status: random.pick(PERMANENT), body: 'x'.repeat(random.int(0, 10_000)) }) },
  { ends: 'delivered', answer: (random) => ({ status: random.pick(SUCCESSES) }) },
]

/** `elsewhere` is the URL of a receiver that must get none of these messages. */
export function badAnswers(elsewhere: string): readonly (readonly BadAnswer[])[] {
  const location = `${elsewhere.replace(/\/$/, '')}${REDIRECTED_PATH}`
  const redirect: BadAnswer = { ends: 'failed', answer: (random) => ({ status: random.pick(REDIRECTS), headers: { location } }) }
  return [SLOW, CUT, TOO_MUCH, BROKEN, WRONG_STATUS, [redirect]]
}

/** Answers to an integration, whose outcome depends on how its library reads them. */
export const BAD_ANSWERS_TO_INTEGRATIONS: readonly (readonly BadAnswer[])[] = [
  [
    retried(() => ({ hang: true })),
    retried(() => ({ reset: true })),
    retried(() => on((socket) => socket.destroy())),
    retried(() => on((socket) => socket.end(`${OK}Content-Length: 1000\r\n\r\nthe start`))),
    retried(raw('plain text\r\n')),
  ],
  [
    retried((random) => ({ status: random.pick([429, 500, 502, 503, 504]) })),
    { ends: 'failed', answer: (random) => ({ status: random.pick([400, 404, 410]) }) },
  ],
]

/** Longer than any retry window. */
export const LONG_RETRY_AFTER = ['86400', '9999999999', 'Fri, 31 Dec 9999 23:59:59 GMT']
