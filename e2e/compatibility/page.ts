// Makes docs/guide/compatibility.md from what the tests run over and from the versions that are installed:
// `node e2e/compatibility/page.ts --write`. Without --write it prints the page. page.test.ts fails while the file differs.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { code, table } from '../../scripts/reference/markdown.ts'
import { BROWSER_CLIENTS } from './browser-clients.ts'
import { NODE_CLIENTS } from './node-clients.ts'
import { type AnyGroup, installed, RESULTS, type Result } from './results.ts'

/** By the names that their test files use. */
export const GROUPS: Readonly<Record<string, AnyGroup>> = { NODE_CLIENTS, BROWSER_CLIENTS }

const FILE = join(import.meta.dirname, '..', '..', 'docs', 'guide', 'compatibility.md')

export function writtenPage(): string {
  return readFileSync(FILE, 'utf8')
}

export function compatibilityPage(): string {
  const groups = Object.values(GROUPS)
  return `${[
    '# Clients of others',
    '<!-- Written by e2e/compatibility/page.ts from the data that its tests run over. Change that, then run: node scripts/run.mjs e2e/compatibility/page.ts --write -->',
    'Programs that use a public client of Segment or RudderStack send to Switchyard when the address in the client’s settings is changed. This page says what was tried with which version, and what came of it. It is written from the data that the tests run over: every cell of its tables has a test that shows it, and the versions are those that the tests ran with.',
    ['```sh', 'node scripts/run.mjs scripts/tests.ts e2e/compatibility', '```'].join('\n'),
    `**${RESULTS.works}**: as the client’s users know it. **${RESULTS.differs}**: there is something to know, which the client’s section says. **${RESULTS.fails}**: the section says what happens instead.`,
    ...groups.map(glance),
    ANSWERS,
    OTHER_LANGUAGES,
    ...groups.map(section),
  ].join('\n\n')}\n`
}

function glance({ title, features, clients }: AnyGroup): string {
  const columns = ['', ...clients.map((client) => nameOf(client, code))]
  const rows = Object.entries(features).map(([feature, { title: tried }]) =>
    [tried].concat(clients.map(({ tried: rowsOf }) => RESULTS[(rowsOf[feature] as { result: Result }).result])),
  )
  return `## ${title}, at a glance\n\n${table(columns, rows)}`
}

function section({ title, introduction, features, clients }: AnyGroup): string {
  const how = table(
    ['Tried', 'How'],
    Object.values(features).map((feature) => [feature.title, feature.how]),
  )
  return [`## ${title}`, introduction, how, ...clients.map((client) => clientSection(client, features))].join('\n\n')
}

function clientSection(client: AnyGroup['clients'][number], features: AnyGroup['features']): string {
  const notes = Object.entries(features).flatMap(([feature, { title }]) => {
    const row = client.tried[feature]
    return row?.note === undefined ? [] : [[title, RESULTS[row.result], row.note]]
  })
  const lines = ['```js', client.setup, '```'].join('\n')
  const parts = [`### ${nameOf(client)}`, client.host, lines]
  if (notes.length > 0) parts.push(table(['Tried', 'Result', ''], notes))
  if (client.notTried !== undefined) parts.push(`Not tried: ${client.notTried}`)
  return parts.join('\n\n')
}

function nameOf(client: { installedAs: string }, asName: (text: string) => string = (text) => text): string {
  const { name, version } = installed(client)
  return `${asName(name)} ${version}`
}

/** Not what one client shows, but what all meet: held by packages/server/src/ingest/ingest.test.ts. */
const ANSWERS = `## What is answered otherwise than by Segment

Segment [documents](https://www.twilio.com/docs/segment/connections/sources/catalog/libraries/server/http-api) the answer 200 for every request but those that are too large or not JSON
(read in November 2026). A wrong key or a message without a user can look like success there. Switchyard says what it did not take:

| | Answer | |
|---|---|---|
| A write key that is not known | 401 \`invalid_write_key\` | \`SWITCHYARD_LENIENT_KEYS=1\` gives 200 and drops the messages, for programs that must not hear of it |
| A source that is disabled | 403 \`source_disabled\` | |
| Bad messages among good ones | 200, with \`accepted\` and \`rejected\`: the index, \`messageId\` and code of each | The good ones are stored. \`@switchyard/node\` tells each message’s callback; the clients on this page do not read it |
| A batch without a good message | 400 with the code of the first | |
| The store cannot take messages now | 503 with \`Retry-After\` | Never a 200 for what could be lost: clients send it again |

The codes are in the [reference of errors](../reference/errors.md).`

/** Tested in packages/server/src/ingest/paths.test.ts and packages/server/src/routing/plan.test.ts. */
const OTHER_LANGUAGES = `## Clients in other languages

The tests do not run these clients. They send requests in the form that the source code of each client produces:

| | Accepted | Sent by |
|---|---|---|
| Trailing or doubled slashes in a tracking path | \`/v1/import/\`, \`//v1/batch\`, \`/v1//b\`: the same as without | \`analytics-java\`; every client whose host setting ends in a slash |
| Content types | any, if the body is JSON: \`application/json\` with or without a charset, \`text/plain\` | \`text/plain\`: \`analytics-kotlin\`, \`Analytics-CSharp\`, browsers |
| Bodies | with a length or chunked, plain or gzip, with or without \`Expect: 100-continue\` | gzip: \`analytics-kotlin\`, \`Analytics-CSharp\`, and as an option Java, Python and PHP |
| The write key | as the user of Basic authentication, or as \`writeKey\` in the body | in the body: \`analytics-kotlin\`, \`Analytics-CSharp\`, \`analytics-swift\` |
| \`All\` in \`integrations\` | in any capitalization; if it is there twice, the first one counts. Destination names are case-sensitive | \`all\`: \`DisableAll()\` of \`analytics-go\` |`

if (import.meta.main) {
  if (process.argv.includes('--write')) writeFileSync(FILE, compatibilityPage())
  else process.stdout.write(compatibilityPage())
}
