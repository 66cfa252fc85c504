// `switchyard deletions` and `switchyard suppressions`: deletion requests of users, and users whose new messages are dropped.

import type { JsonObject } from '@switchyard/protocol'
import { DELETION_FILTERS, SUPPRESSION_FILTERS } from '../../api/list-filters.ts'
import { type Argument, type Call, type Command, EXIT, type ExitCode, type Flag } from '../line/command.ts'
import { filterFlags, filtersFrom } from '../line/fields.ts'
import { readText } from '../line/input.ts'
import { type Column, LIMIT_FLAG, showFacts, showNewest, showResult, state, time } from '../line/listing.ts'
import { at, idsOf, optionalId } from '../line/references.ts'
import { newestCommand } from '../line/resource-commands.ts'
import { pause } from '../service/api.ts'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['state', ({ state }) => state],
  ['users', ({ userCount }) => userCount],
  ['purged', ({ purged }) => purged],
  ['suppress', ({ suppress }) => suppress],
  ['created', ({ createdAt }) => time(createdAt)],
]
const TARGET_COLUMNS: readonly Column[] = [
  ['user', ({ userId }) => userId],
  ['source', ({ sourceId }) => sourceId],
  ['destination', ({ destinationId }) => destinationId ?? 'none'],
  ['state', ({ state }) => state],
  ['delivery', ({ deliveryId }) => deliveryId],
]
const USER_IDS: Argument = {
  name: 'USER_ID',
  description: 'The userId of a user. Use - for stdin or @FILE to read several, one per line.',
  many: true,
}
const SOURCE_FLAG: Flag = {
  placeholder: 'SOURCE',
  description: 'Only messages of this source, by id or name.',
  many: true,
  defaultText: 'all sources',
}
const WAIT_FLAG: Flag = { placeholder: null, description: 'Wait until the request is finished. The exit code is 1 if part of it failed.' }
const POLL_MS = 500
const DONE = new Set(['finished', 'failed'])

export const DELETION_COMMANDS: readonly Command[] = [
  newestCommand({
    name: 'deletions list',
    summary: 'List deletion requests, newest first',
    flags: filterFlags(DELETION_FILTERS),
    examples: ['switchyard deletions --user-id user-1'],
    path: '/api/deletions',
    query: (call) => filtersFrom(call, DELETION_FILTERS),
    columns: COLUMNS,
    none: 'No deletion requests match.',
  }),
  {
    name: 'deletions create',
    summary: 'Delete the stored messages of users and notify the destinations of their sources',
    arguments: [USER_IDS],
    flags: {
      source: SOURCE_FLAG,
      suppress: { placeholder: null, description: 'Also drop new messages of these users from now on.' },
      wait: WAIT_FLAG,
    },
    examples: ['switchyard deletions create user-1 user-2 --wait', 'switchyard deletions create @users.txt --suppress'],
    async run(call) {
      const deletion = await call.api.post('/api/deletions', { ...(await usersOf(call)), suppress: call.has('suppress') })
      return call.has('wait') ? await follow(call, deletion) : await show(call, deletion)
    },
  },
  {
    name: 'deletions show',
    summary: 'Show a deletion request, with its state per user, source and destination',
    arguments: [{ name: 'DELETION_ID', description: 'The id of the request, as listed by `switchyard deletions`.' }],
    details: 'With --json, the output is the request with its first targets; --state, --user-id and --limit have no effect.',
    flags: {
      wait: WAIT_FLAG,
      ...filterFlags(DELETION_FILTERS),
      ...LIMIT_FLAG,
    },
    async run(call) {
      const deletion = await call.api.get(at`/api/deletions/${call.arguments[0] as string}`)
      return call.has('wait') ? await follow(call, deletion) : await show(call, deletion)
    },
  },
]

export const SUPPRESSION_COMMANDS: readonly Command[] = [
  newestCommand({
    name: 'suppressions list',
    summary: 'List users whose new messages are dropped',
    flags: filterFlags(SUPPRESSION_FILTERS),
    path: '/api/suppressions',
    query: (call) => filtersFrom(call, SUPPRESSION_FILTERS),
    columns: [
      ['user', ({ userId }) => userId],
      ['source', ({ sourceId }) => sourceId],
      ['since', ({ since }) => time(since)],
    ],
    none: 'No users are suppressed.',
  }),
  {
    name: 'suppressions add',
    summary: 'Drop new messages of users from now on (stored messages stay)',
    arguments: [USER_IDS],
    flags: { source: SOURCE_FLAG },
    async run(call) {
      const users = await usersOf(call)
      const count = users.userIds.length
      const answer = await call.api.post('/api/suppressions', users)
      showResult(call, answer, `New messages of ${count === 1 ? 'this user' : `these ${count} users`} are dropped from now on.`)
    },
  },
  {
    name: 'suppressions remove',
    summary: 'Accept the messages of a user again',
    arguments: [{ name: 'USER_ID', description: 'The userId of the user.' }],
    flags: { source: { placeholder: 'SOURCE', description: 'Only for this source, by id or name.', defaultText: 'all sources' } },
    async run(call) {
      const sourceId = await optionalId(call.api, 'source', call.flag('source'))
      const answer = (await call.api.delete('/api/suppressions', { userId: call.arguments[0], sourceId })) ?? {}
      const removed = Number(answer['removed'])
      showResult(call, answer, removed === 0 ? 'This user was not suppressed.' : 'Messages of this user are accepted again.')
      return removed === 0 ? EXIT.notFound : EXIT.ok
    },
  },
]

/** The users and sources of a request. */
async function usersOf({ api, arguments: given, flags }: Call): Promise<{ userIds: string[]; sourceIds?: string[] }> {
  const userIds: string[] = []
  for (const argument of given) {
    if (argument === '-' || argument.startsWith('@'))
      userIds.push(...(await readText('USER_ID', argument)).split(/\r?\n/).filter((line) => line !== ''))
    else userIds.push(argument)
  }
  const sourceIds = await idsOf(api, 'source', flags('source'))
  return sourceIds.length > 0 ? { userIds, sourceIds } : { userIds }
}

async function show(call: Call, deletion: JsonObject): Promise<ExitCode> {
  if (call.json) {
    call.out.json(deletion)
    return EXIT.ok
  }
  const { id, userCount, sourceIds, suppress, purged, createdAt, targetCounts } = deletion
  const notified = Object.entries(targetCounts as Record<string, number>).filter(([, count]) => count > 0)
  showFacts(call.out, [
    ['id', id],
    ['state', state(call, deletion['state'])],
    ['users', userCount],
    ['sources', sourceIds],
    ['suppress', suppress],
    ['purged messages', purged],
    ['notifications', notified.map(([name, count]) => `${count} ${name}`)],
    ['created', time(createdAt)],
  ])
  call.out.line('')
  const filters = await filtersFrom(call, DELETION_FILTERS)
  await showNewest(call, at`/api/deletions/${String(id)}/targets`, filters, TARGET_COLUMNS, 'There are no destinations to notify.')
  return EXIT.ok
}

async function follow(call: Call, deletion: JsonObject): Promise<ExitCode> {
  const progress = call.out.progress('Destinations notified')
  let now = deletion
  try {
    while (!DONE.has(String(now['state']))) {
      const { pending = 0, running = 0, finished = 0, failed = 0 } = now['targetCounts'] as Record<string, number>
      progress.update(finished + failed, pending + running + finished + failed)
      await pause(POLL_MS, call.signal)
      if (call.signal.aborted) return EXIT.interrupted
      now = await call.api.get(at`/api/deletions/${String(deletion['id'])}`)
    }
  } finally {
    progress.end()
  }
  await show(call, now)
  return now['state'] === 'finished' ? EXIT.ok : EXIT.failed
}
