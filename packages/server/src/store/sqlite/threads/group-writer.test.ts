import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Answered, Group, WriterCommand } from '../commands/protocol.ts'
import { tempFolder } from '../fixtures/temp-store.ts'
import { writeSetting } from '../schema/settings.ts'
import { openWriterContext } from '../writing/writer-context.ts'
import { GroupWriter } from './group-writer.ts'

type Order = [kind: string, name?: string]

function groupOf(...orders: Order[]): Group {
  return { buffer: null, kinds: orders.map(([kind]) => kind), commands: orders.map(([, name]): object => ({ name })) }
}

/** A writer whose commands write a setting, at once or some microtasks later, and a log of the order in which they began and ended. */
function openFor(t: TestContext) {
  const folder = tempFolder()
  const context = openWriterContext({ path: join(folder, 'test.db'), dedupMs: 1_000 })
  t.after(() => {
    context.database.close()
    rmSync(folder, { recursive: true, force: true })
  })
  const { database } = context
  const log: string[] = []
  const set = ({ name }: { name: string }): string => {
    assert.ok(database.isTransaction)
    writeSetting(database, name, 'set')
    log.push(name)
    return name
  }
  const microtasks = async (): Promise<void> => {
    for (let at = 0; at < 50; at++) await Promise.resolve()
  }
  const full = Object.assign(new Error('database or disk is full'), { errcode: 13 })
  const commands: Record<string, WriterCommand> = {
    set: { run: set },
    setLater: {
      async run(command: { name: string }) {
        log.push(`${command.name}…`)
        await microtasks()
        return set(command)
      },
    },
    failLater: {
      async run(command: { name: string }) {
        set(command)
        await microtasks()
        throw new Error('refused')
      },
    },
    fullLater: {
      async run(command: { name: string }) {
        set(command)
        await microtasks()
        throw full
      },
    },
    look: { run: () => log.push(database.isTransaction ? 'inside' : 'outside'), outside: 'after' },
    lookLater: {
      async run() {
        await microtasks()
        log.push(database.isTransaction ? 'inside' : 'outside')
      },
      outside: 'after',
    },
  }
  const stored = (): string[] =>
    (database.prepare("SELECT name FROM settings WHERE value = 'set' ORDER BY name").all() as { name: string }[]).map(({ name }) => name)
  return { writer: new GroupWriter(context, commands), log, stored, isOpen: () => database.isTransaction }
}

const values = ({ replies }: Answered): unknown[] => replies.map((reply) => (reply.ok ? reply.value : reply.message))

test('a group whose commands all answer synchronously is answered synchronously', (t) => {
  const { writer, stored, isOpen } = openFor(t)
  const answered = writer.run(groupOf(['set', 'a'], ['look'], ['set', 'b']))
  assert.ok(!(answered instanceof Promise))
  assert.equal(answered.committed, true)
  assert.deepEqual(stored(), ['a', 'b'])
  assert.equal(isOpen(), false)
})

test('a command that answers with a promise keeps its transaction open, and later groups wait', async (t) => {
  const { writer, log, stored, isOpen } = openFor(t)
  const first = writer.run(groupOf(['set', 'a'], ['setLater', 'b'], ['lookLater'], ['set', 'c']))
  const second = writer.run(groupOf(['look'], ['set', 'd']))
  const third = writer.run(groupOf(['setLater', 'e']))
  assert.ok(isOpen())
  assert.deepEqual(log, ['a', 'b…'], 'no command of another group runs in between')
  assert.deepEqual(values(await first), ['a', 'b', undefined, 'c'])
  const { committed, commitMs } = await first
  assert.ok(committed && commitMs !== null)
  await Promise.all([second, third])
  assert.deepEqual(log, ['a', 'b…', 'b', 'c', 'outside', 'd', 'outside', 'e…', 'e'])
  assert.deepEqual(stored(), ['a', 'b', 'c', 'd', 'e'])
  assert.ok(!(writer.run(groupOf(['set', 'f'])) instanceof Promise), 'if no group is waiting, a group is answered synchronously again')
})

test('if the promise of a command rejects, only that command is rolled back, and the others of its group are committed', async (t) => {
  const { writer, stored, isOpen } = openFor(t)
  const first = writer.run(groupOf(['set', 'a'], ['failLater', 'b'], ['setLater', 'c']))
  const second = writer.run(groupOf(['set', 'd']))
  assert.deepEqual(values(await first), ['a', 'refused', 'c'])
  assert.deepEqual((await first).replies[1], { ok: false, unavailable: false, message: 'refused' })
  await second
  assert.deepEqual(stored(), ['a', 'c', 'd'])
  assert.equal(isOpen(), false)
})

test('if the promise of a command rejects because the disk is full, the whole group fails, and the next group is run', async (t) => {
  const { writer, stored, log } = openFor(t)
  const first = writer.run(groupOf(['set', 'a'], ['fullLater', 'b'], ['set', 'c']))
  const second = writer.run(groupOf(['set', 'd']))
  const { replies, committed } = await first
  assert.equal(committed, false)
  for (const reply of replies) assert.deepEqual(reply, { ok: false, unavailable: true, message: 'database or disk is full' })
  await second
  assert.deepEqual(log, ['a', 'b', 'd'], 'commands of the failed group are not run one by one')
  assert.deepEqual(stored(), ['d'])
})
