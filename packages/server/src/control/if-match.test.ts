import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { test } from 'node:test'
import { entityTag } from '../api/entity-tag.ts'
import { startControl } from './fixtures/start-control.ts'

const publicKeyPem = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()

const KINDS: [path: string, made: object, change: object][] = [
  ['/api/sources', { name: 'one' }, { enabled: false }],
  ['/api/destinations', { name: 'one', urls: ['https://example.com/'], headers: { 'X-Own': 'v' } }, { headers: {} }],
  ['/api/plans', { name: 'one', rules: [{ type: 'page', schema: { type: 'object' } }] }, { rules: [] }],
  ['/api/oauth-apps', { name: 'one', keys: [{ id: 'k', publicKeyPem }] }, { keys: [] }],
]

for (const [list, made, change] of KINDS) {
  test(`${list}: with If-Match, a resource is changed or deleted only if it is as it was read`, async (t) => {
    const { call } = await startControl(t)
    const created = await call('POST', list, made)
    const path = `${list}/${created.body.id}`
    const read = await call('GET', path)
    const tag = read.headers.get('etag') ?? ''
    assert.deepEqual([created.headers.get('etag'), tag], [entityTag(read.body), entityTag(read.body)])
    const listed = await call('GET', `${list}?limit=1000`)
    assert.ok(
      listed.body.data.some((entry: object) => entityTag(entry) === tag),
      'an entry of a list has the same tag',
    )

    const match = (given: string) => ({ headers: { 'if-match': given } })
    const changed = await call('PATCH', path, change, match(tag))
    assert.equal(changed.status, 200)
    const now = changed.headers.get('etag') ?? ''
    assert.notEqual(now, tag)
    for (const method of ['PATCH', 'DELETE']) {
      const late = await call(method, path, method === 'PATCH' ? { name: 'late' } : undefined, match(tag))
      assert.deepEqual([late.status, late.body.code], [412, 'changed_since_read'])
    }
    assert.deepEqual((await call('GET', path)).body, changed.body)
    // Proxies that compress responses make the tag weak; * matches any tag.
    assert.equal((await call('PATCH', path, { name: 'named' }, match(`"x", W/${now}`))).status, 200)
    assert.equal((await call('DELETE', path, undefined, match('*'))).status, 204)
    assert.equal((await call('DELETE', path, undefined, match('*'))).status, 404)
  })

  test(`${list}: a name that is already in use is rejected if it must be unique`, async (t) => {
    const { call } = await startControl(t)
    assert.equal((await call('POST', `${list}?uniqueName=true`, made)).status, 201)
    const refused = await call('POST', `${list}?uniqueName=true`, made)
    assert.deepEqual([refused.status, refused.body.code, refused.body.field], [409, 'name_taken', 'name'])
    assert.equal((await call('POST', list, made)).status, 201)
    assert.equal((await call('POST', `${list}?uniqueName=perhaps`, made)).status, 400)
  })
}
