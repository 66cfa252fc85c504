// The part of the repository's lockfile that one workspace needs, as a lockfile of its own: with it, the dependencies of the workspace can be installed
// alone, in the same versions, with the overrides of the repository.

export interface Lockfile {
  name?: string
  lockfileVersion?: number
  packages: Record<string, Locked>
}

interface Locked {
  name?: string
  version?: string
  resolved?: string
  integrity?: string
  link?: boolean
  dev?: boolean
  devOptional?: boolean
  dependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
  peerDependencies?: Record<string, string>
}

/** Packages of the repository are left out: they are not installed from a registry, or are already there. */
export function subsetOf({ packages }: Lockfile, workspace: string, { name }: { name: string }): Lockfile {
  const own = packages[workspace]
  if (own === undefined) throw new Error(`the lockfile has no workspace ${workspace}`)
  const dependencies = thirdParty(own.dependencies)
  const chosen = new Map<string, Locked>()
  const waiting = Object.keys(dependencies).map((dependency) => placeOf(packages, workspace, dependency))
  for (let place = waiting.pop(); place !== undefined; place = waiting.pop()) {
    if (place === null || chosen.has(place)) continue
    const { dev: _dev, devOptional: _devOptional, ...entry } = packages[place] as Locked
    chosen.set(place, entry)
    const needed = { ...entry.dependencies, ...entry.optionalDependencies, ...entry.peerDependencies }
    for (const dependency of Object.keys(needed)) waiting.push(placeOf(packages, place, dependency))
  }
  const result: Record<string, Locked> = { '': { name, dependencies } }
  for (const place of [...chosen.keys()].sort()) {
    const moved = place.startsWith(`${workspace}/`) ? place.slice(workspace.length + 1) : place
    if (moved !== place && chosen.has(moved)) throw new Error(`${workspace} needs two versions of ${moved} at the same place`)
    result[moved] = chosen.get(place) as Locked
  }
  return { name, lockfileVersion: 3, packages: result }
}

export function thirdParty(dependencies: Record<string, string> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(dependencies).filter(([name]) => !name.startsWith('@switchyard/')))
}

/** Looks where Node.js does: in the node_modules of the package, then in those of the folders above. Null if it is not installed, as an optional one may be. */
function placeOf(packages: Lockfile['packages'], from: string, name: string): string | null {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/')))) {
    const place = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`
    if (!folder.endsWith('node_modules') && packages[place] !== undefined) return place
    if (folder === '') return null
  }
}
