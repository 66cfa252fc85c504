// A build that was made beside the one in use takes its place when it is whole, also where several are made at once.

import { existsSync, renameSync, rmSync } from 'node:fs'

export function putInPlace(fresh: string, place: string): void {
  const old = `${fresh}-before`
  for (let attempt = 1; ; attempt++) {
    try {
      if (existsSync(place)) renameSync(place, old)
      renameSync(fresh, place)
      break
    } catch (error) {
      // Another build was quicker between the two steps.
      if (attempt === 5) throw error
    } finally {
      rmSync(old, { recursive: true, force: true })
    }
  }
}
