// Emails are sent over real connections to a mail server that this test runs.

import assert from 'node:assert/strict'
import os from 'node:os'
import { suite, type TestContext, test } from 'node:test'
import { anywhere, assertFailed, PARTIAL_READ_MS, SHORT_MS } from '../../fixtures/attempts.ts'
import { createCertificate } from '../../fixtures/certificates.ts'
import { MAIL_AUTHORITY, type MailServer, type MailServerOptions, startMailServer } from '../../fixtures/mail-server.ts'
import type { Outcome } from '../../link/outcome.ts'
import { basicCredentials } from '../authorizing/token-source.ts'
import { createAddressGuard } from '../http/address-guard.ts'
import type { SendRequest } from '../http/attempt.ts'
import { TlsIdentity } from '../http/connections.ts'
import { emailOf } from './email.ts'
import { LimitedConnection, MAX_RECEIVED_BYTES } from './limited-connection.ts'
import { createMailClient, type MailClientOptions } from './mail-client.ts'

const LOGIN = ['Authorization', basicCredentials('alerts@example.com', 'pass:word')]
const EMAIL = { from: 'Switchyard <alerts@example.com>', to: ['a@example.com'], subject: 'Größe', text: 'First line\n.\nlast line' }

interface Given extends Partial<MailClientOptions> {
  email?: unknown
  request?: Partial<SendRequest>
  scheme?: 'smtp' | 'smtps'
}

async function send(t: TestContext, server: MailServer, { email, request, scheme = 'smtp', ...options }: Given = {}): Promise<Outcome> {
  const client = createMailClient({ guard: anywhere, ca: MAIL_AUTHORITY.cert, closeGraceMs: 0, ...options })
  t.after(() => client.close())
  const body = JSON.stringify(email ?? EMAIL)
  const headers = ['Message-ID', '<1-0@switchyard>', ...LOGIN]
  const url = `${scheme}://127.0.0.1:${server.port}`
  return await new Promise((resolve) => {
    client.send({ url, headers, body, timeoutMs: 10_000, verdictOf: () => 'success', ...request }, resolve)
  })
}

/** The header fields of an email, and its text. */
function read({ content }: { content: string }): { fields: string[]; text: string } {
  const [head = '', ...rest] = content.split('\r\n\r\n')
  return { fields: head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n'), text: rest.join('\r\n\r\n') }
}

suite('emails', () => {
  for (const secure of [false, true]) {
    test(`an email is sent over ${secure ? 'TLS' : 'STARTTLS'}`, async (t) => {
      const server = await startMailServer(t, { secure })
      const outcome = await send(t, server, { scheme: secure ? 'smtps' : 'smtp', request: { keepAnswer: true } })
      assert.deepEqual([outcome.verdict, outcome.reason, outcome.responseStart], ['success', null, '250 accepted'])
      assert.equal(outcome.address, '127.0.0.1')
      const [email] = server.emails
      assert.ok(email)
      assert.match(email.from, /^MAIL FROM:<alerts@example\.com>/)
      assert.deepEqual(email.to, ['RCPT TO:<a@example.com>'])
      const { fields, text } = read(email)
      assert.ok(fields.includes('Message-ID: <1-0@switchyard>'))
      assert.ok(fields.includes('From: Switchyard <alerts@example.com>'))
      assert.ok(fields.some((field) => /^Subject: =\?UTF-8\?/.test(field)))
      assert.match(text, /First line\r\n\.\.\r\nlast line/)
      const plain = server.commands.filter((command) => !command.startsWith('+')).map((command) => command.split(' ', 1)[0])
      assert.deepEqual(plain, secure ? [] : ['EHLO', 'STARTTLS'])
    })
  }

  test('without credentials, the client does not log in', async (t) => {
    const server = await startMailServer(t)
    assert.equal((await send(t, server, { request: { headers: [] } })).verdict, 'success')
    assert.ok(!server.commands.some((command) => command.includes('AUTH')))
  })

  type Refusal = [what: string, MailServerOptions, verdict: 'temporary' | 'permanent', reason: string]
  const refusals: Refusal[] = [
    [
      'a refused login',
      { answer: (command) => (/^AUTH/.test(command) ? '535 wrong pass:word' : undefined) },
      'temporary',
      'mail_login_refused',
    ],
    ['no TLS', { offersTls: false }, 'temporary', 'mail_without_tls'],
    ['a refused sender', { answer: (command) => (/^MAIL/.test(command) ? '550 not yours' : undefined) }, 'permanent', 'mail_refused'],
    ['greylisting', { answer: (command) => (/^RCPT/.test(command) ? '450 later' : undefined) }, 'temporary', 'mail_deferred'],
    ['a refused email', { answer: (command) => (command === 'END' ? '554 spam' : undefined) }, 'permanent', 'mail_refused'],
    [
      'a deferring server that says 5xx',
      { answer: (command) => (/^RCPT/.test(command) ? '550 4.2.1 later' : undefined) },
      'temporary',
      'mail_deferred',
    ],
    [
      'a problem of the network behind the server',
      { answer: (command) => (/^MAIL/.test(command) ? '550 5.4.1 no route' : undefined) },
      'temporary',
      'mail_deferred',
    ],
    ['a missing login', { answer: (command) => (/^MAIL/.test(command) ? '530 5.7.0 log in' : undefined) }, 'temporary', 'mail_deferred'],
    ['a greeting with 5xx', { answer: (command) => (command === 'CONNECT' ? '554 go away' : undefined) }, 'temporary', 'mail_deferred'],
    ['an EHLO with 5xx', { answer: (command) => (/^EHLO/.test(command) ? '550 go away' : undefined) }, 'temporary', 'mail_deferred'],
    ['a refused DATA', { answer: (command) => (command === 'DATA' ? '550 5.7.1 spam' : undefined) }, 'permanent', 'mail_refused'],
    [
      'an email that is larger than the server accepts',
      { answer: (command) => (/^EHLO/.test(command) ? '250-mail\r\n250-STARTTLS\r\n250 SIZE 10' : undefined) },
      'permanent',
      'mail_refused',
    ],
    ['a busy server', { answer: (command) => (command === 'CONNECT' ? '421 busy' : undefined) }, 'temporary', 'mail_deferred'],
    [
      'another protocol',
      { answer: (command) => (command === 'CONNECT' ? 'HTTP/1.1 400 Bad Request' : undefined) },
      'temporary',
      'mail_protocol_error',
    ],
    ...(
      [
        [/^MAIL/, 'hello there'],
        [/^MAIL/, '354 go'],
        [/^MAIL/, '999 what'],
        [/^RCPT/, 'oops'],
        [/^DATA/, 'oops'],
        [/^END/, 'oops'],
        [/^END/, '354 go'],
      ] as const
    ).map(
      ([command, reply]): Refusal => [
        `the reply “${reply}” to ${command.source.slice(1)}`,
        { answer: (each) => (command.test(each) ? reply : undefined) },
        'temporary',
        'mail_protocol_error',
      ],
    ),
    ...(
      [
        [/^MAIL/, '500 unknown command', 'mail_deferred'],
        [/^MAIL/, '501 5.5.4 no such parameter', 'mail_deferred'],
        [/^RCPT/, '501 5.1.3 bad address', 'mail_refused'],
        [/^DATA/, '503 wrong order', 'mail_deferred'],
        [/^RCPT/, '504 no such parameter', 'mail_deferred'],
        [/^MAIL/, '534 5.7.9 another login', 'mail_deferred'],
        [/^MAIL/, '535 5.7.8 log in', 'mail_deferred'],
        [/^MAIL/, '538 5.7.11 encrypt', 'mail_deferred'],
        [/^RCPT/, '552 too many recipients', 'mail_deferred'],
        [/^END/, '552 5.3.4 too large', 'mail_refused'],
      ] as const
    ).map(
      ([command, reply, reason]): Refusal => [
        `the reply “${reply}” to ${command.source.slice(1)}`,
        { answer: (each) => (command.test(each) ? reply : undefined) },
        reason === 'mail_refused' ? 'permanent' : 'temporary',
        reason,
      ],
    ),
    [
      'an untrusted certificate',
      { certificate: createCertificate({ commonName: 'mail', hosts: ['127.0.0.1'] }) },
      'permanent',
      'tls_self_signed',
    ],
    [
      'the certificate of another host',
      { certificate: createCertificate({ commonName: 'mail', hosts: ['mail.example.com'], issuer: MAIL_AUTHORITY }) },
      'permanent',
      'tls_wrong_host',
    ],
  ]
  for (const [what, options, verdict, reason] of refusals) {
    test(`${what} is ${reason}`, async (t) => {
      const server = await startMailServer(t, options)
      const outcome = await send(t, server)
      assertFailed(outcome, verdict, reason)
      assert.ok(!JSON.stringify(outcome).includes('pass:word'))
      assert.deepEqual(server.emails, [])
      const withoutTls = server.commands.filter((command) => !command.startsWith('+'))
      assert.ok(!withoutTls.some((command) => /AUTH|MAIL|RCPT|DATA/.test(command)))
    })
  }

  test('only the codes of a reply to the login are kept', async (t) => {
    const encoded = LOGIN_FORMS[4] as string
    const [first, second] = [encoded.slice(0, 20), encoded.slice(20)]
    for (const [reply, kept] of [
      ['535 wrong pass:word', '535'],
      [`535-5.7.8 ${first}\r\n535 5.7.8 ${second}`, '535 5.7.8'],
      ['454 4.7.0 later', '454 4.7.0'],
      ['pass:word', null],
    ] as const) {
      const server = await startMailServer(t, { answer: (command) => (/^AUTH/.test(command) ? reply : undefined) })
      assert.equal((await send(t, server)).responseStart, kept)
    }
  })

  test('the login is hidden in a reply that is not valid UTF-8', async (t) => {
    const password = 'pässwörd'
    const text = Buffer.from(`550 ${password} `)
    const server = await startMailServer(t, {
      answer: (command) => {
        if (!/^MAIL/.test(command)) return undefined
        server.say(Buffer.concat([text, Buffer.from([0xff])]))
        return null
      },
    })
    const headers = ['Authorization', basicCredentials('alerts@example.com', password)]
    assert.equal((await send(t, server, { request: { headers } })).responseStart, '550 (hidden) \u00ff')
  })

  const LOGIN_FORMS = [
    'alerts@example.com',
    'pass:word',
    ...['alerts@example.com', 'pass:word', '\0alerts@example.com\0pass:word', 'alerts@example.com:pass:word'].map((text) =>
      Buffer.from(text).toString('base64'),
    ),
  ]
  const REPLIES: [what: string, command: RegExp, code: number][] = [
    ['about the sender', /^MAIL/, 550],
    ['about one of two recipients', /^RCPT TO:<b@/, 550],
    ['to a refused email', /^END/, 554],
    ['to an accepted email', /^END/, 250],
  ]
  for (const [what, repeating, code] of REPLIES) {
    test(`the login is hidden in the reply ${what}, also where the reply is cut`, async (t) => {
      // The last form is at the place where the reply is cut.
      const reply = `${code} ${LOGIN_FORMS.join(' ')} `
      const server = await startMailServer(t, {
        answer: (command) => (repeating.test(command) ? `${reply}${'.'.repeat(4_095 - reply.length)}pass:word` : undefined),
      })
      const { responseStart } = await send(t, server, {
        email: { ...EMAIL, to: ['a@example.com', 'b@example.com'] },
        request: { keepAnswer: true },
      })
      assert.match(responseStart ?? '', new RegExp(`${code} ${LOGIN_FORMS.map(() => '\\(hidden\\)').join(' ')} \\.`))
      for (const form of LOGIN_FORMS) assert.ok(!responseStart?.includes(form.slice(0, 5)), form)
    })
  }

  test('nothing that a server says before a valid greeting is kept', async (t) => {
    for (const greeting of ['421 ssh-secret', '554 ssh-secret', 'SSH-2.0-secret', '250-secret\r\n250 secret']) {
      const server = await startMailServer(t, { answer: (command) => (command === 'CONNECT' ? greeting : undefined) })
      const outcome = await send(t, server, { request: { keepAnswer: true } })
      assert.equal(outcome.verdict, 'temporary')
      assert.doesNotMatch(JSON.stringify(outcome), /secret/, greeting)
    }
  })

  test('the name of the host is not sent', async (t) => {
    t.mock.method(os, 'hostname', () => 'host.example.com')
    const server = await startMailServer(t)
    await send(t, server)
    assert.deepEqual(
      server.commands.filter((command) => command.includes('EHLO')),
      ['EHLO [127.0.0.1]', '+EHLO [127.0.0.1]'],
    )
  })

  test('an email that one of two recipients gets is delivered, and the reply about the other is kept', async (t) => {
    const server = await startMailServer(t, { answer: (command) => (/^RCPT TO:<b@/.test(command) ? '550 no such user' : undefined) })
    const outcome = await send(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com'] } })
    assert.deepEqual([outcome.verdict, outcome.responseStart], ['success', 'Refused recipients:\n550 no such user'])
    assert.deepEqual(server.emails[0]?.to, ['RCPT TO:<a@example.com>'])
  })

  test('a recipient that is deferred while another one gets the email is shown', async (t) => {
    const answer = (command: string) =>
      /^RCPT TO:<b@/.test(command) ? '450 mailbox busy' : /^RCPT TO:<c@/.test(command) ? '550 no such user' : undefined
    const server = await startMailServer(t, { answer })
    const outcome = await send(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com', 'c@example.com'] } })
    const shown = 'Refused recipients:\n550 no such user\nDeferred recipients, to whom the email is not sent again:\n450 mailbox busy'
    assert.deepEqual([outcome.verdict, outcome.responseStart], ['success', shown])
  })

  test('an email is deferred if one of its recipients is, and none gets it', async (t) => {
    const answer = (command: string) =>
      /^RCPT TO:<a@/.test(command) ? '450 mailbox busy' : /^RCPT/.test(command) ? '550 no such user' : undefined
    const server = await startMailServer(t, { answer })
    assertFailed(await send(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com'] } }), 'temporary', 'mail_deferred')
  })

  test('the server may confirm the email after the deadline', async (t) => {
    const answer = (command: string) => {
      if (command !== 'END') return undefined
      setTimeout(() => server.say('250 accepted'), PARTIAL_READ_MS + 50)
      return null
    }
    const server = await startMailServer(t, { answer })
    assert.equal((await send(t, server, { request: { timeoutMs: PARTIAL_READ_MS } })).verdict, 'success')
  })

  test('a server that does not confirm the email is given up at a deadline of its own', async (t) => {
    const server = await startMailServer(t, { answer: (command) => (command === 'END' ? null : undefined) })
    const outcome = await send(t, server, { confirmationMs: SHORT_MS })
    assertFailed(outcome, 'temporary', 'timeout')
    assert.equal(outcome.error, 'The deadline of 150 ms passed while waiting for the mail server to confirm the email.')
  })

  test('a closed client does not wait for the confirmation', async (t) => {
    let onEnd: () => void = () => undefined
    const ended = new Promise<void>((resolve) => {
      onEnd = resolve
    })
    const answer = (command: string) => {
      if (command !== 'END') return undefined
      onEnd()
      return null
    }
    const server = await startMailServer(t, { answer })
    const client = createMailClient({ guard: anywhere, ca: MAIL_AUTHORITY.cert, closeGraceMs: 0 })
    const url = `smtp://127.0.0.1:${server.port}`
    const outcome = new Promise<Outcome>((resolve) => {
      client.send({ url, headers: [], body: JSON.stringify(EMAIL), timeoutMs: 10_000, verdictOf: () => 'success' }, resolve)
    })
    await ended
    await client.close()
    assertFailed(await outcome, 'temporary', 'aborted')
  })

  test('an email is in flight until the connection is closed', async (t) => {
    const server = await startMailServer(t)
    const client = createMailClient({ guard: anywhere, ca: MAIL_AUTHORITY.cert, closeGraceMs: 0, goodbyeMs: 60_000 })
    t.after(() => client.close())
    const url = `smtp://127.0.0.1:${server.port}`
    for (let nth = 0; nth < 5; nth++) {
      const outcome = await new Promise<Outcome>((resolve) => {
        client.send({ url, headers: [], body: JSON.stringify(EMAIL), timeoutMs: 10_000, verdictOf: () => 'success' }, resolve)
      })
      assert.equal(outcome.verdict, 'success')
      assert.ok(server.commands.at(-1)?.endsWith('QUIT'), 'said before the outcome was reported')
    }
  })

  test('an accepted email stays accepted if the client is closed before the goodbye', async (t) => {
    let onQuit: () => void = () => undefined
    const quit = new Promise<void>((resolve) => {
      onQuit = resolve
    })
    const answer = (command: string) => {
      if (command !== 'QUIT') return undefined
      onQuit()
      return null
    }
    const server = await startMailServer(t, { answer })
    const client = createMailClient({ guard: anywhere, ca: MAIL_AUTHORITY.cert, closeGraceMs: 0, goodbyeMs: 60_000 })
    const url = `smtp://127.0.0.1:${server.port}`
    const outcome = new Promise<Outcome>((resolve) => {
      client.send({ url, headers: [], body: JSON.stringify(EMAIL), timeoutMs: 10_000, verdictOf: () => 'success' }, resolve)
    })
    await quit
    await client.close()
    assert.equal((await outcome).verdict, 'success')
  })

  for (const silent of ['CONNECT', 'AUTH']) {
    test(`a server that is silent after ${silent} is given up at the deadline`, async (t) => {
      const server = await startMailServer(t, { answer: (command) => (command.startsWith(silent) ? null : undefined) })
      const outcome = await send(t, server, { request: { timeoutMs: SHORT_MS } })
      assertFailed(outcome, 'temporary', 'timeout')
      assert.match(outcome.error ?? '', /^The deadline of 150 ms passed while .+\.$/)
    })
  }

  test('an address that the guard does not permit is not dialled', async (t) => {
    const server = await startMailServer(t)
    const guard = createAddressGuard({ allowPrivate: false, allow: [] })
    assertFailed(await send(t, server, { guard }), 'permanent', 'address_refused')
    const byName = { guard, lookup: () => Promise.resolve(['127.0.0.1']) }
    const url = `smtp://mail.example.com:${server.port}`
    assertFailed(await send(t, server, { ...byName, request: { url } }), 'permanent', 'address_refused')
    assert.deepEqual(server.commands, [])
  })

  test('a bug is not reported as a failure of the connection', async (t) => {
    const server = await startMailServer(t)
    class Broken extends TlsIdentity {
      override secureContext(): never {
        throw new TypeError('a bug')
      }
    }
    const tls = new Broken({ certificate: null, privateKey: null, ca: null })
    assertFailed(await send(t, server, { request: { tls } }), 'temporary', 'internal_error')
  })

  test('nothing listens', async (t) => {
    const server = await startMailServer(t)
    const url = 'smtp://127.0.0.1:1'
    assertFailed(await send(t, server, { request: { url } }), 'temporary', 'connection_refused')
  })

  test('line breaks in a subject add no header', async (t) => {
    const server = await startMailServer(t)
    const subject = 'Failing\r\nBcc: victim@example.com\r\n\r\nbody'
    assert.equal((await send(t, server, { email: { ...EMAIL, subject } })).verdict, 'success')
    const [email] = server.emails
    assert.ok(email)
    assert.deepEqual(email.to, ['RCPT TO:<a@example.com>'])
    const { fields } = read(email)
    assert.ok(fields.includes('Subject: Failing Bcc: victim@example.com body'))
    assert.ok(!fields.some((field) => /^bcc/i.test(field)))
  })

  test('an encoded word in a subject or a name is not written', async (t) => {
    const server = await startMailServer(t)
    const encoded = '=?utf-8?Q?Pay_now=E2=80=AE_gpj=0D=0ABcc=3A_x?='
    for (const text of [encoded, `ü ${encoded}`, `${encoded}${'x'.repeat(100)}`]) {
      assert.equal((await send(t, server, { email: { ...EMAIL, from: `${text} <alerts@example.com>`, subject: text } })).verdict, 'success')
      const { fields } = read(server.emails.at(-1) as { content: string })
      const shown = fields.filter((field) => /^(?:Subject|From):/.test(field)).join('\n')
      // What nodemailer itself encodes has its charset in upper case.
      assert.doesNotMatch(shown, /=\?utf-8/)
    }
  })

  test('an address that is none is refused before anything is dialled', async (t) => {
    const server = await startMailServer(t)
    const injected = 'a@example.com>\r\nRCPT TO:<victim@example.com'
    for (const email of [
      { ...EMAIL, to: injected },
      { ...EMAIL, to: [injected] },
      { ...EMAIL, to: [] },
      { ...EMAIL, from: injected },
      { ...EMAIL, to: '=?utf-8?Q?x?=@example.com' },
      { ...EMAIL, from: `Name <alerts@example.com>\r\nBcc: victim@example.com` },
      { ...EMAIL, from: `${'x'.repeat(600)} <alerts@example.com>` },
      { ...EMAIL, to: 'a@example.com, victim@example.com' },
      { ...EMAIL, to: ['a@example.com, victim@example.com'] },
      { ...EMAIL, to: Array.from({ length: 51 }, () => 'a@example.com') },
      { ...EMAIL, to: [{ toString: 1 }] },
      { ...EMAIL, to: [['a@example.com']] },
      { ...EMAIL, to: [] },
      { ...EMAIL, to: { 0: 'a@example.com', length: 1 } },
      { ...EMAIL, from: { toString: 1 } },
      [],
      'text',
      { ...EMAIL, subject: null },
      { ...EMAIL, text: { path: '/etc/passwd' } },
    ]) {
      assertFailed(await send(t, server, { email }), 'permanent', 'mail_invalid')
    }
    assert.deepEqual(server.commands, [])
  })

  test('a body that is no JSON is an invalid email', async (t) => {
    const server = await startMailServer(t)
    assertFailed(await send(t, server, { request: { body: '{' } }), 'permanent', 'mail_invalid')
  })

  test('a text may be one address', async (t) => {
    const server = await startMailServer(t)
    assert.equal((await send(t, server, { email: { ...EMAIL, to: ' a@example.com ' } })).verdict, 'success')
    assert.deepEqual(server.emails[0]?.to, ['RCPT TO:<a@example.com>'])
  })

  test('a long sender is refused without reading it again and again', () => {
    // A quadratic expression would take minutes.
    for (const from of [' '.repeat(1_000_000), '<'.repeat(1_000_000), `a${'\t '.repeat(1_000_000)}`])
      assert.match(String(emailOf(JSON.stringify({ ...EMAIL, from }))), /^The `from` of the email must be/)
  })

  test('a subject and a name are one line without invisible characters, and no character is cut in half', () => {
    const hidden = 'a\r\nb\tc\u202Ed\u2028e\u0000f\uFEFFg\uD83Dh'
    const email = emailOf(JSON.stringify({ ...EMAIL, from: `${hidden} <alerts@example.com>`, subject: hidden }))
    assert.ok(typeof email === 'object')
    assert.deepEqual([email.from.name, email.subject], ['a b c d e f g h', 'a b c d e f g h'])
    const encoded = '=?utf-8?Q?Pay_now=E2=80=AE_gpj=0D=0ABcc=3A_x?='
    const word = emailOf(JSON.stringify({ ...EMAIL, from: `${encoded} <alerts@example.com>`, subject: `${encoded} ü` }))
    assert.ok(typeof word === 'object')
    const broken = '= ?utf-8?Q?Pay_now=E2=80=AE_gpj=0D=0ABcc=3A_x?='
    assert.deepEqual([word.from.name, word.subject], [broken, `${broken} ü`])
    const cut = emailOf(JSON.stringify({ ...EMAIL, subject: `${'x'.repeat(499)}😀` }))
    assert.ok(typeof cut === 'object')
    assert.equal(cut.subject, 'x'.repeat(499))
  })

  for (const secure of [false, true]) {
    for (const [what, flood] of [
      ['empty lines', '\r\n'.repeat(200_000)],
      ['replies', '220 mail\r\n'.repeat(50_000)],
      ['a reply without an end', '220-mail\r\n'.repeat(50_000)],
      ['a line without an end', '2'.repeat(500_000)],
    ] as const) {
      test(`a server that sends ${what} without end is hung up on, ${secure ? 'over TLS' : 'in plain text'}`, async (t) => {
        const server = await startMailServer(t, { secure, answer: (command) => (command === 'CONNECT' ? flood : undefined) })
        const outcome = await send(t, server, { scheme: secure ? 'smtps' : 'smtp' })
        assertFailed(outcome, 'temporary', 'mail_protocol_error')
        assert.deepEqual(server.emails, [])
      })
    }
  }

  test('nothing that was received is kept or read after the end', async (t) => {
    const flood = '\r\n'.repeat(30_000)
    const server = await startMailServer(t, { answer: (command) => (command === 'CONNECT' ? flood : undefined) })
    const connection = new LimitedConnection({ host: '127.0.0.1', port: server.port })
    const failed = new Promise((resolve) => connection.once('error', resolve))
    const ended = new Promise<void>((resolve) => connection.once('end', resolve))
    connection.connect()
    assert.equal(((await failed) as { code?: string }).code, 'EPROTOCOL')
    await ended
    assert.deepEqual([connection._responseQueue, connection._remainder], [[], ''])
  })

  test('empty lines between all replies end the attempt at the limit', async (t) => {
    // Few enough at once for the queue of replies.
    const answer = (command: string): string | undefined =>
      command.startsWith('RCPT') ? `250 ${'x'.repeat(60_000)}\r\n${'\r\n'.repeat(50)}` : undefined
    const server = await startMailServer(t, { answer })
    const to = Array.from({ length: 10 }, (_, at) => `a${at}@example.com`)
    assertFailed(await send(t, server, { email: { ...EMAIL, to } }), 'temporary', 'mail_protocol_error')
    assert.deepEqual(server.emails, [])
    assert.ok(server.commands.filter((command) => command.includes('RCPT')).length <= Math.ceil(MAX_RECEIVED_BYTES / 60_000))
  })

  test('a closed client ends what is in flight', async (t) => {
    const server = await startMailServer(t, { answer: () => null })
    const client = createMailClient({ guard: anywhere, ca: MAIL_AUTHORITY.cert, closeGraceMs: 0 })
    const url = `smtp://127.0.0.1:${server.port}`
    const ended = new Promise<Outcome>((resolve) => {
      client.send({ url, headers: [], body: JSON.stringify(EMAIL), timeoutMs: 10_000, verdictOf: () => 'success' }, resolve)
    })
    assert.equal(client.inFlight, 1)
    await client.close()
    assertFailed(await ended, 'temporary', 'aborted')
    assert.equal(client.inFlight, 0)
  })
})
