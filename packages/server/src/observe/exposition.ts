// Writes the Prometheus text format in chunks and yields to the event loop between them: a thousand destinations can have about
// seventy thousand lines, and requests must not wait for all of them. prom-client writes everything at once.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Sample } from './histogram.ts'

export interface Exposed {
  name: string
  help: string
  type: string
  samples: Iterable<Sample>
}

const LINES_PER_TURN = 2_000

export async function exposition(metrics: Iterable<Exposed>): Promise<string> {
  const pieces: string[] = []
  let piece = ''
  let lines = 0
  for (const { name, help, type, samples } of metrics) {
    piece += `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}\n`
    for (const sample of samples) {
      piece += lineOf(name, sample)
      if (++lines % LINES_PER_TURN > 0) continue
      pieces.push(piece)
      piece = ''
      await nextTurn()
    }
    piece += '\n'
  }
  return pieces.join('') + piece
}

function lineOf(name: string, { metricName = name, labels, value }: Sample): string {
  let text = ''
  for (const label in labels) text += `${text === '' ? '' : ','}${label}="${escapedLabel(String(labels[label]))}"`
  return text === '' ? `${metricName} ${value}\n` : `${metricName}{${text}} ${value}\n`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapedLabel(text: string): string {
  return /[\\"\n]/.test(text) ? escaped(text).replaceAll('"', '\\"') : text
}
