// Compares the files for Docker and systemd in deploy/ with the service: settings exist, ports agree, images are pinned, and there are no secrets in
// them. The files are not run here.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { SETTINGS } from '../../packages/server/src/config.ts'
import { ignoreRules, instructions } from '../../scripts/dockerfile.ts'
import { startInProcess } from '../system/in-process.ts'
import { runService } from '../system/service.ts'
import { assertTaken, FOLDER, PINNED, textOf, VARIABLES } from './deployment-files.ts'

/** For Node.js and its memory; not settings of the service. */
const RUNTIME_VARIABLES = new Set(['NODE_ENV', 'MALLOC_ARENA_MAX'])

interface ComposeService {
  image: string
  build?: { context: string; dockerfile: string }
  environment: Record<string, string>
  depends_on?: Record<string, { condition: string }>
  healthcheck: { test: string[] }
  volumes?: string[]
  ports?: string[]
  expose?: string[]
  networks: string[]
  read_only?: boolean
  stop_grace_period?: string
}

describe('Compose', () => {
  const compose = parse(textOf('compose.yml'), { strict: true }) as {
    services: Record<string, ComposeService>
    volumes: object
    networks: Record<string, { ipam: { config: { subnet: string }[] } }>
  }
  const { services } = compose
  const nodes = Object.entries(services).filter(([name]) => name.startsWith('node-'))

  test('PostgreSQL, two nodes and a proxy, each with a health check, start in the order of their dependencies', () => {
    assert.deepEqual(Object.keys(services), ['postgres', 'node-1', 'node-2', 'proxy'])
    for (const [name, { image, healthcheck, depends_on: needs = {} }] of Object.entries(services)) {
      assert.match(image, PINNED, name)
      assert.equal(healthcheck.test[0], 'CMD', name)
      for (const [other, { condition }] of Object.entries(needs)) {
        assert.ok(other in services, other)
        assert.equal(condition, 'service_healthy')
      }
    }
    assert.deepEqual(
      Object.keys(services['proxy']?.depends_on ?? {}),
      nodes.map(([name]) => name),
    )
    for (const [, node] of nodes) assert.deepEqual(Object.keys(node.depends_on ?? {}), ['postgres'])
  })

  test('the database has a named volume, no published port, and a supported version', () => {
    const { volumes = [], ports, image = '' } = services['postgres'] ?? {}
    assert.deepEqual(volumes, ['postgres:/var/lib/postgresql'])
    assert.deepEqual(Object.keys(compose.volumes), ['postgres'])
    assert.equal(ports, undefined)
    assert.match(image, /:(15|16|17|18)\./)
    for (const [name, { ports: published }] of nodes) assert.equal(published, undefined, name)
    assert.match(services['proxy']?.ports?.[0] ?? '', /^127\.0\.0\.1:/)
  })

  test('settings are those of the service; secrets come from .env, which is required and not in the repository', () => {
    const example = textOf('.env.example')
    for (const [, { environment, read_only: readOnly, stop_grace_period: grace = '' }] of nodes) {
      const plain: Record<string, string> = {}
      for (const [name, value] of Object.entries(environment)) {
        assert.ok(VARIABLES.has(name), `${name} is a setting`)
        const isSecret = Object.values(SETTINGS).some((setting) => setting.variable === name && setting.secret)
        if (isSecret) assert.match(value, /\$\{\w+:\?[^}]+\}/, `${name} is required from outside`)
        else if (name === 'SWITCHYARD_PUBLIC_URL') {
          assert.match(value, /^\$\{\w+:\?[^}]+\}$/, 'nobody forgets it')
          plain[name] = 'https://events.example.com'
        } else plain[name] = value.replace(/^\$\{\w+:-(.*)\}$/, '$1')
      }
      assertTaken(plain)
      assert.equal(readOnly, true)
      assert.ok(Number.parseInt(grace, 10) > 10)
    }
    for (const [, variable] of textOf('compose.yml').matchAll(/\$\{(\w+)/g)) assert.match(example, new RegExp(`^${variable}=`, 'm'))
    for (const name of ['POSTGRES_PASSWORD', 'SWITCHYARD_SECRET_KEY', 'SWITCHYARD_ADMIN_TOKEN'])
      assert.match(example, new RegExp(`^${name}=$`, 'm'))
    assert.match(readFileSync(join(FOLDER, '..', '.gitignore'), 'utf8'), /^deploy\/\.env$/m)
  })

  test('the proxy has no capabilities, and a root file system that is read-only except for what it needs', () => {
    const proxy = services['proxy'] as ComposeService & { user: string; cap_drop: string[]; security_opt: string[]; tmpfs: string[] }
    assert.deepEqual([proxy.read_only, proxy.cap_drop, proxy.security_opt], [true, ['ALL'], ['no-new-privileges:true']])
    assert.doesNotMatch(proxy.user, /^(0|root)\b/)
    const writable = proxy.tmpfs.map((mount) => mount.split(':', 1)[0])
    assert.deepEqual(writable, ['/tmp', '/var/cache/nginx'])
    assert.match(textOf('nginx.conf'), /^pid \/tmp\//m)
    // Without a capability it can only listen on a port from 1024.
    assert.match(textOf('nginx.conf'), /^\s*listen 8080;$/m)
  })

  test('the proxy has the addresses of the nodes, and they trust it', () => {
    const configuration = textOf('nginx.conf')
    const upstreams = [...configuration.matchAll(/^\s*server ([\w-]+):(\d+)/gm)].map(([, name, port]) => [name, port])
    assert.deepEqual(
      upstreams,
      nodes.map(([name, { environment }]) => [name, environment['SWITCHYARD_PORT']]),
    )
    const [{ subnet } = { subnet: '' }] = compose.networks['inside']?.ipam.config ?? []
    for (const [, { environment, networks }] of nodes) {
      assert.equal(environment['SWITCHYARD_TRUSTED_PROXIES'], subnet)
      assert.deepEqual(networks, ['inside'])
    }
    // Not the address in a header of the client.
    assert.match(configuration, /proxy_set_header X-Forwarded-For \$remote_addr;/)
    // A call that changes the configuration is not retried.
    assert.equal(configuration.match(/non_idempotent/g)?.length, 1)
    assert.match(configuration, /location \/v1\/ \{[^}]*non_idempotent/)
  })
})

describe('The image', () => {
  const dockerfile = textOf('Dockerfile')

  test('is based on the pinned runtime of the tests, and does not run as root', () => {
    const stages = new Set([...dockerfile.matchAll(/ AS (\S+)$/gm)].map(([, stage]) => stage))
    const bases = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image as string).filter((image) => !stages.has(image))
    assert.ok(bases.length > 1)
    for (const base of bases) {
      assert.match(base, PINNED)
      assert.ok(base.startsWith(`node:${process.versions.node}-`), `${base}, and ${process.versions.node} here`)
    }
    assert.match(dockerfile, /^USER 1000:1000$/m)
    assert.ok(dockerfile.lastIndexOf('\nUSER ') > dockerfile.lastIndexOf('\nCOPY '), 'what is in it is not its own to change')
  })

  test('copies the manifest of every package, and has settings of the service', () => {
    const { workspaces } = JSON.parse(readFileSync(join(FOLDER, '..', 'package.json'), 'utf8')) as { workspaces: string[] }
    const folders = workspaces.flatMap((pattern) =>
      pattern.endsWith('/*')
        ? readdirSync(join(FOLDER, '..', pattern.slice(0, -2))).map((name) => `${pattern.slice(0, -2)}/${name}`)
        : [pattern],
    )
    for (const folder of folders) assert.ok(dockerfile.includes(`COPY ${folder}/package.json ${folder}/`), folder)
    const env = Object.fromEntries(
      [...dockerfile.matchAll(/(SWITCHYARD_\w+)=(\S+)/g)].map(([, name, value]) => [name as string, value as string]),
    )
    for (const name of Object.keys(env)) assert.ok(VARIABLES.has(name), name)
    assertTaken(env)
    assert.doesNotMatch(dockerfile, /SECRET|TOKEN|PASSWORD/)
  })

  test('copies existing files that are part of the build context', () => {
    const ignored = ignoreRules(textOf('Dockerfile.dockerignore'))
    const copied = instructions(dockerfile).flatMap(([word, rest]) =>
      word === 'COPY' && !rest.startsWith('--from=') ? rest.split(/\s+/).slice(0, -1) : [],
    )
    assert.ok(copied.length > 8)
    for (const path of copied) {
      assert.ok(existsSync(join(FOLDER, '..', path)), path)
      const isFile = statSync(join(FOLDER, '..', path)).isFile()
      assert.ok(!ignored(isFile ? path : `${path}/a-file-in-it`), `${path} is ignored`)
    }
    for (const kept of ['deploy/.env', 'data/switchyard.db', 'packages/server/x.db.key', 'node_modules/a/index.js', '.git/config'])
      assert.ok(ignored(kept), `${kept} stays out`)
  })

  test('its health check reports whether a service answers', async () => {
    const [, json = ''] = /HEALTHCHECK[^[]*(\[.*\])$/m.exec(dockerfile) ?? []
    const [node, flag, script] = JSON.parse(json) as string[]
    assert.deepEqual([node, flag], ['node', '-e'])
    await using service = await startInProcess()
    assert.equal(await exitOf(script ?? '', new URL(service.url).port), 0)
    assert.equal(await exitOf(script ?? '', '9'), 1)
  })
})

describe('systemd', () => {
  const unit = textOf('systemd', 'switchyard.service')
  const settings = [...unit.matchAll(/^(\w+)=(.*)$/gm)].map(([, key, value]) => [key as string, value as string] as const)
  const valueOf = (key: string): string => settings.find(([name]) => name === key)?.[1] ?? assert.fail(`no ${key}`)
  const home = '/opt/switchyard/'
  const repository = join(FOLDER, '..')

  test('starts the service with the pinned runtime, from files of a clone', () => {
    const words = valueOf('ExecStart').split(' ')
    const [runtime = '', cli = '', command] = words.filter((word) => !word.startsWith('--'))
    const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { scripts: { start: string } }
    assert.deepEqual(
      words.filter((word) => word.startsWith('--')),
      scripts.start.split(' ').filter((word) => word.startsWith('--')),
    )
    assert.equal(command, 'serve')
    for (const path of [runtime, cli]) {
      assert.ok(path.startsWith(home), path)
      assert.ok(existsSync(join(repository, path.slice(home.length))), path)
    }
    // The service does not notify systemd when it is ready, so the unit must not wait for that.
    assert.equal(valueOf('Type'), 'exec')
  })

  test('the guide clones, installs and builds before it starts the unit', () => {
    const [, block = ''] = /^## systemd$[^]*?^```sh\n([^]*?)^```$/m.exec(textOf('..', 'docs', 'operations', 'deployment.md')) ?? []
    const { scripts } = JSON.parse(textOf('..', 'package.json')) as { scripts: Record<string, string> }
    const steps = ['git clone ', 'npm ci', 'npm run build:dashboard', 'npm run build:docs', 'switchyard.service', 'systemctl enable']
    const places = steps.map((step) => block.indexOf(step))
    assert.ok(!places.includes(-1), block)
    assert.deepEqual(
      [...places].sort((a, b) => a - b),
      places,
      'in this order',
    )
    assert.match(block, new RegExp(`git clone \\S.* ${home.slice(0, -1)} && cd ${home.slice(0, -1)}$`, 'm'))
    for (const [, name = ''] of block.matchAll(/npm run (\S+)/g)) assert.ok(name in scripts, name)
  })

  test('gives it enough time to stop, and restarts it after a failure, but not after an invalid setting', async () => {
    assert.ok(Number(valueOf('TimeoutStopSec')) > 10)
    assert.deepEqual([valueOf('KillSignal'), valueOf('Restart')], ['SIGTERM', 'on-failure'])
    const { ended } = runService({ env: { SWITCHYARD_PORT: 'none' } })
    assert.equal(String((await ended).code), valueOf('RestartPreventExitStatus'))
  })

  test('settings are those of the service, the store is in the state directory, and no secret has a value', () => {
    // The settings of the unit apply if the file does not have them.
    const pairs = [...textOf('systemd', 'switchyard.env').split('\n'), ...valueOf('Environment').split(' ')]
      .map((line) => /^#?(\w+)=(.*)$/.exec(line))
      .filter((found) => found !== null)
    const env = Object.fromEntries(pairs.map(([, name, value]) => [name, value] as [string, string]))
    for (const [name, value] of Object.entries(env)) {
      if (RUNTIME_VARIABLES.has(name)) continue
      assert.ok(VARIABLES.has(name), name)
      if (/TOKEN|KEY/.test(name)) assert.equal(value, '', `${name} must be empty: each installation has its own`)
    }
    assert.equal(env['SWITCHYARD_STORE'], `sqlite:/var/lib/${valueOf('StateDirectory')}/switchyard.db`)
    assertTaken(Object.fromEntries(Object.entries(env).filter(([name]) => !RUNTIME_VARIABLES.has(name))))
    assert.equal(valueOf('EnvironmentFile'), '/etc/switchyard/switchyard.env')
  })

  test('runs as a separate user, who can write nothing else', () => {
    for (const key of [
      'DynamicUser',
      'NoNewPrivileges',
      'PrivateTmp',
      'PrivateDevices',
      'ProtectHome',
      'ProtectKernelTunables',
      'RestrictSUIDSGID',
    ])
      assert.equal(valueOf(key), 'yes', key)
    assert.deepEqual([valueOf('ProtectSystem'), valueOf('CapabilityBoundingSet'), valueOf('StateDirectoryMode')], ['strict', '', '0700'])
    assert.ok(!settings.some(([key]) => key === 'ReadWritePaths' || key === 'MemoryDenyWriteExecute'))
  })

  test('systemd accepts every line of it, and rates its protection as good', (t) => {
    if (spawnSync('systemd-analyze', ['--version']).error !== undefined) return t.skip('there is no systemd here')
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-unit-'))
    t.after(() => rmSync(folder, { recursive: true }))
    const file = join(folder, 'switchyard.service')
    const analyze = (text: string, ...args: string[]): { text: string; code: number | null } => {
      // systemd checks that the program exists, so the path of this one is used.
      writeFileSync(file, text.replace(/^(ExecStart=)\S+/m, `$1"${process.execPath}"`))
      const { status, stdout, stderr } = spawnSync('systemd-analyze', [...args, file], { encoding: 'utf8' })
      return { text: stdout + stderr, code: status }
    }
    assert.deepEqual(analyze(unit, 'verify'), { text: '', code: 0 })
    assert.match(analyze(unit.replace('ProtectSystem=', 'ProtectSytem='), 'verify').text, /Unknown key/)
    const { text } = analyze(unit, 'security', '--offline=yes', '--no-pager')
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(text) ?? assert.fail(text)
    assert.ok(Number(exposure) < 2, `exposure ${exposure}`)
  })
})

async function exitOf(script: string, port: string): Promise<number | null> {
  const { spawn } = await import('node:child_process')
  const child = spawn(process.execPath, ['-e', script], { env: { ...process.env, SWITCHYARD_PORT: port }, stdio: 'ignore' })
  return new Promise((resolve) => child.on('exit', resolve))
}
