// `switchyard catalog`: finds integrations, and shows the settings, presets and actions of one.

import type { JsonObject } from '@switchyard/protocol'
import { ROOT_TRANSFORM } from '../../destinations/webhook/shaping/mapping.ts'
import { type Command, UsageProblem } from '../line/command.ts'
import { type Column, cell, showAll, showFacts, showResult } from '../line/listing.ts'
import type { Output } from '../line/output.ts'
import { at } from '../line/references.ts'

const COLUMNS: readonly Column[] = [
  ['slug', ({ slug }) => slug],
  ['name', ({ title, name }) => title ?? name],
  ['category', ({ category }) => category],
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
  items?: Pick<Field, 'type' | 'oneOf' | 'properties'>
  default?: unknown
  properties?: Record<string, Field>
  'x-required-if'?: unknown
  'x-dynamic'?: 'values' | 'keys'
}

interface Fields {
  properties: Record<string, Field>
  required: string[]
}

interface Action {
  slug: string
  name: string
  defaultSubscription: string | null
  batch: boolean
  fields: Fields
}

export const CATALOG_COMMANDS: readonly Command[] = [
  {
    name: 'catalog',
    summary: 'List the integrations of the catalogue, or those that match some words',
    arguments: [
      {
        name: 'WORD',
        description: 'Words that must all be in the name, the slug, the description or the category: `email`, `crm ads`.',
        many: true,
        optional: true,
      },
    ],
    flags: {
      auth: {
        placeholder: 'AUTH',
        description: 'List only integrations that authenticate in this way.',
        values: ['none', 'custom', 'basic', 'oauth2'],
      },
      category: { placeholder: 'CATEGORY', description: 'List only integrations of this category, such as `analytics` or `messaging`.' },
    },
    examples: ['switchyard catalog', 'switchyard catalog email', 'switchyard catalog --category analytics'],
    async run(call) {
      const words = call.arguments.join(' ')
      const query = { query: words === '' ? undefined : words, auth: call.flag('auth'), category: call.flag('category') }
      const { hint } = await call.api.get('/api/catalog', { limit: 1 })
      await showAll(call, '/api/catalog', query, COLUMNS, typeof hint === 'string' ? hint : 'No integration matches.')
    },
  },
  {
    name: 'catalog show',
    summary: 'Show the settings, presets and actions of an integration, with the fields of each action',
    details: 'The values of a dynamic field come from the tool: `switchyard destinations choices` lists them.',
    arguments: [{ name: 'SLUG', description: 'The integration, as `switchyard catalog` lists it.' }],
    flags: { action: { placeholder: 'ACTION', description: 'Show only the fields of this action, by its slug.' } },
    examples: ['switchyard catalog show actions-slack', 'switchyard catalog show actions-amplitude --action logEventV2'],
    async run(call) {
      const integration = await call.api.get(at`/api/catalog/${call.arguments[0] as string}`)
      showResult(call, integration, () => {
        const { slug, name, title, description, auth, available, problem, needs, settings, presets } = integration
        const actions = chosenActions(integration['actions'] as Action[], call.flag('action'))
        if (call.has('action')) return showActions(call.out, actions)
        showFacts(call.out, [
          ['slug', slug],
          ['name', title ?? name],
          ['name in `integrations`', name],
          ['description', description],
          ['category', integration['category']],
          ['auth', auth],
          ...(problem === null ? [] : [[available === true ? 'does not work' : 'not available', problem] as [string, unknown]]),
          ...(needs === null ? [] : [['needs', needs] as [string, unknown]]),
          ...fieldFacts(settings as Fields, 'setting '),
          ...(presets as JsonObject[]).map((preset): [string, unknown] => [
            `preset ${cell(preset['name'])}`,
            `${cell(preset['action'])} if ${cell(preset['subscribe'])}${preset['type'] === 'automatic' ? '' : ' (not used by default)'}`,
          ]),
        ])
        showActions(call.out, actions)
      })
    },
  },
]

function chosenActions(actions: readonly Action[], slug: string | undefined): readonly Action[] {
  const chosen = actions.filter((action) => slug === undefined || action.slug === slug)
  if (chosen.length > 0 || slug === undefined) return chosen
  throw new UsageProblem(
    `The integration has no action ${JSON.stringify(slug)}. Its actions are: ${actions.map((each) => each.slug).join(', ')}.`,
  )
}

function showActions(out: Output, actions: readonly Action[]): void {
  for (const { slug, name, defaultSubscription, batch, fields } of actions) {
    out.line('')
    out.line(`action ${slug}: ${name}${batch ? ' (can send several messages in one request)' : ''}`)
    showFacts(out, [['usually runs if', defaultSubscription ?? undefined], ...fieldFacts(fields, '')], '  ')
  }
}

function fieldFacts({ properties, required }: Fields, prefix: string): [string, unknown][] {
  // Every action has this one, and no message fills it in.
  const { [ROOT_TRANSFORM]: _, ...shown } = properties
  return Object.entries(shown).map(([name, field]) => {
    const { title, type, oneOf, items, writeOnly } = field
    const choices = oneOf ?? items?.oneOf
    const of = items?.type === undefined ? '' : ` of ${[items.type].flat().join(' or ')}`
    const facts = [
      required.includes(name) ? 'required' : field['x-required-if'] === undefined ? 'optional' : 'required with certain values of others',
      writeOnly === true ? 'secret' : '',
      `${[type ?? []].flat().join(' or ')}${of}`,
      choices === undefined ? '' : `one of ${choices.map((choice) => String(choice.const)).join(', ')}`,
      field.default === undefined ? '' : `default ${JSON.stringify(field.default)}`,
      ...dynamicFacts(field),
    ]
    // The values of a hook have to be created by hand; its description says so.
    const note = name === 'onMappingSave' ? ` ${field.description ?? ''}` : ''
    return [`${prefix}${name}`, `${title} (${facts.filter(Boolean).join(', ')})${note}`]
  })
}

/** What `switchyard destinations choices` can list. */
function dynamicFacts({ items, properties = items?.properties ?? {}, 'x-dynamic': dynamic }: Field): string[] {
  const inner = Object.entries(properties).flatMap(([name, field]) => (field['x-dynamic'] === undefined ? [] : [name]))
  return [
    dynamic === undefined ? '' : dynamic === 'keys' ? 'dynamic keys' : 'dynamic',
    inner.length === 0 ? '' : `dynamic properties ${inner.join(', ')}`,
  ]
}
