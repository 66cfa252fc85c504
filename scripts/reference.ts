// Generates docs/reference from the tables in the code: `node scripts/run.mjs scripts/reference.ts`. A page is a path and a
// function that returns its text; e2e/reference.test.ts fails if a file differs from it. This file contains no text of the pages.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { commandLinePage } from './reference/cli.ts'
import { configPage } from './reference/config.ts'
import { dashboardTypes } from './reference/dashboard-types.ts'
import { errorsPage } from './reference/errors.ts'
import { httpPages } from './reference/http.ts'
import { metricsPage } from './reference/metrics.ts'

export interface ReferencePage {
  /** Relative to the root of the repository. */
  path: string
  render(): string | Promise<string>
}

export const REFERENCE_PAGES: readonly ReferencePage[] = [
  ...httpPages(),
  { path: 'docs/reference/errors.md', render: errorsPage },
  { path: 'docs/reference/config.md', render: configPage },
  { path: 'docs/reference/cli.md', render: commandLinePage },
  { path: 'docs/reference/metrics.md', render: metricsPage },
  { path: 'packages/dashboard/src/api/types.ts', render: dashboardTypes },
]

const root = join(import.meta.dirname, '..')

/** The current text of a page's file; undefined if there is no file. */
export function writtenText({ path }: ReferencePage): string | undefined {
  try {
    return readFileSync(join(root, path), 'utf8')
  } catch {
    return undefined
  }
}

if (import.meta.main) {
  for (const page of REFERENCE_PAGES) {
    const text = await page.render()
    if (text === writtenText(page)) continue
    mkdirSync(dirname(join(root, page.path)), { recursive: true })
    writeFileSync(join(root, page.path), text)
    process.stdout.write(`${page.path} is new\n`)
  }
}
