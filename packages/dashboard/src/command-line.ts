// The command line as people run it for this service: the path of the program where the service is installed, and the address of the service
// if it is not the one that the command line uses by default.

import { useApi } from './api/queries.ts'

const USUAL_ORIGINS = new Set(['http://127.0.0.1:8080', 'http://localhost:8080'])

export function commandFor(command: string, origin: string): string {
  return USUAL_ORIGINS.has(origin) ? command : `SWITCHYARD_URL=${origin} ${command}`
}

export function useCommand(): string {
  const { data } = useApi('GET /api/installation', {})
  return commandFor(data?.command ?? 'switchyard', window.location.origin)
}
