// A lock for which every other statement would have to queue is requested with a short timeout and retried later. Otherwise a long read,
// such as a backup, would block accepting while the lock request waits.

const LOCK_NOT_AVAILABLE = '55P03'

export function isLockTimeout(error: unknown): boolean {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code === LOCK_NOT_AVAILABLE || cause?.code === LOCK_NOT_AVAILABLE
}
