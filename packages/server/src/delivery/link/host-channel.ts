// The connection to a host, which is a sender in a process of its own. The process sees nothing of the service: no environment variables, no files
// except code, no other processes. If this process ends, the hosts do too.

import { spawn } from 'node:child_process'
import { constants, setPriority } from 'node:os'
import type { Duplex } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { type LinkEvents, PacketLink } from './link.ts'
import type { Packet } from './packet.ts'
import { readMessages, writeMessage } from './packet-pipe.ts'
import type { ThreadOptions } from './thread-channel.ts'

/** Where all connections of a host go, if the network allows no others. */
export interface Gateway {
  host: string
  port: number
}

export interface HostOptions extends Pick<ThreadOptions, 'guard' | 'closeGraceMs'> {
  /** All connections go there. Null: to the addresses that names resolve to. */
  gateway: Gateway | null
  /** A file with certificate authorities in PEM, to trust in addition to the usual ones. */
  ca: string | null
  /** The folder of the integrations package, with a slash at the end. */
  packageUrl: string
  /** The folders with code, which are all that a host can read. */
  codeFolders: readonly string[]
  /** Only of a loader: the folders with data, which it can read and write. */
  dataFolders?: readonly string[]
  /** Only of a loader: a folder for files that are needed for a few minutes. */
  scratchFolder?: string
}

export interface HostEvents extends LinkEvents {
  /** A piece of what the process has printed. */
  printed: (stream: 'stdout' | 'stderr', chunk: string) => void
}

/** What a host sends: a packet, and its memory if the packet answers a ping. */
export type HostPacket = Packet & { rssBytes: number | null }

/** A host that uses more is replaced when it has finished its work. */
export const MAX_RSS_BYTES = 768 * 1024 * 1024
/** Beyond this, Node.js ends the process. */
const MAX_HEAP_MB = 512
const MAX_HEAP_FLAG = `--max-old-space-size=${MAX_HEAP_MB}`
/**
 * A loader makes many short-lived rows. With the defaults of Node.js, and one arena of the allocator per thread, it would use half as much memory again,
 * most of it garbage (docs/decisions/0141-columns-of-parquet-files.md).
 */
export const LOADER = {
  flags: [MAX_HEAP_FLAG, '--max-semi-space-size=16', '--heap-growing-percent=20'],
  env: { MALLOC_ARENA_MAX: '1' },
}
/** The longest message of a host: the outcomes of a batch, with the requests that were made for it. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024
const PROGRAM = new URL('../host/host-process.ts', import.meta.url)
const PRELOAD = new URL('../host/preload.ts', import.meta.url)

export function openHost(
  name: string,
  options: HostOptions,
  events: HostEvents,
  program = PROGRAM,
  maxRssBytes = MAX_RSS_BYTES,
): PacketLink {
  const { codeFolders, ca, scratchFolder } = options
  const isLoader = scratchFolder !== undefined
  const dataFolders = [...(options.dataFolders ?? []), ...(isLoader ? [scratchFolder] : [])]
  const link: PacketLink = new PacketLink(
    ({ packet, ended }) => {
      const args = [
        '--permission',
        ...[...codeFolders, ...dataFolders, ...(ca === null ? [] : [ca])].map((path) => `--allow-fs-read=${path}`),
        ...dataFolders.map((path) => `--allow-fs-write=${path}`),
        ...(isLoader ? LOADER.flags : [MAX_HEAP_FLAG]),
        `--title=${name}`,
        '--disable-sigusr1',
        // SQLite opens and writes any file: the permission model does not check what it opens.
        ...(isLoader ? [] : ['--no-experimental-sqlite']),
        '--disable-warning=ExperimentalWarning',
        `--import=${PRELOAD.href}`,
        fileURLToPath(program),
        JSON.stringify(options),
      ]
      const child = spawn(process.execPath, args, { env: isLoader ? LOADER.env : {}, stdio: ['ignore', 'pipe', 'pipe', 'pipe'] })
      if (isLoader) putLast(child.pid)
      const pipe = child.stdio[3] as Duplex
      for (const name of ['stdout', 'stderr'] as const) {
        child[name]?.setEncoding('utf8').on('data', (chunk: string) => events.printed(name, chunk))
      }
      // Code in the host can send anything.
      readMessages(
        pipe,
        MAX_MESSAGE_BYTES,
        (message) => {
          const { rssBytes, ...received } = checkedPacket(message)
          if (rssBytes !== null) link.health.isSpent = rssBytes > maxRssBytes
          packet(received)
        },
        (cause) => link.health.kill(new Error(`${name} sent a packet that cannot be read`, { cause })),
      )
      // Means that the process has ended, which is reported anyway.
      pipe.on('error', () => undefined)
      const onEnd = (why: string): void => ended(new Error(`${name} ended unexpectedly, ${why}`))
      child.on('error', ({ message }) => onEnd(`because of an error: ${message}`))
      // After the last packet and the last output, unlike the exit event.
      child.on('close', (code, signal) => onEnd(signal === null ? `with code ${code}` : `by the signal ${signal}`))
      const send = (message: Packet | 'drain'): void => {
        if (pipe.writable) writeMessage(pipe, message)
      }
      return {
        post: ({ packet: sent, usedBytes }) => send(trimmed(sent, usedBytes)),
        drain: () => send('drain'),
        kill: () => void child.kill('SIGKILL'),
      }
    },
    events,
    options.closeGraceMs,
  )
  return link
}

/** A load can wait: on a busy machine, messages and requests come first. */
function putLast(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // The process has ended already, which is reported.
  }
}

/** A packet for another process: buffers are copied, so it has no more than is used, and nothing is returned. */
export function trimmed({ buffer, numbers, values }: Packet, usedBytes: number): Packet {
  return { buffer: buffer.slice(0, usedBytes), numbers, values, spare: [] }
}

/** Throws if it is no packet. A host returns no buffers. */
function checkedPacket(message: unknown): HostPacket {
  const { buffer, numbers, values, rssBytes } = message as HostPacket
  const isPacket =
    buffer instanceof ArrayBuffer &&
    Number.isSafeInteger(numbers) &&
    numbers >= 0 &&
    Array.isArray(values) &&
    (rssBytes === null || typeof rssBytes === 'number')
  if (!isPacket) throw new TypeError('not a packet')
  return { buffer, numbers, values, spare: [], rssBytes }
}
