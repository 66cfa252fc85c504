// The published packages: each installed alone from its tarball, in both module systems, on every supported Node.js version, with each module
// resolution of the compiler, and as a replacement of the public client.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { createRequire, findPackageJSON } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before, test } from 'node:test'
import { checkPackage, createPackageFromTarballData, Package } from '@arethetypeswrong/core'
import { build } from 'esbuild'
import { publint } from 'publint'
import type * as Client from '../../packages/node/src/index.ts'
import type * as Testing from '../../packages/node/src/testing/test-client.ts'
import { LIBRARY } from '../../packages/node/src/version.ts'
import { buildServer, SITES } from '../../scripts/build-server.ts'
import { ACCESS_TOKEN, createTrackingEndpoint } from '../clients/tracking-endpoint.ts'
import { IS_LONG } from '../system/long-tests.ts'
import { startReceiver } from '../system/receiver.ts'
import { run } from '../system/run-program.ts'
import { BUNDLER, compile, ES_MODULES } from './compile.ts'
import { installIn, PACKAGES, type PackageName, pack, readJson, repository, runtime } from './installed-packages.ts'
import { verifyAssertion, withoutFetchWarning } from './program-output.ts'
import { runProgram } from './run-migrated-program.ts'
import { requireSandboxed } from './sandboxed-require.ts'

/** By default the oldest and the newest supported version; with SWITCHYARD_LONG_TESTS=1 all of them. */
const NODE_MAJORS = IS_LONG ? [18, 20, 22, 24] : [18, 24]
const MODULE_SYSTEMS = ['mjs', 'cjs'] as const
const PROGRAMS: Record<PackageName, string[]> = {
  protocol: ['parser'],
  webhook: ['receiver', 'receive'],
  node: ['client', 'exit', 'all-settings', 'testing'],
}

const programs = join(import.meta.dirname, 'programs')
const workspace = mkdtempSync(join(tmpdir(), 'switchyard-packages-'))
const projectOf = (name: PackageName | 'all'): string => join(workspace, name)
const installed = (name: PackageName): string => join(projectOf(name), 'node_modules', '@switchyard', name)

let tarballs: Record<PackageName, string>

before(async () => {
  tarballs = await pack(join(workspace, 'tarballs'))
  await Promise.all([
    ...PACKAGES.map((name) => installIn(projectOf(name), [tarballs[name]])),
    installIn(projectOf('all'), Object.values(tarballs)),
  ])
  for (const name of PACKAGES) {
    const files = PROGRAMS[name].flatMap((program) => globSync(`${program}.{mjs,cjs}`, { cwd: programs }))
    for (const file of files) await copyFile(join(programs, file), join(projectOf(name), file))
  }
})

after(() => rmSync(workspace, { recursive: true, force: true }))

for (const name of PACKAGES) {
  test(`@switchyard/${name} installs alone: one package, without scripts or unpublished files`, async () => {
    assert.deepEqual(await readdir(join(projectOf(name), 'node_modules', '@switchyard')), [name])
    const others = (await readdir(join(projectOf(name), 'node_modules'))).filter((entry) => !entry.startsWith('.'))
    assert.deepEqual(others, ['@switchyard'])

    const manifest = await readJson(join(installed(name), 'package.json'))
    const root = await readJson(join(repository, 'package.json'))
    assert.equal(manifest['name'], `@switchyard/${name}`)
    assert.equal(manifest['version'], root['version'])
    assert.equal(manifest['license'], 'Apache-2.0')
    assert.deepEqual(manifest['engines'], { node: '>=18' })
    for (const field of ['dependencies', 'peerDependencies', 'optionalDependencies', 'devDependencies', 'scripts', 'private']) {
      assert.equal(manifest[field], undefined, field)
    }
    const targets = JSON.stringify([
      manifest['main'],
      manifest['module'],
      manifest['types'],
      manifest['exports'],
      manifest['imports'] ?? {},
    ]).match(/\.\/[^"]+\.(?:ts|js|cts|cjs)\b/g)
    for (const target of targets ?? []) await stat(join(installed(name), target))
    const expectedExports: Record<PackageName, string[]> = {
      protocol: ['.', './package.json'],
      webhook: ['.', './package.json', './vectors.json', './vectors-extra.json'],
      node: ['.', './testing', './package.json'],
    }
    assert.deepEqual(Object.keys(manifest['exports'] as object), expectedExports[name])

    const files = filesOf(installed(name))
    assert.ok(files.includes('LICENSE') && files.includes('README.md'))
    assert.ok((manifest['keywords'] as string[]).includes('switchyard') && typeof manifest['description'] === 'string')
    // If the root names a repository, each package names its folder in it.
    const repositoryOf = root['repository'] === undefined ? undefined : { ...(root['repository'] as object), directory: `packages/${name}` }
    assert.deepEqual(manifest['repository'], repositoryOf)
    const expected =
      /^(?:package\.json|LICENSE|README\.md|vectors(?:-extra)?\.json|esm\/(?:[\w-]+\/)*[\w-]+(?:\.js|\.d\.ts)|cjs\/(?:[\w-]+\/)*[\w-]+(?:\.cjs|\.d\.cts))$/
    assert.deepEqual(
      files.filter((file) => !expected.test(file)),
      [],
    )
    for (const file of files.filter((file) => /\.c?(?:js|ts)$/.test(file))) {
      const text = readFileSync(join(installed(name), file), 'utf8')
      const specifiers = Array.from(
        text.matchAll(/(?:\bfrom\s*|\bimport\s*\(\s*|\brequire\(\s*)["']([^"']+)["']/g),
        ([, specifier]) => specifier as string,
      )
      // Ajv contains imports as text, for generated modules.
      const own = file.endsWith('/schema-compiler.cjs') ? /^(?:ajv|ajv-formats)\/dist\/[\w/]+$/ : /^(?:\.{1,2}\/|node:|#platform$)/
      const foreign = specifiers.filter((specifier) => !own.test(specifier))
      assert.deepEqual(foreign, [], file)
      assert.ok(!text.includes(repository), `${file} names a path of the machine that built it`)
    }
  })
}

for (const name of PACKAGES) {
  test(`publint and are-the-types-wrong find no problem in @switchyard/${name}`, async () => {
    const bytes = await readFile(tarballs[name])
    const { messages } = await publint({ pack: { tarball: Uint8Array.from(bytes).buffer }, strict: true, level: 'suggestion' })
    assert.deepEqual(messages, [])
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(bytes)))
    assert.ok(analysis.types !== false)
    assert.ok('.' in analysis.entrypoints)
    assert.deepEqual(analysis.problems, [])
  })
}

test('the checks of packages find mistakes in a wrong package', async () => {
  // An ES module whose types say that it is CommonJS, and whose main does not exist.
  const files = {
    'package.json': manifestOf({ types: './index.d.cts', main: './gone.cjs' }),
    'index.js': 'export const a = 1\n',
    'index.d.cts': 'export const a: 1\n',
  }
  const folder = join(workspace, 'wrong')
  await mkdir(folder)
  for (const [file, text] of Object.entries(files)) await writeFile(join(folder, file), text)
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true, level: 'suggestion' })
  assert.ok(
    messages.some(({ code }) => code === 'FILE_DOES_NOT_EXIST'),
    JSON.stringify(messages),
  )
  const inside = Object.fromEntries(Object.entries(files).map(([file, text]) => [`/node_modules/wrong/${file}`, text]))
  const { problems } = (await checkPackage(new Package(inside, 'wrong', '1.0.0'))) as { problems: { kind: string }[] }
  assert.ok(
    problems.some(({ kind }) => kind === 'FalseCJS'),
    JSON.stringify(problems),
  )
})

function manifestOf({ types, main }: { types: string; main: string }): string {
  return JSON.stringify({ name: 'wrong', version: '1.0.0', type: 'module', main, exports: { '.': { types, default: './index.js' } } })
}

test('the client is one package: less than 425 KB, and less than 250 KB for the client for tests', async () => {
  assert.equal(LIBRARY.version, (await readJson(join(repository, 'package.json')))['version'])
  const files = filesOf(installed('node'))
  const bytes = { client: 0, testing: 0 }
  for (const file of files)
    bytes[/\/testing\/|\/(?:plan-|tracking-plan|judging-steps|slow-pattern)/.test(file) ? 'testing' : 'client'] += (
      await stat(join(installed('node'), file))
    ).size
  assert.ok(bytes.client < 425_000 && bytes.testing < 250_000, `${JSON.stringify(bytes)} bytes in ${files.length} files`)
})

test('the file with third-party code contains the licences of its packages, and both module systems share it', () => {
  const files = filesOf(installed('node')).filter((file) => /schema-compiler/.test(file))
  assert.deepEqual(files, ['cjs/testing/schema-compiler.cjs'])
  const text = readFileSync(join(installed('node'), files[0] as string), 'utf8')
  for (const name of ['ajv', 'ajv-formats', 'fast-deep-equal', 'fast-uri', 'json-schema-traverse'])
    assert.match(text, new RegExp(`^${name}$`, 'm'))
})

for (const major of NODE_MAJORS) {
  test(`Node.js ${major}`, async (t) => {
    const node = await runtime(major)
    if (node === undefined) return t.skip('not installed yet, and the registry cannot be reached')
    const { stdout } = await run(node, ['--version'], { cwd: workspace })
    assert.ok(stdout.startsWith(`v${major}.`), stdout)

    await t.test('spool, gzip, OAuth and signals work', async () => {
      const endpoint = await createTrackingEndpoint()
      const spool = join(workspace, `spool-${major}`)
      const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const clientKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      try {
        const { stdout, stderr } = await run(node, ['all-settings.mjs', endpoint.url, spool, clientKey], { cwd: projectOf('node') })
        assert.deepEqual({ stdout, stderr }, { stdout: 'asked to end\n', stderr: '' })
        assert.deepEqual(endpoint.messages[0]?.['properties'], { note: 'é ✓' })
        assert.equal(endpoint.headers[0]?.['content-encoding'], 'gzip')
        assert.equal(endpoint.headers[0]?.authorization, `Bearer ${ACCESS_TOKEN}`)
        assert.ok(verifyAssertion(endpoint.tokenForms[0], publicKey))
        assert.deepEqual(await readdir(spool), [], 'nothing is left on disk')
      } finally {
        await endpoint.close()
      }
    })

    for (const system of MODULE_SYSTEMS) {
      await t.test(`the client sends and closes, as ${system}`, async () => {
        const endpoint = await createTrackingEndpoint()
        try {
          const { stdout, stderr } = await run(node, [`client.${system}`, endpoint.url], { cwd: projectOf('node') })
          assert.deepEqual(JSON.parse(stdout), {
            sameClass: true,
            version: LIBRARY.version,
            error: 'none',
            context: true,
            classes: ['function', 'function'],
            heard: ['flushed 2'],
            result: { stored: 2, failed: 0, pending: 0 },
          })
          assert.equal(stderr, '')
          assert.deepEqual(
            endpoint.messages.map(({ type, userId, event, properties, traits }) => ({ type, userId, event, properties, traits })),
            [
              { type: 'identify', userId: 'u-1', event: undefined, properties: undefined, traits: { plan: 'pro' } },
              { type: 'track', userId: 'u-1', event: 'Order Completed', properties: { total: 12.5, note: 'é ✓' }, traits: undefined },
            ],
          )
        } finally {
          await endpoint.close()
        }
      })

      await t.test(`a process that ends after a call sends it first, as ${system}`, async () => {
        const endpoint = await createTrackingEndpoint()
        try {
          // The flush interval is an hour, so a process that waited for it would not end before the deadline.
          const { stderr } = await run(node, [`exit.${system}`, endpoint.url], { cwd: projectOf('node') })
          assert.equal(stderr, '')
          assert.deepEqual(
            endpoint.messages.map(({ event }) => event),
            ['Left Early'],
          )
        } finally {
          await endpoint.close()
        }
      })

      await t.test(`the client for tests checks calls with a plan, and does not keep the process alive, as ${system}`, async () => {
        const { stdout, stderr } = await run(node, [`testing.${system}`], { cwd: projectOf('node') })
        assert.deepEqual(JSON.parse(stdout), {
          isAnalytics: true,
          events: ['Order Completed', 'Order Completed'],
          message:
            '1 of 2 calls do not fit the tracking plan "Shop":\n  call 2, track "Order Completed"\n    properties.total: expected a number, found a string (wrong_type)',
        })
        assert.equal(stderr, '')
      })

      await t.test(`the receiver's package signs and verifies, as ${system}`, async () => {
        const { stdout, stderr } = await run(node, [`receiver.${system}`], { cwd: projectOf('webhook') })
        assert.deepEqual(JSON.parse(stdout), {
          answers: ['200 é ✓', '401 signature_invalid'],
          ofFetch: 'body',
          ofBytes: true,
          signature: [true, false],
        })
        assert.equal(withoutFetchWarning(stderr), '')
      })

      await t.test(`the protocol parses, as ${system}`, async () => {
        const { stdout } = await run(node, [`parser.${system}`], { cwd: projectOf('protocol') })
        const expected = { taken: true, refused: 'no_user_anon_id', types: 6, bytes: 32_768, time: '2026-11-14T09:00:00.000Z' }
        assert.deepEqual(JSON.parse(stdout), expected)
      })
    }
  })
}

test('the types work for ES modules, CommonJS and bundlers', async () => {
  const project = projectOf('all')
  for (const name of ['typed.mts', 'typed.cts', 'typed.ts']) await copyFile(join(programs, 'typed.ts'), join(project, name))
  await compile(project, ['typed.mts', 'typed.cts'], ES_MODULES)
  await compile(project, ['typed.ts'], BUNDLER)
})

test('the types of client and protocol need no types of Node.js', async () => {
  const project = projectOf('all')
  const exports = `export { Analytics } from '@switchyard/node'\nexport { parseMessage } from '@switchyard/protocol'\n`
  await writeFile(join(project, 'edge.ts'), exports)
  await compile(project, ['edge.ts'], { ...BUNDLER, types: [], lib: ['es2022', 'dom'] })
})

test('a bundler for another runtime finds the client without Node.js, in both module systems', async () => {
  for (const [contents, platform] of [
    [`export * from '@switchyard/node'`, '/esm/platform/web.js'],
    [`exports.it = require('@switchyard/node')`, '/cjs/platform/web.cjs'],
  ] as const) {
    const entry = { contents, resolveDir: projectOf('node') }
    const { metafile } = await build({ stdin: entry, bundle: true, format: 'esm', platform: 'neutral', metafile: true, write: false })
    assert.ok(Object.keys(metafile.inputs).some((path) => path.endsWith(platform)))
    const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
    assert.deepEqual(imports, [])
  }
})

test('the client works in a test runner that loads modules in separate contexts', async () => {
  const { Analytics } = requireSandboxed(join(projectOf('node'), 'index.js'), '@switchyard/node') as typeof Client
  const endpoint = await createTrackingEndpoint()
  try {
    const analytics = new Analytics({ writeKey: 'e2e', host: endpoint.url, maxRetries: 0, gzip: true })
    const outcome = new Promise((resolve) => analytics.track({ userId: 'u-1', event: 'In A Sandbox' }, resolve))
    await analytics.closeAndFlush()
    assert.equal(await outcome, undefined)
    assert.equal(endpoint.messages.length, 1)
  } finally {
    await endpoint.close()
  }
})

test('the client for tests works in a test runner that loads modules in separate contexts', () => {
  const { createTestClient } = requireSandboxed(join(projectOf('node'), 'index.js'), '@switchyard/node/testing') as typeof Testing
  const rules = [
    { type: 'identify', mode: 'observe', schema: { required: ['email'], properties: { email: { format: 'email', type: 'string' } } } },
  ] as const
  const analytics = createTestClient({ plan: { name: 'Shop', unplanned: 'observe', rules } })
  analytics.identify({ userId: 'u', traits: { email: 'a@example.com' } })
  analytics.assertPlanned()
  analytics.identify({ userId: 'u', traits: { email: 'nobody' } })
  assert.throws(() => analytics.assertPlanned(), { name: 'PlanError' })
})

test('a program for the public client compiles and runs with our import, and sends the same messages', async () => {
  const [theirs, ours] = await migrated('migration')
  await compile(workspace, [theirs], { ...ES_MODULES, skipLibCheck: true })
  await compile(projectOf('node'), [ours], ES_MODULES)
  await compile(projectOf('node'), [ours], BUNDLER)
  const [before, now] = [await runProgram(theirs), await runProgram(ours)]
  assert.equal(before.messages.length, 12)
  assert.deepEqual(now, before)
})

test('our client has the types of the public client that programs use', async () => {
  const [theirs, ours] = await migrated('migration-types')
  await compile(workspace, [theirs], { ...ES_MODULES, skipLibCheck: true })
  await compile(projectOf('node'), [ours], ES_MODULES)
})

test('methods work without the client object, like those of the public client', async () => {
  for (const specifier of ['@segment/analytics-node', '@switchyard/node']) {
    const from = specifier.startsWith('@segment') ? import.meta.filename : join(projectOf('node'), 'index.js')
    const { Analytics } = createRequire(from)(specifier) as typeof Client
    const endpoint = await createTrackingEndpoint()
    try {
      // oxlint-disable-next-line typescript/unbound-method -- this is what the test is about
      const { identify, track, closeAndFlush } = new Analytics({ writeKey: 'e2e', host: endpoint.url })
      identify({ userId: 'u-1' })
      track({ userId: 'u-1', event: 'Detached' })
      await closeAndFlush()
      assert.equal(endpoint.messages.length, 2, specifier)
    } finally {
      await endpoint.close()
    }
  }
})

test('the service runs from its package, with its pages, and delivers', async (t) => {
  const modules = join(projectOf('all'), 'node_modules')
  const home = join(modules, '@switchyard', 'server')
  await buildServer(home)
  const manifest = await readJson(join(home, 'package.json'))
  assert.equal(manifest['version'], LIBRARY.version)
  for (const field of ['private', 'scripts', 'devDependencies']) assert.equal(manifest[field], undefined, field)
  for (const [name, range] of Object.entries(manifest['dependencies'] as Record<string, string>)) {
    // Our packages are installed from their tarballs; a registry would provide the others.
    if (name.startsWith('@switchyard/')) assert.equal(range, LIBRARY.version, name)
    else {
      await mkdir(dirname(join(modules, name)), { recursive: true })
      await symlink(dirname(findPackageJSON(name, join(repository, 'packages', 'server', 'package.json')) as string), join(modules, name))
    }
  }
  assert.deepEqual(
    filesOf(home).filter((file) => /\.ts$|\.test\.|(?:^|\/)(?:fixtures|conformance)\//.test(file)),
    [],
  )
  const { messages } = await publint({ pkgDir: home, pack: false, strict: true, level: 'suggestion' })
  assert.deepEqual(messages, [])

  const store = join(workspace, 'packaged', 'switchyard.db')
  const env = {
    PATH: process.env['PATH'],
    SWITCHYARD_PORT: '0',
    SWITCHYARD_STORE: `sqlite:${store}`,
    SWITCHYARD_ADMIN_TOKEN: 'packaged',
    SWITCHYARD_LOG: 'warn',
  }
  const child = spawn(process.execPath, [join(home, 'bin', 'switchyard.js'), 'serve', '--json'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  t.after(() => child.kill('SIGKILL'))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const { url, source } = JSON.parse(line) as { url: string; source: { id: string; writeKeys: string[] } }
  for (const [path, site] of [
    ['/', SITES[0]],
    ['/docs', SITES[1]],
  ] as const) {
    const response = await fetch(`${url}${path}`)
    const page = await response.text()
    assert.equal(response.status, 200, path)
    if (globSync('index.html', { cwd: join(repository, site as string) }).length > 0) assert.doesNotMatch(page, /has not been built/, path)
  }
  await using receiver = await startReceiver()
  const headers = { authorization: 'Bearer packaged', 'content-type': 'application/json' }
  // The transformation runs in a separate thread, with a WebAssembly file of a dependency.
  const transformation = { code: 'export default (message) => ({ ...message, properties: { transformed: true } })' }
  const body = JSON.stringify({ name: 'hook', sourceIds: [source.id], urls: [receiver.url], transformation })
  assert.equal((await fetch(`${url}/api/destinations`, { method: 'POST', headers, body })).status, 201)
  const authorization = `Basic ${Buffer.from(`${source.writeKeys[0]}:`).toString('base64')}`
  await fetch(`${url}/v1/track`, {
    method: 'POST',
    headers: { authorization },
    body: '{"userId":"u-1","event":"Packaged","messageId":"p-1"}',
  })
  await receiver.until(() => receiver.byMessageId.has('p-1'))
  assert.deepEqual(
    receiver.messages().map(({ properties }) => properties),
    [{ transformed: true }],
  )
  child.kill('SIGTERM')
  assert.deepEqual(await ended, [0, null])
})

test('on an older Node.js, the packaged service says which version it needs', async (t) => {
  const node = await runtime(20)
  if (node === undefined) return t.skip('not installed yet, and the registry cannot be reached')
  const entry = join(projectOf('all'), 'node_modules', '@switchyard', 'server', 'bin', 'switchyard.js')
  await assert.rejects(run(node, [entry, 'serve'], { cwd: workspace }), /needs Node\.js 24 or later; this is v20\./)
})

/** The paths of a program for the public client, and of the same program for ours in a project that has it installed. */
async function migrated(name: string): Promise<[theirs: string, ours: string]> {
  const [theirs, ours] = [join(programs, `${name}.ts`), join(projectOf('node'), `${name}.mts`)]
  await writeFile(ours, (await readFile(theirs, 'utf8')).replace(`'@segment/analytics-node'`, `'@switchyard/node'`))
  return [theirs, ours]
}

function filesOf(folder: string): string[] {
  const entries = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) => entry.isFile())
  return entries.map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
}
