// Compiles the sources of a package for publishing: to JavaScript file by file, because Node.js does not strip types under node_modules, and to type
// declarations.

import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'

const root = join(import.meta.dirname, '..')
/** Files that only tests use. */
const LEFT_OUT = /\.test\.ts$|(?:^|\/)(?:fixtures|conformance)\/|(?:^|\/)conformance\.ts$/

/** Nothing is bundled: threads and processes are started from files, and stack traces show the source's file names. */
export async function compileSources(home: string, outdir: string): Promise<void> {
  const files = globSync('**/*.ts', { cwd: join(home, 'src') }).filter((file) => !LEFT_OUT.test(file))
  await build({
    entryPoints: files.map((file) => join(home, 'src', file)),
    outdir,
    outbase: join(home, 'src'),
    bundle: false,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'inline',
    logLevel: 'warning',
  })
  for (const file of files) {
    const built = join(outdir, file.replace(/\.ts$/, '.js'))
    // Rewrites imports, and paths of files that threads are started from.
    const text = readFileSync(built, 'utf8').replaceAll(/(["'])(\.{1,2}\/[^"'\n]+)\.ts\1/g, '$1$2.js$1')
    writeFileSync(built, text)
  }
}

/** Lets the compiler write the types of all packages to a temporary folder. */
export function declarations(): string {
  const out = mkdtempSync(join(tmpdir(), 'switchyard-types-'))
  const project = join(root, 'scripts', 'tsconfig.declarations.json')
  const { status } = spawnSync(
    join(root, 'node_modules', '.bin', 'tsc'),
    ['--project', project, '--outDir', out, '--rootDir', join(root, 'packages')],
    {
      stdio: 'inherit',
    },
  )
  if (status !== 0) process.exit(status ?? 1)
  return out
}
