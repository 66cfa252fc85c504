// An identity provider with https: with a certificate of a private authority, with one that has expired, with one of an unknown authority and for
// another host. The login page and `doctor` say what is wrong, the admin token works, and a renewed certificate works without a restart.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Browser, CLIENT } from '../../../packages/server/src/control/people/fixtures/identity-provider.ts'
import { type Script, startScriptedProvider } from '../../../packages/server/src/control/people/fixtures/scripted-provider.ts'
import { type Certificate, createCertificate } from '../../../packages/server/src/delivery/fixtures/certificates.ts'
import { folderFor, switchyardWith } from '../../system/command-line.ts'
import type { Service } from '../../system/service.ts'
import { newAddress, startServiceAt } from './service.ts'

const authority = createCertificate({ commonName: 'Company', isAuthority: true })
const request = { commonName: 'id.example.com', hosts: ['127.0.0.1'], issuer: authority }
const VALID = createCertificate(request)
const EXPIRED = createCertificate({ ...request, notAfter: '20240101000000Z' })

async function start(t: TestContext, env: Record<string, string>): Promise<{ idp: Script; service: Service }> {
  const idp = await startScriptedProvider(t, VALID)
  const service = await startServiceAt(await newAddress(), {
    issuer: idp.issuer,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    roles: [{ claim: 'groups', value: 'data-eng', role: 'viewer', sources: 'all' }],
    env,
  })
  return { idp, service }
}

async function startLogin({ url }: Service): Promise<string> {
  return (await new Browser().get(`${url}/api/login/oidc?returnTo=/live`)).headers.get('location') ?? ''
}

async function assertSaid(service: Service, reason: string, message: RegExp, advice: RegExp): Promise<void> {
  const doctor = await switchyardWith({}, service, 'doctor')
  assert.notEqual(doctor.code, 0)
  assert.match(doctor.stdout, message)
  assert.match(doctor.stdout, advice)
  assert.equal(await startLogin(service), `/?login=${reason}&returnTo=%2Flive`)
  const methods = (await (await fetch(`${service.url}/api/login/methods`)).json()) as {
    oidc: { problem: { reason: string; message: string; advice: string } }
  }
  assert.equal(methods.oidc.problem.reason, reason)
  assert.match(methods.oidc.problem.message, message)
  assert.match(methods.oidc.problem.advice, advice)
  assert.equal((await service.api<{ role: string }>('/session')).role, 'admin', 'the admin token works')
}

test('an expired certificate is named by the login page and by doctor, and its renewal is noticed', async (t) => {
  const file = join(folderFor(t), 'company.pem')
  writeFileSync(file, authority.cert)
  const { idp, service } = await start(t, { NODE_EXTRA_CA_CERTS: file })
  await using _ = service
  const works = async (): Promise<void> => {
    assert.ok((await startLogin(service)).startsWith(`${idp.issuer}/authorize?`), 'NODE_EXTRA_CA_CERTS counts')
    const doctor = await switchyardWith({}, service, 'doctor', '--json')
    const { checks } = JSON.parse(doctor.stdout) as { checks: { name: string; state: string; message: string }[] }
    const check = checks.find(({ name }) => name === 'single_sign_on')
    assert.equal(check?.state, 'good', check?.message)
  }
  await works()
  const present = async (certificate: Certificate, ...said: [reason: string, message: RegExp, advice: RegExp]): Promise<void> => {
    idp.present(certificate)
    await assertSaid(service, ...said)
  }
  // A login that is in progress: the service knows the addresses of the provider, and asks for the tokens.
  const browser = new Browser()
  const begun = (await browser.get(`${service.url}/api/login/oidc`)).headers.get('location') ?? ''
  const query = new URLSearchParams({ state: new URL(begun).searchParams.get('state') ?? '', code: 'code-1', iss: idp.issuer })
  idp.present(EXPIRED)
  const callback = await browser.get(`${service.url}/api/login/oidc/callback?${query.toString()}`)
  assert.equal(callback.headers.get('location'), '/?login=certificate_expired')
  await present(EXPIRED, 'certificate_expired', /certificate of the identity provider has expired/, /Renew the certificate/)
  idp.present(VALID)
  await works()
  const elsewhere = createCertificate({ ...request, hosts: ['id.example.com'] })
  await present(elsewhere, 'certificate_invalid', /is not trusted/, /NODE_EXTRA_CA_CERTS/)
  const future = createCertificate({ ...request, notBefore: '20900101000000Z' })
  await present(future, 'certificate_invalid', /is not trusted/, /NODE_EXTRA_CA_CERTS/)
  await service.stop()
})

test('without NODE_EXTRA_CA_CERTS, a private authority is not trusted, and the sentence says what to set', async (t) => {
  const { service } = await start(t, {})
  await using _ = service
  await assertSaid(service, 'certificate_invalid', /is not trusted/, /NODE_EXTRA_CA_CERTS/)
  await service.stop()
})
