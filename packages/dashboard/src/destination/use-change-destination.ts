// Changes a destination, and refreshes what pages show of it.

import { useChange } from '../api/queries.ts'

export function useChangeDestination() {
  return useChange(
    'PATCH /api/destinations/{id}',
    'GET /api/destinations',
    'GET /api/destinations/{id}',
    'GET /api/destinations/{id}/versions',
    'GET /api/destinations/{id}/health',
    'GET /api/destinations/health',
  )
}
