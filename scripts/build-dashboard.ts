// Builds the dashboard if its sources or packages have changed since the last build. The service serves
// packages/dashboard/dist. Without a change this takes no time, so every start can call it.

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, constants as zlib } from 'node:zlib'
import { reasonOf } from './build-failure.ts'
import { putInPlace } from './put-in-place.ts'

const root = join(import.meta.dirname, '..')
const folder = join(root, 'packages', 'dashboard')
const dist = join(folder, 'dist')
const stampFile = join(dist, '.built-from')

/** Returns whether there is an up-to-date build now. If the build fails, prints why: in one line if `brief`, otherwise with the full output. */
export function buildDashboard({ brief = false }: { brief?: boolean } = {}): boolean {
  const stamp = hashOfSources()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return true
  const failed = (output: string): false => {
    const instead = existsSync(stampFile) ? 'The service serves the last build' : 'The service runs without the dashboard'
    const line = `The dashboard could not be built: ${reasonOf(output)}. ${instead}.`
    process.stderr.write(brief ? `${line} For the full output: npm run build:dashboard\n` : `${output}${line}\n`)
    return false
  }
  const vite = join(root, 'node_modules', 'vite', 'bin', 'vite.js')
  // Without development dependencies it cannot be built here, so an existing build is used.
  if (!existsSync(vite)) return existsSync(stampFile) || failed('vite is not installed: npm ci installs it\n')
  // Built in a separate folder and moved into place when complete, because the service may be serving the old build, or another process building, too.
  const fresh = join(folder, `dist-${process.pid}`)
  const args = [vite, 'build', '--logLevel', 'warn', '--outDir', fresh, '--emptyOutDir']
  try {
    accessSync(folder, constants.W_OK)
    process.stderr.write('Building the dashboard (only after changes) …\n')
    const { status, stderr, stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
    if (status !== 0) return failed(`${stdout}${stderr}`)
    compress(fresh)
    writeFileSync(join(fresh, '.built-from'), stamp)
    putInPlace(fresh, dist)
    return true
  } catch (error) {
    return failed(`${String(error)}\n`)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Compresses files once at the highest level. The service would have to compress quickly, which makes files larger by a twelfth. */
function compress(fresh: string): void {
  for (const name of globSync('assets/*.{js,css}', { cwd: fresh })) {
    const bytes = readFileSync(join(fresh, name))
    const params = { [zlib.BROTLI_PARAM_QUALITY]: zlib.BROTLI_MAX_QUALITY, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length }
    writeFileSync(join(fresh, `${name}.br`), brotliCompressSync(bytes, { params }))
  }
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  const files = globSync(['src/**/*', 'public/*', 'index.html', 'vite.config.ts', 'used-styles.ts', 'font.ts', 'package.json'], {
    cwd: folder,
  }).sort()
  for (const file of [...files.map((each) => join(folder, each)), join(root, 'package-lock.json')]) {
    try {
      hash.update(file.slice(root.length)).update(readFileSync(file))
    } catch {
      // A folder.
    }
  }
  return hash.digest('hex')
}

if (import.meta.main) process.exit(buildDashboard({ brief: process.argv.includes('--brief') }) ? 0 : 1)
