import assert from 'node:assert/strict'
import test from 'node:test'
import { COMMANDS } from '../commands.ts'
import { confirm } from './confirm.ts'
import { EXIT } from './problem.ts'

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

test('every command that deletes a resource asks', () => {
  const asking = COMMANDS.filter(({ flags }) => flags !== undefined && 'yes' in flags).map(({ name }) => name)
  const deleting = COMMANDS.filter(({ name }) => / (delete|revoke|remove-key)$/.test(name)).map(({ name }) => name)
  assert.deepEqual(asking.sort(), deleting.sort())
})
