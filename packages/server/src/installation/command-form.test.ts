import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { commandForm, inForm } from './command-form.ts'

const REPOSITORY = join(import.meta.dirname, '..', '..', '..', '..')

test('in a clone the program is named by its path, which works in any folder', () => {
  assert.equal(commandForm(), join(REPOSITORY, 'switchyard'))
  assert.equal(commandForm({ cwd: REPOSITORY }), './switchyard')
  assert.match(execFileSync(join(REPOSITORY, 'switchyard'), ['--version'], { cwd: tmpdir(), encoding: 'utf8' }), /^\d+\.\d+\.\d+\n$/)
})

test('in a project, globally, with npx and in the image the form is the one that works there', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard form-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const server = join('node_modules', '@switchyard', 'server', 'dist', 'installation')
  const program = join(folder, 'project', 'node_modules', '.bin', 'switchyard')
  mkdirSync(join(program, '..'), { recursive: true })
  writeFileSync(program, '')
  assert.equal(commandForm({ folder: join(folder, 'project', server) }), `'${program}'`)
  assert.equal(commandForm({ folder: join(folder, 'lib', server) }), 'switchyard')
  assert.equal(commandForm({ folder: join(folder, '_npx', '0a1b', server) }), 'npx @switchyard/server')
  assert.equal(commandForm({ folder: join(folder, 'app', 'packages', 'server', 'src', 'installation') }), 'switchyard')
})

test('the address is part of it unless it is the usual one', () => {
  const cwd = REPOSITORY
  for (const url of ['http://127.0.0.1:8080', 'http://localhost:8080']) assert.equal(commandForm({ cwd, url }), './switchyard')
  assert.equal(commandForm({ cwd, url: 'http://127.0.0.1:9000' }), 'SWITCHYARD_URL=http://127.0.0.1:9000 ./switchyard')
})

test('commands in a text get the form, and other uses of the name do not', () => {
  for (const [text, expected] of [
    ['Run `switchyard trace m-1` to see it.', 'Run `X trace m-1` to see it.'],
    ['Usage: switchyard [COMMAND]', 'Usage: X [COMMAND]'],
    ['  switchyard deliveries | switchyard replay -', '  X deliveries | X replay -'],
    [
      '  SWITCHYARD_STORE=postgres://switchyard@db/switchyard switchyard doctor',
      '  SWITCHYARD_STORE=postgres://switchyard@db/switchyard X doctor',
    ],
    ['source <(switchyard completion bash)', 'source <(X completion bash)'],
    ['Run switchyard serve once.', 'Run X serve once.'],
    ['Run the same switchyard migrate-store command again.', 'Run the same X migrate-store command again.'],
    ['Without a command, switchyard runs the service.', 'Without a command, switchyard runs the service.'],
    ['the schema switchyard of the database', 'the schema switchyard of the database'],
    ['sqlite:/data/switchyard.db and @switchyard/node', 'sqlite:/data/switchyard.db and @switchyard/node'],
  ] as const)
    assert.equal(inForm(text, 'X'), expected)
})
