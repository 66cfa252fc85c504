import assert from 'node:assert/strict'
import test from 'node:test'
import { COMMANDS } from '../commands.ts'
import type { Api } from '../service/api.ts'
import { EXIT } from '../service/problem.ts'
import type { Call } from './command.ts'
import { confirm } from './confirm.ts'

const without = { has: () => false }

test('in a terminal, only yes continues', async () => {
  const asked: string[] = []
  const answering = (answer: string) => ({ ...without, ask: async (question: string) => (asked.push(question), answer) })
  for (const answer of ['y', 'Y', ' yes ']) await confirm(answering(answer), 'Delete it?')
  for (const answer of ['', 'n', 'no', 'yess'])
    await assert.rejects(confirm(answering(answer), 'Delete it?'), { message: 'Nothing was changed.', exit: EXIT.failed })
  assert.equal(asked[0], 'Delete it? [y/N] ')
})

test('without a terminal, --yes is required', async () => {
  await assert.rejects(confirm({ ...without, ask: null }, 'Delete it?'), {
    exit: EXIT.usage,
    message: /: Delete it\? To confirm, add --yes\.$/,
  })
  await confirm({ has: (name) => name === 'yes', ask: null }, 'Delete it?')
})

test('every command that deletes a resource has the flag --yes', () => {
  const asking = COMMANDS.filter(({ flags }) => flags !== undefined && 'yes' in flags).map(({ name }) => name)
  const deleting = COMMANDS.filter(({ name }) => / (delete|revoke|remove-key)$/.test(name)).map(({ name }) => name)
  assert.deepEqual(asking.sort(), deleting.sort())
})

for (const command of COMMANDS.filter(({ flags }) => flags !== undefined && 'yes' in flags))
  test(`${command.name} changes nothing without --yes`, async () => {
    const changes: string[] = []
    const change = async (path: string): Promise<object> => (changes.push(path), {})
    const named = { id: 'id_1', name: 'x', pending: 3 }
    const api = {
      get: async () => named,
      all: async function* () {
        yield named
      },
      delete: change,
      post: change,
      patch: change,
    } as unknown as Api
    const call = { ...without, arguments: ['x', 'y'], ask: null, api, flag: () => undefined, flags: () => [] } as unknown as Call
    await assert.rejects(command.run(call), { exit: EXIT.usage, message: /^Nothing was changed, .*\? .*To confirm, add --yes\.$/ })
    assert.deepEqual(changes, [])
  })
