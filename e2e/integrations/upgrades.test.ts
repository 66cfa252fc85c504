// Upgrades of the integrations package: a destination that no longer fits its definition is held, and not failed, until it fits again. On both stores,
// over a restart, and with two nodes of which only one is upgraded.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { CatalogIntegration } from '../../packages/integrations/src/catalog.ts'
import type { Catalog } from '../../packages/server/src/control/routes/route.ts'
import { fastFolder } from '../../packages/server/src/store/fixtures/fast-folder.ts'
import { createDatabase } from '../../packages/server/src/store/postgres/fixtures/postgres-server.ts'
import { switchyard } from '../system/command-line.ts'
import { type InProcessOptions, startInProcess } from '../system/in-process.ts'
import { type Receiver, startReceiver } from '../system/receiver.ts'
import { TOKEN } from '../system/service.ts'
import { eventually, type Waiting } from '../system/signals.ts'
import { type Wiring, wire } from '../system/wiring.ts'

/** Posts each message to the URL in its settings. */
const PACKAGE = new URL('../../packages/server/src/delivery/fixtures/integrations/', import.meta.url)
/** Longer than the time after which a node looks at the catalogue again, and after which alerts are evaluated. */
const LONG: Waiting = { deadlineMs: 180_000 }

interface Place extends AsyncDisposable {
  env: Record<string, string>
}

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async SQLite() {
    const folder = mkdtempSync(join(fastFolder(), 'switchyard-upgrades-'))
    const env = { SWITCHYARD_STORE: `sqlite:${join(folder, 'test.db')}` }
    return { env, [Symbol.asyncDispose]: async () => rmSync(folder, { recursive: true, force: true }) }
  },
  async PostgreSQL() {
    const database = await createDatabase()
    const env = { SWITCHYARD_STORE: database.url, SWITCHYARD_SECRET_KEY: 'a key for these tests' }
    return { env, [Symbol.asyncDispose]: () => database.drop() }
  },
}

/** The definition of one version of the package. */
function version({ actions = ['post'], required = ['url'], fields = [] as string[] } = {}): CatalogIntegration {
  const named = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, { title: name, type: 'string' }]))
  return {
    slug: 'actions-tool',
    name: 'Tool (Actions)',
    title: 'Tool',
    description: '',
    auth: 'none',
    actionCount: actions.length,
    presetCount: 0,
    batch: false,
    available: true,
    problem: null,
    requiredSettingCount: required.length,
    segmentId: '',
    directory: '',
    settings: { type: 'object', properties: named(['url', 'region']), required, additionalProperties: false },
    actions: actions.map((slug) => ({
      slug,
      name: slug,
      description: '',
      defaultSubscription: null,
      batch: false,
      syncMode: null,
      fields: { type: 'object', properties: named(['text', 'channel']), required: fields, additionalProperties: false },
    })),
    presets: [],
    deletes: false,
  } as unknown as CatalogIntegration
}

/** The package that is installed on a node, which a test replaces. Null: none is installed. */
class Installed {
  current: CatalogIntegration | null

  constructor(current: CatalogIntegration | null) {
    this.current = current
  }

  readonly open = async (): Promise<Catalog | null> => {
    const { current } = this
    if (current === null) return null
    return { readCatalog: async () => [current], readIntegration: async (slug) => (slug === current.slug ? current : null) }
  }

  options(place: Place): InProcessOptions {
    return { place, integrations: PACKAGE, catalog: this.open }
  }
}

function toolAt(receiver: Receiver): Parameters<typeof wire>[1] {
  const subscriptions = [{ name: 'Post', action: 'post', subscribe: 'type = "track"', mapping: { text: 'x' }, enabled: true }]
  return { type: 'integration', integration: 'actions-tool', settings: { url: receiver.url }, subscriptions }
}

async function heldBy(service: { api<T>(path: string): Promise<T> }, { destinationId }: Wiring, passes: (held: string | null) => boolean) {
  const read = (): Promise<{ held: string | null; pending: number }> => service.api(`/destinations/${destinationId}/health`)
  return await eventually(read, ({ held }) => passes(held), LONG)
}

suite('Upgrades of integrations', { concurrency: 2 }, () => {
  for (const [store, open] of Object.entries(PLACES)) {
    test(`an action that is gone holds the deliveries, with an incident, until it is back (${store})`, async () => {
      await using place = await open()
      await using receiver = await startReceiver()
      const installed = new Installed(version())
      await using service = await startInProcess(installed.options(place))
      const wiring = await wire(service, toolAt(receiver))
      assert.equal((await wiring.settled(await wiring.track())).state, 'delivered')

      installed.current = version({ actions: ['post_v2'] })
      await service.restart()
      const ids = [await wiring.track(), await wiring.track()]
      const health = await heldBy(service, wiring, (held) => held !== null)
      assert.match(health.held ?? '', /subscriptions\[0\]\.action is post, which the installed version/)
      const incidents = (): Promise<{ data: { message: string; state: string }[] }> => service.api('/incidents?rule=destination_held')
      const { data: opened } = await eventually(incidents, ({ data }) => data.length > 0, LONG)
      assert.match(opened[0]?.message ?? '', /Deliveries to the destination "receiver" are held.*2 deliveries are pending/)
      const diagnosed = await service.api<{ checks: { name: string; state: string; message: string }[] }>('/diagnostics')
      assert.ok(diagnosed.checks.some(({ state, message }) => state === 'bad' && /deliveries are held/.test(message)))
      // Nothing of it is in the store: after another start, the node finds it out again.
      await service.restart()
      assert.equal((await heldBy(service, wiring, (held) => held !== null)).pending, 2)
      for (const id of ids) {
        const delivery = await wiring.delivery(id, () => true)
        assert.deepEqual([delivery.state, delivery.attemptCount], ['pending', 0])
      }
      assert.equal(receiver.arrivals.length, 1)

      installed.current = version({ actions: ['post', 'post_v2'] })
      for (const id of ids) assert.equal((await wiring.settled(id, LONG)).state, 'delivered')
      await heldBy(service, wiring, (held) => held === null)
      await eventually(incidents, ({ data }) => data.every(({ state }) => state === 'closed'), LONG)
      assert.equal((await incidents()).data.length, 1, 'the restart opened no second incident')
    })
  }

  test('a setting, a field or a package that is missing holds the deliveries, and what repairs it releases them at once', async () => {
    await using place = await (PLACES['SQLite'] as () => Promise<Place>)()
    await using receiver = await startReceiver()
    const installed = new Installed(version())
    await using service = await startInProcess(installed.options(place))
    const wiring = await wire(service, toolAt(receiver))
    const upgrade = async (to: CatalogIntegration | null, why: RegExp): Promise<string> => {
      installed.current = to
      await service.restart()
      const id = await wiring.track()
      assert.match((await heldBy(service, wiring, (held) => held !== null)).held ?? '', why)
      return id
    }
    const first = await upgrade(version({ required: ['url', 'region'] }), /settings\.region is required\./)
    await wiring.change({ settings: { region: 'eu' } })
    assert.equal((await wiring.settled(first)).state, 'delivered')

    const second = await upgrade(
      version({ fields: ['channel'] }),
      /subscriptions\[0\]\.mapping\.channel is required by the installed version/,
    )
    const { subscriptions } = await service.api<{ subscriptions: object[] }>(`/destinations/${wiring.destinationId}`)
    const patched = subscriptions.map((subscription) => Object.assign(subscription, { mapping: { text: 'x', channel: 'c' } }))
    await wiring.change({ subscriptions: patched })
    assert.equal((await wiring.settled(second)).state, 'delivered')

    const third = await upgrade(null, /not installed on this node\. Run `switchyard catalog install`/)
    installed.current = version()
    assert.equal((await wiring.settled(third, LONG)).state, 'delivered')
    const changed = await upgrade(version({ actions: [] }), /subscriptions\[0\]\.action/)
    await wiring.change({ subscriptions: [] })
    assert.deepEqual((await wiring.settled(changed)).state, 'cancelled')
  })

  test('catalog upgrade --check lists the destinations that do not fit the integrations of this version', async () => {
    await using place = await (PLACES['SQLite'] as () => Promise<Place>)()
    const slack = (actions: string[]): CatalogIntegration => ({ ...version({ actions, required: [] }), slug: 'actions-slack' })
    await using service = await startInProcess(new Installed(slack(['postToChannel', 'gone'])).options(place))
    const subscribed = (action: string, mapping: object): Parameters<typeof wire>[1] => {
      const subscriptions = [{ name: 'Post', action, subscribe: 'type = "track"', mapping, enabled: true }]
      return { name: action, type: 'integration', integration: 'actions-slack', settings: {}, subscriptions }
    }
    await wire(service, subscribed('postToChannel', { text: 'x' }))
    const check = (): ReturnType<typeof switchyard> => switchyard({ url: service.url, token: TOKEN }, 'catalog', 'upgrade', '--check')
    const unfilled = await check()
    assert.equal(unfilled.code, 1, unfilled.stderr)
    assert.match(unfilled.stdout, /subscriptions\[0\]\.mapping\.url is required by the installed version/)
    await wire(service, subscribed('gone', { text: 'x' }))
    const { stdout } = await check()
    assert.match(stdout, /gone \(dst_\w+, actions-slack\): subscriptions\[0\]\.action is gone, which the installed version/)
    assert.match(stdout, /0 of 2 destinations fit/)
  })

  test('while only one of two nodes is upgraded, the other one sends what that one holds', async () => {
    await using place = await (PLACES['PostgreSQL'] as () => Promise<Place>)()
    await using receiver = await startReceiver()
    const [before, after] = [new Installed(version()), new Installed(version({ actions: ['post_v2'] }))]
    await using old = await startInProcess(before.options(place))
    const wiring = await wire(old, toolAt(receiver))
    await using upgraded = await startInProcess(after.options(place))
    await heldBy(upgraded, wiring, (held) => held !== null)
    // The node that sends knows from the other one that it holds something.
    await heldBy(old, wiring, (held) => held !== null)
    const post = async (): Promise<string> => {
      const messageId = crypto.randomUUID()
      const headers = { authorization: `Basic ${btoa(`${wiring.writeKey}:`)}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ messageId, userId: 'u', event: 'Tested' })
      assert.equal((await fetch(`${upgraded.url}/v1/track`, { method: 'POST', headers, body })).status, 200)
      return messageId
    }
    for (const id of [await post(), await post(), await post()]) assert.equal((await wiring.settled(id, LONG)).state, 'delivered')
    assert.equal(receiver.arrivals.length, 3)
    assert.match((await heldBy(upgraded, wiring, () => true)).held ?? '', /action is post/)
  })
})
