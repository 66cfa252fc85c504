// The command line as people run it for this service: the path of the program where the service is installed, and the address of the service
// if it is not the one that the command line uses by default.

import { commandFor, withCommand } from '../api/commands.ts'
import { useApi } from '../api/queries.ts'

export function useCommand(): string {
  const { data } = useApi('GET /api/installation', {})
  return commandFor(data?.command ?? 'switchyard', window.location.origin)
}

/** Replaces the commands in a text of the service. Errors of the API have them replaced already. */
export function useRunnable(): (text: string) => string {
  const command = useCommand()
  return (text) => withCommand(text, command)
}
