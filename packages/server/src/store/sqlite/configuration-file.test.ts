// How a change of the configuration is committed. The conformance suite tests what the changes do.

import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createSecretBox } from '../../secrets/secret-box.ts'
import { CommonConfigurationStore } from '../configuration/common-configuration-store.ts'
import { destinationOf } from '../conformance/fixtures.ts'
import { suppress, unsuppress } from '../deletions/deletions.ts'
import type { NewSource } from '../store.ts'
import { ConfigurationFile } from './configuration-file.ts'
import { tempFolder } from './fixtures/temp-store.ts'
import { GroupCommit } from './threads/group-commit.ts'
import { ReaderClient } from './threads/reader-client.ts'

const SOURCE: NewSource = { name: 'a source', enabled: true, writeKeys: [], requireOAuth: false }

async function openFile(t: TestContext) {
  const folder = tempFolder()
  const path = join(folder, 'test.db')
  const writer = await GroupCommit.start({ path, dedupMs: 1_000 }, () => {})
  const reader = new ReaderClient(path)
  t.after(async () => {
    await reader.close()
    await writer.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const open = (): ConfigurationFile =>
    new ConfigurationFile(
      {
        writer,
        reader,
        nowMs: () => 1,
        consumer: () => null,
        configuration: () => assert.fail('not used'),
        isClosed: () => false,
        run: () => {},
      },
      createSecretBox('a key'),
      () => {},
    )
  const file = open()
  return {
    file,
    configuring: new CommonConfigurationStore(file, () => 1),
    /** The configuration, read from the file. */
    stored: async () => {
      const again = open()
      await again.load()
      return again.configuration
    },
  }
}

test('if one write of a change fails, nothing of the change is written, and the next change succeeds', async (t) => {
  const { file, configuring, stored } = await openFile(t)
  const before = file.configuration
  let told = 0
  file.listen(() => told++)
  const source = { ...SOURCE, id: 'src_1', createdAtMs: 1 }
  const twice = file.change(async (change) => {
    change.create('sources', source)
    change.create('sources', source)
  })
  await assert.rejects(twice, /UNIQUE/)
  assert.equal(file.configuration, before)
  assert.equal(told, 0)
  const { id } = await configuring.createSource(SOURCE)
  assert.equal(told, 1)
  assert.deepEqual([...(await stored()).sources.keys()], [id])
})

test('after a series of changes, the configuration in memory equals the file', async (t) => {
  const { file, configuring, stored } = await openFile(t)
  const [one, other] = [await configuring.createSource(SOURCE), await configuring.createSource(SOURCE)]
  const sourceIds = [one.id, other.id]
  const gone = await configuring.createDestination(destinationOf({ sourceIds }))
  await configuring.createDestination(destinationOf({ sourceIds, sharedSecret: 'a secret', headers: { 'x-key': 'another' } }))
  await configuring.createOAuthApp({ name: 'an app', sourceIds, keys: [], revokedBeforeMs: null })
  const token = await configuring.createToken({
    name: 'a token',
    role: 'viewer',
    sources: 'all',
    expiresAtMs: null,
    owner: null,
    hash: 'a hash',
  })
  await configuring.createToken({
    name: 'another token',
    role: 'admin',
    sources: 'all',
    expiresAtMs: null,
    owner: null,
    hash: 'another hash',
  })
  assert.equal(await file.change((change) => suppress(change, sourceIds, ['a', 'b'], 1)), 4)
  assert.deepEqual(file.configuration, await stored())
  await configuring.updateSource(other.id, { name: 'renamed' })
  await configuring.deleteSource(one.id)
  await configuring.deleteDestination(gone.id)
  await configuring.deleteToken(token.id)
  assert.equal(await file.change((change) => unsuppress(change, 'a', null)), 2)
  assert.equal(await file.change((change) => unsuppress(change, 'b', [other.id])), 1)
  assert.deepEqual(file.configuration, await stored())
  assert.deepEqual([...file.configuration.suppressions.keys()], [one.id])
})

test('a change of many resources copies their map once, and does not modify the previous configuration', async (t) => {
  const { file, configuring, stored } = await openFile(t)
  const { id } = await configuring.createSource(SOURCE)
  for (let nth = 0; nth < 3; nth++) await configuring.createDestination(destinationOf({ sourceIds: [id] }))
  const before = file.configuration
  const [first, second, third] = before.destinations.values()
  assert.ok(first && second && third)
  await file.change(async (change) => {
    change.update('destinations', { ...first, name: 'renamed' })
    const copied = change.next.destinations
    change.update('destinations', { ...second, sourceIds: [] })
    change.delete('destinations', third)
    assert.equal(change.next.destinations, copied)
    assert.equal(change.next.sources, before.sources)
  })
  assert.deepEqual([...before.destinations.values()], [first, second, third])
  assert.deepEqual(
    [...file.configuration.destinations.values()],
    [
      { ...first, name: 'renamed' },
      { ...second, sourceIds: [] },
    ],
  )
  assert.deepEqual(file.configuration, await stored())
})

test('an additional command of a change answers after the commit, when listeners have been called', async (t) => {
  const { file } = await openFile(t)
  const order: string[] = []
  file.listen(() => order.push('told'))
  const { answer } = await file.change(async (change) => {
    change.create('sources', { ...SOURCE, id: 'src_1', createdAtMs: 1 })
    const assertion = { appId: 'app', jti: 'one', keepUntilMs: 10 }
    return { answer: change.call('configuration', 'useAssertion', assertion, 1) }
  })
  order.push(`answered ${await answer}`)
  assert.deepEqual(order, ['told', 'answered true'])
})
