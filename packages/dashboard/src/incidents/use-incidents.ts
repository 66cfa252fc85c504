// The incidents that are not closed, as all pages that show some of them ask for them: one query for all.

import { useApi } from '../api/queries.ts'

export function useActiveIncidents(everyMs = 10_000) {
  return useApi('GET /api/incidents', { query: { state: 'active', limit: 200 }, everyMs })
}
