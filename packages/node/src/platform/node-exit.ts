// The process's end. A process that runs out of work sends what is queued before it leaves; a signal, where asked for,
// drains first; and an exit that leaves messages behind says so. One listener of each kind for all clients, so that a
// hundred clients do not add a hundred listeners.

import type { ExitTarget } from './platform.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

const kept = new Set<ExitTarget>()
let watching = false

export const exitWatch = {
  add(target: ExitTarget): void {
    kept.add(target)
    if (watching) return
    watching = true
    process.on('beforeExit', sendAll)
    process.on('exit', sayWhatIsLost)
  },
  delete(target: ExitTarget): void {
    kept.delete(target)
  },
}

// The flush timer does not hold the process, so this comes as soon as there is nothing else to do; the requests it
// starts hold the process until they are answered, and then it comes again.
function sendAll(): void {
  for (const target of kept) target.sendNow()
}

function sayWhatIsLost(): void {
  let lost = 0
  for (const target of kept) lost += target.unsafeMessages
  if (lost === 0) return
  // Warnings are printed asynchronously, and there is no later any more.
  process.stderr.write(
    `(switchyard) The process exited with ${lost} message${lost === 1 ? '' : 's'} not delivered. Await closeAndFlush() before process.exit(), or set spool.\n`,
  )
}

const signalled = new Set<ExitTarget>()
let draining = false
/** The application handles the signal itself, and so ends the process itself. */
let leftToApplication = false

export function signalWatch(target: ExitTarget): () => void {
  // First of all listeners, to see those that listen only once before they are gone.
  if (signalled.size === 0) for (const signal of SIGNALS) process.prependListener(signal, drain)
  signalled.add(target)
  return () => {
    signalled.delete(target)
    if (signalled.size === 0) for (const signal of SIGNALS) process.off(signal, drain)
  }
}

function drain(signal: NodeJS.Signals): void {
  // A second signal is a person losing patience.
  if (draining) return leftToApplication ? undefined : leave(signal)
  draining = true
  leftToApplication = process.listenerCount(signal) > 1
  // An application with its own way of ending still makes calls on that way: its client stays open.
  void Promise.allSettled([...signalled].map((target) => target.shutDown(leftToApplication))).then(() => leave(signal))
}

/** Ends the process as the signal would have, unless that is left to the application. */
function leave(signal: NodeJS.Signals): void {
  draining = false
  if (leftToApplication) return
  for (const each of SIGNALS) process.off(each, drain)
  signalled.clear()
  process.kill(process.pid, signal)
}
