// The settings of single sign-on in a whole service: a provider that is away does not prevent the start, unreadable settings do, and without
// single sign-on its library is not loaded.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { runService, startService } from '../system/service.ts'

/** Nothing listens on this port of loopback. */
const SETTINGS = {
  SWITCHYARD_PUBLIC_URL: 'http://127.0.0.1:9',
  SWITCHYARD_OIDC_ISSUER: 'http://127.0.0.1:1',
  SWITCHYARD_OIDC_CLIENT_ID: 'switchyard',
  SWITCHYARD_OIDC_ROLES: '- { claim: groups, value: data-eng, role: editor, sources: all }',
  SWITCHYARD_OIDC_NAME: 'Company login',
}
/** Prints the modules that are loaded. */
const REPORT = `data:text/javascript,${encodeURIComponent(
  "import { registerHooks } from 'node:module'; registerHooks({ load(url, context, next) { if (/openid-client|oauth4webapi/.test(url)) process.stderr.write('LOADED ' + url + '\\n'); return next(url, context) } })",
)}`

test('a provider that is away does not prevent the start, the login page says so, and the admin token works', async () => {
  await using service = await startService({
    env: { ...SETTINGS, SWITCHYARD_OIDC_CLIENT_SECRET: 'a client secret' },
    execArgv: ['--import', REPORT],
  })
  const start = await fetch(`${service.url}/api/login/oidc?returnTo=/sources`, { redirect: 'manual' })
  assert.deepEqual([start.status, start.headers.get('location')], [303, '/?login=unreachable&returnTo=%2Fsources'])
  const methods = (await (await fetch(`${service.url}/api/login/methods`)).json()) as {
    oidc: { name: string; problem: { reason: string } }
  }
  assert.deepEqual([methods.oidc.name, methods.oidc.problem.reason], ['Company login', 'unreachable'])
  const { checks } = await service.api<{ checks: { name: string; state: string }[] }>('/diagnostics')
  assert.equal(checks.find(({ name }) => name === 'single_sign_on')?.state, 'bad')
  await service.stop()
  assert.match((await service.ended).stderr, /LOADED .*openid-client/)
})

test('without single sign-on, its library is not loaded', async () => {
  await using service = await startService({ execArgv: ['--import', REPORT] })
  assert.deepEqual(await (await fetch(`${service.url}/api/login/methods`)).json(), { token: true, oidc: null })
  await service.stop()
  assert.doesNotMatch((await service.ended).stderr, /LOADED/)
})

test('a client secret that cannot be read, and half of the settings, refuse the start with a sentence', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const [env, expected] of [
    [{ ...SETTINGS, SWITCHYARD_OIDC_CLIENT_SECRET_FILE: '/nothing/here' }, /SWITCHYARD_OIDC_CLIENT_SECRET_FILE cannot be read/],
    [SETTINGS, /SWITCHYARD_OIDC_CLIENT_SECRET or SWITCHYARD_OIDC_CLIENT_SECRET_FILE must be set/],
  ] as const) {
    const { code, stderr } = await runService({
      env: { SWITCHYARD_PORT: '0', SWITCHYARD_STORE: `sqlite:${join(folder, 'x.db')}`, ...env },
    }).ended
    assert.notEqual(code, 0)
    assert.match(stderr, expected)
  }
})
