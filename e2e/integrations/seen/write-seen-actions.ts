// Writes seen-actions.json from what the tests see: `npm run record:integrations`, which takes some minutes. Then scripts/reference.ts writes the
// table in the documentation. If a test fails, the file stays as it is.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SEEN_FILE, WRITE_VARIABLE } from './seen-actions.ts'

const folder = join(import.meta.dirname, '..')
const files = globSync('**/*.test.ts', { cwd: folder }).filter(
  (file) => !file.startsWith('seen') && /\b(checkSeen|acceptedByStandIn)\(/.test(readFileSync(join(folder, file), 'utf8')),
)
const before = readFileSync(SEEN_FILE, 'utf8')
writeFileSync(SEEN_FILE, '{}\n')
// One file at a time: each adds to the record.
const { status } = spawnSync(process.execPath, ['--test', '--test-concurrency=1', ...files], {
  cwd: folder,
  env: { ...process.env, [WRITE_VARIABLE]: '1', SWITCHYARD_LONG_TESTS: '1' },
  stdio: 'inherit',
})
if (status === 0)
  spawnSync(join(folder, '..', '..', 'node_modules', '.bin', 'biome'), ['format', '--write', SEEN_FILE], { stdio: 'inherit' })
else {
  writeFileSync(SEEN_FILE, before)
  process.exitCode = 1
}
