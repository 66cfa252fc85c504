import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { codeFolders, findIntegrationsPackage, integrationsFolder } from './integrations-package.ts'

function scratch(t: TestContext): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'switchyard-integrations-')))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

function writePackage(folder: string, fields: object): string {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify(fields))
  return folder
}

const urlOf = (folder: string): string => pathToFileURL(`${folder}/`).href

test('in a clone it is the workspace, as soon as its dependencies are installed', (t) => {
  const clone = scratch(t)
  const from = join(clone, 'packages', 'server', 'src', 'installation')
  mkdirSync(from, { recursive: true })
  const find = (): string | undefined => findIntegrationsPackage(join(clone, 'data', 'integrations'), { from })?.href
  assert.equal(find(), undefined)
  const workspace = writePackage(join(clone, 'packages', 'integrations'), { dependencies: { '@segment/action-destinations': '3.497.0' } })
  assert.equal(find(), undefined)
  for (const modules of [join(clone, 'node_modules'), join(workspace, 'node_modules')]) {
    const library = join(modules, '@segment', 'action-destinations')
    writePackage(library, { version: '3.496.0' })
    assert.equal(find(), undefined, 'another version than the one that is pinned')
    writePackage(library, { version: '3.497.0' })
    assert.equal(find(), urlOf(workspace))
    rmSync(modules, { recursive: true })
  }
  assert.equal(find(), undefined)
})

test('beside an installed service, or in the folder of `catalog install`, it must have the same version', (t) => {
  const site = scratch(t)
  const from = join(site, 'node_modules', '@switchyard', 'server', 'packages', 'server', 'src', 'installation')
  mkdirSync(from, { recursive: true })
  const folder = join(site, 'data', 'integrations')
  const find = (version: string): string | undefined => findIntegrationsPackage(folder, { from, version })?.href
  assert.equal(find('1.2.3'), undefined)
  const own = writePackage(join(folder, '1.2.3', 'node_modules', '@switchyard', 'integrations'), { version: '1.2.3' })
  assert.equal(find('1.2.3'), urlOf(own))
  assert.equal(find('1.2.4'), undefined)
  const beside = writePackage(join(site, 'node_modules', '@switchyard', 'integrations'), { version: '1.2.4' })
  assert.equal(find('1.2.4'), urlOf(beside))
  assert.equal(find('1.2.3'), urlOf(own))
  writeFileSync(join(beside, 'package.json'), '{')
  assert.equal(find('1.2.4'), undefined)
})

test('the code folders are those of the package, the service and their dependencies, and not the folder of the data', (t) => {
  const clone = scratch(t)
  const from = join(clone, 'packages', 'server', 'src', 'installation')
  mkdirSync(from, { recursive: true })
  const workspace = writePackage(join(clone, 'packages', 'integrations'), {})
  mkdirSync(join(clone, 'elsewhere'))
  symlinkSync(join(clone, 'elsewhere'), join(clone, 'node_modules'))
  const folders = codeFolders(pathToFileURL(`${workspace}/`), from).filter((path) => path.startsWith(clone))
  assert.deepEqual(folders.sort(), [join(clone, 'elsewhere'), join(clone, 'node_modules'), join(clone, 'packages')])
})

test('the folder of `catalog install` is beside the SQLite file unless a setting says otherwise', () => {
  const sqlite = { kind: 'sqlite', path: '/srv/data/switchyard.db' } as const
  assert.equal(integrationsFolder({ integrationsFolder: null, store: sqlite }), join(dirname(sqlite.path), 'integrations'))
  assert.equal(
    integrationsFolder({ integrationsFolder: null, store: { kind: 'postgres', url: 'postgres://h/d' } }),
    join('data', 'integrations'),
  )
  assert.equal(integrationsFolder({ integrationsFolder: '/opt/x', store: sqlite }), '/opt/x')
})

test('in this clone it is the workspace, because everything is installed for the tests', () => {
  assert.match(findIntegrationsPackage('nowhere')?.href ?? '', /\/packages\/integrations\/$/)
})
