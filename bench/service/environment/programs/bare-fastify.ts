// A Fastify server that only parses the body: the cost of HTTP and JSON alone.

import Fastify from 'fastify'

const app = Fastify()
app.post('/v1/batch', (_request, reply) => reply.send({ success: true }))
const address = await app.listen({ port: 0, host: '127.0.0.1' })
process.send?.({ kind: 'listening', port: Number(new URL(address).port) })
process.on('disconnect', () => process.exit())
