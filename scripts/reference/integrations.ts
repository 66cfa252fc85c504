// The pages of the integrations: a page for each, and an index. Everything in them comes from the catalogue, so no definition is loaded.
// Names and descriptions are Segment's (quoted-text.ts). The pages are short: `switchyard catalog show --json` prints
// the mappings of presets and the nested fields.

import { countsOf } from '../../e2e/integrations/seen/counts.ts'
import {
  type CatalogAction,
  type CatalogAuth,
  type CatalogEntry,
  type CatalogIntegration,
  type FieldSchema,
  type ObjectSchema,
  readCatalog,
  readIntegration,
} from '../../packages/integrations/src/catalog.ts'
import { code, heading, table } from './markdown.ts'
import { quoted, quotedCode } from './quoted-text.ts'

export const INTEGRATIONS_FOLDER = 'docs/integrations'

const SOURCE = 'the definitions of @segment/action-destinations'
const MAX_DESCRIPTION = 240
const MAX_DEFAULT = 60
const MAX_CHOICES = 8

const AUTH: Record<CatalogAuth, string> = {
  none: 'none',
  custom: 'API key or other credentials in the settings',
  basic: 'user name and password',
  oauth2: 'OAuth 2.0',
}

export interface IntegrationPage {
  /** Relative to the root of the repository. */
  path: string
  text: string
}

/** All pages, with the index first. */
export async function integrationPages(): Promise<IntegrationPage[]> {
  const entries = await readCatalog()
  const pages: IntegrationPage[] = [{ path: `${INTEGRATIONS_FOLDER}/README.md`, text: indexText(entries) }]
  for (const { slug } of entries) {
    const integration = await readIntegration(slug)
    if (integration !== null) pages.push({ path: `${INTEGRATIONS_FOLDER}/${slug}.md`, text: integrationText(integration) })
  }
  return pages
}

function indexText(entries: readonly CatalogEntry[]): string {
  const { all, working, ordinary, ofAudiences } = countsOf(entries)
  return [
    heading('Integrations', SOURCE),
    `Switchyard can send to ${ordinary} tools with Segment’s own open-source integrations, and to ${ofAudiences} more if your messages say who is in an audience. [Send events to your tools](../guide/integrations.md) shows how to add one, and what happens to a message that is sent to it.`,
    '',
    `The names, descriptions and code of the integrations come from the npm package [\`@segment/action-destinations\`](https://github.com/segmentio/action-destinations), which Segment publishes under the MIT licence. The names are trademarks of their owners.`,
    '',
    `The other ${all - working} do not work outside of Segment. Their pages say why. \`npm run coverage:integrations\` prints these numbers, and compares the requests of each integration with those of Segment’s library.`,
    '',
    table(
      ['Integration', 'Slug', 'Category', 'Auth', 'Actions', 'Presets'],
      entries.map(({ slug, title, category, auth, actionCount, presetCount, problem, needs }) => [
        `[${quoted(title)}](${slug}.md)`,
        code(slug),
        category,
        problem !== null ? 'does not work' : needs === null ? auth : `${auth}, needs audiences`,
        String(actionCount),
        String(presetCount),
      ]),
    ),
    '',
  ].join('\n')
}

export function integrationText(integration: CatalogIntegration): string {
  const { slug, name, title, description, auth, problem, needs, deletes, settings, actions, presets } = integration
  const actionNames = new Map(actions.map((action) => [action.slug, action.name]))
  return [
    heading(quoted(title), SOURCE),
    ...(description === '' ? [] : [quoted(description), '']),
    `**Slug:** ${code(slug)} · **Name in \`integrations\` of messages:** ${code(name)} · **Authentication:** ${AUTH[auth]}${deletes ? ' · **Deletes users** on request' : ''}`,
    '',
    ...(problem === null
      ? ['```sh', `./switchyard destinations create 'NAME' --source SOURCE \\\n  --integration ${slug}${settingFlags(settings)}`, '```']
      : [`**This integration does not work with Switchyard.** ${problem}`]),
    ...(problem === null && needs !== null ? ['', `**Needs audiences.** ${needs}`] : []),
    '',
    '## Settings',
    '',
    ...(Object.keys(settings.properties).length === 0 ? ['None.'] : [settingsTable(settings)]),
    ...(auth === 'oauth2' ? ['', '[OAuth](../guide/integrations.md#oauth) describes how to get the values of `oauth`.'] : []),
    '',
    '## Presets',
    '',
    ...(presets.length === 0
      ? ['None: add subscriptions for the actions that you need.']
      : [
          table(
            ['Preset', 'Action', 'Runs when'],
            presets.map(({ name: preset, action, subscribe, type }) => [
              quoted(preset),
              quoted(actionNames.get(action) ?? action),
              type === 'automatic' ? quotedCode(subscribe) : 'only if you add it',
            ]),
          ),
        ]),
    '',
    '## Actions',
    '',
    ...actions.flatMap(actionText),
  ].join('\n')
}

function actionText({ slug, name, description, defaultSubscription, batch, syncMode, fields }: CatalogAction): string[] {
  const facts = [
    ...(defaultSubscription === null ? [] : [`Usually runs when ${quotedCode(defaultSubscription)}.`]),
    ...(batch ? ['Takes several messages in one request.'] : []),
    ...(syncMode === null ? [] : [syncModeText(syncMode)]),
  ]
  const shown = Object.entries(fields.properties).filter(([, field]) => field['x-hidden'] !== true)
  return [
    `### ${quoted(name)}`,
    '',
    [code(slug), ...(description === '' ? [] : [quoted(description)]), ...facts].join(' · '),
    '',
    ...(shown.length === 0 ? ['No fields.'] : [fieldsTable(shown, fields.required)]),
    '',
  ]
}

function syncModeText({ oneOf = [], default: usual }: FieldSchema): string {
  const modes = oneOf.map(({ const: mode }) => code(String(mode))).join(', ')
  return `Sync modes: ${modes}. Default: ${code(String(usual))}.`
}

function settingsTable({ properties, required }: ObjectSchema): string {
  return table(
    ['Setting', 'Type', 'Description'],
    Object.entries(properties).map(([key, field]) => [
      code(key),
      [typeOf(field), ...(field.writeOnly === true ? ['secret'] : []), ...needOf(key, field, required)].join(', '),
      descriptionOf(key, field),
    ]),
  )
}

function fieldsTable(shown: readonly (readonly [string, FieldSchema])[], required: readonly string[]): string {
  return table(
    ['Field', 'Type', 'Default', 'Description'],
    shown.map(([key, field]) => [
      code(key),
      [typeOf(field), ...needOf(key, field, required)].join(', '),
      defaultOf(field.default),
      descriptionOf(key, field),
    ]),
  )
}

function needOf(key: string, field: FieldSchema, required: readonly string[]): string[] {
  if (required.includes(key)) return ['required']
  return field['x-required-if'] === undefined ? [] : ['required with certain settings']
}

function typeOf({ type, format, items, oneOf }: FieldSchema): string {
  if (oneOf !== undefined) return 'choice'
  const name = Array.isArray(type) ? type.filter((each) => each !== 'null').join(' or ') : String(type ?? 'any')
  if (name === 'array') return items?.type === 'object' ? 'list of objects' : 'list'
  return format === 'date-time' || format === 'date-like' ? 'time' : name
}

function descriptionOf(key: string, { title, description = '', oneOf, properties }: FieldSchema): string {
  const sentences = [description.trim() === '' && title !== key ? quoted(title) : quoted(cut(description, MAX_DESCRIPTION))]
  if (oneOf !== undefined && oneOf.length > 0) {
    const values = oneOf.slice(0, MAX_CHOICES).map((choice) => quotedCode(String(choice.const)))
    sentences.push(`Choices: ${values.join(', ')}${oneOf.length > MAX_CHOICES ? ` and ${oneOf.length - MAX_CHOICES} more` : ''}.`)
  }
  const inner = Object.keys(properties ?? {})
  if (inner.length > 0) sentences.push(`Contains ${inner.map(code).join(', ')}.`)
  return sentences.filter((sentence) => sentence !== '').join(' ')
}

/** The default of a field: usually the place in the message that it is read from. */
function defaultOf(value: unknown): string {
  const place = placesOf(value)
  if (place !== null) return place.map(quotedCode).join(', else ')
  if (value === undefined || value === '') return ''
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return quotedCode(cut(text, MAX_DEFAULT))
}

function placesOf(value: unknown): string[] | null {
  if (typeof value !== 'object' || value === null) return null
  const { '@path': path, '@if': condition, '@template': template } = value as Record<string, unknown>
  if (typeof path === 'string') return [path]
  if (typeof template === 'string') return [template]
  const { exists, then, else: otherwise } = (condition ?? {}) as Record<string, unknown>
  if (JSON.stringify(exists) !== JSON.stringify(then)) return null
  const [first, second] = [placesOf(then), placesOf(otherwise)]
  return first === null || second === null ? null : [...first, ...second]
}

/** Cut between words, and not inside of a link or code. */
function cut(text: string, max: number): string {
  const line = text.trim().replaceAll(/\s+/g, ' ')
  if (line.length <= max) return line
  const start = line.slice(0, max)
  const words = start.slice(0, start.lastIndexOf(' ') > max / 2 ? start.lastIndexOf(' ') : max)
  return `${words.replace(/\[[^\]]*(?:\](?:\([^)]*)?)?$/, '').trimEnd()} …`
}

function settingFlags({ properties, required }: ObjectSchema): string {
  // Objects, such as `oauth`, can only be given in a file.
  if (required.some((key) => properties[key]?.type === 'object')) return ' \\\n  --settings-file settings.yaml'
  return required.map((key) => ` \\\n  --set ${key}=${properties[key]?.writeOnly === true ? `env:${variableOf(key)}` : '…'}`).join('')
}

function variableOf(key: string): string {
  return key
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll(/\W+/g, '_')
    .toUpperCase()
}
