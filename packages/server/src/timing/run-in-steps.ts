// Work of any size, done in small steps. Each step is a transaction of its own, so that nothing else has to wait long.

/** Repeats a step until it returns 0 or false because nothing is left to do, or until `isStopped`. The next run continues from there. */
export async function runInSteps(step: () => Promise<number | boolean>, isStopped: () => boolean): Promise<void> {
  while (!isStopped() && Number(await step()) > 0);
}
