// Finds the package with Segment's integrations, which is installed separately: it has about 110 MB, and most services need none of it. Only files are
// looked at, and nothing is loaded or remembered, so a package that is installed while the service runs is found by the next call.

import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { VERSION } from '../api/version.ts'
import type { Config } from '../config.ts'

const NAME = '@switchyard/integrations'
/** The dependency that is large. If it is there, all are, because an installation is moved into place when it is complete. */
const LIBRARY = '@segment/action-destinations'

/** Where `switchyard catalog install` puts the package if the service does not run in a clone. */
export function integrationsFolder({ integrationsFolder: folder, store }: Pick<Config, 'integrationsFolder' | 'store'>): string {
  return folder ?? join(store.kind === 'sqlite' ? dirname(store.path) : 'data', 'integrations')
}

/**
 * Returns the URL of the package's folder, with a slash at the end, or null if the package is not installed or does not belong to this version of the
 * service. In a clone it is the workspace, if its dependencies are installed. `folder` is that of `integrationsFolder`.
 */
export function findIntegrationsPackage(folder: string, { from = import.meta.dirname, version = VERSION } = {}): URL | null {
  const workspace = integrationsWorkspace(from)
  if (workspace !== null) {
    const { dependencies } = readJson(join(workspace, 'package.json')) as { dependencies?: Record<string, string> }
    const wanted = dependencies?.[LIBRARY]
    return modulesAbove(workspace).some((modules) => versionIn(modules, LIBRARY) === wanted) ? urlOf(workspace) : null
  }
  const places = [...modulesAbove(from), join(folder, version, 'node_modules')]
  const found = places.find((modules) => versionIn(modules, NAME) === version)
  return found === undefined ? null : urlOf(join(found, NAME))
}

/** The package's folder in a clone or in the image of the service; null in an installed package. */
export function integrationsWorkspace(from = import.meta.dirname): string | null {
  const workspace = join(from, '..', '..', '..', 'integrations')
  return existsSync(join(workspace, 'package.json')) ? workspace : null
}

/** The folders with the code that a process needs to run integrations: of the package, of the service, and of the dependencies of both. */
export function codeFolders(url: URL, from = import.meta.dirname): string[] {
  const home = fileURLToPath(url)
  const folders = [home, join(from, '..', '..', '..'), ...modulesAbove(home), ...modulesAbove(from)].filter((path) => existsSync(path))
  const all = [...new Set(folders.flatMap((path) => [path, realpathSync(path)]))]
  return all.filter((path) => !all.some((other) => path.startsWith(`${other}/`)))
}

/** The folders in which Node.js looks for a package that a file in `folder` imports. */
function modulesAbove(folder: string): string[] {
  const above = dirname(folder)
  return [join(folder, 'node_modules'), ...(above === folder ? [] : modulesAbove(above))]
}

function versionIn(modules: string, name: string): unknown {
  return readJson(join(modules, name, 'package.json'))['version']
}

/** Empty if there is no such file, or if it is not complete. */
function readJson(file: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
  } catch {
    return {}
  }
}

function urlOf(folder: string): URL {
  return pathToFileURL(`${realpathSync(folder)}/`)
}
