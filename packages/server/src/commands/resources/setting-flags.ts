// The settings of an integration as flags: --settings-file, and --set NAME=VALUE. The text of a flag gets the type that the definition gives the
// setting, so that an id such as 1 stays a string where a string is needed. The service validates the values.

import { isObject, type JsonObject } from '@switchyard/protocol'
import { type Call, UsageProblem } from '../line/command.ts'
import { readObjectFile, readSecret } from '../line/input.ts'
import { at } from '../line/references.ts'
import { ApiProblem } from '../service/api.ts'

/** A setting, as the catalogue describes it. */
interface Setting {
  type?: string | readonly string[]
  oneOf?: readonly { const: unknown }[]
  properties?: Readonly<Record<string, Setting>>
}

/** `before` is the current destination. */
export async function settingsOf(call: Call, before: JsonObject | undefined): Promise<{ settings?: Record<string, unknown> }> {
  const { flag, flags, env } = call
  const [path, given] = [flag('settings-file'), flags('set')]
  if (path === undefined && given.length === 0) return {}
  const settings: Record<string, unknown> = path === undefined ? {} : { ...(await readObjectFile('--settings-file', path)) }
  const known = given.length === 0 ? {} : await knownSettings(call, flag('integration') ?? before?.['integration'])
  for (const text of given) {
    const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? []
    if (name === undefined) throw new UsageProblem('--set must have the form NAME=VALUE, such as endpoint=europe.')
    const { inside, last, setting } = placeOf(known, name)
    const isSecret = value === '-' || value.startsWith('env:')
    const isRemoved = value === 'none' && setting?.oneOf?.some((choice) => choice.const === 'none') !== true
    const read = isSecret ? await readSecret(`--set ${name}`, value, env) : value
    const parent = inside === null ? settings : childOf(settings, inside)
    parent[last] = isRemoved ? null : typedValue(read, setting)
  }
  return { settings }
}

/** The settings in the definition. Empty if the catalogue does not have the integration, which the service then says itself. */
async function knownSettings({ api }: Call, slug: unknown): Promise<Readonly<Record<string, Setting>>> {
  if (typeof slug !== 'string') return {}
  try {
    const { settings } = await api.get(at`/api/catalog/${slug}`)
    return (settings as { properties?: Record<string, Setting> }).properties ?? {}
  } catch (error) {
    if (error instanceof ApiProblem && error.code === 'integration_not_found') return {}
    throw error
  }
}

/** `oauth.clientId` is the part `clientId` of the setting `oauth`, unless a setting has this very name. */
function placeOf(
  known: Readonly<Record<string, Setting>>,
  name: string,
): { inside: string | null; last: string; setting: Setting | undefined } {
  const own = Object.hasOwn(known, name) ? known[name] : undefined
  const dot = name.indexOf('.')
  const outer = name.slice(0, dot)
  const parts = own === undefined && dot > 0 && Object.hasOwn(known, outer) ? known[outer]?.properties : undefined
  if (parts === undefined) return { inside: null, last: name, setting: own }
  const last = name.slice(dot + 1)
  return { inside: outer, last, setting: Object.hasOwn(parts, last) ? parts[last] : undefined }
}

function childOf(settings: Record<string, unknown>, name: string): Record<string, unknown> {
  const child = { ...(isObject(settings[name]) ? settings[name] : {}) }
  settings[name] = child
  return child
}

/** A text that does not fit the type is sent as it is, and the service says which type it needs. */
function typedValue(text: string, setting: Setting | undefined): unknown {
  const types = new Set([setting?.type ?? 'string'].flat())
  if (types.has('string')) return text
  const isNumber = types.has('number') || types.has('integer')
  if (isNumber && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (types.has('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  if (types.has('array') || types.has('object')) {
    try {
      return JSON.parse(text) as unknown
    } catch {
      return text
    }
  }
  return text
}
