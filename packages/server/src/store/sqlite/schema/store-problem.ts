/** A problem with the store that the operator can solve. The message says how. */
export class StoreProblem extends Error {
  override name = 'StoreProblem'
}
