// Every definition of the package: it is in the catalogue, its schemas are valid, and they accept and refuse what the definition itself does.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import type { JsonObject } from '@switchyard/protocol'
import { Ajv, type ValidateFunction } from 'ajv'
import { type CatalogIntegration, type Conditions, type ObjectSchema, readCatalog, readIntegration } from './catalog.ts'
import { currentStamp, STAMP_FILE } from './catalog-files.ts'
import { type Definition, require } from './definitions.ts'
import { FEATURES_SETTING } from './feature-flags.ts'
import { sampleMapping, sampleObject, sampleSettings } from './fixtures/sample-settings.ts'
import { definitionSettings, HOST_SETTINGS, hostSettings } from './host-settings.ts'
import { NEEDS, PROBLEMS } from './known-problems.ts'

interface Library {
  manifest: Record<string, { definition: Definition; directory: string }>
  Destination: new (
    definition: Definition,
  ) => { validateSettings(settings: JsonObject): void; actions: Record<string, { schema?: object }> }
}

const { manifest, Destination } = require('@segment/action-destinations') as Library
const { validateSchema } = require('@segment/actions-core/schema-validation') as {
  validateSchema: (value: JsonObject, schema: object) => boolean
}
const { transform } = require('@segment/actions-core/mapping-kit') as { transform: (mapping: JsonObject, event: JsonObject) => JsonObject }
// Not strict: it would refuse keywords that start with "x-" and formats that it does not know, which JSON Schema allows.
const ajv = new Ajv({ strict: false, logger: false })

const compiledSchemas = new Map<ObjectSchema, ValidateFunction>()

const entries = await readCatalog()
const integrations = await Promise.all(entries.map(async ({ slug }) => (await readIntegration(slug)) as CatalogIntegration))
const definitions = new Map(Object.values(manifest).map(({ definition }) => [definition.slug, definition]))
const definitionOf = ({ slug }: CatalogIntegration): Definition => definitions.get(slug) as Definition

test('every definition of the package is in the catalogue', (t) => {
  const registered = Object.entries(manifest).map(([id, { definition, directory }]) => [definition.slug, [definition.name, directory, id]])
  const listed = integrations.map(({ slug, name, directory, segmentId }) => [slug, [name, directory, segmentId]])
  assert.deepEqual(Object.fromEntries(listed), Object.fromEntries(registered))
  assert.equal(listed.length, 214)
  for (const integration of integrations) {
    const { slug, actions, presets } = integration
    const definition = definitionOf(integration)
    const entry = entries.find((candidate) => candidate.slug === slug)
    assert.deepEqual(
      entry,
      Object.fromEntries(Object.keys(entry as object).map((key) => [key, integration[key as keyof CatalogIntegration]])),
    )
    assert.deepEqual(
      actions.map((action) => action.slug),
      Object.keys(definition.actions),
    )
    for (const { action } of presets) assert.ok(actions.some((candidate) => candidate.slug === action))
    assert.notEqual(integration.description, '')
  }
  const count = (matches: (integration: CatalogIntegration) => boolean): number => integrations.filter(matches).length
  t.diagnostic(
    `${entries.length} integrations (${count(({ available }) => available)} available, ${count(({ auth }) => auth === 'oauth2')} with OAuth), ` +
      `${integrations.flatMap(({ actions }) => actions).length} actions (${integrations.flatMap(({ actions }) => actions).filter(({ batch }) => batch).length} take batches), ` +
      `${integrations.flatMap(({ presets }) => presets).length} presets of ${count(({ presets }) => presets.length > 0)} integrations`,
  )
})

test('every schema is valid JSON Schema, and contains only JSON', (t) => {
  const schemas = integrations.flatMap(({ slug, settings, actions }) => [
    [slug, settings] as const,
    ...actions.map((action) => [`${slug} ${action.slug}`, action.fields] as const),
  ])
  for (const [name, schema] of schemas) {
    assert.ok(ajv.validateSchema({ $schema: 'http://json-schema.org/draft-07/schema#', ...schema }), `${name}: ${ajv.errorsText()}`)
    compiled(schema)
  }
  t.diagnostic(`${schemas.length} schemas`)
})

test('every integration accepts settings that are made from its schema', () => {
  for (const integration of integrations) {
    const settings = sampleSettings(integration)
    assertFits(integration.settings, settings, integration.slug)
    const own = definitionSettings(integration.slug, settings)
    assert.doesNotThrow(() => new Destination(definitionOf(integration)).validateSettings(own), integration.slug)
  }
})

test('the schema of the settings refuses what the definition refuses: a missing setting, another type, a value that is not a choice', (t) => {
  let cases = 0
  for (const integration of integrations) {
    const settings = sampleSettings(integration)
    const fits = compiled(integration.settings)
    const destination = new Destination(definitionOf(integration))
    for (const [key, field] of Object.entries(integration.settings.properties)) {
      if (key === 'oauth' || key === FEATURES_SETTING || Object.hasOwn(hostSettings(integration.slug).settings ?? {}, key)) continue
      const { [key]: _removed, ...rest } = settings
      const without = definitionSettings(integration.slug, rest)
      const wrong: JsonObject[] = [{ ...without, [key]: { not: 'a text' } }]
      if (integration.settings.required.includes(key)) wrong.push(without)
      if (field.oneOf !== undefined) wrong.push({ ...without, [key]: 'no such choice' })
      for (const candidate of wrong) {
        const before = structuredClone(candidate)
        assert.throws(() => destination.validateSettings(candidate), `${integration.slug} ${JSON.stringify(before)}`)
        const { [key]: _own, ...others } = settings
        assert.ok(!fits({ ...others, ...before }), `${integration.slug} ${key}`)
        cases += 1
      }
    }
  }
  t.diagnostic(`${cases} refused settings`)
})

test('every action accepts fields that are made from its schema, and a mapping of its defaults is of its fields alone', () => {
  for (const integration of integrations) {
    const destination = new Destination(definitionOf(integration))
    for (const action of integration.actions) {
      const fields = sampleObject(action.fields, { useDefaults: false })
      const name = `${integration.slug} ${action.slug}`
      assertFits(action.fields, fields, name)
      const { schema } = destination.actions[action.slug] as { schema?: object }
      if (schema !== undefined) assert.ok(validateSchema(structuredClone(fields), schema), name)
      const mapping = sampleMapping(action)
      for (const key of [
        ...Object.keys(mapping),
        ...integration.presets.filter((preset) => preset.action === action.slug).flatMap(({ mapping }) => Object.keys(mapping)),
      ])
        assert.ok(Object.hasOwn(action.fields.properties, key), `${name} ${key}`)
      assert.doesNotThrow(() => transform(mapping, { type: 'track', event: 'Order Completed', userId: 'u1' }), name)
    }
  }
})

test('secrets are marked, by type and by name', () => {
  const secretsOf = (slug: string): string[] => {
    const { properties } = (integrations.find((integration) => integration.slug === slug) as CatalogIntegration).settings
    return Object.keys(properties).filter((key) => properties[key]?.writeOnly === true)
  }
  assert.deepEqual(secretsOf('actions-amplitude'), ['apiKey', 'secretKey'])
  // Plain text in the definition.
  assert.deepEqual(secretsOf('actions-mixpanel'), ['projectToken', 'apiSecret'])
  assert.deepEqual(secretsOf('actions-chartmogul'), ['chartmogul_webhook_url'])
  assert.deepEqual(secretsOf('actions-memora'), ['username', 'password'])
  for (const integration of integrations)
    for (const [key, { type }] of Object.entries(definitionOf(integration).authentication?.fields ?? {}))
      if (type === 'password') assert.equal(integration.settings.properties[key]?.writeOnly, true, `${integration.slug} ${key}`)
})

test('integrations that do not work outside of Segment are marked, and each that is marked is in the catalogue', () => {
  const marked = integrations.filter(({ problem }) => problem !== null).map(({ slug }) => slug)
  assert.deepEqual(marked.sort(), Object.keys(PROBLEMS))
  const unavailable = integrations.filter(({ available }) => !available)
  assert.deepEqual(unavailable.map(({ slug }) => slug).sort(), [
    'actions-apolloio',
    'actions-google-data-manager',
    'actions-noop',
    'actions-segment',
    'actions-segment-profiles',
    'actions-twilio-messaging-omnichannel',
  ])
  for (const { slug, problem } of unavailable) assert.notEqual(problem, null, slug)
})

test('integrations whose actions all require facts about an audience are marked', () => {
  const isOfAudience = ({ fields }: CatalogIntegration['actions'][number]): boolean =>
    fields.required.some((name) => {
      const { type, default: usual = '' } = fields.properties[name] ?? {}
      // One of many columns of a file may be about an audience.
      return type !== 'object' && JSON.stringify(usual).includes('context.personas')
    })
  const ofAudiences = integrations.filter(({ actions }) => actions.every(isOfAudience))
  assert.ok(ofAudiences.length > 10)
  for (const { slug, needs, problem } of ofAudiences) assert.ok(needs !== null || problem !== null, slug)
  for (const slug of Object.keys(NEEDS)) {
    assert.ok(
      integrations.some((integration) => integration.slug === slug && integration.needs !== null),
      slug,
    )
    assert.ok(!Object.hasOwn(PROBLEMS, slug), slug)
  }
})

test('settings of ours have no name of a setting of the definition, and those that are replaced are required by it', () => {
  for (const [slug, { settings = {}, required = [], replaced = {}, env = {} }] of Object.entries(HOST_SETTINGS)) {
    const integration = integrations.find((candidate) => candidate.slug === slug)
    assert.ok(integration, slug)
    const fields = definitionOf(integration).authentication?.fields ?? {}
    for (const name of Object.keys(settings)) assert.ok(!Object.hasOwn(fields, name), `${slug} ${name}`)
    for (const name of Object.keys(replaced)) assert.equal(fields[name]?.required, true, `${slug} ${name}`)
    for (const name of required) assert.ok(integration.settings.required.includes(name), `${slug} ${name}`)
    for (const name of Object.values(env))
      assert.ok(Object.hasOwn(integration.settings.properties, name.split('.')[0] as string), `${slug} ${name}`)
  }
})

test('an OAuth integration takes the tokens of the own app', () => {
  for (const integration of integrations) {
    const { slug, auth, settings } = integration
    const { oauth } = settings.properties
    assert.equal(oauth !== undefined, auth === 'oauth2', slug)
    assert.equal(auth === 'oauth2', definitionOf(integration).authentication?.scheme.startsWith('oauth') === true, slug)
    if (oauth === undefined) continue
    const secrets = Object.keys(oauth.properties ?? {}).filter((key) => oauth.properties?.[key]?.writeOnly === true)
    assert.deepEqual(
      [Object.keys(oauth.properties ?? {}), secrets],
      [
        ['clientId', 'clientSecret', 'refreshToken', 'accessToken'],
        ['clientSecret', 'refreshToken', 'accessToken'],
      ],
    )
  }
})

test('fields are marked as dynamic if the definition says so and has a function that asks the tool', (t) => {
  const counts = { integrations: 0, actions: 0, values: 0, keys: 0 }
  for (const integration of integrations) {
    let dynamicActions = 0
    for (const { slug, fields } of integration.actions) {
      const { dynamicFields = {}, fields: defined } = definitionOf(integration).actions[slug] ?? assert.fail(slug)
      let dynamicFieldsOf = 0
      const visit = (properties: ObjectSchema['properties'], own: typeof defined, handlers: Record<string, unknown>): void => {
        for (const [name, field] of Object.entries(properties)) {
          const handler = handlers[name]
          const inner = (typeof handler === 'object' && handler !== null ? handler : {}) as Record<string, unknown>
          const expected = own[name]?.dynamic !== true ? undefined : typeof handler === 'function' ? 'values' : inner['__keys__'] && 'keys'
          assert.equal(field['x-dynamic'], expected, `${integration.slug} ${slug} ${name}`)
          if (field['x-dynamic'] !== undefined) {
            counts[field['x-dynamic']]++
            dynamicFieldsOf++
          }
          visit(field.properties ?? field.items?.properties ?? {}, own[name]?.properties ?? {}, inner)
        }
      }
      visit(fields.properties, defined, dynamicFields)
      if (dynamicFieldsOf > 0) dynamicActions++
    }
    counts.actions += dynamicActions
    if (dynamicActions > 0) counts.integrations++
  }
  t.diagnostic(JSON.stringify(counts))
  assert.deepEqual(counts, { integrations: 24, actions: 56, values: 81, keys: 27 })
})

test('an OAuth integration asks only for what its code reads, and never for the client if there is an access token', () => {
  const asked = ({ settings }: CatalogIntegration): string[] => {
    const { properties = {} } = settings.properties['oauth'] ?? {}
    return Object.keys(properties).filter((key) => properties[key]?.['x-hidden'] !== true)
  }
  const asking = (...keys: string[]): string[] =>
    integrations
      .filter((integration) => asked(integration).join() === keys.join())
      .map(({ slug }) => slug)
      .sort()
  assert.equal(asking('clientId', 'clientSecret', 'refreshToken', 'accessToken').length, 20)
  assert.deepEqual(asking('clientId', 'clientSecret', 'accessToken'), ['actions-yahoo-audiences', 'yotpo-actions'])
  assert.deepEqual(asking('refreshToken', 'accessToken'), [])
  assert.deepEqual(asking('accessToken'), [
    'actions-1plusx-asset-api',
    'actions-acoustic-campaign',
    'actions-attio',
    'actions-facebook-custom-audiences',
    'actions-intercom-cloud',
    'actions-listrak',
    'actions-m3ter',
    'actions-marketo-static-lists',
    'actions-responsys',
    'actions-salesforce-marketing-cloud',
    'actions-taboola-actions',
    'actions-tiktok-audiences',
  ])
  const needing = integrations.filter(({ settings }) => settings.required.includes('oauth'))
  assert.equal(needing.length, 26)
  for (const { slug, settings } of needing) {
    const { oauth } = settings.properties
    const required = Object.entries(oauth?.properties ?? {}).filter(([, field]) => field['x-required-if'] !== undefined)
    for (const [key, field] of required) {
      const { conditions } = field['x-required-if'] as Conditions
      assert.ok(conditions[0]?.fieldKey === 'accessToken' && conditions[0].operator === 'is', `${slug} ${key}`)
    }
  }
})

test('a slug that is not in the catalogue has no integration', async () => {
  for (const slug of ['', 'no-such-tool', 'index', 'stamp', '../catalog/actions-slack', '__proto__', 'constructor', 'ACTIONS-SLACK'])
    assert.equal(await readIntegration(slug), null, slug)
})

test('several processes may generate an outdated catalogue at the same time, and one that may not start processes reads what is there', async (t) => {
  // A copy of the package, because other tests read the catalogue of this one.
  const copy = fileURLToPath(new URL(`../dist/copy-${process.pid}/`, import.meta.url))
  t.after(() => rmSync(copy, { recursive: true, force: true }))
  cpSync(import.meta.dirname, join(copy, 'src'), { recursive: true })
  const code = `import { readCatalog, readIntegration } from ${JSON.stringify(pathToFileURL(join(copy, 'src', 'catalog.ts')))}
    const slugs = (await readCatalog()).map(({ slug }) => slug)
    const all = await Promise.all(slugs.map((slug) => readIntegration(slug)))
    console.log(all.filter((integration) => integration.actions.length > 0).length)`
  const read = (...flags: string[]): Promise<{ stdout: string; stderr: string }> =>
    promisify(execFile)(process.execPath, [...flags, '--input-type=module', '-e', code])
  const limited = ['--permission', '--allow-fs-read=*', '--no-warnings']
  const stamp = join(copy, 'dist', 'catalog', STAMP_FILE)

  await assert.rejects(read(...limited), /ENOENT/)
  for (const { stdout, stderr } of await Promise.all([read(), read(), read()])) assert.deepEqual([stdout, stderr], ['214\n', ''])
  assert.equal(readFileSync(stamp, 'utf8'), currentStamp())
  assert.deepEqual(
    readdirSync(join(copy, 'dist', 'catalog')).filter((name) => !/^(?:[a-z0-9-]+\.json|stamp)$/.test(name)),
    [],
  )

  writeFileSync(stamp, 'outdated')
  assert.equal((await read(...limited)).stdout, '214\n')
  assert.equal(readFileSync(stamp, 'utf8'), 'outdated')
  assert.equal((await read()).stdout, '214\n')
  assert.equal(readFileSync(stamp, 'utf8'), currentStamp())
})

function assertFits(schema: ObjectSchema, value: JsonObject, name: string): void {
  const fits = compiled(schema)
  assert.ok(fits(value), `${name}: ${ajv.errorsText(fits.errors)} in ${JSON.stringify(value)}`)
}

/** Compiling all of them takes seconds. */
function compiled(schema: ObjectSchema): ValidateFunction {
  const known = compiledSchemas.get(schema) ?? ajv.compile(schema)
  compiledSchemas.set(schema, known)
  return known
}
