// `switchyard listen`: runs a local webhook receiver that prints the messages it gets. With --connect it also creates a destination for
// itself in the service, and deletes it at the end.

import { counted } from '../../api/counted.ts'
import { type Call, type Command, CommandProblem, UsageProblem } from '../line/command.ts'
import { controlToken } from '../line/global-flags.ts'
import { readSecret } from '../line/input.ts'
import type { Output } from '../line/output.ts'
import { at, idsOf } from '../line/references.ts'
import { parseCount, parseDuration } from '../line/times.ts'
import { createApi } from '../service/api.ts'
import type { Arrival, ArrivedMessage, Misbehaviour, RunningReceiver, Signature } from './receiver.ts'

const SECRET_PLACES = '- for stdin, @FILE or env:NAME'

export const listen: Command = {
  name: 'listen',
  summary: 'Run a local webhook receiver that prints messages, checks signatures, and can simulate failures',
  details:
    'The receiver answers 200, unless you ask for failures: --status, --reset, --hang and --drip choose the kind of failure, and --fail the share of requests that fail (default: all). Ctrl-C stops it and prints a summary.\n\n' +
    'Signatures are checked if a secret is given, by flag or in SWITCHYARD_SHARED_SECRET and SWITCHYARD_SIGNING_SECRET (separate several with spaces). A message that arrives again after a successful response is shown as a duplicate.',
  flags: {
    port: { placeholder: 'PORT', description: 'The port to listen on; 0 chooses a free one.', defaultText: '9000' },
    host: { placeholder: 'HOST', description: 'The address to listen on.', defaultText: '127.0.0.1' },
    'shared-secret': {
      placeholder: 'WHERE',
      description: `Where to read the secret for X-Signature: ${SECRET_PLACES}.`,
      variable: 'SWITCHYARD_SHARED_SECRET',
    },
    'signing-secret': {
      placeholder: 'WHERE',
      description: `Where to read a secret for Standard Webhooks signatures (whsec_…): ${SECRET_PLACES}.`,
      variable: 'SWITCHYARD_SIGNING_SECRET',
      many: true,
    },
    strict: { placeholder: null, description: 'Answer 401 if the signature is missing or invalid.' },
    status: { placeholder: 'STATUS', description: 'Fail with this HTTP status.', defaultText: '500 with --fail' },
    fail: {
      placeholder: 'SHARE',
      description: 'The share of requests that fail: 30% or 0.3.',
      defaultText: 'all, if a kind of failure is given',
    },
    delay: { placeholder: 'DURATION', description: 'How long to delay every response; the service waits at most 5s.' },
    reset: { placeholder: null, description: 'Fail with a connection reset.' },
    hang: { placeholder: null, description: 'Fail by never responding.' },
    drip: { placeholder: null, description: 'Fail with a response that arrives byte by byte and never ends.' },
    verbose: { placeholder: null, description: 'Also print headers and bodies.' },
    connect: {
      placeholder: null,
      description: 'Create a destination for this receiver in the service, and delete it when the command ends.',
    },
    source: {
      placeholder: 'SOURCE',
      description: 'With --connect: a source to receive messages from, by id or name.',
      defaultText: 'default',
      many: true,
    },
  },
  examples: [
    'switchyard listen --connect',
    'switchyard listen --signing-secret env:HOOK_SECRET',
    'switchyard listen --status 503 --fail 30% --delay 2s',
  ],
  async run(call) {
    const { generateSecret, verifyWebhook } = await import('@switchyard/webhook')
    const { startReceiver } = await import('./receiver.ts')
    const failures = failuresOf(call)
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
        ...failures,
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
      call.out.remark(`Listening on ${receiver.url} ${described(failures)}. Press Ctrl-C to stop.`)
      if (secrets === null) call.out.remark('Signatures are not checked, because no secret was given.')
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
      throw new UsageProblem('A signing secret must be whsec_ followed by base64.')
    }
  }
  if ((shared === undefined || shared === '') && signing.length === 0) return null
  return { ...(shared ? { sharedSecret: shared } : {}), ...(signing.length > 0 ? { signingSecrets: signing } : {}) }
}

interface Failures {
  misbehaviour: Misbehaviour | null
  status: number
  share: number
}

function failuresOf(call: Call): Failures {
  const forms = (['reset', 'hang', 'drip'] as const).filter((name) => call.has(name))
  if (forms.length + (call.has('status') ? 1 : 0) > 1) throw new UsageProblem('Use only one of --status, --reset, --hang and --drip.')
  const text = call.flag('status')
  const status = text === undefined ? 500 : parseCount('status', text, 200)
  if (status > 599) throw new UsageProblem('--status must be from 200 to 599.')
  const share = call.flag('fail') === undefined ? 1 : parseShare(call.flag('fail') as string)
  const asked = forms.length > 0 || call.has('status') || call.has('fail')
  return { misbehaviour: asked ? (forms[0] ?? 'status') : null, status, share }
}

export function parseShare(text: string): number {
  const [, number, percent] = /^(\d{1,3}(?:\.\d{1,6})?|\.\d{1,6})(%?)$/.exec(text) ?? []
  const share = number === undefined ? Number.NaN : Number(number) / (percent === '%' ? 100 : 1)
  if (!(share >= 0 && share <= 1)) throw new UsageProblem('--fail must be a share from 0 to 1 or from 0% to 100%, such as 0.3 or 30%.')
  return share
}

function portOf(text: string): number {
  const port = parseCount('port', text, 0)
  if (port > 65_535) throw new UsageProblem('--port must be from 0 to 65535.')
  return port
}

function listenProblem({ code, message }: NodeJS.ErrnoException, call: Call): CommandProblem {
  const where = `${call.flag('host') ?? '127.0.0.1'}, port ${call.flag('port') ?? '9000'}`
  if (code === 'EADDRINUSE')
    return new CommandProblem(
      `Cannot listen on ${where}: the address is already in use. Choose another port with --port; 0 chooses a free one.`,
    )
  return new CommandProblem(`Cannot listen on ${where}: ${message}.`)
}

/** Creates the destination. Returns a function that deletes it, which must also work after Ctrl-C has aborted all other calls. */
async function connect(call: Call, { url }: RunningReceiver, secrets: Secrets): Promise<() => Promise<void>> {
  const names = call.flags('source').length > 0 ? call.flags('source') : ['default']
  const sourceIds = await idsOf(call.api, 'source', names)
  const name = `listen at ${new URL(url).host}, process ${process.pid}`
  const destination = await call.api.post('/api/destinations', { name, sourceIds, urls: [url], ...secrets })
  const id = String(destination['id'])
  call.out.remark(`Created destination ${id} for ${names.join(', ')}. It will be deleted when this command ends.`)
  return async () => {
    const api = createApi({
      url: call.api.url,
      ...controlToken(call.flag('token'), call.env, call.api.url),
      signal: new AbortController().signal,
      deadlineMs: 10_000,
    })
    try {
      await api.delete(at`/api/destinations/${id}`)
      call.out.remark(`Deleted destination ${id}.`)
    } catch (error) {
      call.out.remark(
        `Could not delete destination ${id}: ${(error as Error).message} Delete it with: switchyard destinations delete ${id} --yes`,
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

// ── Output ─────────────────────────────────────────────────────────────────────────────────────────────────────────

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
      return out.paint('green', signature.coverage === 'body' ? '✔ signature valid' : '✔ signature valid (first message only)')
    case 'missing':
      return out.paint('red', '✘ signature missing')
    case 'wrong':
      return out.paint('red', `✘ signature invalid (${signature.code})`)
    case 'unreadable':
      return out.paint('red', `✘ not a webhook (${signature.code})`)
    case 'unchecked':
      return out.paint('dim', signature.carried ? 'signature not checked' : 'not signed')
  }
}

function answerText(out: Output, { status, misbehaviour }: Arrival): string {
  const words = { reset: 'connection reset', hang: 'no response', drip: 'endless response', status: '' }
  if (status === null) return out.paint('red', `→ ${words[misbehaviour ?? 'hang']}`)
  return status < 300 ? `→ ${status}` : out.paint('red', `→ ${status}`)
}

function jsonOf(arrival: Arrival, verbose: boolean): object {
  const { atMs, text: _, method, path, headers, messages, ...shown } = arrival
  const at = new Date(atMs).toISOString()
  return verbose ? { at, ...shown, method, path, headers, messages } : { at, ...shown, messages: messages.map(withoutBody) }
}

function withoutBody(message: ArrivedMessage): object {
  const { body: _, ...shown } = message
  return shown
}

function described({ misbehaviour, status, share }: Failures): string {
  if (misbehaviour === null) return 'and answering 200'
  const what = { status: `HTTP status ${status}`, reset: 'a connection reset', hang: 'no response', drip: 'an endless response' }[
    misbehaviour
  ]
  return share === 1
    ? `and failing all requests with ${what}`
    : `and failing ${Math.round(share * 1_000) / 10}% of the requests with ${what}`
}

function summary(tally: Tally, checked: boolean): string {
  const { requests, messages, duplicates, bad, good, missing, wrong } = tally
  const signatures = checked ? ` Signatures: ${good} valid, ${missing} missing, ${wrong} invalid.` : ''
  return `${counted(requests, 'request')} with ${counted(messages, 'message')}, ${counted(duplicates, 'duplicate')}; ${bad} failed.${signatures}`
}
