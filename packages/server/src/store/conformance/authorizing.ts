// Conformance: OAuth applications, assertions that are used once, and secrets before and after a change of the key.

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { asWebhook } from '../../destinations/fixtures/webhook.ts'
import { createSecretBox, SecretBoxError } from '../../secrets/secret-box.ts'
import type { NewOAuthApp, OAuthApp, RequestSettings, Store } from '../store.ts'
import { accept, NOW_MS, newDestination, newSource, type StoreFixture, settleAll, tracks } from './fixtures.ts'

const ACTOR = { id: 'tok_1', name: 'somebody' }

export function authorizing({ store, reopen, open }: StoreFixture): void {
  const newApp = (change: Partial<NewOAuthApp> = {}, of: Store = store()): Promise<OAuthApp> =>
    of.resources.createOAuthApp({ name: 'an application', sourceIds: [], keys: [], revokedBeforeMs: null, ...change })

  test('applications are the same after the store is reopened', async () => {
    const { id } = await newSource(store())
    const keys = [
      { id: 'key-1', publicKeyPem: '-----BEGIN\nüß\0', createdAtMs: 5 },
      { id: '__proto__', publicKeyPem: '', createdAtMs: 6 },
    ]
    const [first, second] = [await newApp({ name: 'näme', sourceIds: [id], keys }), await newApp()]
    assert.notEqual(first.id, second.id)
    assert.equal((await store().resources.updateOAuthApp(second.id, { revokedBeforeMs: 7 }))?.revokedBeforeMs, 7)
    const before = store().configuration().oauthApps
    assert.deepEqual(before.get(first.id), { ...first, name: 'näme', sourceIds: [id], keys })
    await reopen()
    assert.deepEqual(store().configuration().oauthApps, before)
    assert.equal(await store().resources.deleteOAuthApp(first.id), true)
    assert.equal(await store().resources.deleteOAuthApp(first.id), false)
    assert.equal(await store().resources.updateOAuthApp(first.id, { name: 'x' }), undefined)
    await reopen()
    assert.equal(store().configuration().oauthApps.has(first.id), false)
    assert.equal(store().configuration().oauthApps.get(second.id)?.revokedBeforeMs, 7)
  })

  test('a deleted source is removed from applications', async () => {
    const [one, other] = [await newSource(store()), await newSource(store())]
    const { id } = await newApp({ sourceIds: [one.id, other.id] })
    await store().resources.deleteSource(one.id)
    assert.deepEqual(store().configuration().oauthApps.get(id)?.sourceIds, [other.id])
    await reopen()
    assert.deepEqual(store().configuration().oauthApps.get(id)?.sourceIds, [other.id])
  })

  test('changes of applications are in the audit log', async () => {
    const audit = (after: OAuthApp | null, before: OAuthApp | null) => ({
      actor: ACTOR,
      action: 'oauth-app.test',
      subject: (after ?? before)?.id ?? null,
      before: before === null ? null : { name: before.name },
      after: after === null ? null : { name: after.name },
    })
    const { history, resources } = store()
    const { id } = await resources.createOAuthApp({ name: 'one', sourceIds: [], keys: [], revokedBeforeMs: null }, audit)
    await resources.updateOAuthApp(id, { name: 'two' }, audit)
    await resources.deleteOAuthApp(id, audit)
    await resources.deleteOAuthApp(id, audit)
    const { data } = await history.audit({ subject: id }, { limit: 10, cursor: null })
    assert.deepEqual(
      data.map(({ before, after }) => [before?.['name'] ?? null, after?.['name'] ?? null]),
      [
        ['two', null],
        ['one', 'two'],
        [null, 'one'],
      ],
    )
  })

  test('an assertion can be used only once, also with concurrent uses and after the store is reopened', async () => {
    const assertion = { appId: 'app_1', jti: randomUUID(), keepUntilMs: NOW_MS + 1_000 }
    const use = (change = {}): Promise<boolean> => store().oauth.useAssertion({ ...assertion, ...change }, NOW_MS)
    const tries = await Promise.all(Array.from({ length: 20 }, () => use()))
    assert.equal(tries.filter(Boolean).length, 1)
    await reopen()
    assert.equal(await use(), false)
    assert.equal(await use({ appId: 'app_2' }), true)
    assert.equal(await use({ jti: `${assertion.jti}.` }), true)
  })

  test('a used assertion is stored until its keepUntilMs has passed', async () => {
    const assertion = { appId: 'app_1', jti: randomUUID(), keepUntilMs: NOW_MS + 1_000 }
    const use = (change: object, nowMs: number): Promise<boolean> => store().oauth.useAssertion({ ...assertion, ...change }, nowMs)
    assert.equal(await use({}, NOW_MS), true)
    await use({ jti: randomUUID() }, assertion.keepUntilMs)
    assert.equal(await use({}, assertion.keepUntilMs), false)
    await use({ jti: randomUUID() }, assertion.keepUntilMs + 1)
    assert.equal(await use({}, NOW_MS), true)
  })

  test('a secret is created once, also with concurrent calls, and cannot be read from the stored bytes', async () => {
    const other = await open({ retentionDays: 7 })
    const asked = await Promise.all(
      ['SECRET-1', 'SECRET-2', 'SECRET-3'].map((fresh) => other.store.secrets.getOrCreate('oauth_signing_key', fresh)),
    )
    assert.deepEqual([new Set(asked).size, asked[0]?.startsWith('SECRET-')], [1, true])
    assert.equal(await other.store.secrets.getOrCreate('session_key', 'SECRET-4 ✓'), 'SECRET-4 ✓')
    const reopened = await other.reopen()
    assert.deepEqual(
      [await reopened.secrets.getOrCreate('oauth_signing_key', 'SECRET-5'), await reopened.secrets.getOrCreate('session_key', '')],
      [asked[0], 'SECRET-4 ✓'],
    )
    assert.ok(!(await other.closeAndRead()).includes('SECRET-'))
    await other.dispose()
  })

  test("a receiver's credentials in headers, URLs, secrets and mappings cannot be read from the stored bytes, before and after a change of the key", async () => {
    const other = await open({ retentionDays: 7 })
    const { id: sourceId } = await newSource(other.store)
    const settings = (name: string) => ({
      urls: [`https://example.com/hook?code=CREDENTIAL-1-${name}&n=1`, `https://example.com/CREDENTIAL-2-${name}`],
      headers: { Authorization: `Bearer CREDENTIAL-3-${name}`, 'X-Long': `CREDENTIAL-4-${name}`.padEnd(4_000, '.') },
      secrets: { token: `CREDENTIAL-5-${name}` },
      request: {
        method: 'POST',
        path: `/CREDENTIAL-7-${name}/send`,
        headers: {},
        body: { routing_key: `CREDENTIAL-6-${name}` },
        format: 'json',
      } satisfies RequestSettings,
    })
    const kept = await newDestination(other.store, sourceId, settings('first'))
    const deleted = await newDestination(other.store, sourceId, settings('deleted'))
    const changed = await newDestination(other.store, sourceId, settings('before'))
    await other.store.resources.updateDestination(changed.id, settings('after'))
    await accept(other.store, sourceId, tracks(2), [kept.id, deleted.id])
    // Attempts of retried and ended deliveries, and the URLs that a retry will still be sent to.
    const [url = ''] = asWebhook(kept).urls
    await settleAll(other.store, kept.id, 'retry', { progress: [url], request: { url } })
    await settleAll(other.store, deleted.id, 'failed', { request: { url: asWebhook(deleted).urls[1] ?? '' } })
    await other.store.resources.deleteDestination(deleted.id)
    const isReadable = async (): Promise<boolean> => (await other.closeAndRead()).includes('CREDENTIAL-')
    assert.equal(await isReadable(), false)

    const reopened = await other.reopen()
    assert.deepEqual(reopened.configuration().destinations.get(kept.id), kept)
    const { headers, urls, secrets, request } = asWebhook(reopened.configuration().destinations.get(changed.id))
    assert.deepEqual({ headers, urls, secrets, request }, settings('after'))
    const [row] = (await reopened.history.deliveries({ destinationId: kept.id }, { limit: 1, cursor: null })).data
    const detail = await reopened.history.delivery(row?.id ?? '')
    assert.equal(detail?.history[0]?.url, 'https://example.com/hook?code=(hidden)&n=(hidden)')
    const { shipments } = await reopened.delivery.claim({
      destinationId: kept.id,
      nowMs: NOW_MS + 10_000,
      maxFresh: 10,
      maxRetries: 10,
      maxBytes: 1e9,
    })
    assert.deepEqual(
      shipments.map(({ shipment }) => shipment.progress),
      [['https://example.com/hook?code=(hidden)&n=(hidden)']],
    )

    await reopened.secrets.rotateKey(createSecretBox('another key'))
    assert.equal(await isReadable(), false)
    assert.deepEqual((await other.reopen('another key')).configuration().destinations.get(kept.id), kept)
    await other.dispose()
  })

  test('after a change of the key, the new key decrypts everything, and nothing is left that was encrypted with the old one', async () => {
    const other = await open({ retentionDays: 7 })
    const { id } = await newSource(other.store)
    const secrets = { sharedSecret: 'shared', signingSecrets: ['signing-1', 'signing-2'] }
    const kept = await newDestination(other.store, id, secrets)
    const plain = await newDestination(other.store, id)
    const deleted = await newDestination(other.store, id, secrets)
    await other.store.resources.deleteDestination(deleted.id)
    await other.store.secrets.getOrCreate('oauth_signing_key', 'the key')
    const before = other.store.configuration()
    const box = createSecretBox('another key')
    assert.equal(await other.store.secrets.rotateKey(box), 6, 'four secrets, and the URL of each destination')
    // Later secrets are encrypted with the new key too.
    await other.store.resources.updateDestination(plain.id, { sharedSecret: 'later' })
    assert.equal(await other.store.secrets.getOrCreate('session_key', 'fresh'), 'fresh')

    const reopened = await other.reopen('another key')
    assert.deepEqual(reopened.configuration().destinations.get(kept.id), before.destinations.get(kept.id))
    assert.equal(asWebhook(reopened.configuration().destinations.get(plain.id)).sharedSecret, 'later')
    assert.equal(await reopened.secrets.getOrCreate('oauth_signing_key', ''), 'the key')
    const bytes = await other.closeAndRead()
    assert.ok(bytes.includes(`v1.${box.keyId}.`))
    assert.ok(!bytes.includes(`v1.${createSecretBox('a key for these tests').keyId}.`))
    await assert.rejects(other.reopen(), SecretBoxError)
    await other.dispose()
  })

  test('a key can be changed before anything was encrypted with it, and the change is in the audit log', async () => {
    const other = await open({ retentionDays: 7 })
    const entry = { actor: ACTOR, action: 'key.rotate', subject: 'store', before: null }
    assert.equal(await other.store.secrets.rotateKey(createSecretBox('another key'), (after) => ({ ...entry, after })), 0)
    const { data } = await other.store.history.audit({}, { limit: 2, cursor: null })
    assert.deepEqual(
      data.map(({ actor, action, after }) => ({ actor, action, after })),
      [{ actor: { ...ACTOR, type: 'token', owner: null }, action: 'key.rotate', after: { secrets: 0 } }],
    )
    await other.store.secrets.getOrCreate('oauth_signing_key', 'the key')
    const reopened = await other.reopen('another key')
    assert.equal(await reopened.secrets.getOrCreate('oauth_signing_key', ''), 'the key')
    await other.dispose()
  })

  test('a secret that is removed with a change of the key is created again by the next call', async () => {
    const other = await open({ retentionDays: 7 })
    for (const name of ['oauth_signing_key', 'pseudonym_key'] as const) await other.store.secrets.getOrCreate(name, `SECRET of ${name}`)
    assert.equal(await other.store.secrets.rotateKey(createSecretBox('another key'), undefined, ['oauth_signing_key', 'session_key']), 1)
    assert.equal(await other.store.secrets.getOrCreate('oauth_signing_key', 'fresh'), 'fresh')
    const reopened = await other.reopen('another key')
    assert.deepEqual(
      [await reopened.secrets.getOrCreate('oauth_signing_key', ''), await reopened.secrets.getOrCreate('pseudonym_key', '')],
      ['fresh', 'SECRET of pseudonym_key'],
    )
    await other.dispose()
  })

  test('a wrong key is detected when the store is opened, even if there is only one secret', async () => {
    const other = await open({ retentionDays: 7 })
    await other.store.secrets.getOrCreate('oauth_signing_key', 'the key')
    await assert.rejects(other.reopen('a wrong key'), { name: 'SecretBoxError', reason: 'wrong_key' })
    assert.equal(await (await other.reopen()).secrets.getOrCreate('oauth_signing_key', ''), 'the key')
    await other.dispose()
  })
}
