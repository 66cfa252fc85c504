// Builds the documentation site if its sources or packages have changed since the last build. The service serves
// docs/.vitepress/dist, and switches to a new build as soon as it exists. So `npm start` runs this quietly beside the service, and it does
// not delay the start. Dead links fail the build.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from './build-failure.ts'
import { putInPlace } from './put-in-place.ts'

const root = join(import.meta.dirname, '..')
const docs = join(root, 'docs')
const home = join(docs, '.vitepress')
const dist = join(home, 'dist')
const stampFile = join(dist, '.built-from')

/** Returns whether there is an up-to-date build now. Prints a line when it starts to build; with `quiet`, prints only failures. */
export async function buildDocs({ quiet = false, signal }: { quiet?: boolean; signal?: AbortSignal } = {}): Promise<boolean> {
  const stamp = hashOfSources()
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === stamp) return true
  if (!existsSync(join(root, 'node_modules', 'vitepress'))) return existsSync(stampFile)
  if (!quiet) process.stderr.write('Building the documentation …\n')
  const failed = (output: string): false => {
    const line = `The documentation could not be built: ${reasonOf(output)}.${existsSync(stampFile) ? ' The last build stays in use.' : ''}`
    process.stderr.write(quiet ? `${line} For the full output: npm run build:docs\n` : `${output}${line}\n`)
    return false
  }
  // Built in a separate folder and moved into place when complete, because the service may be serving the old build, or another process building, too.
  const fresh = join(home, `dist-${process.pid}`)
  try {
    removeLeftOver()
    const { code, output } = await run(fresh, signal)
    if (signal?.aborted) return false
    if (code !== 0) return failed(output)
    writeFileSync(join(fresh, '.built-from'), stamp)
    putInPlace(fresh, dist)
    return true
  } catch (error) {
    return failed(`${String(error)}\n`)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
    rmSync(temporaryOf(fresh), { recursive: true, force: true })
  }
}

/** Runs in a separate process, because VitePress uses much memory and its output is needed only if it fails. */
function run(fresh: string, signal: AbortSignal | undefined): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [import.meta.filename, '--into', fresh], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = (): void => void child.kill('SIGKILL')
  signal?.addEventListener('abort', stop)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output: Buffer.concat(chunks).toString() }))
  })
}

const temporaryOf = (fresh: string): string => `${fresh}-temporary`

async function buildInto(fresh: string): Promise<void> {
  const { build } = await import('vitepress')
  const options = {
    outDir: fresh,
    // Several builds may run at once, so each has its own temporary folder.
    onAfterConfigResolve(config: { tempDir: string }) {
      config.tempDir = temporaryOf(fresh)
    },
  }
  await build(docs, options)
}

/** Removes the folders of builds that were killed. */
function removeLeftOver(): void {
  for (const name of readdirSync(home)) {
    const [, pid] = /^dist-(\d+)/.exec(name) ?? []
    if (pid !== undefined && !isAlive(Number(pid))) rmSync(join(home, name), { recursive: true, force: true })
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

function hashOfSources(): string {
  const hash = createHash('sha256')
  const sources = globSync(['**/*.{md,yml,json,png,svg}', '.vitepress/*.ts', '.vitepress/theme/*'], { cwd: docs })
  const files = sources.filter((file) => !file.replaceAll('\\', '/').startsWith('.vitepress/dist')).sort()
  for (const file of [...files.map((each) => join(docs, each)), join(root, 'package-lock.json')])
    hash.update(file.slice(root.length)).update(readFileSync(file))
  return hash.digest('hex')
}

if (import.meta.main) {
  const [flag, folder] = process.argv.slice(2)
  if (flag === '--into' && folder !== undefined) await buildInto(folder)
  else {
    const stopping = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort())
    process.exitCode = (await buildDocs({ quiet: flag === '--quiet', signal: stopping.signal })) ? 0 : 1
  }
}
