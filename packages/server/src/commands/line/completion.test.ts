import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import { type Call, type Command, EXIT } from './command.ts'
import { completionCommand } from './completion.ts'

const run = async (): Promise<typeof EXIT.ok> => EXIT.ok
const COMMANDS: readonly Command[] = [
  {
    name: 'serve',
    summary: "Run the service's parts",
    flags: { port: { placeholder: 'PORT', description: 'The port.' } },
    isService: true,
    run,
  },
  { name: 'sources list', summary: 'Lists', flags: { limit: { placeholder: 'NUMBER', description: 'Most.' } }, run },
  {
    name: 'sources update',
    summary: 'Changes: one',
    flags: { enabled: { placeholder: 'BOOLEAN', description: 'Whether [so].', values: ['true', 'false'] } },
    run,
  },
  {
    name: 'send',
    summary: 'Sends',
    arguments: [{ name: 'TYPE', description: 'T.', values: ['track', 'page'] }],
    flags: { wait: { placeholder: null, description: 'W.' } },
    run,
  },
  { name: 'replay', summary: 'Replays', run },
  { name: 'replay list', summary: 'Lists replays', run },
]

async function scriptFor(shell: string): Promise<string> {
  let text = ''
  const out = { text: (line: string) => (text += `${line}\n`) }
  await completionCommand(() => COMMANDS).run({ arguments: [shell], json: false, out } as unknown as Call)
  return text
}

function has(program: string): boolean {
  return spawnSync(program, ['-c', 'true']).status === 0
}

/** What bash offers after the words, the last of which is being typed. */
function offered(script: string, ...typed: string[]): string[] {
  const asked = `COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _switchyard; printf '%s\\n' "\${COMPREPLY[@]}"`
  const done = spawnSync('bash', ['--norc', '-c', `${script}\n${asked}`, 'bash', 'switchyard', ...typed], { encoding: 'utf8' })
  assert.equal(done.stderr, '')
  return done.stdout
    .split('\n')
    .filter((line) => line !== '')
    .sort()
}

test('bash completes commands, subcommands, flags and values', { skip: has('bash') ? false : 'bash is not installed' }, async () => {
  const script = await scriptFor('bash')
  assert.deepEqual(offered(script, ''), ['help', 'replay', 'send', 'serve', 'sources'])
  assert.deepEqual(offered(script, 'se'), ['send', 'serve'])
  assert.deepEqual(offered(script, 'sources', ''), ['list', 'update'])
  assert.deepEqual(offered(script, 'sources', 'u'), ['update'])
  assert.deepEqual(offered(script, 'replay', 'l'), ['list'])
  assert.deepEqual(offered(script, 'send', ''), ['page', 'track'])
  assert.deepEqual(offered(script, 'send', '--w'), ['--wait'])
  assert.deepEqual(offered(script, 'sources', 'update', 'x', '--en'), ['--enabled'])
  assert.deepEqual(offered(script, 'sources', 'update', '--enabled', ''), ['false', 'true'])
  assert.deepEqual(offered(script, 'sources', '--li'), ['--limit'], 'the flags of sources list, which sources alone runs')
  assert.deepEqual(offered(script, '--p'), ['--port'], 'of serve')
  assert.deepEqual(offered(script, '--url', 'http://x', 'so'), ['sources'], 'after a global flag')
  assert.deepEqual(offered(script, 'sources', 'update', '--nothing-like-it'), [])
})

test('bash, zsh and fish can parse their script', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-completion-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = await scriptFor(shell)
    for (const word of ['sources', 'update', 'enabled', 'track']) assert.ok(script.includes(word), `${shell}: ${word}`)
    if (!has(shell)) continue
    // From a file, because fish cannot check other input.
    const file = join(folder, shell)
    writeFileSync(file, script)
    const checked = spawnSync(shell, ['-n', file], { encoding: 'utf8' })
    assert.deepEqual([checked.status, checked.stderr], [0, ''], shell)
  }
})

test('fish completes commands, subcommands and flags', { skip: has('fish') ? false : 'fish is not installed' }, async () => {
  const script = await scriptFor('fish')
  const offered = (typed: string): string[] => {
    const done = spawnSync('fish', ['--no-config', '-c', `${script}\ncomplete -C '${typed}'`], { encoding: 'utf8' })
    assert.equal(done.stderr, '')
    return done.stdout.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t', 1)[0] as string]))
  }
  assert.deepEqual(offered('switchyard se').sort(), ['send', 'serve'])
  assert.deepEqual(offered('switchyard sources u'), ['update'])
  assert.deepEqual(offered('switchyard send --w'), ['--wait'])
})
