// Work of any size, done a little at a time: each step is a transaction of its own, so that nothing else has to wait long.

/** Until a step finds nothing to do (none, or false), or it has to stop; the next run goes on from there. */
export async function inSteps(step: () => Promise<number | boolean>, isStopped: () => boolean): Promise<void> {
  while (!isStopped() && Number(await step()) > 0);
}
