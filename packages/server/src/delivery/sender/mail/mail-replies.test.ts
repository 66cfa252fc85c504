// What the replies of a mail server mean, and what of them is kept.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { assertFailed } from '../../fixtures/attempts.ts'
import { createCertificate } from '../../fixtures/certificates.ts'
import { MAIL_AUTHORITY, type MailServerOptions, startMailServer } from '../../fixtures/mail-server.ts'
import { EMAIL, sendEmail } from '../../fixtures/sent-email.ts'
import { basicCredentials } from '../authorizing/token-source.ts'

suite('replies of mail servers', () => {
  type Refusal = [what: string, MailServerOptions, verdict: 'temporary' | 'permanent', reason: string]
  const refusals: Refusal[] = [
    [
      'a refused login',
      { answer: (command) => (command.startsWith('AUTH') ? '535 wrong pass:word' : undefined) },
      'temporary',
      'mail_login_refused',
    ],
    ['no TLS', { offersTls: false }, 'temporary', 'mail_without_tls'],
    ['a refused sender', { answer: (command) => (command.startsWith('MAIL') ? '550 not yours' : undefined) }, 'permanent', 'mail_refused'],
    ['greylisting', { answer: (command) => (command.startsWith('RCPT') ? '450 later' : undefined) }, 'temporary', 'mail_deferred'],
    ['a refused email', { answer: (command) => (command === 'END' ? '554 spam' : undefined) }, 'permanent', 'mail_refused'],
    [
      'a deferring server that says 5xx',
      { answer: (command) => (command.startsWith('RCPT') ? '550 4.2.1 later' : undefined) },
      'temporary',
      'mail_deferred',
    ],
    [
      'a problem of the network behind the server',
      { answer: (command) => (command.startsWith('MAIL') ? '550 5.4.1 no route' : undefined) },
      'temporary',
      'mail_deferred',
    ],
    [
      'a missing login',
      { answer: (command) => (command.startsWith('MAIL') ? '530 5.7.0 log in' : undefined) },
      'temporary',
      'mail_deferred',
    ],
    ['a greeting with 5xx', { answer: (command) => (command === 'CONNECT' ? '554 go away' : undefined) }, 'temporary', 'mail_deferred'],
    ['an EHLO with 5xx', { answer: (command) => (command.startsWith('EHLO') ? '550 go away' : undefined) }, 'temporary', 'mail_deferred'],
    ['a refused DATA', { answer: (command) => (command === 'DATA' ? '550 5.7.1 spam' : undefined) }, 'permanent', 'mail_refused'],
    [
      'an email that is larger than the server accepts',
      { answer: (command) => (command.startsWith('EHLO') ? '250-mail\r\n250-STARTTLS\r\n250 SIZE 10' : undefined) },
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
      const outcome = await sendEmail(t, server)
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
      const server = await startMailServer(t, { answer: (command) => (command.startsWith('AUTH') ? reply : undefined) })
      assert.equal((await sendEmail(t, server)).responseStart, kept)
    }
  })

  test('the login is hidden in a reply that is not valid UTF-8', async (t) => {
    const password = 'pässwörd'
    const text = Buffer.from(`550 ${password} `)
    const server = await startMailServer(t, {
      answer: (command) => {
        if (!command.startsWith('MAIL')) return undefined
        server.say(Buffer.concat([text, Buffer.from([0xff])]))
        return null
      },
    })
    const headers = ['Authorization', basicCredentials('alerts@example.com', password)]
    assert.equal((await sendEmail(t, server, { request: { headers } })).responseStart, '550 (hidden) \u00ff')
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
      const { responseStart } = await sendEmail(t, server, {
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
      const outcome = await sendEmail(t, server, { request: { keepAnswer: true } })
      assert.equal(outcome.verdict, 'temporary')
      assert.doesNotMatch(JSON.stringify(outcome), /secret/, greeting)
    }
  })

  test('an email that one of two recipients gets is delivered, and the reply about the other is kept', async (t) => {
    const server = await startMailServer(t, { answer: (command) => (command.startsWith('RCPT TO:<b@') ? '550 no such user' : undefined) })
    const outcome = await sendEmail(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com'] } })
    assert.deepEqual([outcome.verdict, outcome.responseStart], ['success', 'Refused recipients:\n550 no such user'])
    assert.deepEqual(server.emails[0]?.to, ['RCPT TO:<a@example.com>'])
  })

  test('a recipient that is deferred while another one gets the email is shown', async (t) => {
    const answer = (command: string) =>
      command.startsWith('RCPT TO:<b@') ? '450 mailbox busy' : command.startsWith('RCPT TO:<c@') ? '550 no such user' : undefined
    const server = await startMailServer(t, { answer })
    const outcome = await sendEmail(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com', 'c@example.com'] } })
    const shown = 'Refused recipients:\n550 no such user\nDeferred recipients, to whom the email is not sent again:\n450 mailbox busy'
    assert.deepEqual([outcome.verdict, outcome.responseStart], ['success', shown])
  })

  test('an email is deferred if one of its recipients is, and none gets it', async (t) => {
    const answer = (command: string) =>
      command.startsWith('RCPT TO:<a@') ? '450 mailbox busy' : command.startsWith('RCPT') ? '550 no such user' : undefined
    const server = await startMailServer(t, { answer })
    assertFailed(await sendEmail(t, server, { email: { ...EMAIL, to: ['a@example.com', 'b@example.com'] } }), 'temporary', 'mail_deferred')
  })
})
