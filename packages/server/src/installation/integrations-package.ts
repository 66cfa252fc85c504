// Finds the packages that are installed separately, because most services need none of them: Segment's integrations, which have about 110 MB, and the engines of
// warehouses. Only files are looked at, and nothing is loaded or remembered, so a package that is installed while the service runs is found by the next call.

import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { VERSION } from '../api/version.ts'
import type { Config } from '../config.ts'

/** A package that is installed on demand. */
export interface OptionalPackage {
  name: string
  /** Its folder in `packages`. */
  workspace: string
  /** Its dependency by which an installation is recognized. If it is there, all are, because an installation is moved into place when it is complete. */
  library: string
  /** How sentences name what it brings. */
  noun: string
  /** The setting with the folder that it is installed in. */
  setting: string
  /** What a release records of it in the package of the service. */
  recorded: string
}

export const INTEGRATIONS: OptionalPackage = {
  name: '@switchyard/integrations',
  workspace: 'integrations',
  library: '@segment/action-destinations',
  noun: 'the catalogue',
  setting: 'SWITCHYARD_INTEGRATIONS_FOLDER',
  recorded: 'integrations.json',
}

export const WAREHOUSE: OptionalPackage = {
  name: '@switchyard/warehouse',
  workspace: 'warehouse',
  library: 'hyparquet-writer',
  noun: 'the warehouse package',
  setting: 'SWITCHYARD_WAREHOUSE_FOLDER',
  recorded: 'warehouse.json',
}

/** Where `switchyard catalog install` puts the package if the service does not run in a clone. */
export function integrationsFolder({ integrationsFolder: folder, store }: Pick<Config, 'integrationsFolder' | 'store'>): string {
  return folder ?? join(store.kind === 'sqlite' ? dirname(store.path) : 'data', 'integrations')
}

/** Where `switchyard warehouse install` puts the package if the service does not run in a clone. */
export function warehouseFolder({ warehouseFolder: folder, store }: Pick<Config, 'warehouseFolder' | 'store'>): string {
  return folder ?? join(store.kind === 'sqlite' ? dirname(store.path) : 'data', 'warehouse')
}

/** The folder below which lakes in folders must be; null if there is none. */
export function lakeFolder({ lakeDir, store }: Pick<Config, 'lakeDir' | 'store'>): string | null {
  if (lakeDir !== null) return resolve(lakeDir)
  return store.kind === 'sqlite' ? resolve(dirname(store.path), 'lake') : null
}

/**
 * Returns the URL of the package's folder, with a slash at the end, or null if the package is not installed or does not belong to this version of the
 * service. In a clone it is the workspace, if its dependencies are installed. `folder` is where it is installed otherwise.
 */
export function findPackage(
  wanted: OptionalPackage,
  folder: string,
  { from = import.meta.dirname, version = VERSION }: { from?: string | undefined; version?: string } = {},
): URL | null {
  const workspace = workspaceOf(wanted, from)
  if (workspace !== null) {
    const { dependencies } = readJson(join(workspace, 'package.json')) as { dependencies?: Record<string, string> }
    const library = dependencies?.[wanted.library]
    return modulesAbove(workspace).some((modules) => versionIn(modules, wanted.library) === library) ? urlOf(workspace) : null
  }
  const places = [...modulesAbove(from), join(folder, version, 'node_modules')]
  const found = places.find((modules) => versionIn(modules, wanted.name) === version)
  return found === undefined ? null : urlOf(join(found, wanted.name))
}

export function findIntegrationsPackage(folder: string, options: { from?: string | undefined; version?: string } = {}): URL | null {
  return findPackage(INTEGRATIONS, folder, options)
}

/** The package's folder in a clone or in the image of the service; null in an installed package. */
export function workspaceOf({ workspace }: OptionalPackage, from = import.meta.dirname): string | null {
  const folder = join(from, '..', '..', '..', workspace)
  return existsSync(join(folder, 'package.json')) ? folder : null
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

/** Loads a part of an installed package. Its address is resolved by hand, because the package may be anywhere. */
export async function loadPart<T>(packageUrl: URL, name: string): Promise<T> {
  const { exports } = JSON.parse(readFileSync(new URL('package.json', packageUrl), 'utf8')) as { exports: Record<string, string> }
  return (await import(new URL(exports[name] as string, packageUrl).href)) as T
}
