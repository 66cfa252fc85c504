// Writes a bill of materials (CycloneDX 1.6 JSON) for the service as in the image, and for each package. It is generated from
// the lockfile, which lists exactly what is installed; so it makes no requests, and the result is the same for the same commit. `npm sbom`
// leaves out packages when it is used with workspaces and without development dependencies (docs/decisions/0033-releases.md).
//
//   npm run sbom [-- FOLDER]       default: dist/sbom

import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join, posix, relative } from 'node:path'

const root = join(import.meta.dirname, '..')
const IMPORTS = /^(?:import|export)\b(?! type\b)[^'"()=;]*\bfrom\s*['"]([^'"]+)['"]|^import\s*['"]([^'"]+)['"]/gm

interface Locked {
  version?: string
  name?: string
  license?: string
  integrity?: string
  link?: boolean
  resolved?: string
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
  peerDependenciesMeta?: Record<string, { optional?: boolean }>
}

export interface Component {
  type: 'application' | 'library'
  'bom-ref': string
  group?: string
  name: string
  version: string
  purl: string
  licenses?: [{ license: { id: string } }] | [{ expression: string }]
  hashes?: [{ alg: 'SHA-512'; content: string }]
}

export interface Bom {
  $schema: string
  bomFormat: 'CycloneDX'
  specVersion: '1.6'
  serialNumber: string
  version: 1
  metadata: { timestamp: string; component: Component }
  components: Component[]
  dependencies: { ref: string; dependsOn: string[] }[]
}

interface Subject {
  /** The workspace that it is built from. */
  path: string
  type: Component['type']
  /** Workspaces whose code is included. */
  carries: string[]
  /** Files whose imports are bundled into it, and the workspace that they resolve from. */
  bundles: { files: string; from: string }[]
}

export const SUBJECTS: Record<string, Subject> = {
  server: {
    path: 'packages/server',
    type: 'application',
    carries: [],
    bundles: [{ files: 'packages/dashboard/src/**/*.{ts,tsx}', from: 'packages/dashboard' }],
  },
  node: { path: 'packages/node', type: 'library', carries: ['packages/protocol'], bundles: [] },
  webhook: { path: 'packages/webhook', type: 'library', carries: [], bundles: [] },
  protocol: { path: 'packages/protocol', type: 'library', carries: [], bundles: [] },
  integrations: { path: 'packages/integrations', type: 'library', carries: [], bundles: [] },
  warehouse: { path: 'packages/warehouse', type: 'library', carries: ['packages/protocol'], bundles: [] },
}

export function bomOf({ path, type, carries, bundles }: Subject, now = new Date()): Bom {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Locked> }
  const components = new Map<string, Component>()
  const edges = new Map<string, Set<string>>()
  const refOf = (place: string): string => componentOf(place, packages[place] as Locked)['bom-ref']

  const add = (place: string, more: string[] = []): void => {
    const entry = packages[place] as Locked
    const component = componentOf(place, entry)
    const ref = component['bom-ref']
    if (components.has(ref) && more.length === 0) return
    components.set(ref, component)
    const known = edges.get(ref) ?? new Set<string>()
    edges.set(ref, known)
    for (const next of [...directOf(packages, place), ...more]) {
      known.add(refOf(next))
      add(next)
    }
  }
  const bundled = bundles.flatMap(({ files, from }) =>
    importedBy(files).map((name) => {
      const place = placeOf(packages, from, name)
      if (place === undefined) throw new Error(`${files} import ${name}, which the lockfile does not have`)
      return place
    }),
  )
  add(path, [...carries, ...bundled])

  const subject = { ...componentOf(path, packages[path] as Locked), type }
  components.delete(subject['bom-ref'])
  const body = {
    components: [...components.values()].sort((one, other) => (one['bom-ref'] < other['bom-ref'] ? -1 : 1)),
    dependencies: [...edges].map(([ref, on]) => ({ ref, dependsOn: [...on].sort() })).sort((one, other) => (one.ref < other.ref ? -1 : 1)),
  }
  const epoch = process.env['SOURCE_DATE_EPOCH']
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: `urn:uuid:${uuidOf(JSON.stringify([subject, body]))}`,
    version: 1,
    metadata: { timestamp: (epoch === undefined ? now : new Date(Number(epoch) * 1000)).toISOString(), component: subject },
    ...body,
  }
}

/** Its dependencies, the optional dependencies that are installed, and the required peers. */
function directOf(packages: Record<string, Locked>, place: string): string[] {
  const { dependencies = {}, optionalDependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = packages[place] as Locked
  const required = [...Object.keys(dependencies), ...Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional)]
  const places = required.map((name) => {
    const found = placeOf(packages, place, name)
    if (found === undefined && !(name in optionalDependencies)) throw new Error(`${place} needs ${name}, which the lockfile does not have`)
    return found
  })
  const optional = Object.keys(optionalDependencies).map((name) => placeOf(packages, place, name))
  return [...new Set([...places, ...optional].filter((found) => found !== undefined))]
}

/** Resolves as Node.js does: beside the package, then in parent folders. A workspace is a link to its folder. */
function placeOf(packages: Record<string, Locked>, from: string, name: string): string | undefined {
  for (let at = from; ; at = posix.dirname(at)) {
    const place = posix.join(at === '.' ? '' : at, 'node_modules', name)
    const entry = packages[place]
    if (entry !== undefined) return entry.link ? entry.resolved : place
    if (at === '.' || at === '') return undefined
  }
}

/** The packages that files import, by name. */
function importedBy(files: string): string[] {
  const names = new Set<string>()
  for (const file of globSync(files, { cwd: root })) {
    if (/\.test\.tsx?$/.test(file)) continue
    for (const [, from, alone] of readFileSync(join(root, file), 'utf8').matchAll(IMPORTS)) {
      const specifier = from ?? alone ?? ''
      if (/^[./#]/.test(specifier) || isBuiltin(specifier)) continue
      const [scope = '', name = ''] = specifier.split('/')
      names.add(scope.startsWith('@') ? `${scope}/${name}` : scope)
    }
  }
  return [...names].sort()
}

function componentOf(place: string, { version = '', name: alias, license, integrity }: Locked): Component {
  const full =
    alias ?? (place.includes('node_modules/') ? place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length) : nameOf(place))
  const [group, name] = full.startsWith('@') ? (full.split('/') as [string, string]) : [undefined, full]
  const purl = `pkg:npm/${group === undefined ? '' : `${encodeURIComponent(group)}/`}${name}@${version}`
  const [, digest] = /^sha512-(.+)$/.exec(integrity ?? '') ?? []
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group === undefined ? {} : { group }),
    name,
    version,
    ...(license === undefined ? {} : { licenses: /[ ()]/.test(license) ? [{ expression: license }] : [{ license: { id: license } }] }),
    purl,
    ...(digest === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }),
  }
}

function nameOf(workspace: string): string {
  return (JSON.parse(readFileSync(join(root, workspace, 'package.json'), 'utf8')) as { name: string }).name
}

/** Derived from the contents, so equal contents give an equal value. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), `5${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}

if (import.meta.main) {
  const folder = process.argv[2] ?? join(root, 'dist', 'sbom')
  mkdirSync(folder, { recursive: true })
  for (const [name, subject] of Object.entries(SUBJECTS)) {
    const bom = bomOf(subject)
    const file = join(folder, `switchyard-${name}-${bom.metadata.component.version}.cdx.json`)
    writeFileSync(file, `${JSON.stringify(bom, null, 2)}\n`)
    console.log(`${relative(process.cwd(), file)}: ${bom.components.length} components`)
  }
}
