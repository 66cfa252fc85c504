// What keeps a file from being the store, in words.

/** What a person who starts the service can do something about. */
export class StoreProblem extends Error {
  override name = 'StoreProblem'
}
