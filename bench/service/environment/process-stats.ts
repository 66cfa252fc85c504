// CPU time and memory of processes, from /proc. Linux only, like the benchmark.

import { readdirSync, readFileSync } from 'node:fs'

/** The length of the kernel's clock ticks; USER_HZ is 100 on every Linux that Node.js runs on. */
const TICK_US = 10_000

/** CPU time of all threads of these processes so far, including children that they have waited for. */
export function cpuUs(pids: number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = statOf(pid)
    const ticks = [11, 12, 13, 14].map((field) => Number(fields[field] ?? 0))
    return sum + ticks.reduce((a, b) => a + b, 0) * TICK_US
  }, 0)
}

/** CPU time of a process so far by the name of the thread. Threads that have ended are missing. */
export function threadCpuUs(pid: number): Map<string, number> {
  const used = new Map<string, number>()
  for (const id of threadIds(pid)) {
    const text = read(`/proc/${pid}/task/${id}/stat`)
    const name = text.slice(text.indexOf('(') + 1, text.lastIndexOf(')'))
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    used.set(name, (used.get(name) ?? 0) + (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) * TICK_US)
  }
  return used
}

function threadIds(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

export function rssBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS')
}

export function peakRssBytes(pid: number): number {
  return statusBytes(pid, 'VmHWM')
}

/** CPU time of the whole machine since it started, including time stolen by its host. */
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

/** Returns the fields from the third (the state) on, because the second is a name that may contain spaces. Empty for a process that has ended. */
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
