import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { asIntegration, integrationOf } from '../../destinations/fixtures/integration.ts'
import { newStoreLocation } from '../../store/fixtures/test-store.ts'
import type { Store } from '../../store/store.ts'
import type { NewRefreshToken } from './hosts.ts'
import { TokenKeeper } from './token-keeper.ts'

const OAUTH = { clientId: 'client', clientSecret: 'secret', refreshToken: 'r0' }

function renewed(from: number, to: number): NewRefreshToken {
  return { usedRefreshToken: `r${from}`, refreshToken: `r${to}`, accessToken: `a${to}` }
}

async function setUp(t: TestContext): Promise<{ store: Store; id: string; stored: () => unknown; entries: () => Promise<number> }> {
  const place = await newStoreLocation()
  const store = await place.open()
  t.after(async () => {
    await store.close()
    await place.remove()
  })
  const { id: _, createdAtMs: __, ...settings } = integrationOf({ settings: { region: 'eu', oauth: OAUTH } })
  const { id } = await store.resources.createDestination(settings)
  return {
    store,
    id,
    stored: () => asIntegration(store.configuration().destinations.get(id)).settings,
    entries: async () => (await store.history.audit({}, { limit: 100, cursor: null })).data.length,
  }
}

test('new tokens are stored, and many in a short time as one change', async (t) => {
  const { store, id, stored, entries } = await setUp(t)
  const keeper = new TokenKeeper({ store, onError: assert.ifError })
  for (let nth = 0; nth < 100; nth++) keeper.keep(id, renewed(nth, nth + 1))
  await keeper.close()
  assert.deepEqual(stored(), { region: 'eu', oauth: { ...OAUTH, refreshToken: 'r100', accessToken: 'a100' } })
  assert.ok((await entries()) <= 2)
})

test('a refresh token that somebody else has stored stays, and a destination that was deleted is no error', async (t) => {
  const { store, id, stored, entries } = await setUp(t)
  await store.resources.updateDestination(id, { settings: { oauth: { ...OAUTH, refreshToken: 'by an operator' } } })
  const keeper = new TokenKeeper({ store, onError: assert.ifError })
  keeper.keep(id, renewed(0, 1))
  keeper.keep('dst_unknown', renewed(0, 1))
  await keeper.close()
  assert.deepEqual(stored(), { oauth: { ...OAUTH, refreshToken: 'by an operator' } })
  assert.equal(await entries(), 0)
})

test('if the store is unavailable, it is tried again with the latest tokens', async (t) => {
  const { store, id, stored } = await setUp(t)
  const errors: unknown[] = []
  let retry = (): void => undefined
  const isRetried = new Promise<void>((resolve) => {
    retry = resolve
  })
  const failing = {
    updateDestination: (async (...change) => {
      if (errors.length < 3) throw new Error('unavailable')
      const changed = await store.resources.updateDestination(...change)
      retry()
      return changed
    }) as Store['resources']['updateDestination'],
  }
  const keeper = new TokenKeeper({
    store: { resources: failing },
    pauseMs: 1,
    onError(error) {
      if (errors.push(error) === 2) keeper.keep(id, renewed(1, 2))
    },
  })
  keeper.keep(id, renewed(0, 1))
  await isRetried
  await keeper.close()
  assert.deepEqual(stored(), { region: 'eu', oauth: { ...OAUTH, refreshToken: 'r2', accessToken: 'a2' } })
})
