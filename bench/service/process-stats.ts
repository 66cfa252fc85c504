// What the kernel says of a process: processor time and memory, from /proc. Linux only, as the benchmark is.

import { readdirSync, readFileSync } from 'node:fs'

/** The kernel counts in these; USER_HZ is 100 on every Linux that Node.js runs on. */
const TICK_US = 10_000

/** Processor time of all threads of these processes so far, with that of children they have waited for. */
export function cpuUs(pids: number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = statOf(pid)
    const ticks = [11, 12, 13, 14].map((field) => Number(fields[field] ?? 0))
    return sum + ticks.reduce((a, b) => a + b, 0) * TICK_US
  }, 0)
}

export function rssBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS')
}

export function peakRssBytes(pid: number): number {
  return statusBytes(pid, 'VmHWM')
}

/** Processor time of the whole machine since it started, with what its host took. */
export function busyUs(): number {
  const [, user, nice, system, , , irq, softirq, steal] = (read('/proc/stat').split('\n')[0] ?? '').split(/\s+/).map(Number)
  return [user, nice, system, irq, softirq, steal].reduce<number>((sum, ticks) => sum + (ticks ?? 0), 0) * TICK_US
}

export function descendantsOf(ancestor: number): number[] {
  const parents = new Map(
    readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map((name) => [Number(name), Number(statOf(Number(name))[1])]),
  )
  const found: number[] = []
  for (let generation = [ancestor]; generation.length > 0; found.push(...generation)) {
    generation = [...parents].flatMap(([pid, parent]) => (generation.includes(parent) ? [pid] : []))
  }
  return found
}

/** Fields from the third, the state, on: the second is a name that may hold spaces. Nothing for a process that is gone. */
function statOf(pid: number): string[] {
  const text = read(`/proc/${pid}/stat`)
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

function statusBytes(pid: number, name: string): number {
  return Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(read(`/proc/${pid}/status`))?.[1] ?? 0) * 1_024
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
