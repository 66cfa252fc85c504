// `switchyard tokens`: manages control tokens, which give access to the control API.

import type { Command } from '../line/command.ts'
import { type Column, showFacts, showResult, time } from '../line/listing.ts'
import { deleteCommand, listCommand } from '../line/resource-commands.ts'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['role', ({ role }) => role],
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
        description: 'What the token may do: admin allows everything, viewer allows only reading.',
        defaultText: 'viewer',
        values: ['admin', 'viewer'],
      },
    },
    examples: ['switchyard tokens create grafana', 'switchyard tokens create deploy --role admin --json | jq -r .token'],
    async run(call) {
      const token = await call.api.post('/api/tokens', { name: call.arguments[0], role: call.flag('role') ?? 'viewer' })
      showResult(call, token, () => {
        showFacts(
          call.out,
          ['id', 'name', 'role', 'token'].map((field) => [field, token[field]]),
        )
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
