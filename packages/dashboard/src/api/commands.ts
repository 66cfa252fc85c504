// Commands of the command line in texts. The service names them as `switchyard COMMAND`; readers see what they can run.

const USUAL_ORIGINS = new Set(['http://127.0.0.1:8080', 'http://localhost:8080'])
const NAMED = /(`|\brun:? )switchyard(?= [a-z])/g

/** `command` is the program as the service knows it. The address is added if it is not the one that the command line uses by default. */
export function commandFor(command: string, origin: string): string {
  return USUAL_ORIGINS.has(origin) ? command : `SWITCHYARD_URL=${origin} ${command}`
}

export function namesCommand(text: string): boolean {
  return text.search(NAMED) !== -1
}

export function withCommand(text: string, command: string): string {
  return text.replaceAll(NAMED, (_, before: string) => before + command)
}
