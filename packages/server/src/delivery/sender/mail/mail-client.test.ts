// Emails are sent over real connections to a mail server that this test runs.

import assert from 'node:assert/strict'
import os from 'node:os'
import { suite, test } from 'node:test'
import { MAX_RECEIVED_BYTES } from '../../../destinations/webhook/email/email-request.ts'
import { anywhere, assertFailed, PARTIAL_READ_MS, SHORT_MS } from '../../fixtures/attempts.ts'
import { MAIL_AUTHORITY, startMailServer } from '../../fixtures/mail-server.ts'
import { EMAIL, sendEmail } from '../../fixtures/sent-email.ts'
import type { Outcome } from '../../link/outcome.ts'
import { createAddressGuard } from '../http/address-guard.ts'
import { TlsIdentity } from '../http/connection.ts'
import { emailOf } from './email.ts'
import { LimitedConnection } from './limited-connection.ts'
import { createMailClient } from './mail-client.ts'

const LINE = 'lorem ipsum dolor sit\n'
const LARGE_BYTES = LINE.length * 200_000

/** The header fields of an email, and its text. */
function read({ content }: { content: string }): { fields: string[]; text: string } {
  const [head = '', ...rest] = content.split('\r\n\r\n')
  return { fields: head.replaceAll(/\r\n[ \t]+/g, ' ').split('\r\n'), text: rest.join('\r\n\r\n') }
}

suite('emails', () => {
  for (const secure of [false, true]) {
    test(`an email is sent over ${secure ? 'TLS' : 'STARTTLS'}`, async (t) => {
      const server = await startMailServer(t, { secure })
      const outcome = await sendEmail(t, server, { scheme: secure ? 'smtps' : 'smtp', request: { keepAnswer: true } })
      assert.deepEqual([outcome.verdict, outcome.reason, outcome.responseStart], ['success', null, '250 accepted'])
      assert.equal(outcome.address, '127.0.0.1')
      const [email] = server.emails
      assert.ok(email)
      assert.match(email.from, /^MAIL FROM:<alerts@example\.com>/)
      assert.deepEqual(email.to, ['RCPT TO:<a@example.com>'])
      const { fields, text } = read(email)
      assert.ok(fields.includes('Message-ID: <1-0@switchyard>'))
      assert.ok(fields.includes('From: Switchyard <alerts@example.com>'))
      assert.ok(fields.some((field) => field.startsWith('Subject: =?UTF-8?')))
      assert.match(text, /First line\r\n\.\.\r\nlast line/)
      const plain = server.commands.filter((command) => !command.startsWith('+')).map((command) => command.split(' ', 1)[0])
      assert.deepEqual(plain, secure ? [] : ['EHLO', 'STARTTLS'])
    })
  }

  test('without credentials, the client does not log in', async (t) => {
    const server = await startMailServer(t)
    assert.equal((await sendEmail(t, server, { request: { headers: [] } })).verdict, 'success')
    assert.ok(!server.commands.some((command) => command.includes('AUTH')))
  })

  test('the name of the host is not sent', async (t) => {
    t.mock.method(os, 'hostname', () => 'host.example.com')
    const server = await startMailServer(t)
    await sendEmail(t, server)
    assert.deepEqual(
      server.commands.filter((command) => command.includes('EHLO')),
      ['EHLO [127.0.0.1]', '+EHLO [127.0.0.1]'],
    )
  })

  test('the server may confirm the email after the deadline', async (t) => {
    const answer = (command: string) => {
      if (command !== 'END') return undefined
      setTimeout(() => server.say('250 accepted'), PARTIAL_READ_MS + 50)
      return null
    }
    const server = await startMailServer(t, { answer })
    assert.equal((await sendEmail(t, server, { request: { timeoutMs: PARTIAL_READ_MS } })).verdict, 'success')
  })

  test('a server that does not confirm the email is given up at a deadline of its own', async (t) => {
    const server = await startMailServer(t, { answer: (command) => (command === 'END' ? null : undefined) })
    const outcome = await sendEmail(t, server, { confirmationMs: SHORT_MS })
    assertFailed(outcome, 'temporary', 'timeout')
    assert.equal(outcome.error, 'The deadline of 150 ms passed while waiting for the mail server to confirm the email.')
  })

  test('a large email is sent unchanged, well within its deadline', async (t) => {
    const server = await startMailServer(t, { secure: true })
    const text = LINE.repeat(LARGE_BYTES / LINE.length)
    assert.equal(
      (await sendEmail(t, server, { scheme: 'smtps', email: { ...EMAIL, text }, request: { timeoutMs: 60_000 } })).verdict,
      'success',
    )
    const [email] = server.emails
    assert.equal(read(email ?? { content: '' }).text.replaceAll('\r\n', '\n'), text.trimEnd())
  })

  test('an attempt ends at the deadline if the server stops reading in the middle of a large email', async (t) => {
    const answer = (command: string) => {
      if (command === 'DATA') queueMicrotask(() => server.stopReading())
      return undefined
    }
    const server = await startMailServer(t, { secure: true, answer })
    // More than the buffers of both sockets.
    const email = { ...EMAIL, text: LINE.repeat(800_000) }
    const outcome = await sendEmail(t, server, { scheme: 'smtps', email, request: { timeoutMs: 5_000 }, confirmationMs: SHORT_MS })
    assertFailed(outcome, 'temporary', 'timeout')
    // On a very slow machine, it is still being written.
    assert.match(outcome.error ?? '', /^The deadline of 5000 ms passed while the email was being (sent|written)\.$/)
    assert.deepEqual(server.emails, [])
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
      const outcome = await sendEmail(t, server, { request: { timeoutMs: SHORT_MS } })
      assertFailed(outcome, 'temporary', 'timeout')
      assert.match(outcome.error ?? '', /^The deadline of 150 ms passed while .+\.$/)
    })
  }

  test('an address that the guard does not permit is not dialled', async (t) => {
    const server = await startMailServer(t)
    const guard = createAddressGuard({ allowPrivate: false, allow: [] })
    assertFailed(await sendEmail(t, server, { guard }), 'permanent', 'address_refused')
    const byName = { guard, lookup: () => Promise.resolve(['127.0.0.1']) }
    const url = `smtp://mail.example.com:${server.port}`
    assertFailed(await sendEmail(t, server, { ...byName, request: { url } }), 'permanent', 'address_refused')
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
    assertFailed(await sendEmail(t, server, { request: { tls } }), 'temporary', 'internal_error')
  })

  test('nothing listens', async (t) => {
    const server = await startMailServer(t)
    const url = 'smtp://127.0.0.1:1'
    assertFailed(await sendEmail(t, server, { request: { url } }), 'temporary', 'connection_refused')
  })

  test('line breaks in a subject add no header', async (t) => {
    const server = await startMailServer(t)
    const subject = 'Failing\r\nBcc: victim@example.com\r\n\r\nbody'
    assert.equal((await sendEmail(t, server, { email: { ...EMAIL, subject } })).verdict, 'success')
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
      assert.equal(
        (await sendEmail(t, server, { email: { ...EMAIL, from: `${text} <alerts@example.com>`, subject: text } })).verdict,
        'success',
      )
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
      assertFailed(await sendEmail(t, server, { email }), 'permanent', 'mail_invalid')
    }
    assert.deepEqual(server.commands, [])
  })

  test('a body that is no JSON is an invalid email', async (t) => {
    const server = await startMailServer(t)
    assertFailed(await sendEmail(t, server, { request: { body: '{' } }), 'permanent', 'mail_invalid')
  })

  test('a text may be one address', async (t) => {
    const server = await startMailServer(t)
    assert.equal((await sendEmail(t, server, { email: { ...EMAIL, to: ' a@example.com ' } })).verdict, 'success')
    assert.deepEqual(server.emails[0]?.to, ['RCPT TO:<a@example.com>'])
  })

  test('a long sender is refused after reading it once', () => {
    // A quadratic expression would take minutes.
    for (const from of [' '.repeat(1_000_000), '<'.repeat(1_000_000), `a${'\t '.repeat(1_000_000)}`]) {
      const problem = emailOf(JSON.stringify({ ...EMAIL, from }))
      assert.ok(typeof problem === 'string' && problem.startsWith('The `from` of the email must be'))
    }
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

  for (const where of ['in plain text', 'over TLS', 'after STARTTLS']) {
    for (const [what, flood] of [
      ['empty lines', '\r\n'.repeat(200_000)],
      ['replies', '220 mail\r\n'.repeat(50_000)],
      ['a reply without an end', '220-mail\r\n'.repeat(50_000)],
      ['a line without an end', '2'.repeat(500_000)],
    ] as const) {
      test(`a server that sends ${what} without end is hung up on, ${where}`, async (t) => {
        const secure = where === 'over TLS'
        const floods = (command: string): boolean =>
          where === 'after STARTTLS' ? server.commands.at(-1) === `+${command}` : command === 'CONNECT'
        const server = await startMailServer(t, { secure, answer: (command) => (floods(command) ? flood : undefined) })
        const outcome = await sendEmail(t, server, { scheme: secure ? 'smtps' : 'smtp' })
        assertFailed(outcome, 'temporary', 'mail_protocol_error')
        assert.equal(server.commands.filter((command) => command.startsWith('+')).length, where === 'after STARTTLS' ? 1 : 0)
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
    // oxlint-disable-next-line eslint/no-underscore-dangle -- the names are nodemailer's
    assert.deepEqual([connection._responseQueue, connection._remainder], [[], ''])
  })

  test('empty lines between all replies end the attempt at the limit', async (t) => {
    // Few enough at once for the queue of replies.
    const answer = (command: string): string | undefined =>
      command.startsWith('RCPT') ? `250 ${'x'.repeat(60_000)}\r\n${'\r\n'.repeat(50)}` : undefined
    const server = await startMailServer(t, { answer })
    const to = Array.from({ length: 10 }, (_, at) => `a${at}@example.com`)
    assertFailed(await sendEmail(t, server, { email: { ...EMAIL, to } }), 'temporary', 'mail_protocol_error')
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
