// `switchyard apply`: changes the installation to match a configuration file. Everything is checked before anything is changed. Applying
// the same file again changes nothing, and nothing is deleted without --prune.

import type { JsonObject } from '@switchyard/protocol'
import { type ConfigurationFile, type Installed, type Kind, NOUNS, namesIn } from '../../api/configuration-export.ts'
import { type Call, type Command, CommandProblem, EXIT, type ExitCode, UsageProblem } from '../line/command.ts'
import { readNamedFile, readText } from '../line/input.ts'
import { addChangedSecrets, type Change, type Differences, differencesOf } from './configuration-differences.ts'
import { PATHS, parseConfigurationFile, readInstalled } from './configuration-file.ts'

const MAX_FILE_BYTES = 8 * 1024 * 1024

export const apply: Command = {
  name: 'apply',
  summary: 'Change the configuration to match a YAML file',
  details:
    'The file has the format that `switchyard export` writes. Entries are matched by name, so a changed name creates a new entry. The whole file is checked before anything is changed. Entries that are not in the file stay as they are, unless you use --prune. If someone else changes the same entries while the command runs, it stops with an error instead of overwriting those changes; run it again.\n\n' +
    'With --dry-run, the exit code is 0 if nothing would change and 5 if something would.',
  arguments: [{ name: 'FILE', description: 'The configuration file, or - for stdin.' }],
  flags: {
    'dry-run': { placeholder: null, description: 'Show the differences without changing anything.' },
    prune: {
      placeholder: null,
      description: 'Delete sources, destinations, OAuth applications and tracking plans that are not in the file.',
    },
  },
  examples: ['switchyard apply switchyard.yaml --dry-run', 'switchyard apply switchyard.yaml'],
  async run(call) {
    const path = call.arguments[0] as string
    const file = await readFile(path)
    const installed = await readInstalled(call.api)
    const differences = differencesOf(file, installed, call.env, call.has('prune'))
    if (differences.problems.length === 0) await check(call, differences, file)
    if (differences.problems.length > 0) {
      const { problems } = differences
      throw new UsageProblem(`${path} cannot be applied. Nothing was changed:\n${problems.map((sentence) => `  ${sentence}`).join('\n')}`)
    }
    for (const remark of differences.remarks) call.out.remark(remark)
    const dryRun = call.has('dry-run')
    if (!call.json) show(call, differences, dryRun)
    if (dryRun) {
      if (call.json) call.out.json(jsonOf(differences, false))
      return differences.changes.length === 0 ? EXIT.ok : EXIT.differs
    }
    return await applyChanges(call, differences, installed)
  },
}

async function readFile(path: string): Promise<ConfigurationFile> {
  const text = path === '-' ? await readText('The configuration', '-') : readNamedFile('The configuration', path)
  if (text.length > MAX_FILE_BYTES)
    throw new UsageProblem(`${path} is larger than ${MAX_FILE_BYTES / 1024 / 1024} MiB, the limit for a configuration file.`)
  const { parseDocument } = await import('yaml')
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: true })
  const [error] = document.errors
  if (error !== undefined) throw new UsageProblem(`${path} is not valid YAML: ${error.message.split('\n')[0]}`)
  let value: unknown
  try {
    // YAML aliases are limited, so that a small file cannot expand to a large value.
    value = document.toJS({ maxAliasCount: 100 })
  } catch (cause) {
    throw new UsageProblem(`${path} cannot be read: ${(cause as Error).message}.`)
  }
  return parseConfigurationFile(value, path)
}

/** Has the service validate what the file asks for, and adds the problems it finds and the secrets that differ from the stored ones. */
async function check(call: Call, differences: Differences, file: ConfigurationFile): Promise<void> {
  const answer = await call.api.post('/api/configuration/check', differences.wanted)
  const problems = answer['problems'] as unknown as { kind: Kind; index: number; message: string }[]
  for (const { kind, index, message } of problems) differences.problems.push(`${NOUNS[kind]} ${file[kind][index]?.name}: ${message}`)
  const changed = answer['changedSecrets'] as unknown as { kind: Kind; index: number; fields: string[] }[]
  addChangedSecrets(differences, file, changed)
}

/** A resource is created after the ones that it refers to, and deleted before them. Sources are updated first, so that a write key is free before another source gets it. */
const ORDER: readonly (readonly [Change['action'], Kind])[] = [
  ['update', 'sources'],
  ['create', 'sources'],
  ['create', 'oauthApps'],
  ['update', 'oauthApps'],
  // A plan that loses a source comes before one that gets it. See also freeSources.
  ['delete', 'plans'],
  ['update', 'plans'],
  ['create', 'plans'],
  ['create', 'destinations'],
  ['update', 'destinations'],
  ['delete', 'destinations'],
  ['delete', 'oauthApps'],
  ['delete', 'sources'],
]

type Ids = Record<'sources' | 'destinations', Map<string, string>>

function idsByName(names: ReadonlyMap<string, string>): Map<string, string> {
  return new Map([...names].map(([id, name]) => [name, id]))
}

/**
 * Changes a destination after the one that gets its dead letters, and deletes it before: then the other one exists, and no step on the way
 * has a cycle that the file does not have.
 */
function deadLettersFirst(changes: readonly Change[], installed: Installed): Change[] {
  const { destinations: names } = namesIn(installed)
  const targetOf = ({ id, action, settings }: Change): unknown => {
    if (action !== 'delete') return settings['deadLetter']
    return names.get(String(installed.entries.destinations.find((entry) => entry['id'] === id)?.['deadLetter']))
  }
  const ordered: Change[] = []
  const add = (change: Change): void => {
    if (ordered.includes(change) || pending.has(change)) return
    pending.add(change)
    const target = changes.find(({ name }) => name === targetOf(change))
    if (target !== undefined) add(target)
    if (change.action === 'delete') ordered.unshift(change)
    else ordered.push(change)
  }
  const pending = new Set<Change>()
  for (const change of changes) add(change)
  return ordered
}

async function applyChanges(call: Call, differences: Differences, installed: Installed): Promise<ExitCode> {
  const names = namesIn(installed)
  const ids: Ids = { sources: idsByName(names.sources), destinations: idsByName(names.destinations) }
  const ordered = ORDER.flatMap(([action, kind]) => {
    const changes = differences.changes.filter((change) => change.action === action && change.kind === kind)
    return kind === 'destinations' ? deadLettersFirst(changes, installed) : changes
  })
  const done: Change[] = []
  try {
    for (const change of ordered) {
      if (call.signal.aborted) throw new CommandProblem('Interrupted.', EXIT.interrupted)
      if (change.kind === 'plans') await freeSources(call, change, { ids, ordered, installed })
      const entries = installed.entries[change.kind]
      const at = entries.findIndex(({ id }) => id === change.id)
      const answer = await applyChange(call, change, ids, entries[at])
      if (at >= 0 && answer !== undefined && change.action === 'update') entries[at] = answer
      if ((change.kind === 'sources' || change.kind === 'destinations') && change.action === 'create')
        ids[change.kind].set(change.name, String(answer?.['id']))
      done.push(change)
    }
  } catch (error) {
    const failed = ordered[done.length] as Change
    if (call.json)
      call.out.json({ ...jsonOf(differences, true), applied: done.map(named), failed: named(failed), message: (error as Error).message })
    const lines = [
      `${described(failed)} failed: ${(error as Error).message}`,
      done.length === 0 ? 'Nothing was changed.' : `Already done: ${done.map(described).join('; ')}.`,
      ...(ordered.length - done.length > 1
        ? [
            `Not done: ${ordered
              .slice(done.length + 1)
              .map(described)
              .join('; ')}.`,
          ]
        : []),
      'You can apply the same file again: changes that are already done are not repeated.',
    ]
    throw new CommandProblem(lines.join('\n'), error instanceof CommandProblem ? error.exit : EXIT.failed, { cause: error })
  }
  if (call.json) call.out.json(jsonOf(differences, true))
  else if (done.length > 0) call.out.line(`Applied ${done.length === 1 ? '1 change' : `${done.length} changes`}.`)
  return EXIT.ok
}

/** A source has at most one plan. So the sources that a plan gets are first detached from the plans that lose them; two plans may even exchange sources. */
async function freeSources(
  { api }: Call,
  { settings, id: getter }: Change,
  { ids, ordered, installed }: { ids: Ids; ordered: readonly Change[]; installed: Installed },
): Promise<void> {
  const idsOf = (sources: unknown): unknown[] => (Array.isArray(sources) ? sources.map((name) => ids.sources.get(String(name))) : [])
  const wanted = idsOf(settings['sources'])
  const { plans } = installed.entries
  for (const loser of ordered) {
    if (loser.kind !== 'plans' || loser.id === getter || !Array.isArray(loser.settings['sources'])) continue
    const keeps = idsOf(loser.settings['sources'])
    const at = plans.findIndex(({ id }) => id === loser.id)
    const attached = (plans[at]?.['sourceIds'] ?? []) as unknown[]
    const left = attached.filter((id) => !wanted.includes(id) || keeps.includes(id))
    if (left.length < attached.length) plans[at] = await api.patch(`${PATHS.plans}/${loser.id}`, { sourceIds: left }, plans[at])
  }
}

/** The service rejects overwriting or deleting an entry that was changed since it was read, and creating a second entry with the same name. */
async function applyChange(
  { api }: Call,
  { action, kind, id, settings }: Change,
  ids: Ids,
  read: JsonObject | undefined,
): Promise<JsonObject | undefined> {
  const path = `${PATHS[kind]}${id === null ? '' : `/${encodeURIComponent(id)}`}`
  if (action === 'delete') return await api.delete(path, {}, read)
  const { sources, ...body } = settings
  if (Array.isArray(sources)) body['sourceIds'] = sources.map((name) => ids.sources.get(String(name)))
  if (typeof body['deadLetter'] === 'string') body['deadLetter'] = ids.destinations.get(body['deadLetter'])
  return action === 'create' ? await api.post(path, body, { uniqueName: true }) : await api.patch(path, body, read)
}

function show({ out }: Call, { changes, unmanaged }: Differences, dryRun: boolean): void {
  const signs = { create: ['green', '+'], update: ['yellow', '~'], delete: ['red', '-'] } as const
  for (const { action, kind, name, fields } of changes) {
    const [style, sign] = signs[action]
    out.line(out.paint(style, `${sign} ${NOUNS[kind]} ${name}`))
    for (const { field, before, after } of fields)
      out.line(before === null || action === 'create' ? `    ${field}: ${after}` : `    ${field}: ${before} → ${after ?? 'none'}`)
  }
  if (changes.length === 0) out.line(dryRun ? 'Nothing would change.' : 'Nothing to change.')
  for (const { kind, name } of unmanaged)
    out.remark(`The ${NOUNS[kind]} ${name} is not in the file and is left unchanged. Use --prune to delete it.`)
}

function jsonOf({ changes, unmanaged, remarks }: Differences, applied: boolean): Record<string, unknown> {
  return { changes: changes.map(({ action, kind, name, id, fields }) => ({ action, kind, name, id, fields })), unmanaged, remarks, applied }
}

function named({ action, kind, name }: Change): object {
  return { action, kind, name }
}

function described({ action, kind, name }: Change): string {
  return `${action} ${NOUNS[kind]} ${name}`
}
