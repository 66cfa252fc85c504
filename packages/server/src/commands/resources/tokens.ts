// `switchyard tokens`: manages control tokens, which give access to the control API.

import type { Command } from '../line/command.ts'
import { type Column, showFacts, showResult, time } from '../line/listing.ts'
import { idsOf } from '../line/references.ts'
import { deleteCommand, listCommand } from '../line/resource-commands.ts'
import { parseFutureTime } from '../line/times.ts'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['role', ({ role }) => role],
  ['sources', ({ sources }) => (Array.isArray(sources) ? sources.join(', ') : String(sources))],
  ['expires', ({ expiresAt }) => (expiresAt == null ? 'never' : time(expiresAt))],
  ['last used', ({ lastUsedAt }) => (lastUsedAt == null ? 'never' : time(lastUsedAt))],
  ['created', ({ createdAt }) => time(createdAt)],
]

export const TOKEN_COMMANDS: readonly Command[] = [
  listCommand({
    name: 'tokens list',
    summary: 'List control tokens with their role and last use',
    path: '/api/tokens',
    columns: COLUMNS,
    none: 'There are no tokens except the admin token of the service.',
  }),
  {
    name: 'tokens create',
    summary: 'Create a control token (shown only once; only a hash is stored)',
    arguments: [{ name: 'NAME', description: 'The display name, such as who or what uses it.' }],
    flags: {
      role: {
        placeholder: 'ROLE',
        description: 'What the token may do: viewer only reads, editor also changes what belongs to its sources, admin does everything.',
        defaultText: 'viewer',
        values: ['viewer', 'editor', 'admin'],
      },
      source: {
        placeholder: 'SOURCE',
        description: 'Limit the token to this source (id or name).',
        defaultText: 'all sources',
        many: true,
      },
      expires: {
        placeholder: 'TIME',
        description: 'When the token stops working: a time such as 2027-01-31, or a duration from now such as 30d.',
      },
    },
    examples: [
      'switchyard tokens create grafana',
      'switchyard tokens create deploy --role admin --json | jq -r .token',
      'switchyard tokens create shop-team --role editor --source Shop --expires 90d',
    ],
    async run(call) {
      const [role, expires] = [call.flag('role') ?? 'viewer', call.flag('expires')]
      const sources = await idsOf(call.api, 'source', call.flags('source'))
      const token = await call.api.post('/api/tokens', {
        name: call.arguments[0],
        role,
        ...(sources.length > 0 && { sources }),
        ...(expires !== undefined && { expiresAt: parseFutureTime('expires', expires) }),
      })
      showResult(call, token, () => {
        const field = (name: string) => [name, token[name]] as const
        showFacts(call.out, [
          ...['id', 'name', 'role'].map(field),
          ['sources', sources.length === 0 ? undefined : sources.join(', ')],
          ['expires', expires === undefined ? undefined : time(token['expiresAt'])],
          field('token'),
        ])
        call.out.remark('The token is shown only once: save it now.')
      })
    },
  },
  deleteCommand({
    name: 'tokens revoke',
    summary: 'Revoke a control token (it is rejected from now on)',
    arguments: [{ name: 'TOKEN', description: "The token's id or name." }],
    kind: 'token',
    done: 'revoked',
    question: (token, id) => `Revoke the token ${token} (${id})? It will be rejected.`,
  }),
]
