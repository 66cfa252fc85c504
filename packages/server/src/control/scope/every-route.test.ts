// Walks every route with every role and scope, and fails for a route that it does not know how to call. For a caller that is limited to one
// source, no response shows anything of the other one, and what belongs to the other one is answered in the same way as what never existed.

import assert from 'node:assert/strict'
import { before, suite, test } from 'node:test'
import type { JsonSchema, Schema } from '../../api/schema.ts'
import { LiveFeed } from '../../observe/live.ts'
import { ROLES, type Store } from '../../store/store.ts'
import type { Clock } from '../../timing/clock.ts'
import { openSingleSignOn, type SingleSignOn } from '../access/people/single-sign-on.ts'
import { controlRoutes } from '../control.ts'
import { type Answer, type CallOptions, STILL } from '../fixtures/start-control.ts'
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
  'POST /sql': () => ({ query: 'select 1' }),
  'POST /destinations/:id/queries': () => ({ name: 'x', query: 'select 1' }),
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

/** What a request can name: ids, the name and the event of a world, the rule that its messages violate, and others. */
interface Names extends Ids {
  name: string
  rule: string
  /** A message in quarantine. */
  held: string
  /** A destination for dead letters. */
  receiver: string
  lake: string
}

/** Fields of queries and bodies that name something, and what. */
const NAMED: Readonly<Record<string, readonly (keyof Names)[]>> = {
  sourceId: ['source'],
  sourceIds: ['source'],
  sources: ['source'],
  source: ['source', 'name'],
  destinationId: ['destination', 'lake'],
  deadLetter: ['receiver'],
  plan: ['plan'],
  messageId: ['message'],
  deliveryIds: ['delivery'],
  subject: ['source', 'destination', 'plan', 'incident'],
  userId: ['name'],
  event: ['name'],
  search: ['name'],
  q: ['name'],
  rule: ['rule'],
  ids: ['held'],
}
/** Fields that look like these, but name nothing that belongs to a source, or only in what the request itself contains. */
const NAMES_NOTHING: ReadonlySet<string> = new Set(['id', 'message', 'rules', 'userIds', 'GET /incidents rule', 'POST /alerts/mutes rule'])
/** What is refused even if it belongs to the caller, with the code of the error. */
const REFUSED_ANYWAY: Readonly<Record<string, string>> = {
  'GET /replays/:id': 'replay_not_found',
  'POST /plans with the source as sourceIds': 'source_has_plan',
  'POST /replays with the destination as archive.destinationId': 'no_archive',
  'POST /sql with the destination as destinationId': 'not_a_lake',
  'GET /sql/tables with the destination as destinationId': 'not_a_lake',
  'POST /destinations/:id/order/skip with the message as messageId': 'key_not_waiting',
  'POST /destinations/:id/order/retry with the message as messageId': 'key_not_waiting',
  'POST /quarantine/release with the name as source': 'invalid_field',
  'POST /quarantine/delete with the name as source': 'invalid_field',
}
const LOOKS_LIKE_A_NAME = /(ids?|source|destination|plan|event|message|delivery|replay|incident|app|subject|letter|search|^q|rule)s?$/i
/** Objects in bodies whose fields name something, and what else must be in them. */
const NESTED: Readonly<Record<string, (ids: Pick<Names, 'lake'>) => object>> = {
  changes: () => ({}),
  archive: ({ lake }) => ({ destinationId: lake, after: '2026-01-01T00:00:00Z', before: '2027-01-01T00:00:00Z' }),
}
/** Fields that cannot be combined with others. */
const INSTEAD_OF: Readonly<Record<string, readonly string[]>> = {
  ids: ['sourceId'],
  source: ['sourceId'],
  destinationId: ['sourceId'],
  deliveryIds: ['destinationId'],
}
/** Query parameters that a route needs, with ids of the own world. */
const NEEDED: Readonly<Record<string, string>> = {
  'DELETE /suppressions': 'userId=zebra-suppressed',
  'GET /deliveries/answers': 'destinationId={destination}&state=failed',
  'GET /deliveries/differences': 'destinationId={destination}',
  'GET /sql/tables': 'destinationId={lake}',
  'POST /destinations': 'allowDuplicate=true',
}
/** Routes whose path names something that belongs to no source. */
const NAMES_NO_SUBJECT: ReadonlySet<string> = new Set([
  '/tokens/:id',
  '/people/:id/sessions',
  '/backups/:id',
  '/backups/:id/file',
  '/catalog/:slug',
  '/catalog/:slug/choices',
])
const OF_WAREHOUSES = /^\/destinations\/:id\/(tables|load|upkeep|loads|queries|queries\/:queryId)$/
const FOREIGN = /zebra/
const ANSWER_OF_LAKE = { columns: [], truncated: false, warnings: [] }
const INSTALLED = { state: 'installed', done: 1, total: 1, error: null } as const

const LIMITED = ROLES.filter((role) => role !== 'admin').flatMap((role) =>
  [`${role} own`, `${role} own, a person`].map((who) => [role, who] as const),
)

interface Found {
  /** `changes.deadLetter` is in an object. */
  field: string
  isList: boolean
}
interface Naming extends Found {
  route: Route
  kind: keyof Names
  isInQuery: boolean
}

const lastOf = (field: string): string => field.slice(field.lastIndexOf('.') + 1)

const isNaming = ({ method, path }: Pick<Route, 'method' | 'path'>, field: string): boolean =>
  LOOKS_LIKE_A_NAME.test(lastOf(field)) && !NAMES_NOTHING.has(lastOf(field)) && !NAMES_NOTHING.has(`${method} ${path} ${field}`)

/** The fields of a schema, with those of `changes`. */
function fieldsOf(schema: Schema<unknown> | undefined): Found[] {
  const found = new Map<string, Found>()
  const walk = ({ properties = {}, oneOf = [] }: JsonSchema, prefix: string): void => {
    for (const [name, field] of Object.entries(properties as Record<string, JsonSchema>)) {
      found.set(prefix + name, { field: prefix + name, isList: field['type'] === 'array' })
      if (name in NESTED) walk(field, `${name}.`)
    }
    for (const one of oneOf as JsonSchema[]) walk(one, prefix)
  }
  if (schema !== undefined) walk(schema.toJsonSchema(), '')
  return [...found.values()]
}

/** People whose groups say what they may do. The provider is never asked. */
function openPeople(store: Store, clock: Clock): Promise<SingleSignOn> {
  const rules = LIMITED.flatMap(([role]) => [
    { claim: 'groups', value: `${role}-own`, role, sources: ['lion'] },
    { claim: 'groups', value: `${role}-all`, role, sources: 'all' as const },
    { claim: 'groups', value: `${role}-none`, role, sources: ['a name that no source has'] },
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
  /** By the id of their source. */
  const lakes: Record<string, string> = {}
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
        delivery: { ...STILL, preview: async (_, contents) => contents.map(() => ({ kind: 'dropped', logs: null })) },
        queries: {
          run: async (_, sources) => ({ ...ANSWER_OF_LAKE, rows: [[String(sources)]] }),
          tables: async (_, sources) => [{ sourceId: String(sources), schema: 'x', table: 'x', columns: [] }],
        },
        warehouseInstaller: { state: () => INSTALLED, start: () => INSTALLED },
      },
      async ({ store, clock }) => {
        singleSignOn = await openPeople(store, clock)
        return { singleSignOn }
      },
    )
    cleanups.push(() => singleSignOn.close())
    for (const [name, { source }] of Object.entries({ lion: world.own, zebra: world.other })) {
      const body = {
        type: 'warehouse',
        name: `${name} lake`,
        sourceIds: [source],
        warehouse: { engine: 'parquet', url: `file:///${name}` },
      }
      lakes[source] = (await world.call('POST', '/api/destinations', body)).body.id as string
    }
    routes = controlRoutes(world.deps)
    for (const role of ['viewer', 'editor'] as const) {
      callers.set(`${role} all`, { token: await world.tokenFor(role, 'all') })
      callers.set(`${role} own`, { token: await world.tokenFor(role, [world.own.source]) })
      callers.set(`${role} all, a person`, await personFor(singleSignOn, `${role}-all`))
      callers.set(`${role} own, a person`, await personFor(singleSignOn, `${role}-own`))
      callers.set(`${role} none, a person`, await personFor(singleSignOn, `${role}-none`))
    }
  })

  const lakeOf = ({ source, destination }: Ids): string => lakes[source] ?? destination
  /** `what`: a world, or something that never existed. */
  const namesOf = async (ids: Ids, what: string): Promise<Names> => {
    const held = await world.store.quarantine.list({ sourceId: ids.source }, { limit: 1, cursor: null })
    const receiver = what === 'lion' ? world.lettersId : ids.destination
    return { ...ids, name: what, rule: `track ${what}`, held: held.data[0]?.id ?? '1-7', receiver, lake: lakeOf(ids) }
  }
  const asked = (route: Route, ids: Ids, query = ''): string => {
    const { subject } = route.access as RouteAccess
    const id = OF_WAREHOUSES.test(route.path) ? lakeOf(ids) : subject === undefined ? 'no-id' : ids[subject]
    const path = route.path.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(name === 'id' ? id : `no-${name}`))
    const needed = (NEEDED[`${route.method} ${route.path}`] ?? '')
      .replace('{destination}', world.own.destination)
      .replace('{lake}', lakeOf(world.own))
    const all = new URLSearchParams(needed)
    for (const [name, value] of new URLSearchParams(query)) all.set(name, value)
    return `/api${path}${all.size === 0 ? '' : `?${all.toString()}`}`
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
  /** Every field of a query or a body with which a limited caller can name something. */
  const namings = (): Naming[] => {
    const all: Naming[] = []
    for (const route of others()) {
      const { role, sources } = route.access as RouteAccess
      if (role === 'admin' || sources !== 'limited') continue
      for (const [schema, isInQuery] of [[route.query, true] as const, [route.body, false] as const])
        for (const { field, isList } of fieldsOf(schema).filter((found) => isNaming(route, found.field)))
          for (const kind of NAMED[lastOf(field)] ?? []) all.push({ route, field, isList, kind, isInQuery })
    }
    return all
  }
  /** A request about the own world, in which one field names something of another. */
  const sendNaming = ({ route, field, kind, isList, isInQuery }: Naming, ids: Names, caller: CallOptions | undefined): Promise<Answer> => {
    if (isInQuery) return send(route, world.own, caller, `${field}=${encodeURIComponent(ids[kind])}`)
    const where = `${route.method} ${route.path}`
    const body = { ...(BODIES[where]?.(world.own) as Record<string, unknown>) }
    for (const name of INSTEAD_OF[field] ?? []) delete body[name]
    const value = isList ? [ids[kind]] : ids[kind]
    const [first = '', second] = field.split('.')
    body[first] = second === undefined ? value : { ...NESTED[first]?.({ lake: lakeOf(world.own) }), [second]: value }
    return world.call(route.method, asked(route, world.own), body, caller)
  }
  const others = (): Route[] => routes.filter(({ access, path }) => access !== 'public' && path !== '/live')

  test('says what it needs, and this test knows how to call it', () => {
    for (const { method, path, access, query, body } of routes) {
      const where = `${method} ${path}`
      if (body !== undefined) assert.ok(BODIES[where] !== undefined, `${where} has a body: add one to BODIES`)
      if (access === 'public') continue
      assert.ok(ROLES.includes(access.role), where)
      assert.ok(['none', 'limited', 'all'].includes(access.sources), where)
      const namesSomething = path.includes(':')
      assert.equal(namesSomething, access.subject !== undefined || NAMES_NO_SUBJECT.has(path), `${where} must say what its path names`)
      if (access.subject !== undefined) assert.ok(access.subject in SUBJECTS, where)
      if (access.whole) assert.equal(access.subject, 'destination', where)
      if (access.role === 'admin' || access.sources !== 'limited') continue
      for (const { field } of [...fieldsOf(query), ...fieldsOf(body)])
        assert.ok(
          !isNaming({ method, path }, field) || NAMED[lastOf(field)] !== undefined,
          `${where} has the field ${field}: add to NAMED what it names, or to NAMES_NOTHING`,
        )
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

    test(`answers a limited ${who} who names what belongs to the other source as if it did not exist`, async () => {
      const [other, nothing] = [await namesOf(world.other, 'zebra'), await namesOf(NOTHING, 'nobody')]
      for (const naming of namings()) {
        if (!hasRole(role, (naming.route.access as RouteAccess).role)) continue
        const { route, field, kind } = naming
        const where = `${route.method} ${route.path} with the ${kind} as ${field}`
        const [answer, expected] = [await sendNaming(naming, other, callers.get(who)), await sendNaming(naming, nothing, callers.get(who))]
        assert.equal(comparable(answer, other), comparable(expected, nothing), where)
        for (const id of Object.values(other))
          assert.ok(!answer.text.replaceAll(other[kind], '').includes(id), `${where} shows ${id}: ${answer.text}`)
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

  for (const role of ['viewer', 'editor'] as const) {
    test(`shows nothing of any source to a ${role} whose rules name no source that exists`, async () => {
      const caller = callers.get(`${role} none, a person`)
      for (const route of others()) {
        const answers = [await send(route, world.own, caller), await send(route, world.other, caller), await send(route, NOTHING, caller)]
        const [own, other, nothing] = answers.map((answer, at) => comparable(answer, [world.own, world.other, NOTHING][at] as Ids))
        assert.deepEqual([own, other], [nothing, nothing], `${route.method} ${route.path}`)
        if (route.method !== 'GET') continue
        for (const id of [...Object.values(world.own), ...Object.values(world.other)])
          assert.ok(!answers[2]?.text.includes(id), `${route.method} ${route.path} shows ${id}`)
      }
    })
  }

  test('the same requests about the own source are answered, so what was compared is not an error that everybody gets', async () => {
    const own = await namesOf(world.own, 'lion')
    const caller = callers.get('editor own')
    const assertAnswered = (where: string, { status, body, text }: Answer): void => {
      const code = REFUSED_ANYWAY[where]
      if (code === undefined) assert.ok(status < 300, `${where}: ${text}`)
      else assert.equal(body.code, code, where)
    }
    for (const route of others().filter(({ method }) => method === 'GET')) {
      const { role, sources } = route.access as RouteAccess
      if (hasRole('editor', role) && sources === 'limited') assertAnswered(`GET ${route.path}`, await send(route, world.own, caller))
    }
    for (const naming of namings()) {
      const { route, kind, field } = naming
      assertAnswered(`${route.method} ${route.path} with the ${kind} as ${field}`, await sendNaming(naming, own, caller))
    }
  })

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
