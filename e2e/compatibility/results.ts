// The results of third-party clients, as data for the tests and for docs/guide/compatibility.md. A row is a feature, a result and the test that
// shows it, so that nothing is listed without a test. A client has a row for every feature of its group; the compiler reports missing rows.
//
//   export const NODE_CLIENTS: Group<NodeBench, keyof typeof FEATURES> = {
//     title: 'Server clients', testFile: 'node.test.ts', features: FEATURES, clients: [SEGMENT_3, …] }
//   in node.test.ts       tryOut(NODE_CLIENTS, async () => bench)            one test per client and feature
//   in page.ts            GROUPS = { NODE_CLIENTS, … }                       the groups of the page, in this order
//   node e2e/compatibility/page.ts --write                                   writes the page; page.test.ts checks it
//
// The `attempt` of a row also shows what does not work, and what happens instead. If a new version of a client improves, a test fails and the
// page is updated.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

/** As the page names them. */
export const RESULTS = {
  works: 'works',
  differs: 'works, differs',
  fails: 'does not work',
} as const

export type Result = keyof typeof RESULTS

/** `note` is one or more whole sentences of Markdown in one line; what differs or fails cannot be without one. */
export type Row<Bench> = {
  /** Shows the result, up to the webhook if something is sent. */
  attempt: (bench: Bench) => Promise<void>
} & ({ result: 'works'; note?: string } | { result: 'differs' | 'fails'; note: string })

export interface Client<Bench, Feature extends string> {
  /** The name in e2e/package.json, which is an alias where several versions are installed. Name and version are read from there. */
  installedAs: string
  /** One sentence: which option has the service's address. Markdown. */
  host: string
  /** The lines that a reader copies. The tests create the client in the same way. */
  setup: string
  /** A sentence, if something of the client is not tested. */
  notTried?: string
  tried: Record<Feature, Row<Bench>>
}

export interface Group<Bench, Feature extends string> {
  title: string
  /** One paragraph of Markdown: how it was tested. */
  introduction: string
  /** In this folder; calls tryOut with this group. */
  testFile: string
  /** Whether the clients are tested at the same time, because they mostly wait. */
  atOnce?: true
  /** The features, in the order of the page: a title for the table and a sentence of Markdown on how it is tested. */
  features: Record<Feature, { title: string; how: string }>
  clients: readonly Client<Bench, Feature>[]
}

/** For code that only reads groups. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyGroup = Group<any, string>

export interface Installed {
  name: string
  version: string
}

/** The name and version of the installed package. */
export function installed({ installedAs }: { installedAs: string }): Installed {
  for (const folder of ['../node_modules', '../../node_modules']) {
    const file = join(import.meta.dirname, folder, installedAs, 'package.json')
    let text: string
    try {
      text = readFileSync(file, 'utf8')
    } catch {
      continue
    }
    const { name, version } = JSON.parse(text) as Installed
    return { name, version }
  }
  throw new Error(`${installedAs} is not installed`)
}

/** One test for each client and feature. The bench is created before the first and disposed of after the last. */
export function tryOut<Bench extends AsyncDisposable, Feature extends string>(
  group: Group<Bench, Feature>,
  start: () => Promise<Bench>,
): void {
  let starting: Promise<Bench> | undefined
  after(async () => (await starting)?.[Symbol.asyncDispose]())
  describe(group.title, { concurrency: group.atOnce ? group.clients.length : 1 }, () => {
    for (const client of group.clients) {
      const { name, version } = installed(client)
      describe(`${name} ${version}`, { concurrency: 1 }, () => {
        for (const [feature, { title }] of Object.entries(group.features) as [Feature, { title: string }][]) {
          const { result, attempt } = client.tried[feature]
          test(`${title}: ${RESULTS[result]}`, async () => {
            starting ??= start()
            await attempt(await starting)
          })
        }
      })
    }
  })
}
