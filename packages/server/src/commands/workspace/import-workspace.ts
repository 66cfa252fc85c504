// `switchyard import-workspace`: creates sources, destinations and subscriptions from an export of a Segment workspace. What already exists
// is not changed, so the command can be run again, for example after the missing secrets have been filled in. Everything that cannot be
// imported is listed.

import { statSync } from 'node:fs'
import type { JsonObject } from '@switchyard/protocol'
import { isObject } from '../../api/configuration-export.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { readEnvironment, readFileText, readObjectFile } from '../line/input.ts'
import { at } from '../line/references.ts'
import { type Api, ApiProblem } from '../service/api.ts'
import { type Existing, ORIGIN_PREFIX, type PlannedDestination, type Secrets, type WorkspacePlan } from './planned-workspace.ts'
import { readCatalog } from './workspace-catalog.ts'
import { parseWorkspace } from './workspace-export.ts'
import { planWorkspace } from './workspace-plan.ts'
import { report } from './workspace-report.ts'

const MAX_FILE_BYTES = 64 * 1024 * 1024

export const importWorkspace: Command = {
  name: 'import-workspace',
  summary: 'Create sources, destinations and tracking plans from an export of a Segment workspace',
  details:
    'The file contains the responses of Segment\'s Public API to GET /sources, /destinations, /destinations/{id}/subscriptions, /destination/{id}/filters and /tracking-plans as JSON: one object, or a list of responses. The guide "Move a Segment workspace" has a script that writes it. Sources keep their write keys.\n\n' +
    'Sources and destinations that already exist are not changed, so the command can be run again. It lists everything that cannot be imported, with the reason. The export does not contain secrets: destinations that need one are not created until you give it with --secrets.\n\n' +
    'The exit code is 0 if everything was imported, and 1 otherwise. With --dry-run, it is 5 if something would be created.',
  arguments: [{ name: 'FILE', description: 'The export, or - for stdin.' }],
  flags: {
    'dry-run': { placeholder: null, description: 'Show what would be created, without changing anything.' },
    secrets: {
      placeholder: 'FILE',
      description:
        'A JSON or YAML file with the secrets, as { destination: { setting: value } }. A value of env:NAME is read from the environment, and null leaves a setting out.',
    },
  },
  examples: ['switchyard import-workspace workspace.json --dry-run', 'switchyard import-workspace workspace.json --secrets secrets.yaml'],
  async run(call) {
    const workspace = parseWorkspace(await readExport(call.arguments[0] as string), call.arguments[0] as string)
    const existing = await readExisting(call.api)
    const catalog = await readCatalog(
      call.api,
      workspace.destinations.map(({ slug }) => slug),
    )
    const secrets = await readSecrets(call)
    const plan = planWorkspace(workspace, existing, catalog, secrets)
    const names = new Set([...plan.destinations, ...workspace.destinations].map(({ name }) => name))
    for (const name of secrets.keys())
      if (!names.has(name)) throw new UsageProblem(`--secrets: the export has no destination with the name ${name}.`)
    await checkPlan(call.api, plan)
    const dryRun = call.has('dry-run')
    try {
      if (!dryRun) await createAll(call, plan)
    } finally {
      report(call, plan, dryRun)
    }
    return exitOf(plan, dryRun)
  },
}

async function readExport(path: string): Promise<string> {
  const tooLarge = new UsageProblem(`${path} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB, the limit for an export.`)
  if (path !== '-' && (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_FILE_BYTES) throw tooLarge
  const text = await readFileText('The export', path)
  if (text.length > MAX_FILE_BYTES) throw tooLarge
  return text
}

async function readExisting(api: Api): Promise<Existing> {
  const sources: Existing['sources'][number][] = []
  for await (const { id, name, origin, writeKeys } of api.all('/api/sources'))
    sources.push({ id: String(id), name: String(name), origin: textOrNull(origin), writeKeys: (writeKeys ?? []) as string[] })
  const destinations: Existing['destinations'][number][] = []
  for await (const shown of api.all('/api/destinations')) {
    const { id, name, origin, type, integration, aliases, integrationName, integrationAliases, subscriptions, conditionalFilters } = shown
    destinations.push({
      id: String(id),
      name: String(name),
      origin: textOrNull(origin),
      type,
      integration,
      names: [name, integrationName, aliases, integrationAliases].flat().filter((each) => typeof each === 'string'),
      subscriptions: ((subscriptions ?? []) as { name: string }[]).map((subscription) => subscription.name),
      conditionalFilters: (conditionalFilters ?? []) as Existing['destinations'][number]['conditionalFilters'],
    })
  }
  const plans: Existing['plans'][number][] = []
  for await (const { id, name, sourceIds } of api.all('/api/plans'))
    plans.push({ id: String(id), name: String(name), sourceIds: (sourceIds ?? []) as string[] })
  return { sources, destinations, plans }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

async function readSecrets(call: Call): Promise<Secrets> {
  const path = call.flag('secrets')
  if (path === undefined) return new Map()
  const file = await readObjectFile('--secrets', path)
  const secrets = new Map<string, Record<string, unknown>>()
  for (const [name, settings] of Object.entries(file)) {
    if (!isObject(settings)) throw new UsageProblem(`--secrets: ${name} must contain an object with settings.`)
    secrets.set(name, resolved(settings, `--secrets: ${name}`, call.env) as JsonObject)
  }
  return secrets
}

/** Replaces env:NAME, also in objects such as `oauth`. */
function resolved(value: unknown, place: string, env: Call['env']): unknown {
  if (typeof value === 'string') return readEnvironment(place, value, env)
  if (!isObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, resolved(inner, `${place}.${key}`, env)]))
}

/** Lets the service check what it would get, one by one, so that one destination that it rejects does not affect the others. */
async function checkPlan(api: Api, plan: WorkspacePlan): Promise<void> {
  const problemOf = async (
    kind: 'sources' | 'destinations' | 'plans',
    settings: object,
  ): Promise<{ field: string | null; message: string } | undefined> => {
    const { problems } = await api.post('/api/configuration/check', { [kind]: [{ id: null, settings }] })
    return (problems as unknown as { field: string | null; message: string }[])[0]
  }
  for (const source of plan.sources.filter(({ outcome }) => outcome === 'create')) {
    const problem = await problemOf('sources', source.body)
    if (problem !== undefined) Object.assign(source, { outcome: 'not_supported', reason: problem.message })
  }
  for (const destination of plan.destinations.filter(({ outcome }) => outcome === 'create')) {
    // A subscription that is rejected is left out, and the rest is checked again.
    for (;;) {
      const created = destination.subscriptions.filter(({ outcome }) => outcome === 'create')
      const problem = await problemOf('destinations', bodyOf(destination))
      if (problem === undefined) break
      const [, index] = /^subscriptions\[(\d+)\]/.exec(problem.field ?? '') ?? []
      const [, setting] = /^settings\.([^.[]+)/.exec(problem.field ?? '') ?? []
      // Some settings are required only together with others.
      if (setting !== undefined && !Object.hasOwn(destination.settings, setting)) {
        Object.assign(destination, { outcome: 'needs_secrets', reason: problem.message, secrets: [setting] })
        break
      }
      const rejected = index === undefined ? destination : (created[Number(index)] ?? destination)
      // The index counts only the subscriptions that are left, so it is not the one in the export.
      const reason = rejected === destination ? problem.message : problem.message.replace(/^subscriptions\[\d+\](?:\.|\s+)/, '')
      Object.assign(rejected, { outcome: 'not_supported', reason })
      if (rejected === destination) break
    }
  }
  for (const planned of plan.plans.filter(({ outcome }) => outcome === 'create')) {
    // A rule that is rejected is left out, and the rest is checked again.
    for (let problem = await problemOf('plans', planned.body); problem !== undefined; problem = await problemOf('plans', planned.body)) {
      const [, index] = /^rules\[(\d+)\]/.exec(problem.field ?? '') ?? []
      const rejected = index === undefined ? undefined : (planned.body.rules[Number(index)] as { type: string; event?: string } | undefined)
      if (rejected === undefined) {
        Object.assign(planned, { outcome: 'not_supported', reason: problem.message })
        break
      }
      const name = [rejected.type, rejected.event].filter((part) => part !== undefined).join(' ')
      planned.notes.push(`The rule ${name} is left out: its ${problem.message.replace(/^rules\[\d+\](?:\.|\s+)/, '')}`)
      planned.body = { ...planned.body, rules: planned.body.rules.filter((rule) => rule !== rejected) }
    }
  }
  // A source that was rejected here leaves its destinations without one.
  for (const destination of plan.destinations)
    if (destination.outcome === 'create' && destination.source?.outcome === 'not_supported')
      Object.assign(destination, { outcome: 'not_supported', reason: `Its source ${destination.source.name} is not imported.` })
}

function bodyOf({
  type,
  name,
  aliases,
  segmentId,
  enabled,
  integration,
  settings,
  subscriptions,
  conditionalFilters,
}: PlannedDestination): object {
  const created = subscriptions.flatMap(({ outcome, body }) => (outcome === 'create' ? [body] : []))
  const own = type === 'webhook' ? settings : { integration, settings, subscriptions: created }
  return { type, name, aliases, origin: ORIGIN_PREFIX + segmentId, enabled, conditionalFilters, ...own }
}

async function createAll({ api, signal }: Call, { sources, destinations, plans }: WorkspacePlan): Promise<void> {
  /** An answer that rejects one entry does not stop the others. */
  const create = async (path: string, planned: { outcome: string; reason: string | null }, body: object): Promise<JsonObject | null> => {
    if (signal.aborted) throw new CommandProblem('Interrupted.', EXIT.interrupted)
    try {
      const answer = await api.post(path, body, { uniqueName: true })
      planned.outcome = 'created'
      return answer
    } catch (error) {
      if (!(error instanceof ApiProblem && error.status >= 400 && error.status < 500 && error.exit !== EXIT.unreachable)) throw error
      Object.assign(planned, { outcome: 'failed', reason: error.message })
      return null
    }
  }
  for (const source of sources) {
    if (source.adopts) await api.patch(at`/api/sources/${source.id ?? ''}`, { origin: ORIGIN_PREFIX + source.segmentId })
    if (source.outcome !== 'create') continue
    const answer = await create('/api/sources', source, source.body)
    if (answer !== null) source.id = String(answer['id'])
  }
  for (const destination of destinations) {
    if (destination.adopts)
      await api.patch(at`/api/destinations/${destination.id ?? ''}`, { origin: ORIGIN_PREFIX + destination.segmentId })
    if (destination.outcome !== 'create') continue
    const sourceId = destination.source?.id ?? null
    if (sourceId === null) Object.assign(destination, { outcome: 'failed', reason: 'Its source could not be created.' })
    else await create('/api/destinations', destination, { ...bodyOf(destination), sourceIds: [sourceId] })
  }
  for (const plan of plans)
    if (plan.outcome === 'create') await create('/api/plans', plan, { ...plan.body, sourceIds: plan.sources.flatMap(({ id }) => id ?? []) })
}

function exitOf({ sources, destinations, plans, others }: WorkspacePlan, dryRun: boolean): ExitCode {
  const all = [...sources, ...destinations, ...plans]
  if (dryRun && all.some(({ outcome }) => outcome === 'create')) return EXIT.differs
  const isComplete =
    others.length === 0 &&
    all.every(({ outcome, notes }) => (outcome === 'exists' || outcome === 'created') && notes.length === 0) &&
    destinations.every(({ subscriptions }) => subscriptions.every(({ reason, notes }) => reason === null && notes.length === 0))
  return isComplete ? EXIT.ok : EXIT.failed
}
