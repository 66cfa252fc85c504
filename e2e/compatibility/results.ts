// What was tried with the clients that others publish, and what came of it: the one shape that the tests run over and that
// docs/guide/compatibility.md is made from. A row is a feature, a result and the test that shows it, so that nothing can be
// listed without a test; a client has a row for every feature of its group, or the compiler says which one is missing.
//
//   export const NODE_CLIENTS: Group<NodeBench, keyof typeof FEATURES> = {
//     title: 'Server clients', testFile: 'node.test.ts', features: FEATURES, clients: [SEGMENT_3, …] }
//   in node.test.ts       tryOut(NODE_CLIENTS, async () => bench)            one test per client and feature
//   in page.ts            GROUPS = { NODE_CLIENTS, … }                       in the page, in this order
//   node e2e/compatibility/page.ts --write                                   writes the page; page.test.ts holds it
//
// A row's `attempt` shows its result as it stands: of what does not work, that it does not, and what happens instead. So when a
// new version of a client does better, a test fails and the page follows.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

/** In the page's words. */
export const RESULTS = {
  works: 'works',
  differs: 'works, differs',
  fails: 'does not work',
} as const

export type Result = keyof typeof RESULTS

/** `note` is one or more whole sentences of Markdown in one line; what differs or fails cannot be without one. */
export type Row<Bench> = {
  /** Shows the result, through to the webhook where something is sent. */
  attempt: (bench: Bench) => Promise<void>
} & ({ result: 'works'; note?: string } | { result: 'differs' | 'fails'; note: string })

export interface Client<Bench, Feature extends string> {
  /** The name in e2e/package.json, which is an alias where several versions are installed. Name and version are read from there. */
  installedAs: string
  /** One sentence: which option has the service's address. Markdown. */
  host: string
  /** The lines that a reader copies. The tests make the client in the same way. */
  setup: string
  /** A sentence, where something of the client was left out. */
  notTried?: string
  tried: Record<Feature, Row<Bench>>
}

export interface Group<Bench, Feature extends string> {
  title: string
  /** One paragraph of Markdown: how it was tried. */
  introduction: string
  /** In this folder; calls tryOut with this group. */
  testFile: string
  /** The clients are tried at the same time, each feature by feature: where they mostly wait. */
  atOnce?: true
  /** What is tried, in the order of the page, and how: a title for the table and a sentence of Markdown. */
  features: Record<Feature, { title: string; how: string }>
  clients: readonly Client<Bench, Feature>[]
}

/** For what looks at groups and runs none of them. */
// oxlint-disable-next-line typescript/no-explicit-any
export type AnyGroup = Group<any, string>

export interface Installed {
  name: string
  version: string
}

/** What the registry gave, which is what was tried. */
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

/** One test for each client and feature. The bench is made before the first, and disposed of after the last. */
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
