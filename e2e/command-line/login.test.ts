// `switchyard login`, `whoami` and `logout` against a service with single sign-on: a browser (which follows redirects) agrees, the token is kept for one
// address, and every other outcome says what to do.

import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import {
  Browser,
  CLIENT,
  type IdentityProvider,
  startIdentityProvider,
} from '../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { type Address, newAddress, startServiceAt } from '../control/single-sign-on/service.ts'
import { folderFor, type Result, type RunningCommand, startSwitchyard, switchyardWith } from '../system/command-line.ts'
import { type Service, startService } from '../system/service.ts'
import { eventually } from '../system/signals.ts'

let address: Address
let provider: IdentityProvider
let service: Service
const stack = new AsyncDisposableStack()

before(async () => {
  address = await newAddress()
  provider = await startIdentityProvider(
    {
      after: (end) =>
        stack.defer(async () => {
          await (end as () => unknown)()
        }),
    },
    address,
  )
  service = stack.use(
    await startServiceAt(address, {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      roles: [{ claim: 'groups', value: 'data-eng', role: 'editor', sources: ['default'] }],
    }),
  )
})
after(() => stack.disposeAsync())

type Env = Record<string, string>

function environmentOf(t: TestContext, more: Env = {}): Env {
  return { XDG_CONFIG_HOME: folderFor(t), SWITCHYARD_URL: address.url, SWITCHYARD_TOKEN: '', ...more }
}

const run = (env: Env, ...args: string[]): Promise<Result> => switchyardWith(env, null, ...args)
const fileOf = (env: Env): string => join(env['XDG_CONFIG_HOME'] as string, 'switchyard', 'credentials.json')

/** The address that the command prints for the browser. */
async function pageOf(command: RunningCommand): Promise<string> {
  const page = await eventually(
    async () => /http:\S+\/api\/login\/cli\?\S+/.exec(command.stderr())?.[0],
    (found) => found !== undefined,
    { what: 'the address', state: command.stderr },
  )
  return page as string
}

/** Logs in at the provider and gives access. Returns what the command answers the browser. */
async function agree(page: string): Promise<{ status: number; text: string }> {
  const browser = new Browser()
  let response = await browser.get(`${address.url}/api/login/oidc`)
  while (response.status === 303 || response.status === 302) {
    const to = new URL(response.headers.get('location') ?? '', response.url).href
    if (to === `${address.url}/`) break
    response = await browser.get(to)
  }
  const consent = await (await browser.get(page)).text()
  assert.match(consent, /Give the command line access\?/)
  const fields = [...consent.matchAll(/name="(\w+)" value="([^"]*)"/g)].map(([, name = '', value = '']): [string, string] => [
    name,
    unescaped(value),
  ])
  const given = await browser.send(`${address.url}/api/login/cli`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: address.url, 'sec-fetch-site': 'same-origin' },
    body: new URLSearchParams(fields),
  })
  assert.equal(given.status, 303, await given.text())
  const answer = await fetch(given.headers.get('location') ?? '')
  return { status: answer.status, text: await answer.text() }
}

const unescaped = (text: string): string => text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))

async function logIn(env: Env): Promise<Result> {
  await using command = startSwitchyard(null, ['login', '--no-browser'], { env })
  const { text } = await agree(await pageOf(command))
  const result = await command.ended
  assert.match(text, result.code === 0 ? /<h1>Logged in/ : /<h1>Not logged in/)
  return result
}

suite('switchyard login', { concurrency: 1 }, () => {
  test('keeps a token of the person, which other commands use, until logout revokes it', async (t) => {
    const env = environmentOf(t)
    const { code, stdout, stderr } = await logIn(env)
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Logged in to http:\S+ as ada@example\.com, editor of 1 source\.$/m)
    assert.equal(statSync(fileOf(env)).mode & 0o777, 0o600)

    const who = await run(env, 'whoami')
    assert.match(who.stdout, /ada@example\.com/)
    assert.match(who.stdout, /editor/)
    assert.match(who.stdout, /default/)
    assert.ok(who.stdout.includes(fileOf(env)))
    assert.match((await run(env, 'sources')).stdout, /default/)
    const { token } = Object.values(
      (JSON.parse(readFileSync(fileOf(env), 'utf8')) as { tokens: Record<string, { token: string }> }).tokens,
    )[0] as { token: string }

    const out = await run(env, 'logout')
    assert.equal(out.code, 0, out.stderr)
    assert.match(out.stdout, /The token is revoked\./)
    assert.equal(existsSync(fileOf(env)), false)
    assert.equal((await fetch(`${address.url}/api/session`, { headers: { authorization: `Bearer ${token}` } })).status, 401)
    assert.match((await run(env, 'sources')).stderr, /Run `.*switchyard login`/)
    assert.match((await run(env, 'logout')).stdout, /You are not logged in to/)
  })

  test('a second login revokes the token of the first', async (t) => {
    const env = environmentOf(t)
    await logIn(env)
    const first = readFileSync(fileOf(env), 'utf8')
    await logIn(env)
    assert.notEqual(readFileSync(fileOf(env), 'utf8'), first)
    const { data } = await service.api<{ data: { owner: object | null }[] }>('/tokens')
    assert.equal(data.filter(({ owner }) => owner !== null).length, 1)
    await run(env, 'logout')
  })

  test('the token is used for the same address only, and --token and SWITCHYARD_TOKEN take precedence', async (t) => {
    const env = environmentOf(t)
    await logIn(env)
    assert.match((await run({ ...env, SWITCHYARD_TOKEN: service.token }, 'whoami')).stdout, /admin/)
    assert.match((await run(env, 'whoami', '--token', service.token)).stdout, /admin/)
    assert.match((await run({ ...env, SWITCHYARD_ADMIN_TOKEN: service.token }, 'whoami')).stdout, /ada@example\.com/)
    // The same service under another name gets no token.
    const elsewhere = await run(env, 'whoami', '--url', address.url.replace('127.0.0.1', 'localhost'))
    assert.equal(elsewhere.code, 3)
    assert.match(elsewhere.stderr, /requires a control token/)
    // Another address has its own.
    const kept = readFileSync(fileOf(env), 'utf8')
    assert.match((await run(env, 'logout', '--host', 'localhost:1')).stdout, /You are not logged in to http:\/\/localhost:1/)
    assert.equal(readFileSync(fileOf(env), 'utf8'), kept)
    await run(env, 'logout')
  })

  test('a token that was revoked elsewhere leads to a new login, and logout removes it', async (t) => {
    const env = environmentOf(t)
    await logIn(env)
    const { data } = await service.api<{ data: { id: string; owner: object | null }[] }>('/tokens')
    for (const { id, owner } of data) if (owner !== null) await service.api(`/tokens/${id}`, { method: 'DELETE' })
    const { code, stderr } = await run(env, 'sources')
    assert.equal(code, 3)
    assert.match(stderr, /no longer accepts the token of `.*switchyard login`.*again\./)
    assert.match((await run(env, 'logout')).stdout, /had expired or was revoked already/)
    assert.equal(existsSync(fileOf(env)), false)
  })

  test('if the service cannot be reached, logout keeps the token unless --local is given', async (t) => {
    const env = environmentOf(t)
    await logIn(env)
    const moved = readFileSync(fileOf(env), 'utf8').replaceAll(address.url, 'http://127.0.0.1:1')
    writeFileSync(fileOf(env), moved)
    const out = await run(env, 'logout', '--host', 'http://127.0.0.1:1')
    assert.equal(out.code, 3)
    assert.match(out.stderr, /The token is not revoked, and still on this machine/)
    assert.equal(readFileSync(fileOf(env), 'utf8'), moved)
    assert.match((await run(env, 'logout', '--host', 'http://127.0.0.1:1', '--local')).stdout, /It is not revoked/)
    assert.equal(existsSync(fileOf(env)), false)
  })

  test('a machine without a browser is told what to do, and Ctrl-C ends the wait', async (t) => {
    const env = environmentOf(t, { BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' })
    await using command = startSwitchyard(null, ['login'], { env })
    await pageOf(command)
    if (process.platform === 'linux')
      await eventually(
        async () => command.stderr(),
        (text) => /This machine has no browser to open\..*ssh -L \d+:127\.0\.0\.1:\d+.*SWITCHYARD_TOKEN/.test(text),
      )
    command.kill('SIGINT')
    assert.equal((await command.ended).code, 130)
  })

  test('a browser program that fails is reported, with the address to open by hand', async (t) => {
    const env = environmentOf(t, { BROWSER: join(folderFor(t), 'not-there') })
    await using command = startSwitchyard(null, ['login'], { env })
    await eventually(
      async () => command.stderr(),
      (text) => /The browser could not be opened\. Open the address yourself\./.test(text),
    )
    await agree(await pageOf(command))
    assert.equal((await command.ended).code, 0)
    await run(env, 'logout')
  })

  test('a service without single sign-on, another server and a wrong address are told apart', async (t) => {
    await using plain = await startService()
    const env = environmentOf(t)
    const without = await run({ ...env, SWITCHYARD_URL: plain.url }, 'login')
    assert.match(without.stderr, /has no single sign-on, which `.*switchyard login` needs\. Use a token/)
    assert.notEqual(without.code, 0)
    assert.match((await run(env, 'login', '--host', provider.issuer)).stderr, /not from a Switchyard service/)
    assert.equal((await run(env, 'login', '--host', 'http://127.0.0.1:1')).code, 3)
    assert.match((await run(env, 'login', '--host', address.url, '--url', address.url)).stderr, /mean the same/)
    assert.match((await run(env, 'login', '--port', '0')).stderr, /--port must be a number from 1 to 65535/)
  })

  test('if the provider does not respond, the command says so instead of opening the browser', async (t) => {
    const own = await newAddress()
    await using away = await startServiceAt(own, {
      issuer: 'http://127.0.0.1:1/realms/away',
      clientId: CLIENT.id,
      clientSecret: CLIENT.secret,
      roles: [{ claim: 'groups', value: 'data-eng', role: 'viewer', sources: 'all' }],
    })
    assert.equal((await new Browser().get(`${away.url}/api/login/oidc`)).headers.get('location'), '/?login=unreachable')
    const { code, stderr } = await run(environmentOf(t), 'login', '--host', away.url)
    assert.equal(code, 1)
    assert.match(stderr, /Nobody can log in at the moment\. The identity provider does not respond\./)
  })
})
