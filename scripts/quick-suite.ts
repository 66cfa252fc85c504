// The quick suite, which `npm test` runs: everything that finds most mistakes within minutes. A file is in it or not by its CPU time (`node
// scripts/tests.ts --all --slowest` prints it) and by what it would find that no cheaper file finds. `npm run test:all` runs the rest, too.

/** The main journeys through the whole system. All other files of e2e/ and examples/ are in the rest. */
const JOURNEYS: readonly string[] = []
/** Files beside the code that are too expensive for the quick suite. All others of packages/ and scripts/ are in it. */
const EXPENSIVE: readonly string[] = []

export function isQuick(file: string): boolean {
  return /^(e2e|examples)\//.test(file) ? JOURNEYS.includes(file) : !EXPENSIVE.includes(file)
}

/** For the check that each of them exists. */
export const LISTED = [...JOURNEYS, ...EXPENSIVE]
