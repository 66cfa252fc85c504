import assert from 'node:assert/strict'
import test from 'node:test'
import { commandFor, namesCommand, withCommand } from './commands.ts'

test('commands in a text become what the reader can run, and other uses of the name stay', () => {
  const command = commandFor('/srv/clone/switchyard', 'http://127.0.0.1:9000')
  assert.equal(command, 'SWITCHYARD_URL=http://127.0.0.1:9000 /srv/clone/switchyard')
  assert.equal(commandFor('/srv/clone/switchyard', 'http://localhost:8080'), '/srv/clone/switchyard')
  for (const [text, expected] of [
    ['It is not installed: run `switchyard catalog install`.', 'It is not installed: run `X catalog install`.'],
    ['To resume it, run: switchyard destinations resume dst_1', 'To resume it, run: X destinations resume dst_1'],
    ['The store /data/switchyard.db and the schema switchyard of it', 'The store /data/switchyard.db and the schema switchyard of it'],
  ] as const) {
    assert.equal(withCommand(text, 'X'), expected)
    assert.equal(namesCommand(text), text !== expected)
  }
})
