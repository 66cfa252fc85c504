// The machine on which a published result was measured.

import { availableParallelism, cpus, totalmem } from 'node:os'

export function machineName(): string {
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  const system = `${process.platform} ${process.arch}`
  return [cpus()[0]?.model.trim() ?? 'unknown', `${availableParallelism()} cores`, memory, system, `Node.js ${process.version}`].join(', ')
}
