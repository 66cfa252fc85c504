// Handles the end of the process. A process without other work sends the queued messages before it exits; with handleSignals, a
// signal does so, too; and an exit that loses messages prints a warning. All clients share one listener of each kind, so that
// a hundred clients do not add a hundred listeners.

import type { ExitTarget } from './platform.ts'

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

const watched = new Set<ExitTarget>()
let isWatching = false

export const exitWatch = {
  add(target: ExitTarget): void {
    watched.add(target)
    if (isWatching) return
    isWatching = true
    process.on('beforeExit', sendAll)
    process.on('exit', warnOfLostMessages)
  },
  delete(target: ExitTarget): void {
    watched.delete(target)
  },
}

// The flush timer does not keep the process alive, so beforeExit is emitted as soon as there is no other work. The requests
// started here keep the process alive until they are answered; then beforeExit is emitted again.
function sendAll(): void {
  for (const target of watched) target.sendNow()
}

function warnOfLostMessages(): void {
  let lost = 0
  for (const target of watched) lost += target.unsafeMessages
  if (lost === 0) return
  // Not process.emitWarning, which prints asynchronously: the process is about to end.
  process.stderr.write(
    `(switchyard) The process exited with ${lost} message${lost === 1 ? '' : 's'} not delivered. Await closeAndFlush() before process.exit(), or set spool.\n`,
  )
}

const signalTargets = new Set<ExitTarget>()
let isDraining = false
/** The application has its own listener for the signal and must end the process itself. */
let isLeftToApplication = false

export function signalWatch(target: ExitTarget): () => void {
  // Before all other listeners, so that listeners added with once() are still counted.
  if (signalTargets.size === 0) for (const signal of SIGNALS) process.prependListener(signal, drain)
  signalTargets.add(target)
  return () => {
    signalTargets.delete(target)
    if (signalTargets.size === 0) for (const signal of SIGNALS) process.off(signal, drain)
  }
}

function drain(signal: NodeJS.Signals): void {
  // A second signal means that someone does not want to wait.
  if (isDraining) return isLeftToApplication ? undefined : endProcess(signal)
  isDraining = true
  isLeftToApplication = process.listenerCount(signal) > 1
  // An application that handles the signal itself may still make calls while it shuts down, so its client stays open.
  void Promise.allSettled([...signalTargets].map((target) => target.shutDown(isLeftToApplication))).then(() => endProcess(signal))
}

/** Ends the process with the signal, unless the application does that. */
function endProcess(signal: NodeJS.Signals): void {
  isDraining = false
  if (isLeftToApplication) return
  for (const each of SIGNALS) process.off(each, drain)
  signalTargets.clear()
  process.kill(process.pid, signal)
}
