// The address on which the service listens, and why it cannot, in one sentence. A port that is in use is found before the store is opened: a first start that fails later would
// have created the admin token without showing it.

import { type AddressInfo, createServer } from 'node:net'
import type { Config } from '../config.ts'
import { StartProblem } from './open-store.ts'

type Place = Pick<Config, 'host' | 'port'>

/** Listens for a moment. Rejects with a StartProblem. */
export async function checkPort({ host, port }: Place): Promise<void> {
  if (port === 0) return
  const server = createServer((socket) => socket.destroy())
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen({ host, port }, resolve))
  } catch (error) {
    throw listenProblem(error as NodeJS.ErrnoException, { host, port })
  }
  await new Promise((resolve) => server.close(resolve))
}

export function listenProblem({ code, message }: NodeJS.ErrnoException, { host, port }: Place): StartProblem {
  const reasons: Record<string, string> = {
    EADDRINUSE: `Port ${port} on ${host} is already in use. Stop the program that listens there, or choose another port, for example with --port ${port === 65_535 ? 8080 : port + 1}.`,
    EACCES: `This user has no permission to listen on port ${port} of ${host}. Choose a port above 1023, for example with --port 8080.`,
    EADDRNOTAVAIL: `${host} is not an address of this machine. Set SWITCHYARD_HOST or --host to one of its addresses, or to 0.0.0.0 to listen on all of them.`,
    ENOTFOUND: `The host name ${host} cannot be resolved. Check SWITCHYARD_HOST or --host.`,
  }
  return new StartProblem(reasons[code ?? ''] ?? `Cannot listen on ${host}, port ${port}: ${message}`)
}

/** A service that listens on all addresses can be reached at localhost. */
export function urlOf({ address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://localhost:${port}`
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
