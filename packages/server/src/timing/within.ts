// Every wait has an end.

/** What is awaited; or `late`, when it has not come in time. What it is goes on. */
export async function within<T, L = undefined>(limitMs: number, awaited: Promise<T>, late?: L): Promise<T | L> {
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
