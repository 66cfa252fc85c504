// Locks that everybody would have to wait behind are asked for with a short timeout and, if they are not to be had, again
// later: whoever reads for long, such as a backup, must not stop what is accepted meanwhile.

const LOCK_NOT_AVAILABLE = '55P03'

export function isLockTimeout(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code === LOCK_NOT_AVAILABLE || cause?.code === LOCK_NOT_AVAILABLE
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}
