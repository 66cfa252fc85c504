// `switchyard catalog`: finds integrations, and shows the settings, actions and presets of one.

import type { JsonObject } from '@switchyard/protocol'
import type { Command } from '../line/command.ts'
import { type Column, cell, showAll, showFacts, showResult } from '../line/listing.ts'
import { at } from '../line/references.ts'

const COLUMNS: readonly Column[] = [
  ['slug', ({ slug }) => slug],
  ['name', ({ name }) => name],
  ['auth', ({ auth }) => auth],
  ['actions', ({ actionCount }) => actionCount],
  ['presets', ({ presetCount }) => presetCount],
  ['problem', ({ problem }) => problem],
]

interface Field {
  title: string
  type?: string | string[]
  description?: string
  writeOnly?: boolean
  oneOf?: { const: unknown }[]
  'x-required-if'?: unknown
}

export const CATALOG_COMMANDS: readonly Command[] = [
  {
    name: 'catalog',
    summary: 'List the integrations of the catalogue, or those that match some words',
    arguments: [
      { name: 'WORD', description: 'Words that must all be in the name, the slug or the description.', many: true, optional: true },
    ],
    flags: {
      auth: {
        placeholder: 'AUTH',
        description: 'List only integrations that authenticate in this way.',
        values: ['none', 'custom', 'basic', 'oauth2', 'oauth-managed'],
      },
    },
    examples: ['switchyard catalog', 'switchyard catalog analytics'],
    async run(call) {
      const words = call.arguments.join(' ')
      const query = { query: words === '' ? undefined : words, auth: call.flag('auth') }
      const { hint } = await call.api.get('/api/catalog', { limit: 1 })
      await showAll(call, '/api/catalog', query, COLUMNS, typeof hint === 'string' ? hint : 'No integration matches.')
    },
  },
  {
    name: 'catalog show',
    summary: 'Show the settings, actions and presets of an integration',
    arguments: [{ name: 'SLUG', description: 'The integration, as `switchyard catalog` lists it.' }],
    examples: ['switchyard catalog show actions-slack'],
    async run(call) {
      const integration = await call.api.get(at`/api/catalog/${call.arguments[0] as string}`)
      showResult(call, integration, () => {
        const { slug, name, description, auth, available, problem, settings, actions, presets } = integration
        showFacts(call.out, [
          ['slug', slug],
          ['name', name],
          ['description', description],
          ['auth', auth],
          ...(problem === null ? [] : [[available === true ? 'does not work' : 'not available', problem] as [string, unknown]]),
          ...settingFacts(settings as { properties: Record<string, Field>; required: string[] }),
          ...(actions as JsonObject[]).map((action): [string, unknown] => [`action ${cell(action['slug'])}`, action['name']]),
          ...(presets as JsonObject[]).map((preset): [string, unknown] => [
            `preset ${cell(preset['name'])}`,
            `${cell(preset['action'])} if ${cell(preset['subscribe'])}${preset['type'] === 'automatic' ? '' : ' (not used by default)'}`,
          ]),
        ])
      })
    },
  },
]

function settingFacts({ properties, required }: { properties: Record<string, Field>; required: string[] }): [string, unknown][] {
  return Object.entries(properties).map(([name, field]) => {
    const facts = [
      required.includes(name) ? 'required' : field['x-required-if'] === undefined ? 'optional' : 'required with certain other settings',
      ...(field.writeOnly === true ? ['secret'] : []),
      [field.type ?? []].flat().join(' or '),
      ...(field.oneOf === undefined ? [] : [`one of ${field.oneOf.map((choice) => String(choice.const)).join(', ')}`]),
    ]
    return [`setting ${name}`, `${field.title} (${facts.filter(Boolean).join(', ')})`]
  })
}
