// Replaces a build in use with a complete new one, even if several builds finish at once.

import { existsSync, renameSync, rmSync } from 'node:fs'

export function putInPlace(fresh: string, place: string): void {
  const old = `${fresh}-before`
  for (let attempt = 1; ; attempt++) {
    try {
      if (existsSync(place)) renameSync(place, old)
      renameSync(fresh, place)
      break
    } catch (error) {
      // Another build was faster.
      if (attempt === 5) throw error
    } finally {
      rmSync(old, { recursive: true, force: true })
    }
  }
}
