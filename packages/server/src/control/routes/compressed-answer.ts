// Compresses large JSON responses of routes that allow it (`compressed` in route.ts).

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { acceptsEncoding } from '../../http/built-files.ts'

/** Smaller responses fit into a few packets. */
const MIN_BYTES = 16 * 1024
/** Most of the gain for a fraction of the time of the usual level. */
const LEVEL = 3
const compress = promisify(gzip)

export async function sendCompressed(request: FastifyRequest, reply: FastifyReply, body: unknown): Promise<FastifyReply> {
  reply.header('vary', 'accept-encoding').type('application/json; charset=utf-8')
  const text = JSON.stringify(body)
  if (text.length < MIN_BYTES || !acceptsEncoding(request.headers['accept-encoding'] ?? '', 'gzip')) return reply.send(text)
  // In a thread of the pool of Node.js.
  return reply.header('content-encoding', 'gzip').send(await compress(text, { level: LEVEL }))
}
