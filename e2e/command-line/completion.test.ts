// The completion script with the real commands, in a real shell. It needs no service.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { says } from '../system/command-line.ts'

test('completion of the real commands works in bash', {
  skip: spawnSync('bash', ['-c', 'true']).status === 0 ? false : 'bash is not installed',
}, async () => {
  const script = await says({ url: 'http://127.0.0.1:1', token: '' }, 'completion', 'bash')
  const offered = (...words: string[]): string[] => {
    const ask = `COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _switchyard; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', `${script}\n${ask}`, 'bash', 'switchyard', ...words], {
      encoding: 'utf8',
    })
    assert.equal(stderr, '')
    return stdout.trimEnd().split('\n')
  }
  assert.deepEqual(offered('dest'), ['destinations'])
  assert.deepEqual(offered('destinations', 'dis'), ['disable'])
  assert.deepEqual(offered('deliveries', '--sta'), ['--state'])
  assert.deepEqual(offered('deliveries', '--state', 'exp'), ['expired'])
  assert.deepEqual(offered('completion', 'z'), ['zsh'])
  assert.deepEqual(offered('tokens', 'create', 'x', '--role', ''), ['viewer', 'editor', 'admin'])
})
