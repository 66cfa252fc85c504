// The checks of import-rules.ts, on made-up sources.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { folderCycles, forbiddenImports, importCycles, importsOf, type Sources } from './import-rules.ts'

test('the checker reads every way to import', () => {
  const text = [
    `import './effect.ts'`,
    `import type { A } from './types.ts'`,
    `import {\n  type B,\n  b,\n} from './several.ts'`,
    `export * as all from './again.ts'`,
    `export type { C } from './again-types.ts'`,
    `const lazy = await import('node:zlib')`,
    `const text = 'import x from nowhere'`,
  ].join('\n')
  const found = importsOf(text).map(({ specifier, typeOnly }) => (typeOnly ? `type ${specifier}` : specifier))
  assert.deepEqual(found, ['./effect.ts', 'type ./types.ts', './several.ts', './again.ts', 'type ./again-types.ts', 'node:zlib'])
})

test('the checker finds a forbidden import of each kind', () => {
  const allowed: [file: string, specifier: string][] = [
    ['webhook/sign.ts', 'node:crypto'],
    ['node/send/oauth.ts', '#platform'],
    ['node/platform/node.ts', 'node:os'],
    ['server/ingest/batch.ts', '../store/store.ts'],
    ['server/ingest/batch.ts', '../errors.ts'],
    ['server/app.ts', './store/sqlite/adapter.ts'],
    ['server/delivery/lanes/lane.ts', '../link/outcome.ts'],
    ['server/delivery/host/host-process.ts', '../sender/executor.ts'],
    ['server/delivery/open-senders.ts', './sender/executor.ts'],
    ['server/store/sqlite/adapter.ts', '../store.ts'],
    ['server/store/postgres/adapter.ts', 'pg'],
    ['server/cli.ts', './commands/main.ts'],
    ['server/commands/serve.ts', '../app.ts'],
    ['server/commands/sending/send.ts', '../../config.ts'],
    ['server/commands/import.ts', '@switchyard/node'],
  ]
  const forbidden: [file: string, specifier: string][] = [
    ['protocol/times.ts', 'node:util'],
    ['webhook/sign.ts', '@switchyard/protocol'],
    ['webhook/sign.ts', 'raw-body'],
    ['node/analytics.ts', 'node:fs'],
    ['node/analytics.ts', './platform/node.ts'],
    ['node/analytics.ts', '@switchyard/webhook'],
    ['server/app.ts', '@switchyard/node'],
    ['server/ingest/batch.ts', '../delivery/lane.ts'],
    ['server/delivery/lane.ts', '../store/sqlite/adapter.ts'],
    ['server/delivery/lane.ts', '../store/postgres.ts'],
    ['server/delivery/lane.ts', '../app.ts'],
    ['server/delivery/lanes/lane.ts', '../sender/executor.ts'],
    ['server/delivery/lanes/lane.ts', 'undici'],
    ['server/delivery/supervision/hosts.ts', '../host/host-process.ts'],
    ['server/delivery/shipments/task.ts', '../lanes/lane.ts'],
    ['server/delivery/link/wire.ts', '../supervision/senders.ts'],
    ['server/delivery/sender/executor.ts', '../lanes/lane.ts'],
    ['server/delivery/sender/executor.ts', '../host/preload.ts'],
    ['server/delivery/host/preload.ts', '../recording/memory.ts'],
    ['server/store/sqlite/adapter.ts', '../postgres/adapter.ts'],
    ['server/store/sqlite/adapter.ts', '../../delivery/lane.ts'],
    ['server/store/store.ts', './sqlite/adapter.ts'],
    ['server/cli.ts', './store/sqlite/adapter.ts'],
    ['server/cli.ts', './app.ts'],
    ['server/commands/sources.ts', '../store/store.ts'],
    ['server/commands/sources.ts', '../control/sources.ts'],
    ['server/control/sources.ts', '../commands/api.ts'],
    ['dashboard/page.ts', '@switchyard/protocol'],
    ['bench/run.ts', 'node:fs'],
  ]
  const problems = ([file, specifier]: [string, string]): string[] =>
    forbiddenImports(new Map([[file, `import { x } from '${specifier}'\n`]]))
  for (const edge of allowed) assert.deepEqual(problems(edge), [])
  for (const edge of forbidden) assert.equal(problems(edge).length, 1, edge.join(' → '))
})

test('a stage may import types, but no code, from the files that the table names for it', () => {
  const typesAllowed: [file: string, specifier: string][] = [
    ['dashboard/page.ts', '@switchyard/protocol'],
    ['server/control/destinations/destinations.ts', '../../delivery/delivery.ts'],
    ['server/control/diagnostics/operator-tools.ts', '../../delivery/sender/http/dial-check.ts'],
    ['server/control/routes/route.ts', '../../observe/live.ts'],
    ['server/observe/events.ts', '../delivery/events/events.ts'],
    ['server/observe/stats.ts', '../ingest/events.ts'],
  ]
  const typesForbidden: [file: string, specifier: string][] = [
    ['server/control/routes/route.ts', '../../delivery/lanes/lane.ts'],
    ['server/delivery/lanes/lane.ts', '../sender/target.ts'],
    ['server/delivery/sender/executor.ts', '../supervision/senders.ts'],
    ['server/control/routes/route.ts', '../../delivery/events/events.ts'],
    ['server/control/routes/route.ts', '../../ingest/events.ts'],
    ['server/control/diagnostics/operator-tools.ts', '../../store/sqlite/threads/backups.ts'],
    ['server/observe/metrics.ts', '../delivery/delivery.ts'],
    ['server/observe/live.ts', '../control/routes/route.ts'],
    ['server/ingest/receive.ts', '../delivery/events/events.ts'],
    ['server/delivery/delivery.ts', '../observe/events.ts'],
    ['server/store/store.ts', '../delivery/events/events.ts'],
    ['server/http/proxies.ts', '../delivery/events/events.ts'],
    ['server/commands/sending/send.ts', '../../delivery/delivery.ts'],
  ]
  const problems = ([file, specifier]: [string, string], statement: string): string[] =>
    forbiddenImports(new Map([[file, `${statement} from '${specifier}'\n`]]))
  for (const edge of typesAllowed) {
    for (const statement of ['import type { X }', 'export type { X }']) assert.deepEqual(problems(edge, statement), [])
    for (const statement of ['import { x }', 'import { type X, x }', 'import { type X }', 'export *'])
      assert.equal(problems(edge, statement).length, 1, `${statement} ${edge.join(' → ')}`)
  }
  for (const edge of typesForbidden) assert.equal(problems(edge, 'import type { X }').length, 1, edge.join(' → '))
})

test('the checker finds a cycle through types and through #platform', () => {
  const cyclic: Sources = new Map([
    ['node/a.ts', `import { b } from './queue/b.ts'\n`],
    ['node/queue/b.ts', `import type { C } from '../c.ts'\n`],
    ['node/c.ts', `export { a } from './a.ts'\n`],
    ['node/d.ts', `import { platform } from '#platform'\n`],
    ['node/platform/web.ts', `import { d } from '../d.ts'\n`],
    ['node/apart.ts', `import { a } from './a.ts'\n`],
  ])
  const cycles = importCycles(cyclic)
  assert.equal(cycles.length, 5)
  assert.ok(cycles.includes('node/a.ts → node/queue/b.ts → node/c.ts → node/a.ts'))
  assert.ok(cycles.includes('node/d.ts → node/platform/web.ts → node/d.ts'))
})

test('the checker finds a cycle between folders whose files have none', () => {
  const layered: Sources = new Map([
    ['server/store/store.ts', `import { a } from './rows/a.ts'\nimport { b } from './keys/b.ts'\n`],
    ['server/store/rows/a.ts', `import { b } from '../keys/b.ts'\nimport { c } from './c.ts'\n`],
    ['server/store/rows/c.ts', `import { outside } from '../../errors.ts'\n`],
    ['server/store/keys/b.ts', `import { x } from 'node:fs'\n`],
  ])
  assert.deepEqual(folderCycles(layered), [])
  const cyclic: Sources = new Map([
    ...layered,
    ['server/store/keys/d.ts', `import type { E } from './deep/e.ts'\n`],
    ['server/store/keys/deep/e.ts', `import { c } from '../../rows/c.ts'\n`],
  ])
  assert.deepEqual(importCycles(cyclic), [])
  assert.deepEqual(folderCycles(cyclic), [
    'server/store/rows → server/store/keys → server/store/keys/deep → server/store/rows',
    'server/store/keys → server/store/keys/deep → server/store/rows → server/store/keys',
    'server/store/keys/deep → server/store/rows → server/store/keys → server/store/keys/deep',
  ])
})
