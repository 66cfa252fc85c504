// Prepares a release: sets the version in the root's package.json and wherever it is repeated, and moves the unreleased changes in CHANGELOG.md
// to the version, with the date. It only writes files of the repository: it commits, tags and
// publishes nothing, but prints the next steps. release.test.ts compares every place with the root's version.

import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const HELP = `usage: npm run release -- VERSION [--dry-run]

Sets VERSION in every manifest, in the lockfile, in the client and in the names of the image, and moves what CHANGELOG.md has under
[Unreleased] to it. Nothing is committed, tagged or published; it says how to.

  --dry-run   says what it would write, and writes nothing
  --help      this
`

const VERSION = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?`

/** Where the version is repeated. The first group of the pattern is the text before it. Each file must contain it, unless it is optional. */
const PLACES: readonly { files: string[]; pattern: RegExp; may?: true }[] = [
  {
    files: ['package.json', 'packages/*/package.json', 'docs/package.json', 'examples/package.json', 'e2e/package.json'],
    pattern: matching('^ {2}"version": "'),
  },
  { files: ['packages/{server,integrations,warehouse}/package.json'], pattern: matching('"@switchyard/(?:node|protocol|webhook)": "') },
  { files: ['packages/node/src/version.ts'], pattern: matching("name: '@switchyard/node', version: '") },
  {
    files: ['deploy/Dockerfile', 'deploy/compose.yml', 'deploy/kubernetes/deployment.yaml'],
    pattern: matching(String.raw`\bswitchyard:`),
  },
  { files: ['README.md', 'docs/*/*.md'], pattern: matching(String.raw`\bswitchyard:`), may: true },
]

function matching(before: string): RegExp {
  return new RegExp(`(${before})(${VERSION})`, 'gm')
}

export interface Place {
  file: string
  version: string
}

/** Every place that repeats the version, with the version found there. */
export function placesOf(root: string): Place[] {
  const named = PLACES.flatMap(({ files, pattern, may }) =>
    globSync(files, { cwd: root }).flatMap((file) => {
      const found = [...readFileSync(join(root, file), 'utf8').matchAll(pattern)].map(([, , version]) => ({
        file,
        version: version as string,
      }))
      return found.length > 0 || may ? found : [{ file, version: 'missing' }]
    }),
  )
  const lock = readLock(root)
  const locked = ownEntries(lock).flatMap(({ version, dependencies = {} }) => {
    const ours = Object.keys(dependencies).filter((name) => name.startsWith('@switchyard/'))
    return [version, ...ours.map((name) => dependencies[name])].filter((found) => found !== undefined)
  })
  return [...named, ...[lock.version, ...locked].map((version) => ({ file: 'package-lock.json', version }))]
}

/** The new contents of files. Throws an Error with a readable message if a release is not possible. */
export function plan(root: string, version: string, today: string): Map<string, string> {
  if (!new RegExp(`^${VERSION}$`).test(version)) throw new Error(`${version} is not a version such as 0.2.0 or 0.2.0-rc.1.`)
  const now = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }).version
  if (compare(version, now) < 0) throw new Error(`${version} is before ${now}, which package.json has.`)
  const written = new Map<string, string>()
  const textOf = (file: string): string => written.get(file) ?? readFileSync(join(root, file), 'utf8')
  for (const { files, pattern, may } of PLACES) {
    for (const file of globSync(files, { cwd: root }).sort()) {
      const text = textOf(file)
      if (text.search(pattern) === -1 && may) continue
      if (text.search(pattern) === -1) throw new Error(`${file} does not contain the version where it is expected: ${pattern.source}`)
      written.set(
        file,
        text.replaceAll(pattern, (_all, before: string) => `${before}${version}`),
      )
    }
  }
  written.set('package-lock.json', lockFor(root, version))
  written.set('CHANGELOG.md', changelogFor(textOf('CHANGELOG.md'), version, today))
  for (const [file, text] of written) if (text === readFileSync(join(root, file), 'utf8')) written.delete(file)
  return written
}

function changelogFor(text: string, version: string, today: string): string {
  if (text.includes(`## [${version}]`)) throw new Error(`CHANGELOG.md already has a section for ${version}. Choose a later version.`)
  const [, unreleased] = /^## \[Unreleased\]\n([^]*?)(?=^## \[|$(?![^]))/m.exec(text) ?? []
  if (unreleased === undefined) throw new Error('CHANGELOG.md has no section [Unreleased]. Add one with the changes to release.')
  if (!/^- /m.test(unreleased)) throw new Error('CHANGELOG.md has nothing under [Unreleased]: there is nothing to release.')
  return text.replace('## [Unreleased]\n', `## [Unreleased]\n\n## [${version}] - ${today}\n`)
}

interface Lock {
  version: string
  packages: Record<string, { version?: string; link?: boolean; dependencies?: Record<string, string> }>
}

function readLock(root: string): Lock {
  return JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock
}

/** Sets the version of the root and the workspaces; installed packages are under node_modules. */
function ownEntries({ packages }: Lock): Lock['packages'][string][] {
  return Object.entries(packages).flatMap(([path, entry]) => (path.includes('node_modules/') ? [] : [entry]))
}

function lockFor(root: string, version: string): string {
  const lock = readLock(root)
  lock.version = version
  for (const entry of ownEntries(lock)) {
    if (entry.version !== undefined) entry.version = version
    for (const name of Object.keys(entry.dependencies ?? {})) {
      if (name.startsWith('@switchyard/') && entry.dependencies) entry.dependencies[name] = version
    }
  }
  return `${JSON.stringify(lock, null, 2)}\n`
}

/** Compares by number; a version with a suffix comes before the one without. */
function compare(one: string, other: string): number {
  const parts = (version: string): [number[], string] => {
    const [numbers = '', ...suffix] = version.split('-')
    return [numbers.split('.').map(Number), suffix.join('-')]
  }
  const [[ours, suffix], [theirs, theirSuffix]] = [parts(one), parts(other)]
  const differing = ours.findIndex((number, at) => number !== theirs[at])
  if (differing !== -1) return (ours[differing] as number) - (theirs[differing] as number)
  if (suffix === theirSuffix) return 0
  if (suffix === '' || theirSuffix === '') return suffix === '' ? 1 : -1
  return suffix.localeCompare(theirSuffix, 'en', { numeric: true })
}

function nextSteps(root: string, version: string): string {
  const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { repository?: unknown }
  const [server, ...others] = ['server', 'protocol', 'webhook', 'node'].map((name) => `packages/${name}/dist`) as [string, ...string[]]
  // The service accepts only these tarballs of the packages that it installs, so they are published as they are, and before the service.
  const tarballs = ['integrations', 'warehouse'].map((name) => `packages/${name}/dist/switchyard-${name}-${version}.tgz`)
  const dists = [...others, ...tarballs, server]
  return `
Next:
${repository === undefined ? '\n  # package.json has no "repository" yet: registries and READMEs use it for links. Set it first.\n' : ''}
  npm test
  git commit --all --message 'Release ${version}' && git tag --annotate v${version} --message 'Switchyard ${version}'
  npm run build && npm run build:integrations && npm run build:warehouse && npm run build:server
  npm run sbom
${dists.map((dist) => `  npm publish ./${dist} --access public${version.includes('-') ? ' --tag next' : ''}`).join('\n')}
  docker build -f deploy/Dockerfile -t switchyard:${version} .
  git push --follow-tags

Attach dist/sbom/ to the release. docs/operations/upgrade.md tells operators what to do.
`
}

function main(): number {
  const { values, positionals } = parseArgs({
    options: { 'dry-run': { type: 'boolean', default: false }, help: { type: 'boolean', short: 'h', default: false } },
    allowPositionals: true,
  })
  const [version, ...more] = positionals
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  if (version === undefined || more.length > 0) {
    process.stderr.write(HELP)
    return 2
  }
  const root = process.cwd()
  try {
    const written = plan(root, version.replace(/^v/, ''), new Date().toISOString().slice(0, 10))
    for (const [file, text] of written) {
      if (!values['dry-run']) writeFileSync(join(root, file), text)
      process.stdout.write(`${values['dry-run'] ? 'would write' : 'wrote'} ${file}\n`)
    }
    process.stdout.write(nextSteps(root, version.replace(/^v/, '')))
    return 0
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`)
    return 1
  }
}

if (import.meta.main) process.exitCode = main()
