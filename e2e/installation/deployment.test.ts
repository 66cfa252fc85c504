// Compares the files in deploy/ with the service: settings exist, ports agree, probes are answered, images are pinned, there are no secrets in
// them, and the loss of one node is tolerated. The files are not run here.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { Secret } from 'kubernetes-models/v1/Secret'
import { Service } from 'kubernetes-models/v1/Service'
import { parse } from 'yaml'
import { readConfig, SETTINGS } from '../../packages/server/src/config.ts'
import { ignoreRules, instructions } from '../../scripts/dockerfile.ts'
import { startInProcess } from '../system/in-process.ts'
import { runService } from '../system/service.ts'

const FOLDER = join(import.meta.dirname, '..', '..', 'deploy')
const VARIABLES = new Set<string>(Object.values(SETTINGS).map(({ variable }) => variable))
/** A name, then a version with at least two numbers in it. */
const PINNED = /^[a-z0-9./-]+:v?\d+\.\d+[\w.-]*$/

const textOf = (...path: string[]): string => readFileSync(join(FOLDER, ...path), 'utf8')

interface Container {
  name: string
  image: string
  command?: string[]
  env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[]
  ports: { name: string; containerPort: number }[]
  startupProbe: Probe
  readinessProbe: Probe
  livenessProbe: Probe
  lifecycle: { preStop: { exec: { command: string[] } } }
  resources: { requests: Record<string, string>; limits: Record<string, string> }
  securityContext: { allowPrivilegeEscalation: boolean; readOnlyRootFilesystem: boolean; capabilities: { drop: string[] } }
}

interface Probe {
  httpGet: { path: string; port: string }
  periodSeconds: number
  failureThreshold: number
}

interface Manifest {
  apiVersion: string
  kind: string
  metadata: { name: string; labels: Record<string, string> }
  // Each test knows which kind it has.
  spec: Record<string, unknown>
  stringData?: Record<string, string>
  resources?: string[]
}

const MANIFESTS = new Map(
  readdirSync(join(FOLDER, 'kubernetes')).map((name) => [name, parse(textOf('kubernetes', name), { strict: true }) as Manifest]),
)

function manifest(kind: string): Manifest {
  const found = [...MANIFESTS.values()].filter((each) => each.kind === kind)
  assert.equal(found.length, 1, kind)
  return found[0] as Manifest
}

interface PodSpec {
  terminationGracePeriodSeconds: number
  automountServiceAccountToken: boolean
  securityContext: { runAsNonRoot: boolean; runAsUser: number }
  containers: Container[]
}

interface DeploymentSpec {
  replicas: number
  selector: { matchLabels: Record<string, string> }
  strategy: { type: string; rollingUpdate: { maxUnavailable: number; maxSurge: number } }
  template: { metadata: { labels: Record<string, string> }; spec: PodSpec }
}

const deployment = (): DeploymentSpec => manifest('Deployment').spec as unknown as DeploymentSpec
const container = (): Container => deployment().template.spec.containers[0] as Container

/** Checks settings as `serve` does, before anything is opened. */
function assertTaken(env: Record<string, string>): void {
  const read = readConfig({ SWITCHYARD_STORE: 'postgres://u:p@h/d', ...env })
  assert.equal(read.kind, 'config', JSON.stringify(read))
  if (read.kind !== 'config') return
  assert.deepEqual(read.warnings, [])
  const { privateAddresses, metrics } = read.config
  assert.deepEqual({ privateAddresses, metrics }, { privateAddresses: 'refuse', metrics: 'token' })
}

/** Models generated from the schemas of the Kubernetes API: they reject unknown fields and invalid values. */
const MODELS = { Deployment, Service, Secret, PodDisruptionBudget, NetworkPolicy }

describe('Kubernetes', () => {
  test('each manifest matches the schema of its kind, and a mistake in one would be found', () => {
    for (const [kind, Model] of Object.entries(MODELS)) {
      const found = manifest(kind)
      new Model(found as never).validate()
      assert.throws(() => new Model({ ...found, metadata: { ...found.metadata, name: 7 } } as never).validate(), kind)
    }
    const wrong = structuredClone(manifest('Deployment')) as unknown as { spec: { replicas: unknown } }
    wrong.spec.replicas = 'three'
    assert.throws(() => new Deployment(wrong as never).validate())
  })

  test('each manifest has a stable kind and version, and the same name', () => {
    const known: Record<string, string> = {
      Deployment: 'apps/v1',
      Service: 'v1',
      Secret: 'v1',
      PodDisruptionBudget: 'policy/v1',
      NetworkPolicy: 'networking.k8s.io/v1',
      Kustomization: 'kustomize.config.k8s.io/v1beta1',
    }
    assert.deepEqual(new Set([...MANIFESTS.values()].map(({ kind }) => kind)), new Set(Object.keys(known)))
    for (const [file, { kind, apiVersion, metadata }] of MANIFESTS) {
      assert.equal(apiVersion, known[kind], file)
      if (kind === 'Kustomization') continue
      assert.equal(metadata.name, 'switchyard', file)
      assert.deepEqual(metadata.labels, { 'app.kubernetes.io/name': 'switchyard' }, file)
    }
    const { resources = [] } = manifest('Kustomization')
    for (const file of resources) assert.ok(MANIFESTS.has(file), file)
    assert.ok(!resources.some((file) => /example/.test(file)), 'examples are not applied')
  })

  test('the network policy allows no other incoming connections, and no outgoing ones to private addresses', () => {
    const { podSelector, ingress, egress } = manifest('NetworkPolicy').spec as {
      podSelector: { matchLabels: object }
      ingress: { from: object[]; ports: { port: unknown }[] }[]
      egress: { to: { ipBlock?: { cidr: string; except?: string[] } }[] }[]
    }
    assert.deepEqual(podSelector.matchLabels, deployment().template.metadata.labels)
    for (const { from, ports } of ingress) {
      assert.ok(from.length > 0)
      for (const { port } of ports) assert.ok(container().ports.some(({ name }) => name === port))
    }
    const open = egress.flatMap(({ to }) => to.flatMap(({ ipBlock }) => (ipBlock?.cidr.endsWith('/0') ? [ipBlock] : [])))
    assert.deepEqual(
      open.map(({ cidr }) => cidr),
      ['0.0.0.0/0', '::/0'],
    )
    const except = new Set(open.flatMap(({ except: ranges = [] }) => ranges))
    for (const range of ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', 'fc00::/7', 'fe80::/10'])
      assert.ok(except.has(range), range)
  })

  test('there are several nodes, and the service stays available during upgrades and while machines are drained', () => {
    const { replicas, strategy } = deployment()
    assert.ok(replicas > 1)
    assert.deepEqual(strategy, { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } })
    const budget = manifest('PodDisruptionBudget').spec as { maxUnavailable: number; selector: { matchLabels: object } }
    assert.equal(budget.maxUnavailable, 1)
    assert.ok(budget.maxUnavailable < replicas)
    assert.deepEqual(budget.selector.matchLabels, deployment().template.metadata.labels)
  })

  test('selectors and ports agree', () => {
    const { selector, template } = deployment()
    const { ports, env } = container()
    assert.deepEqual(selector.matchLabels, template.metadata.labels)
    const service = manifest('Service').spec as { selector: object; ports: { targetPort: string }[] }
    assert.deepEqual(service.selector, template.metadata.labels)
    for (const { targetPort } of service.ports) assert.ok(ports.some(({ name }) => name === targetPort))
    assert.equal(String(ports[0]?.containerPort), env.find(({ name }) => name === 'SWITCHYARD_PORT')?.value)
    for (const probe of [container().startupProbe, container().readinessProbe, container().livenessProbe])
      assert.ok(ports.some(({ name }) => name === probe.httpGet.port))
  })

  test('the service answers the probes for liveness and readiness', async () => {
    const { startupProbe, readinessProbe, livenessProbe } = container()
    assert.equal(readinessProbe.httpGet.path, '/readyz')
    assert.equal(livenessProbe.httpGet.path, '/healthz')
    await using service = await startInProcess()
    for (const { httpGet } of [startupProbe, readinessProbe, livenessProbe])
      assert.equal((await fetch(`${service.url}${httpGet.path}`)).status, 200, httpGet.path)
    // A node waits for its database for a minute.
    assert.ok(startupProbe.periodSeconds * startupProbe.failureThreshold > 60)
  })

  test('the grace period covers the pause before the stop and the ten seconds of the stop', () => {
    const { preStop } = container().lifecycle
    const [command, seconds] = preStop.exec.command
    assert.equal(command, 'sleep')
    assert.ok(deployment().template.spec.terminationGracePeriodSeconds > Number(seconds) + 10)
  })

  test('settings are those of the service, and secrets come only from the Secret', () => {
    const { env } = container()
    const plain: Record<string, string> = {}
    const { stringData = {} } = manifest('Secret')
    for (const { name, value, valueFrom } of env) {
      assert.ok(VARIABLES.has(name), `${name} is a setting`)
      const isSecret = Object.values(SETTINGS).some((setting) => setting.variable === name && setting.secret)
      if (isSecret) {
        assert.equal(value, undefined, name)
        assert.deepEqual(valueFrom?.secretKeyRef, { name: manifest('Secret').metadata.name, key: name })
        assert.ok(name in stringData, `${name} is in the example`)
      } else plain[name] = value as string
    }
    for (const [name, value] of Object.entries(stringData)) assert.equal(value, '', `${name} has no value in the example`)
    assert.deepEqual(Object.keys(stringData).sort(), ['SWITCHYARD_ADMIN_TOKEN', 'SWITCHYARD_SECRET_KEY', 'SWITCHYARD_STORE'])
    assertTaken(plain)
  })

  test('it runs as an unprivileged user with a read-only root file system', () => {
    const { securityContext, automountServiceAccountToken } = deployment().template.spec
    assert.ok(securityContext.runAsNonRoot && securityContext.runAsUser > 0)
    assert.equal(automountServiceAccountToken, false)
    assert.deepEqual(container().securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    assert.ok(container().resources.requests['memory'] && container().resources.limits['memory'])
    assert.match(container().image, PINNED)
  })

  test('its memory limit is large enough for the service, its integration hosts, and the host that isolates crashes', () => {
    const { env, resources } = container()
    const hosts = Number(env.find(({ name }) => name === 'SWITCHYARD_INTEGRATION_HOSTS')?.value)
    const hostMi = Number(/reserve (\d+) MB for each host/.exec(textOf('..', 'docs', 'operations', 'deployment.md'))?.[1])
    assert.equal(resources.limits['memory'], `${1_024 + (hosts + 1) * hostMi}Mi`)
  })
})

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
    const [runtime = '', flag, cli = '', command] = valueOf('ExecStart').split(' ')
    assert.deepEqual([flag, command], ['--max-semi-space-size=16', 'serve'])
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
      if (name === 'NODE_ENV') continue
      assert.ok(VARIABLES.has(name), name)
      if (/TOKEN|KEY/.test(name)) assert.equal(value, '', `${name} is for whoever installs it`)
    }
    assert.equal(env['SWITCHYARD_STORE'], `sqlite:/var/lib/${valueOf('StateDirectory')}/switchyard.db`)
    assertTaken(Object.fromEntries(Object.entries(env).filter(([name]) => name !== 'NODE_ENV')))
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
