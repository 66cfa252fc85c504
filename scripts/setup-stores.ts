// Installs the stores that some tests need and that are not packages of npm: versitygw, an S3 server, with Go, and chdb, which is ClickHouse as a library, in a
// virtual environment of Python. Both below node_modules/.cache. Whichever cannot be installed is reported, and its tests are skipped.

import { spawnSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { STORES_FOLDER } from '../packages/warehouse/src/fixtures/real-stores.ts'

const VERSITYGW = 'github.com/versity/versitygw/cmd/versitygw@v1.8.0'
const CHDB = 'chdb==4.4.0'

mkdirSync(join(STORES_FOLDER, 'bin'), { recursive: true })
const python = join(STORES_FOLDER, 'python')
install(VERSITYGW, 'Go 1.24 or later', [['go', ['install', VERSITYGW]]])
install(CHDB, 'Python 3.9 or later with venv and pip', [
  ['python3', ['-m', 'venv', python]],
  [join(python, 'bin', 'pip'), ['install', '--disable-pip-version-check', CHDB]],
])

function install(name: string, needs: string, commands: [file: string, args: string[]][]): void {
  for (const [file, args] of commands) {
    const env = { ...process.env, GOBIN: join(STORES_FOLDER, 'bin') }
    const { status, error } = spawnSync(file, args, { stdio: 'inherit', env })
    if (status === 0) continue
    console.error(`${name} could not be installed: ${error?.message ?? `${file} ended with ${status}`}. It needs ${needs}.`)
    process.exitCode = 1
    return
  }
  console.log(`installed ${name}`)
}
