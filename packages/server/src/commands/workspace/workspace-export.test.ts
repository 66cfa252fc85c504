import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandProblem } from '../service/problem.ts'
import { destinationOf, exportedWorkspace, pageOf, sourceOf, subscriptionOf } from './fixtures/exported-workspace.ts'
import { parseWorkspace } from './workspace-export.ts'

const parse = (value: unknown): ReturnType<typeof parseWorkspace> => parseWorkspace(JSON.stringify(value), 'workspace.json')

test('pages of answers are joined; what is not known is counted', () => {
  const { sources, destinations, subscriptions, others } = parse(exportedWorkspace())
  assert.deepEqual([sources.length, destinations.length, subscriptions.size], [3, 8, 2])
  assert.deepEqual([...others], [['warehouses', 1]])
  assert.deepEqual(sources[0], {
    id: 'src-web',
    slug: 'web_shop',
    name: 'Web shop',
    enabled: true,
    writeKeys: ['key-of-web_shop'],
    kind: 'Javascript',
    categories: ['Website'],
    isCloudEventSource: false,
  })
  assert.equal(destinations[1]?.name, 'Amplitude (Actions)', 'a destination without a name has the name of its integration')
  assert.equal(sources[2]?.name, 'stripe', 'a source without a name has its slug')
})

test('one object with all parts, with or without data, is an export too; an entry on two pages counts once', () => {
  const parts = {
    sources: [sourceOf('a', 'a'), sourceOf('a', 'a')],
    destinations: [destinationOf('d', 'x')],
    subscriptions: [subscriptionOf('s', 'd', 'act')],
  }
  for (const value of [parts, { data: parts }, [{ data: { sources: parts.sources } }, { ...parts, sources: [] }]]) {
    const { sources, destinations, subscriptions } = parse(value)
    assert.deepEqual([sources.length, destinations.length, subscriptions.get('d')?.length], [1, 1, 1])
  }
})

test('null is the same as a missing field', () => {
  const { destinations, subscriptions } = parse({
    destinations: [{ ...destinationOf('d', 'x'), settings: null, enabled: null }],
    subscriptions: [{ ...subscriptionOf('s', 'd', 'act'), trigger: null, settings: null, modelId: null }],
  })
  assert.deepEqual(destinations[0]?.settings, {})
  assert.deepEqual(
    subscriptions.get('d')?.map(({ trigger, mapping, isReverseEtl }) => ({ trigger, mapping, isReverseEtl })),
    [{ trigger: '', mapping: {}, isReverseEtl: false }],
  )
})

test('a file that is not an export is rejected with the place and without quoting values', () => {
  const wrong: [value: unknown, message: RegExp][] = [
    [null, /workspace\.json must be an object/],
    ['sources', /workspace\.json must be an object/],
    [[1], /workspace\.json\[0\] must be an object/],
    [[], /neither sources nor destinations/],
    [{}, /neither sources nor destinations/],
    [{ data: [] }, /workspace\.json\.data must be an object/],
    [{ data: { sources: { a: 1 } } }, /data\.sources must be a list/],
    [pageOf('sources', [[]]), /data\.sources\[0\] must be an object/],
    [pageOf('sources', [{ ...sourceOf('a', 'a'), id: 7 }]), /sources\[0\]\.id must be a string/],
    [pageOf('sources', [{ ...sourceOf('a', 'a'), slug: ' ' }]), /sources\[0\]\.slug is missing/],
    [pageOf('sources', [{ ...sourceOf('a', 'a'), writeKeys: 'key' }]), /writeKeys must be a list of strings/],
    [pageOf('sources', [{ ...sourceOf('a', 'a'), enabled: 'yes' }]), /enabled must be true or false/],
    [pageOf('destinations', [{ ...destinationOf('d', 'x'), metadata: 'x' }]), /destinations\[0\]\.metadata must be an object/],
    [pageOf('destinations', [{ ...destinationOf('d', 'x'), settings: ['secret-value'] }]), /settings must be an object/],
    [pageOf('destinations', [{ ...destinationOf('d', 'x'), sourceId: undefined }]), /sourceId is missing/],
    [{ data: { destinations: [destinationOf('d', 'x')], subscriptions: { d: [] } } }, /data\.subscriptions must be a list/],
  ]
  for (const [value, message] of wrong)
    assert.throws(
      () => parse(value),
      (error) => error instanceof CommandProblem && error.exit === 2 && message.test(error.message) && !/secret-value/.test(error.message),
    )
  assert.throws(() => parseWorkspace('{"data":', 'x'), /x is not valid JSON/)
  assert.throws(() => parseWorkspace(`{"sources":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 'x'), CommandProblem)
})

test('keys of Object.prototype are ordinary keys', () => {
  const text = `{"__proto__":[{}],"constructor":[1],"sources":[${JSON.stringify(sourceOf('a', 'a')).replace('{', '{"__proto__":{"isAdmin":true},')}],
    "destinations":[${JSON.stringify(destinationOf('d', '__proto__', { settings: {} })).replace('"settings":{}', '"settings":{"__proto__":{"x":1}}')}]}`
  const { sources, destinations, others } = parseWorkspace(text, 'x')
  assert.equal(sources.length, 1)
  assert.deepEqual([...others.keys()], ['__proto__', 'constructor'])
  assert.deepEqual(Object.keys(destinations[0]?.settings ?? {}), ['__proto__'])
  assert.equal(({} as { isAdmin?: boolean }).isAdmin, undefined)
})
