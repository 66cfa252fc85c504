// The published packages: packed from dist/ and installed from the tarball into an empty project, without access to the workspace. Also the
// Node.js versions to run them on, which are downloaded once.

import { globSync } from 'node:fs'
import { access, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { npm, run } from '../system/run-program.ts'

export const repository = join(import.meta.dirname, '..', '..')

export const PACKAGES = ['protocol', 'webhook', 'node'] as const
export type PackageName = (typeof PACKAGES)[number]

const PINNED_MAJOR = Number(process.versions.node.split('.')[0])
const runtimeCache = join(repository, 'node_modules', '.cache', 'switchyard')

/** Packs all of them into the folder and returns the tarballs. */
export async function pack(folder: string): Promise<Record<PackageName, string>> {
  if (await isStale()) await run(process.execPath, [join(repository, 'scripts', 'build.ts')], { cwd: repository, deadlineMs: 60_000 })
  await mkdir(folder, { recursive: true })
  const folders = PACKAGES.map((name) => join(repository, 'packages', name, 'dist'))
  await npm(['pack', ...folders, '--pack-destination', folder], { cwd: folder })
  const tarballs = await readdir(folder)
  const tarballOf = (name: PackageName): string => {
    const found = tarballs.find((file) => file.startsWith(`switchyard-${name}-`) && file.endsWith('.tgz'))
    if (found === undefined) throw new Error(`npm pack made no tarball of ${name}: ${tarballs.join(', ')}`)
    return join(folder, found)
  }
  return { protocol: tarballOf('protocol'), webhook: tarballOf('webhook'), node: tarballOf('node') }
}

/** Creates an empty project and installs tarballs in it, without a registry. */
export async function installIn(project: string, tarballs: string[]): Promise<void> {
  await mkdir(project, { recursive: true })
  await writeFile(join(project, 'package.json'), '{ "private": true }\n')
  await npm(['install', '--prefix', project, '--offline', '--no-audit', '--no-fund', ...tarballs], { cwd: project })
}

/** The binary of a Node.js version. Undefined if it is not downloaded yet and the registry is unreachable. */
export async function runtime(major: number): Promise<string | undefined> {
  if (major === PINNED_MAJOR) return process.execPath
  return cached(`node-${major}`, `node@${major}`, binaryIn, async (fresh) => {
    // Its install script fetches the binary. It is run here in case install scripts are disabled.
    if (!(await exists(binaryIn(fresh))))
      await run(process.execPath, ['installArchSpecificPackage.js'], { cwd: join(fresh, 'node_modules', 'node'), deadlineMs: 120_000 })
  })
}

/** The program of an npm that runs on Node.js 18 and later. Undefined as above. */
export function npmForNode18(): Promise<string | undefined> {
  return cached('npm-10', 'npm@10', (home) => join(home, 'node_modules', 'npm', 'bin', 'npm-cli.js'))
}

async function cached(
  name: string,
  wanted: string,
  fileIn: (home: string) => string,
  complete: (home: string) => Promise<void> = async () => {},
): Promise<string | undefined> {
  const home = join(runtimeCache, name)
  const file = fileIn(home)
  if (await exists(file)) return file
  // Installed in another folder and renamed, so that a concurrent run never sees an incomplete one.
  const fresh = `${home}.${process.pid}`
  try {
    await mkdir(fresh, { recursive: true })
    const flags = ['--no-audit', '--no-fund', '--no-package-lock', '--fetch-retries=1', '--fetch-retry-mintimeout=1000']
    await npm(['install', '--prefix', fresh, ...flags, wanted], { cwd: fresh, deadlineMs: 120_000 })
    await complete(fresh)
    await rename(fresh, home).catch(async (error: unknown) => {
      if (!(await exists(file))) throw error
    })
    return file
  } catch (error) {
    if (/\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b/.test(String(error))) return undefined
    throw error
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}

function binaryIn(prefix: string): string {
  return join(prefix, 'node_modules', 'node', 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

/** Whether a source was changed after the build, as can happen if these tests are run alone. */
async function isStale(): Promise<boolean> {
  const built = await Promise.all(PACKAGES.map((name) => changedAt(join(repository, 'packages', name, 'dist', 'package.json'))))
  const sources = globSync(['packages/*/src/**/*.ts', 'packages/*/package.json', 'scripts/build.ts', 'package.json'], { cwd: repository })
  const changed = await Promise.all(sources.map((file) => changedAt(join(repository, file))))
  return Math.min(...built) < Math.max(...changed)
}

async function changedAt(file: string): Promise<number> {
  return (await exists(file)) ? (await stat(file)).mtimeMs : 0
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}

export async function readJson(file: string): Promise<Record<string, unknown>> {
  return JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>
}
