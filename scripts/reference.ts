// Writes docs/reference from the tables in the code: `node scripts/run.mjs scripts/reference.ts`. A page is a path and a
// function that gives its text; e2e/reference.test.ts fails while a file says something else. No sentence is written here.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { commandLinePage } from './reference/cli.ts'
import { configPage } from './reference/config.ts'
import { dashboardTypes } from './reference/dashboard-types.ts'
import { errorsPage } from './reference/errors.ts'
import { httpPages } from './reference/http.ts'
import { metricsPage } from './reference/metrics.ts'

export interface ReferencePage {
  /** From the repository's root. */
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

/** The text that the file of a page has now; undefined when there is no file. */
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
