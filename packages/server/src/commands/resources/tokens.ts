// `switchyard tokens`: who may use the control API.

import { type Command, EXIT } from '../line/command.ts'
import { type Column, cell, showAll, showFacts, time } from '../line/listing.ts'
import { at, idOf } from '../line/references.ts'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['role', ({ role }) => role],
  ['last used', ({ lastUsedAt }) => (lastUsedAt == null ? 'never' : time(lastUsedAt))],
  ['created', ({ createdAt }) => time(createdAt)],
]

export const TOKEN_COMMANDS: readonly Command[] = [
  {
    name: 'tokens list',
    summary: 'Control tokens, their roles, and when each was used last',
    async run(call) {
      await showAll(call, '/api/tokens', {}, COLUMNS, 'There is no token but the first one.')
      return EXIT.ok
    },
  },
  {
    name: 'tokens create',
    summary: 'Creates a control token; it is shown once, and kept only as a hash',
    arguments: [{ name: 'NAME', sentence: 'For people: who or what uses it.' }],
    flags: {
      role: {
        placeholder: 'ROLE',
        sentence: 'What it may do: an admin everything, a viewer read alone.',
        usual: 'viewer',
        values: ['admin', 'viewer'],
      },
    },
    examples: ['switchyard tokens create grafana', 'switchyard tokens create deploy --role admin --json | jq -r .token'],
    async run({ api, arguments: [name], flag, json, out }) {
      const token = await api.post('/api/tokens', { name, role: flag('role') ?? 'viewer' })
      if (json) out.json(token)
      else {
        showFacts(out, [
          ['id', token['id']],
          ['name', token['name']],
          ['role', token['role']],
          ['token', token['token']],
        ])
        out.remark('The token is shown this once: keep it.')
      }
      return EXIT.ok
    },
  },
  {
    name: 'tokens revoke',
    summary: 'Revokes a control token: it is refused from now on',
    arguments: [{ name: 'TOKEN', sentence: "The token's id or name." }],
    async run({ api, arguments: [reference = ''], json, out }) {
      const id = await idOf(api, 'token', reference)
      await api.delete(at`/api/tokens/${id}`)
      if (json) out.json({ id, revoked: true })
      else out.line(`Token ${cell(id)} is revoked.`)
      return EXIT.ok
    },
  },
]
