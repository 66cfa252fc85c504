import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configurationOf, type Installed } from '../../api/configuration-export.ts'
import { KIND_SETTINGS } from '../../destinations/kinds.ts'
import { differencesOf } from './configuration-differences.ts'
import { parseConfigurationFile } from './configuration-file.ts'
import { BATCH, DESTINATION, exported, exportedFrom, installed, SOURCE, schema, withSettings } from './fixtures/installed-configuration.ts'

test('a paused destination is exported as paused, and a file without that field resumes it', () => {
  const paused = installed({ destinations: [{ ...DESTINATION, paused: true }] })
  const { file } = configurationOf(paused, { withKeys: true })
  assert.equal(file.destinations[0]?.['paused'], true)
  assert.deepEqual(differencesOf(file, paused, {}, true).changes, [])
  assert.equal(Object.hasOwn(exported().destinations[0] as object, 'paused'), false, 'a field with its default value is left out')
  assert.deepEqual(
    differencesOf(exported(), paused, {}, true).changes.map(({ settings }) => settings),
    [{ paused: false }],
  )
})

test('the order of an export does not depend on the order of creation', () => {
  const named = (name: string) => ({ ...SOURCE, id: name, name })
  const names = (list: object[]) => configurationOf(installed({ sources: list }), { withKeys: true }).file.sources.map(({ name }) => name)
  assert.deepEqual(names([named('b'), named('a'), named('C')]), names([named('C'), named('b'), named('a')]))
})

test('changes in the file are found field by field, and secrets are not shown', () => {
  const file = exported()
  Object.assign(file.destinations[0] as object, {
    batch: { size: 10 },
    headers: { Authorization: '${H}' },
    urls: ['https://b.example/?token=${U}'],
  })
  const differences = differencesOf(file, installed(), { H: 'hidden-new', U: 'hidden-url' }, false)
  assert.deepEqual(differences.problems, [])
  const [change] = differences.changes
  assert.deepEqual([change?.action, change?.kind, change?.id], ['update', 'destinations', 'dst_1'])
  assert.deepEqual(change?.settings, {
    batch: { size: 10, bytes: 512_000, lingerMs: 1_000 },
    headers: { Authorization: 'hidden-new' },
    urls: ['https://b.example/?token=hidden-url'],
  })
  assert.equal(JSON.stringify(change?.fields).includes('hidden'), false)
})

test('a field that is missing in the file is reset to its default', () => {
  const stored = { ...DESTINATION, batch: { ...BATCH, size: 50 } }
  const differences = differencesOf(exported(), installed({ destinations: [stored] }), {}, false)
  assert.deepEqual(differences.changes[0]?.settings, { batch: BATCH })
})

test('nothing is deleted without prune, and unmanaged entries are listed', () => {
  const empty = parseConfigurationFile({ version: 1 }, 'f')
  const kept = differencesOf(empty, installed(), {}, false)
  assert.deepEqual([kept.changes.length, kept.unmanaged.map(({ name }) => name)], [0, ['web', 'Warehouse', 'app']])
  assert.deepEqual(
    differencesOf(empty, installed(), {}, true).changes.map(({ action, id }) => [action, id]),
    [
      ['delete', 'src_1'],
      ['delete', 'dst_1'],
      ['delete', 'app_1'],
    ],
  )
})

test('a missing source, an ambiguous name and a write key of another source are found before anything is changed', () => {
  const file = exported()
  Object.assign(file.destinations[0] as object, { sources: ['nowhere'] })
  assert.match(differencesOf(file, installed(), {}, false).problems.join(), /there is no source nowhere/)
  assert.match(
    differencesOf(exported(), installed({ sources: [SOURCE, { ...SOURCE, id: 'src_2' }] }), {}, false).problems.join(),
    /the installation has several with this name/,
  )
  const other = exported()
  other.sources.push({ name: 'second', writeKeys: ['k1'] })
  assert.match(differencesOf(other, installed(), {}, false).problems.join(), /has the same write key/)
  const taken = parseConfigurationFile({ version: 1, sources: [{ name: 'second', writeKeys: ['k1'] }] }, 'f')
  assert.match(differencesOf(taken, installed(), {}, false).problems.join(), /the installed source web has this write key/)
})

test('a key of an application without an id in the file matches the installed key', () => {
  const file = exported()
  Object.assign(file.oauthApps[0] as object, { keys: [{ publicKeyPem: 'PEM\n' }] })
  assert.deepEqual(differencesOf(file, installed(), {}, false).changes, [])
})

test('the retry window of a file may have its older name, and an export has the policy only once', () => {
  const retry = { windowMs: 60_000, factor: 2 }
  const stored = { ...DESTINATION, retry, retryWindowMs: 60_000 }
  const policy = { default: { windowMs: 14_400_000, factor: 2 }, properties: { windowMs: { default: 14_400_000 }, factor: { default: 2 } } }
  const now: Installed = {
    schema: { ...schema, destinations: { ...schema.destinations, retry: policy, retryWindowMs: {} } },
    kinds: KIND_SETTINGS,
    entries: { ...installed().entries, destinations: [stored] },
  }
  const { file } = configurationOf(now, { withKeys: true })
  assert.deepEqual(file.destinations[0]?.['retry'], retry)
  assert.equal(Object.hasOwn(file.destinations[0] as object, 'retryWindowMs'), false)
  const changes = (fields: object): unknown => {
    const { retry: _, ...entry } = file.destinations[0] as (typeof file.destinations)[number]
    const given = parseConfigurationFile({ ...file, destinations: [{ ...entry, ...fields }] }, 'a.yaml')
    return differencesOf(given, now, {}, true).changes[0]?.settings
  }
  assert.equal(changes({ retry }), undefined)
  assert.equal(changes({ retryWindowMs: 60_000 }), undefined)
  assert.equal(changes({ retryWindowMs: 60_000, retry }), undefined)
  assert.deepEqual(changes({ retryWindowMs: 5_000, retry: { factor: 3 } }), { retry: { windowMs: 5_000, factor: 3 } })
  assert.deepEqual(changes({ retryWindowMs: 5_000, retry }), { retryWindowMs: 5_000 }, 'the service rejects this')
})

test('an invalid file is rejected: wrong version, unknown keys, entries without a name or with the same name', () => {
  for (const [value, problem] of [
    [null, /must be a YAML mapping/],
    [{}, /version must be 1/],
    [{ version: 2 }, /version must be 1/],
    [{ version: 1, source: [] }, /unknown key source\./],
    [{ version: 1, sources: {} }, /sources must be a list/],
    [{ version: 1, sources: [{}] }, /must have a name/],
    [{ version: 1, sources: [{ name: 'a' }, { name: 'a' }] }, /the name a is used twice/],
    [JSON.parse('{"version":1,"sources":[{"name":"a","__proto__":{"x":1}}]}'), /__proto__/],
  ] as const) {
    assert.throws(() => parseConfigurationFile(value, 'f'), { name: 'CommandProblem', message: problem })
  }
  const odd = exported()
  Object.assign(odd.sources[0] as object, { colour: 'red' })
  assert.match(differencesOf(odd, installed(), {}, false).problems.join(), /unknown field colour/)
})

test('the destination for dead letters is given by its name, must exist, and must not lead back', () => {
  const classic = { auth: null, tls: null, deadLetter: null }
  const now = withSettings({ ...classic, name: 'A', deadLetter: 'dst_2' }, { ...classic, name: 'B' })
  const file = exportedFrom(now)
  assert.deepEqual(
    file.destinations.map(({ deadLetter }) => deadLetter),
    ['B', undefined],
  )
  assert.deepEqual([differencesOf(file, now, {}, true).changes, differencesOf(file, now, {}, true).problems], [[], []])
  const set = (name: string, deadLetter: string | null): void => {
    const at = file.destinations.findIndex((entry) => entry.name === name)
    file.destinations[at] = { ...file.destinations[at], name, deadLetter }
  }
  set('A', null)
  const removed = differencesOf(file, now, {}, true).changes
  assert.deepEqual(
    [removed[0]?.settings, removed[0]?.fields],
    [{ deadLetter: null }, [{ field: 'deadLetter', before: '"B"', after: 'null' }]],
  )
  set('A', 'C')
  assert.deepEqual(differencesOf(file, now, {}, true).problems, [
    'destination A: there is no destination C, neither in the file nor in the installation.',
  ])
  set('A', 'B')
  set('B', 'A')
  assert.deepEqual(differencesOf(file, now, {}, true).problems, [
    'destination A: deadLetter must not lead back to the same destination (A → B → A).',
    'destination B: deadLetter must not lead back to the same destination (B → A → B).',
  ])
})

test('a tracking plan is compared rule by rule, with the default mode', () => {
  const rule = { type: 'page', schema: { type: 'object' } }
  const stored = { id: 'pln_1', name: 'Shop', sourceIds: ['src_1'], rules: [{ ...rule, mode: 'observe' }] }
  const plan = (rules: object[]) => {
    const file = configurationOf(installed({ plans: [stored] }), { withKeys: true }).file
    file.plans = [{ name: 'Shop', sources: ['web'], rules }]
    return differencesOf(file, installed({ plans: [stored] }), {}, false)
  }
  assert.deepEqual(plan([rule]).changes, [])
  assert.deepEqual(
    plan([{ ...rule, mode: 'strip' }]).changes.map(({ action, kind, settings }) => [action, kind, Object.keys(settings)]),
    [['update', 'plans', ['rules']]],
  )
})
