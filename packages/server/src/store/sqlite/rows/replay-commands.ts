// The writing thread's commands about replays.

import type { ReplayStep } from '../../store.ts'
import type { WriterCommand } from '../threads/protocol.ts'
import type { WriterParts } from '../threads/writer-parts.ts'
import { type CreateReplayCommand, ReplayWriter, type UpdateReplayCommand } from './write-replays.ts'

export function replayCommands(parts: WriterParts) {
  const { ids } = parts
  const replays = new ReplayWriter(parts)
  return {
    replay: { run: ({ deliveryId, atMs }: { deliveryId: string; atMs: number }) => replays.replay(deliveryId, atMs) },
    /** A number after every row that there is. */
    replayBound: { run: () => ids.next(), outside: 'after' },
    createReplay: { run: (command: CreateReplayCommand) => replays.create(command) },
    updateReplay: { run: (command: UpdateReplayCommand) => replays.update(command) },
    replayStep: { run: ({ step, atMs }: { step: ReplayStep; atMs: number }) => replays.step(step, atMs) },
    /** How many jobs went. */
    dropReplays: { run: ({ beforeMs }: { beforeMs: number }) => replays.drop(beforeMs) },
  } satisfies Record<string, WriterCommand>
}
