// Takes changes one at a time, in the order they came. For changes that read before they write and are rare enough not to
// need more: the configuration's.

export type InTurn = <T>(change: () => Promise<T>) => Promise<T>

export function createTurns(): InTurn {
  let last: Promise<unknown> = Promise.resolve()
  return (change) => {
    const mine = last.then(change)
    // The next one's turn comes whatever became of this one.
    last = mine.catch(() => undefined)
    return mine
  }
}
