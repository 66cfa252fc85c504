// `switchyard deletions` and `switchyard suppressions`: deletion requests of users, and users whose new messages are dropped.

import type { JsonObject } from '@switchyard/protocol'
import { type Call, type Command, EXIT, type ExitCode, type Flag } from '../line/command.ts'
import { readText } from '../line/input.ts'
import { type Column, LIMIT_FLAG, showFacts, showNewest, state, time } from '../line/listing.ts'
import { at, idsOf, optionalId } from '../line/references.ts'
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
const STATES = ['pending', 'running', 'finished', 'failed']
const FILTER_FLAGS: Readonly<Record<string, Flag>> = {
  state: { placeholder: 'STATE', description: 'Only entries in this state.', values: STATES },
  'user-id': { placeholder: 'USER_ID', description: 'Only entries for the user with this userId.' },
}
const POLL_MS = 500
const DONE = new Set(['finished', 'failed'])

export const DELETION_COMMANDS: readonly Command[] = [
  {
    name: 'deletions list',
    summary: 'List deletion requests, newest first',
    flags: { ...FILTER_FLAGS, ...LIMIT_FLAG },
    examples: ['switchyard deletions --user-id user-1'],
    async run(call) {
      const query = { state: call.flag('state'), userId: call.flag('user-id') }
      await showNewest(call, '/api/deletions', query, COLUMNS, 'No deletion requests match.')
      return EXIT.ok
    },
  },
  {
    name: 'deletions create',
    summary: 'Delete the stored messages of users and notify the destinations of their sources',
    arguments: [
      { name: 'USER_ID', description: 'The userId of a user. Use - for stdin or @FILE to read several, one per line.', many: true },
    ],
    flags: {
      source: {
        placeholder: 'SOURCE',
        description: 'Only messages of this source, by id or name.',
        many: true,
        defaultText: 'all sources',
      },
      suppress: { placeholder: null, description: 'Also drop new messages of these users from now on.' },
      wait: { placeholder: null, description: 'Wait until the request is finished. The exit code is 1 if part of it failed.' },
    },
    examples: ['switchyard deletions create user-1 user-2 --wait', 'switchyard deletions create @users.txt --suppress'],
    async run(call) {
      const userIds = await userIdsOf(call)
      const sourceIds = await idsOf(call.api, 'source', call.flags('source'))
      const body = { userIds, suppress: call.has('suppress'), ...(sourceIds.length > 0 ? { sourceIds } : {}) }
      const deletion = await call.api.post('/api/deletions', body)
      return call.has('wait') ? await follow(call, deletion) : await show(call, deletion)
    },
  },
  {
    name: 'deletions show',
    summary: 'Show a deletion request, with its state per user, source and destination',
    arguments: [{ name: 'DELETION_ID', description: 'The id of the request, as listed by `switchyard deletions`.' }],
    details: 'With --json, the output is the request with its first targets; --state, --user-id and --limit have no effect.',
    flags: {
      wait: { placeholder: null, description: 'Wait until the request is finished. The exit code is 1 if part of it failed.' },
      ...FILTER_FLAGS,
      ...LIMIT_FLAG,
    },
    async run(call) {
      const deletion = await call.api.get(at`/api/deletions/${call.arguments[0] as string}`)
      return call.has('wait') ? await follow(call, deletion) : await show(call, deletion)
    },
  },
]

export const SUPPRESSION_COMMANDS: readonly Command[] = [
  {
    name: 'suppressions list',
    summary: 'List users whose new messages are dropped',
    flags: {
      'user-id': { placeholder: 'USER_ID', description: 'Only entries for the user with this userId.' },
      source: { placeholder: 'SOURCE', description: 'Only entries for this source, by id or name.' },
      ...LIMIT_FLAG,
    },
    async run(call) {
      const query = { userId: call.flag('user-id'), sourceId: await optionalId(call.api, 'source', call.flag('source')) }
      const columns: readonly Column[] = [
        ['user', ({ userId }) => userId],
        ['source', ({ sourceId }) => sourceId],
        ['since', ({ since }) => time(since)],
      ]
      await showNewest(call, '/api/suppressions', query, columns, 'No users are suppressed.')
      return EXIT.ok
    },
  },
  {
    name: 'suppressions add',
    summary: 'Drop new messages of users from now on (stored messages stay)',
    arguments: [
      { name: 'USER_ID', description: 'The userId of a user. Use - for stdin or @FILE to read several, one per line.', many: true },
    ],
    flags: {
      source: {
        placeholder: 'SOURCE',
        description: 'Only messages of this source, by id or name.',
        many: true,
        defaultText: 'all sources',
      },
    },
    async run(call) {
      const userIds = await userIdsOf(call)
      const sourceIds = await idsOf(call.api, 'source', call.flags('source'))
      const answer = await call.api.post('/api/suppressions', { userIds, ...(sourceIds.length > 0 ? { sourceIds } : {}) })
      if (call.json) call.out.json(answer)
      else call.out.line(`New messages of ${userIds.length === 1 ? 'this user' : `these ${userIds.length} users`} are dropped from now on.`)
      return EXIT.ok
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
      if (call.json) call.out.json(answer)
      else call.out.line(removed === 0 ? 'This user was not suppressed.' : 'Messages of this user are accepted again.')
      return removed === 0 ? EXIT.notFound : EXIT.ok
    },
  },
]

async function userIdsOf({ arguments: given }: Call): Promise<string[]> {
  const ids: string[] = []
  for (const argument of given) {
    if (argument === '-' || argument.startsWith('@'))
      ids.push(...(await readText('USER_ID', argument)).split(/\r?\n/).filter((line) => line !== ''))
    else ids.push(argument)
  }
  return ids
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
  const query = { state: call.flag('state'), userId: call.flag('user-id') }
  await showNewest(call, at`/api/deletions/${String(id)}/targets`, query, TARGET_COLUMNS, 'There are no destinations to notify.')
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
