// The table of feature flags against the code of the definitions, and what a destination can override.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { readIntegration } from './catalog.ts'
import { definitionsFolder, loadDefinition, registeredDefinitions, require } from './definitions.ts'
import { FEATURES_SETTING, featureFlags, featuresOf, flaggedIntegrations } from './feature-flags.ts'

/** The code of a definition without its own tests, and of the modules of Segment that it shares with others of its kind. */
function codeOf(folder: string): string {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.js') && !/(^|[/\\])_+tests?_+[/\\]/.test(path))
    .map((path) => readFileSync(join(folder, path), 'utf8'))
    .join('\n')
}

const ENGAGE = codeOf(join(dirname(require.resolve('@segment/actions-shared')), 'engage'))

/** Names that the code looks up, written out there or kept in a constant. */
function flagsIn(code: string): Set<string> {
  const names = [
    ...code.matchAll(/\bfeatures\??\.?\[\s*['"]([^'"]+)['"]/g),
    ...code.matchAll(/\bisFeatureActive\(\s*['"]([^'"]+)['"]/g),
  ].map(([, name]) => name as string)
  const constants = code.matchAll(/\b(?:features\??\.?\[|isFeatureActive\()\s*(?:\w+\.)?([A-Z][A-Z0-9_]+)\b/g)
  for (const [, constant] of constants) {
    const values = [...code.matchAll(new RegExp(`\\b${constant} = ['"]([^'"]+)['"]`, 'g'))].map(([, value]) => value as string)
    assert.ok(values.length > 0, `the value of ${constant} was not found`)
    names.push(...values)
  }
  return new Set(names)
}

test('every flag that a definition asks for is decided, and none that no definition asks for', () => {
  const decided = new Set<string>()
  for (const { directory } of registeredDefinitions()) {
    const code = codeOf(join(definitionsFolder(), directory))
    const all = code.includes('@segment/actions-shared') && code.includes('Performer') ? `${code}\n${ENGAGE}` : code
    if (!/\b(features|isFeatureActive)\b/.test(all)) continue
    const { slug } = loadDefinition(directory)
    assert.deepEqual([...flagsIn(all)].sort(), Object.keys(featureFlags(slug)).sort(), slug)
    decided.add(slug)
  }
  assert.deepEqual([...decided].sort(), flaggedIntegrations().sort())
})

test('a destination gets the default of each flag of its integration, unless it overrides it', () => {
  const kafka = 'actions-kafka-optimize-connection'
  assert.deepEqual(featuresOf('actions-kafka', {}), { [kafka]: true })
  assert.deepEqual(featuresOf('actions-kafka', { features: { [kafka]: false, 'mixpanel-multistatus': true } }), { [kafka]: false })
  assert.deepEqual(featuresOf('actions-slack', { features: { [kafka]: true } }), {})
})

test('the setting lists the flags of the integration with their reasons, and no definition has a setting of its name', async () => {
  for (const { directory } of registeredDefinitions()) {
    const { slug, authentication } = loadDefinition(directory)
    assert.ok(!Object.hasOwn(authentication?.fields ?? {}, FEATURES_SETTING), slug)
    const flags = (await readIntegration(slug))?.settings.properties[FEATURES_SETTING]
    assert.deepEqual(Object.keys(flags?.properties ?? {}), Object.keys(featureFlags(slug)), slug)
  }
  const { properties } = (await readIntegration('actions-mixpanel'))?.settings ?? {}
  const flag = properties?.[FEATURES_SETTING]?.properties?.['mixpanel-multistatus']
  assert.match(flag?.description ?? '', /is not retried\. Default: false\.$/)
})
