// Each mutant must still apply to the source of the service. With SWITCHYARD_LONG_TESTS=1, a round of faults must catch each of them, which takes about
// 15 minutes.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { IS_LONG } from '../../system/long-tests.ts'
import { MUTANTS } from './mutants.ts'
import { changesOf, mutated, urlOf } from './mutated-source.ts'
import { describeVerdict, faultOf, runMutant } from './run-mutants.ts'

test('every mutant changes the source of the service, and names a row of the fault ledger', () => {
  for (const mutant of MUTANTS) {
    for (const change of changesOf(mutant, import.meta.url)) {
      const source = readFileSync(new URL(urlOf(change)), 'utf8')
      assert.notEqual(mutated(change, source), source, mutant.name)
    }
    assert.ok(faultOf(mutant).stores.includes(mutant.store), mutant.name)
  }
  assert.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length)
})

test('a mutant whose text is not in the source is an error', () => {
  const mutant = { ...(MUTANTS[0] as (typeof MUTANTS)[number]), changes: [['no such text', '']] as const }
  assert.throws(() => mutated(mutant, 'text'), /"no such text" must be in .* once, but is there 0 times/)
})

for (const mutant of MUTANTS) {
  test(`the audit catches ${mutant.name}: ${mutant.breaks}`, { skip: !IS_LONG }, async (t) => {
    const verdict = await runMutant(mutant)
    t.diagnostic(describeVerdict(verdict))
    assert.ok(verdict.isCaught, describeVerdict(verdict))
  })
}
