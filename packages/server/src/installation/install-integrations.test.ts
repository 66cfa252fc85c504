import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, watch, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { type TestContext, test } from 'node:test'
import { VERSION } from '../api/version.ts'
import { type InstallOptions, InstallProblem, installationState, installIntegrations, PackageInstaller } from './install-integrations.ts'
import { findIntegrationsPackage } from './integrations-package.ts'

const STUB = join(import.meta.dirname, 'fixtures', 'stub-npm.ts')

interface Site extends Required<Pick<InstallOptions, 'folder' | 'serverFolder' | 'npm'>> {
  root: string
  /** What npm does at its end. */
  npmEnds(how: 'done' | 'fail' | 'hang'): void
  seen(): { args: string[]; env: Record<string, string>; pid: number }
}

function makeSite(t: TestContext, serverFolder: string): Site {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'switchyard-install-')))
  t.after(() => rmSync(root, { recursive: true, force: true }))
  const control = join(root, 'npm')
  mkdirSync(join(root, serverFolder), { recursive: true })
  const npmEnds: Site['npmEnds'] = (how) => writeFileSync(control, how)
  npmEnds('done')
  return {
    root,
    folder: join(root, 'data', 'integrations'),
    serverFolder: join(root, serverFolder),
    npm: { file: process.execPath, args: [STUB, control] },
    npmEnds,
    seen: () => JSON.parse(readFileSync(`${control}.seen`, 'utf8')) as ReturnType<Site['seen']>,
  }
}

/** An installed service, not a clone. */
function makeInstalled(t: TestContext): Site {
  const site = makeSite(t, join('node_modules', '@switchyard', 'server', 'packages', 'server', 'src', 'installation'))
  const packages = {
    '': { dependencies: { '@segment/action-destinations': '3.0.0' } },
    'node_modules/@segment/action-destinations': { version: '3.0.0' },
  }
  writeFileSync(
    join(site.root, 'node_modules', '@switchyard', 'server', 'packages', 'server', 'integrations.json'),
    JSON.stringify({ overrides: {}, lockfile: { packages }, integrity: 'sha512-of-the-release' }),
  )
  return site
}

function makeClone(t: TestContext): Site {
  const site = makeSite(t, join('packages', 'server', 'src', 'installation'))
  const write = (path: string, value: object): void => writeFileSync(join(site.root, path), JSON.stringify(value))
  mkdirSync(join(site.root, 'packages', 'integrations'))
  const dependencies = { '@segment/action-destinations': '3.0.0', '@switchyard/protocol': VERSION }
  write(join('packages', 'integrations', 'package.json'), { dependencies })
  write('package.json', { overrides: { ajv: { 'fast-uri': '3.1.5' } } })
  write('package-lock.json', {
    packages: {
      '': {},
      'packages/integrations': { dependencies },
      'node_modules/@segment/action-destinations': { version: '3.0.0', dependencies: { ajv: '8' } },
      'node_modules/ajv': { version: '6.0.0', dev: true },
      'node_modules/@segment/action-destinations/node_modules/ajv': {
        version: '8.0.0',
        devOptional: true,
        dependencies: { 'fast-uri': '3' },
      },
      'node_modules/fast-uri': { version: '3.1.5' },
      'node_modules/typescript': { version: '7.0.0', dev: true },
    },
  })
  return site
}

const find = ({ folder, serverFolder: from }: Site): string | undefined => findIntegrationsPackage(folder, { from })?.pathname

test('in a clone, the dependencies of the workspace are installed in the versions of the lockfile, and nothing else', async (t) => {
  const site = makeClone(t)
  assert.deepEqual(installationState(site), { state: 'missing', done: 0, total: 0, error: null })
  const steps: number[][] = []
  await installIntegrations(site, (done, total) => steps.push([done, total]))
  assert.deepEqual(
    [steps[0], steps.at(-1)],
    [
      [0, 3],
      [3, 3],
    ],
  )
  assert.equal(find(site), `${join(site.root, 'packages', 'integrations')}/`)
  assert.equal(installationState(site).state, 'installed')
  const modules = join(site.root, 'packages', 'integrations', 'node_modules')
  assert.deepEqual(readdirSync(modules).sort(), ['@segment', 'fast-uri'])
  assert.ok(existsSync(join(modules, '@segment', 'action-destinations', 'node_modules', 'ajv', 'package.json')))
  assert.ok(!existsSync(site.folder))
  assert.equal(site.seen().args[0], 'ci')
})

test('for an installed service, the package of the same version is installed in a folder of its own, and can be installed again', async (t) => {
  const site = makeInstalled(t)
  await installIntegrations(site, () => {})
  const expected = `${join(site.folder, VERSION, 'node_modules', '@switchyard', 'integrations')}/`
  assert.equal(find(site), expected)
  assert.deepEqual(readdirSync(site.folder).sort(), [VERSION, 'lock.db', 'progress.json'])
  await installIntegrations(site, () => {})
  assert.equal(find(site), expected)
})

test('a folder that is relative, as the default is, is that of the service and not of npm, which runs in another one', async (t) => {
  const site = makeInstalled(t)
  await installIntegrations({ ...site, folder: relative(process.cwd(), site.folder) }, () => {})
  const { args } = site.seen()
  assert.ok(args[args.indexOf('--prefix') + 1]?.startsWith(join(site.folder, 'staging-')), args.join(' '))
  assert.notEqual(find(site), undefined)
})

test('npm runs no install scripts, and sees no settings of the service', async (t) => {
  const site = makeInstalled(t)
  process.env['SWITCHYARD_SECRET_KEY'] = 'a secret'
  process.env['npm_config_registry'] = 'https://registry.example'
  t.after(() => {
    delete process.env['SWITCHYARD_SECRET_KEY']
    delete process.env['npm_config_registry']
  })
  await installIntegrations(site, () => {})
  const { args, env } = site.seen()
  assert.ok(args.includes('--ignore-scripts') && args.includes('--omit=optional'))
  assert.deepEqual(
    Object.keys(env).filter((name) => /SWITCHYARD/.test(name)),
    [],
  )
  assert.equal(env['npm_config_registry'], 'https://registry.example')
})

test('when npm fails, its reason is the error, nothing is installed, and the next installation works', async (t) => {
  const site = makeInstalled(t)
  site.npmEnds('fail')
  await assert.rejects(
    installIntegrations(site, () => {}),
    /^InstallProblem: npm could not install the catalogue: code E404 404 Not Found$/,
  )
  assert.equal(find(site), undefined)
  const { state, error } = installationState(site)
  assert.deepEqual([state, error], ['failed', 'npm could not install the catalogue: code E404 404 Not Found'])
  site.npmEnds('done')
  await installIntegrations(site, () => {})
  assert.equal(installationState(site).state, 'installed')
})

test('without npm, the error says what to do', async (t) => {
  const site = { ...makeInstalled(t), npm: { file: 'no-such-npm', args: [] } }
  await assert.rejects(
    installIntegrations(site, () => {}),
    /npm was not found, and the catalogue is installed with it\. Install npm/,
  )
})

test('if the folder cannot be written, the error names the setting', async (t) => {
  const site = makeInstalled(t)
  writeFileSync(join(site.root, 'data'), 'a file')
  await assert.rejects(
    installIntegrations(site, () => {}),
    (error: Error) => {
      assert.ok(error instanceof InstallProblem)
      assert.match(error.message, /cannot be installed in .*integrations: .*SWITCHYARD_INTEGRATIONS_FOLDER/)
      return true
    },
  )
})

test('only one installation runs at a time, the state shows it, and stopping the service ends it', async (t) => {
  const site = makeInstalled(t)
  site.npmEnds('hang')
  const installer = new PackageInstaller(site)
  assert.equal(installer.start().state, 'installing')
  assert.equal(installer.start().state, 'installing')
  assert.equal(new PackageInstaller(site).start().state, 'installing', 'another process')
  await assert.rejects(
    installIntegrations(site, () => {}),
    /Another process is installing the catalogue/,
  )
  await installer.close()
  const { state, error } = installer.state()
  assert.deepEqual([state, error], ['failed', 'The installation of the catalogue was stopped. Start it again.'])
  assert.equal(find(site), undefined)
})

test('after a process that was killed while it installed, nothing looks installed and the next installation works', async (t) => {
  const site = makeInstalled(t)
  site.npmEnds('hang')
  const program = `
    const { installIntegrations } = await import(${JSON.stringify(join(import.meta.dirname, 'install-integrations.ts'))})
    await installIntegrations(${JSON.stringify(site)}, () => {})`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: 'inherit' })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  await appears(join(site.root, 'npm.seen'))
  assert.equal(installationState(site).state, 'installing')
  child.kill('SIGKILL')
  await ended
  process.kill(site.seen().pid, 'SIGKILL')
  assert.equal(installationState(site).state, 'missing')
  assert.equal(find(site), undefined)
  site.npmEnds('done')
  await installIntegrations(site, () => {})
  assert.equal(installationState(site).state, 'installed')
})

/** The file is there and complete. */
function appears(file: string): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (!existsSync(file) || !readFileSync(file, 'utf8').endsWith('}')) return
      watcher.close()
      resolve()
    }
    const watcher = watch(join(file, '..'), look)
    look()
  })
}

/** Packs a package of the right name and version without dependencies. */
function packed(folder: string, content: string): { bytes: Buffer; integrity: string } {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: '@switchyard/integrations', version: VERSION, files: ['index.js'] }))
  writeFileSync(join(folder, 'index.js'), content)
  const { stdout, stderr } = spawnSync('npm', ['pack', '--loglevel=error'], { cwd: folder, encoding: 'utf8' })
  assert.match(stdout, /\.tgz$/m, stderr)
  const bytes = readFileSync(join(folder, stdout.trim()))
  return { bytes, integrity: `sha512-${hash('sha512', bytes, 'base64')}` }
}

test('a package that does not have the hash of the release is refused, whatever the registry says about it', async (t) => {
  const site = makeInstalled(t)
  const released = packed(join(site.root, 'released'), 'export const good = true')
  const tampered = packed(join(site.root, 'tampered'), 'export const good = false')
  let served = released
  const registry = createServer((request, response) => {
    if (request.url?.endsWith('.tgz')) return response.end(served.bytes)
    const tarball = `${url}integrations.tgz`
    const dist = { tarball, integrity: served.integrity }
    const versions = { [VERSION]: { name: '@switchyard/integrations', version: VERSION, dist } }
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify({ name: '@switchyard/integrations', 'dist-tags': { latest: VERSION }, versions }))
  }).listen(0, '127.0.0.1')
  await once(registry, 'listening')
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`
  const settings = { npm_config_registry: url, npm_config_cache: join(site.root, 'cache') }
  Object.assign(process.env, settings)
  t.after(() => {
    for (const name of Object.keys(settings)) delete process.env[name]
    registry.close()
    registry.closeAllConnections()
  })
  const { npm: _stub, ...real } = site
  const file = join(site.root, 'node_modules', '@switchyard', 'server', 'packages', 'server', 'integrations.json')
  const lockfile = { name: 'integrations', lockfileVersion: 3, packages: { '': {} } }
  writeFileSync(file, JSON.stringify({ overrides: {}, lockfile, integrity: released.integrity }))

  served = tampered
  await assert.rejects(
    installIntegrations(real, () => {}),
    /^InstallProblem: A package of the catalogue does not have the hash that was recorded .* nothing was installed\./,
  )
  assert.equal(find(site), undefined)

  served = released
  // npm remembers what the registry said before.
  process.env['npm_config_cache'] = join(site.root, 'another-cache')
  await installIntegrations(real, () => {})
  assert.notEqual(find(site), undefined)

  writeFileSync(file, JSON.stringify({ overrides: {}, lockfile }))
  await assert.rejects(
    installIntegrations(real, () => {}),
    /^InstallProblem: This build of the service does not contain the hash of @switchyard\/integrations/,
  )
})
