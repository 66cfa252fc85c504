// `switchyard login`, `whoami` and `logout`: a personal token for the command line, which the user confirms in the browser. The browser brings a code to a port of
// this machine (RFC 8252), which is worth nothing without the secret that stays in this process (PKCE). The token itself never passes through the browser.

import { createHash, randomBytes } from 'node:crypto'
import { hostname, userInfo } from 'node:os'
import type { JsonObject } from '@switchyard/protocol'
import { counted } from '../../api/counted.ts'
import { isLoopback } from '../../config.ts'
import { type Call, type Command, CommandProblem, EXIT, UsageProblem } from '../line/command.ts'
import { controlToken, serviceUrl } from '../line/global-flags.ts'
import { showFacts, showResult, time } from '../line/listing.ts'
import { namesOf } from '../line/references.ts'
import { type Api, ApiProblem, createApi } from '../service/api.ts'
import { credentialsPath, keepToken, keptToken } from '../service/kept-tokens.ts'
import { browserProgram, openBrowser } from './open-browser.ts'

const WAIT_MINUTES = 10

const HOST_FLAG = {
  placeholder: 'ADDRESS',
  description: 'The address of the service: a URL, or a host name, which is called with https. The same as --url.',
  defaultText: 'as for --url',
} as const

export const login: Command = {
  name: 'login',
  summary: 'Log in with the browser, and keep a personal token for the other commands',
  details: `Opens a page of the service in the browser, where you log in and confirm. The command then receives a token that belongs to you, with your role and sources. It is kept in your configuration folder, readable by you only, and used by every command that calls the same address without --token and SWITCHYARD_TOKEN. Programs such as CI jobs use a token of their own in SWITCHYARD_TOKEN instead.`,
  flags: {
    host: HOST_FLAG,
    port: { placeholder: 'PORT', description: 'The port of 127.0.0.1 to which the browser returns.', defaultText: 'any free port' },
    'no-browser': { placeholder: null, description: 'Only print the address, and open no browser.' },
  },
  examples: ['switchyard login', 'switchyard login --host https://analytics.example.com'],
  async run(call) {
    const url = addressOf(call)
    const api = apiFor(call, url, null)
    await checkService(api)
    const { startCodeReceiver } = await import('./code-receiver.ts')
    const { verifier, challenge, state } = secrets()
    await using receiver = await startCodeReceiver(state, portOf(call)).catch((error: Error) => {
      throw new CommandProblem(`Cannot listen on 127.0.0.1 for the answer of the browser: ${error.message}.`)
    })
    const query = new URLSearchParams({ port: String(receiver.port), state, challenge, name: machineName() })
    const page = `${url}/api/login/cli?${query.toString()}`
    askInBrowser(call, page, receiver.port)
    const { code, answer } = await receiver
      .received(AbortSignal.any([call.signal, AbortSignal.timeout(WAIT_MINUTES * 60_000)]))
      .catch((error) => {
        if (call.signal.aborted) throw error
        throw new CommandProblem(`Nobody confirmed the login within ${WAIT_MINUTES} minutes. Run \`switchyard login\` again.`)
      })
    try {
      if (code === null) throw new CommandProblem('The login was cancelled in the browser.')
      const created = await api.post('/api/login/cli/token', { code, verifier })
      const token = { id: String(created['id']), token: String(created['token']) }
      await revokeQuietly(call, url)
      keepToken(call.env, url, token)
      const session = await apiFor(call, url, token.token).get('/api/session')
      answer({ title: 'Logged in', text: 'The Switchyard command line is logged in. You can close this window.' })
      const { token: _secret, ...shown } = created
      showResult(call, { url, path: credentialsPath(call.env), session, token: shown }, () => {
        call.out.line(`Logged in to ${url} as ${personOf(session)}.`)
        call.out.remark(
          `The token is kept in ${credentialsPath(call.env)}${typeof created['expiresAt'] === 'string' ? ` and works until ${time(created['expiresAt'])}` : ''}. \`switchyard logout\` revokes it.`,
        )
      })
    } catch (error) {
      answer({ title: 'Not logged in', text: 'The terminal shows what went wrong. You can close this window.' })
      throw error
    }
  },
}

export const whoami: Command = {
  name: 'whoami',
  summary: 'Show who you are for the service, and which token the commands use',
  flags: { host: HOST_FLAG },
  examples: ['switchyard whoami', 'switchyard whoami --json | jq -r .role'],
  async run(call) {
    const url = addressOf(call)
    const given = controlToken(call.flag('token'), call.env, url)
    const api = createApi({ url, ...given, signal: call.signal })
    const session = await api.get('/api/session')
    const names = Array.isArray(session['sources']) ? await namesOf(api, 'source') : undefined
    showResult(call, session, () => {
      const sources = session['sources']
      showFacts(call.out, [
        ['service', url],
        ['logged in as', personOf(session)],
        ['role', session['role']],
        ['sources', Array.isArray(sources) ? sources.map((id) => names?.get(id) ?? String(id)).join(', ') || 'none' : sources],
        [
          'token from',
          given.tokenFrom === 'switchyard login' ? `\`switchyard login\`, kept in ${credentialsPath(call.env)}` : given.tokenFrom,
        ],
      ])
    })
  },
}

export const logout: Command = {
  name: 'logout',
  summary: 'Revoke the token of `switchyard login`, and remove it from this machine',
  flags: {
    host: HOST_FLAG,
    local: { placeholder: null, description: 'Only remove the token from this machine, for example if the service no longer exists.' },
  },
  examples: ['switchyard logout', 'switchyard logout --host https://analytics.example.com'],
  async run(call) {
    const url = addressOf(call)
    const kept = keptToken(call.env, url)
    if (kept === undefined) return showResult(call, { url, revoked: false }, `You are not logged in to ${url}.`)
    const isRevoked = !call.has('local') && (await revoke(call, url, kept))
    keepToken(call.env, url, null)
    showResult(
      call,
      { url, revoked: isRevoked },
      isRevoked
        ? `Logged out of ${url}. The token is revoked.`
        : call.has('local')
          ? `Removed the token for ${url} from this machine. It is not revoked: do that in the dashboard, under Settings → Tokens.`
          : `Logged out of ${url}. The token had expired or was revoked already.`,
    )
  },
}

export const LOGIN_COMMANDS: readonly Command[] = [login, whoami, logout]

function apiFor({ signal }: Call, url: string, token: string | null): Api {
  return createApi({ url, token, signal })
}

function addressOf({ flag, env }: Call): string {
  const host = flag('host')
  if (host === undefined) return serviceUrl(flag('url'), env)
  if (flag('url') !== undefined) throw new UsageProblem('--host and --url mean the same. Use one of them.')
  if (/^https?:\/\//i.test(host)) return serviceUrl(host, env)
  const https = `https://${host}`
  if (!URL.canParse(https)) throw new UsageProblem('--host must be a URL or a host name, such as analytics.example.com.')
  const { hostname: name } = new URL(https)
  return serviceUrl(isLoopback(name.replace(/^\[|\]$/g, '')) ? `http://${host}` : https, env)
}

function portOf({ flag }: Call): number {
  const port = flag('port')
  if (port === undefined) return 0
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    throw new UsageProblem('--port must be a number from 1 to 65535.')
  return Number(port)
}

/** Before the browser is opened, because the terminal can say more than the browser would. */
async function checkService(api: Api): Promise<void> {
  const instead = 'Use a token of Settings → Tokens in SWITCHYARD_TOKEN instead.'
  try {
    const { oidc } = await api.get('/api/login/methods')
    if (oidc == null)
      throw new CommandProblem(`The service at ${api.url} has no single sign-on, which \`switchyard login\` needs. ${instead}`)
    const { problem } = oidc as { problem?: { message: string; advice: string } }
    if (problem !== undefined) throw new CommandProblem(`Nobody can log in at the moment. ${problem.message} ${problem.advice}`)
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'not_found')
      throw new CommandProblem(`The service at ${api.url} is too old for \`switchyard login\`. ${instead}`, EXIT.failed, { cause: error })
    throw error
  }
}

function secrets(): { verifier: string; challenge: string; state: string } {
  const verifier = randomBytes(32).toString('base64url')
  return {
    verifier,
    challenge: createHash('sha256').update(verifier).digest('base64url'),
    state: randomBytes(32).toString('base64url'),
  }
}

/** What the confirmation in the browser and the list of tokens show. */
function machineName(): string {
  let user = ''
  try {
    user = `${userInfo().username}@`
  } catch {
    // A user id without an entry in the list of users, as in some containers.
  }
  return `${user}${hostname()}`.replace(/[^\x21-\x7e]/g, '').slice(0, 80) || 'a machine without a name'
}

function askInBrowser(call: Call, page: string, port: number): void {
  const { env, out } = call
  out.remark('Log in with this address in your browser:')
  out.remark(`  ${page}`)
  if (call.has('no-browser')) return
  const remote = `The browser must run on this machine, or port ${port} must be forwarded to it (ssh -L ${port}:127.0.0.1:${port} …). Without a browser, create a token in the dashboard under Settings → Tokens, and set SWITCHYARD_TOKEN to it.`
  if (browserProgram(env) === null) return out.remark(`This machine has no browser to open. ${remote}`)
  openBrowser(page, env, () => out.remark(`The browser could not be opened. Open the address yourself. ${remote}`))
}

/** Whether the service has revoked it now; false if it did not accept the token any more. */
async function revoke(call: Call, url: string, { id, token }: { id: string; token: string }): Promise<boolean> {
  try {
    await apiFor(call, url, token).delete(`/api/tokens/${encodeURIComponent(id)}`)
    return true
  } catch (error) {
    if (error instanceof ApiProblem && (error.status === 401 || error.code === 'token_not_found')) return false
    if (error instanceof CommandProblem)
      throw new CommandProblem(
        `${error.message}\nThe token is not revoked, and still on this machine. Run the command again, or use --local to remove it from this machine only.`,
        error.exit,
        { cause: error },
      )
    throw error
  }
}

/** The token of an earlier login would stay valid without anybody using it. */
async function revokeQuietly(call: Call, url: string): Promise<void> {
  const earlier = keptToken(call.env, url)
  if (earlier === undefined) return
  await revoke(call, url, earlier).catch(() =>
    call.out.remark('The token of the earlier login could not be revoked. Revoke it in the dashboard, under Settings → Tokens.'),
  )
}

/** A token has the name of a machine. Its owner is who logged in. */
function personOf({ actor, role, sources }: JsonObject): string {
  const { name, email, owner } = (actor ?? {}) as {
    name?: string
    email?: string | null
    owner?: { subject: string; email: string | null } | null
  }
  const who = owner != null ? (owner.email ?? owner.subject) : email != null && email !== name ? `${name} (${email})` : `${name}`
  return `${who}, ${String(role)}${Array.isArray(sources) ? ` of ${counted(sources.length, 'source')}` : ''}`
}
