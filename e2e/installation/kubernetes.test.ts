// Compares the Kubernetes manifests in deploy/ with the service: settings exist, ports agree, probes are answered, images are pinned, there are no
// secrets in them, and the loss of one node is tolerated. The manifests are not run here.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Deployment } from 'kubernetes-models/apps/v1/Deployment'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1/NetworkPolicy'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1/PodDisruptionBudget'
import { Secret } from 'kubernetes-models/v1/Secret'
import { Service } from 'kubernetes-models/v1/Service'
import { parse } from 'yaml'
import { SETTINGS } from '../../packages/server/src/config.ts'
import { startInProcess } from '../system/in-process.ts'
import { assertTaken, FOLDER, PINNED, textOf, VARIABLES } from './deployment-files.ts'

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
