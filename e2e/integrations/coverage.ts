// How many integrations can work, and how many of them are covered: for each of their presets, an event goes through the whole service, and the
// requests that arrive are those that the library makes when it is called directly. `npm run coverage:integrations` prints it, and lists the
// integrations that do not work or are not covered, with the reason. `--batches` also sends three events at once to actions that take several. With words as arguments: only integrations whose slug
// contains one of them, with the differences in full.

import { readFileSync } from 'node:fs'
import { readCatalog } from '@switchyard/integrations/catalog'
import { batchCase, type IntegrationCase, integrationCases, OWN_TESTS } from './cases.ts'
import { type Comparison, compareRequests } from './compare-requests.ts'
import { countsOf } from './seen/counts.ts'

const words = process.argv.slice(2).filter((word) => word !== '--batches')
const all = await integrationCases()
const isChosen = ({ slug }: { slug: string }): boolean => words.length === 0 || words.some((word) => slug.includes(word))
const entries = (await readCatalog()).filter(isChosen)
const working = entries.filter(({ problem }) => problem === null)
const counts = countsOf(entries)
const tested = working.filter(({ slug }) => Object.hasOwn(OWN_TESTS, slug))
for (const { slug } of tested)
  if (!readFileSync(new URL(OWN_TESTS[slug] as string, import.meta.url), 'utf8').includes(`'${slug}'`))
    throw new Error(`${OWN_TESTS[slug]} does not test ${slug}`)
const cases = all.filter(isChosen)
const isWorking = ({ slug }: IntegrationCase): boolean => working.some((entry) => entry.slug === slug)
const comparisons = new Map((await compareRequests(cases)).map((comparison) => [comparison.slug, comparison]))

const GROUPS: readonly [title: string, has: (integration: IntegrationCase) => boolean][] = [
  ['With presets, without OAuth', ({ from, auth }) => from === 'presets' && !auth.startsWith('oauth')],
  [
    'Without presets and OAuth: their actions with the default mappings',
    ({ from, auth }) => from === 'actions' && !auth.startsWith('oauth'),
  ],
  ['With OAuth, with an access token that works', ({ auth }) => auth === 'oauth2'],
]

let coveredCount = 0
let differingCount = 0
const lines: string[] = []
for (const [title, has] of GROUPS) {
  const group = cases.filter((integration) => has(integration) && isWorking(integration))
  const missing = group.flatMap((integration) => {
    const reason = reasonOf(comparisons.get(integration.slug))
    return reason === null ? [] : [`  ${integration.slug}: ${reason}`]
  })
  coveredCount += group.length - missing.length
  lines.push(
    '',
    `${title}: ${group.length - missing.length} of ${group.length} covered${missing.length === 0 ? '' : '. Not covered:'}`,
    ...missing,
  )
}
const requestCount = [...comparisons.values()].reduce((sum, comparison) => sum + comparison.requestCount, 0)
console.log(
  `${counts.working} of ${counts.all} integrations can work: ${counts.ordinary} with ordinary messages, and ${counts.ofAudiences} if messages say who is in an audience.`,
)
console.log(
  `${coveredCount + tested.length} of these ${working.length} are covered: ${coveredCount} make the requests of the library (${requestCount} compared), and ${tested.length} have tests of their own.`,
)
console.log(lines.join('\n'))
console.log(`\nDo not work: ${entries.length - working.length}`)
for (const { slug, problem } of entries) if (problem !== null) console.log(`  ${slug}: ${problem}`)
for (const integration of cases) if (!isWorking(integration)) reasonOf(comparisons.get(integration.slug))
const unknown = reasonOf(comparisons.get('unknown') ?? { slug: '', notCovered: null, differences: [], requestCount: 0, actions: [] })
if (unknown !== null) console.log(`\nRequests that the library did not make for any of them: ${unknown}`)
if (differingCount > 0) process.exitCode = 1
if (process.argv.includes('--batches')) await reportBatches()

/**
 * The library's onBatch does not look at `enable_batching`, `batch_keys` and `batch_size`, which Segment applies before it calls an action and the
 * service as well. So differences are expected here, and are no failure.
 */
async function reportBatches(): Promise<void> {
  const inBatches = await compareRequests(cases.flatMap(batchCase), { copies: 3 })
  const notInBatches = inBatches.flatMap((comparison) => {
    const reason = reasonOf(comparison)
    return reason === null ? [] : [`  ${comparison.slug}: ${reason}`]
  })
  console.log(
    `\nIn batches of three: ${inBatches.length - notInBatches.length} of ${inBatches.length} covered that have actions for it. Not covered:`,
  )
  console.log(notInBatches.join('\n'))
}

function reasonOf(comparison: Comparison | undefined): string | null {
  if (comparison === undefined) return 'needs an OAuth app that only Segment has'
  const { notCovered, differences } = comparison
  if (differences.length > 0) {
    differingCount++
    return `differs from the library\n${differences.map((text) => `    ${words.length === 0 ? text.split('\n', 1)[0] : text.replaceAll('\n', '\n      ')}`).join('\n')}`
  }
  return notCovered
}
