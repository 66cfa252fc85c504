// `switchyard oauth-apps`: manages applications that request access tokens for the tracking API, and their public keys.

import type { JsonObject } from '@switchyard/protocol'
import { type Argument, type Call, type Command, UsageProblem } from '../line/command.ts'
import { readNamedFile, readText } from '../line/input.ts'
import { type Column, cell, showFacts, showResult, time } from '../line/listing.ts'
import { idsOf, resourcePath } from '../line/references.ts'
import { deleteCommand, listCommand, removeKeyCommand, showCommand } from '../line/resource-commands.ts'

const APP: Argument = { name: 'APP', description: "The application's id (its clientId) or name." }
const KIND = 'OAuth application'
const KEY_SENTENCE = 'A file with the public key in PEM format, or - for stdin. Never give the private key.'

const COLUMNS: readonly Column[] = [
  ['id', ({ id }) => id],
  ['name', ({ name }) => name],
  ['sources', ({ sourceIds }) => sourceIds],
  ['keys', ({ keys }) => (keys as { id: string }[]).map(({ id }) => id)],
  ['created', ({ createdAt }) => time(createdAt)],
]

export const OAUTH_APP_COMMANDS: readonly Command[] = [
  listCommand({
    name: 'oauth-apps list',
    summary: 'List OAuth applications and their keys',
    path: '/api/oauth-apps',
    columns: COLUMNS,
    none: 'There are no OAuth applications. Create one with `switchyard oauth-apps create NAME`.',
  }),
  showCommand({ name: 'oauth-apps show', summary: 'Show an OAuth application', arguments: [APP], kind: KIND, show }),
  {
    name: 'oauth-apps create',
    summary: 'Create an OAuth application',
    details: 'Clients use the id of the application as their clientId, and the id of a key as their keyId.',
    arguments: [{ name: 'NAME', description: 'The display name.' }],
    flags: {
      source: { placeholder: 'SOURCE', description: 'A source that its access tokens may send to, by id or name.', many: true },
      key: { placeholder: 'FILE', description: KEY_SENTENCE },
      'key-id': { placeholder: 'ID', description: 'The id of the key.', defaultText: 'generated' },
    },
    examples: ["switchyard oauth-apps create 'web shop' --source default --key public.pem"],
    async run(call) {
      const [file, keyId] = [call.flag('key'), call.flag('key-id')]
      if (file === undefined && keyId !== undefined) throw new UsageProblem('--key-id can be used only with --key.')
      const keys = file === undefined ? [] : [{ ...(keyId === undefined ? {} : { id: keyId }), publicKeyPem: await readKey(file) }]
      const sourceIds = await idsOf(call.api, 'source', call.flags('source'))
      show(call, await call.api.post('/api/oauth-apps', { name: call.arguments[0], sourceIds, keys }))
    },
  },
  {
    name: 'oauth-apps update',
    summary: 'Change the name or the sources of an OAuth application',
    arguments: [APP],
    flags: {
      name: { placeholder: 'NAME', description: 'The new name.' },
      source: {
        placeholder: 'SOURCE',
        description: 'A source that its access tokens may send to, by id or name. Replaces all current sources.',
        many: true,
      },
    },
    async run(call) {
      const [name, sources] = [call.flag('name'), call.flags('source')]
      const body = {
        ...(name === undefined ? {} : { name }),
        ...(sources.length === 0 ? {} : { sourceIds: await idsOf(call.api, 'source', sources) }),
      }
      if (Object.keys(body).length === 0) throw new UsageProblem('Nothing to change: use --name or --source.')
      show(call, await call.api.patch(await resourcePath(call, KIND), body))
    },
  },
  {
    name: 'oauth-apps add-key',
    summary: 'Add a public key, so that keys can be rotated without downtime',
    arguments: [APP, { name: 'FILE', description: KEY_SENTENCE }],
    flags: { 'key-id': { placeholder: 'ID', description: 'The id of the key.', defaultText: 'generated' } },
    async run(call) {
      const keyId = call.flag('key-id')
      const body = { ...(keyId === undefined ? {} : { id: keyId }), publicKeyPem: await readKey(call.arguments[1] as string) }
      const app = await call.api.post(`${await resourcePath(call, KIND)}/keys`, body)
      showResult(call, app, `Added the key. Its keyId is ${cell(app['keyId'])}.`)
    },
  },
  removeKeyCommand({
    name: 'oauth-apps remove-key',
    summary: 'Remove a key (tokens that were issued for it are rejected from now on)',
    arguments: [APP, { name: 'KEY_ID', description: 'The id of the key.' }],
    kind: KIND,
    keys: 'keys',
    field: 'keyId',
    question: (key, app) => `Remove the key ${key} of ${app}? Access tokens that were issued for it will be rejected.`,
    done: (key) => `Removed the key ${key}.`,
  }),
  {
    name: 'oauth-apps revoke-tokens',
    summary: 'Revoke all access tokens of an application (it can request new ones)',
    arguments: [APP],
    async run(call) {
      const app = await call.api.post(`${await resourcePath(call, KIND)}/revoke-tokens`)
      showResult(call, app, `Revoked the access tokens of ${cell(app['name'])}.`)
    },
  },
  deleteCommand({
    name: 'oauth-apps delete',
    summary: 'Delete an OAuth application (its tokens are rejected from now on)',
    arguments: [APP],
    kind: KIND,
    question: (app, id) => `Delete the OAuth application ${app} (${id})? Its keys and access tokens will be rejected.`,
  }),
]

/** Rejects a private key before it leaves this machine. */
async function readKey(file: string): Promise<string> {
  const pem = file === '-' ? await readText('The key', '-') : readNamedFile('The key', file.replace(/^@/, ''))
  if (/PRIVATE KEY-----/.test(pem))
    throw new UsageProblem(
      'This is a private key. Keep it secret and give the public key instead; `openssl pkey -in private.pem -pubout` prints it.',
    )
  return pem
}

function show({ json, out }: Call, app: JsonObject): void {
  if (json) return out.json(app)
  const { id, name, sourceIds, keys, tokensRevokedBefore, createdAt } = app
  showFacts(out, [
    ['clientId', id],
    ['name', name],
    ['sources', sourceIds],
    ['keyIds', (keys as { id: string }[]).map(({ id }) => id)],
    ['tokens revoked', tokensRevokedBefore == null ? undefined : `all issued before ${time(tokensRevokedBefore)}`],
    ['created', time(createdAt)],
  ])
}
