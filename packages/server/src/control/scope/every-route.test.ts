// Walks every route with every role and scope, and fails for a route that it does not know how to call. For a caller that is limited to one
// source, no response shows anything of the other one, and what belongs to the other one is answered in the same way as what never existed.

import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import { LiveFeed } from '../../observe/live.ts'
import { ROLES, type Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { openSingleSignOn, type SingleSignOn } from '../access/people/single-sign-on.ts'
import { controlRoutes } from '../control.ts'
import type { Answer, CallOptions } from '../fixtures/start-control.ts'
import { type Ids, NOTHING, startTwoWorlds, type TwoWorlds } from '../fixtures/two-worlds.ts'
import { SETTINGS } from '../people/fixtures/start-single-sign-on.ts'
import type { Route } from '../routes/route.ts'
import { hasRole, type RouteAccess, SUBJECTS } from '../routes/route-access.ts'

/** A body for every route that has one, with ids of one world. */
const BODIES: Readonly<Record<string, (ids: Ids) => unknown>> = {
  'POST /login': () => ({ token: 'x' }),
  'POST /login/oidc/backchannel-logout': () => ({ logout_token: 'x' }),
  'POST /login/cli': () => ({ port: '1', state: 'x', challenge: 'x'.repeat(43) }),
  'POST /login/cli/token': () => ({ code: 'x', verifier: 'x'.repeat(43) }),
  'POST /sources': () => ({ name: 'x' }),
  'PATCH /sources/:id': () => ({ privacy: [] }),
  'POST /sources/:id/write-keys': () => ({}),
  'POST /sources/:id/privacy/preview': () => ({}),
  'POST /plans/learn': ({ source }) => ({ source }),
  'POST /destinations': ({ source }) => ({ name: 'x', urls: ['https://example.com/x'], sourceIds: [source] }),
  'PATCH /destinations/:id': ({ source }) => ({ sourceIds: [source] }),
  'POST /destinations/:id/test': () => ({}),
  'POST /destinations/:id/preview': () => ({}),
  'POST /destinations/:id/choices': () => ({ action: 'x', field: 'x' }),
  'POST /destinations/:id/order/skip': () => ({ key: 'x' }),
  'POST /destinations/:id/order/retry': () => ({ key: 'x' }),
  'POST /deliveries/:id/replay': () => ({}),
  'POST /catalog/:slug/choices': () => ({ action: 'x', field: 'x' }),
  'POST /plans': ({ source }) => ({ name: 'x', rules: [], sourceIds: [source] }),
  'PATCH /plans/:id': () => ({ name: 'x' }),
  'POST /warehouse/check': ({ source }) => ({
    type: 'warehouse',
    name: 'x',
    sourceIds: [source],
    warehouse: { engine: 'parquet', url: 'file:///lake' },
  }),
  'POST /sql': ({ destination }) => ({ query: 'select 1', destinationId: destination }),
  'POST /replays': ({ destination }) => ({ destinationId: destination, dryRun: true }),
  'PATCH /replays/:id': () => ({ state: 'paused' }),
  'POST /deletions': ({ source }) => ({ userIds: ['u'], sourceIds: [source] }),
  'POST /suppressions': ({ source }) => ({ userIds: ['u'], sourceIds: [source] }),
  'POST /quarantine/release': ({ source }) => ({ sourceId: source }),
  'POST /quarantine/delete': ({ source }) => ({ sourceId: source }),
  'PATCH /alerts': () => ({}),
  'POST /incidents/:id/acknowledge': () => ({ note: 'x' }),
  'POST /alerts/mutes': ({ source }) => ({ sourceId: source, minutes: 5 }),
  'POST /oauth-apps': ({ source }) => ({ name: 'x', sourceIds: [source], keys: [] }),
  'PATCH /oauth-apps/:id': () => ({ name: 'x' }),
  'POST /oauth-apps/:id/keys': () => ({ publicKeyPem: 'x' }),
  'POST /tokens': ({ source }) => ({ name: 'x', sources: [source] }),
  'POST /configuration/check': () => ({ sources: [], destinations: [], oauthApps: [], plans: [] }),
}

/** Query parameters that name something, and what. */
const NAMED_IN_QUERY: Readonly<Record<string, keyof Ids>> = {
  sourceId: 'source',
  source: 'source',
  destinationId: 'destination',
  plan: 'plan',
  messageId: 'message',
  subject: 'destination',
}
/** Query parameters that a route needs. */
const NEEDED: Readonly<Record<string, string>> = { 'DELETE /suppressions': 'userId=zebra-suppressed' }
/** Routes whose path names something that belongs to no source. */
const NAMES_NO_SUBJECT: ReadonlySet<string> = new Set([
  '/tokens/:id',
  '/people/:id/sessions',
  '/backups/:id',
  '/backups/:id/file',
  '/catalog/:slug',
  '/catalog/:slug/choices',
])
const FOREIGN = /zebra/
const INSTALLED = { state: 'installed', done: 1, total: 1, error: null } as const

const LIMITED = ROLES.filter((role) => role !== 'admin').flatMap((role) =>
  [`${role} own`, `${role} own, a person`].map((who) => [role, who] as const),
)

/** People whose groups say what they may do. The provider is never asked. */
function openPeople(store: Store, clock: Clock): Promise<SingleSignOn> {
  const rules = LIMITED.flatMap(([role]) => [
    { claim: 'groups', value: `${role}-own`, role, sources: ['lion'] },
    { claim: 'groups', value: `${role}-all`, role, sources: 'all' as const },
  ])
  const settings = { ...SETTINGS, issuer: 'http://127.0.0.1:9', rules, checkEveryMs: 3_600_000 }
  return openSingleSignOn(settings, { store, clock, onEvent: () => {} })
}

async function personFor({ people }: SingleSignOn, group: string): Promise<CallOptions> {
  const grant = { refreshToken: null, accessToken: 'x' }
  const { cookie } = await people.logIn({ subject: group, idToken: { sub: group, groups: [group] }, userinfo: null, sid: null, grant })
  return { token: null, headers: { cookie: `switchyard_session=${cookie}`, 'sec-fetch-site': 'same-origin' } }
}

suite('every route', () => {
  let singleSignOn: SingleSignOn
  let world: TwoWorlds
  let routes: readonly Route[]
  /** The callers, such as `viewer own`: a token, and a person with the same role and sources. */
  const callers = new Map<string, CallOptions>()
  const cleanups: (() => unknown)[] = []

  before(async () => {
    const live = new LiveFeed({ wallMs: Date.now })
    world = await startTwoWorlds(
      { after: (run: () => unknown) => void cleanups.push(run) },
      {
        live,
        catalogInstaller: { state: () => INSTALLED, start: () => INSTALLED },
        warehouseInstaller: { state: () => INSTALLED, start: () => INSTALLED },
      },
      async ({ store, clock }) => {
        singleSignOn = await openPeople(store, clock)
        return { singleSignOn }
      },
    )
    cleanups.push(() => singleSignOn.close())
    routes = controlRoutes(world.deps)
    for (const role of ['viewer', 'editor'] as const) {
      callers.set(`${role} all`, { token: await world.tokenFor(role, 'all') })
      callers.set(`${role} own`, { token: await world.tokenFor(role, [world.own.source]) })
      callers.set(`${role} all, a person`, await personFor(singleSignOn, `${role}-all`))
      callers.set(`${role} own, a person`, await personFor(singleSignOn, `${role}-own`))
    }
  })

  const asked = (route: Route, ids: Ids, query = ''): string => {
    const { subject } = route.access as RouteAccess
    const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(name === 'id' && subject !== undefined ? ids[subject] : `no-${name}`),
    )
    const all = [NEEDED[`${route.method} ${route.path}`] ?? '', query].filter((part) => part !== '').join('&')
    return `/api${path}${all === '' ? '' : `?${all}`}`
  }
  const send = (route: Route, ids: Ids, caller: CallOptions | undefined, query = ''): Promise<Answer> => {
    const body = BODIES[`${route.method} ${route.path}`]?.(ids)
    return world.call(route.method, asked(route, ids, query), route.body === undefined ? undefined : body, caller)
  }
  /** Without what differs by time, and without the ids that the request itself contained. */
  const comparable = ({ status, text }: Answer, ids: Ids): string => {
    let shown = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '(time)')
    for (const id of new Set(Object.values(ids)))
      shown = shown.replaceAll(new RegExp(`(?<![\\w-])${id.replaceAll('.', '[.]')}(?![\\w-])`, 'g'), '(id)')
    return `${status} ${shown}`
  }
  const others = (): Route[] => routes.filter(({ access, path }) => access !== 'public' && path !== '/live')

  test('says what it needs, and this test knows how to call it', () => {
    for (const { method, path, access, body } of routes) {
      const where = `${method} ${path}`
      if (body !== undefined) assert.ok(BODIES[where] !== undefined, `${where} has a body: add one to BODIES`)
      if (access === 'public') continue
      assert.ok(ROLES.includes(access.role), where)
      assert.ok(['none', 'limited', 'all'].includes(access.sources), where)
      const namesSomething = path.includes(':')
      assert.equal(namesSomething, access.subject !== undefined || NAMES_NO_SUBJECT.has(path), `${where} must say what its path names`)
      if (access.subject !== undefined) assert.ok(access.subject in SUBJECTS, where)
      if (access.whole) assert.equal(access.subject, 'destination', where)
    }
  })

  test('answers 401 without a token, before everything else', async () => {
    for (const route of others()) {
      const { status } = await world.call(route.method, asked(route, NOTHING), undefined, { token: null })
      assert.equal(status, 401, `${route.method} ${route.path}`)
    }
  })

  for (const role of ['viewer', 'editor'] as const) {
    for (const who of [`${role} all`, `${role} own`, `${role} all, a person`, `${role} own, a person`]) {
      const isLimited = who.startsWith(`${role} own`)
      const isPerson = who.endsWith('a person')

      test(`answers 403 to the caller "${who}" exactly if the role or the scope is not enough, even if the body is not JSON`, async () => {
        for (const route of others()) {
          const { role: needed, sources, own } = route.access as RouteAccess
          const options = { ...callers.get(who), ...(route.method === 'GET' ? {} : { raw: '{"not json' }) }
          const { status, body } = await world.call(route.method, asked(route, NOTHING), undefined, options)
          const isRefused = (!hasRole(role, needed) || (sources === 'all' && isLimited)) && !(own && isPerson)
          if (isRefused) assert.deepEqual([status, body.code], [403, 'forbidden'], `${route.method} ${route.path}`)
          else assert.notEqual(status, 403, `${route.method} ${route.path}`)
        }
      })
    }
  }

  for (const [role, who] of LIMITED) {
    test(`shows a limited ${who} nothing of the other source`, async () => {
      for (const route of others().filter(({ method }) => method === 'GET')) {
        const { status, text } = await send(route, world.own, callers.get(who))
        assert.doesNotMatch(text, FOREIGN, `GET ${route.path}`)
        for (const id of Object.values(world.other)) assert.ok(!text.includes(id), `GET ${route.path} shows ${id}: ${text}`)
        assert.ok(status < 500, `GET ${route.path}: ${text}`)
      }
    })

    test(`answers a limited ${who} about the other source as about ids that never existed`, async () => {
      for (const route of others()) {
        const where = `${route.method} ${route.path} as ${who}`
        const caller = callers.get(who)
        const [other, nothing] = [await send(route, world.other, caller), await send(route, NOTHING, caller)]
        assert.equal(comparable(other, world.other), comparable(nothing, NOTHING), where)
        assert.doesNotMatch(comparable(other, world.other), FOREIGN, where)
        const { subject } = route.access as RouteAccess
        if (subject !== undefined && other.status !== 403) assert.equal(other.body.code, SUBJECTS[subject], where)
      }
    })

    test(`answers a limited ${who} who names the other source in the query as if that source did not exist`, async () => {
      for (const route of others().filter(({ method }) => method === 'GET')) {
        const names = Object.keys((route.query as { fields?: object } | undefined)?.fields ?? {}).filter((name) => name in NAMED_IN_QUERY)
        for (const name of names) {
          const kind = NAMED_IN_QUERY[name] as keyof Ids
          const caller = callers.get(who)
          const answerTo = (ids: Ids): Promise<Answer> => send(route, world.own, caller, `${name}=${encodeURIComponent(ids[kind])}`)
          const [other, nothing] = [await answerTo(world.other), await answerTo(NOTHING)]
          assert.equal(comparable(other, world.other), comparable(nothing, NOTHING), `GET ${route.path}?${name}`)
        }
      }
    })

    test(`answers 404 to a limited ${who} before it looks at the query and the body`, async () => {
      for (const route of others()) {
        const { subject, role: needed } = route.access as RouteAccess
        if (subject === undefined || !hasRole(role, needed)) continue
        const caller = callers.get(who)
        for (const ids of [world.other, NOTHING]) {
          const query = await world.call(route.method, asked(route, ids, 'surprise=1'), undefined, caller)
          assert.equal(query.status, 404, `${route.method} ${route.path}: ${query.text}`)
          if (route.body === undefined) continue
          for (const raw of ['{"not json', '[]', '{"surprise":1}']) {
            const answer = await world.call(route.method, asked(route, ids), undefined, { ...caller, raw })
            assert.equal(answer.status, 404, `${route.method} ${route.path} with ${raw}: ${answer.text}`)
          }
        }
      }
    })
  }

  test('nothing of the other source was changed by all of this', async () => {
    const { sources, destinations, plans, suppressions } = world.store.configuration()
    assert.deepEqual(destinations.get(world.other.destination)?.sourceIds, [world.other.source])
    assert.equal(sources.get(world.other.source)?.name, 'zebra')
    assert.equal(plans.get(world.other.plan)?.name, 'zebra')
    assert.deepEqual([...(suppressions.get(world.other.source) ?? [])].sort(), ['zebra-suppressed'])
    assert.equal((await world.store.quarantine.list({ sourceId: world.other.source }, { limit: 5, cursor: null })).data.length, 1)
    for (let run = cleanups.pop(); run !== undefined; run = cleanups.pop()) await run()
  })
})
