// Opens senders: sender threads, or one sender in this thread. The latter is for a process with a single core, and for tests that provide their own resolver or clock.

import { openThread, type ThreadOptions } from './link/thread-channel.ts'
import { createClient } from './sender/client.ts'
import { Executor } from './sender/executor.ts'
import { createAddressGuard } from './sender/http/address-guard.ts'
import type { HttpClientOptions } from './sender/http/attempt.ts'
import { ThreadTransformer } from './sender/transforming/thread-transformer.ts'
import { Senders, type SendersOptions } from './supervision/senders.ts'

export function openSenderThreads(
  count: number,
  options: ThreadOptions,
  { program, ...more }: Pick<SendersOptions, 'onLost' | 'checkMs' | 'hosts' | 'loaders' | 'spreading'> & { program?: URL } = {},
): Senders {
  return new Senders({ ...more, count, open: (name, events) => openThread(name, options, events, program) })
}

export function openInlineSender({
  guard,
  hosts,
  loaders,
  ...options
}: Omit<HttpClientOptions, 'guard'> & Pick<ThreadOptions, 'guard'> & Pick<SendersOptions, 'hosts' | 'loaders'>): Senders {
  return new Senders({
    count: 1,
    hosts,
    loaders,
    // There is nothing to gain: a lane in the same thread starts the next request at once.
    runAhead: false,
    open: (_name, { outcome, unsent, bug }) => {
      // A lane must not get an outcome while it starts the work.
      const executor = new Executor(createClient({ guard: createAddressGuard(guard), ...options }), new ThreadTransformer(), {
        outcome: (...report) => queueMicrotask(() => outcome(...report)),
        unsent: (...report) => queueMicrotask(() => unsent(...report)),
        bug: (...report) => queueMicrotask(() => bug(...report)),
      })
      return { commands: executor, drain: () => executor.drain() }
    },
  })
}
