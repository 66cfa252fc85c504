// A timeout for a promise.

/** Resolves with what `awaited` resolves with, or with `late` if that takes longer than the limit. The work itself is not cancelled. */
export async function withTimeout<T, L = undefined>(limitMs: number, awaited: Promise<T>, late?: L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<L>((resolve) => {
    timer = setTimeout(() => resolve(late as L), limitMs)
  })
  try {
    return await Promise.race([awaited, limit])
  } finally {
    clearTimeout(timer)
  }
}
