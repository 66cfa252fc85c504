// Builds the three published packages into packages/*/dist, each a complete package of its own: ESM and CommonJS
// bundles, types, a package.json without dependencies. In the repository the packages run from src/ and are never built.

import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build, type Format } from 'esbuild'

const root = join(import.meta.dirname, '..')

interface Published {
  name: string
  /** Files that stay modules of their own in the bundle; index always does. */
  entries: string[]
  /** Workspace packages whose code and types are carried inside, so that the published package depends on nothing. */
  carries: string[]
  /** What the package's own manifest sets beyond the common fields. */
  manifest: Record<string, unknown>
  /** Further files that are published. */
  files: string[]
}

const published: Published[] = [
  { name: 'protocol', entries: ['index'], carries: [], manifest: {}, files: [] },
  { name: 'webhook', entries: ['index'], carries: [], manifest: {}, files: ['vectors.json'] },
  {
    name: 'node',
    entries: ['index'],
    carries: ['protocol'],
    manifest: {
      imports: {
        '#platform': {
          node: { import: './esm/platform/node.js', require: './cjs/platform/node.js' },
          default: './esm/platform/web.js',
        },
      },
    },
    files: [],
  },
]

for (const item of published) await buildPackage(item)

async function buildPackage({ name, entries, carries, manifest, files }: Published): Promise<void> {
  const home = join(root, 'packages', name)
  const dist = join(home, 'dist')
  rmSync(dist, { recursive: true, force: true })
  for (const [format, folder, type] of [
    ['esm', 'esm', 'module'],
    ['cjs', 'cjs', 'commonjs'],
  ] as const) {
    await bundle(home, entries, format, join(dist, folder))
    writeFileSync(join(dist, folder, 'package.json'), `${JSON.stringify({ type })}\n`)
  }
  declare(home, name, carries, dist)
  const own = readJson(join(home, 'package.json'))
  const fields = {
    name: own['name'],
    version: readJson(join(root, 'package.json'))['version'],
    description: own['description'],
    license: own['license'],
    repository: own['repository'],
    keywords: own['keywords'],
    type: 'module',
    engines: { node: '>=18' },
    sideEffects: false,
    main: './cjs/index.js',
    module: './esm/index.js',
    types: './esm/index.d.ts',
    exports: {
      '.': {
        import: { types: './esm/index.d.ts', default: './esm/index.js' },
        require: { types: './cjs/index.d.ts', default: './cjs/index.js' },
      },
      './package.json': './package.json',
    },
    ...manifest,
  }
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(fields, null, 2)}\n`)
  for (const file of ['README.md', ...files]) if (existsSync(join(home, file))) copyFileSync(join(home, file), join(dist, file))
  copyFileSync(join(root, 'LICENSE'), join(dist, 'LICENSE'))
  console.log(`built ${relative(root, dist)}`)
}

async function bundle(home: string, entries: string[], format: Format, outdir: string): Promise<void> {
  await build({
    entryPoints: entries.map((entry) => join(home, 'src', `${entry}.ts`)),
    outdir,
    outbase: join(home, 'src'),
    bundle: true,
    splitting: format === 'esm' && entries.length > 1,
    chunkNames: 'shared-[hash]',
    format,
    platform: 'node',
    target: 'node18',
    external: ['#*', 'node:*'],
    minifySyntax: true,
    legalComments: 'none',
    logLevel: 'warning',
  })
}

/** Types, from the compiler, for both module systems; what the package carries is named by its place inside. */
function declare(home: string, name: string, carries: string[], dist: string): void {
  const scratch = join(dist, 'types')
  const project = join(root, 'scripts', 'tsconfig.declarations.json')
  execFileSync(join(root, 'node_modules', '.bin', 'tsc'), ['--project', project, '--outDir', scratch, '--rootDir', join(root, 'packages')])
  for (const folder of ['esm', 'cjs']) {
    copyTypes(join(scratch, name, 'src'), join(dist, folder), carries)
    for (const carried of carries) copyTypes(join(scratch, carried, 'src'), join(dist, folder, carried), [])
  }
  rmSync(scratch, { recursive: true })
}

function copyTypes(from: string, to: string, carries: string[]): void {
  mkdirSync(to, { recursive: true })
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || entry.name.includes('.test.')) continue
    const source = join(entry.parentPath, entry.name)
    const path = relative(from, source)
    const depth = path.split(/[\\/]/).length - 1
    let text = readFileSync(source, 'utf8').replaceAll(/(from\s+['"]|import\(['"])(\.[^'"]*)\.ts(['"])/g, '$1$2.js$3')
    for (const carried of carries) {
      const place = `${depth === 0 ? './' : '../'.repeat(depth)}${carried}/index.js`
      text = text.replaceAll(`'@switchyard/${carried}'`, `'${place}'`).replaceAll(`"@switchyard/${carried}"`, `"${place}"`)
    }
    mkdirSync(join(to, path, '..'), { recursive: true })
    writeFileSync(join(to, path), text)
  }
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}
