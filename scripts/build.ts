// Builds the three published packages into packages/*/dist, each a complete package: ESM and CommonJS
// bundles, types, a package.json without dependencies. In the repository the packages run from src/ and are never built.

import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, posix, relative } from 'node:path'
import { build, type Format, type Plugin } from 'esbuild'
import { declarations } from './compile-sources.ts'

const root = join(import.meta.dirname, '..')

interface Published {
  name: string
  /** Files that are separate modules in the bundle, besides index. */
  entries: string[]
  /** Entries that can be imported by name, besides index. They import the package's index instead of containing a copy of it. */
  exports: Record<string, string>
  /** A file that contains third-party code, if the package has one. Both module systems share one copy of it, in CommonJS. */
  thirdParty?: string
  /** Workspace packages whose code and types are included, so that the published package has no dependencies. */
  carries: string[]
  /** `#name` imports and the entries that they resolve to, by condition. */
  imports: Record<string, Record<string, string>>
  /** Additional published files, which can be imported by name. */
  files: string[]
}

const published: Published[] = [
  { name: 'protocol', entries: ['index'], exports: {}, carries: [], imports: {}, files: [] },
  { name: 'webhook', entries: ['index'], exports: {}, carries: [], imports: {}, files: ['vectors.json', 'vectors-extra.json'] },
  {
    name: 'node',
    entries: ['index', 'platform/node', 'platform/web'],
    exports: { testing: 'testing/test-client' },
    thirdParty: 'testing/schema-compiler',
    carries: ['protocol'],
    imports: { '#platform': { node: 'platform/node', default: 'platform/web' } },
    files: [],
  },
]

/** The extension determines the module system, so that tools need no manifest to find out. */
const FORMS = [
  { format: 'esm', folder: 'esm', script: '.js', declaration: '.d.ts' },
  { format: 'cjs', folder: 'cjs', script: '.cjs', declaration: '.d.cts' },
] as const

const types = declarations()
for (const item of published) await buildPackage(item)
rmSync(types, { recursive: true })

async function buildPackage({ name, entries, exports, thirdParty, carries, imports, files }: Published): Promise<void> {
  const home = join(root, 'packages', name)
  const dist = join(home, 'dist')
  rmSync(dist, { recursive: true, force: true })
  for (const { format, folder, script, declaration } of FORMS) {
    await bundle(home, entries, format, join(dist, folder), script, thirdParty)
    // Separately, so that the client contains nothing of them.
    await bundle(home, Object.values(exports), format, join(dist, folder), script, thirdParty)
    copyTypes(join(types, name, 'src'), join(dist, folder), ['index', ...Object.values(exports)], carries, [script, declaration])
    for (const carried of carries) copyTypes(join(types, carried, 'src'), join(dist, folder, carried), ['index'], [], [script, declaration])
  }
  if (thirdParty !== undefined) await bundleThirdParty(join(home, 'src', `${thirdParty}.ts`), join(dist, 'cjs', `${thirdParty}.cjs`))
  const own = readJson(join(home, 'package.json'))
  const { version, repository } = readJson(join(root, 'package.json'))
  const fields = {
    name: own['name'],
    version,
    description: own['description'],
    license: own['license'],
    ...(repository === undefined ? {} : { repository: { ...(repository as object), directory: `packages/${name}` } }),
    keywords: own['keywords'],
    type: 'module',
    engines: { node: '>=18' },
    sideEffects: false,
    main: './cjs/index.cjs',
    module: './esm/index.js',
    types: './esm/index.d.ts',
    // For compilers that do not read `exports`.
    ...(Object.keys(exports).length > 0
      ? { typesVersions: { '*': Object.fromEntries(Object.entries(exports).map(([path, entry]) => [path, [`./esm/${entry}.d.ts`]])) } }
      : {}),
    exports: {
      '.': exported('index'),
      ...Object.fromEntries(Object.entries(exports).map(([path, entry]) => [`./${path}`, exported(entry)])),
      './package.json': './package.json',
      ...Object.fromEntries(files.map((file) => [`./${file}`, `./${file}`])),
    },
    ...(Object.keys(imports).length > 0 ? { imports: inBothForms(imports) } : {}),
  }
  writeFileSync(join(dist, 'package.json'), `${JSON.stringify(fields, null, 2)}\n`)
  for (const file of ['README.md', ...files]) if (existsSync(join(home, file))) copyFileSync(join(home, file), join(dist, file))
  copyFileSync(join(root, 'LICENSE'), join(dist, 'LICENSE'))
  console.log(`built ${relative(root, dist)}`)
}

function exported(entry: string): object {
  return {
    import: { types: `./esm/${entry}.d.ts`, default: `./esm/${entry}.js` },
    require: { types: `./cjs/${entry}.d.cts`, default: `./cjs/${entry}.cjs` },
  }
}

function inBothForms(imports: Published['imports']): Record<string, unknown> {
  const both = (entry: string): object => ({ import: `./esm/${entry}.js`, require: `./cjs/${entry}.cjs` })
  const conditions = (by: Record<string, string>): object =>
    Object.fromEntries(Object.entries(by).map(([condition, entry]) => [condition, both(entry)]))
  return Object.fromEntries(Object.entries(imports).map(([name, by]) => [name, conditions(by)]))
}

/** Bundles each entry in the given module format. */
async function bundle(
  home: string,
  entries: string[],
  format: Format,
  outdir: string,
  script: string,
  thirdParty: string | undefined,
): Promise<void> {
  await build({
    entryPoints: entries.map((entry) => join(home, 'src', `${entry}.ts`)),
    outdir,
    outExtension: { '.js': script },
    outbase: join(home, 'src'),
    bundle: true,
    splitting: format === 'esm' && entries.length > 1,
    chunkNames: 'shared-[hash]',
    format,
    platform: 'node',
    target: 'node18',
    // In CommonJS a kept import() fails where scripts run in a vm context, as under Jest; require works there.
    ...(format === 'cjs' ? { supported: { 'dynamic-import': false } } : {}),
    external: ['#*', 'node:*'],
    plugins: [separateFiles(join(home, 'src'), script, thirdParty)],
    legalComments: 'none',
    logLevel: 'warning',
  })
}

/** Imports of the package's index and of the file with third-party code stay imports. */
function separateFiles(source: string, script: string, thirdParty: string | undefined): Plugin {
  return {
    name: 'separate files',
    setup(building) {
      building.onResolve({ filter: /^\.{1,2}\/.*\.ts$/ }, ({ path, resolveDir }) => {
        const file = relative(source, join(resolveDir, path)).replaceAll('\\', '/')
        const up = '../'.repeat(relative(source, resolveDir).split(/[\\/]/).filter(Boolean).length) || './'
        if (file === 'index.ts') return { path: `${up}index${script}`, external: true }
        return file === `${thirdParty}.ts`
          ? { path: `${up}${script === '.js' ? '../cjs/' : ''}${thirdParty}.cjs`, external: true }
          : undefined
      })
    },
  }
}

/** Bundles a file with the packages that it imports, and puts their licences in front. */
async function bundleThirdParty(file: string, outfile: string): Promise<void> {
  const options = { bundle: true, minify: true, format: 'cjs', platform: 'node', target: 'node18', legalComments: 'none' } as const
  const { metafile, outputFiles } = await build({ ...options, entryPoints: [file], metafile: true, write: false, logLevel: 'warning' })
  const packages = new Set(Object.keys(metafile.inputs).flatMap((input) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0] ?? []))
  const licences = [...packages].sort().map((folder) => {
    const [name, licence] = [readJson(join(folder, 'package.json'))['name'], globSync('LICEN[CS]E*', { cwd: folder })[0]]
    if (licence === undefined) throw new Error(`${folder} has no licence file`)
    return `${String(name)}\n\n${readFileSync(join(folder, licence), 'utf8').trim()}`
  })
  const text = outputFiles[0]?.text ?? ''
  writeFileSync(outfile, `/*\nThis file contains the following packages.\n\n${licences.join('\n\n').replaceAll('*/', '* /')}\n*/\n${text}`)
}

/**
 * Copies the type files of the entries and those that they import, directly or indirectly, for one module system. Imports of included packages are
 * rewritten to their path inside the package.
 */
function copyTypes(
  from: string,
  to: string,
  entries: readonly string[],
  carries: string[],
  [script, declaration]: readonly [string, string],
): void {
  const copied = new Set<string>()
  const waiting = entries.map((entry) => `${entry}.d.ts`)
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (copied.has(path)) continue
    copied.add(path)
    const up = '../'.repeat(path.split('/').length - 1) || './'
    const text = readFileSync(join(from, path), 'utf8').replaceAll(
      /((?:from|import\()\s*['"])([^'"]+)(['"])/g,
      (_, before, specifier, after) => {
        const carried = carries.find((name) => specifier === `@switchyard/${name}`)
        if (carried !== undefined) return `${before}${up}${carried}/index${script}${after}`
        if (!specifier.startsWith('.')) return `${before}${specifier}${after}`
        const target = specifier.replace(/\.(?:ts|js)$/, '')
        waiting.push(posix.join(posix.dirname(path), `${target}.d.ts`))
        return `${before}${target}${script}${after}`
      },
    )
    mkdirSync(join(to, posix.dirname(path)), { recursive: true })
    writeFileSync(join(to, path.replace(/\.d\.ts$/, declaration)), text)
  }
}

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
}
