// Generates docs/reference from the tables in the code, and docs/integrations from the catalogue: `node scripts/run.mjs scripts/reference.ts`.
// A page is a path and a function that returns its text; e2e/documentation/reference.test.ts fails if a file differs from it. This file contains no text of
// the pages.

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { commandLinePages } from './reference/cli.ts'
import { configPage } from './reference/config.ts'
import { dashboardRules } from './reference/dashboard-rules.ts'
import { dashboardTypes } from './reference/dashboard-types.ts'
import { docPages } from './reference/doc-pages.ts'
import { errorsPage } from './reference/errors.ts'
import { featureFlagsPage } from './reference/feature-flags.ts'
import { httpPages } from './reference/http.ts'
import { INTEGRATIONS_FOLDER, integrationPages } from './reference/integrations.ts'
import { metricsPage } from './reference/metrics.ts'
import { testedIntegrationsPage } from './reference/tested-integrations.ts'

export interface ReferencePage {
  /** Relative to the root of the repository. */
  path: string
  render(): string | Promise<string>
}

export const REFERENCE_PAGES: readonly ReferencePage[] = [
  ...httpPages(),
  { path: 'docs/reference/errors.md', render: errorsPage },
  { path: 'docs/reference/config.md', render: configPage },
  ...commandLinePages(),
  { path: 'docs/reference/metrics.md', render: metricsPage },
  { path: 'docs/reference/tested-integrations.md', render: testedIntegrationsPage },
  { path: 'docs/reference/feature-flags.md', render: featureFlagsPage },
  { path: 'packages/dashboard/src/api/types.ts', render: dashboardTypes },
  { path: 'packages/dashboard/src/api/rules.ts', render: dashboardRules },
  { path: 'packages/dashboard/src/api/doc-pages.ts', render: docPages },
]

const root = join(import.meta.dirname, '..')

/** The current text of a page's file; undefined if there is no file. */
export function writtenText({ path }: { path: string }): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

/** The files in the folder of the integrations. */
export function writtenIntegrations(): string[] {
  return readdirSync(join(root, INTEGRATIONS_FOLDER)).map((name) => `${INTEGRATIONS_FOLDER}/${name}`)
}

if (import.meta.main) {
  const write = (path: string, text: string): void => {
    if (text === writtenText({ path })) return
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
    process.stdout.write(`${path} is new\n`)
  }
  for (const page of REFERENCE_PAGES) write(page.path, await page.render())
  const integrations = await integrationPages()
  for (const { path, text } of integrations) write(path, text)
  const pages = new Set(integrations.map(({ path }) => path))
  for (const path of writtenIntegrations()) if (!pages.has(path)) rmSync(join(root, path))
}
