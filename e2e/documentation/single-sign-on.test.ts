// The settings in the guide to single sign-on are those that the service reads: each block is accepted as it is written.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../packages/server/src/config.ts'

const PAGE = join(import.meta.dirname, '..', '..', 'docs', 'guide', 'single-sign-on.md')

test('each block of settings in the guide is accepted, and its rules give an admin', () => {
  const blocks = [...readFileSync(PAGE, 'utf8').matchAll(/^ *```sh[^\n]*\n(.*?)^ *```/gms)]
    .map(([, text = '']) => text.replaceAll(/^ {3}/gm, ''))
    .filter((text) => text.includes('SWITCHYARD_OIDC_ROLES='))
  assert.equal(blocks.length, 4)
  for (const block of blocks) {
    const given = [...block.matchAll(/^(?:export )?(SWITCHYARD_\w+)=(?:'([^']*)'|(\S+))/gm)]
    const env = Object.fromEntries(given.map(([, name = '', quoted, plain]): [string, string] => [name, quoted ?? plain ?? '']))
    const result = readConfig({ SWITCHYARD_PUBLIC_URL: 'https://switchyard.example.com', ...env })
    assert.equal(result.kind, 'config', JSON.stringify(result))
    if (result.kind !== 'config') return
    assert.ok(
      result.config.oidcRoles?.some(({ role }) => role === 'admin'),
      block,
    )
  }
})
