// Runs asynchronous tasks one at a time, in the order in which they were added. It is used for changes that read before they
// write and are rare, such as changes of the configuration.

export type RunInTurn = <T>(task: () => Promise<T>) => Promise<T>

export function createSerialQueue(): RunInTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const result = last.then(task)
    // The next task runs even if this one fails.
    last = result.catch(() => undefined)
    return result
  }
}
