// `switchyard tokens`: manages control tokens, which give access to the control API.

import { type Command, EXIT } from '../line/command.ts'
import { confirm, YES_FLAG } from '../line/confirm.ts'
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
    summary: 'List control tokens with their role and last use',
    async run(call) {
      await showAll(call, '/api/tokens', {}, COLUMNS, 'There are no tokens except the admin token of the service.')
      return EXIT.ok
    },
  },
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
        out.remark('The token is shown only once: save it now.')
      }
      return EXIT.ok
    },
  },
  {
    name: 'tokens revoke',
    summary: 'Revoke a control token (it is rejected from now on)',
    arguments: [{ name: 'TOKEN', description: "The token's id or name." }],
    flags: YES_FLAG,
    async run(call) {
      const {
        api,
        arguments: [reference = ''],
        json,
        out,
      } = call
      const id = await idOf(api, 'token', reference)
      await confirm(call, `Revoke the token ${reference} (${id})? It will be rejected. This cannot be undone.`)
      await api.delete(at`/api/tokens/${id}`)
      if (json) out.json({ id, revoked: true })
      else out.line(`Revoked token ${cell(id)}.`)
      return EXIT.ok
    },
  },
]
