// The process of direct-calls.ts with a gateway of its own: calls the library, and returns the requests that it made.
//
//   await using library = await startLibrary(answer)
//   const { results, requests } = await library.call({ directory: 'slack', direct, subscriptions, events })

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import type { DirectCall, DirectResult } from './direct-calls.ts'
import { type Gateway, type GatewayRequest, startGateway } from './gateway/recording-gateway.ts'

export interface LibraryCall {
  /** Null if there were none in time, or the process ended. */
  results: DirectResult | null
  requests: GatewayRequest[]
  /** Connections that spoke neither HTTP nor TLS. */
  rawConnections: number
}

export interface Library extends AsyncDisposable {
  gateway: Gateway
  call(call: DirectCall): Promise<LibraryCall>
}

/** Loading an integration takes seconds on a busy machine. */
const CALL_TIMEOUT_MS = 20_000

/** One call at a time. */
export async function startLibrary(answer?: Gateway['answer']): Promise<Library> {
  const gateway = await startGateway(answer)
  const start = async (): Promise<ChildProcess> => {
    const { PATH = '' } = process.env
    const started = fork(join(import.meta.dirname, 'direct-calls.ts'), {
      env: { PATH, GATEWAY_PORT: String(gateway.port), NODE_EXTRA_CA_CERTS: gateway.authorityFile },
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    await once(started, 'message')
    return started
  }
  let child = await start()
  return {
    gateway,
    async call(call) {
      const [firstRequest, firstRaw] = [gateway.arrivals.length, gateway.raw.length]
      child.send(call)
      const result = await resultOf(child)
      if (result === null) {
        child.kill('SIGKILL')
        child = await start()
      }
      return {
        results: result,
        requests: gateway.requests().slice(firstRequest),
        rawConnections: gateway.raw.length - firstRaw,
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await gateway[Symbol.asyncDispose]()
    },
  }
}

function resultOf(child: ChildProcess): Promise<DirectResult | null> {
  return new Promise((resolve) => {
    const end = (result: DirectResult | null): void => {
      clearTimeout(tooLate)
      child.removeAllListeners()
      resolve(result)
    }
    const tooLate = setTimeout(end, CALL_TIMEOUT_MS, null)
    child.once('message', (result) => end(result as DirectResult))
    child.once('exit', () => end(null))
  })
}
