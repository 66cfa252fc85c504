// `switchyard listen`: a receiver on this machine that prints what arrives. With --connect it also makes itself a
// destination of the service, and takes it away again in the end.

import { type Call, type Command, CommandProblem, EXIT } from '../line/command.ts'
import { controlToken } from '../line/global-flags.ts'
import { readSecret } from '../line/input.ts'
import type { Output } from '../line/output.ts'
import { at, idOf } from '../line/references.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { createApi } from '../service/api.ts'
import type { Arrival, ArrivedMessage, Misbehaviour, RunningReceiver, Signature } from './receiver.ts'

const WHERE = '- for stdin, @FILE or env:NAME'

export const listen: Command = {
  name: 'listen',
  summary: 'A local receiver that prints what arrives, checks signatures, and can misbehave',
  details:
    'Answers 200 unless told otherwise. --status, --reset, --hang and --drip say how a bad answer looks; --fail says which share of the requests gets one, else all do. Ctrl-C ends it with a summary.\n\n' +
    'Signatures are checked when a secret is given, by flag or in SWITCHYARD_SHARED_SECRET and SWITCHYARD_SIGNING_SECRET (several with spaces between). A message is a duplicate when it comes again after it was answered with success.',
  flags: {
    port: { placeholder: 'PORT', sentence: 'The port to listen on; 0 picks a free one.', usual: '9000' },
    host: { placeholder: 'HOST', sentence: 'The address to listen on.', usual: '127.0.0.1' },
    'shared-secret': { placeholder: 'WHERE', sentence: `Where the key of X-Signature is: ${WHERE}.`, variable: 'SWITCHYARD_SHARED_SECRET' },
    'signing-secret': {
      placeholder: 'WHERE',
      sentence: `Where a key of Standard Webhooks signatures (whsec_…) is: ${WHERE}.`,
      variable: 'SWITCHYARD_SIGNING_SECRET',
      many: true,
    },
    strict: { placeholder: null, sentence: 'Answers 401 where the signature is missing or wrong.' },
    status: { placeholder: 'STATUS', sentence: 'The status of a bad answer.', usual: '500 with --fail' },
    fail: {
      placeholder: 'SHARE',
      sentence: 'Which share of the requests is answered badly: 30% or 0.3.',
      usual: 'all, where a bad answer is asked for',
    },
    delay: { placeholder: 'DURATION', sentence: 'How long every answer waits; the service waits at most 5s.' },
    reset: { placeholder: null, sentence: 'A bad answer is a connection reset.' },
    hang: { placeholder: null, sentence: 'A bad answer never comes.' },
    drip: { placeholder: null, sentence: 'A bad answer comes byte by byte and never ends.' },
    verbose: { placeholder: null, sentence: 'Prints headers and bodies, too.' },
    connect: { placeholder: null, sentence: 'Makes this receiver a destination of the service until it ends.' },
    source: { placeholder: 'SOURCE', sentence: 'With --connect: whose messages, by id or name.', usual: 'default', many: true },
  },
  examples: [
    'switchyard listen --connect',
    'switchyard listen --signing-secret env:HOOK_SECRET',
    'switchyard listen --status 503 --fail 30% --delay 2s',
  ],
  async run(call) {
    const { generateSecret, verifyWebhook } = await import('@switchyard/webhook')
    const { startReceiver } = await import('./receiver.ts')
    const bad = badAnswers(call)
    let secrets = await secretsOf(call)
    const generated = secrets === null && call.has('connect') ? generateSecret() : null
    if (generated !== null) secrets = { signingSecrets: [generated] }
    const tally = { requests: 0, messages: 0, duplicates: 0, bad: 0, good: 0, missing: 0, wrong: 0 }
    const receiver = await startReceiver(
      {
        host: call.flag('host') ?? '127.0.0.1',
        port: portOf(call.flag('port') ?? '9000'),
        secrets,
        strict: call.has('strict'),
        ...bad,
        delayMs: call.flag('delay') === undefined ? 0 : parseDuration('delay', call.flag('delay') as string),
        onArrival(arrival) {
          count(tally, arrival)
          show(call, arrival)
        },
      },
      verifyWebhook,
    ).catch((error: NodeJS.ErrnoException) => {
      throw listenProblem(error, call)
    })
    try {
      call.out.remark(`Listening on ${receiver.url} ${described(bad)}. Ctrl-C ends it.`)
      if (secrets === null) call.out.remark('Signatures are not checked: no secret is given.')
      const disconnect = call.has('connect') ? await connect(call, receiver, secrets as Secrets) : null
      try {
        await aborted(call.signal)
      } finally {
        await disconnect?.()
      }
    } finally {
      await receiver.close()
    }
    if (call.json) call.out.json({ summary: tally })
    else call.out.remark(summary(tally, secrets !== null))
    return EXIT.ok
  },
}

interface Secrets {
  sharedSecret?: string
  signingSecrets?: string[]
}

async function secretsOf(call: Call): Promise<Secrets | null> {
  const given = call.flag('shared-secret')
  const shared = given === undefined ? call.env['SWITCHYARD_SHARED_SECRET'] : await readSecret('--shared-secret', given, call.env)
  const signing: string[] = []
  for (const where of call.flags('signing-secret')) signing.push(await readSecret('--signing-secret', where, call.env))
  if (signing.length === 0) signing.push(...(call.env['SWITCHYARD_SIGNING_SECRET'] ?? '').split(/[\s,]+/).filter((text) => text !== ''))
  const { parseSigningSecret } = await import('@switchyard/webhook')
  for (const secret of signing) {
    try {
      parseSigningSecret(secret)
    } catch {
      throw new CommandProblem('A signing secret must be whsec_ followed by base64.', EXIT.usage)
    }
  }
  if ((shared === undefined || shared === '') && signing.length === 0) return null
  return { ...(shared ? { sharedSecret: shared } : {}), ...(signing.length > 0 ? { signingSecrets: signing } : {}) }
}

interface BadAnswers {
  misbehaviour: Misbehaviour | null
  status: number
  share: number
}

function badAnswers(call: Call): BadAnswers {
  const forms = (['reset', 'hang', 'drip'] as const).filter((name) => call.has(name))
  if (forms.length + (call.has('status') ? 1 : 0) > 1)
    throw new CommandProblem('Choose one of --status, --reset, --hang and --drip.', EXIT.usage)
  const text = call.flag('status')
  const status = text === undefined ? 500 : parseCount('status', text, 200)
  if (status > 599) throw new CommandProblem('--status must be from 200 to 599.', EXIT.usage)
  const share = call.flag('fail') === undefined ? 1 : parseShare(call.flag('fail') as string)
  const asked = forms.length > 0 || call.has('status') || call.has('fail')
  return { misbehaviour: asked ? (forms[0] ?? 'status') : null, status, share }
}

export function parseShare(text: string): number {
  const [, number, percent] = /^(\d{1,3}(?:\.\d{1,6})?|\.\d{1,6})(%?)$/.exec(text) ?? []
  const share = number === undefined ? Number.NaN : Number(number) / (percent === '%' ? 100 : 1)
  if (!(share >= 0 && share <= 1)) throw new CommandProblem('--fail must be a share, such as 30% or 0.3.', EXIT.usage)
  return share
}

function portOf(text: string): number {
  const port = parseCount('port', text, 0)
  if (port > 65_535) throw new CommandProblem('--port must be from 0 to 65535.', EXIT.usage)
  return port
}

function listenProblem({ code, message }: NodeJS.ErrnoException, call: Call): CommandProblem {
  const where = `${call.flag('host') ?? '127.0.0.1'}, port ${call.flag('port') ?? '9000'}`
  if (code === 'EADDRINUSE') return new CommandProblem(`${where} is taken. Choose another: --port 0 picks a free one.`)
  return new CommandProblem(`Cannot listen on ${where}: ${message}.`)
}

/** Creates the destination; gives back what removes it, which must also work after Ctrl-C has ended every other call. */
async function connect(call: Call, { url }: RunningReceiver, secrets: Secrets): Promise<() => Promise<void>> {
  const names = call.flags('source').length > 0 ? call.flags('source') : ['default']
  const sourceIds: string[] = []
  for (const name of names) sourceIds.push(await idOf(call.api, 'source', name))
  const name = `listen at ${new URL(url).host}, process ${process.pid}`
  const destination = await call.api.post('/api/destinations', { name, sourceIds, urls: [url], ...secrets })
  const id = String(destination['id'])
  call.out.remark(`Connected as destination ${id} of ${names.join(', ')}. It is removed at the end.`)
  return async () => {
    const api = createApi({
      url: call.api.url,
      token: controlToken(call.flag('token'), call.env),
      signal: new AbortController().signal,
      deadlineMs: 10_000,
    })
    try {
      await api.delete(at`/api/destinations/${id}`)
      call.out.remark(`Destination ${id} is removed.`)
    } catch (error) {
      call.out.remark(
        `Destination ${id} could not be removed: ${(error as Error).message} Remove it with: switchyard destinations delete ${id}`,
      )
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

// ── What is shown ───────────────────────────────────────────────────────────────────────────────────────────────────

type Tally = Record<'requests' | 'messages' | 'duplicates' | 'bad' | 'good' | 'missing' | 'wrong', number>

function count(tally: Tally, { messages, signature, status, misbehaviour }: Arrival): void {
  tally.requests += 1
  tally.messages += messages.length
  tally.duplicates += messages.filter(({ duplicate }) => duplicate).length
  if (misbehaviour !== null || status === null || status >= 300) tally.bad += 1
  if (signature.verdict === 'good') tally.good += 1
  else if (signature.verdict === 'missing') tally.missing += 1
  else if (signature.verdict !== 'unchecked') tally.wrong += 1
}

function show(call: Call, arrival: Arrival): void {
  const { out, json } = call
  if (json) return out.json(jsonOf(arrival, call.has('verbose')))
  const { batch, messages, attempt, replay, signature, method, path, headers, text } = arrival
  const facts = [
    ...(attempt === null ? [] : [`attempt ${attempt}`]),
    ...(replay ? [out.paint('yellow', 'replay')] : []),
    signatureText(out, signature),
    answerText(out, arrival),
  ].join('  ')
  const time = out.paint('dim', new Date(arrival.atMs).toISOString().slice(11, 23))
  const [only] = messages
  if (batch) {
    out.line(`${time}  ${out.paint('bold', `batch of ${messages.length}`)}  ${facts}`)
    for (const message of messages) out.line(`              ${messageText(out, message)}`)
  } else if (only !== undefined) out.line(`${time}  ${messageText(out, only)}  ${facts}`)
  else out.line(`${time}  ${method} ${path}: not a message  ${facts}`)
  if (call.has('verbose')) {
    out.line(out.paint('dim', `  ${method} ${path}`))
    for (const [name, value] of Object.entries(headers)) out.line(out.paint('dim', `  ${name}: ${value}`))
    if (messages.length === 0) out.line(`  ${text}`)
    for (const { body } of messages) out.text(JSON.stringify(body, null, 2).replaceAll(/^/gm, '  '))
  }
}

function messageText(out: Output, { type, event, userId, anonymousId, messageId, duplicate }: ArrivedMessage): string {
  return [
    out.paint('bold', type.padEnd(8)),
    ...(event === null ? [] : [JSON.stringify(event)]),
    ...(userId === null ? (anonymousId === null ? [] : [`anonymous ${anonymousId}`]) : [`user ${userId}`]),
    ...(messageId === null ? [] : [out.paint('dim', messageId)]),
    ...(duplicate ? [out.paint('yellow', 'duplicate')] : []),
  ].join('  ')
}

function signatureText(out: Output, signature: Signature): string {
  switch (signature.verdict) {
    case 'good':
      return out.paint('green', signature.coverage === 'body' ? '✔ signature good' : '✔ signature good (of the first message only)')
    case 'missing':
      return out.paint('red', '✘ signature missing')
    case 'wrong':
      return out.paint('red', `✘ signature wrong (${signature.code})`)
    case 'unreadable':
      return out.paint('red', `✘ not a webhook (${signature.code})`)
    case 'unchecked':
      return out.paint('dim', signature.carried ? 'signed, not checked' : 'not signed')
  }
}

function answerText(out: Output, { status, misbehaviour }: Arrival): string {
  const words = { reset: 'reset', hang: 'no answer', drip: 'an answer without end', status: '' }
  if (status === null) return out.paint('red', `→ ${words[misbehaviour ?? 'hang']}`)
  return status < 300 ? `→ ${status}` : out.paint('red', `→ ${status}`)
}

function jsonOf(arrival: Arrival, verbose: boolean): object {
  const { number, atMs, batch, attempt, replay, signature, status, misbehaviour, method, path, headers, messages } = arrival
  return {
    number,
    at: new Date(atMs).toISOString(),
    batch,
    attempt,
    replay,
    signature,
    status,
    misbehaviour,
    messages: verbose ? messages : messages.map(withoutBody),
    ...(verbose ? { method, path, headers } : {}),
  }
}

function withoutBody({ type, event, userId, anonymousId, messageId, duplicate }: ArrivedMessage): object {
  return { type, event, userId, anonymousId, messageId, duplicate }
}

function described({ misbehaviour, status, share }: BadAnswers): string {
  if (misbehaviour === null) return 'and answering 200'
  const what = { status: `with ${status}`, reset: 'with resets', hang: 'never', drip: 'byte by byte' }[misbehaviour]
  return share === 1 ? `and answering ${what}` : `and answering ${Math.round(share * 1_000) / 10}% ${what}, the rest with 200`
}

function summary(tally: Tally, checked: boolean): string {
  const { requests, messages, duplicates, bad, good, missing, wrong } = tally
  const signatures = checked ? ` Signatures: ${good} good, ${missing} missing, ${wrong} wrong.` : ''
  const many = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
  return `${many(requests, 'request')} with ${many(messages, 'message')}, ${many(duplicates, 'duplicate')}; ${bad} answered badly.${signatures}`
}
