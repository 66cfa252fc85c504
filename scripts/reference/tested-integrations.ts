// Which actions of the integrations were seen to work, from the record that the tests write and check (e2e/integrations/seen).

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readCatalog } from '../../packages/integrations/src/catalog.ts'
import { code, heading, table } from './markdown.ts'
import { quoted } from './quoted-text.ts'

type Against = 'library' | 'published' | 'stand-in'
type SeenActions = Record<string, Partial<Record<Against, readonly string[]>>>

const RECORD = 'e2e/integrations/seen/seen-actions.json'

export async function testedIntegrationsPage(): Promise<string> {
  const seen = JSON.parse(readFileSync(join(import.meta.dirname, '..', '..', RECORD), 'utf8')) as SeenActions
  const entries = await readCatalog()
  const rows = entries.flatMap(({ slug, title, problem }) => {
    const actions = seen[slug]
    if (actions === undefined) return []
    const cell = (against: Against): string => (actions[against] ?? []).map(code).join(', ')
    const link = `[${quoted(title)}](../integrations/${slug}.md)${problem === null ? '' : ' (does not work: see its page)'}`
    return [[link, cell('library'), cell('published'), cell('stand-in')]]
  })
  const count = (against: Against): number => Object.values(seen).filter((actions) => actions[against] !== undefined).length
  return [
    heading('Tested integrations', RECORD),
    'The tests send events through the whole service to integrations, and record the requests. The table lists the actions whose requests were',
    `right, by what they were compared with: ${rows.length} of ${entries.length} integrations. \`npm run record:integrations\` runs these tests and writes the`,
    'record. Every other run fails if an action in the first two columns no longer makes these requests.',
    '',
    `- **Library** (${count('library')}): the service makes the same requests as Segment’s library when it is called directly.`,
    `- **Published facts** (${count('published')}): the requests are those that the tests of Segment’s definitions expect, for a destination that is created with`,
    '  the defaults of the form.',
    `- **Stand-in** (${count('stand-in')}): a server of the tests answered like the tool, with tokens, addresses for uploads and, for AWS, a check of the signature,`,
    '  and the delivery succeeded.',
    '',
    'None of this needs an account of a tool, so it does not show that the tool accepts the credentials or the data.',
    '',
    table(['Integration', 'Library', 'Published facts', 'Stand-in'], rows),
    '',
  ].join('\n')
}
